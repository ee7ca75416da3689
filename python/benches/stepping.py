"""Steps per second of the environments and of ns3-gym's design. Needs a release build, an idle machine and pyzmq.

python python/benches/stepping.py

ns3-gym (Gawłowicz and Zubow, MSWiM 2019) has one process per environment. At each step the simulator sends its state
to the agent over a ZeroMQ socket, as a protobuf message, and waits for the action in the same format. The stand-in in
this benchmark has the same design: a process with one of our simulators that communicates over ZeroMQ (REQ to the
agent's REP, TCP on this machine), with messages of the same structure as ns3-gym's. Both sides therefore simulate the
same, and the comparison covers only the exchange of steps with the agent.

The comparison covers neither ns-3, which needs additional time for a step, nor the code of ns3-gym, whose simulator
writes its messages in C++ (the stand-in does so in Python). The row `messages only` has a process without a simulator,
and measures the cost of the messages alone. Processor time is the sum over all processes and threads; load on the
machine changes it little.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import zmq
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from airpace import _airpace
from airpace.gym import CongestionEnv, CongestionVectorEnv

SCENARIO, RATE_MBPS, ROUNDS = "stationary-idle", 12.0, 5


class Cost(NamedTuple):
    """Cost of steps: steps per second, and processor time of all processes per step."""

    per_second: float
    processor_us: float


def messages() -> tuple[Any, Any]:
    """The two messages of a step: a box of floats in a container, with reward, end, reason and info."""
    file = descriptor_pb2.FileDescriptorProto(name="step.proto", package="step", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto

    def message(name: str, *fields: tuple[str, int, str | None, bool]) -> None:
        made = file.message_type.add(name=name)
        for number, (label, kind, of, is_list) in enumerate(fields, 1):
            made.field.add(
                name=label, number=number, type=kind, type_name=of,
                label=field.LABEL_REPEATED if is_list else field.LABEL_OPTIONAL,
            )  # fmt: skip

    message("Box", ("shape", field.TYPE_UINT32, None, True), ("values", field.TYPE_FLOAT, None, True))
    message("Container", ("kind", field.TYPE_INT32, None, False), ("data", field.TYPE_BYTES, None, False))
    message(
        "State", ("seen", field.TYPE_MESSAGE, ".step.Container", False), ("reward", field.TYPE_FLOAT, None, False),
        ("over", field.TYPE_BOOL, None, False), ("reason", field.TYPE_INT32, None, False),
        ("info", field.TYPE_STRING, None, False),
    )  # fmt: skip
    message("Act", ("action", field.TYPE_MESSAGE, ".step.Container", False), ("stop", field.TYPE_BOOL, None, False))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    classes = message_factory.GetMessageClassesForFiles(["step.proto"], pool)
    return classes, classes["step.Box"]


def boxed(container: Any, box: Any, values: npt.NDArray[np.float32]) -> None:  # noqa: ANN401 - made at run time
    """Serializes an array into a container."""
    inner = box(shape=values.shape, values=values.ravel())
    container.kind, container.data = 1, inner.SerializeToString()


def unboxed(container: Any, box: Any) -> npt.NDArray[np.float32]:  # noqa: ANN401
    """Returns the array of a container."""
    inner = box.FromString(container.data)
    return np.array(inner.values, dtype=np.float32).reshape(tuple(inner.shape))


def environment(port: int, step_ms: float, duration_s: float, simulates: bool) -> None:
    """Main function of the process of one environment."""
    classes, box = messages()
    socket = zmq.Context().socket(zmq.REQ)
    socket.connect(f"tcp://127.0.0.1:{port}")
    one = np.ones(1, dtype=np.bool_)
    simulators = _airpace.Simulators(
        SCENARIO, count=1, flows=[0], set=[("duration_s", str(duration_s))], others="cubic", lever="rate", start=2.0,
        step_ms=step_ms,
    )  # fmt: skip
    seed = 0
    seen, over = simulators.reset(one, [seed])[0, 0], False
    while True:
        # The field `info` contains the processor time of this process.
        state = classes["step.State"](reward=float(seen[0]), over=over, info=str(time.process_time()))
        boxed(state.seen, box, seen)
        socket.send(state.SerializeToString())
        act = classes["step.Act"].FromString(socket.recv())
        if act.stop:
            return
        if not simulates:
            continue
        if over:
            seed += 1
            seen, over = simulators.reset(one, [seed])[0, 0], False
            continue
        action = unboxed(act.action, box)
        rows, ended, is_over = simulators.step(one, action.astype(np.float64))
        seen, over = rows[0, 0], bool(is_over[0] or ended.all())


def by_messages(count: int, steps: int, step_ms: float, duration_s: float, *, simulates: bool = True) -> Cost:
    """Measures `count` processes with one agent."""
    classes, box = messages()
    context = zmq.Context()
    sockets, processes = [], []
    start = multiprocessing.get_context("spawn")
    for _ in range(count):
        socket = context.socket(zmq.REP)
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        process = start.Process(target=environment, args=(port, step_ms, duration_s, simulates), daemon=True)
        process.start()
        sockets.append(socket)
        processes.append(process)
    action = np.array([RATE_MBPS], dtype=np.float32)

    def step(stop: bool = False) -> float:
        spent = time.process_time()
        for socket in sockets:
            state = classes["step.State"].FromString(socket.recv())
            unboxed(state.seen, box)
            spent += float(state.info)
        for socket in sockets:
            act = classes["step.Act"](stop=stop)
            boxed(act.action, box, action)
            socket.send(act.SerializeToString())
        return spent

    for _ in range(10):
        spent = step()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    took = time.perf_counter() - begin
    spent = step(stop=True) - spent
    for process in processes:
        process.join()
    return Cost(count * steps / took, spent / (count * steps) * 1e6)


def here(count: int, steps: int, step_ms: float, duration_s: float) -> Cost:
    """Measures the native vector environment."""
    env = CongestionVectorEnv(count, SCENARIO, step_ms=step_ms, set={"duration_s": duration_s})
    env.reset(seed=0)
    actions = np.full((count, 1), RATE_MBPS, dtype=np.float32)
    for _ in range(10):
        env.step(actions)
    begin, spent = time.perf_counter(), time.process_time()
    for _ in range(steps):
        env.step(actions)
    took, spent = time.perf_counter() - begin, time.process_time() - spent
    return Cost(count * steps / took, spent / (count * steps) * 1e6)


def alone(steps: int, step_ms: float, duration_s: float) -> Cost:
    """Measures the Gymnasium environment."""
    env = CongestionEnv(SCENARIO, step_ms=step_ms, set={"duration_s": duration_s})
    env.reset(seed=0)
    action = np.array([RATE_MBPS], dtype=np.float32)
    begin, spent = time.perf_counter(), time.process_time()
    for _ in range(steps):
        if env.step(action)[3]:
            env.reset()
    took, spent = time.perf_counter() - begin, time.process_time() - spent
    return Cost(steps / took, spent / steps * 1e6)


def main() -> None:
    """Measures all variants in turn, several times; the best measurement of each counts."""
    for step_ms, duration_s, steps in ((50.0, 20.0, 2000), (10.0, 10.0, 5000)):
        rows: dict[str, Callable[[], Cost]] = {
            "CongestionEnv": partial(alone, steps, step_ms, duration_s),
            "stand-in, 1 process": partial(by_messages, 1, steps, step_ms, duration_s),
            "messages only, 1 process": partial(by_messages, 1, steps, step_ms, duration_s, simulates=False),
            "CongestionVectorEnv(8)": partial(here, 8, steps // 4, step_ms, duration_s),
            "stand-in, 8 processes": partial(by_messages, 8, steps // 4, step_ms, duration_s),
        }
        best = dict.fromkeys(rows, Cost(0.0, float("inf")))
        for _ in range(ROUNDS):
            for name, measure in rows.items():
                now, known = measure(), best[name]
                best[name] = Cost(max(now.per_second, known.per_second), min(now.processor_us, known.processor_us))
        print(f"{SCENARIO} at {RATE_MBPS:.0f} Mbit/s, a step of {step_ms:.0f} ms:")
        for name, cost in best.items():
            print(f"  {name:26} {cost.per_second:8.0f} steps/s {cost.processor_us:8.0f} µs of processor per step")


if __name__ == "__main__":
    main()
