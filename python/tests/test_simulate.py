"""Running schemes from Python."""

from __future__ import annotations

import errno
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import airpace

SHORT: dict[str, Any] = {"duration_s": 2}


@pytest.fixture(scope="module")
def run() -> airpace.Run:
    """Two schemes and two seeds in a cell."""
    return airpace.simulate("stationary-idle", schemes=["pbe", "bbr"], seeds=[1, 2], set=SHORT)


def test_a_row_of_the_summary_is_a_flow_of_a_run(run: airpace.Run) -> None:
    summary = run.summary
    assert list(summary["scheme"]) == ["pbe", "pbe", "bbr", "bbr"]
    assert list(summary["seed"]) == [1, 2, 1, 2]
    numbers = run.to_dict()["runs"]
    throughput = [flow["throughput_mbps"] for run in numbers for flow in run["flows"]]
    assert list(summary["throughput_mbps"]) == throughput, "the table has the numbers of summary.json"
    assert summary["queueing_delay_ms.p95"][2] == numbers[2]["flows"][0]["queueing_delay_ms"]["p95"]
    assert np.isnan(summary["transfers.begun"]).all(), "flows without transfers have none"


def test_two_schemes_are_compared_seed_by_seed(run: airpace.Run) -> None:
    rates = run.summary["throughput_mbps"]
    two = run.ratio("bbr", "pbe")
    assert two.value == pytest.approx(np.sqrt(np.prod(rates[2:] / rates[:2])))
    assert two[1:] == (None, None, 2), "two pairs have no interval"
    more = airpace.simulate("stationary-busy", schemes=["pbe", "bbr"], seeds=range(1, 7), set=SHORT, tables=())
    delay = more.ratio("bbr", "pbe", "queueing_delay_ms.p95")
    assert delay.pairs == 6
    assert delay.low is not None
    assert delay.high is not None
    assert 1 < delay.low < delay.value < delay.high
    assert more.ratio("pbe", "bbr", "queueing_delay_ms.p95").value == pytest.approx(1 / delay.value)
    for mistake, named in [(("bbq", "pbe"), "bbr"), (("bbr", "pbe", "speed"), "throughput_mbps")]:
        with pytest.raises(ValueError, match=named):
            more.ratio(*mistake)
    with pytest.raises(ValueError, match="phone"):
        more.ratio("bbr", "pbe", flow="telephone")


def test_other_libraries_read_tables_where_they_lie(run: airpace.Run) -> None:
    packets = run.packets
    frame = pl.DataFrame(packets)
    assert frame.height == len(packets) > 1000
    assert frame.columns == packets.column_names
    assert frame["scheme"].unique().sort().to_list() == ["bbr", "pbe"]
    table = pa.table(packets)
    assert table.num_rows == frame.height
    assert pa.schema(packets).names == packets.column_names
    again = pa.table(run.packets)
    addresses = [it.column("sent_ms").chunk(0).buffers()[1].address for it in (table, again)]
    assert addresses[0] == addresses[1], "both readers look at the same bytes"


def test_rows_outlive_the_run() -> None:
    rows = pa.table(airpace.simulate("stationary-idle", schemes="cubic", set=SHORT).acks)
    assert rows.num_rows == len(rows.column("rtt_ms").to_pylist())


def test_columns_are_arrays(run: airpace.Run) -> None:
    packets = run.packets
    assert packets["number"].dtype == np.uint64
    assert packets["one_way_delay_ms"].dtype == np.float64
    assert set(packets["fate"]) <= {"delivered", "queue_full", "aqm", "wire_loss", "harq_failure", "pdcp_discard"}
    with pytest.raises(KeyError, match="there are flow, flow_label"):
        packets["delay"]


def test_only_tables_that_are_named_are_kept() -> None:
    run = airpace.simulate("stationary-idle", schemes="cubic", set=SHORT, tables=["acks"])
    assert len(run.acks) > 0
    with pytest.raises(ValueError, match="was not kept; name it"):
        run.table("packets")


def test_a_run_folder_is_that_of_the_program(tmp_path: Path) -> None:
    kept = airpace.simulate("stationary-idle", schemes="pbe", set=SHORT)
    written = airpace.simulate("stationary-idle", schemes="pbe", set=SHORT, out=tmp_path / "run")
    assert (tmp_path / "run/report.html").exists()
    opened = airpace.open(tmp_path / "run")
    assert opened.to_dict() == kept.to_dict() == written.to_dict()
    assert pl.DataFrame(opened.prbs).equals(pl.DataFrame(kept.prbs))
    manifest = opened.manifest
    assert manifest is not None
    assert manifest["complete"]
    assert manifest["command"] == "airpace sim stationary-idle --scheme pbe --seeds 1 --set duration_s=2"


SCENARIOS = ["competitor", "two-flows", "biscay-uplink", "short-flows", "trace"]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_results_are_those_of_the_program(scenario: str, program: Path, tmp_path: Path) -> None:
    same_results(scenario, program, tmp_path, {"duration_s": 6})


@pytest.mark.slow
@pytest.mark.parametrize("scenario", sorted(airpace.scenarios()))
def test_all_results_are_those_of_the_program(scenario: str, program: Path, tmp_path: Path) -> None:
    same_results(scenario, program, tmp_path, {})


def same_results(scenario: str, program: Path, folder: Path, sets: dict[str, Any]) -> None:
    """Runs a scenario with seed 1 by the program and here, and compares every number and row."""
    if scenario == "trace":
        made = folder / "made.down"
        words = [str(program), "trace", "synth", "--mean-mbps", "12", "--seconds", "20", "--out", str(made)]
        subprocess.run(words, check=True, capture_output=True)
        sets = {**sets, "trace": str(made)}
    words = [str(program), "sim", scenario, "--quiet", "--out", str(folder / "run")]
    for key, value in sets.items():
        words += ["--set", f"{key}={value}"]
    ended = subprocess.run(words, check=False, capture_output=True, text=True, cwd=folder)
    assert ended.returncode in (0, 1), ended.stderr
    theirs = airpace.open(folder / "run")
    ours = airpace.simulate(scenario, set=sets)
    assert ours.to_dict() == json.loads((folder / "run/summary.json").read_text())
    for name in ours.table_names:
        if name != "departures":
            mine, other = (pl.DataFrame(run.table(name)) for run in (ours, theirs))
            assert mine.equals(other), f"{scenario}: table {name} differs"
            assert mine.height > 0 or name in ("losses", "prbs"), f"{name} is empty"


def test_the_parquet_files_of_a_folder_are_its_tables(tmp_path: Path) -> None:
    run = airpace.simulate("two-flows", schemes=["pbe", "cubic"], set={"duration_s": 6}, out=tmp_path / "run")
    parquet = pl.read_parquet(tmp_path / "run/packets", hive_partitioning=True)
    ours = pl.DataFrame(run.packets)
    assert parquet.height == ours.height
    key = ["scheme", "flow", "number", "sent_ms"]
    both = [frame.with_columns(pl.col("scheme").cast(pl.String)).select(*key).sort(*key) for frame in (parquet, ours)]
    assert both[0].equals(both[1])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"scenario": "competitr"}, "did you mean `competitor`"),
        ({"scenario": "competitor", "schemes": "pb"}, "did you mean `pbe`"),
        ({"scenario": "competitor", "schemes": ["pbe", "pbe"]}, "named twice"),
        ({"scenario": "competitor", "set": {"cell.prb": 50}}, "did you mean `cell.prbs`"),
        ({"scenario": "competitor", "set": {"cell.prbs": object()}}, "cannot be set to a object"),
        ({"scenario": "competitor", "seeds": []}, "no seed"),
        ({"scenario": "competitor", "seeds": -1}, "is no seed"),
        ({"scenario": "competitor", "seeds": [1.5]}, r"^1\.5 is no seed; give whole numbers"),
        ({"scenario": "competitor", "seeds": 1.5}, "is no seed"),
        ({"scenario": "competitor", "seeds": "12"}, "^'12' is no seed"),
        ({"scenario": "competitor", "seeds": True}, "is no seed"),
        ({"scenario": "competitor", "seeds": None}, "is no seed"),
        ({"scenario": "competitor", "seeds": [2**64]}, "is no seed"),
        ({"scenario": "competitor", "tables": ["packet"]}, "there are packets"),
        ({"scenario": "competitor", "tables": None}, "^tables=None: give names of packets, acks"),
        ({"scenario": "competitor", "tables": [1]}, "^tables: 1 is no name"),
        ({"scenario": "competitor", "jobs": 0}, "1 to 1024"),
        ({"scenario": "competitor", "jobs": 1.5}, r"^jobs=1\.5: give a whole number"),
        ({"scenario": "competitor", "qlog": True}, "out=FOLDER"),
        ({"scenario": "competitor", "set": ["cell.prbs=50"]}, "^set=.*give a dict of keys and values"),
        ({"scenario": "competitor", "set": {5: 50}}, "^set: 5 is no key"),
        ({"scenario": "competitor", "schemes": 5}, "^schemes=5: give names of airpace.schemes"),
        ({"scenario": "competitor", "set": {"cell.prbs": [25, 50]}}, "several values of a key are for airpace.sweep"),
        ({"scenario": "competitor", "set": {"cell.prbs": np.array([25, 50])}}, "for airpace.sweep"),
        ({"scenario": "competitor", "tables": ["departures"]}, "no table is called `departures`; there are packets"),
        ({"scenario": 5}, "^scenario=5: give a name of airpace.scenarios"),
        ({"scenario": "competitor", "out": 5}, "^out=5: give a path"),
        ({"scenario": "competitor", "progress": "yes"}, "^progress='yes': give True, False, or a function"),
    ],
)
def test_wrong_arguments_say_what_to_do(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        airpace.simulate(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"scenario": "nowhere"},
        {"scenario": "trace"},
        {"scenario": "competitor", "schemes": "fastest"},
        {"scenario": "competitor", "set": {"cell.prbs": 49}},
        {"scenario": "competitor", "out": "occupied"},
        {"scenario": "competitor", "out": "/proc/nothing"},
    ],
)
def test_errors_speak_of_python_and_not_of_the_program(
    arguments: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("occupied").mkdir()
    Path("occupied/mine.txt").write_text("mine")
    with pytest.raises((ValueError, OSError)) as raised:
        airpace.simulate(**arguments)
    said = str(raised.value)
    assert "--" not in said, said
    assert "airpace list" not in said, said
    with pytest.raises(OSError, match=r"as made by `airpace\.simulate` with `out`\?"):
        airpace.open("occupied")


def test_schemes_and_seeds_may_be_what_numpy_and_people_have() -> None:
    run = airpace.simulate(
        "stationary-idle", schemes="reno", seeds=np.int64(3), set={"duration_s": 0.5}, jobs=np.int8(1)
    )
    assert list(run.summary["seed"]) == [3]
    several = np.array([4, 5], dtype=np.uint16)
    run = airpace.simulate("stationary-idle", schemes="reno", seeds=several, set={"duration_s": 0.5}, tables="acks")
    assert list(run.summary["seed"]) == [4, 5]
    assert len(run.acks) > 0, "one table needs no list"
    run = airpace.simulate("stationary-idle", schemes=None, set={"duration_s": 0.2}, tables=())
    assert "pbe" in run.summary["scheme"], "without schemes, those of the scenario"


def test_a_file_may_be_named_by_a_path(tmp_path: Path, program: Path) -> None:
    made = tmp_path / "12"
    words = [str(program), "trace", "synth", "--mean-mbps", "12", "--seconds", "2", "--out", str(made)]
    subprocess.run(words, check=True, capture_output=True)
    run = airpace.simulate("trace", schemes="reno", set={"trace": made, "duration_s": 1, "about": "é🙂"}, tables=())
    assert run.summary["throughput_mbps"][0] > 0


def test_a_table_is_not_read_row_by_row(run: airpace.Run) -> None:
    with pytest.raises(TypeError, match=r"pandas\.DataFrame\(table\.to_dict\(\)\)"):
        iter(run.packets)
    columns = run.summary.to_dict()
    assert list(columns) == run.summary.column_names
    assert columns["throughput_mbps"].tolist() == run.summary["throughput_mbps"].tolist()
    with pytest.raises(TypeError, match="columns, read by their names: scenario, scheme"):
        run.summary[0]  # type: ignore[index]
    with pytest.raises(ValueError, match="that of emulated runs"):
        run.table("departures")
    assert "throughput_mbps" in run.summary
    assert "throughput" not in run.summary


def test_pandas_takes_tables(run: airpace.Run) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    with pytest.raises(TypeError, match="from_arrow"):
        pandas.DataFrame(run.summary)
    frame = pandas.DataFrame(run.packets.to_dict())
    assert len(frame) == len(run.packets)
    assert frame["scheme"].unique().tolist() == ["pbe", "bbr"]
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert pandas.DataFrame.from_arrow(run.packets)["sent_ms"].tolist() == frame["sent_ms"].tolist()


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="is this a run folder"):
        airpace.open(tmp_path)


def test_values_of_keys_are_those_of_python() -> None:
    run = airpace.simulate("stationary-idle", schemes="reno", set={"duration_s": np.float64(0.5), "name": "mine"})
    assert run.to_dict()["runs"][0]["scenario"] == "mine"
    assert run.to_dict()["runs"][0]["duration_s"] == 0.5


def test_progress_is_told_to_the_end() -> None:
    told: list[tuple[float, int, int]] = []
    airpace.simulate("stationary-idle", schemes="reno", seeds=[1, 2], set=SHORT, progress=lambda *at: told.append(at))
    assert told[-1] == (1.0, 2, 2)


def test_an_error_in_the_callers_progress_stops_the_runs() -> None:
    def refuse(share: float, ended: int, runs: int) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        airpace.simulate("stationary-idle", schemes="reno", set={"duration_s": 1000}, tables=(), progress=refuse)


def test_other_threads_run_meanwhile() -> None:
    counted = 0
    over = threading.Event()

    def count() -> None:
        nonlocal counted
        while not over.wait(0.001):
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    airpace.simulate("stationary-idle", schemes="pbe", set={"duration_s": 20}, tables=())
    over.set()
    thread.join()
    assert counted > 5, "another thread had its turns"


def test_ctrl_c_stops_a_long_run() -> None:
    script = (
        "import airpace, sys\n"
        "def tell(*at):\n"
        "    print('running', flush=True)\n"
        "try:\n"
        "    airpace.simulate('competitor', schemes='pbe', set={'duration_s': 100000}, tables=(), progress=tell)\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(42)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"running\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 42


def test_importing_is_quick_and_brings_no_numpy() -> None:
    script = "import sys, airpace; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_lists_name_what_there_is() -> None:
    assert "competitor" in airpace.scenarios()
    assert airpace.schemes()["cubic"]


def test_what_does_not_exist_is_a_file_that_is_not_found(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    for call, name in (
        (lambda: airpace.open(missing), missing / "manifest.json"),
        (lambda: airpace.open_sweep(missing), missing / "manifest.json"),
        (lambda: airpace.simulate(missing), missing),
        (lambda: airpace.simulate("none.toml"), Path("none.toml")),
        (lambda: airpace.sweep(missing), missing),
        (lambda: airpace.diag(missing), missing),
    ):
        with pytest.raises(FileNotFoundError) as raised:
            call()
        assert raised.value.errno == errno.ENOENT
        assert raised.value.filename == str(name)
    with pytest.raises(IsADirectoryError, match=r"cannot read the scenario .*give a name of airpace.scenarios"):
        airpace.simulate(Path("/"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"schemes": {"pbe": 1}}, "schemes={'pbe': 1}: give names"),
        ({"schemes": b"pbe"}, "schemes=b'pbe': give names"),
        ({"qlog": "no"}, "qlog='no': give True or False"),
        ({"set": {"cell.prbs": 2**70}}, "cell.prbs=1180591620717411303424: give a whole number of at most 64 bits"),
    ],
)
def test_values_of_the_wrong_kind_are_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        airpace.simulate("stationary-idle", **arguments)


def test_what_is_no_name_or_no_run_is_refused() -> None:
    run = airpace.simulate("stationary-idle", schemes="cubic", set={"duration_s": 0.1}, tables=["packets"])
    wrong: Any = 5
    assert wrong not in run.packets
    assert "flow" in run.packets
    with pytest.raises(ValueError, match="no table is called 5; there are packets"):
        run.table(wrong)
    with pytest.raises(ValueError, match=r"run=5: give what airpace.simulate"):
        airpace.widget(wrong)
    for name in (airpace.lte_mcs_tbs, airpace.nr_mcs_tbs):
        with pytest.raises(ValueError, match="table=5: give the name of one, of 64qam"):
            name(5, 50, table=wrong)


def test_a_run_that_was_stopped_is_opened_with_a_warning(tmp_path: Path) -> None:
    airpace.simulate("stationary-idle", schemes="cubic", set={"duration_s": 0.2}, out=tmp_path / "run")
    manifest = tmp_path / "run/manifest.json"
    manifest.write_text(manifest.read_text().replace('"complete": true', '"complete": false'))
    with pytest.warns(
        UserWarning, match=r"is not complete, and has the 1 run that had ended; make it again: airpace sim"
    ):
        run = airpace.open(tmp_path / "run")
    assert run.summary.num_rows == 1
