"""Experiments in real time, on a network in namespaces."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import airpace

WIRE = """
name = "wire"
about = "a phone behind a wire"
duration_s = 3
[internet]
rate_mbps = 20
buffer.ms = 60
[[flow]]
label = "phone"
rtt_ms = 30
"""


@pytest.fixture
def wire(tmp_path: Path) -> Path:
    """A scenario that any machine can emulate; skips the test where there are no namespaces."""
    path = tmp_path / "wire.toml"
    path.write_text(WIRE)
    try:
        airpace.emulate(path, "true", out=tmp_path / "tried")
    except RuntimeError as error:
        pytest.skip(f"this machine cannot emulate: {error}")
    return path


def test_a_program_behind_the_network_exchanges_packets(wire: Path, tmp_path: Path) -> None:
    """The run folder has the packets of the program, and its exit status is returned."""
    fetch = (
        "import os, socket; s = socket.create_connection((os.environ['AIRPACE_BASE'], 7000), 10); "
        "print(len(s.recv(100))); raise SystemExit(4)"
    )
    serve = (
        "import socket; s = socket.create_server(('0.0.0.0', 7000)); c, _ = s.accept(); c.sendall(b'hello'); c.close()"
    )
    python = shlex.quote(sys.executable)
    done = airpace.emulate(
        wire,
        [sys.executable, "-c", fetch],
        servers=f"{python} -c {shlex.quote(serve)}",
        out=tmp_path / "run",
    )
    assert done.status == 4
    assert done.fit == (not done.unfit_because)
    departures = done.run.table("departures")
    assert len(departures["bytes"]) >= 4, "a handshake and the data"
    assert (tmp_path / "run" / "report.html").is_file()
    assert airpace.open(tmp_path / "run").folder == tmp_path / "run"


def test_the_emulator_agrees_with_the_simulator_or_the_machine_was_late(wire: Path, tmp_path: Path) -> None:
    """The comparison has a verdict, which does not depend on the machine unless the machine was late."""
    agreed = airpace.agree_emulator(wire, seconds=1, schedule="even", out=tmp_path / "agree")
    assert agreed.agreement["packets"] > 0
    if not agreed.unfit_because:
        assert agreed.agrees, agreed.agreement
    assert (tmp_path / "agree" / "agreement.parquet").is_file()


def test_a_scheme_over_udp_stands_beside_the_simulator(wire: Path, tmp_path: Path) -> None:
    """A row per flow and transport, with the figures of both."""
    seen: list[float] = []
    compared = airpace.agree(
        wire,
        schemes="cubic",
        transports="udp",
        spread=0,
        again=0,
        out=tmp_path / "agree",
        progress=lambda share, _ended, _all: seen.append(share),
    )
    [row] = compared.rows
    assert row["scheme"] == "cubic"
    assert {"agrees", "in_spread", "differs", "unfit"} >= {row["verdict"]}
    assert sorted(seen) == seen
    assert {*compared.run.summary["scheme"]} == {"cubic", "cubic over udp"}


def test_what_cannot_be_run_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """Each message names the argument or the key."""
    path = tmp_path / "wire.toml"
    path.write_text(WIRE)
    out = tmp_path / "run"
    with pytest.raises(ValueError, match="name a program"):
        airpace.emulate(path, [], out=out)
    with pytest.raises(ValueError, match="seconds"):
        airpace.emulate(path, "true", seconds=0, out=out)
    with pytest.raises(ValueError, match="no scenario is called"):
        airpace.emulate("no-such", "true", out=out)
    with pytest.raises(ValueError, match="transport `kernel`"):
        airpace.agree(path, transports="kernel", out=out)
    with pytest.raises(ValueError, match="no scheme"):
        airpace.agree(path, schemes="no-such", out=out)
    assert not out.exists()


def test_the_part_of_an_experiment_refuses_other_words() -> None:
    """The native function behind a process of an experiment."""
    from airpace import _airpace

    assert _airpace.part(["something"]) == 2
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert _airpace.part(["emu-part", "{}"]) == 2


def test_a_file_arrives_with_its_bytes(program: Path, tmp_path: Path) -> None:
    """`send` brings a file to `airpace recv`, and reports counts and rate."""
    (tmp_path / "in").mkdir()
    (tmp_path / "data").write_bytes(bytes(range(256)) * 1000)
    key = tmp_path / "key"
    words = [
        str(program),
        "recv",
        str(tmp_path / "in"),
        "--listen",
        "127.0.0.1:0",
        "--key",
        str(key),
        "--once",
        "--json",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        line = json.loads(receiver.stdout.readline())
        done = airpace.send(tmp_path / "data", line["listen"], key=key, scheme="cubic", transport="udp")
        receiver.wait(30)
    assert (tmp_path / "in" / "data").read_bytes() == (tmp_path / "data").read_bytes()
    assert (done["files"], done["bytes"], done["scheme"]) == (1, 256_000, "cubic")
