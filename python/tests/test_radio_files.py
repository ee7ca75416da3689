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


@pytest.fixture(scope="module")
def samples(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording and a log, as `airpace sample` writes them."""
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
    ours = pl.DataFrame(airpace.decode(iq, meta["core:sample_rate"]))
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
        ({"samples": np.zeros(10, complex), "rate": 1.92e6, "patience_ms": -1}, "0 to 10000"),
    ],
)
def test_samples_that_cannot_be_decoded_are_refused(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        airpace.decode(**arguments)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_log_gives_the_samples_of_the_program(samples: Path, program: Path) -> None:
    log = next(samples.glob("**/*.qmdl*"))
    words = [str(program), "diag", "decode", str(log), "--kpi", "all", "--parquet", str(samples / "kpis.parquet")]
    subprocess.run(words, check=True, capture_output=True)
    theirs = pl.read_parquet(samples / "kpis.parquet")
    ours = pl.DataFrame(airpace.diag(log))
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
    with pytest.raises(ValueError, match="1 to 3600000"):
        airpace.bandwidth(log, every_ms=0)


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no log\n" * 1000)
    with pytest.raises(ValueError, match="no log packet"):
        airpace.diag(tmp_path / "text")
    with pytest.raises(OSError, match="cannot read"):
        airpace.diag(tmp_path / "missing")
    with pytest.raises(ValueError, match=r"lte\.rsrp"):
        airpace.diag(tmp_path / "text", kpis="lte.rsrpp")
