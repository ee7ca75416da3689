"""KPIs and granted bandwidth from logs of modems."""

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
    """Reads the KPIs in a log of a Qualcomm modem's diagnostic port: a row per sample.

    The columns are `time_utc`, `kpi`, `value`, `unit`, `radio`, `carrier` and `subframe`, as in
    `airpace diag decode --kpi … --parquet`.

    Args:
        path: A log (.qmdl, .qmdl2, .mi2log, .dlf, or the raw stream of the port; also compressed by gzip or zstd), or
            several logs that are read as one, in their order.
        kpis: Names of `kpis()`, fields like `0xB173:records.num_rbs`, or `all`.
        radio: The radio of KPI names that contain none: 1 for the first SIM, 2 for the second.

    Raises:
        OSError: A file that cannot be read.
        ValueError: A KPI that does not exist, or a file that is no log.

    Warns:
        UserWarning: Packets or stretches that could not be read, with their number; and KPIs in `kpis` that the
            versions of these packets do not contain.
    """
    of = whole("radio", radio, 1, 255, "1 for the first SIM's, 2 for the second's")
    names = names_of("kpis", kpis, "names of airpace.kpis(), or 'all'")
    table, unread = _airpace.diag(_paths(path), kpis=names, radio=of)
    if unread:
        warnings.warn("; ".join(unread), stacklevel=2)
    return table


def bandwidth(path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], *, every_ms: int = 100) -> Table:
    """Computes the bandwidth that the network granted a phone, from its modem's log, in BISCAY's two ways (§3.2.2).

    The table has a row per window, radio and direction: `time_ms` (from the log's first packet), `radio`, `direction`,
    `blocks_mbps` (the sizes of new transport blocks, without retransmissions, which BISCAY uses as its rate),
    `granted_mbps` (the bytes granted to the MAC layer) and `prbs`. `airpace diag bandwidth` computes the same values.

    Args:
        path: One or several logs, as for `diag`.
        every_ms: Length of a window in ms, 1 to 3600000; with 1, each TTI has its own window.

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
    # Bytes are the contents of a log rather than a path, and `path_of` refuses them.
    is_one = isinstance(path, str | bytes | bytearray | memoryview | os.PathLike) or not isinstance(path, Iterable)
    several: list[Any] = [path] if is_one else [*path]  # type: ignore[misc]
    if not several:
        raise ValueError("path=[]: give a modem's log, or several")
    return [Path(path_of("path", it)) for it in several]


def kpis() -> dict[str, str]:
    """Names of all available KPIs, with description and unit of each."""
    return {name: f"{about} [{unit}]" if unit else about for name, unit, about in _airpace.kpis()}
