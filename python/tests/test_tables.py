"""Tables in other libraries. `.ci/python` runs these tests with the oldest supported versions and with the newest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import airpace

pl: Any = pytest.importorskip("polars")
pa: Any = pytest.importorskip("pyarrow")
pd: Any = pytest.importorskip("pandas")
duckdb: Any = pytest.importorskip("duckdb")

pytestmark = [
    # Old versions of polars warn that such a join takes longer.
    pytest.mark.filterwarnings("ignore:Local categoricals have different encodings"),
    # pandas 2.2.0 warns that it will need pyarrow.
    pytest.mark.filterwarnings("ignore:(?s).*Pyarrow will become a required dependency:DeprecationWarning"),
]


def frame_of_pandas(table: airpace.Table) -> Any:
    """Converts a table to pandas as in the guide, for old and new versions."""
    if hasattr(pd.DataFrame, "from_arrow"):
        return pd.DataFrame.from_arrow(table)
    return pd.DataFrame(table.to_dict())


def rows_of_polars(table: airpace.Table, columns: list[str]) -> list[Any]:
    return [*pl.DataFrame(table).select(columns).iter_rows()]


def rows_of_pyarrow(table: airpace.Table, columns: list[str]) -> list[Any]:
    return [*zip(*pa.table(table).select(columns).to_pydict().values(), strict=True)]


def rows_of_pandas(table: airpace.Table, columns: list[str]) -> list[Any]:
    return [*frame_of_pandas(table)[columns].itertuples(index=False, name=None)]


def rows_of_duckdb(rows: airpace.Table, columns: list[str]) -> list[Any]:
    return [*duckdb.sql(f"select {', '.join(columns)} from rows").fetchall()]


READERS: dict[str, Callable[[airpace.Table, list[str]], list[Any]]] = {
    "polars": rows_of_polars,
    "pyarrow": rows_of_pyarrow,
    "pandas": rows_of_pandas,
    "duckdb": rows_of_duckdb,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> airpace.Run:
    """Four runs with more rows than fit into one batch."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    return airpace.simulate("two-flows", schemes=["pbe", "bbr"], seeds=[1, 2], set={"duration_s": 12}, out=folder)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ["packets", "acks", "controller", "capacity"])
def test_every_reader_has_all_rows_with_their_own_words(run: airpace.Run, name: str, reader: str) -> None:
    table = run.table(name)
    words = [word for word in ("scheme", "flow_label", "fate", "state", "direction") if word in table]
    columns = ["seed", *words]
    arrays = [table[column].tolist() for column in columns]
    wanted = Counter(zip(*arrays, strict=True))
    assert {(key[0], key[1]) for key in wanted} == {(seed, scheme) for seed in (1, 2) for scheme in ("pbe", "bbr")}
    assert Counter(READERS[reader](table, columns)) == wanted


def test_a_run_has_more_than_one_batch(run: airpace.Run) -> None:
    assert len(run.packets) > 2 * 2**15
    is_first_read_only = tuple(int(part) for part in pl.__version__.split(".")[:2]) < (1, 10)
    chunks = pa.table(run.packets).column("scheme").num_chunks
    assert chunks == 1 if is_first_read_only else chunks > 4, "an old polars gets one batch"


def test_the_files_of_a_run_folder_have_the_same_words(run: airpace.Run) -> None:
    columns = ["seed", "scheme", "flow_label", "fate"]
    wanted = Counter(rows_of_pyarrow(run.packets, columns))
    assert run.folder is not None
    folder = run.folder / "packets"
    if int(pl.__version__.split(".")[0]) >= 2:  # earlier versions of polars refuse these files with an error
        of_polars = pl.read_parquet(folder, hive_partitioning=True).select(columns)
        assert Counter(of_polars.iter_rows()) == wanted
    files = f"read_parquet('{folder}/**/*.parquet', hive_partitioning=true)"
    assert Counter(duckdb.sql(f"select {', '.join(columns)} from {files}").fetchall()) == wanted


KEYS = ["scenario", "scheme", "seed", "flow", "flow_label"]


def joined_by_polars(packets: airpace.Table, summary: airpace.Table) -> int:
    return int(pl.DataFrame(packets).join(pl.DataFrame(summary), on=KEYS).height)


def joined_by_pyarrow(packets: airpace.Table, summary: airpace.Table) -> int:
    return int(pa.table(packets).join(pa.table(summary).select([*KEYS, "greedy"]), KEYS, join_type="inner").num_rows)


def joined_by_pandas(packets: airpace.Table, summary: airpace.Table) -> int:
    return len(frame_of_pandas(packets).merge(frame_of_pandas(summary), on=KEYS))


def joined_by_duckdb(packets: airpace.Table, summary: airpace.Table) -> int:
    sql = f"select count(*) from packets join summary using ({', '.join(KEYS)})"
    return int(duckdb.sql(sql).fetchall()[0][0])


@pytest.mark.parametrize("join", [joined_by_polars, joined_by_pyarrow, joined_by_pandas, joined_by_duckdb])
def test_a_table_of_events_is_joined_with_the_summary(
    run: airpace.Run, join: Callable[[airpace.Table, airpace.Table], int]
) -> None:
    packets = run.packets
    assert join(packets, run.summary) == len(packets), "every packet is of one row of the summary"


def test_a_name_means_the_same_in_all_tables(run: airpace.Run) -> None:
    types: dict[str, set[str]] = {}
    for table in (run.summary, *(run.table(name) for name in run.table_names)):
        for field in pa.schema(table):
            types.setdefault(field.name, set()).add(str(field.type))
    assert len(types["flow"]) == len(types["scheme"]) == len(types["flow_label"]) == 1, types
    wanted = {(flow, label) for flow, label in zip(run.summary["flow"], run.summary["flow_label"], strict=True)}
    assert {*rows_of_pyarrow(run.packets, ["flow", "flow_label"])} == wanted
