"""Experiments in real time: programs on an emulated network, and comparisons with real time and real transports."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsIndex

from airpace import _airpace
from airpace._arguments import names_of, number, path_of, scenario_of, seed_of, switch, teller_of, whole
from airpace._progress import Bar
from airpace._run import Run
from airpace._simulate import Progress, Value, sets_of

#: Maximum number of devices of an emulated network.
MAX_DEVICES = 31

#: Maximum number of further runs of the simulator in `agree`, and of repetitions of an unfit run.
MAX_RUNS = 1000


@dataclass(frozen=True)
class Emulated:
    """Result of `emulate`.

    Attributes:
        run: The run folder: tables `departures`, `prbs` and `capacity`, metrics per connection, the page.
        status: Exit status of the program or, if it is 0, of another program that failed. `None` if it was stopped.
        fit: Whether the figures may be used. They may not if the machine did not keep up with real time.
        unfit_because: The reasons, as sentences.
        messages: Warnings about the machine, and programs that failed.
    """

    run: Run
    status: int | None
    fit: bool
    unfit_because: list[str]
    messages: list[str]


@dataclass(frozen=True)
class Agreed:
    """Result of `agree_emulator`.

    Attributes:
        run: The run folder, with `agreement.parquet` and the page.
        agrees: Whether the machine kept up, and real and virtual time agree.
        unfit_because: The reasons why the comparison supports no conclusion; empty if it is valid.
        agreement: All figures of the comparison, in the form of `agreement.json`.
    """

    run: Run
    agrees: bool
    unfit_because: list[str]
    agreement: dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """Result of `agree`.

    Attributes:
        run: The run folder: the runs over transports beside those of the simulator, and the page.
        rows: A row per flow and transport, in the form of `airpace agree --json`. Its `verdict` is `agrees`,
            `in_spread`, `differs` or `unfit`.
    """

    run: Run
    rows: list[dict[str, Any]]


def emulate(
    scenario: str | os.PathLike[str],
    command: str | Iterable[str],
    *,
    out: str | os.PathLike[str],
    set: Mapping[str, Value] | None = None,  # noqa: A002 - as `--set` of the program
    seed: SupportsIndex = 1,
    servers: str | Iterable[str] = (),
    on: Mapping[int, str] | None = None,
    device: SupportsIndex = 1,
    isolated: bool | None = None,
    seconds: float | None = None,
    reports: str | os.PathLike[str] | None = None,
    od: str | os.PathLike[str] | None = None,
) -> Emulated:
    """Runs unmodified programs over the emulated network of a scenario, in real time and without root.

    The far end of the network has the address `$AIRPACE_BASE`. Linux only; needs network namespaces and /dev/net/tun
    (`airpace doctor --emu` shows what the machine lacks).

    Args:
        scenario: A name of `scenarios()`, or a TOML file.
        command: The program on the device: a command line for the shell, or a list of words.
        out: The run folder; an earlier run in it is replaced.
        set: Keys of the scenario by their dotted paths, and their values.
        seed: Seed of the network's random numbers.
        servers: Command lines that run at the far end until the run ends.
        on: Further command lines by device, counted from 1.
        device: The device on which the command runs, counted from 1.
        isolated: Whether the far end is a network of its own, or this machine and the networks that it reaches;
            default: a network of its own if there are servers.
        seconds: Maximum duration; programs that still run are then ended.
        reports: Sends radio reports live to Unix sockets in this folder.
        od: Publishes KPIs through libOD below this folder.

    Raises:
        ValueError: A scenario, key or device that does not exist.
        OSError: A folder that cannot be written.
        RuntimeError: The machine cannot emulate, or a program cannot be started.
        KeyboardInterrupt: Ctrl-C.
    """
    words = ["sh", "-c", command] if isinstance(command, str) else names_of("command", command, "words")
    if not words:
        raise ValueError("command=[]: name a program")
    beside = [servers] if isinstance(servers, str) else names_of("servers", servers, "command lines")
    others = [(whole("on", key, 1, MAX_DEVICES), str(line)) for key, line in (on or {}).items()]
    what = scenario_of("scenario", scenario)
    run, status, unfit_because, messages = _airpace.emulate(
        what,
        list(words),
        set=sets_of(set),
        seed=seed_of(seed),
        out=Path(path_of("out", out)),
        servers=list(beside),
        on=others,
        device=whole("device", device, 1, MAX_DEVICES),
        isolated=bool(beside) if isolated is None else switch("isolated", isolated),
        seconds=_seconds(seconds),
        reports=None if reports is None else Path(path_of("reports", reports)),
        od=None if od is None else Path(path_of("od", od)),
        typed=f"airpace.emulate({what!r}, {shlex.join(words)!r})",
        python=sys.executable,
        module=_module(),
    )
    return Emulated(Run(run), status, not unfit_because, unfit_because, messages)


def agree_emulator(
    scenario: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    set: Mapping[str, Value] | None = None,  # noqa: A002 - as `--set` of the program
    seed: SupportsIndex = 1,
    schedule: str | os.PathLike[str] = "mixed",
    seconds: float | None = None,
    device: SupportsIndex | None = None,
) -> Agreed:
    """Compares the emulator with the simulator, packet by packet, as `airpace emu agree` does.

    Args:
        scenario: A name of `scenarios()`, or a TOML file.
        out: The run folder; an earlier run in it is replaced.
        set: Keys of the scenario by their dotted paths, and their values.
        seed: Seed of the network and of a drawn schedule.
        schedule: `"mixed"`, `"even"`, a table of `ms,bytes,direction`, or the folder of an emulated run.
        seconds: Duration of the schedule; default: 10, or all packets of a file or run.
        device: Sends only packets of this device, counted from 1; default: all devices.

    Raises:
        ValueError: A scenario, key, schedule or device that does not exist or is invalid.
        OSError: A folder that cannot be written.
        RuntimeError: The machine cannot emulate, or a program failed.
    """
    what = scenario_of("scenario", scenario)
    run, text, agrees = _airpace.agree_emulator(
        what,
        set=sets_of(set),
        seed=seed_of(seed),
        out=Path(path_of("out", out)),
        schedule=os.fspath(schedule),
        seconds=_seconds(seconds),
        device=None if device is None else whole("device", device, 1, MAX_DEVICES),
        typed=f"airpace.agree_emulator({what!r})",
        python=sys.executable,
        module=_module(),
    )
    agreement = json.loads(text)
    return Agreed(Run(run), agrees, agreement["unfit_because"], agreement)


def agree(
    scenario: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    schemes: str | Iterable[str] = (),
    transports: str | Iterable[str] = ("udp", "quic"),
    set: Mapping[str, Value] | None = None,  # noqa: A002 - as `--set` of the program
    seed: SupportsIndex = 1,
    spread: SupportsIndex = 9,
    again: SupportsIndex = 2,
    progress: bool | Progress | None = None,
) -> Comparison:
    """Runs schemes in the simulator and over real transports, and compares the results, as `airpace agree` does.

    Args:
        scenario: A name of `scenarios()`, or a TOML file.
        out: The run folder; an earlier run in it is replaced.
        schemes: Names of schemes; default: those of the scenario that the transports can carry.
        transports: `"udp"` and `"quic"`. The program `airpace agree` has the kernel's TCP as well.
        set: Keys of the scenario by their dotted paths, and their values.
        seed: Seed of the network's random numbers.
        spread: Number of further runs of the simulator, which show the differences caused by chance.
        again: Maximum number of repetitions of a run in which the machine did not keep up.
        progress: Whether to show the progress, or a function that receives it; default: show it on a terminal.

    Raises:
        ValueError: A scenario, scheme, key or transport that does not exist or cannot be compared.
        OSError: A folder that cannot be written.
        RuntimeError: The machine cannot emulate, or a program failed.
        KeyboardInterrupt: Ctrl-C.
    """
    what = scenario_of("scenario", scenario)
    named = [schemes] if isinstance(schemes, str) else names_of("schemes", schemes, "names of airpace.schemes()")
    over = [transports] if isinstance(transports, str) else names_of("transports", transports, "udp, quic")
    tell = teller_of(progress)
    try:
        run, rows = _airpace.agree(
            what,
            schemes=list(named),
            transports=list(over),
            set=sets_of(set),
            seed=seed_of(seed),
            spread=whole("spread", spread, 0, MAX_RUNS),
            again=whole("again", again, 0, MAX_RUNS),
            out=Path(path_of("out", out)),
            typed=f"airpace.agree({what!r}, schemes={list(named)!r}, transports={list(over)!r})",
            progress=tell,
            python=sys.executable,
            module=_module(),
        )
    finally:
        if isinstance(tell, Bar):
            tell.close()
    return Comparison(Run(run), json.loads(rows))


def _seconds(seconds: float | None) -> float | None:
    """Checks a duration."""
    if seconds is None:
        return None
    checked = number("seconds", seconds, "a number of seconds above 0")
    if not 0 < checked <= 86_400:
        raise ValueError(f"seconds={seconds!r}: give a number of seconds above 0, at most a day")
    return checked


def _module() -> str:
    """File of the native module, which an experiment starts again."""
    file = _airpace.__file__
    if file is None:
        raise RuntimeError("the native module of airpace has no file; install the package in the usual way")
    return file
