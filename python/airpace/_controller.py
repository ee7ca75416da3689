"""Congestion controls written in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from airpace._airpace import Ack, Loss, Sent, Setup
from airpace._arguments import number


class Control(NamedTuple):
    """How much may be outstanding, and how fast it may leave."""

    #: Congestion window: the most bytes outstanding. Less than a packet counts as one.
    cwnd_bytes: float
    #: Rate that the pacer obeys, in Mbit/s. With `None` a packet leaves whenever the window has room.
    pacing_mbps: float | None = None


#: What an agent may set: the least and the largest value if nothing else is said, and the one at the start.
ACTIONS = {"rate": (0.1, 200.0, 2.0), "window": (1.0, 5000.0, 10.0)}


def bounds_of(action: str, most: float | None, step_ms: float) -> tuple[float, float, float]:
    """The least action, the largest, and that at the start. What cannot be is refused."""
    if not isinstance(action, str) or action not in ACTIONS:
        raise ValueError(f"action={action!r}: give 'rate' or 'window'")
    least, usual, start = ACTIONS[action]
    high = usual if most is None else number("most", most)
    if not least < high < 1e7:
        raise ValueError(f"most={most}: give more than {least} and less than 1e7")
    if not 1 <= number("step_ms", step_ms) <= 10_000:
        raise ValueError(f"step_ms={step_ms}: give 1 to 10000")
    return least, high, start


class Agent:
    """What an agent learned, as a scheme beside the others: `schemes=[("learned", lambda setup: Agent(policy))]`.

    It is asked at every step, and sees then, as in the environments of `airpace.gym`: the same seed gives the same
    observations there and here.
    """

    def __init__(
        self,
        policy: Callable[[Any], float],
        *,
        action: str = "rate",
        most: float | None = None,
        step_ms: float = 50.0,
    ) -> None:
        """Makes the agent of one flow.

        Args:
            policy: From an observation of shape (8,), as `airpace.gym` describes it, to a rate or a window.
            action: `rate` in Mbit/s, or `window` in packets.
            most: The largest action; 200 Mbit/s or 5000 packets if not given.
            step_ms: How long an action holds, in simulated milliseconds, 1 to 10000.
        """
        if not callable(policy):
            raise ValueError(f"{policy!r} is no policy; give a function from an observation to a rate or a window")
        self._least, self._most, self._start = bounds_of(action, most, step_ms)
        self._policy, self._action, self._step_ms = policy, action, float(step_ms)

    def _ask(self, seen: Any) -> float:  # noqa: ANN401 - NumPy is imported where it is used
        answer: Any = self._policy(seen)
        try:
            # An array of one, as the environments take it, is a number too.
            value = float(answer.item() if hasattr(answer, "item") else answer)
        except (TypeError, ValueError) as wrong:
            raise ValueError(f"the policy returned {answer!r}; give a number, or an array of one") from wrong
        if value != value:
            raise ValueError("the policy returned NaN; give a rate or a window")
        return min(max(value, self._least), self._most)

    def _steering(self) -> tuple[Callable[[Any], float], str, float, float]:
        """What the simulator asks, and when."""
        return self._ask, self._action, self._step_ms, self._start


class Controller:
    """The sender's half of a congestion control.

    Derive a class and give it to `simulate` beside names of schemes. Each flow has a controller of its own. Before the
    runs, `simulate` makes one more of each class, and asks it once for the names of `inspect`. A controller has no
    clock but the events' `now_ms`, and its random numbers come from `setup.seed`, so that runs can be repeated. At one
    instant, `on_loss` comes before `on_ack`. After each event `control` is asked.
    """

    def __init__(self, setup: Setup) -> None:
        """Makes the controller of one flow."""
        self.setup = setup

    def on_ack(self, ack: Ack) -> None:
        """An acknowledgement acknowledged at least one new packet."""
        raise NotImplementedError(f"{type(self).__name__} has no on_ack; every controller needs one")

    def on_loss(self, loss: Loss) -> None:
        """Packets were declared lost."""
        raise NotImplementedError(f"{type(self).__name__} has no on_loss; every controller needs one")

    def control(self) -> Control:
        """The window and the rate from now on."""
        raise NotImplementedError(f"{type(self).__name__} has no control; every controller needs one")

    def on_sent(self, sent: Sent) -> None:
        """A data packet left. It costs nothing if it is not overridden."""

    def on_timer(self, now_ms: float) -> None:
        """The time of `next_timer` has come."""

    def next_timer(self) -> float | None:
        """When to call `on_timer`, in milliseconds as `now_ms`; asked after every event."""
        return None

    def state(self) -> str:
        """The state in a word, for tables and plots."""
        return "Own"

    def inspect(self) -> Mapping[str, float]:
        """Named values for the table `controller`: the same names at every call, each ending in its unit.

        They become columns of that table, whose own names cannot be used again: `time_ms`, `cwnd_bytes` and so on.
        """
        return {}

    def _hooks(self) -> tuple[Callable[..., Any] | None, ...]:
        """What the simulator calls; `None` for what is not overridden."""

        def own(name: str) -> Callable[..., Any] | None:
            is_own = getattr(type(self), name) is not getattr(Controller, name)
            return getattr(self, name) if is_own else None

        def look() -> tuple[str, Mapping[str, float]]:
            values = self.inspect()
            return self.state(), dict(values) if isinstance(values, Mapping) else values

        optional = (own("on_sent"), own("on_timer"), own("next_timer"))
        return (self.on_ack, self.on_loss, self.control, look, *optional)
