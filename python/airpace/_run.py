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
from airpace._ratio import Ratio, ratio_of


class Run:
    """Results of schemes in a scenario: tables, metrics, verdicts.

    The tables of packets, acknowledgements and grants have a row per event. Their columns are those of the files in a
    run folder (docs/guide/run-folder.md), followed by `scenario`, `scheme` and `seed`. Names of columns end in their
    unit. A table stays in memory after the first access.
    """

    def __init__(self, native: _airpace.Run) -> None:
        """Wraps a run of the native module; `simulate` and `open` call this."""
        self._native = native
        self._figure_data: dict[str, Any] | None = None

    @property
    def summary(self) -> Table:
        """The metrics, with a row per flow of a run.

        The columns are `scenario`, `scheme`, `seed`, `flow`, `flow_label` and others that identify the flow, and one
        column per metric, with its name in a scenario's `[[expect]]`: `throughput_mbps`, `queueing_delay_ms.p95`.
        """
        return self._native.summary

    @property
    def packets(self) -> Table:
        """The fate of each data packet, duplicates included: delivered, dropped or lost."""
        return self.table("packets")

    @property
    def acks(self) -> Table:
        """Acknowledgements that senders processed."""
        return self.table("acks")

    @property
    def losses(self) -> Table:
        """Packets that their senders declared lost."""
        return self.table("losses")

    @property
    def controller(self) -> Table:
        """The state of each flow's controller: window, pacing rate, and the values that the scheme names."""
        return self.table("controller")

    @property
    def prbs(self) -> Table:
        """The grants of the cell: adjacent PRBs of one user in one subframe."""
        return self.table("prbs")

    @property
    def capacity(self) -> Table:
        """The capacity of the last hop to or from each device."""
        return self.table("capacity")

    def table(self, name: str) -> Table:
        """The table of this name, one of `table_names`.

        Raises `ValueError` if no table has this name, or if `simulate` did not keep it.
        """
        if not isinstance(name, str):
            raise ValueError(f"no table is called {name!r}; there are {', '.join(self.table_names)}")
        return self._native.table(name)

    @property
    def table_names(self) -> list[str]:
        """The names of all tables. Only emulated runs have the table `departures`."""
        return self._native.table_names

    @property
    def folder(self) -> Path | None:
        """The run folder; `None` if the run is in memory only."""
        return self._native.folder

    @property
    def expectations(self) -> list[dict[str, Any]]:
        """The verdicts on the scenario's expectations, with the keys `say`, `passed`, `measured` and others."""
        verdicts: list[dict[str, Any]] = self.to_dict()["expectations"]
        return verdicts

    @property
    def all_expectations_met(self) -> bool:
        """Whether every expectation was met; `True` if the scenario has no expectations."""
        return self._native.all_expectations_met

    @property
    def manifest(self) -> dict[str, Any] | None:
        """The manifest with version, command and parameters of the run; `None` if the run is in memory only."""
        text = self._native.manifest_json()
        return None if text is None else json.loads(text)

    def to_dict(self) -> dict[str, Any]:
        """All metrics of all runs, with the keys of a run folder's `summary.json`."""
        summary: dict[str, Any] = json.loads(self._native.json())
        return summary

    def ratio(self, scheme: str, reference: str, metric: str = "throughput_mbps", *, flow: str | None = None) -> Ratio:
        """The ratio of `scheme` to `reference` in a metric, over pairs of runs of the same scenario and seed.

        The flow is the first that runs the scheme, or the one with the label `flow`. Fewer than five pairs have no
        interval. Raises `ValueError` for an unknown scheme, metric or flow, and if no pair has both values.
        """
        return ratio_of(self.summary, scheme, reference, metric, flow, condition=("scenario", "seed"))

    def figure_data(self) -> dict[str, Any]:
        """The data of the figures of `report.html`: all curves and points, colours and markers.

        `airpace.plots` draws this data. All tables are needed; a `ValueError` names the table that is missing.
        """
        if self._figure_data is None:
            self._figure_data = json.loads(self._native.figures_json([]))
        return self._figure_data

    def page(self, figures: str | Iterable[str] = ()) -> str:
        """The HTML of `report.html`, or of a page with these figures only: `throughput-delay`, `course` and others.

        All tables are needed. The page needs no other file.
        """
        return _airpace.page(self._native.figures_json(names_of("figures", figures, "ids of airpace.figures()")))

    def show(self, figures: str | Iterable[str] = ("throughput-delay", "course")) -> Any:  # noqa: ANN401 - anywidget is optional
        """Shows figures of the report in a notebook, like `airpace.widget(run, figures)`."""
        from airpace._widget import widget

        return widget(self, figures)

    def __repr__(self) -> str:
        """Names the scenarios and schemes."""
        return repr(self._native)


def open(path: str | os.PathLike[str]) -> Run:  # noqa: A001 - as in `gzip.open`
    """Opens a run folder, written by `airpace sim`, `airpace emu` or `simulate(out=…)`.

    Raises `OSError` if the folder is no run folder or this version cannot read it, and `FileNotFoundError` if the
    folder does not exist. Warns if the runs were stopped early: the completed runs are available.
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
