"""The papers' experiments: each of their numbers beside ours."""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from airpace import _airpace
from airpace._arguments import jobs_of, names_of, path_of, teller_of
from airpace._cluster import check_cluster, on_cluster
from airpace._progress import Bar
from airpace._simulate import Progress

if TYPE_CHECKING:
    from distributed import Client


class Reproduced:
    """Numbers of the papers beside ours, and the folder with the figures and the page."""

    def __init__(self, folder: Path, numbers: str) -> None:
        """Wraps the results of `reproduce`."""
        self._folder = folder
        self._numbers: list[dict[str, Any]] = json.loads(numbers)

    @property
    def numbers(self) -> list[dict[str, Any]]:
        """The numbers, with the keys `experiment`, `what`, `paper`, `ours`, `rule`, `verdict` and others."""
        return self._numbers

    @property
    def folder(self) -> Path:
        """The folder: `index.html`, `figures/`, `results.json`, `reproduction.md`, and all finished runs."""
        return self._folder

    def __repr__(self) -> str:
        """Counts the verdicts."""
        verdicts = [number["verdict"] for number in self._numbers]
        counts = ", ".join(f"{verdicts.count(one)} {one}" for one in dict.fromkeys(verdicts))
        return f"<airpace.Reproduced of {len(verdicts)} numbers: {counts}>"


def experiments() -> dict[str, str]:
    """The titles of all experiments by name, such as `pbe/fig14`."""
    return {name: f"{title} ({source})" for name, title, source in _airpace.experiments()}


def reproduce(
    what: str | Iterable[str],
    *,
    quick: bool = False,
    out: str | os.PathLike[str] = "reproduction",
    jobs: SupportsIndex | None = None,
    client: Client | None = None,
    progress: bool | Progress | None = None,
) -> Reproduced:
    """Repeats experiments of the papers, as `airpace reproduce` does.

    Only missing runs are made: finished runs are found in the folder, by a hash of version, scenario, scheme and seed.
    Another build of the same version counts as the same here, because the package does not know its commit. Experiments
    that measure the machine in real time have no numbers here: only the program measures.

    Args:
        what: Names of `experiments()`, papers (`"pbe"`), or `"all"`.
        quick: Whether to make only a few runs of each experiment, which show that everything works.
        out: The folder of the results and of finished runs.
        jobs: Number of parallel runs on this machine; default: one per core. Not used with `client`.
        client: A `dask.distributed.Client`, whose workers make the runs, as for `sweep`.
        progress: Whether to show the progress, or a function that receives it: completed share (0 to 1), number of
            completed runs, and number of all runs; default: show it on a terminal.

    Raises:
        ValueError: An experiment that does not exist, or a folder with other contents.
        OSError: A file or folder that cannot be written; the disk may be full. Completed runs are kept.
        RuntimeError: A run failed, or the cluster is gone. Completed runs are kept.
        KeyboardInterrupt: Ctrl-C. Completed runs are kept.
    """
    words = names_of("what", what, "names of airpace.experiments(), or all")
    workers = jobs_of(jobs)
    folder = Path(path_of("out", out))
    if client is not None:
        check_cluster(client)
    tell = teller_of(progress)
    command = f"airpace.reproduce({words!r}, …)"
    try:
        session = _airpace.Reproduction(words, quick=bool(quick), jobs=workers, out=folder, command=command)
        if client is None:
            session.run(tell)
        else:
            on_cluster(session, client, tell, _run)
        return Reproduced(folder, session.finish())
    finally:
        if isinstance(tell, Bar):
            tell.close()


@functools.lru_cache(maxsize=4)
def _plan(spec: str) -> _airpace.ReproductionPlan:
    """The runs of some experiments, which a worker parses once."""
    return _airpace.ReproductionPlan(spec)


def _run(spec: str, runs: list[int]) -> tuple[bytes, float]:
    """A task of a worker: makes these runs. Returns their results, and the duration in seconds."""
    began = time.monotonic()
    lines = _plan(spec).run(runs)
    return lines, time.monotonic() - began
