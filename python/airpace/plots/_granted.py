"""Figure of the bandwidth that the network granted, from a modem's log."""

from __future__ import annotations

import numpy as np
from matplotlib import rc_context

from airpace._airpace import Table
from airpace._arguments import whole
from airpace.plots._look import STYLE, Drawing, drawing, legend

#: By column of `airpace.bandwidth`: the name of its curve, its colour and its line.
WAYS = {
    "blocks_mbps": ("transport blocks", "#0072B2", "solid"),
    "granted_mbps": ("MAC's own sum", "#D55E00", "dashed"),
}


@rc_context(STYLE)
def granted(
    table: Table,
    *,
    radio: int = 1,
    width: str | float = "page",
    height: float | None = None,
) -> Drawing:
    """The bandwidth that the network granted a phone over time, in BISCAY's two ways, with a panel per direction.

    `table` is the result of `airpace.bandwidth`; `radio` is 1 for the first SIM, 2 for the second. A curve has gaps
    where the log has no packets of its kind.
    """
    of = whole("radio", radio, 1, 255, "1 for the first SIM's, 2 for the second's")
    its = table["radio"] == of
    directions = [name for name in ("down", "up") if np.any(its & (table["direction"] == name))]
    if not directions:
        raise ValueError(f"the table has no windows of radio {of}, so this figure would be empty")
    figure = drawing(width, 0.6 + 1.3 * len(directions) if height is None else height)
    panels = figure.subplots(len(directions), 1, sharex=True, squeeze=False)[:, 0]
    for axes, direction in zip(panels, directions, strict=True):
        rows = its & (table["direction"] == direction)
        begins = table["time_ms"][rows] / 1e3
        window = np.min(np.diff(begins)) if len(begins) > 1 else 0.1
        ends = begins + window
        is_last = np.append(begins[1:] > ends[:-1] + window / 2, True)
        times = np.column_stack([begins, ends, ends]).ravel()
        for column, (name, colour, line) in WAYS.items():
            values = table[column][rows].astype(float)
            if not np.all(np.isnan(values)):
                # Each value lasts for its window; the curve breaks where windows are missing.
                steps = np.column_stack([values, values, np.where(is_last, np.nan, values)]).ravel()
                axes.plot(times, steps, color=colour, linestyle=line, label=name)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(f"granted {direction}\n(Mbit/s)")
    panels[-1].set_xlabel("time (s)")
    legend(figure, grows=height is None)
    return figure
