from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

VERSION: str

class Table:
    """Rows and columns in Arrow's form.

    Every library that speaks Arrow's PyCapsule interface takes a table without a copy: `polars.DataFrame(table)`,
    `pyarrow.table(table)`, `duckdb.sql("select … from table")`.
    """

    @property
    def column_names(self) -> list[str]:
        """The columns' names, in their order."""
    @property
    def num_rows(self) -> int:
        """How many rows there are."""
    @property
    def nbytes(self) -> int:
        """Bytes of memory that the rows take."""
    def __len__(self) -> int: ...
    def __iter__(self) -> NoReturn: ...
    def __contains__(self, column: object) -> bool: ...
    def to_dict(self) -> dict[str, npt.NDArray[Any]]:
        """The columns as arrays, each as `table[column]` gives it: for `pandas.DataFrame(table.to_dict())`."""
    def __getitem__(self, column: str) -> npt.NDArray[Any]:
        """A column as an array of shape (num_rows,), copied.

        Where a column of numbers has gaps, the array has 64-bit floats, and NaN in the gaps. Text is of dtype
        object.
        """
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

class Setup:
    """What a flow's controller is made from."""

    @property
    def mss_bytes(self) -> int:
        """Bytes of a full-sized packet on the wire."""
    @property
    def seed(self) -> int:
        """A seed of the flow's own: the same in every run with the run's seed."""

class Sent:
    """A data packet left."""

    @property
    def now_ms(self) -> float:
        """When, by the sender's clock, in ms."""
    @property
    def number(self) -> int:
        """The packet's number."""
    @property
    def bytes(self) -> int:
        """The packet's size."""
    @property
    def inflight_bytes(self) -> int:
        """Bytes outstanding, this packet included."""
    @property
    def app_limited(self) -> bool:
        """Whether the application had no more to send after it."""

class Ack:
    """An acknowledgement that acknowledged something new."""

    @property
    def now_ms(self) -> float:
        """When it was processed, by the sender's clock, in ms."""
    @property
    def packets(self) -> int:
        """Packets newly acknowledged; at least 1."""
    @property
    def largest(self) -> int:
        """The highest of their numbers."""
    @property
    def acked_bytes(self) -> int:
        """Their bytes."""
    @property
    def prior_inflight_bytes(self) -> int:
        """Bytes outstanding before this ACK, and before the losses that it showed."""
    @property
    def inflight_bytes(self) -> int:
        """Bytes outstanding afterwards."""
    @property
    def delivered_bytes(self) -> int:
        """Bytes delivered over the connection's life, this ACK included."""
    @property
    def prior_delivered_bytes(self) -> int:
        """`delivered_bytes` when the packet was sent that gave the delivery rate."""
    @property
    def next_number(self) -> int:
        """The next packet's number: a round trip is over when a packet of at least this number is acknowledged."""
    @property
    def rtt_ms(self) -> float | None:
        """The round-trip time of this ACK, in ms; `None` if its highest packet is not the highest so far."""
    @property
    def smoothed_rtt_ms(self) -> float:
        """Smoothed round-trip time, gain 1/8, in ms."""
    @property
    def rtt_variation_ms(self) -> float:
        """Its mean deviation, gain 1/4, in ms."""
    @property
    def min_rtt_ms(self) -> float:
        """The least of the connection, in ms."""
    @property
    def delivery_rate_mbps(self) -> float | None:
        """The delivery rate's sample, in Mbit/s; `None` if there is no valid one."""
    @property
    def app_limited(self) -> bool:
        """Whether the application had no more to send when the sample's packet was sent."""
    @property
    def cwnd_limited(self) -> bool:
        """Whether the window was what last kept the sender from sending."""
    @property
    def marked(self) -> int:
        """Packets that this ACK is the first to report as marked by a queue (ECN)."""

class Loss:
    """Packets were declared lost."""

    @property
    def now_ms(self) -> float:
        """When, by the sender's clock, in ms."""
    @property
    def packets(self) -> int:
        """How many; at least 1."""
    @property
    def largest(self) -> int:
        """The highest of their numbers."""
    @property
    def lost_bytes(self) -> int:
        """Their bytes."""
    @property
    def prior_inflight_bytes(self) -> int:
        """Bytes outstanding before the loss was seen."""
    @property
    def inflight_bytes(self) -> int:
        """Bytes outstanding afterwards."""
    @property
    def next_number(self) -> int:
        """The next packet's number: packets below it left before this loss was seen."""
    @property
    def persistent(self) -> bool:
        """Whether nothing was acknowledged for so long that all outstanding packets count as lost."""

class Run:
    def table(self, name: str) -> Table: ...
    @property
    def table_names(self) -> list[str]: ...
    @property
    def summary(self) -> Table: ...
    @property
    def folder(self) -> Path | None: ...
    @property
    def all_expectations_met(self) -> bool: ...
    def json(self) -> str: ...
    def manifest_json(self) -> str | None: ...
    def figures_json(self, only: list[str]) -> str: ...

def open(path: str | Path) -> Run: ...  # noqa: A001
def simulate(
    scenario: str,
    *,
    schemes: list[tuple[str, Callable[[Setup], object] | None]],
    seeds: list[int],
    set: list[tuple[str, str]],  # noqa: A002
    jobs: int | None,
    tables: list[str],
    out: Path | None,
    qlog: bool,
    command: str,
    progress: Callable[[float, int, int], object] | None,
) -> Run: ...
def page(json: str) -> str: ...
def figures() -> list[str]: ...
def scenarios() -> list[tuple[str, str]]: ...
def schemes() -> list[tuple[str, str]]: ...

class SweepSession:
    def __init__(
        self,
        what: str,
        *,
        set: list[tuple[str, str | list[str]]],  # noqa: A002
        schemes: list[str],
        seeds: list[int] | None,
        jobs: int | None,
        out: Path | None,
        command: str,
    ) -> None: ...
    @property
    def spec(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    def batch(self, first: int, count: int) -> list[int]: ...
    def progress(self) -> tuple[int, int, int]: ...
    def run(self, progress: Callable[[float, int, int], object] | None) -> None: ...
    def add(self, cells: list[int], lines: bytes) -> None: ...
    def fail(self, cell: int, reason: str) -> None: ...
    def finish(self) -> None: ...
    def close(self) -> None: ...

class SweepPlan:
    def __init__(self, spec: str) -> None: ...
    def run(self, cells: list[int]) -> bytes: ...

def in_python(text: str) -> str: ...
def open_sweep(path: Path) -> tuple[Table, str]: ...

class Simulators:
    def __init__(
        self,
        scenario: str,
        *,
        count: int,
        flows: list[int] | None,
        set: list[tuple[str, str]],  # noqa: A002
        others: str,
        lever: str,
        start: float,
        step_ms: float,
    ) -> None: ...
    @property
    def labels(self) -> list[str]: ...
    def reset(self, mask: npt.NDArray[np.bool_], seeds: list[int]) -> npt.NDArray[np.float32]: ...
    def step(
        self, mask: npt.NDArray[np.bool_], actions: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]: ...
    def close(self) -> None: ...

def decode(
    samples: npt.NDArray[np.complex64],
    rate_hz: float,
    *,
    pci: int | None,
    patience_ms: int,
) -> tuple[Table, str | None]: ...
def diag(paths: list[Path], *, kpis: list[str], radio: int) -> tuple[Table, list[str]]: ...
def bandwidth(paths: list[Path], *, every_ms: int) -> tuple[Table, list[str]]: ...
def kpis() -> list[tuple[str, str, str]]: ...
def capacity(
    own_prbs: npt.NDArray[np.float64],
    used_prbs: npt.NDArray[np.float64],
    carrier_prbs: npt.NDArray[np.float64],
    users: npt.NDArray[np.float64],
    bits_per_prb: npt.NDArray[np.float64],
    sinr_db: npt.NDArray[np.float64],
    block_bits: npt.NDArray[np.float64],
    overhead: float,
) -> tuple[
    npt.NDArray[np.float64],
    npt.NDArray[np.float64],
    npt.NDArray[np.float64],
    npt.NDArray[np.float64],
    npt.NDArray[np.float64],
]: ...
def lte_tbs(
    i_tbs: npt.NDArray[np.int64],
    n_prb: npt.NDArray[np.int64],
    layers: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]: ...
def lte_mcs_tbs(
    mcs: npt.NDArray[np.int64],
    n_prb: npt.NDArray[np.int64],
    layers: npt.NDArray[np.int64],
    table: str,
) -> npt.NDArray[np.int64]: ...
def nr_mcs_tbs(
    mcs: npt.NDArray[np.int64],
    n_prb: npt.NDArray[np.int64],
    symbols: npt.NDArray[np.int64],
    dmrs_res_per_prb: npt.NDArray[np.int64],
    overhead_res_per_prb: npt.NDArray[np.int64],
    layers: npt.NDArray[np.int64],
    table: str,
) -> npt.NDArray[np.int64]: ...
