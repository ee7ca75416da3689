"""Common code of the environments for learning agents. `airpace.gym` documents actions, observations and rewards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from airpace import _airpace
from airpace._arguments import scenario_of, whole
from airpace._controller import bounds_of
from airpace._simulate import Value, sets_of

Floats: TypeAlias = "npt.NDArray[np.float32]"
Reward: TypeAlias = "Callable[[Floats], npt.NDArray[np.float64]]"

#: Maximum number of simulators of an environment. Each simulator has a thread of its own.
MAX_SIMULATORS = 1024

#: Maximum number of a flow: more than any scenario has.
MAX_FLOWS = 2**16

#: Maximum value in an observation: Mbit/s, ms or packets.
MAX_OBSERVATION = 1e7


def mbps_less_delay(seen: Floats) -> npt.NDArray[np.float64]:
    """Mbit/s acknowledged, minus a tenth of the queueing delay in ms, minus half of the Mbit/s sent and lost."""
    wide = np.asarray(seen, dtype=np.float64)
    queueing_ms = np.maximum(wide[..., 3] - wide[..., 4], 0.0)
    reward: npt.NDArray[np.float64] = wide[..., 0] - 0.1 * queueing_ms - 0.5 * wide[..., 1] * wide[..., 2]
    return reward


def rewards_of(rewards: object, count: int) -> npt.NDArray[np.float64]:
    """Checks that rewards are one number for each of `count` simulators."""
    hint = f"a function of observations of shape ({count}, 8) that returns {count} numbers, one per simulator"
    try:
        found = np.array(rewards)
    except ValueError:
        raise ValueError(f"the reward={rewards!r}: give {hint}") from None
    if found.shape != (count,) or found.dtype.kind not in "iuf":
        raise ValueError(f"the reward is an array of shape {found.shape} and type {found.dtype}: give {hint}")
    return found.astype(np.float64)


def _flows(flows: Iterable[int]) -> list[int]:
    """Checks the flows of the agents."""
    if not isinstance(flows, Iterable):
        raise ValueError(f"flows={flows!r}: give a list of flows, from 0 in the order of the scenario")
    return [whole("flow", flow, 0, MAX_FLOWS, "0 for the first flow") for flow in flows]


class Steering:
    """Simulators and spaces that all environments use."""

    def __init__(
        self,
        scenario: str | os.PathLike[str],
        count: int,
        action: str,
        most: float | None,
        step_ms: float,
        flows: Iterable[int] | None,
        others: str,
        reward: Reward,
        set: Mapping[str, Value] | None,  # noqa: A002
    ) -> None:
        if not callable(reward):
            raise ValueError(f"reward={reward!r}: give a function of observations, as airpace.gym.mbps_less_delay")
        if not isinstance(others, str):
            raise ValueError(f"others={others!r}: give the name of a scheme, as 'cubic'")
        least, high, start = bounds_of(action, most, step_ms)
        self.action_space = spaces.Box(np.float32(least), np.float32(high), (1,), np.float32)
        self.observation_space = spaces.Box(np.float32(0), np.float32(MAX_OBSERVATION), (8,), np.float32)
        self.simulators = _airpace.Simulators(
            scenario_of("scenario", scenario),
            count=whole("num_envs", count, 1, MAX_SIMULATORS),
            flows=None if flows is None else _flows(flows),
            set=sets_of(set),
            others=others,
            lever=action,
            start=start,
            step_ms=float(step_ms),
        )

    def bounded(self, actions: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Actions clipped to their space. Values that are no numbers raise `ValueError`."""
        if actions is None:
            raise ValueError("the action None: give numbers")
        try:
            wide = np.asarray(actions, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            raise ValueError(f"the action {actions!r}: give numbers") from None
        if np.isnan(wide).any():
            raise ValueError("an action is NaN; give numbers")
        low, high = self.action_space.low[0], self.action_space.high[0]
        return np.clip(wide, low, high).astype(np.float64)
