from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

VERSION: str

class Table:
    """Rows and columns in Arrow's format.

    Every library that supports Arrow's PyCapsule interface reads a table without a copy: `polars.DataFrame(table)`,
    `pyarrow.table(table)`, `duckdb.sql("select … from table")`.
    """

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in order."""
    @property
    def num_rows(self) -> int:
        """Number of rows."""
    @property
    def nbytes(self) -> int:
        """Size of the rows in memory, in bytes."""
    def __len__(self) -> int: ...
    def __iter__(self) -> NoReturn: ...
    def __contains__(self, column: object) -> bool: ...
    def to_dict(self) -> dict[str, npt.NDArray[Any]]:
        """All columns as arrays, each like `table[column]`: for `pandas.DataFrame(table.to_dict())`."""
    def __getitem__(self, column: str) -> npt.NDArray[Any]:
        """A copy of a column as an array of shape (num_rows,).

        A column of numbers with missing values becomes an array of 64-bit floats, with NaN as the missing values. Text
        has dtype object.
        """
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

class Setup:
    """Parameters of one flow, from which its controller is made."""

    @property
    def mss_bytes(self) -> int:
        """Size of a full-sized packet on the wire, in bytes."""
    @property
    def seed(self) -> int:
        """Seed of this flow: the same in every run with the same seed of the run."""

class Sent:
    """A data packet left."""

    @property
    def now_ms(self) -> float:
        """Time of the departure by the sender's clock, in ms."""
    @property
    def number(self) -> int:
        """The packet number."""
    @property
    def bytes(self) -> int:
        """The packet's size on the wire, in bytes."""
    @property
    def inflight_bytes(self) -> int:
        """Bytes outstanding, this packet included."""
    @property
    def app_limited(self) -> bool:
        """Whether the application had no more data to send after this packet."""

class Ack:
    """An acknowledgement that acknowledged something new."""

    @property
    def now_ms(self) -> float:
        """Time at which the sender processed the ACK, by the sender's clock, in ms."""
    @property
    def packets(self) -> int:
        """Packets newly acknowledged; at least 1."""
    @property
    def largest(self) -> int:
        """The highest number of the packets newly acknowledged."""
    @property
    def acked_bytes(self) -> int:
        """Bytes newly acknowledged."""
    @property
    def prior_inflight_bytes(self) -> int:
        """Bytes outstanding before this ACK and before the losses that were detected with it."""
    @property
    def inflight_bytes(self) -> int:
        """Bytes outstanding after this ACK."""
    @property
    def delivered_bytes(self) -> int:
        """Bytes delivered over the connection's life, this ACK included."""
    @property
    def prior_delivered_bytes(self) -> int:
        """`delivered_bytes` when the packet of the delivery-rate sample was sent."""
    @property
    def next_number(self) -> int:
        """Next packet number to be sent: a round trip ends when a packet of at least this number is acknowledged."""
    @property
    def rtt_ms(self) -> float | None:
        """Round-trip time of this ACK, in ms; `None` if a packet with a higher number was acknowledged before."""
    @property
    def smoothed_rtt_ms(self) -> float:
        """Smoothed round-trip time, gain 1/8, in ms."""
    @property
    def rtt_variation_ms(self) -> float:
        """Mean deviation of the round-trip time, gain 1/4, in ms."""
    @property
    def min_rtt_ms(self) -> float:
        """Minimum round-trip time of the connection, in ms."""
    @property
    def delivery_rate_mbps(self) -> float | None:
        """Delivery-rate sample of this ACK, in Mbit/s; `None` if the ACK has no valid sample."""
    @property
    def app_limited(self) -> bool:
        """Whether the application had no more data to send when the sample's packet was sent."""
    @property
    def cwnd_limited(self) -> bool:
        """Whether the congestion window last stopped the sender, and not pacing, application or receiver."""
    @property
    def marked(self) -> int:
        """Packets that this ACK newly reports as marked by a queue (ECN)."""

class Loss:
    """Packets were declared lost."""

    @property
    def now_ms(self) -> float:
        """Time of the detection by the sender's clock, in ms."""
    @property
    def packets(self) -> int:
        """Number of lost packets; at least 1."""
    @property
    def largest(self) -> int:
        """The highest number of the lost packets."""
    @property
    def lost_bytes(self) -> int:
        """Bytes newly declared lost."""
    @property
    def prior_inflight_bytes(self) -> int:
        """Bytes outstanding before the loss was detected."""
    @property
    def inflight_bytes(self) -> int:
        """Bytes outstanding after the loss."""
    @property
    def next_number(self) -> int:
        """Next packet number to be sent: all packets with lower numbers left before this loss was detected."""
    @property
    def persistent(self) -> bool:
        """Whether all outstanding packets count as lost because no packet was acknowledged for a long period."""

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
def part(words: list[str]) -> int: ...
def emulate(
    scenario: str,
    command: list[str],
    *,
    set: list[tuple[str, str]],  # noqa: A002
    seed: int,
    out: Path,
    servers: list[str],
    on: list[tuple[int, str]],
    device: int,
    isolated: bool,
    seconds: float | None,
    reports: Path | None,
    od: Path | None,
    typed: str,
    python: str,
    module: str,
) -> tuple[Run, int | None, list[str], list[str]]: ...
def agree_emulator(
    scenario: str,
    *,
    set: list[tuple[str, str]],  # noqa: A002
    seed: int,
    out: Path,
    schedule: str,
    seconds: float | None,
    device: int | None,
    typed: str,
    python: str,
    module: str,
) -> tuple[Run, str, bool]: ...
def agree(
    scenario: str,
    *,
    schemes: list[str],
    transports: list[str],
    set: list[tuple[str, str]],  # noqa: A002
    seed: int,
    spread: int,
    again: int,
    out: Path,
    typed: str,
    progress: Callable[[float, int, int], object] | None,
    python: str,
    module: str,
) -> tuple[Run, str]: ...
def send(
    files: list[Path],
    host: str,
    *,
    key: str | None,
    key_file: Path | None,
    scheme: str,
    transport: str,
    patience_s: float,
    realtime: bool,
    progress: Callable[[float, int, int], object] | None,
) -> str: ...
def page(json: str) -> str: ...
def figures() -> list[str]: ...
def geometric_mean(ratios: list[float]) -> tuple[float, tuple[float, float] | None] | None: ...
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

def open_sweep(path: Path) -> tuple[Table, str]: ...
def experiments() -> list[tuple[str, str, str]]: ...

class Reproduction:
    def __init__(self, what: list[str], *, quick: bool, jobs: int | None, out: Path, command: str) -> None: ...
    @property
    def spec(self) -> str: ...
    def batch(self, first: int, count: int) -> list[int]: ...
    def progress(self) -> tuple[int, int, int]: ...
    def run(self, progress: Callable[[float, int, int], object] | None) -> None: ...
    def add(self, cells: list[int], lines: bytes) -> None: ...
    def fail(self, cell: int, reason: str) -> None: ...
    def finish(self) -> str: ...

class ReproductionPlan:
    def __init__(self, spec: str) -> None: ...
    def run(self, runs: list[int]) -> bytes: ...

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
