"""PettingZoo environment for several learning agents: one agent per flow, and all agents act simultaneously.

>>> import airpace.zoo
>>> env = airpace.zoo.CongestionParallelEnv("two-flows", action="window")
>>> seen, _ = env.reset(seed=1)
>>> actions = {agent: env.action_space(agent).sample() for agent in env.agents}
>>> seen, rewards, terminations, truncations, infos = env.step(actions)

The name of an agent is the label of its flow. Actions, observations and rewards are those of `airpace.gym`; each agent
receives the reward of its own flow. All agents act at the same instants. The first step starts with the first packet of
any of their flows. An agent whose flow starts later observes no traffic until then, and its actions have no effect. An
agent whose flow ends before the scenario (`stop_s`) is terminated with the step in which the flow ends, and leaves
`agents`. The other agents stay until the scenario ends; then all are truncated at once, and `agents` is empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, SupportsIndex

from airpace._arguments import seed_of
from airpace._simulate import Value

try:
    import numpy as np
    import numpy.typing as npt
    from gymnasium import spaces
    from gymnasium.utils import seeding
    from pettingzoo import ParallelEnv

    from airpace._steering import Floats, Reward, Steering, mbps_less_delay
except ImportError as error:
    raise ImportError("airpace.zoo needs PettingZoo: pip install 'pettingzoo>=1.25' 'gymnasium>=1.1'") from error

__all__ = ["CongestionParallelEnv", "mbps_less_delay"]


class CongestionParallelEnv(ParallelEnv[str, Floats, Floats]):  # type: ignore[misc]  # PettingZoo has no types
    """Environment in which each of several flows of a scenario has an agent of its own."""

    metadata: dict[str, Any] = {"name": "airpace_congestion_v0", "render_modes": []}  # noqa: RUF012 - as its base class

    def __init__(
        self,
        scenario: str | os.PathLike[str] = "two-flows",
        *,
        action: str = "rate",
        most: float | None = None,
        step_ms: float = 50.0,
        reward: Reward = mbps_less_delay,
        flows: Iterable[int] | None = None,
        others: str = "cubic",
        set: Mapping[str, Value] | None = None,  # noqa: A002 - as `--set` of the program
    ) -> None:
        """Makes the environment.

        Args:
            scenario: A name of `airpace.scenarios()`, or a TOML file.
            action: `rate` or `window`.
            most: Maximum action; default 200 Mbit/s or 5000 packets.
            step_ms: Length of a step in simulated milliseconds, 1 to 10000; an action applies for one step.
            reward: Function from the observation of a flow to its reward.
            flows: Numbers of the agents' flows, from 0 in the order of the scenario; default: all flows without a
                scheme of their own.
            others: Scheme of the other flows without a scheme of their own.
            set: Keys of the scenario and their values, as for `airpace.simulate`.
        """
        self._steering = Steering(scenario, 1, action, most, step_ms, flows, others, reward, set)
        self._reward = reward
        self._one = np.ones(1, dtype=np.bool_)
        self._random, _ = seeding.np_random()
        self.possible_agents = list(self._steering.simulators.labels)
        self.agents: list[str] = []
        # Spaces draw random numbers, so each agent has a space of its own.
        self.action_spaces = {agent: deepcopy(self._steering.action_space) for agent in self.possible_agents}
        self.observation_spaces = {agent: deepcopy(self._steering.observation_space) for agent in self.possible_agents}

    def action_space(self, agent: str) -> spaces.Box:
        """The space of an agent's actions."""
        return self.action_spaces[agent]

    def observation_space(self, agent: str) -> spaces.Box:
        """The space of an agent's observations."""
        return self.observation_spaces[agent]

    def reset(
        self, seed: SupportsIndex | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Floats], dict[str, dict[str, Any]]]:
        """Starts an episode, and runs its first step at low rates."""
        given = None if seed is None else seed_of(seed)
        if given is not None:
            self._random, _ = seeding.np_random(given)
        drawn = int(self._random.integers(2**63)) if given is None else given
        seen = self._steering.simulators.reset(self._one, [drawn])[0]
        self.agents = list(self.possible_agents)
        return self._of_each(seen, self.agents), {agent: {"seed": drawn} for agent in self.agents}

    def step(
        self, actions: Mapping[str, npt.ArrayLike]
    ) -> tuple[dict[str, Floats], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Runs one step of all agents."""
        missing = [agent for agent in self.agents if agent not in actions]
        if missing or not self.agents:
            what = f"no action for {', '.join(missing)}" if missing else "the episode is over or has not begun"
            raise ValueError(f"{what}; {'all agents act at once' if missing else 'call reset() first'}")
        # Agents whose flows have ended give no action; the value in their place has no effect.
        idle = self._steering.action_space.low
        wide = [
            self._steering.bounded(actions[agent] if agent in self.agents else idle) for agent in self.possible_agents
        ]
        seen, ended, over = self._steering.simulators.step(self._one, np.concatenate(wide))
        acted, is_over = self.agents, bool(over[0])
        observed = self._of_each(seen[0], acted)
        rewards = {agent: float(self._reward(row)) for agent, row in observed.items()}
        has_ended = dict(zip(self.possible_agents, ended[0].tolist(), strict=True))
        terminations = {agent: has_ended[agent] for agent in acted}
        truncations = dict.fromkeys(acted, is_over)
        infos: dict[str, dict[str, Any]] = {agent: {} for agent in acted}
        self.agents = [] if is_over else [agent for agent in acted if not has_ended[agent]]
        return observed, rewards, terminations, truncations, infos

    def close(self) -> None:
        """Ends the episode and the simulator's thread. `reset` starts another episode."""
        self._steering.simulators.close()
        self.agents = []

    def _of_each(self, seen: Floats, agents: list[str]) -> dict[str, Floats]:
        return {agent: row for agent, row in zip(self.possible_agents, seen, strict=True) if agent in agents}
