"""Results of runs."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from airpace import _airpace
from airpace._airpace import Table
from airpace._arguments import names_of, path_of


class Run:
    """What came of running schemes in a scenario: tables, numbers, verdicts.

    Tables of single packets, acknowledgements and grants have a row per event; the columns are those of the files in
    a run folder (docs/guide/run-folder.md), and behind them `scenario`, `scheme` and `seed`. Names of columns end in
    their unit. A table that was read stays in memory.
    """

    def __init__(self, native: _airpace.Run) -> None:
        """Wraps what `simulate` and `open` return."""
        self._native = native
        self._figure_data: dict[str, Any] | None = None

    @property
    def summary(self) -> Table:
        """The numbers: a row per flow of a run.

        Columns are `scenario`, `scheme`, `seed`, `flow`, `flow_label` and others that say which flow it is, and one per
        called as in a scenario's `[[expect]]`: `throughput_mbps`, `queueing_delay_ms.p95`.
        """
        return self._native.summary

    @property
    def packets(self) -> Table:
        """The ends of data packets' journeys, duplicates included."""
        return self.table("packets")

    @property
    def acks(self) -> Table:
        """Acknowledgements as the senders processed them."""
        return self.table("acks")

    @property
    def losses(self) -> Table:
        """Packets that their senders declared lost."""
        return self.table("losses")

    @property
    def controller(self) -> Table:
        """The state of each flow's scheme: window, pacing rate, and what else it names."""
        return self.table("controller")

    @property
    def prbs(self) -> Table:
        """The grants of the cell: adjacent PRBs given to one user in one subframe."""
        return self.table("prbs")

    @property
    def capacity(self) -> Table:
        """What the last hop could have carried to or from each device."""
        return self.table("capacity")

    def table(self, name: str) -> Table:
        """The table of this name: one of `table_names`.

        Raises `ValueError` if there is no such table, or if `simulate` did not keep it.
        """
        if not isinstance(name, str):
            raise ValueError(f"no table is called {name!r}; there are {', '.join(self.table_names)}")
        return self._native.table(name)

    @property
    def table_names(self) -> list[str]:
        """The names of all tables. `departures` is that of emulated runs only."""
        return self._native.table_names

    @property
    def folder(self) -> Path | None:
        """The run folder; `None` if the run is in memory only."""
        return self._native.folder

    @property
    def expectations(self) -> list[dict[str, Any]]:
        """The verdicts on what the scenario expects: `say`, `passed`, `measured` and more."""
        verdicts: list[dict[str, Any]] = self.to_dict()["expectations"]
        return verdicts

    @property
    def all_expectations_met(self) -> bool:
        """Whether every expectation was met. Without expectations it is true."""
        return self._native.all_expectations_met

    @property
    def manifest(self) -> dict[str, Any] | None:
        """What was run, by which version and command; `None` if the run is in memory only."""
        text = self._native.manifest_json()
        return None if text is None else json.loads(text)

    def to_dict(self) -> dict[str, Any]:
        """Every number of every run, with the keys of a run folder's `summary.json`."""
        summary: dict[str, Any] = json.loads(self._native.json())
        return summary

    def figure_data(self) -> dict[str, Any]:
        """What the figures of `report.html` show: all curves and points, colours and markers.

        `airpace.plots` draws it. It needs all tables; `ValueError` says which one `simulate` did not keep.
        """
        if self._figure_data is None:
            self._figure_data = json.loads(self._native.figures_json([]))
        return self._figure_data

    def page(self, figures: str | Iterable[str] = ()) -> str:
        """The text of `report.html`, or of a page of these figures only: `throughput-delay`, `course` and others.

        It needs all tables, and no other file.
        """
        return _airpace.page(self._native.figures_json(names_of("figures", figures, "ids of airpace.figures()")))

    def show(self, figures: str | Iterable[str] = ("throughput-delay", "course")) -> Any:  # noqa: ANN401 - only where anywidget is
        """Figures of the report in a notebook, as `airpace.widget(run, figures)` does."""
        from airpace._widget import widget

        return widget(self, figures)

    def __repr__(self) -> str:
        """Scenarios and schemes."""
        return repr(self._native)


def open(path: str | os.PathLike[str]) -> Run:  # noqa: A001 - as in `gzip.open`
    """Opens a run folder: one that `airpace sim`, `airpace emu` or `simulate(out=…)` wrote.

    Raises `OSError` if it is none, or if this version cannot read it: `FileNotFoundError` if it does not exist. Warns
    if its runs were stopped before their end: those that had ended are there.
    """
    run = Run(_airpace.open(Path(path_of("path", path))))
    manifest = run.manifest or {}
    if not manifest.get("complete", True):
        warnings.warn(
            f"the run in `{run.folder}` is not complete, and has the {_runs(run)} that had ended; make it again: "
            f"{manifest['command']}",
            stacklevel=2,
        )
    return run


def _runs(run: Run) -> str:
    count = len(run.to_dict()["runs"])
    return f"{count} run" if count == 1 else f"{count} runs"
