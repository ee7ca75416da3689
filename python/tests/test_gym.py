"""Environments for learning agents."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from airpace.gym import CongestionEnv, CongestionVectorEnv, mbps_less_delay

SHORT: dict[str, Any] = {"duration_s": 2}


@pytest.mark.parametrize("action", ["rate", "window"])
def test_gymnasium_finds_nothing_wrong(action: str) -> None:
    check_env(CongestionEnv("stationary-idle", action=action, set=SHORT), skip_render_check=True)


def episode(env: CongestionEnv, seed: int, action: float) -> list[Any]:
    """All observations and rewards of an episode with a constant action."""
    seen = [env.reset(seed=seed)[0].tolist()]
    over = False
    while not over:
        observation, reward, terminated, over, _ = env.step(np.array([action], dtype=np.float32))
        assert not terminated
        assert reward == mbps_less_delay(observation)
        seen.append(observation.tolist())
    return seen


def test_a_seed_gives_the_same_episode() -> None:
    env = CongestionEnv("mobility", set={"duration_s": 4})
    first = episode(env, 11, 20.0)
    assert episode(env, 11, 20.0) == first
    assert episode(env, 12, 20.0) != first, "another seed is another cell"
    assert len(first) == 79, "as many steps of 50 ms as fit whole"


def test_the_flow_keeps_the_rate_that_it_is_given() -> None:
    seen = np.array(episode(CongestionEnv("stationary-idle", set={"duration_s": 4}), 1, 12.0))[10:]
    assert seen[:, 0].mean() == pytest.approx(12.0, rel=0.05)
    assert seen[:, 7] == pytest.approx(12.0)
    assert (seen[:, 3] >= seen[:, 4]).all(), "no mean is below the least"


def test_a_rate_above_the_cell_makes_a_queue_and_losses() -> None:
    calm = np.array(episode(CongestionEnv("stationary-idle", set=SHORT), 1, 10.0))
    full = np.array(episode(CongestionEnv("stationary-idle", set=SHORT), 1, 200.0))
    assert full[-1, 3] > 5 * calm[-1, 3]
    assert mbps_less_delay(full[-1:].astype(np.float32)) < mbps_less_delay(calm[-1:].astype(np.float32))


def test_simulators_side_by_side_are_those_alone() -> None:
    vector = CongestionVectorEnv(3, "stationary-idle", set=SHORT)
    assert vector.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    seen, _ = vector.reset(seed=5)
    rows = [seen.copy()]
    over = np.zeros(3, dtype=bool)
    actions = np.array([[5.0], [10.0], [15.0]], dtype=np.float32)
    while not over.any():
        seen, reward, terminated, over, _ = vector.step(actions)
        assert reward.shape == terminated.shape == (3,)
        rows.append(seen.copy())
    assert over.all()
    for at, action in enumerate((5.0, 10.0, 15.0)):
        alone = episode(CongestionEnv("stationary-idle", set=SHORT), 5 + at, action)
        assert np.array(alone).tolist() == [row[at].tolist() for row in rows]
    seen, reward, _, over, _ = vector.step(actions)
    assert not over.any()
    assert (reward == 0).all(), "the step that begins anew is worth nothing"
    assert (seen[:, 7] == 2.0).all(), "a new episode begins at the start rate"
    vector.step(actions)
    vector.close()


def test_an_agent_has_others_beside_it() -> None:
    env = CongestionEnv("two-flows", flow=1, others="reno", set={"duration_s": 6}, action="window")
    seen = np.array(episode(env, 3, 40.0))
    assert seen[:, 0].max() > 0.5


STOPS: dict[str, Any] = {"duration_s": 4, "flow.0.stop_s": 2}


def test_an_episode_ends_with_its_flow() -> None:
    for sets in ({**STOPS, "flow.0.stop_s": 1.97}, STOPS):
        env = CongestionEnv("stationary-idle", set=sets)
        for _ in range(2):
            env.reset(seed=1)
            steps, over = 1, False
            while not over:
                seen, reward, over, truncated, _ = env.step(np.array([8.0], dtype=np.float32))
                assert not truncated
                assert np.isfinite(seen).all()
                assert np.isfinite(reward)
                steps += 1
            assert steps in (39, 40), "steps of 50 ms, the last not whole"
            assert seen[7] == 8.0
            with pytest.raises(RuntimeError, match="reset"):
                env.step(np.array([8.0], dtype=np.float32))


def test_episodes_side_by_side_end_with_their_flows() -> None:
    vector = CongestionVectorEnv(2, "stationary-idle", set=STOPS)
    vector.reset(seed=1)
    actions = np.array([[5.0], [10.0]], dtype=np.float32)
    ended, begun = [0, 0], [0, 0]
    over = np.zeros(2, dtype=bool)
    for _ in range(100):
        seen, reward, terminated, truncated, _ = vector.step(actions)
        begun = [count + int(was) for count, was in zip(begun, over, strict=True)]
        assert (seen[over, 7] == 2.0).all(), "a new episode begins at the start rate"
        assert (reward[over] == 0).all()
        assert not truncated.any()
        ended = [count + int(has) for count, has in zip(ended, terminated, strict=True)]
        over = terminated
    assert ended == begun == [2, 2]


@pytest.mark.parametrize(
    ("scenario", "flow"),
    [("morc-five-flows", 0), ("join-leave", 1), ("rtt-fairness", 1), ("friendly-bbr", 1), ("friendly-cubic", 1)],
)
def test_flows_that_leave_end_their_episode(scenario: str, flow: int) -> None:
    env = CongestionEnv(scenario, flow=flow, step_ms=2000)
    env.reset(seed=1)
    terminated = truncated = False
    while not (terminated or truncated):
        _, _, terminated, truncated, _ = env.step(np.array([1.0], dtype=np.float32))
    assert terminated
    assert not truncated


def test_a_flow_of_many_connections_is_refused() -> None:
    with pytest.raises(ValueError, match="flow=0 of `short-flows` opens a new connection for each of its transfers"):
        CongestionEnv("short-flows")
    env = CongestionEnv("short-flows", set={"flow.0.connection": "same", "duration_s": 3})
    env.reset(seed=1)
    env.step(np.array([10.0], dtype=np.float32))


@pytest.mark.parametrize("reward", [None, 1.0, np.zeros((2, 8)), np.zeros(3), "much", [None, None], [[1], [2, 3]]])
def test_a_reward_is_a_number_per_simulator(reward: Any) -> None:
    vector = CongestionVectorEnv(2, "stationary-idle", set=SHORT, reward=lambda seen: reward)
    vector.reset(seed=1)
    with pytest.raises(ValueError, match=r"the reward.*returns 2 numbers, one per simulator"):
        vector.step(np.ones((2, 1), dtype=np.float32))


def test_an_environment_may_be_left_at_any_time() -> None:
    for seed in range(20):
        env = CongestionEnv("stationary-idle", set={"duration_s": 1000})
        env.reset(seed=seed)
        env.step(env.action_space.sample())
        env.reset(seed=seed)
        del env


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"scenario": "nowhere"}, "no scenario is called"),
        ({"action": "speed"}, "'rate' or 'window'"),
        ({"step_ms": 0}, "1 to 10000"),
        ({"step_ms": 9000, "set": SHORT}, "less than two steps"),
        ({"flow": 7}, "has 1 flows"),
        ({"set": {"flow.0.scheme": "cubic"}}, "scheme of its own"),
        ({"most": 0.01}, "give more than"),
        ({"most": True}, "most=True: give a number"),
        ({"step_ms": True}, "step_ms=True: give a number"),
        ({"most": "fast"}, "most='fast': give a number"),
        ({"step_ms": None}, "step_ms=None: give a number"),
        ({"flow": -1}, "flow=-1: give a whole number"),
        ({"flow": 0.5}, "flow=0.5: give a whole number"),
        ({"reward": 5}, "reward=5: give a function"),
        ({"others": None}, "others=None: give the name of a scheme"),
        ({"set": [1]}, "give a dict"),
    ],
)
def test_wrong_arguments_say_what_to_do(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        CongestionEnv(**arguments)


@pytest.mark.parametrize("seed", [1.5, "12", -1, 2**64, True])
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match="is no seed"):
        CongestionEnv("stationary-idle", set=SHORT).reset(seed=seed)
    vector = CongestionVectorEnv(2, "stationary-idle", set=SHORT)
    with pytest.raises(ValueError, match="is no seed"):
        vector.reset(seed=seed)
    with pytest.raises(ValueError, match="is no seed"):
        vector.reset(seed=[1, seed])


def test_seeds_may_be_numbers_of_numpy() -> None:
    env = CongestionEnv("stationary-idle", set=SHORT)
    expected, _ = env.reset(seed=3)
    seen, info = env.reset(seed=np.int64(3))
    assert seen.tolist() == expected.tolist()
    assert info == {"seed": 3}
    vector = CongestionVectorEnv(2, "stationary-idle", set=SHORT)
    rows = [vector.reset(seed=seed)[0].tolist() for seed in (3, [3, 4], np.array([3, 4]), np.int32(3))]
    assert all(row == rows[0] for row in rows)
    assert rows[0][0] == expected.tolist()


@pytest.mark.parametrize("seeds", [[1], [1, 2, 3], []])
def test_a_wrong_number_of_seeds_says_how_many(seeds: list[int | None]) -> None:
    with pytest.raises(ValueError, match=f"{len(seeds)} seeds for 2 simulators; give one, or a list"):
        CongestionVectorEnv(2, "stationary-idle", set=SHORT).reset(seed=seeds)


@pytest.mark.parametrize("count", [0, 1.5, "two", None])
def test_a_wrong_number_of_simulators_is_refused(count: Any) -> None:
    with pytest.raises(ValueError, match=r"num_envs=.*give a whole number"):
        CongestionVectorEnv(count, "stationary-idle", set=SHORT)


def test_steps_come_after_a_reset() -> None:
    env = CongestionEnv("stationary-idle", set=SHORT)
    with pytest.raises(RuntimeError, match="reset"):
        env.step(np.array([1.0], dtype=np.float32))
    env.reset(seed=1)
    with pytest.raises(ValueError, match="NaN"):
        env.step(np.array([np.nan], dtype=np.float32))
    nothing: Any = None
    with pytest.raises(ValueError, match="the action None: give numbers"):
        env.step(nothing)
    wrong: Any = "fast"
    with pytest.raises(ValueError, match="the action 'fast': give numbers"):
        env.step(wrong)
    silent = CongestionEnv("stationary-idle", set=SHORT, reward=lambda seen: None)  # type: ignore[arg-type, return-value]
    silent.reset(seed=1)
    with pytest.raises(ValueError, match="the reward=None: give a function that returns a number"):
        silent.step(np.array([1.0], dtype=np.float32))


THREADS = """
import os, sys
import numpy as np
import airpace.gym

def simulators():
    names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
    return names.count("simulator")

action = np.array([5.0], dtype=np.float32)
"""


def run_alone(script: str) -> None:
    """Runs a script in a process of its own, where no other test has threads."""
    done = subprocess.run(
        [sys.executable, "-c", THREADS + script], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_a_closed_environment_has_no_thread() -> None:
    run_alone("""
env = airpace.gym.CongestionEnv("stationary-idle", set={"duration_s": 2})
several = airpace.gym.CongestionVectorEnv(3, "stationary-idle", set={"duration_s": 2})
env.reset(seed=1)
several.reset(seed=1)
assert simulators() == 4, simulators()
env.reset(seed=2)
assert simulators() == 4, "the one before is gone"
env.close()
several.close()
assert simulators() == 0, simulators()
try:
    env.step(action)
except RuntimeError as error:
    assert "call reset() first" in str(error)
else:
    sys.exit("a closed environment steps")
env.reset(seed=1)
env.step(action)
""")


def test_an_environment_that_was_reset_before_a_fork_says_so_and_begins_again() -> None:
    run_alone("""
env = airpace.gym.CongestionEnv("stationary-idle", set={"duration_s": 2})
env.reset(seed=1)
child = os.fork()
if child == 0:
    try:
        env.step(action)
    except RuntimeError as error:
        assert "forked" in str(error), error
        env.reset(seed=1)
        env.step(action)
        env.close()
        os._exit(0)
    os._exit(1)
_, status = os.waitpid(child, 0)
assert status == 0, status
env.step(action)
""")
