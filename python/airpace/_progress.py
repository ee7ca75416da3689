"""Progress bar of a long call."""

from __future__ import annotations

from typing import TextIO


class Bar:
    """A progress bar on one line of a terminal. It appears if a call takes a while, and vanishes when the call ends."""

    WIDTH = 30

    def __init__(self, stream: TextIO) -> None:
        """Makes a bar that is written to `stream`."""
        self._stream = stream
        self._shown = ""

    def __call__(self, share: float, ended: int, runs: int) -> None:
        """Shows the completed share of the work (0 to 1), the number of completed runs, and the number of all runs."""
        full = round(share * self.WIDTH)
        line = f"{'━' * full}{'╌' * (self.WIDTH - full)} {ended} of {runs} runs"
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
