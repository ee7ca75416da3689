"""Congestion control over cellular networks.

>>> import airpace
>>> run = airpace.simulate("stationary-idle", schemes=["pbe", "bbr"], seeds=range(1, 3))
>>> run.summary["throughput_mbps"]     # a NumPy array; or pl.DataFrame(run.summary)

| task | function, class or module |
| --- | --- |
| run schemes in a scenario | `simulate` |
| run programs on an emulated network | `emulate` |
| compare schemes over real transports with the simulator | `agree` |
| compare the emulator with the simulator | `agree_emulator` |
| send files with a scheme | `send` |
| sweep keys, schemes and seeds, here or on a cluster | `sweep` |
| compare two schemes pair by pair, with an interval | `Run.ratio`, `Sweep.ratio` |
| repeat the papers' experiments | `reproduce`; `experiments` names them |
| open a run folder of `airpace sim` | `open` |
| write a congestion control | subclass `Controller`, pass the class to `simulate` |
| train an agent; several agents at once | `airpace.gym`; `airpace.zoo` |
| draw figures for print | `airpace.plots` |
| show the report's figures in a notebook | `Run.show`, `widget` |
| decode the grants in radio samples | `decode` |
| read KPIs and granted bandwidth from a modem's log | `diag`, `bandwidth` |
| compute PBE-CC's capacity, Eq. 1 to 5 | `capacity` |
| compute sizes of transport blocks | `lte_tbs`, `lte_mcs_tbs`, `nr_mcs_tbs` |

Invalid arguments raise `ValueError`, files that cannot be read or written `OSError`, failed runs `RuntimeError`.
Each message names the remedy.
"""

from airpace._airpace import VERSION, Ack, Loss, Sent, Setup, Table
from airpace._controller import Agent, Control, Controller
from airpace._decode import decode
from airpace._diag import bandwidth, diag, kpis
from airpace._lab import Agreed, Comparison, Emulated, agree, agree_emulator, emulate
from airpace._radio import Capacity, capacity, lte_mcs_tbs, lte_tbs, nr_mcs_tbs
from airpace._ratio import Ratio
from airpace._reproduce import Reproduced, experiments, reproduce
from airpace._run import Run, open  # noqa: A004 - the name is `airpace.open`, as in `gzip.open`
from airpace._send import send
from airpace._simulate import Scheme, Value, scenarios, schemes, simulate
from airpace._sweep import Sweep, open_sweep, sweep
from airpace._widget import figures, widget

__version__ = VERSION

__all__ = [
    "Ack",
    "Agent",
    "Agreed",
    "Capacity",
    "Comparison",
    "Control",
    "Controller",
    "Emulated",
    "Loss",
    "Ratio",
    "Reproduced",
    "Run",
    "Scheme",
    "Sent",
    "Setup",
    "Sweep",
    "Table",
    "Value",
    "__version__",
    "agree",
    "agree_emulator",
    "bandwidth",
    "capacity",
    "decode",
    "diag",
    "emulate",
    "experiments",
    "figures",
    "kpis",
    "lte_mcs_tbs",
    "lte_tbs",
    "nr_mcs_tbs",
    "open",
    "open_sweep",
    "reproduce",
    "scenarios",
    "schemes",
    "send",
    "simulate",
    "sweep",
    "widget",
]
