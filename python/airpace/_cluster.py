"""Runs on the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from airpace._simulate import Progress

if TYPE_CHECKING:
    from distributed import Client, Future

#: Target duration of one task on a worker of a cluster (s). Shorter tasks load the scheduler; a longer task is lost
#: as a whole if its worker dies.
TASK_S = 10.0

#: Maximum number of runs in one task.
MAX_RUNS = 1000

#: A task of a worker: makes runs of a session with this specification. Returns their records and the duration in
#: seconds.
Work: TypeAlias = Callable[[str, list[int]], tuple[bytes, float]]


class Session(Protocol):
    """Runs with a folder: a `SweepSession` or a `Reproduction` of the native module."""

    @property
    def spec(self) -> str:
        """All that a worker must know, as JSON."""

    def batch(self, first: int, count: int) -> list[int]:
        """The missing runs: `count` of them, from index `first` on."""

    def progress(self) -> tuple[int, int, int]:
        """Number of completed runs, of failed runs, and of all runs."""

    def add(self, cells: list[int], lines: bytes) -> None:
        """Adds the records of these runs."""

    def fail(self, cell: int, reason: str) -> None:
        """Records that a run failed."""


class _Tasks:
    """The tasks of a session: determines the runs of the next task."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._next = 0
        self._seconds_per_run: float | None = None
        self._again: list[list[int]] = []

    def took(self, runs: int, seconds: float) -> None:
        """Records the duration of a task."""
        per_run = seconds / max(runs, 1)
        known = self._seconds_per_run
        self._seconds_per_run = per_run if known is None else 0.8 * known + 0.2 * per_run

    def parted(self, cells: list[int]) -> None:
        """Schedules these runs again, each in a task of its own."""
        self._again.extend([cell] for cell in cells)

    def take(self) -> list[int]:
        """The runs of the next task; empty if all runs were taken."""
        if self._again:
            return self._again.pop()
        # The division into tasks affects the duration of tasks only, not the results.
        count = 1 if self._seconds_per_run is None else int(TASK_S / max(self._seconds_per_run, 1e-6))
        cells = self._session.batch(self._next, min(max(count, 1), MAX_RUNS))
        self._next += len(cells)
        return cells


def check_cluster(client: object) -> None:
    """Refuses an invalid client before anything is written."""
    try:
        import distributed  # noqa: F401 - checks that it is installed
    except ImportError as missing:
        raise ImportError("work on a cluster needs Dask: pip install distributed") from missing
    if not hasattr(client, "submit") or not hasattr(client, "nthreads"):
        raise ValueError(f"client={client!r}: give a dask.distributed.Client, as client=Client(cluster)")
    if getattr(client, "asynchronous", False) is True:
        raise ValueError(f"client={client!r} is asynchronous; give one that is not: Client(cluster)")
    _check_open(client, "nothing was begun")


def _check_open(client: object, so: str) -> None:
    """Refuses a closed client: Dask's own exceptions do not name this cause."""
    if getattr(client, "status", "running") in ("closing", "closed"):
        raise RuntimeError(
            f"the cluster is gone, for client={client!r} is closed; {so}. Make the call with another client"
        )


def on_cluster(session: Session, client: Client, tell: Progress | None, work: Work) -> None:
    """Makes the runs on the workers of a Dask cluster, which call `work`."""
    from distributed import as_completed

    tasks = _Tasks(session)
    running: dict[Future, list[int]] = {}
    ended = as_completed()

    def fill() -> None:
        """Submits a few tasks per thread, so that no thread is idle, and keeps the other runs here."""
        threads = sum(client.nthreads().values())
        _check_open(client, "what had ended is kept")
        while len(running) < max(3 * threads, 2):
            cells = tasks.take()
            if not cells:
                return
            future = client.submit(work, session.spec, cells, pure=False)
            running[future] = cells
            ended.add(future)

    try:
        fill()
        while running:
            future = next(ended)
            cells = running.pop(future)
            if future.status == "finished":
                lines, seconds = future.result()
                session.add(cells, lines)
                tasks.took(len(cells), seconds)
            elif future.status == "error":
                # The workers of the task died one after the other, or the task raised. A single run may be the cause.
                if len(cells) > 1:
                    tasks.parted(cells)
                else:
                    session.fail(cells[0], _reason(future))
            elif future.status in ("pending", "lost"):
                # The task had ended, and its worker died with the result: the cluster repeats the task.
                running[future] = cells
                ended.add(future)
            else:
                raise RuntimeError("the cluster is gone; what had ended is kept, and the same call goes on")
            done, _, all_cells = session.progress()
            if tell is not None:
                tell(done / all_cells, done, all_cells)
            fill()
    finally:
        # A closed client raises here, because it has nothing left to cancel.
        with contextlib.suppress(Exception):
            client.cancel(list(running))


def _reason(future: Future) -> str:
    """Why a task failed, as a sentence."""
    error = future.exception()
    if type(error).__name__ == "KilledWorker":
        return "the workers that ran it died, one after the other; they may have had too little memory"
    return f"the worker could not do it: {type(error).__name__}: {error}"
