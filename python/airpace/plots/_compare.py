"""Figures that compare schemes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from matplotlib import rc_context

from airpace._run import Run
from airpace.plots._data import Scene, nothing
from airpace.plots._look import STYLE, Drawing, curve, drawing, grid, legend, logarithmic


@rc_context(STYLE)
def throughput_delay(
    run: Run,
    *,
    scenario: str | None = None,
    schemes: str | Iterable[str] | None = None,
    width: str | float = "column",
    height: float | None = None,
) -> Drawing:
    """Throughput against delay: up and to the right is better.

    Marker: means over seeds of throughput and of the 95th percentile of one-way delay. Bar: from the 25th to the 75th
    percentile of the throughput per 100 ms. Small points: single seeds. The first of several flows has large markers.
    """
    scene = Scene(run, scenario, schemes)
    greedy = {flow["flow"] for flow in scene.data["flows"] if flow["greedy"]}
    rows = [
        row for row in scene.data["rows"] if row["point"] and row["flow"] in greedy and row["scheme"] in scene.styles
    ]
    if not rows:
        raise nothing("flow that takes all it can get")
    figure = drawing(width, 2.4 if height is None else height)
    axes = figure.add_subplot()
    for row in rows:
        pen, point = scene.look.of_scheme(scene.styles[row["scheme"]]), row["point"]
        is_first = row["flow"] == rows[0]["flow"]
        x, y = point["one_way_delay_p95_ms"], point["throughput_mbps"]
        if point["p25_mbps"] is not None and point["p75_mbps"] is not None:
            axes.plot([x, x], [point["p25_mbps"], point["p75_mbps"]], color=pen.colour, alpha=0.3, linewidth=4)
        if row["seeds"] > 1:
            seeds = [(one["one_way_delay_p95_ms"], one["throughput_mbps"]) for one in row["points"]]
            axes.plot(*zip(*seeds, strict=True), linestyle="none", markersize=2.2, alpha=0.6, color=pen.colour,
                      marker=pen.marker, markeredgewidth=0)  # fmt: skip
        axes.plot([x], [y], linestyle="none", markersize=6.5 if is_first else 4.2, markeredgewidth=1.1,
                  label=row["scheme"] if is_first else None, **pen.markers("white"))  # fmt: skip
    delays = [one["one_way_delay_p95_ms"] for row in rows for one in row["points"]]
    logarithmic(axes, min(delays) / 1.25, max(delays) * 1.25)
    axes.invert_xaxis()
    axes.set_ylim(0, axes.get_ylim()[1] * 1.08)
    axes.set_xlabel("95th percentile of one-way delay (ms)")
    axes.set_ylabel("throughput (Mbit/s)")
    axes.annotate("better ↗", (1, 1), xycoords="axes fraction", ha="right", va="top", color=scene.look.muted)
    grid(axes, scene.look)
    legend(figure, grows=height is None)
    return figure


@rc_context(STYLE)
def order_statistics(
    run: Run,
    *,
    scenario: str | None = None,
    schemes: str | Iterable[str] | None = None,
    width: str | float = "column",
    height: float | None = None,
) -> Drawing:
    """Order statistics of the first seed, as in PBE-CC's Fig. 13 and 14, with one row per scheme and flow.

    Left: throughput per 100 ms, with whiskers from the 10th to the 90th percentile, a box from the 25th to the 75th,
    and a line at the median. Right: one-way delay, from the median (line) over the 95th percentile (marker) to the
    99th.
    """
    scene = Scene(run, scenario, schemes)
    rows = []
    for scheme in scene.schemes:
        its = next(
            one for one in run.to_dict()["runs"] if (one["scenario"], one["scheme"]) == (scene.data["name"], scheme)
        )
        rows += [(scheme, its["flows"][flow]) for flow in scene.flows]
    figure = drawing(width, 0.75 + 0.22 * len(rows) if height is None else height)
    left, right = figure.subplots(1, 2, sharey=True)
    for at, (scheme, flow) in enumerate(rows):
        pen = scene.look.of_scheme(scene.styles[scheme])
        rate, delay = flow["throughput_100ms"], flow["one_way_delay_ms"]
        if rate["p10"] is not None:
            left.plot([rate["p10"], rate["p90"]], [at, at], color=pen.colour, linewidth=0.9)
            left.barh(at, rate["p75"] - rate["p25"], left=rate["p25"], height=0.55, color=pen.colour, alpha=0.35)
            left.plot([rate["p50"]] * 2, [at - 0.275, at + 0.275], color=pen.colour, linewidth=1.6)
        if delay["p50"] is not None:
            right.plot([delay["p50"], delay["p99"]], [at, at], color=pen.colour, linewidth=0.9)
            right.plot([delay["p50"]] * 2, [at - 0.275, at + 0.275], color=pen.colour, linewidth=1.6)
            right.plot([delay["p95"]], [at], markersize=4.5, **pen.markers("white"))
    several = len(scene.flows) > 1
    names = [f"{scheme} · {flow['flow']}" if several else scheme for scheme, flow in rows]
    left.set_yticks(range(len(rows)), names)
    left.tick_params(axis="y", length=0)
    left.invert_yaxis()
    left.set_xlim(left=0)
    left.set_xlabel("Mbit/s per 100 ms")
    delays = [flow["one_way_delay_ms"][key] for _, flow in rows for key in ("p50", "p99")]
    known = [delay for delay in delays if delay]
    if known:
        logarithmic(right, min(known) / 1.2, max(known) * 1.2, most=4)
    right.set_xlabel("one-way delay (ms)")
    for axes in (left, right):
        axes.grid(axis="x", color=scene.look.faint)
    return figure


@rc_context(STYLE)
def delay_cdf(
    run: Run,
    *,
    scenario: str | None = None,
    schemes: str | Iterable[str] | None = None,
    flows: str | Iterable[str] | None = None,
    width: str | float = "column",
    height: float | None = None,
) -> Drawing:
    """Cumulative distribution of the one-way delay of delivered packets. `flows` are labels of flows."""
    scene = Scene(run, scenario, schemes, flows)
    courses = [course for course in scene.courses() if course["one_way_delay_cdf"]]
    if not courses:
        raise nothing("packet that was delivered")
    figure = drawing(width, 2.1 if height is None else height)
    axes = figure.add_subplot()
    for at, course in enumerate(courses):
        delays, parts = zip(*course["one_way_delay_cdf"], strict=True)
        curve(
            axes, scene.pen(course["scheme"], course["flow"]), delays, parts, (at, len(courses)), drawstyle="steps-post"
        )
    known = [delay for course in courses for delay, _ in course["one_way_delay_cdf"] if delay > 0]
    logarithmic(axes, min(known) / 1.1, max(known) * 1.1)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("one-way delay (ms)")
    axes.set_ylabel("part of packets")
    grid(axes, scene.look)
    legend(figure, grows=height is None)
    return figure


@rc_context(STYLE)
def fairness(
    run: Run,
    *,
    scenario: str | None = None,
    schemes: str | Iterable[str] | None = None,
    width: str | float = "column",
    height: float | None = None,
) -> Drawing:
    """Jain's index per second over the flows that are active together: solid lines for bytes, dotted lines for PRBs."""
    scene = Scene(run, scenario, schemes)
    courses = [course for course in scene.data["jain"] if course["scheme"] in scene.styles]
    if not courses:
        raise nothing("two flows that share")
    figure = drawing(width, 2.0 if height is None else height)
    axes = figure.add_subplot()
    directions = {flow["direction"] for flow in scene.data["flows"]}
    for course in courses:
        pen = scene.look.of_scheme(scene.styles[course["scheme"]])
        name = course["scheme"] if len(directions) == 1 else f"{course['scheme']}, {course['direction']}"
        for kind, line in (("bytes", "solid"), ("prbs", "dotted")):
            if course[kind]:
                times, values = steps_of(course[kind])
                label = name if kind == "bytes" else f"{name}: PRBs"
                axes.plot(times, values, color=pen.colour, linestyle=line, label=label, drawstyle="steps-post")
    lowest = min(axes.dataLim.y0, 0.5)
    axes.set_ylim(math.floor(lowest * 10) / 10, 1.01)
    axes.set_xlim(0, scene.data["duration_s"])
    axes.set_xlabel("time (s)")
    axes.set_ylabel("Jain's index")
    grid(axes, scene.look)
    legend(figure, grows=height is None)
    return figure


def steps_of(windows: list[dict[str, Any]]) -> tuple[list[float], list[float]]:
    """Steps of one second each, with a gap where fewer than two flows are active."""
    x: list[float] = []
    y: list[float] = []
    for window, after in zip(windows, [*windows[1:], None], strict=True):
        x.append(window["time_s"])
        y.append(window["jain"])
        if after is None or after["time_s"] != window["time_s"] + 1:
            x += [window["time_s"] + 1] * 2
            y += [window["jain"], math.nan]
    return x, y
