"""Radio samples and modem logs."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import airpace
from airpace import plots


@pytest.fixture(scope="module")
def samples(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording and a log, written by `airpace encode` and `airpace sample`."""
    folder = tmp_path_factory.mktemp("samples")
    for words in (
        ["encode", "stationary-busy", "--seconds", "0.5", "--snr", "20", "--format", "ci8", "--out", "cell"],
        ["sample", "phone"],
    ):
        subprocess.run([str(program), *words], check=True, cwd=folder, capture_output=True)
    return folder


def test_decoding_gives_the_messages_of_the_program(samples: Path, program: Path) -> None:

    meta = json.loads((samples / "cell.sigmf-meta").read_text())["global"]
    assert meta["core:datatype"] == "ci8"
    raw = np.fromfile(samples / "cell.sigmf-data", dtype=np.int8).astype(np.float32) / 128
    iq = raw[::2] + 1j * raw[1::2]
    table = airpace.decode(iq, meta["core:sample_rate"])
    ours = pl.DataFrame(table)
    arrays = table.to_dict()
    assert [list(mcs) for mcs in arrays["mcs"]] == ours["mcs"].to_list(), "a list is an array of its own"
    ranges = [None if of is None else list(of) for of in table["prb_slot0"]]
    assert ranges == ours["prb_slot0"].to_list()
    words = [str(program), "decode", "cell.sigmf-meta", "--parquet", "cell.parquet"]
    subprocess.run(words, check=True, cwd=samples, capture_output=True)
    theirs = pl.read_parquet(samples / "cell.parquet")
    assert ours.columns == theirs.columns
    assert ours.height > 500
    keys = ["index", "rnti", "dir", "format", "ncce", "bits", "n_prb"]
    assert ours.select(keys).equals(theirs.select(keys))


def test_noise_is_no_cell() -> None:
    rng = np.random.default_rng(9)
    noise = rng.normal(size=400_000) + 1j * rng.normal(size=400_000)
    with pytest.warns(UserWarning, match="."):
        assert len(airpace.decode(noise, 1.92e6)) == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"samples": np.zeros(10), "rate": 1.92e6}, "complex"),
        ({"samples": np.zeros((2, 5), complex), "rate": 1.92e6}, "shape"),
        ({"samples": np.zeros(10, complex), "rate": 0}, "samples per second"),
        ({"samples": np.zeros(10, complex), "rate": 1e5}, "(?i)rate|samples"),
        ({"samples": np.zeros(10, complex), "rate": 1.92e6, "pci": 504}, "0 to 503"),
        ({"samples": np.zeros(10, complex), "rate": 1.92e6, "pci": 1.5}, "0 to 503"),
        ({"samples": np.zeros(10, complex), "rate": 1.92e6, "patience_ms": -1}, "0 to 10000"),
        ({"samples": np.zeros(10, complex), "rate": 1.92e6, "patience_ms": 1.5}, "0 to 10000"),
        ({"samples": np.zeros(10, complex), "rate": "fast"}, "samples per second"),
        ({"samples": np.array([1, np.nan, 1j * np.inf]), "rate": 1.92e6}, "^samples: 2 of 3 are NaN or infinite"),
        ({"samples": np.full(4, 1e300 + 0j), "rate": 1.92e6}, "^samples: 4 of 4 are NaN or infinite"),
    ],
)
def test_samples_that_cannot_be_decoded_are_refused(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        airpace.decode(**arguments)  # type: ignore[arg-type]


def test_a_kpi_that_a_version_does_not_have_is_told_only_to_who_asks_for_it(samples: Path) -> None:
    """Version 102 of 0xB139, in the log of `airpace sample`, contains no transmit power: the log has no fault."""
    log = next(samples.glob("**/*.qmdl*"))
    assert "lte.ul.prb" in set(airpace.diag(log)["kpi"]), "without a warning"
    with pytest.warns(UserWarning, match="40 packets of 0xB139 have nothing for lte.ul.tx_power: their version"):
        assert len(airpace.diag(log, kpis=["lte.ul.tx_power"])) == 0


def test_a_log_gives_the_samples_of_the_program(samples: Path, program: Path) -> None:
    log = next(samples.glob("**/*.qmdl*"))
    words = [str(program), "diag", "decode", str(log), "--kpi", "all", "--parquet", str(samples / "kpis.parquet")]
    subprocess.run(words, check=True, capture_output=True)
    theirs = pl.read_parquet(samples / "kpis.parquet")
    table = airpace.diag(log)
    ours = pl.DataFrame(table)
    times = table.to_dict()["time_utc"]
    assert times.dtype == np.dtype("datetime64[ns]")
    assert times.astype(np.int64).tolist() == ours["time_utc"].dt.timestamp("ns").to_list()
    assert ours.height > 100
    assert ours.equals(theirs)
    name = ours["kpi"][0]
    assert name.split("@")[0] in airpace.kpis()
    packed = samples / "packed.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    assert pl.DataFrame(airpace.diag([packed])).equals(ours)


def test_a_log_gives_the_bandwidth_of_the_program(samples: Path, program: Path) -> None:
    log = next(samples.glob("**/*.qmdl*"))
    words = [str(program), "diag", "bandwidth", str(log), "--json"]
    ended = subprocess.run(words, check=True, capture_output=True, text=True)
    theirs = [json.loads(line) for line in ended.stdout.splitlines()]
    ours = pl.DataFrame(airpace.bandwidth(log))
    assert ours.height == len(theirs) > 20
    assert ours.columns == ["time_ms", "radio", "direction", "blocks_mbps", "granted_mbps", "prbs"]
    down = ours.filter(pl.col("direction") == "down")
    assert down["blocks_mbps"].max() > 5  # type: ignore[operator]
    table = airpace.bandwidth(log)
    figure = plots.granted(table)
    curves = {line.get_label(): line for axes in figure.axes for line in axes.lines}
    assert len(figure.axes) == len(set(ours["direction"]))
    blocks = ours.filter(pl.col("direction") == ours["direction"].sort()[0])["blocks_mbps"]
    assert np.nanmax(figure.axes[0].lines[0].get_ydata()) == blocks.max()
    assert "transport blocks" in curves
    with pytest.raises(ValueError, match="no windows of radio 2"):
        plots.granted(table, radio=2)
    for wrong in (0, 1.5, "100"):
        with pytest.raises(ValueError, match="1 to 3600000"):
            airpace.bandwidth(log, every_ms=wrong)  # type: ignore[arg-type]


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no log\n" * 1000)
    with pytest.raises(ValueError, match="no log packet"):
        airpace.diag(tmp_path / "text")
    with pytest.raises(OSError, match="cannot read"):
        airpace.diag(tmp_path / "missing")
    with pytest.raises(ValueError, match=r"lte\.rsrp"):
        airpace.diag(tmp_path / "text", kpis="lte.rsrpp")
    with pytest.raises(ValueError, match="give a modem's log, or several"):
        airpace.diag([])
    log = b"\x7e\x00" * 100_000
    for contents in (log, bytearray(log), [log]):
        with pytest.raises(ValueError, match="path=b'") as raised:
            airpace.diag(contents)  # type: ignore[arg-type]
        assert len(str(raised.value)) < 500, "the log is not in the message"
    with pytest.raises(ValueError, match="path=5: give a path"):
        airpace.diag(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="kpis=5: give names"):
        airpace.diag(tmp_path / "text", kpis=5)  # type: ignore[arg-type]
    (tmp_path / "packed.xz").write_bytes(b"\xfd7zXZ\x00 and so on")
    with pytest.raises(OSError, match=r"decompress it first: xz -dc .* > LOG"):
        airpace.diag(tmp_path / "packed.xz")
