"""Environments for learning agents, as Gymnasium knows them: an agent steers one flow of a scenario.

>>> import airpace.gym
>>> env = airpace.gym.CongestionEnv("stationary-idle", action="rate")
>>> seen, _ = env.reset(seed=1)
>>> seen, reward, terminated, truncated, info = env.step(env.action_space.sample())

**Action**, of shape (1,): with `action="rate"` the rate in Mbit/s that the pacer obeys, with `action="window"` the
congestion window in packets. It holds until the next step.

**Observation**, of shape (8,), about the last step of the agent's flow, as its sender sees it:

| index | what | unit |
| --- | --- | --- |
| 0 | acknowledged | Mbit/s |
| 1 | sent | Mbit/s |
| 2 | lost, of what was acknowledged or lost | 0 to 1 |
| 3 | mean round-trip time; the last one known if there is no new one | ms |
| 4 | least round-trip time of the connection | ms |
| 5 | outstanding at the end of the step | packets |
| 6 | marked by queues (ECN), of the packets acknowledged | 0 to 1 |
| 7 | the rate or window in force during the step | as the action |

**Reward**: `reward(observations)`, a function of an array of shape (…, 8) to one of shape (…). The default is
`mbps_less_delay`. **Seeds** are those of the simulator: the same seed and actions give the same episode, bit for bit.
An episode is as long as the scenario; it is truncated at its end, and never terminated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from airpace import _airpace
from airpace._simulate import Value, sets_of

try:
    import gymnasium
    import numpy as np
    import numpy.typing as npt
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise ImportError("airpace.gym needs Gymnasium: pip install 'gymnasium>=1.1'") from error

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


def _action_space(action: str, most: float | None) -> spaces.Box:
    bounds = {"rate": (0.1, 200.0), "window": (1.0, 5000.0)}
    if action not in bounds:
        raise ValueError(f"action={action!r}: give 'rate' or 'window'")
    least, usual = bounds[action]
    high = usual if most is None else most
    if not least < high < MOST:
        raise ValueError(f"most={most}: give more than {least} and less than {MOST:g}")
    return spaces.Box(np.float32(least), np.float32(high), (1,), np.float32)


class _Steering:
    """Simulators, and what both environments do with them."""

    def __init__(
        self,
        scenario: str | os.PathLike[str],
        count: int,
        action: str,
        most: float | None,
        step_ms: float,
        flow: int,
        others: str,
        set: Mapping[str, Value] | None,  # noqa: A002
    ) -> None:
        if count < 1:
            raise ValueError(f"num_envs={count}: give at least 1")
        if not 1 <= step_ms <= 10_000:
            raise ValueError(f"step_ms={step_ms}: give 1 to 10000")
        self.action_space = _action_space(action, most)
        self.observation_space = spaces.Box(np.float32(0), np.float32(MOST), (8,), np.float32)
        self.simulators = _airpace.Simulators(
            os.fspath(scenario),
            count=count,
            flow=flow,
            set=sets_of(set),
            others=others,
            lever=action,
            start=2.0 if action == "rate" else 10.0,
            step_ms=float(step_ms),
        )

    def bounded(self, actions: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Actions within their space; what is none at all is refused."""
        wide = np.asarray(actions, dtype=np.float64).reshape(-1)
        if np.isnan(wide).any():
            raise ValueError("an action is NaN; give numbers")
        low, high = self.action_space.low[0], self.action_space.high[0]
        return np.clip(wide, low, high).astype(np.float64)


class CongestionEnv(gymnasium.Env[Floats, Floats]):
    """One flow of a scenario, steered step by step."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as its base class declares it

    def __init__(
        self,
        scenario: str | os.PathLike[str] = "stationary-idle",
        *,
        action: str = "rate",
        most: float | None = None,
        step_ms: float = 50.0,
        reward: Reward = mbps_less_delay,
        flow: int = 0,
        others: str = "cubic",
        set: Mapping[str, Value] | None = None,  # noqa: A002 - as `--set` of the program
    ) -> None:
        """Steers a flow of a scenario.

        Args:
            scenario: A name of `airpace.scenarios()`, or a TOML file.
            action: `rate` or `window`.
            most: The largest action; 200 Mbit/s or 5000 packets if not given.
            step_ms: How long an action holds, in simulated milliseconds, 1 to 10000.
            reward: What a step is worth.
            flow: The agent's flow, from 0 in the order of the scenario.
            others: The scheme of the flows that have none of their own.
            set: Keys of the scenario and their values, as for `airpace.simulate`.
        """
        self._steering = _Steering(scenario, 1, action, most, step_ms, flow, others, set)
        self._reward = reward
        self.action_space = cast("spaces.Space[Floats]", self._steering.action_space)
        self.observation_space = cast("spaces.Space[Floats]", self._steering.observation_space)
        self._one = np.ones(1, dtype=np.bool_)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Begins an episode, and takes its first step at a low rate."""
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**63)) if seed is None else seed
        seen = self._steering.simulators.reset(self._one, [drawn])
        return seen[0], {"seed": drawn}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Goes on for a step."""
        seen, over = self._steering.simulators.step(self._one, self._steering.bounded(action))
        return seen[0], float(self._reward(seen[0])), False, bool(over[0]), {}


class CongestionVectorEnv(VectorEnv[Floats, Floats, Any]):
    """Simulators side by side, each on a thread of its own; a step of all of them is one call.

    An environment whose episode is over begins anew at the next step (`AutoresetMode.NEXT_STEP`).
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as its base class declares it
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int,
        scenario: str | os.PathLike[str] = "stationary-idle",
        *,
        action: str = "rate",
        most: float | None = None,
        step_ms: float = 50.0,
        reward: Reward = mbps_less_delay,
        flow: int = 0,
        others: str = "cubic",
        set: Mapping[str, Value] | None = None,  # noqa: A002 - as `--set` of the program
    ) -> None:
        """Steers a flow in each of `num_envs` simulators. The other arguments are those of `CongestionEnv`."""
        self._steering = _Steering(scenario, num_envs, action, most, step_ms, flow, others, set)
        self._reward = reward
        self.num_envs = num_envs
        self.single_action_space = self._steering.action_space
        self.single_observation_space = self._steering.observation_space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._over = np.zeros(num_envs, dtype=np.bool_)

    def _drawn(self) -> list[int]:
        return [int(seed) for seed in self.np_random.integers(2**63, size=self.num_envs)]

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begins an episode in each. A single seed is that of the first; the others have the following ones."""
        super().reset(seed=seed if isinstance(seed, int) else None)
        seeds = self._drawn()
        if isinstance(seed, int):
            seeds = [seed + at for at in range(self.num_envs)]
        elif seed is not None:
            seeds = [drawn if given is None else given for drawn, given in zip(seeds, seed, strict=True)]
        self._over[:] = False
        return self._steering.simulators.reset(~self._over, seeds), {}

    def step(
        self, actions: Floats
    ) -> tuple[Floats, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Goes on for a step in each; begins anew where an episode was over."""
        anew = self._over.copy()
        seen, over = self._steering.simulators.step(~anew, self._steering.bounded(actions))
        reward = np.asarray(self._reward(seen), dtype=np.float64)
        if anew.any():
            seen[anew] = self._steering.simulators.reset(anew, self._drawn())[anew]
            reward[anew] = 0.0
        self._over = over
        return seen, reward, np.zeros(self.num_envs, dtype=np.bool_), over.copy(), {}
