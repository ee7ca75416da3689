"""What the environments for learning agents share. `airpace.gym` says what actions, observations and rewards are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from airpace import _airpace
from airpace._controller import bounds_of
from airpace._simulate import Value, sets_of

Floats: TypeAlias = "npt.NDArray[np.float32]"
Reward: TypeAlias = "Callable[[Floats], npt.NDArray[np.float64]]"

#: The largest number of an observation: Mbit/s, ms or packets.
MOST = 1e7


def mbps_less_delay(seen: Floats) -> npt.NDArray[np.float64]:
    """Mbit/s acknowledged, less a tenth of the queueing delay in ms, less half of what was sent in vain."""
    wide = np.asarray(seen, dtype=np.float64)
    queueing_ms = np.maximum(wide[..., 3] - wide[..., 4], 0.0)
    reward: npt.NDArray[np.float64] = wide[..., 0] - 0.1 * queueing_ms - 0.5 * wide[..., 1] * wide[..., 2]
    return reward


class Steering:
    """Simulators, and what all environments do with them."""

    def __init__(
        self,
        scenario: str | os.PathLike[str],
        count: int,
        action: str,
        most: float | None,
        step_ms: float,
        flows: Iterable[int] | None,
        others: str,
        set: Mapping[str, Value] | None,  # noqa: A002
    ) -> None:
        if count < 1:
            raise ValueError(f"num_envs={count}: give at least 1")
        least, high, start = bounds_of(action, most, step_ms)
        self.action_space = spaces.Box(np.float32(least), np.float32(high), (1,), np.float32)
        self.observation_space = spaces.Box(np.float32(0), np.float32(MOST), (8,), np.float32)
        self.simulators = _airpace.Simulators(
            os.fspath(scenario),
            count=count,
            flows=None if flows is None else list(flows),
            set=sets_of(set),
            others=others,
            lever=action,
            start=start,
            step_ms=float(step_ms),
        )

    def bounded(self, actions: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Actions within their space; what is none at all is refused."""
        wide = np.asarray(actions, dtype=np.float64).reshape(-1)
        if np.isnan(wide).any():
            raise ValueError("an action is NaN; give numbers")
        low, high = self.action_space.low[0], self.action_space.high[0]
        return np.clip(wide, low, high).astype(np.float64)
