"""Gymnasium environments for learning agents: an agent steers one flow of a scenario.

>>> import airpace.gym
>>> env = airpace.gym.CongestionEnv("stationary-idle", action="rate")
>>> seen, _ = env.reset(seed=1)
>>> seen, reward, terminated, truncated, info = env.step(env.action_space.sample())

**Action**, of shape (1,): with `action="rate"` the pacing rate in Mbit/s, with `action="window"` the congestion window
in packets. The action applies until the next step.

**Observation**, of shape (8,): the last step of the agent's flow, measured by its sender:

| index | quantity | unit |
| --- | --- | --- |
| 0 | acknowledged rate | Mbit/s |
| 1 | sent rate | Mbit/s |
| 2 | lost share of the acknowledged and lost bytes | 0 to 1 |
| 3 | mean round-trip time; without a new sample, the previous value | ms |
| 4 | minimum round-trip time of the connection | ms |
| 5 | packets outstanding at the end of the step | packets |
| 6 | share of the acknowledged packets that queues marked (ECN) | 0 to 1 |
| 7 | rate or window in force during the step | that of the action |

**Reward**: `reward(observations)`, a function from an array of shape (…, 8) to an array of shape (…). The default is
`mbps_less_delay`. **Seeds** are those of the simulator: the same seed and actions give the same episode, bit for bit.
An episode lasts as long as the scenario, and is truncated at its end. If the agent's flow ends earlier (`stop_s`), the
episode is terminated with the step in which the flow ends; the rates of that step are averaged over the whole step.
A flow that opens a new connection per transfer, as in `short-flows`, cannot be steered: an agent steers one connection.

`airpace.zoo` has the same environment for several agents, one per flow.
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

#: A seed for the first of several simulators, or one seed per simulator.
Seeds: TypeAlias = "SupportsIndex | Sequence[SupportsIndex | None] | npt.NDArray[np.integer[Any]] | None"

__all__ = ["CongestionEnv", "CongestionVectorEnv", "mbps_less_delay"]


class CongestionEnv(gymnasium.Env[Floats, Floats]):
    """Environment in which an agent steers one flow of a scenario, step by step."""

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
        """Makes the environment.

        Args:
            scenario: A name of `airpace.scenarios()`, or a TOML file.
            action: `rate` or `window`.
            most: Maximum action; default 200 Mbit/s or 5000 packets.
            step_ms: Length of a step in simulated milliseconds, 1 to 10000; an action applies for one step.
            reward: Function from observations to rewards.
            flow: Number of the agent's flow, from 0 in the order of the scenario.
            others: Scheme of the other flows without a scheme of their own.
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
        """Starts an episode, and runs its first step at a low rate."""
        # Gymnasium refuses integers of NumPy as seed.
        given = None if seed is None else seed_of(seed)
        super().reset(seed=given)
        drawn = int(self.np_random.integers(2**63)) if given is None else given
        seen = self._steering.simulators.reset(self._one, [drawn])
        return seen[0, 0], {"seed": drawn}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Runs one step. The episode is terminated if the flow has ended, and truncated if the scenario has ended."""
        seen, ended, over = self._steering.simulators.step(self._one, self._steering.bounded(action))
        reward = number("the reward", self._reward(seen[0, 0]), "a function that returns a number")
        return seen[0, 0], reward, bool(ended[0, 0]), bool(over[0]), {}

    def close(self) -> None:
        """Ends the episode and the simulator's thread. `reset` starts another episode."""
        self._steering.simulators.close()


class CongestionVectorEnv(VectorEnv[Floats, Floats, Any]):
    """Parallel simulators, each on a thread of its own; one call runs a step of all of them.

    An environment whose episode has ended is reset at the next step (`AutoresetMode.NEXT_STEP`).
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
        """Makes `num_envs` simulators. The other arguments are those of `CongestionEnv`."""
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
        """Starts an episode in each simulator.

        A single seed is that of the first simulator; the other simulators have the subsequent seeds. A list has a seed,
        or `None`, per simulator.
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
        """Runs one step in each simulator, and resets the simulators whose episode has ended."""
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
