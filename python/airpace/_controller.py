"""Congestion controls written in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from airpace._airpace import Ack, Loss, Sent, Setup


class Control(NamedTuple):
    """How much may be outstanding, and how fast it may leave."""

    #: Congestion window: the most bytes outstanding. Less than a packet counts as one.
    cwnd_bytes: float
    #: Rate that the pacer obeys, in Mbit/s. With `None` a packet leaves whenever the window has room.
    pacing_mbps: float | None = None


class Controller:
    """The sender's half of a congestion control.

    Derive a class and give it to `simulate` beside names of schemes. Each flow has a controller of its own. It has no
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
        """Named values for the table `controller`: the same names at every call, each ending in its unit."""
        return {}

    def _hooks(self) -> tuple[Callable[..., Any] | None, ...]:
        """What the simulator calls; `None` for what is not overridden."""

        def own(name: str) -> Callable[..., Any] | None:
            is_own = getattr(type(self), name) is not getattr(Controller, name)
            return getattr(self, name) if is_own else None

        def look() -> tuple[str, dict[str, float]]:
            return self.state(), dict(self.inspect())

        optional = (own("on_sent"), own("on_timer"), own("next_timer"))
        return (self.on_ack, self.on_loss, self.control, look, *optional)
