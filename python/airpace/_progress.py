"""Progress bar of a long call."""

from __future__ import annotations

from typing import TextIO


class Bar:
    """A progress bar on one line of a terminal. It appears if a call takes a while, and vanishes when the call ends."""

    WIDTH = 30

    def __init__(self, stream: TextIO, noun: str = "runs") -> None:
        """Makes a bar that is written to `stream`. `noun` names the parts of the work."""
        self._stream = stream
        self._noun = noun
        self._shown = ""

    def __call__(self, share: float, ended: int, runs: int) -> None:
        """Shows the completed share of the work (0 to 1), and the numbers of completed and of all parts."""
        full = round(share * self.WIDTH)
        line = f"{'━' * full}{'╌' * (self.WIDTH - full)} {ended} of {runs} {self._noun}"
        if line != self._shown:
            self._stream.write(f"\r\x1b[K{line}")
            self._stream.flush()
            self._shown = line

    def close(self) -> None:
        """Clears the line."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = ""
