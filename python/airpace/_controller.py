"""Congestion controls written in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from airpace._airpace import Ack, Loss, Sent, Setup
from airpace._arguments import number


class Control(NamedTuple):
    """Congestion window and pacing rate."""

    #: Congestion window: maximum bytes outstanding. A window below one packet counts as one packet.
    cwnd_bytes: float
    #: Pacing rate in Mbit/s. `None` disables pacing: a packet leaves as soon as the window has room for it.
    pacing_mbps: float | None = None


#: By kind of action: minimum, default maximum, and initial value.
ACTIONS = {"rate": (0.1, 200.0, 2.0), "window": (1.0, 5000.0, 10.0)}


def bounds_of(action: str, most: float | None, step_ms: float) -> tuple[float, float, float]:
    """Minimum, maximum and initial action. Invalid arguments raise `ValueError`."""
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
    """A trained agent as a scheme: `schemes=[("learned", lambda setup: Agent(policy))]`.

    The policy is called at every step with the same observations as in the environments of `airpace.gym`: the same
    seed gives the same observations in both.
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
            policy: A function from an observation of shape (8,), described in `airpace.gym`, to a rate or a window.
            action: `rate` in Mbit/s, or `window` in packets.
            most: Maximum action; default 200 Mbit/s or 5000 packets.
            step_ms: Length of a step in simulated milliseconds, 1 to 10000; an action applies for one step.
        """
        if not callable(policy):
            raise ValueError(f"{policy!r} is no policy; give a function from an observation to a rate or a window")
        self._least, self._most, self._start = bounds_of(action, most, step_ms)
        self._policy, self._action, self._step_ms = policy, action, float(step_ms)

    def _ask(self, seen: Any) -> float:  # noqa: ANN401 - NumPy is imported where it is used
        answer: Any = self._policy(seen)
        try:
            # An array with one element, which the environments take as action, is valid too.
            value = float(answer.item() if hasattr(answer, "item") else answer)
        except (TypeError, ValueError) as wrong:
            raise ValueError(f"the policy returned {answer!r}; give a number, or an array of one") from wrong
        if value != value:
            raise ValueError("the policy returned NaN; give a rate or a window")
        return min(max(value, self._least), self._most)

    def _steering(self) -> tuple[Callable[[Any], float], str, float, float]:
        """Policy, kind of action, step length and initial action, for the simulator."""
        return self._ask, self._action, self._step_ms, self._start


class Controller:
    """The sender of a congestion control.

    Derive a class and pass it to `simulate` beside names of schemes. Each flow has a controller of its own. Before the
    runs, `simulate` makes an additional controller of each class, and calls it once for the names of `inspect`. The
    only clock of a controller is `now_ms` of the events, and its random numbers must come from `setup.seed`, so that
    runs can be repeated. At the same instant, `on_loss` is called before `on_ack`, and `control` after each event.
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
        """Returns the window and the pacing rate that apply from now on."""
        raise NotImplementedError(f"{type(self).__name__} has no control; every controller needs one")

    def on_sent(self, sent: Sent) -> None:
        """A data packet left. Without an override, this event takes no time."""

    def on_timer(self, now_ms: float) -> None:
        """The time that `next_timer` returned is reached."""

    def next_timer(self) -> float | None:
        """Returns the time for `on_timer`, in ms on the clock of `now_ms`, or `None`; called after every event."""
        return None

    def state(self) -> str:
        """Returns the name of the controller's state, for tables and plots."""
        return "Own"

    def inspect(self) -> Mapping[str, float]:
        """Returns named values for the table `controller`: the same names at every call, each ending in its unit.

        The values become columns of that table. Names of its built-in columns are refused: `time_ms`, `cwnd_bytes`
        and others.
        """
        return {}

    def _hooks(self) -> tuple[Callable[..., Any] | None, ...]:
        """The methods that the simulator calls; `None` in place of an optional method that is not overridden."""

        def own(name: str) -> Callable[..., Any] | None:
            is_own = getattr(type(self), name) is not getattr(Controller, name)
            return getattr(self, name) if is_own else None

        def look() -> tuple[str, Mapping[str, float]]:
            values = self.inspect()
            return self.state(), dict(values) if isinstance(values, Mapping) else values

        optional = (own("on_sent"), own("on_timer"), own("next_timer"))
        return (self.on_ack, self.on_loss, self.control, look, *optional)
