"""Simulated runs of schemes in scenarios."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, SupportsIndex, TypeAlias

from airpace import _airpace
from airpace._airpace import Setup
from airpace._arguments import jobs_of, names_of, path_of, scenario_of, seeds_of, sets_given, switch, teller_of
from airpace._controller import Agent, Controller
from airpace._progress import Bar
from airpace._run import Run

#: A value to which a key of a scenario can be set.
Value: TypeAlias = "bool | int | float | str | os.PathLike[str] | list[Any] | Mapping[str, Any]"

#: Receives the progress: completed share (0 to 1), number of completed runs, and number of all runs.
Progress: TypeAlias = "Callable[[float, int, int], object]"

#: A scheme for `simulate`: its name, a class of controllers, or a pair of a name and a function that makes controllers.
Scheme: TypeAlias = "str | type[Controller] | tuple[str, Callable[[Setup], Controller | Agent]]"

#: The tables of a simulated run.
TABLES = ("packets", "acks", "losses", "controller", "prbs", "capacity")


def simulate(
    scenario: str | os.PathLike[str],
    *,
    schemes: Scheme | Iterable[Scheme] | None = (),
    seeds: SupportsIndex | Iterable[SupportsIndex] = 1,
    set: Mapping[str, Value] | None = None,  # noqa: A002 - as `--set` of the program
    jobs: SupportsIndex | None = None,
    tables: str | Iterable[str] = TABLES,
    out: str | os.PathLike[str] | None = None,
    qlog: bool = False,
    progress: bool | Progress | None = None,
) -> Run:
    """Runs schemes in a scenario on a virtual clock. The results are those of `airpace sim`, bit for bit.

    Args:
        scenario: A name of `scenarios()`, or a TOML file. If the file has `[[variant]]` tables, all variants run.
        schemes: The schemes under test, as in `airpace sim --scheme`: `"pbe"`, `"pbe@paper"`, `"all"`; default: the
            schemes that the scenario names. A subclass of `Controller` is a scheme with the name of the class. A pair
            of a name and a function that makes controllers, or agents (`Agent`), is a scheme too.
        seeds: Seeds of the random numbers. With several seeds, results have standard deviations.
        set: Keys of the scenario by their dotted paths, and their values: `{"cell.prbs": 50}`. Text is parsed as TOML
            if it is valid TOML, as after `--set`.
        jobs: Number of parallel runs, at most 1024; default: one per core, or one if a controller is written in
            Python, because only one controller in Python runs at a time. Results do not depend on `jobs`.
        tables: The tables to keep in memory, of `packets`, `acks`, `losses`, `controller`, `prbs` and `capacity`.
            With `()`, only the metrics are kept, which takes little memory.
        out: Writes a run folder with all tables and the page `report.html`, instead of keeping tables in memory. An
            earlier run in the folder is replaced.
        qlog: Also writes a qlog of each flow; needs `out`.
        progress: Whether to show the progress, or a function that receives it; default: show it on a terminal.

    Raises:
        ValueError: A scenario, scheme, key or table that does not exist or is invalid here.
        OSError: A file that cannot be read, or a folder that cannot be written.
        RuntimeError: A failed run. An exception of a controller in Python is raised unchanged.
        KeyboardInterrupt: Ctrl-C. The runs are stopped.
    """
    with_qlog = switch("qlog", qlog)
    if with_qlog and out is None:
        raise ValueError("qlogs are files: say where with out=FOLDER")
    named = _schemes(schemes)
    numbers = seeds_of(seeds)
    what = scenario_of("scenario", scenario)
    folder = None if out is None else path_of("out", out)
    kept = names_of("tables", tables, f"names of {', '.join(TABLES)}")
    workers = jobs_of(jobs)
    sets = sets_of(set)
    tell = teller_of(progress)
    try:
        native = _airpace.simulate(
            what,
            schemes=named,
            seeds=list(dict.fromkeys(numbers)),
            set=sets,
            jobs=workers,
            tables=[] if out is not None else kept,
            out=None if folder is None else Path(folder),
            qlog=with_qlog,
            command=_command(what, [name for name, _ in named], numbers, set, folder),
            progress=tell,
        )
    except ValueError as error:
        # The error names the key that cannot be a list; `sweep` accepts lists.
        if "wrong type: a list" in str(error):
            raise ValueError(f"{error}; several values of a key are for airpace.sweep") from None
        raise
    finally:
        if isinstance(tell, Bar):
            tell.close()
    return Run(native)


def scenarios() -> dict[str, str]:
    """Names of the scenarios that come with airpace, with a description of each."""
    return dict(_airpace.scenarios())


def schemes() -> dict[str, str]:
    """Names of the schemes, with a description of each."""
    return dict(_airpace.schemes())


def _schemes(schemes: Scheme | Iterable[Scheme] | None) -> list[tuple[str, Callable[[Setup], object] | None]]:
    """Names of schemes, with the function that makes controllers for schemes written in Python."""
    is_pair = isinstance(schemes, tuple) and len(schemes) == 2 and callable(schemes[1]) and isinstance(schemes[0], str)
    # `("pbe", Mine)` are two schemes; `("mine", Mine)` is one scheme with its name.
    is_two = is_pair and isinstance(schemes[1], type) and _is_listed(schemes[0])  # type: ignore[index]
    one_or_more: Any = (
        [schemes] if (is_pair and not is_two) or isinstance(schemes, str | type) else () if schemes is None else schemes
    )
    if isinstance(schemes, Controller | Agent):
        raise ValueError(
            f"{schemes!r} is made already, and every flow needs its own: give its class, or (name, function)"
        )
    if not isinstance(one_or_more, Iterable) or isinstance(one_or_more, bytes | Mapping):
        raise ValueError(f"schemes={schemes!r}: give names of airpace.schemes(), or subclasses of Controller")
    named: list[tuple[str, Callable[[Setup], object] | None]] = []
    for scheme in one_or_more:
        if isinstance(scheme, str):
            named.append((scheme, None))
        elif isinstance(scheme, type) and issubclass(scheme, Controller):
            named.append((scheme.__name__, scheme))
        elif isinstance(scheme, tuple) and len(scheme) == 2 and callable(scheme[1]):
            named.append((str(scheme[0]), _checked(scheme[1])))
        else:
            raise ValueError(f"{scheme!r} is no scheme; give a name, a subclass of Controller, or (name, function)")
    return named


def _is_listed(text: str) -> bool:
    """Whether a text names built-in schemes, with or without presets and options."""
    return re.split(r"[@:+,]", text, maxsplit=1)[0] in {*schemes(), "all", "presets"}


def _checked(make: Callable[[Setup], Controller | Agent]) -> Callable[[Setup], Controller | Agent]:
    """Wraps a function, and checks that it returns a controller or an agent."""

    def checked(setup: Setup) -> Controller | Agent:
        made = make(setup)
        if not isinstance(made, Controller | Agent):
            raise ValueError(
                f"{make!r} made {made!r}, which is no Controller: derive its class from airpace.Controller, "
                "or return airpace.Agent(policy)"
            )
        return made

    return checked


def sets_of(values: Mapping[str, Value] | None) -> list[tuple[str, str]]:
    """Keys and their values in the form of `--set`."""
    return [(key, toml(key, value)) for key, value in sets_given(values, '{"cell.prbs": 50}').items()]


def toml(key: str, value: Value) -> str:
    """A value in the form of `--set`. Text stays unchanged: `--set` reads it as TOML, or else as plain text."""
    if isinstance(value, str):
        return value
    return _inline(key, value)


def _inline(key: str, value: object) -> str:
    """A value as inline TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | os.PathLike):
        return json.dumps(os.fspath(value), ensure_ascii=False)
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(name)} = {_inline(key, part)}" for name, part in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_inline(key, part) for part in value) + "]"
    if hasattr(value, "tolist"):
        return _inline(key, value.tolist())
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{key}={value}: give a whole number of at most 64 bits")
    if isinstance(value, int | float):
        return repr(value)
    kind = type(value).__name__
    raise ValueError(f"{key} cannot be set to a {kind}; give a bool, number, text, path, list or dict")


def _command(
    scenario: str,
    schemes: list[str],
    seeds: list[int],
    sets: Mapping[str, Value] | None,
    out: str | None,
) -> str:
    """The text of the call, for the manifest of a run folder."""
    words = [repr(scenario), f"schemes={schemes!r}", f"seeds={seeds!r}"]
    if sets:
        words.append(f"set={dict(sets)!r}")
    if out is not None:
        words.append(f"out={out!r}")
    return f"airpace.simulate({', '.join(words)})"
