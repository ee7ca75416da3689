"""Logs of modems to KPIs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from airpace import _airpace
from airpace._airpace import Table
from airpace._arguments import names_of, path_of, whole


def diag(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    kpis: str | Iterable[str] = "all",
    radio: int = 1,
) -> Table:
    """The KPIs in a log of a Qualcomm modem's diagnostic port: a row per sample.

    Columns are `time_utc`, `kpi`, `value`, `unit`, `radio`, `carrier` and `subframe`, as in
    `airpace diag decode --kpi … --parquet`.

    Args:
        path: A log (.qmdl, .qmdl2, .mi2log, .dlf, or the stream as it came; also compressed by gzip or zstd), or
            several that are read as one, in their order.
        kpis: Names of `kpis()`, fields like `0xB173:records.num_rbs`, or `all`.
        radio: The radio of names without one: 1 is the first SIM's, 2 the second's.

    Raises:
        OSError: A file that cannot be read.
        ValueError: A KPI that does not exist, or a file that is no log.

    Warns:
        UserWarning: Packets or stretches that could not be read, with their number; and KPIs that were named, but that
            the versions of these packets do not have.
    """
    of = whole("radio", radio, 1, 255, "1 for the first SIM's, 2 for the second's")
    names = names_of("kpis", kpis, "names of airpace.kpis(), or 'all'")
    table, unread = _airpace.diag(_paths(path), kpis=names, radio=of)
    if unread:
        warnings.warn("; ".join(unread), stacklevel=2)
    return table


def bandwidth(path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], *, every_ms: int = 100) -> Table:
    """The bandwidth that the network granted a phone, by its modem's log, in BISCAY's two ways (§3.2.2).

    A row per window, radio and direction: `time_ms` (from the log's first packet), `radio`, `direction`, `blocks_mbps`
    (the sizes of the transport blocks that were granted anew, which is what BISCAY follows), `granted_mbps` (the bytes
    that the MAC layer was granted) and `prbs`. `airpace diag bandwidth` determines the same.

    Args:
        path: A log, or several that are read as one, as for `diag`.
        every_ms: How long a window is, 1 to 3600000; 1 gives each TTI its own.

    Raises:
        OSError: A file that cannot be read.
        ValueError: A file that is no log.

    Warns:
        UserWarning: Packets or stretches that could not be read, with their number.
    """
    every = whole("every_ms", every_ms, 1, 3_600_000)
    table, unread = _airpace.bandwidth(_paths(path), every_ms=every)
    if unread:
        warnings.warn("; ".join(unread), stacklevel=2)
    return table


def _paths(path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Path]:
    # The contents of a log are bytes, and are refused as a whole.
    is_one = isinstance(path, str | bytes | bytearray | memoryview | os.PathLike) or not isinstance(path, Iterable)
    several: list[Any] = [path] if is_one else [*path]  # type: ignore[misc]
    if not several:
        raise ValueError("path=[]: give a modem's log, or several")
    return [Path(path_of("path", it)) for it in several]


def kpis() -> dict[str, str]:
    """The KPIs that there are, and what each means, with its unit."""
    return {name: f"{about} [{unit}]" if unit else about for name, unit, about in _airpace.kpis()}
