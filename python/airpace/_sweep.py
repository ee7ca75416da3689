"""Sweeps over keys of a scenario, schemes and seeds, on this machine or on a cluster."""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

from airpace import _airpace
from airpace._airpace import Table
from airpace._arguments import jobs_of, path_of, scenario_of, seeds_of, sets_given, teller_of
from airpace._cluster import check_cluster, on_cluster
from airpace._progress import Bar
from airpace._ratio import Ratio, ratio_of
from airpace._simulate import Progress, Value, toml

if TYPE_CHECKING:
    from distributed import Client

#: The values of a key: one, several, or text as after `--set` of `airpace sweep`: `"25,50,100"`, `"10..300/8"`.
Values: TypeAlias = "Value | Iterable[Value]"


class Sweep:
    """Results of a sweep: one table of all metrics, and the runs that failed.

    The folder contains the same results as files: `results/` is a Parquet dataset with a partition per scheme, and
    `report.html` shows heat maps.
    """

    def __init__(self, folder: Path) -> None:
        """Opens the folder of a complete sweep."""
        self._table, manifest = _airpace.open_sweep(folder)
        self._folder = folder
        self._manifest: dict[str, Any] = json.loads(manifest)

    @property
    def results(self) -> Table:
        """The metrics, with a row per flow of a run; failed runs have no rows.

        The columns are `cell`, `scenario`, `scheme`, `seed`, one column per swept key (`cell.prbs`), the columns that
        identify the flow, and one column per metric, with its name in a scenario's `[[expect]]`. Rows are in the order
        of schemes, then of points, then of seeds.
        """
        return self._table

    def ratio(self, scheme: str, reference: str, metric: str = "throughput_mbps", *, flow: str | None = None) -> Ratio:
        """The ratio of `scheme` to `reference` in a metric, over the points of the sweep; seeds are averaged.

        The flow is the first that runs the scheme, or the one with the label `flow`. Fewer than five points have no
        interval. Raises `ValueError` for an unknown scheme, metric or flow, and if no point has both values.
        """
        names = self._table.column_names
        keys = names[names.index("seed") + 1 : names.index("flow")]
        return ratio_of(self._table, scheme, reference, metric, flow, condition=("scenario", *keys))

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The runs that failed: `cell`, `scheme`, `seed`, `set` and `reason`."""
        failures: list[dict[str, Any]] = json.loads((self._folder / "failures.json").read_text(encoding="utf-8"))
        return failures

    @property
    def folder(self) -> Path:
        """The folder of the sweep."""
        return self._folder

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest with version, command and parameters of the sweep."""
        return self._manifest

    def __len__(self) -> int:
        """Number of runs, including failed runs."""
        return int(self._manifest["cells"])

    def __repr__(self) -> str:
        """Names size and folder."""
        return f"<airpace.Sweep of {len(self)} runs, {self._manifest['failed']} failed, in {self._folder}>"


def sweep(
    what: str | os.PathLike[str],
    *,
    set: Mapping[str, Values] | None = None,  # noqa: A002 - as `--set` of the program
    schemes: str | Iterable[str] | None = (),
    seeds: SupportsIndex | Iterable[SupportsIndex] | None = None,
    out: str | os.PathLike[str] | None = None,
    jobs: SupportsIndex | None = None,
    client: Client | None = None,
    progress: bool | Progress | None = None,
) -> Sweep:
    """Runs a scenario for every combination of keys' values, schemes and seeds, as `airpace sweep` does.

    The folder is equal to that of the program, byte for byte. The same call resumes an interrupted sweep: completed
    runs are found in the folder, by a hash of version, scenario, scheme and seed.

    Args:
        what: A name of `scenarios()`, a scenario's TOML file, or the TOML file of a sweep, as for `airpace sweep`.
            If the scenario has variants or a population, the sweep has the axis `variant` with their names.
        set: Keys of the scenario by their dotted paths, and their values: `{"cell.prbs": [25, 50, 100]}`. Text is
            parsed as after `--set`: `"10..300/8"` are eight numbers from 10 to 300. The last key changes fastest.
        schemes: Names of schemes, as for `simulate`. They run on the flows that have no scheme of their own. The column
            `flow_scheme` identifies flows with their own scheme (`flow.1.scheme`). A controller written in Python
            cannot be swept, because a change of its code since an earlier run cannot be detected.
        seeds: Seeds of the random numbers; default: 1.
        out: The folder; default: `sweeps/NAME-HASH`, which is the same for the same matrix.
        jobs: Number of parallel runs on this machine; default: one per core. Not used with `client`.
        client: A `dask.distributed.Client`, whose workers make the runs. The workers need this version of airpace, and
            the traces of the scenario under the same names. Results return over the network, so a common folder is not
            needed. Other workers repeat the runs of a worker that dies. A run that kills its workers is listed as
            failed.
        progress: Whether to show the progress, or a function that receives it: completed share (0 to 1), number of
            completed runs, and number of all runs; default: show it on a terminal.

    Raises:
        ValueError: A scenario, scheme or key that does not exist or is invalid here, or a matrix that is too large.
        OSError: A file or folder that cannot be read or written; the disk may be full. Completed runs are kept.
        RuntimeError: The cluster is gone. Completed runs are kept.
        KeyboardInterrupt: Ctrl-C. Completed runs are kept.
    """
    words = _names(schemes)
    numbers = None if seeds is None else seeds_of(seeds)
    workers = jobs_of(jobs)
    matrix = scenario_of("what", what, "a name of airpace.scenarios(), or the TOML file of a scenario or a sweep")
    folder = None if out is None else path_of("out", out)
    sets = [(key, _values(key, values)) for key, values in sets_given(set, '{"cell.prbs": [25, 50]}').items()]
    if client is not None:
        check_cluster(client)
    tell = teller_of(progress)
    session = _airpace.SweepSession(
        matrix,
        set=sets,
        schemes=words,
        seeds=numbers,
        jobs=workers,
        out=None if folder is None else Path(folder),
        command=f"airpace.sweep({matrix!r}, …)",
    )
    try:
        if client is None:
            session.run(tell)
        else:
            on_cluster(session, client, tell, _run)
        session.finish()
    finally:
        session.close()
        if isinstance(tell, Bar):
            tell.close()
    return Sweep(session.folder)


def open_sweep(path: str | os.PathLike[str]) -> Sweep:
    """Opens the folder of a sweep, written by `airpace sweep` or `sweep`.

    Raises `ValueError` if the sweep is not complete, `OSError` if the folder is no sweep's folder or cannot be read,
    and `FileNotFoundError` if the folder does not exist.
    """
    return Sweep(Path(path_of("path", path)))


def _names(schemes: object) -> list[str]:
    """Checks names of schemes. Schemes written in Python are refused, with the reason in the error."""
    if schemes is None:
        return []
    several: Any = [schemes] if isinstance(schemes, str | type) or callable(schemes) else schemes
    if not isinstance(several, Iterable) or isinstance(several, bytes | Mapping):
        raise ValueError(f"schemes={schemes!r}: give names of airpace.schemes()")
    words: list[str] = []
    for word in several:
        is_own = isinstance(word, type | tuple) or callable(word)
        if is_own:
            raise ValueError(
                f"{word!r} is written in Python, and cannot be swept: nothing tells whether its code has changed since "
                "a run. Give names of airpace.schemes(), or run it with airpace.simulate(…, seeds=…)"
            )
        if not isinstance(word, str):
            raise ValueError(f"{word!r} is no name of a scheme; give names of airpace.schemes()")
        words += word.split(",")
    return words


def _values(key: str, values: Values) -> str | list[str]:
    """Values for the native module: text as after `--set`, or a list."""
    if isinstance(values, str):
        return values
    several: Any = values
    if hasattr(several, "tolist"):
        several = several.tolist()
    if isinstance(several, frozenset | set):
        raise ValueError(f"{key}: a set has no order; give a list")
    if isinstance(several, bool | int | float | Mapping | os.PathLike):
        return [toml(key, several)]
    if not isinstance(several, Iterable):
        raise ValueError(f'{key} cannot be swept over {values!r}; give a list of values, or text as "10..300/8"')
    return [toml(key, value) for value in several]


@functools.lru_cache(maxsize=4)
def _plan(spec: str) -> _airpace.SweepPlan:
    """The plan of a sweep, which a worker parses once."""
    return _airpace.SweepPlan(spec)


def _run(spec: str, cells: list[int]) -> tuple[bytes, float]:
    """A task of a worker: makes these runs. Returns their records, and the duration in seconds."""
    began = time.monotonic()
    lines = _plan(spec).run(cells)
    return lines, time.monotonic() - began
