"""Checks of arguments before anything runs. Each error names the argument and its valid values."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from airpace._progress import Bar

#: Maximum seed.
MAX_SEED = 2**64 - 1

#: Maximum length of a value in an error text (characters).
MAX_SHOWN = 60

#: Maximum length of a path in characters: Linux's `PATH_MAX`.
MAX_SHARE_OF_PATH = 4096

#: Maximum number of parallel runs.
MAX_JOBS = 1024


def _index(value: object) -> int | None:
    """An integer of Python or NumPy; `None` for other values, including `True` and `False`."""
    if isinstance(value, bool):
        return None
    number: Any = value
    try:
        return operator.index(number)
    except TypeError:
        return None


def whole(name: str, value: object, least: int, most: int, hint: str = "") -> int:
    """Checks an integer and its bounds."""
    number = _index(value)
    if number is None or not least <= number <= most:
        raise ValueError(f"{name}={shown(value)}: give a whole number, {hint or f'{least} to {most}'}")
    return number


def number(name: str, value: object, hint: str = "a number") -> float:
    """Checks a number. NaN is valid; `True` and `False` are not."""
    given: Any = None if isinstance(value, bool) else value
    try:
        return float(given)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={shown(value)}: give {hint}") from None


def jobs_of(jobs: object) -> int | None:
    """Checks the number of parallel runs."""
    return None if jobs is None else whole("jobs", jobs, 1, MAX_JOBS)


def seed_of(seed: object) -> int:
    """Checks a seed."""
    found = _index(seed)
    if found is None or not 0 <= found <= MAX_SEED:
        raise ValueError(f"{seed!r} is no seed; give whole numbers from 0 to 2**64 - 1")
    return found


def seeds_of(seeds: object) -> list[int]:
    """Checks one or several seeds."""
    if _index(seeds) is not None or isinstance(seeds, str | bytes | Mapping) or not _is_iterable(seeds):
        return [seed_of(seeds)]
    several: Any = seeds
    found = [seed_of(seed) for seed in several]
    if not found:
        raise ValueError("no seed: give at least one, as seeds=1 or seeds=range(1, 6)")
    return found


def _is_iterable(value: object) -> bool:
    anything: Any = value
    try:
        iter(anything)
    except TypeError:
        return False
    return True


def names_of(name: str, value: object, hint: str) -> list[str]:
    """Checks one or several names."""
    several: Any = [value] if isinstance(value, str) else value
    if isinstance(value, bytes | Mapping) or not _is_iterable(several):
        raise ValueError(f"{name}={shown(value)}: give {hint}")
    found = list(several)
    for each in found:
        if not isinstance(each, str):
            raise ValueError(f"{name}: {each!r} is no name; give {hint}")
    return found


def sets_given(values: object, example: str) -> Mapping[str, Any]:
    """Checks the keys of a scenario; their values are not checked here."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise ValueError(f"set={values!r}: give a dict of keys and values, as set={example}")
    for key in values:
        if not isinstance(key, str):
            raise ValueError(f"set: {key!r} is no key; give its path as text, as set={example}")
    return values


def shown(value: object) -> str:
    """The text of a value for an error: cut if it is long, like the bytes of a whole file."""
    is_long = isinstance(value, str | bytes | bytearray | memoryview) and len(value) > MAX_SHOWN
    if is_long:
        several: Any = value
        return f"{bytes(several[:MAX_SHOWN])!r}…" if not isinstance(value, str) else f"{value[:MAX_SHOWN]!r}…"
    text = repr(value)
    return text if len(text) <= 4 * MAX_SHOWN else f"{text[: 4 * MAX_SHOWN]}…"


def path_of(name: str, value: object, hint: str = "a path, as text or pathlib.Path") -> str:
    """Checks a path, and returns it as text. The contents of a file are refused, and cut in the error."""
    path: Any = value
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise ValueError(f"{name}={shown(value)}: give {hint}") from None
    if len(text) > MAX_SHARE_OF_PATH or "\0" in text:
        raise ValueError(f"{name}={shown(value)}: this is no path, but looks like what a file holds; give {hint}")
    return text


def scenario_of(name: str, value: object, hint: str = "a name of airpace.scenarios(), or a TOML file") -> str:
    """Checks the name or file of a scenario. Raises `OSError` if a path with a folder or `.toml` is not readable."""
    text = path_of(name, value, hint)
    if os.path.dirname(text) or text.endswith(".toml"):
        try:
            with open(text, "rb"):
                pass
        except OSError as error:
            reason = f"cannot read the scenario ({error.strerror}); give {hint}"
            raise OSError(error.errno, reason, text) from None
    return text


def switch(name: str, value: object) -> bool:
    """Checks a boolean of Python or NumPy."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise ValueError(f"{name}={shown(value)}: give True or False")
    return bool(value)


def teller_of(progress: object, noun: str = "runs") -> Callable[[float, int, int], object] | Bar | None:
    """The receiver of the progress of a long call: a function of the caller, a bar, or `None`."""
    if callable(progress):
        return progress
    if progress is not None and not isinstance(progress, bool):
        raise ValueError(f"progress={progress!r}: give True, False, or a function of (share, ended, runs)")
    if progress or (progress is None and sys.stderr is not None and sys.stderr.isatty()):
        return Bar(sys.stderr, noun)
    return None
