"""The environment with an agent per flow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from airpace.gym import CongestionEnv
from airpace.zoo import CongestionParallelEnv, mbps_less_delay

SHORT: dict[str, Any] = {"duration_s": 2}


@pytest.mark.parametrize("action", ["rate", "window"])
def test_pettingzoo_finds_nothing_wrong(action: str) -> None:
    parallel_api_test(CongestionParallelEnv(action=action, set=SHORT), num_cycles=60)
    parallel_seed_test(lambda: CongestionParallelEnv(action=action, set=SHORT), num_cycles=10)


def test_a_single_agent_sees_what_it_sees_alone() -> None:
    several, alone = CongestionParallelEnv("stationary-idle", set=SHORT), CongestionEnv("stationary-idle", set=SHORT)
    (agent,) = several.possible_agents
    seen, _ = several.reset(seed=3)
    expected, _ = alone.reset(seed=3)
    over = False
    while not over:
        assert seen[agent].tolist() == expected.tolist()
        action = np.array([0.9 * expected[0] + 3], dtype=np.float32)
        seen, rewards, _, truncations, _ = several.step({agent: action})
        expected, reward, _, over, _ = alone.step(action)
        assert rewards == {agent: reward}
        assert truncations == {agent: over}
    assert several.agents == []


def test_agents_share_a_cell_and_each_keeps_its_own_rate() -> None:
    env = CongestionParallelEnv("two-flows", set={"duration_s": 3})
    near, far = env.possible_agents
    seen, infos = env.reset(seed=1)
    assert infos[near]["seed"] == 1
    for _ in range(40):
        seen, rewards, _, _, _ = env.step({near: [4.0], far: [9.0]})
    assert seen[near][0] == pytest.approx(4.0, rel=0.2)
    assert seen[far][0] == pytest.approx(9.0, rel=0.2)
    assert rewards[near] == mbps_less_delay(seen[near])
    assert env.action_space(near) is not env.action_space(far)


def test_what_one_agent_does_is_felt_by_the_other() -> None:
    queues = []
    for other in (1.0, 200.0):
        env = CongestionParallelEnv("two-flows", set={"duration_s": 3})
        env.reset(seed=1)
        for _ in range(40):
            seen, _, _, _, _ = env.step({"near": [5.0], "far": [other]})
        queues.append(seen["near"][3])
    assert queues[1] > 2 * queues[0], "they share one queue of the cell"


def test_an_agent_whose_flow_begins_later_waits() -> None:
    env = CongestionParallelEnv("two-flows", set={"duration_s": 3, "flow.1.start_s": 1})
    env.reset(seed=1)
    acked = []
    while env.agents:
        seen, _, _, _, _ = env.step({agent: [5.0] for agent in env.agents})
        acked.append(float(seen["far"][0]))
    assert max(acked[:18]) == 0, "nothing happens before its first packet"
    assert acked[-1] == pytest.approx(5.0, rel=0.3)
    assert len(acked) == 58


def test_an_agent_whose_flow_ends_leaves() -> None:
    env = CongestionParallelEnv("two-flows", set={"duration_s": 3, "flow.0.stop_s": 1, "flow.1.stop_s": 2})
    env.reset(seed=1)
    left = []
    while env.agents:
        acted = list(env.agents)
        seen, rewards, terminations, truncations, infos = env.step({agent: [5.0] for agent in acted})
        assert list(seen) == list(rewards) == list(terminations) == list(infos) == acted
        assert truncations == dict.fromkeys(acted, False)
        left += [agent for agent in acted if terminations[agent]]
        assert env.agents == [agent for agent in acted if not terminations[agent]]
    assert left == ["near", "far"]
    env.reset(seed=2)
    assert env.agents == ["near", "far"]


def test_uploads_are_steered_by_the_devices_clock() -> None:
    sets: dict[str, Any] = {"duration_s": 3, "device.0.clock.drift_ppm": 200, "device.0.clock.offset_ms": 700}
    env = CongestionParallelEnv("biscay-three-flows", set=sets)
    assert env.possible_agents == ["first", "second", "third"]
    env.reset(seed=1)
    while env.agents:
        seen, _, _, _, _ = env.step({agent: [2.0] for agent in env.agents})
    assert [seen[agent][0] for agent in env.possible_agents] == pytest.approx([2.0] * 3, rel=0.3)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"flows": [5]}, "has 2 flows"),
        ({"flows": [0, 0]}, "named twice"),
        ({"flows": 0}, "flows=0: give a list"),
        ({"flows": [0.5]}, "flow=0.5: give a whole number"),
        ({"set": {"flow.0.scheme": "cubic", "flow.1.scheme": "bbr"}}, "no flow to steer"),
    ],
)
def test_wrong_arguments_say_what_to_do(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        CongestionParallelEnv(**arguments)


def test_seeds_are_whole_numbers() -> None:
    env = CongestionParallelEnv(set=SHORT)
    assert env.reset(seed=np.int64(5))[1]["near"] == {"seed": 5}
    for wrong in (1.5, "5", -1):
        with pytest.raises(ValueError, match="is no seed"):
            env.reset(seed=wrong)  # type: ignore[arg-type]


def test_every_agent_acts_and_only_in_an_episode() -> None:
    env = CongestionParallelEnv(set=SHORT)
    with pytest.raises(ValueError, match="call reset"):
        env.step({})
    env.reset(seed=1)
    with pytest.raises(ValueError, match="no action for far"):
        env.step({"near": [1.0]})
