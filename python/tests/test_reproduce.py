"""The papers' experiments, on this machine and on the workers of a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import airpace


def test_an_experiment_gives_numbers_and_figures_and_goes_on(tmp_path: Path) -> None:
    told: list[int] = []
    out = tmp_path / "mine"
    found = airpace.reproduce("biscay/fig10", quick=True, out=out, progress=lambda share, done, runs: told.append(done))
    assert told[-1] == 1
    assert {number["experiment"] for number in found.numbers} == {"biscay/fig10"}
    assert found.numbers == json.loads((out / "results.json").read_text())
    assert "numbers" in repr(found)
    assert "<svg" in (out / "figures" / "biscay-fig10.svg").read_text()
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["complete"]
    assert manifest["command"] == "airpace reproduce biscay/fig10 --quick"
    again = airpace.reproduce(["biscay/fig10"], quick=True, out=out, progress=False)
    assert again.numbers == found.numbers
    assert "biscay/fig10" in airpace.experiments()


@pytest.mark.filterwarnings("ignore")
def test_workers_of_a_cluster_make_the_same_numbers(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    with distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        there = airpace.reproduce("morc/fig5", quick=True, out=tmp_path / "there", client=client)
    here = airpace.reproduce("morc/fig5", quick=True, out=tmp_path / "here")
    assert there.numbers == here.numbers
    names = [sorted(path.name for path in (tmp_path / place / "runs").rglob("*.json")) for place in ("here", "there")]
    assert names[0] == names[1]


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="did you mean `pbe/fig14`"):
        airpace.reproduce("pbe/fig144", out=tmp_path / "mine")
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="holds no reproduction; give another folder with `out`"):
        airpace.reproduce("biscay/fig10", quick=True, out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
