"""Sweeps, on this machine and on the workers of a cluster."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import airpace
from airpace import _cluster, _sweep

ROOT = Path(__file__).resolve().parents[2]

STORY = """name = "story"
duration_s = 1
[internet]
rate_mbps = 10
buffer.ms = 100
[[flow]]
label = "phone"
rtt_ms = 20
"""

SETS: dict[str, Any] = {"internet.rate_mbps": [5, 10], "flow.0.rtt_ms": "10..30/3"}
MATRIX: dict[str, Any] = {"set": SETS, "schemes": ["reno", "bbr"], "seeds": range(1, 4)}
WORDS = [
    *["--set", "internet.rate_mbps=5,10", "--set", "flow.0.rtt_ms=10..30/3"],
    *["--scheme", "reno,bbr", "--seeds", "1..3"],
]


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Writes a short scenario, and returns the path that the tests pass to `sweep`."""
    (tmp_path / "story.toml").write_text(STORY)
    monkeypatch.chdir(tmp_path)
    return "story.toml"


def lasting(folder: Path) -> dict[str, bytes]:
    """All files that depend on the matrix only: without `cells`, and with the manifest without its host."""
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "cells" not in path.relative_to(folder).parts
    }
    manifest = json.loads(files.pop("manifest.json"))
    del manifest["host"]
    return files | {"manifest.json": json.dumps(manifest).encode()}


@pytest.fixture
def of_the_program(story: str, program: Path, tmp_path: Path) -> dict[str, bytes]:
    """The folder of the program's sweep."""
    words = [str(program), "sweep", story, *WORDS, "--out", "theirs", "--quiet"]
    subprocess.run(words, check=True, capture_output=True, cwd=tmp_path)
    return lasting(tmp_path / "theirs")


def test_a_sweep_is_one_table(story: str, tmp_path: Path) -> None:
    told: list[tuple[float, int, int]] = []
    sweep = airpace.sweep(story, **MATRIX, out="mine", progress=lambda *at: told.append(at))
    assert len(sweep) == 2 * 3 * 2 * 3
    assert sweep.failures == []
    assert told[-1] == (1.0, 36, 36)
    frame = pl.DataFrame(sweep.results)
    assert frame.height == 36
    assert frame.columns[:6] == ["cell", "scenario", "scheme", "seed", "internet.rate_mbps", "flow.0.rtt_ms"]
    means = frame.group_by("internet.rate_mbps").agg(pl.col("throughput_mbps").mean()).sort("internet.rate_mbps")
    slow, fast = means["throughput_mbps"]
    assert slow < 5 < fast < 10
    files = pl.read_parquet(tmp_path / "mine/results", hive_partitioning=True)
    key = ["cell", "throughput_mbps", "flow.0.rtt_ms"]
    assert files.select(key).sort("cell").equals(frame.select(key).sort("cell"))
    assert airpace.open_sweep("mine").manifest == sweep.manifest
    with pytest.raises(ValueError, match="open_sweep"):
        airpace.open("mine")


def test_the_usual_folder_is_that_of_the_matrix(story: str) -> None:
    first = airpace.sweep(story, set={"flow.0.rtt_ms": [10, 20]}, schemes="reno")
    again = airpace.sweep(story, set={"flow.0.rtt_ms": np.array([10, 20])}, schemes=["reno"], seeds=1)
    other = airpace.sweep(story, set={"flow.0.rtt_ms": [10, 30]}, schemes="reno")
    assert first.folder == again.folder != other.folder
    assert first.folder.parent == Path("sweeps")


def test_a_sweep_has_the_numbers_of_simulate(story: str) -> None:
    sweep = airpace.sweep(story, **MATRIX, out="mine")
    run = airpace.simulate(
        story, schemes=["reno", "bbr"], seeds=[2], set={"internet.rate_mbps": 5, "flow.0.rtt_ms": 30}, tables=()
    )
    mine = pl.DataFrame(sweep.results).filter(
        (pl.col("internet.rate_mbps") == 5) & (pl.col("flow.0.rtt_ms") == 30) & (pl.col("seed") == 2)
    )
    theirs = pl.DataFrame(run.summary)
    assert mine.select(theirs.columns).equals(theirs)


def test_the_bytes_are_those_of_the_program(story: str, of_the_program: dict[str, bytes], tmp_path: Path) -> None:
    airpace.sweep(story, **MATRIX, out="mine")
    assert lasting(tmp_path / "mine") == of_the_program


def test_a_sweep_from_a_file_is_the_same(story: str, of_the_program: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(
        f'scenario = "{story}"\nschemes = ["reno", "bbr"]\nseeds = "1..3"\n[set]\n'
        'internet.rate_mbps = [5, 10]\nflow.0.rtt_ms = "10..30/3"\n'
    )
    airpace.sweep("sweep.toml", out="mine")
    assert lasting(tmp_path / "mine") == of_the_program


def test_failures_are_listed(story: str) -> None:
    sweep = airpace.sweep(story, set={"flow.0.rtt_ms": [-1, 20]}, schemes="reno", seeds=[1, 2], out="mine")
    assert [failure["cell"] for failure in sweep.failures] == [0, 1]
    assert sweep.failures[0]["reason"].startswith("flow.0.rtt_ms=-1: ")
    assert list(sweep.results["cell"]) == [2, 3]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"set": {"flow.0.rtt": [1, 2]}}, "did you mean `flow.0.rtt_ms`"),
        ({"set": {"flow.0.rtt_ms": []}}, "no value"),
        ({"set": {"flow.0.rtt_ms": "5..1"}}, "runs backwards"),
        ({"schemes": ["pb"]}, "did you mean `pbe`"),
        ({"schemes": [airpace.Controller]}, "cannot be swept: nothing tells whether its code.*airpace.simulate"),
        ({"schemes": airpace.Controller}, "cannot be swept"),
        ({"schemes": [("mine", airpace.Controller)]}, "cannot be swept"),
        ({"schemes": [5]}, "is no name of a scheme"),
        ({"schemes": 5}, "^schemes=5"),
        ({"seeds": []}, "no seed"),
        ({"seeds": [-1]}, "is no seed"),
        ({"seeds": [1.5]}, r"^1\.5 is no seed"),
        ({"seeds": "1..3"}, "^'1..3' is no seed"),
        ({"jobs": 0}, "1 to 1024"),
        ({"set": [1]}, "^set=.*give a dict"),
        ({"set": {"flow.0.rtt_ms": None}}, "flow.0.rtt_ms cannot be swept over None"),
        ({"set": {"flow.0.rtt_ms": {10, 20}}}, "a set has no order"),
        (
            {"set": {"flow.0.scheme": ["reno", "bbr"]}, "schemes": "cubic"},
            "every flow has a scheme of its own.*with `schemes`",
        ),
        ({"client": 5}, r"give a dask\.distributed\.Client"),
        ({"set": {"flow.0.rtt_ms": "1..4000", "duration_s": "1..4000"}}, "the most are 10000000"),
    ],
)
def test_wrong_arguments_say_what_to_do(story: str, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says) as raised:
        airpace.sweep(story, **arguments)
    assert "--" not in str(raised.value)
    assert not Path("sweeps").exists(), "nothing is written"


def test_without_dask_a_cluster_is_refused_before_anything_is_written(
    story: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    client: Any = object()
    with pytest.raises(ImportError, match="pip install distributed"):
        airpace.sweep(story, **MATRIX, client=client)
    assert not Path("sweeps").exists()


def test_variants_are_an_axis_of_a_sweep(story: str, tmp_path: Path) -> None:
    variants = (
        f'[[variant]]\nname = "{name}"\nset = {{ "flow.0.rtt_ms" = {ms} }}\n'
        for name, ms in (("near", 10), ("far", 90))
    )
    (tmp_path / "two.toml").write_text(STORY + "".join(variants))
    sweep = airpace.sweep("two.toml", schemes="reno")
    assert pl.DataFrame(sweep.results)["variant"].to_list() == ["near", "far"]
    with pytest.raises(ValueError, match=r"has no variant `nea`; did you mean `near`"):
        airpace.sweep("two.toml", set={"variant": ["nea"]}, schemes="reno")
    run = airpace.simulate("two.toml", schemes="reno", tables=())
    assert len(run.summary) == 2


def test_a_flow_with_a_scheme_of_its_own_is_told_apart(story: str, tmp_path: Path) -> None:
    (tmp_path / "both.toml").write_text(STORY + '[[flow]]\nlabel = "other"\nrtt_ms = 20\n')
    sweep = airpace.sweep("both.toml", set={"flow.1.scheme": ["reno", "bbr"]}, schemes=["cubic"], out="mine")
    rows = pl.DataFrame(sweep.results).select("scheme", "flow.1.scheme", "flow_label", "flow_scheme").rows()
    assert rows == [
        ("cubic", "reno", "phone", "cubic"),
        ("cubic", "reno", "other", "reno"),
        ("cubic", "bbr", "phone", "cubic"),
        ("cubic", "bbr", "other", "bbr"),
    ]
    assert "other (own scheme: reno, bbr)" in (tmp_path / "mine/report.html").read_text()


def test_a_log_of_runs_that_was_changed_by_hand_is_refused(story: str, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"set": {"flow.0.rtt_ms": [10, 20]}, "schemes": "reno", "out": "mine"}
    airpace.sweep(story, **arguments)
    (log,) = (tmp_path / "mine/cells").glob("*.log")
    text = log.read_text()
    digit = text.index('"values":"') + len('"values":"')
    log.write_text(text[:digit] + str((int(text[digit]) + 1) % 10) + text[digit + 1 :])
    with pytest.raises(OSError, match=r"line 1: it does not fit its checksum.*remove this file"):
        airpace.sweep(story, **arguments)
    log.unlink()
    assert len(airpace.sweep(story, **arguments)) == 2


def test_what_is_no_sweep_cannot_be_opened(story: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no sweep"):
        airpace.open_sweep(tmp_path)


def test_a_sweep_that_was_interrupted_goes_on(story: str, of_the_program: dict[str, bytes], tmp_path: Path) -> None:
    def stop(share: float, done: int, runs: int) -> None:
        raise InterruptedError("enough")

    # The first check is after 50 ms; many seeds ensure that the sweep has not ended by then.
    many = MATRIX | {"seeds": range(1, 2000)}
    with pytest.raises(InterruptedError):
        airpace.sweep(story, **many, out="mine", progress=stop)
    with pytest.raises(ValueError, match="the same sweep into the same folder continues it: `airpace sweep story"):
        airpace.open_sweep("mine")
    airpace.sweep(story, **MATRIX, out="mine")
    assert lasting(tmp_path / "mine") == of_the_program


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Any]:
    """Two workers, each a process with one thread."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=str(tmp_path / "dask"),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_is_killed_changes_no_byte(
    story: str, of_the_program: dict[str, bytes], cluster: Any, tmp_path: Path
) -> None:
    workers = cluster.run(os.getpid)
    assert len(workers) == 2
    killed = threading.Event()

    def kill(share: float, done: int, runs: int) -> None:
        # In the middle of the sweep: some runs have ended, and tasks wait at both workers.
        if not killed.is_set():
            assert 0 < done < runs
            os.kill(next(iter(workers.values())), signal.SIGKILL)
            killed.set()

    sweep = airpace.sweep(story, **MATRIX, out="mine", client=cluster, progress=kill)
    assert killed.is_set()
    assert sweep.failures == []
    assert lasting(tmp_path / "mine") == of_the_program


@pytest.mark.filterwarnings("ignore")
def test_failures_of_a_cluster_are_listed(story: str, cluster: Any) -> None:
    sweep = airpace.sweep(
        story, set={"flow.0.rtt_ms": [-1, 20]}, schemes="reno", seeds=[1, 2], out="mine", client=cluster
    )
    assert [failure["cell"] for failure in sweep.failures] == [0, 1]
    assert list(sweep.results["cell"]) == [2, 3]


def test_the_blocks_of_the_guide_run(tmp_path: Path) -> None:
    page = (ROOT / "docs/guide/sweeps.md").read_text()
    blocks = re.findall(r"<!-- needs: python:airpace[^\n]*-->\n```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        ended = subprocess.run([sys.executable, "-c", block], check=False, capture_output=True, text=True, cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        assert "airpace.Sweep of 8 runs, 0 failed" in ended.stdout


#: Exception with the name of Dask's, which a task raises after its workers have died several times.
KilledWorker: type[Exception] = type("KilledWorker", (Exception,), {})


class Done:
    """A completed task: run 1 kills every worker that makes it."""

    def __init__(self, cells: list[int]) -> None:
        self.status = "error" if 1 in cells else "finished"

    def result(self) -> tuple[bytes, float]:
        return b"fine", 4.0

    def exception(self) -> Exception:
        return KilledWorker()


class Deadly:
    """Stand-in for a cluster: every task has ended when its result is requested."""

    def __init__(self) -> None:
        self.tasks: list[list[int]] = []
        self.waiting: list[Done] = []

    def nthreads(self) -> dict[str, int]:
        return {"one": 1}

    def submit(self, run: Any, spec: str, cells: list[int], *, pure: bool) -> Done:
        self.tasks.append(cells)
        return Done(cells)

    def add(self, task: Done) -> None:
        self.waiting.append(task)

    def __next__(self) -> Done:
        """Returns the task that ended first."""
        return self.waiting.pop(0)


class Session:
    """Stand-in for a sweep of six runs."""

    spec = "six"

    def __init__(self) -> None:
        self.done: list[int] = []
        self.failed: dict[int, str] = {}

    def batch(self, first: int, count: int) -> list[int]:
        # Three runs per task, so that the run that kills workers is not alone in its task.
        return list(range(6))[first : first + max(count, 3)]

    def progress(self) -> tuple[int, int, int]:
        return len(self.done) + len(self.failed), len(self.failed), 6

    def add(self, cells: list[int], lines: bytes) -> None:
        assert lines == b"fine"
        self.done += cells

    def fail(self, cell: int, reason: str) -> None:
        self.failed[cell] = reason


def test_a_run_that_kills_its_workers_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    session: Any = Session()
    cluster: Any = Deadly()
    monkeypatch.setattr(distributed, "as_completed", lambda: cluster)
    _cluster.on_cluster(session, cluster, None, _sweep._run)
    assert set(session.failed) == {1}
    assert "died, one after the other" in session.failed[1]
    assert sorted(session.done) == [0, 2, 3, 4, 5], "runs of the same task are made again"
    assert cluster.tasks[0] == [0, 1, 2]


def test_a_client_that_is_closed_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    client = distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None)
    client.close()
    with pytest.raises(RuntimeError, match="is closed; nothing was begun"):
        airpace.sweep("stationary-idle", set={"duration_s": 0.1}, schemes="cubic", out=tmp_path / "s", client=client)
    assert not (tmp_path / "s").exists()


class Forgetful(Deadly):
    """A cluster whose workers die with their results: each task is lost once after it had ended."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: list[Done] = []

    def submit(self, run: Any, spec: str, cells: list[int], *, pure: bool) -> Done:
        task = super().submit(run, spec, cells, pure=pure)
        task.status = "lost"
        return task

    def add(self, task: Done) -> None:
        if task in self.lost:
            task.status = "finished"
        self.lost.append(task)
        super().add(task)


def test_what_a_worker_takes_along_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    session: Any = Session()
    cluster: Any = Forgetful()
    monkeypatch.setattr(distributed, "as_completed", lambda: cluster)
    _cluster.on_cluster(session, cluster, None, _sweep._run)
    assert sorted(session.done) == [0, 1, 2, 3, 4, 5]
    assert session.failed == {}


def test_two_schemes_are_compared_point_by_point(story: str, tmp_path: Path) -> None:
    swept = airpace.sweep(story, out=tmp_path / "swept", **MATRIX)
    point = ["internet.rate_mbps", "flow.0.rtt_ms"]
    metric = "one_way_delay_ms.mean"
    frame = pl.DataFrame(swept.results).group_by(*point, "scheme").agg(pl.mean(metric))
    wide = frame.pivot(on="scheme", index=point, values=metric)
    ratio = swept.ratio("bbr", "reno", metric)
    assert ratio.pairs == wide.height == 6
    assert ratio.value == pytest.approx(np.exp(np.log(wide["bbr"] / wide["reno"]).mean()))
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low < ratio.value < ratio.high
