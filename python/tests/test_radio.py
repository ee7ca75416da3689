"""Capacities and block sizes over arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import airpace


def test_the_equations_of_the_paper() -> None:
    """Pa = 10, ΣPa = 60, Pcell = 100, Rw = 500 bit, N = 2."""
    found = airpace.capacity(own_prbs=10, used_prbs=60, carrier_prbs=100, bits_per_prb=500, users=2)
    assert found.fair_share_prbs == 50, "Eq. 1"
    assert found.fair_share_bits == 25_000, "Eq. 2"
    assert found.physical_bits == 500 * (10 + 40 / 2), "Eq. 3"
    assert found.idle_prbs == 40, "Eq. 4"
    bit_error, overhead = 5e-6, 0.068
    transport = found.transport_bits
    errors = 1 - (1 - bit_error) ** transport
    assert found.physical_bits == pytest.approx(transport * (1 + errors) + overhead * found.physical_bits, rel=1e-3)


def test_places_are_computed_one_by_one() -> None:
    rng = np.random.default_rng(731)
    own = rng.integers(0, 40, (7, 1)).astype(float)
    used = own + rng.integers(0, 60, (7, 5))
    sinr = rng.uniform(-5, 30, 5)
    all_at_once = airpace.capacity(
        own_prbs=own, used_prbs=used, carrier_prbs=100, bits_per_prb=700.5, users=3, sinr_db=sinr, block_bits=20_000
    )
    assert all_at_once.transport_bits.shape == (7, 5)
    for row in range(7):
        for column in range(5):
            one = airpace.capacity(
                own_prbs=own[row, 0],
                used_prbs=used[row, column],
                carrier_prbs=100,
                bits_per_prb=700.5,
                users=3,
                sinr_db=sinr[column],
                block_bits=20_000,
            )
            for whole, single in zip(all_at_once, one, strict=True):
                assert whole[row, column] == single
    assert np.all(all_at_once.transport_bits <= all_at_once.physical_bits)
    assert np.array_equal(all_at_once.transport_mbps, all_at_once.transport_bits / 1000)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"users": 0.5}, "at least 1"),
        ({"own_prbs": -1}, "own_prbs"),
        ({"own_prbs": 70}, "counts this device"),
        ({"used_prbs": 101}, "more than carrier_prbs"),
        ({"bits_per_prb": np.nan}, "bits_per_prb"),
        ({"overhead": 1.0}, "part of 1"),
        ({"overhead": np.nan}, "part of 1"),
        ({"overhead": "low"}, "part of 1"),
        ({"block_bits": -1}, "block_bits: give at least 0, or NaN"),
        ({"block_bits": np.inf}, "block_bits"),
        ({"carrier_prbs": np.inf}, "carrier_prbs: give numbers"),
        ({"own_prbs": np.inf, "used_prbs": np.inf, "carrier_prbs": np.inf}, "own_prbs"),
        ({"users": np.inf}, "users"),
        ({"sinr_db": -np.inf}, "sinr_db"),
        ({"bits_per_prb": "many"}, "bits_per_prb: give numbers"),
        ({"users": 2j}, "users: give real numbers"),
        ({"users": [1, 2], "sinr_db": [1, 2, 3]}, "broadcast"),
    ],
)
def test_numbers_that_no_cell_has_are_refused(change: dict[str, Any], says: str) -> None:
    arguments: dict[str, Any] = {"own_prbs": 10, "used_prbs": 60, "carrier_prbs": 100, "bits_per_prb": 500}
    with pytest.raises(ValueError, match=says):
        airpace.capacity(**(arguments | change))


def test_block_sizes_of_lte() -> None:
    """TS 36.213 Tables 7.1.7.2.1-1 and 7.1.7.1-1."""
    assert airpace.lte_tbs(0, [1, 2, 110]).tolist() == [16, 32, 3112]
    assert airpace.lte_tbs(26, 100) == 75376
    assert airpace.lte_mcs_tbs([0, 28, 29], 100).tolist() == [2792, 75376, 0]
    assert airpace.lte_mcs_tbs(27, 100, table="256qam") == airpace.lte_tbs(33, 100)
    assert airpace.lte_tbs([[10], [20]], [6, 50, 75]).shape == (2, 3)
    assert airpace.lte_tbs(10, 25, 2) == airpace.lte_tbs(10, 50), "two layers are one over twice the PRBs: §7.1.7.2.2"


def test_block_sizes_of_nr() -> None:
    """TS 38.214 §5.1.3.2: 273 PRBs, 13 symbols of data, 256QAM, four layers."""
    whole = airpace.nr_mcs_tbs(27, 273, 14, dmrs_res_per_prb=12, layers=4, table="256qam")
    assert whole == 1_277_992
    sizes = airpace.nr_mcs_tbs(10, 100, overhead_res_per_prb=[0, 6, 12, 18])
    assert (np.diff(sizes) < 0).all(), "overhead takes room"
    assert airpace.nr_mcs_tbs(31, 100) == 0, "a reserved MCS has no size of its own"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: airpace.lte_tbs(34, 10), "TBS index 34"),
        (lambda: airpace.lte_tbs(0, 0), "0 PRB pairs"),
        (lambda: airpace.lte_tbs(0, 10, 3), "3 layers"),
        (lambda: airpace.lte_mcs_tbs(32, 10), "MCS 32"),
        (lambda: airpace.lte_mcs_tbs(1, 10, table="qam"), "there are 64qam, 256qam"),
        (lambda: airpace.lte_mcs_tbs(1.5, 10), "^mcs: values of type float64; give whole numbers"),
        (lambda: airpace.lte_tbs(1, ["6"]), "^n_prb: .*whole numbers"),
        (lambda: airpace.nr_mcs_tbs(1, 10, overhead_res_per_prb=7), "overhead_res_per_prb=7; give .* 0, 6, 12 or 18"),
        (lambda: airpace.nr_mcs_tbs(1, 10, overhead_res_per_prb=-6), "overhead_res_per_prb=-6"),
        (lambda: airpace.nr_mcs_tbs(1, 10, 2, dmrs_res_per_prb=25), "dmrs_res_per_prb=25"),
        (lambda: airpace.nr_mcs_tbs(1, 276), "276 PRBs"),
        (lambda: airpace.nr_mcs_tbs(1, 10, 15), "15 symbols"),
    ],
)
def test_blocks_that_no_table_has_are_refused(call: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()
