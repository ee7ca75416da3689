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
An episode is as long as the scenario, and is truncated at its end. If the agent's flow ends before (`stop_s`), the
episode is terminated with the step in which it did; what that step counts per second is counted over all of it.
A flow whose transfers open new connections cannot be steered, as that of `short-flows`: an agent steers one connection.

`airpace.zoo` has the same for several agents, one per flow.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex, TypeAlias, cast

from airpace._arguments import number, seed_of
from airpace._simulate import Value

try:
    import gymnasium
    import numpy as np
    import numpy.typing as npt
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space

    from airpace._steering import Floats, Reward, Steering, mbps_less_delay, rewards_of
except ImportError as error:
    raise ImportError("airpace.gym needs Gymnasium: pip install 'gymnasium>=1.1'") from error

#: A seed for the first of several simulators, or one for each.
Seeds: TypeAlias = "SupportsIndex | Sequence[SupportsIndex | None] | npt.NDArray[np.integer[Any]] | None"

__all__ = ["CongestionEnv", "CongestionVectorEnv", "mbps_less_delay"]


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
        self._steering = Steering(scenario, 1, action, most, step_ms, [flow], others, reward, set)
        self._reward = reward
        self.action_space = cast("spaces.Space[Floats]", self._steering.action_space)
        self.observation_space = cast("spaces.Space[Floats]", self._steering.observation_space)
        self._one = np.ones(1, dtype=np.bool_)

    def reset(
        self, *, seed: SupportsIndex | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begins an episode, and takes its first step at a low rate."""
        # Gymnasium takes no numbers of NumPy.
        given = None if seed is None else seed_of(seed)
        super().reset(seed=given)
        drawn = int(self.np_random.integers(2**63)) if given is None else given
        seen = self._steering.simulators.reset(self._one, [drawn])
        return seen[0, 0], {"seed": drawn}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Goes on for a step. The episode is terminated if the flow ended, and truncated if the scenario did."""
        seen, ended, over = self._steering.simulators.step(self._one, self._steering.bounded(action))
        reward = number("the reward", self._reward(seen[0, 0]), "a function that returns a number")
        return seen[0, 0], reward, bool(ended[0, 0]), bool(over[0]), {}

    def close(self) -> None:
        """Ends the episode and the simulator's thread. `reset` begins another one."""
        self._steering.simulators.close()


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
        self._steering = Steering(scenario, num_envs, action, most, step_ms, [flow], others, reward, set)
        self._reward = reward
        self.num_envs = num_envs = int(num_envs)
        self.single_action_space = self._steering.action_space
        self.single_observation_space = self._steering.observation_space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._over = np.zeros(num_envs, dtype=np.bool_)

    def _drawn(self) -> list[int]:
        return [int(seed) for seed in self.np_random.integers(2**63, size=self.num_envs)]

    def reset(self, *, seed: Seeds = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Begins an episode in each. A single seed is that of the first; the others have the following ones.

        A list has a seed, or `None`, for each.
        """
        is_array = isinstance(seed, np.ndarray) and seed.ndim == 1
        several: list[Any] | None = list(cast("Any", seed)) if is_array or isinstance(seed, list | tuple) else None
        first = None if seed is None or several is not None else seed_of(seed)
        super().reset(seed=first)
        seeds = self._drawn()
        if first is not None:
            seeds = [seed_of(first + at) for at in range(self.num_envs)]
        elif several is not None:
            if len(several) != self.num_envs:
                raise ValueError(
                    f"seed: {len(several)} seeds for {self.num_envs} simulators; give one, or a list of one for each"
                )
            seeds = [drawn if of is None else seed_of(of) for drawn, of in zip(seeds, several, strict=True)]
        self._over[:] = False
        return self._steering.simulators.reset(~self._over, seeds)[:, 0], {}

    def step(
        self, actions: Floats
    ) -> tuple[Floats, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Goes on for a step in each; begins anew where an episode was over."""
        anew = self._over.copy()
        seen, ended, over = self._steering.simulators.step(~anew, self._steering.bounded(actions))
        seen, terminated = seen[:, 0], ended[:, 0]
        reward = rewards_of(self._reward(seen), self.num_envs)
        if anew.any():
            seen[anew] = self._steering.simulators.reset(anew, self._drawn())[anew, 0]
            reward[anew] = 0.0
        self._over = terminated | over
        return seen, reward, terminated, over, {}

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ANN401 - as its base class declares it
        """Ends all episodes and the simulators' threads."""
        self._steering.simulators.close()
