"""Trains a small policy that outperforms AIMD in a cell, by the cross-entropy method. Needs only NumPy and Gymnasium.

python python/examples/train.py

The policy is a network of 8 tanh units. Every 50 ms it observes the last step of its flow, and multiplies or divides
its rate by up to e^0.5. A generation is 32 policies in 32 simulators, with one call per step. The policies with the
highest rewards determine the next generation. The seeds of the final comparison are not used in training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
from aimd import Aimd

import airpace

if TYPE_CHECKING:
    from airpace.gym import CongestionVectorEnv

Floats: TypeAlias = npt.NDArray[np.float64]

#: Inputs: queueing delay, change of the delay, acknowledged rate relative to the sending rate, loss, sending rate.
INPUTS, UNITS = 5, 8
PARAMETERS = (INPUTS + 1) * UNITS + UNITS + 1


class Policy:
    """Parallel policies: row `i` of `parameters` steers flow `i`. Each policy keeps the last queueing delay."""

    def __init__(self, parameters: Floats) -> None:
        self.parameters = np.atleast_2d(parameters)
        self.last_ms = np.zeros(len(self.parameters))

    def __call__(self, seen: npt.NDArray[np.float32]) -> Floats:
        """Rates in Mbit/s from observations of shape (policies, 8)."""
        acked, _, lost, rtt_ms, min_rtt_ms, _, _, rate = np.atleast_2d(seen).astype(np.float64).T
        queueing_ms = np.maximum(rtt_ms - min_rtt_ms, 0.0)
        change_ms, self.last_ms = queueing_ms - self.last_ms, queueing_ms
        share = np.clip(acked / np.maximum(rate, 0.1), 0.0, 2.0)
        inputs = np.stack([queueing_ms / 50, change_ms / 20, share - 1, 10 * lost, np.log(np.maximum(rate, 0.1)) / 4])
        inputs = np.clip(inputs, -3.0, 3.0).T
        first, bias, second, last = np.split(self.parameters, np.cumsum([INPUTS * UNITS, UNITS, UNITS]), axis=1)
        hidden = np.tanh(np.einsum("pi,piu->pu", inputs, first.reshape(-1, INPUTS, UNITS)) + bias)
        step = np.tanh((hidden * second).sum(axis=1) + last[:, 0])
        # The base is the acknowledged rate, but at least half of the own rate: at the start nothing is acknowledged.
        chosen: Floats = np.maximum(acked, 0.5 * rate) * np.exp(0.5 * step)
        return np.clip(chosen, 0.5, 150.0)


def earned(env: CongestionVectorEnv, policies: Floats, seed: int) -> Floats:
    """Mean reward per step of each policy. All policies have the same cell."""
    policy, total, steps = Policy(policies), np.zeros(len(policies)), 0
    seen, _ = env.reset(seed=[seed] * len(policies))
    over = False
    while not over:
        seen, reward, _, truncated, _ = env.step(policy(seen)[:, None].astype(np.float32))
        total, steps, over = total + reward, steps + 1, bool(truncated.all())
    return total / steps


def train(scenario: str, generations: int, population: int = 32, seconds: float = 10.0, *, tell: bool = True) -> Floats:
    """Trains a policy for this scenario, and returns its parameters."""
    from airpace.gym import CongestionVectorEnv

    env = CongestionVectorEnv(population, scenario, set={"duration_s": seconds})
    random = np.random.default_rng(1)
    mean, deviation = np.zeros(PARAMETERS), np.full(PARAMETERS, 0.7)
    for generation in range(generations):
        policies = random.normal(mean, deviation, (population, PARAMETERS))
        policies[0] = mean
        rewards = earned(env, policies, seed=generation)
        best = policies[np.argsort(rewards)[-population // 4 :]]
        # The deviation shrinks slowly; otherwise the search would stop at the first good parameters.
        mean = 0.3 * mean + 0.7 * best.mean(axis=0)
        deviation = 0.5 * deviation + 0.5 * best.std(axis=0) + 0.01
        if tell and generation % 10 == 9:
            print(f"generation {generation + 1}: {rewards[0]:.1f} per step")
    return mean


def compare(
    parameters: Floats, scenario: str, seeds: range, sets: dict[str, airpace.Value] | None = None
) -> airpace.Run:
    """Runs the policy as a scheme, with AIMD and BBR for comparison."""

    def learned(setup: airpace.Setup) -> airpace.Agent:
        policy = Policy(parameters)
        return airpace.Agent(lambda seen: float(policy(seen)[0]))

    schemes: list[airpace.Scheme] = [("learned", learned), Aimd, "bbr"]
    return airpace.simulate(scenario, schemes=schemes, seeds=seeds, set=sets, tables=())


if __name__ == "__main__":
    trained = train("stationary-busy", generations=60)
    print("seeds 1001 to 1005, none of which it was trained on; it was trained on the first cell only")
    print("cell             scheme    Mbit/s  queueing ms (p95)")
    for cell in ("stationary-busy", "mobility", "competitor"):
        rows = compare(trained, cell, seeds=range(1001, 1006)).summary
        for scheme in dict.fromkeys(rows["scheme"]):
            mine = (rows["scheme"] == scheme) & (rows["index"] == 0)
            mbps, queueing_ms = rows["throughput_mbps"][mine].mean(), rows["queueing_delay_ms.p95"][mine].mean()
            print(f"{cell:16} {scheme:9} {mbps:6.1f} {queueing_ms:18.1f}")
