"""A bar that shows how far a long call is."""

from __future__ import annotations

from typing import TextIO


class Bar:
    """One line on a terminal. It appears when a call takes a while, and is gone when the call ends."""

    WIDTH = 30

    def __init__(self, stream: TextIO) -> None:
        """Shows itself on this stream."""
        self._stream = stream
        self._shown = ""

    def __call__(self, share: float, ended: int, runs: int) -> None:
        """Shows the part of the work that is done, and how many runs ended of how many."""
        full = round(share * self.WIDTH)
        line = f"{'━' * full}{'╌' * (self.WIDTH - full)} {ended} of {runs} runs"
        if line != self._shown:
            self._stream.write(f"\r\x1b[K{line}")
            self._stream.flush()
            self._shown = line

    def close(self) -> None:
        """Wipes the line."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = ""
