"""The figures of the report and of the papers, for print: drawn by matplotlib.

>>> import airpace, airpace.plots
>>> run = airpace.simulate("competitor", schemes=["pbe", "bbr", "cubic"], seeds=range(1, 4))
>>> airpace.plots.throughput_delay(run).save("competitor.pdf")

| figure | what it shows |
| --- | --- |
| `throughput_delay` | throughput against the 95th percentile of one-way delay, each scheme over all seeds |
| `order_statistics` | percentiles of throughput per 100 ms, and of one-way delay |
| `over_time` | throughput, queueing delay and state of the controller over time |
| `delay_cdf` | the distribution of one-way delay |
| `fairness` | Jain's index per second |
| `estimate` | what a scheme believed, against what the cell could carry |
| `prb_share`, `prb_map` | who got the cell |
| `granted` | the bandwidth that a modem's log reports: of a table of `airpace.bandwidth`, not of a run |

Colours, markers and every number come from the run: they are those of its `report.html`. Nothing is computed here.
Curves over time are those of the first seed, as on that page. A figure is `column` or `page` wide, 3.33 or 7 inches, or
as many inches as you say. Its `save` writes vectors with fonts embedded (Type 42); a notebook shows it as it is. All
take

- `scenario`: its name, where the run has several,
- `schemes`: which of the run's schemes to draw,
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
