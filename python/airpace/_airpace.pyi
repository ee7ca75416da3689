from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    def __getitem__(self, column: str) -> npt.NDArray[Any]:
        """A column as an array of shape (num_rows,), copied.

        Where a column of numbers has gaps, the array has 64-bit floats, and NaN in the gaps. Text is of dtype
        object.
        """
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

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

def open(path: str | Path) -> Run: ...  # noqa: A001
def simulate(
    scenario: str,
    *,
    schemes: list[str],
    seeds: list[int],
    set: list[tuple[str, str]],  # noqa: A002
    jobs: int | None,
    tables: list[str],
    out: Path | None,
    qlog: bool,
    command: str,
    progress: Callable[[float, int, int], object] | None,
) -> Run: ...
def scenarios() -> list[tuple[str, str]]: ...
def schemes() -> list[tuple[str, str]]: ...
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
