"""Figures over time."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from airpace._run import Run
from airpace.plots._data import Dict, Scene, nothing
from airpace.plots._look import HATCHES, STYLE, Drawing, Look, curve, drawing, grid, legend


@rc_context(STYLE)
def over_time(
    run: Run,
    *,
    scenario: str | None = None,
    schemes: str | Iterable[str] | None = None,
    flows: str | Iterable[str] | None = None,
    states: bool = True,
    width: str | float = "column",
    height: float | None = None,
) -> Drawing:
    """Throughput and the capacity of the last hop, the queueing delay, and each controller's state over time.

    The capacity is a grey area, or a dotted line per curve if the capacities of the curves differ. Ticks below the
    delay are packets dropped or lost. `flows` are labels of flows; default: all greedy flows. `states=False` omits the
    states.
    """
    scene = Scene(run, scenario, schemes, flows)
    courses = scene.courses()
    if not courses:
        raise nothing("course of these flows")
    ribbons = [course for course in courses if states and course["stays"]]
    heights = [1.25, 0.95] + ([0.17 * len(ribbons) + 0.05] if ribbons else [])
    figure = drawing(width, sum(heights) + 0.75 if height is None else height)
    panels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    rate, delay = panels[:2]
    ground(rate, scene, courses)
    for at, course in enumerate(courses):
        pen = scene.pen(course["scheme"], course["flow"])
        for axes, values in ((rate, course["throughput_mbps"]), (delay, course["queueing_delay_ms"])):
            curve(axes, pen, scene.times(values), values, (at, len(courses)))
        if course["dropped"]:
            dropped = [(interval + 0.5) * scene.data["interval_s"] for interval, _ in course["dropped"]]
            delay.plot(dropped, [0.0] * len(dropped), "|", color=pen.colour, markersize=5, clip_on=False)
    rate.set_ylabel("Mbit/s")
    delay.set_ylabel("queueing (ms)")
    for axes in (rate, delay):
        axes.set_ylim(bottom=0)
        grid(axes, scene.look)
    signs: list[Patch] = []
    if ribbons:
        last = panels[2]
        for at, course in enumerate(ribbons):
            for begin, end, state in course["stays"]:
                fill(last, scene.look, begin, end, at, course["states"][state])
        names = [scene.pen(course["scheme"], course["flow"]).name for course in ribbons]
        last.set_yticks(range(len(ribbons)), names)
        last.set_ylim(len(ribbons) - 0.5, -0.5)
        last.tick_params(axis="y", length=0)
        last.spines[["left"]].set_visible(False)
        known = dict.fromkeys(state for course in ribbons for state in course["states"])
        signs = [sign_of(scene.look, state) for state in known]
    panels[-1].set_xlim(0, scene.data["duration_s"])
    panels[-1].set_xlabel("time (s)")
    figure.align_ylabels([rate, delay])
    legend(figure, grows=height is None, below=signs)
    return figure


@rc_context(STYLE)
def estimate(
    run: Run,
    *,
    scenario: str | None = None,
    schemes: str | None = None,
    flows: str | Iterable[str] | None = None,
    width: str | float = "column",
    height: float | None = None,
) -> Drawing:
    """One scheme's estimates of the path's rate, against the capacity of the last hop.

    The lower panel has the distribution of each estimate's error, over all intervals of the run.
    """
    scene = Scene(run, scenario, schemes, flows)
    scheme = scene.one()
    courses = [course for course in scene.courses() if course["scheme"] == scheme and course["estimates"]]
    if not courses:
        raise nothing(f"estimate of a rate by `{scheme}`")
    figure = drawing(width, 3.4 if height is None else height)
    above, below = figure.subplots(2, 1, height_ratios=[1.3, 1])
    ground(above, scene, courses)
    at = 0
    for course in courses:
        for one in course["estimates"]:
            label = scene.data["flows"][course["flow"]]["flow"]
            name = one["words"] if len(courses) == 1 else f"{one['words']} · {label}"
            line = ("solid", "dashed", "dotted")[at % 3]
            colour = scene.look.palette(at)
            values = [float("nan") if mbps is None else mbps for mbps in one["mbps"]]
            above.plot(scene.times(values), values, color=colour, linestyle=line, label=name)
            if one["error_cdf"]:
                below.plot(*zip(*one["error_cdf"], strict=True), color=colour, linestyle=line, drawstyle="steps-post")
            at += 1
    above.set_ylim(bottom=0)
    above.set_xlim(0, scene.data["duration_s"])
    above.set_xlabel("time (s)")
    above.set_ylabel("Mbit/s")
    below.set_xlim(0, min(100, below.get_xlim()[1]))
    below.set_ylim(0, 1.02)
    below.set_xlabel("off by (%)")
    below.set_ylabel("part of intervals")
    for axes in (above, below):
        grid(axes, scene.look)
    legend(figure, grows=height is None)
    return figure


def ground(axes: Axes, scene: Scene, courses: list[Dict]) -> None:
    """Draws the capacity of the last hop for these flows, behind their curves.

    The capacity is one area, or a dotted line in the colour of each curve if the capacities differ: a competing flow
    leaves one scheme more than another, and each device has a channel of its own.
    """
    capacities = scene.capacities(courses)
    if len(capacities) > 1:
        for course, capacity in capacities:
            colour = scene.pen(course["scheme"], course["flow"]).colour
            axes.plot(
                scene.times(capacity), capacity, ":", color=colour, linewidth=0.7, label="capacity of each", zorder=1
            )
        return
    for _, capacity in capacities:
        axes.fill_between(
            scene.times(capacity), 0, capacity, facecolor=scene.look.capacity, edgecolor=scene.look.muted,
            linewidth=0.5, label="capacity", zorder=0,
        )  # fmt: skip


def fill(axes: Axes, look: Look, begin: float, end: float, row: int, state: str) -> None:
    """Draws an interval in which a controller is in one state."""
    colour, pattern = look.states[state]
    axes.barh(row, end - begin, left=begin, height=0.8, facecolor=colour, edgecolor=look.surface, linewidth=0,
              hatch=HATCHES.get(pattern))  # fmt: skip


def sign_of(look: Look, state: str) -> Patch:
    """The entry of a state in the legend."""
    colour, pattern = look.states[state]
    return Patch(facecolor=colour, edgecolor=look.surface, linewidth=0, hatch=HATCHES.get(pattern), label=state)
