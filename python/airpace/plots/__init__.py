"""Figures of the report and of the papers for print, drawn with matplotlib.

>>> import airpace, airpace.plots
>>> run = airpace.simulate("competitor", schemes=["pbe", "bbr", "cubic"], seeds=range(1, 4))
>>> airpace.plots.throughput_delay(run).save("competitor.pdf")

| figure | contents |
| --- | --- |
| `throughput_delay` | throughput against the 95th percentile of one-way delay, per scheme over all seeds |
| `order_statistics` | percentiles of throughput per 100 ms, and of one-way delay |
| `over_time` | throughput, queueing delay and state of the controller over time |
| `delay_cdf` | the distribution of one-way delay |
| `fairness` | Jain's index per second |
| `estimate` | a scheme's estimate of the rate, against the capacity of the cell |
| `prb_share`, `prb_map` | the users that received the PRBs of the cell |
| `granted` | the bandwidth that a modem's log reports; takes a table of `airpace.bandwidth` instead of a run |

Colours, markers and all values come from the run, and are those of its `report.html`. This module computes no values.
Curves over time are those of the first seed, as on that page. The width of a figure is `column` (3.33 inches), `page`
(7 inches), or a number of inches. Its `save` writes vector graphics with embedded fonts (Type 42). A notebook displays
a figure directly. All functions take

- `scenario`: the name of the scenario, if the run has several,
- `schemes`: the schemes of the run to draw,
- `width`, and `height` in inches.
"""

try:
    import matplotlib as _matplotlib
except ImportError as error:
    raise ImportError("airpace.plots needs matplotlib: pip install 'matplotlib>=3.8'") from error

from airpace.plots._cell import prb_map, prb_share
from airpace.plots._compare import delay_cdf, fairness, order_statistics, throughput_delay
from airpace.plots._course import estimate, over_time
from airpace.plots._granted import granted
from airpace.plots._look import STYLE, WIDTHS, Drawing

__all__ = [
    "STYLE",
    "WIDTHS",
    "Drawing",
    "delay_cdf",
    "estimate",
    "fairness",
    "granted",
    "order_statistics",
    "over_time",
    "prb_map",
    "prb_share",
    "throughput_delay",
]

del _matplotlib
