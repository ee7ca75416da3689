"""Trained policies as schemes, and a short run of the training example."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import airpace
from airpace.gym import CongestionEnv

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def policy_of(seen: list[npt.NDArray[np.float32]]) -> Any:
    """A policy that records its observations."""

    def policy(now: npt.NDArray[np.float32]) -> float:
        seen.append(now.copy())
        return float(0.9 * now[0] + 3.0)

    return policy


@pytest.mark.parametrize("scenario", ["stationary-busy", "biscay-uplink"])
def test_an_agent_sees_as_a_scheme_what_it_sees_in_the_environment(scenario: str) -> None:
    there: list[npt.NDArray[np.float32]] = []
    here: list[npt.NDArray[np.float32]] = []
    short: dict[str, Any] = {"duration_s": 3}
    env, policy = CongestionEnv(scenario, set=short), policy_of(there)
    seen, _ = env.reset(seed=4)
    over = False
    while not over:
        seen, _, _, over, _ = env.step(np.array([policy(seen)], dtype=np.float64))
    agent = ("agent-1", lambda _: airpace.Agent(policy_of(here)))
    run = airpace.simulate(scenario, schemes=[agent], seeds=4, set=short)
    assert len(here) >= len(there) > 50
    assert np.array(here[: len(there)]).tolist() == np.array(there).tolist()
    assert set(run.controller["state"]) == {"Steered"}


def test_a_policy_may_return_the_environment_s_own_shape() -> None:
    def run(policy: Any) -> Any:
        agent = ("a", lambda _: airpace.Agent(policy))
        return airpace.simulate("stationary-idle", schemes=[agent], set={"duration_s": 1})

    one, array = run(lambda seen: 5.0), run(lambda seen: np.array([5.0], dtype=np.float32))
    assert list(one.summary["throughput_mbps"]) == list(array.summary["throughput_mbps"])


def test_what_a_policy_raises_reaches_the_caller() -> None:
    def confused(seen: npt.NDArray[np.float32]) -> float:
        raise LookupError("lost my way")

    with pytest.raises(LookupError, match="lost my way"):
        airpace.simulate("stationary-idle", schemes=[("a", lambda _: airpace.Agent(confused))], set={"duration_s": 1})
    nothing: Any = lambda seen: None  # noqa: E731
    with pytest.raises(ValueError, match="the policy returned None; give a number"):
        airpace.simulate("stationary-idle", schemes=[("a", lambda _: airpace.Agent(nothing))], set={"duration_s": 1})
    nan = ("a", lambda _: airpace.Agent(lambda seen: float("nan")))
    with pytest.raises(ValueError, match="NaN"):
        airpace.simulate("stationary-idle", schemes=[nan], set={"duration_s": 1})
    with pytest.raises(ValueError, match="'rate' or 'window'"):
        airpace.Agent(confused, action="speed")


def test_training_beats_aimd_on_seeds_that_it_did_not_see(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example: Any = importlib.import_module("train")
    parameters = example.train("stationary-busy", generations=10, population=12, seconds=4.0, tell=False)
    rows = example.compare(parameters, "stationary-busy", range(1001, 1004), {"duration_s": 10}).summary
    worth = {}
    for scheme in dict.fromkeys(rows["scheme"]):
        mine = rows["scheme"] == scheme
        worth[scheme] = float((rows["throughput_mbps"] - 0.1 * rows["queueing_delay_ms.p95"])[mine].mean())
    sys.modules.pop("train", None)
    assert worth["learned"] > worth["Aimd"]
