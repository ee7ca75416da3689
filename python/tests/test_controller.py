"""Congestion controls written in Python."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpace

EXAMPLE = Path(__file__).resolve().parents[1] / "examples/aimd.py"


def load(path: Path) -> Any:
    """Loads an example as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Aimd: type[airpace.Controller] = load(EXAMPLE).Aimd


class Fixed(airpace.Controller):
    """Keeps a constant rate."""

    def on_ack(self, ack: airpace.Ack) -> None: ...

    def on_loss(self, loss: airpace.Loss) -> None: ...

    def control(self) -> airpace.Control:
        return airpace.Control(1e9, 8.0)


def test_the_example_is_short_and_shares_a_cell_with_built_in_schemes() -> None:
    lines = EXAMPLE.read_text().split("if __name__")[0].strip().splitlines()
    assert len(lines) <= 30, "the example fits in 30 lines"
    run = airpace.simulate("stationary-idle", schemes=[Aimd, "reno"], set={"duration_s": 10})
    summary = run.summary
    assert list(summary["scheme"]) == ["Aimd", "reno"]
    mine, reno = summary["throughput_mbps"]
    assert 15 < mine < reno, "it is Reno without slow start"


def test_it_runs_beside_others_in_one_cell() -> None:
    scenario: dict[str, Any] = {"duration_s": 10, "flow.1.scheme": "cubic"}
    run = airpace.simulate("two-flows", schemes=Aimd, set=scenario)
    assert list(run.summary["flow_scheme"]) == ["Aimd", "cubic"]
    assert (run.summary["throughput_mbps"] > 0.1).all(), "both move data"


def test_the_same_seed_gives_the_same_rows() -> None:
    frames = [
        pl.DataFrame(airpace.simulate("mobility", schemes=Aimd, seeds=7, set={"duration_s": 3}).packets)
        for _ in range(2)
    ]
    assert frames[0].equals(frames[1])


def test_the_pacer_obeys_its_rate() -> None:
    run = airpace.simulate("stationary-idle", schemes=Fixed, set={"duration_s": 5})
    assert run.summary["throughput_mbps"][0] == pytest.approx(8.0, rel=0.02)


def test_what_it_is_told_adds_up() -> None:
    seen: dict[str, Any] = {"acked": 0, "sent": 0, "lost": 0, "timers": [], "seeds": set()}

    class Listening(Aimd):  # type: ignore[misc, valid-type]
        """Records the events that it receives."""

        def __init__(self, setup: airpace.Setup) -> None:
            super().__init__(setup)
            seen["seeds"].add(setup.seed)
            seen.update(acked=0, sent=0, lost=0, timers=[])
            self.due: float | None = 100.0

        def on_ack(self, ack: airpace.Ack) -> None:
            super().on_ack(ack)
            seen["acked"] += ack.acked_bytes
            assert ack.delivered_bytes >= seen["acked"] - seen["lost"]
            assert ack.packets >= 1
            assert ack.min_rtt_ms <= ack.smoothed_rtt_ms or ack.rtt_ms is not None

        def on_loss(self, loss: airpace.Loss) -> None:
            super().on_loss(loss)
            seen["lost"] += loss.lost_bytes

        def on_sent(self, sent: airpace.Sent) -> None:
            seen["sent"] += sent.bytes

        def on_timer(self, now_ms: float) -> None:
            seen["timers"].append(now_ms)
            self.due = now_ms + 500.0 if len(seen["timers"]) < 4 else None

        def next_timer(self) -> float | None:
            return self.due

        def inspect(self) -> dict[str, float]:
            return {"window_packets": self.cwnd / self.setup.mss_bytes}

        def state(self) -> str:
            return "Listening"

    run = airpace.simulate("stationary-idle", schemes=Listening, set={"duration_s": 5})
    assert seen["sent"] >= seen["acked"] > 1e6
    assert len(seen["timers"]) == 4
    assert seen["timers"][1] == pytest.approx(seen["timers"][0] + 500.0, abs=1.0)
    controller = pl.DataFrame(run.controller)
    assert controller["state"].unique().to_list() == ["Listening"]
    windows = controller.select(pl.col("window_packets") - pl.col("cwnd_bytes") / 1500).drop_nulls()
    assert (windows.to_series().abs() < 1.0).all(), "what it shows is what it does"


def test_what_it_raises_reaches_the_caller() -> None:
    class Broken(Aimd):  # type: ignore[misc, valid-type]
        """Fails after a while."""

        def on_ack(self, ack: airpace.Ack) -> None:
            super().on_ack(ack)
            if ack.now_ms > 500:
                raise ZeroDivisionError("as planned")

    with pytest.raises(ZeroDivisionError, match="as planned") as raised:
        airpace.simulate("stationary-idle", schemes=[Broken, "cubic"], set={"duration_s": 1000}, tables=())
    assert any(frame.name == "on_ack" for frame in raised.traceback), "the traceback shows where"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((1e5, 0.0), "more than 0"),
        ((1e5, float("nan")), "more than 0"),
        ((float("nan"), None), "a window of NaN"),
        ((-1.0, None), "at least 0"),
        (17, "two numbers"),
    ],
)
def test_impossible_answers_are_refused(answer: Any, says: str) -> None:
    class Odd(Fixed):
        """Returns an invalid answer."""

        def control(self) -> airpace.Control:
            wrong: airpace.Control = answer
            return wrong

    with pytest.raises(ValueError, match=says):
        airpace.simulate("stationary-idle", schemes=Odd, set={"duration_s": 1})


@pytest.mark.parametrize(
    ("method", "answer", "says"),
    [
        ("inspect", {"time_ms": 1.0}, "inspect.. names a value `time_ms`"),
        ("inspect", {"cwnd_bytes": 1.0}, "inspect.. names a value `cwnd_bytes`"),
        ("inspect", {"scheme": 1.0}, "inspect.. names a value `scheme`"),
        ("inspect", {"": 1.0}, "inspect.. names a value ``"),
        ("inspect", None, "inspect.. returned None; give a dict"),
        ("inspect", [("rate_mbps", 1.0)], "inspect.. returned .*; give a dict"),
        ("inspect", {"rate_mbps": "fast"}, "inspect.. returned .*'fast'.*; give a dict"),
        ("inspect", {5: 1.0}, "inspect.. returned {5: 1.0}; give a dict"),
        ("state", None, "state.. returned None; give a word"),
        ("state", 5, "state.. returned 5; give a word"),
        ("next_timer", "soon", "next_timer.. returned 'soon'; give a time"),
        ("next_timer", float("nan"), "next_timer.. returned nan; give a time"),
    ],
)
def test_what_tables_and_timers_cannot_be_is_refused(method: str, answer: Any, says: str) -> None:
    odd = type("Odd", (Fixed,), {method: lambda self: answer})
    with pytest.raises(ValueError, match=says):
        airpace.simulate("stationary-idle", schemes=odd, set={"duration_s": 1})


def test_a_controller_without_its_methods_says_which() -> None:
    class Empty(airpace.Controller):
        """Overrides no method."""

    with pytest.raises(NotImplementedError, match="Empty has no control"):
        airpace.simulate("stationary-idle", schemes=Empty, set={"duration_s": 1})


def test_functions_make_controllers_with_options() -> None:
    class Paced(Fixed):
        """Keeps the given rate."""

        def __init__(self, setup: airpace.Setup, mbps: float) -> None:
            super().__init__(setup)
            self.mbps = mbps

        def control(self) -> airpace.Control:
            return airpace.Control(1e9, self.mbps)

    pairs = [(f"paced-{mbps}", lambda setup, mbps=mbps: Paced(setup, mbps)) for mbps in (2, 4)]
    run = airpace.simulate("stationary-idle", schemes=pairs, set={"duration_s": 4})
    assert run.summary["throughput_mbps"].tolist() == pytest.approx([2, 4], rel=0.05)


@pytest.mark.parametrize("name", ["pbe", "all", "", "a:b", "a@b"])
def test_names_that_would_be_mistaken_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be called"):
        airpace.simulate("stationary-idle", schemes=[(name, Aimd)], set={"duration_s": 1})


def test_what_is_no_controller_is_refused() -> None:
    with pytest.raises(ValueError, match="is no scheme"):
        airpace.simulate("stationary-idle", schemes=[int])  # type: ignore[list-item]
    setup: Any = None
    with pytest.raises(ValueError, match="is made already, and every flow needs its own: give its class"):
        airpace.simulate("stationary-idle", schemes=Fixed(setup))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="which is no Controller"):
        airpace.simulate("stationary-idle", schemes=[("odd", lambda setup: 5)])  # type: ignore[list-item, return-value]


def test_a_run_folder_names_the_call_that_makes_it_again(tmp_path: Path) -> None:
    run = airpace.simulate("stationary-idle", schemes=Aimd, set={"duration_s": 1}, out=tmp_path / "run")
    assert run.manifest is not None
    assert run.manifest["command"].startswith("airpace.simulate('stationary-idle', schemes=['Aimd']")
    assert (tmp_path / "run/report.html").exists()


ENDLESS = """
import os, signal, sys, threading, time
import airpace

seen = []

class Busy(airpace.Controller):
    def on_loss(self, loss): ...
    def control(self): return airpace.Control(1e5)
    def on_ack(self, ack):
        seen.append(ack.now_ms)
        if len(seen) == 1:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        WORK

try:
    airpace.simulate("stationary-idle", schemes=Busy, jobs=JOBS, seeds=range(2), progress=False)
except KeyboardInterrupt as stopped:
    import traceback
    print("stopped in", traceback.extract_tb(stopped.__traceback__)[-1].name, "after", len(seen))
"""


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("work", ["while True: pass", "time.sleep(0.15)"])
def test_an_interrupt_stops_a_controller_at_once(work: str, jobs: int) -> None:
    script = ENDLESS.replace("WORK", work).replace("JOBS", str(jobs))
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("stopped in on_ack after ")
    assert int(ended.stdout.split()[-1]) <= 4 * jobs, "nothing more is played"


def test_an_interrupt_that_is_caught_can_be_repeated() -> None:
    work = """
        try:
            while True: time.sleep(0.01)
        except KeyboardInterrupt:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            while True: pass"""
    script = ENDLESS.replace("WORK", work).replace("JOBS", "1")
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ended.stdout == "stopped in on_ack after 1\n", ended.stderr


@pytest.mark.parametrize("told", [airpace.Ack, airpace.Loss, airpace.Sent, airpace.Setup])
def test_what_it_is_told_is_documented(told: type) -> None:
    fields = {name: getattr(told, name).__doc__ for name in dir(told) if not name.startswith("_")}
    assert len(fields) >= 2
    for name, text in fields.items():
        assert text, f"{told.__name__}.{name}"
        assert "in ms" in text or not name.endswith("_ms")
    if told is airpace.Ack:
        assert "`None`" in fields["rtt_ms"]
        assert "`None`" in fields["delivery_rate_mbps"]


def test_a_pair_of_a_name_and_a_class_is_one_scheme_unless_the_name_is_a_schemes() -> None:
    def names(schemes: Any) -> list[str]:
        run = airpace.simulate("stationary-idle", schemes=schemes, set={"duration_s": 0.3}, tables=())
        return list(run.summary["scheme"])

    assert names(("a", Fixed)) == ["a"]
    assert names([("a", Fixed), ("b", Fixed)]) == ["a", "b"]
    assert names(("reno", Fixed)) == ["reno", "Fixed"]
    assert names(("pbe@paper", Fixed)) == ["pbe@paper", "Fixed"]


def test_a_controller_is_made_once_for_each_flow_and_once_for_its_names() -> None:
    made: list[int] = []

    class Counting(Fixed):
        def __init__(self, setup: airpace.Setup) -> None:
            super().__init__(setup)
            made.append(setup.seed)

    airpace.simulate("two-flows", schemes=Counting, seeds=[1, 2, 3], set={"duration_s": 0.3}, tables=())
    assert len(made) == 1 + 2 * 3
