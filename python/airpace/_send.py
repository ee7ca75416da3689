"""Files to another machine, with a congestion control of choice."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from airpace import _airpace
from airpace._arguments import number, path_of, switch, teller_of
from airpace._progress import Bar
from airpace._simulate import Progress


def send(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    host: str,
    *,
    key: str | os.PathLike[str],
    scheme: str = "pbe",
    transport: str = "quic",
    patience: float = 60.0,
    realtime: bool = False,
    progress: bool | Progress | None = None,
) -> dict[str, Any]:
    """Sends files to `airpace recv` on another machine. An interrupted transfer goes on where it stopped.

    Args:
        files: The files.
        host: The machine, as `HOST` or `HOST:PORT`.
        key: The key that `airpace recv` printed, as text; or the path of a file with the key, as a `pathlib.Path`.
        scheme: The scheme of the sender, with preset and options.
        transport: `"quic"` or `"udp"`.
        patience: Time without an answer after which the transfer fails, in seconds.
        realtime: Whether to request real-time priority.
        progress: Whether to show the progress, or a function that receives the share of the bytes, the number of
            stored files, and the number of files; default: show it on a terminal.

    Returns:
        Counts, rate and figures of the transport, with the names of `airpace send --json`.

    Raises:
        ValueError: An invalid argument or key.
        RuntimeError: A file that cannot be sent, a machine that does not answer, or a transfer that failed.
        KeyboardInterrupt: Ctrl-C.
    """
    several = [files] if isinstance(files, str | os.PathLike) else list(files)
    if not several:
        raise ValueError("files=[]: name a file")
    is_text = isinstance(key, str)
    tell = teller_of(progress, "files")
    try:
        text = _airpace.send(
            [Path(path_of("files", file)) for file in several],
            host,
            key=str(key) if is_text else None,
            key_file=None if is_text else Path(path_of("key", key)),
            scheme=scheme,
            transport=transport,
            patience_s=number("patience", patience, "a number of seconds"),
            realtime=switch("realtime", realtime),
            progress=tell,
        )
    finally:
        if isinstance(tell, Bar):
            tell.close()
    done: dict[str, Any] = json.loads(text)
    return {**done, "scheme": scheme, "transport": transport}
