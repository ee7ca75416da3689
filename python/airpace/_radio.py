"""PBE-CC's capacities and 3GPP's block sizes, over arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airpace import _airpace
from airpace._arguments import number

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# NumPy is imported in the functions that use it, to keep `import airpace` fast.
NAN = float("nan")


class Capacity(NamedTuple):
    """Capacity of a carrier for one device. All arrays have the shape to which the arguments broadcast."""

    #: Pexp: the device's fair share, in PRBs per subframe (PBE-CC §4.1 Eq. 1).
    fair_share_prbs: npt.NDArray[np.float64]
    #: Cf: the device's fair share, in bits per subframe (Eq. 2).
    fair_share_bits: npt.NDArray[np.float64]
    #: Cp: the physical capacity for this device, in bits per subframe (§4.2.1 Eq. 3).
    physical_bits: npt.NDArray[np.float64]
    #: Pidle: PRBs granted to no user, per subframe (Eq. 4).
    idle_prbs: npt.NDArray[np.float64]
    #: Ct: the part of Cp that is available to the transport layer, in bits per subframe (Eq. 5).
    transport_bits: npt.NDArray[np.float64]

    @property
    def transport_mbps(self) -> npt.NDArray[np.float64]:
        """Ct in Mbit/s: a subframe lasts a millisecond."""
        return self.transport_bits / 1e3


def capacity(
    *,
    own_prbs: npt.ArrayLike,
    used_prbs: npt.ArrayLike,
    carrier_prbs: npt.ArrayLike,
    bits_per_prb: npt.ArrayLike,
    users: npt.ArrayLike = 1.0,
    sinr_db: npt.ArrayLike = NAN,
    block_bits: npt.ArrayLike = NAN,
    overhead: float = 0.068,
) -> Capacity:
    """Computes PBE-CC's Eq. 1 to 5 for each element of the arguments, which broadcast as in NumPy.

    Args:
        own_prbs: Pa: PRBs granted to this device, per subframe.
        used_prbs: Sum of Pa over all users, including this device.
        carrier_prbs: Pcell: PRBs of the carrier.
        bits_per_prb: Rw: bits that a PRB carries in a subframe.
        users: N: number of users that share the carrier, including this device.
        sinr_db: Signal to interference and noise ratio in dB, from which Eq. 5 computes the error rate. NaN means
            unknown, and counts as the worst SINR.
        block_bits: Bits of a transport block on the air, L in Eq. 5. With NaN, L is Ct, as in the paper.
        overhead: γ of Eq. 5: the share of protocol headers.

    Raises:
        ValueError: Shapes that do not broadcast, or values that are impossible in a cell.
    """
    import numpy as np

    arguments = {
        "own_prbs": own_prbs,
        "used_prbs": used_prbs,
        "carrier_prbs": carrier_prbs,
        "users": users,
        "bits_per_prb": bits_per_prb,
        "sinr_db": sinr_db,
        "block_bits": block_bits,
    }
    floats = [_floats(name, of) for name, of in arguments.items()]
    arrays = dict(zip(arguments, np.broadcast_arrays(*floats), strict=True))
    for name in ("own_prbs", "used_prbs", "carrier_prbs", "bits_per_prb"):
        _check(bool(np.all((arrays[name] >= 0) & (arrays[name] < np.inf))), f"{name}: give numbers of at least 0")
    _check(
        bool(np.all((arrays["users"] >= 1) & (arrays["users"] < np.inf))),
        "users: give at least 1, for the device itself is one",
    )
    block, sinr = arrays["block_bits"], arrays["sinr_db"]
    _check(bool(np.all(np.isnan(block) | ((block >= 0) & (block < np.inf)))), "block_bits: give at least 0, or NaN")
    _check(not np.isinf(sinr).any(), "sinr_db: give numbers in dB, or NaN where it is not known")
    overhead = number("overhead", overhead, "a part of 1, as 0.068")
    _check(bool(np.all(arrays["own_prbs"] <= arrays["used_prbs"])), "used_prbs counts this device's PRBs too")
    _check(bool(np.all(arrays["used_prbs"] <= arrays["carrier_prbs"])), "used_prbs is more than carrier_prbs")
    _check(0 <= overhead < 1, f"overhead={overhead}: give a part of 1, as 0.068")
    shape = arrays["own_prbs"].shape
    own, used, cell, users, bits, sinr, block = (np.ascontiguousarray(it).reshape(-1) for it in arrays.values())
    found = _airpace.capacity(own, used, cell, users, bits, sinr, block, overhead)
    return Capacity(*(it.reshape(shape) for it in found))


def lte_tbs(i_tbs: npt.ArrayLike, n_prb: npt.ArrayLike, layers: npt.ArrayLike = 1) -> npt.NDArray[np.int64]:
    """Computes the size of LTE transport blocks in bits, for each element of the arguments, which broadcast.

    Args:
        i_tbs: TBS index, 0 to 33.
        n_prb: Number of PRB pairs, 1 to 110.
        layers: Number of spatial layers of the block, 1 or 2. Two codewords of one layer each are two blocks.

    Source: TS 36.213 §7.1.7.2
    """
    shape, (i_tbs, n_prb, layers) = _numbers(i_tbs=i_tbs, n_prb=n_prb, layers=layers)
    return _airpace.lte_tbs(i_tbs, n_prb, layers).reshape(shape)


def lte_mcs_tbs(
    mcs: npt.ArrayLike,
    n_prb: npt.ArrayLike,
    layers: npt.ArrayLike = 1,
    *,
    table: str = "64qam",
) -> npt.NDArray[np.int64]:
    """Computes the size of LTE downlink transport blocks in bits from their MCS.

    The result has a value for each element of the arguments, which broadcast.

    Args:
        mcs: MCS index, 0 to 31. The reserved indices (from 29 on; from 28 on in the table for 256QAM) retransmit a
            block with the size of the first transmission: their result is 0.
        n_prb: Number of PRB pairs, 1 to 110.
        layers: Number of spatial layers of the block, 1 or 2.
        table: `64qam` or `256qam`.

    Source: TS 36.213 §7.1.7.1, §7.1.7.2
    """
    shape, (mcs, n_prb, layers) = _numbers(mcs=mcs, n_prb=n_prb, layers=layers)
    return _airpace.lte_mcs_tbs(mcs, n_prb, layers, _table(table, "64qam, 256qam")).reshape(shape)


def nr_mcs_tbs(
    mcs: npt.ArrayLike,
    n_prb: npt.ArrayLike,
    symbols: npt.ArrayLike = 14,
    *,
    dmrs_res_per_prb: npt.ArrayLike = 12,
    overhead_res_per_prb: npt.ArrayLike = 0,
    layers: npt.ArrayLike = 1,
    table: str = "64qam",
) -> npt.NDArray[np.int64]:
    """Computes the size of NR transport blocks in bits, for each element of the arguments, which broadcast.

    Args:
        mcs: MCS index, 0 to 31. The result of reserved indices is 0.
        n_prb: Number of PRBs, 1 to 275.
        symbols: Number of OFDM symbols of the allocation, 1 to 14.
        dmrs_res_per_prb: Resource elements of demodulation reference signals per PRB, at most 12 per symbol.
        overhead_res_per_prb: `xOverhead`: 0, 6, 12 or 18.
        layers: Number of spatial layers, 1 to 8.
        table: `64qam`, `256qam` or `64qam-low-se`.

    Source: TS 38.214 §5.1.3
    """
    shape, arrays = _numbers(
        mcs=mcs,
        n_prb=n_prb,
        symbols=symbols,
        dmrs_res_per_prb=dmrs_res_per_prb,
        overhead_res_per_prb=overhead_res_per_prb,
        layers=layers,
    )
    mcs, n_prb, symbols, dmrs, overhead, layers = arrays
    known = _table(table, "64qam, 256qam, 64qam-low-se")
    return _airpace.nr_mcs_tbs(mcs, n_prb, symbols, dmrs, overhead, layers, known).reshape(shape)


def _floats(name: str, of: npt.ArrayLike) -> npt.NDArray[np.float64]:
    import numpy as np

    if np.iscomplexobj(of):
        raise ValueError(f"{name}: give real numbers")
    try:
        return np.asarray(of, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: give numbers, or an array of them") from None


def _numbers(**all_of: npt.ArrayLike) -> tuple[tuple[int, ...], list[npt.NDArray[np.int64]]]:
    """Broadcasts arrays of integers. Returns their shape and the flat arrays."""
    import numpy as np

    given = {name: np.asarray(of) for name, of in all_of.items()}
    for name, array in given.items():
        is_whole = np.issubdtype(array.dtype, np.integer) or array.size == 0
        _check(is_whole, f"{name}: values of type {array.dtype}; give whole numbers")
    arrays = np.broadcast_arrays(*given.values())
    flat = [np.ascontiguousarray(array, dtype=np.int64).reshape(-1) for array in arrays]
    return arrays[0].shape, flat


def _table(table: object, names: str) -> str:
    if not isinstance(table, str):
        raise ValueError(f"table={table!r}: give the name of one, of {names}")
    return table


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
