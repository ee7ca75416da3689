"""Cost of Python per ACK, per run, per row, and of the import. Needs a release build and an idle machine.

python python/benches/costs.py target/release/airpace
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import airpace


class Told(airpace.Controller):
    """A controller that does no work."""

    def __init__(self, setup: airpace.Setup) -> None:
        """Makes the answer for all calls."""
        super().__init__(setup)
        self.answer = airpace.Control(1e9, 40.0)

    def on_ack(self, ack: airpace.Ack) -> None:
        """Does nothing."""

    def on_loss(self, loss: airpace.Loss) -> None:
        """Does nothing."""

    def control(self) -> airpace.Control:
        """Returns the rate of the built-in scheme."""
        return self.answer


def least(times: int, of: Callable[[], float]) -> float:
    """Minimum of several measurements, which contains the least of other work on the machine."""
    return min(of() for _ in range(times))


def per_ack() -> None:
    """Measures a controller in Python that does nothing, and the built-in controller with the same constant rate."""

    def spent(scheme: str | type[airpace.Controller]) -> float:
        begin = time.process_time()
        run = airpace.simulate("stationary-idle", schemes=scheme, set={"duration_s": 20}, tables=["acks"], jobs=1)
        return (time.process_time() - begin) / len(run.acks) * 1e6

    python, rust = least(5, lambda: spent(Told)), least(5, lambda: spent("cbr:rate_mbps=40"))
    print(f"per ACK: {python:.2f} µs with a controller in Python, {rust:.2f} with one in Rust (goal: 5 more)")


def per_run(program: str) -> None:
    """Measures the same run folders from the program and from Python in turn: one run, then several on all cores."""
    for seeds in (1, 4):
        with tempfile.TemporaryDirectory() as folder:
            words = [program, "sim", "competitor", "--scheme", "pbe", "--seeds", f"1..{seeds}", "--quiet"]

            def by_program(words: list[str] = [*words, "--out", f"{folder}/a"]) -> float:  # noqa: B006 - bound in this iteration
                begin = time.perf_counter()
                subprocess.run(words, check=True, capture_output=True)
                return time.perf_counter() - begin

            def here(seeds: int = seeds, out: str = f"{folder}/b") -> float:
                begin = time.perf_counter()
                airpace.simulate("competitor", schemes="pbe", seeds=range(1, seeds + 1), out=out, progress=False)
                return time.perf_counter() - begin

            rounds = [(by_program(), here()) for _ in range(11)]
        theirs, ours = (min(times) for times in zip(*rounds, strict=True))
        median = statistics.median(mine / its for its, mine in rounds)
        print(
            f"a run folder of {seeds} runs: {theirs:.3f} s by the program, {ours:.3f} s from Python: "
            f"{100 * (ours / theirs - 1):+.1f} % (median of rounds {100 * (median - 1):+.1f} %; goal: +5 %)"
        )


def per_row() -> None:
    """Measures the transfer of ten million rows to pyarrow."""
    run = airpace.simulate("stationary-idle", schemes="cubic", set={"duration_s": 1850}, tables=["acks"])
    table = run.acks
    # pyarrow allocates about 50 MB at its first call, which are not part of the transfer.
    few = airpace.simulate("stationary-idle", schemes="cubic", set={"duration_s": 1}, tables=["acks"])
    pa.table(few.acks)
    before, begin = resident_bytes(), time.perf_counter()
    rows = pa.table(table)
    took, grown = time.perf_counter() - begin, resident_bytes() - before
    print(f"{rows.num_rows} rows of {table.nbytes / 1e6:.0f} MB: {took * 1e3:.1f} ms, {grown / 1e6:.1f} MB more memory")


def at_import() -> None:
    """Measures a new Python process with and without the import of airpace."""

    def spent(script: str) -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", script], check=True)
        return time.perf_counter() - begin

    without, with_it = least(10, lambda: spent("pass")), least(10, lambda: spent("import airpace"))
    print(f"import airpace: {with_it - without:.3f} s (goal: 0.3)")


def resident_bytes() -> int:
    """Resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    at_import()
    per_ack()
    per_run(sys.argv[1] if len(sys.argv) > 1 else "airpace")
    per_row()
