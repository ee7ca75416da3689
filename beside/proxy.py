#!/usr/bin/env python3
"""Compares `airpace proxy` with HAProxy on this machine: processor time per gigabyte, and memory with many connections.

beside/proxy.py AIRPACE [ROUNDS]: AIRPACE is a release build with the proxy (AIRPACE_FEATURES=proxy). The
proxies are measured in turn. Needs haproxy (Debian: apt-get install haproxy) and 22,000 open files.
"""

import asyncio
import contextlib
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

MANY = 5_000
BULK = 4
BULK_BYTES = 1 << 30
FEW_BYTES = 10_000
PIECE = bytes(1 << 20)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers every line, which contains a number, with this number of bytes."""
    with contextlib.suppress(ConnectionError):
        while line := await reader.readline():
            left = int(line)
            while left > 0:
                writer.write(PIECE[: min(left, len(PIECE))])
                left -= len(PIECE)
                await writer.drain()
    writer.close()


async def serve(listener: socket.socket) -> None:
    """Serves until the process ends."""
    server = await asyncio.start_server(answer, sock=listener)
    await server.serve_forever()


def fetch(peer: socket.socket, count: int) -> None:
    """Requests `count` bytes, and reads them."""
    peer.sendall(b"%d\n" % count)
    room = bytearray(1 << 20)
    while count > 0:
        got = peer.recv_into(room)
        if got == 0:
            raise ConnectionError("the connection ended early")
        count -= got


def of_status(pid: int, key: str) -> float:
    """The value of a key in /proc/PID/status, in MB."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key)) / 1000


def cpu_s(pid: int) -> float:
    """Processor time of a process, in seconds."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        user, system = stat.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class Proxy:
    """A running proxy, and connections through it."""

    def __init__(self, name: str, airpace: str, server: int, folder: str) -> None:
        self.port, self.server, self.asks = 18_000 + os.getpid() % 1_000, server, name == "airpace"
        if self.asks:
            words = [airpace, "proxy", "--listen", f"127.0.0.1:{self.port}", "--quiet"]
        else:
            config = os.path.join(folder, "haproxy.cfg")
            splice = "option splice-auto" if name == "haproxy, splice" else ""
            with open(config, "w", encoding="ascii") as file:
                file.write(
                    f"global\n maxconn 6000\ndefaults\n mode tcp\n {splice}\n timeout connect 5s\n timeout client 1h\n"
                    f" timeout server 1h\nlisten it\n bind 127.0.0.1:{self.port}\n server s 127.0.0.1:{server}\n"
                )
            words = ["haproxy", "-q", "-db", "-f", config]
        self.child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                break
            except ConnectionRefusedError:
                if self.child.poll() is not None:
                    sys.exit(f"{name} does not start")
                time.sleep(0.05)

    def connect(self, client: int) -> socket.socket:
        """Connects through the proxy, from one of 200 addresses: the proxy limits the connections of each address."""
        peer = socket.create_connection(("127.0.0.1", self.port), source_address=(f"127.0.1.{client % 200 + 1}", 0))
        if self.asks:
            peer.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % self.server)
            answer = b""
            while not answer.endswith(b"\r\n\r\n"):
                answer += peer.recv(1)
            if b" 200 " not in answer:
                raise ConnectionError(answer.decode())
        return peer


def measure(name: str, airpace: str, server: int) -> tuple[float, float, float, float]:
    """CPU seconds per GB; MB at the start, with many connections of one request each, and after they are closed."""
    with tempfile.TemporaryDirectory() as folder:
        proxy = Proxy(name, airpace, server, folder)
        pid = proxy.child.pid
        try:
            start = of_status(pid, "VmRSS")
            peers = []
            for client in range(MANY):
                peers.append(proxy.connect(client))
                fetch(peers[-1], FEW_BYTES)
            many = of_status(pid, "VmRSS")
            for peer in peers:
                peer.close()
            time.sleep(3)
            after = of_status(pid, "VmRSS")
            used = cpu_s(pid)
            threads = [threading.Thread(target=fetch, args=(proxy.connect(at), BULK_BYTES)) for at in range(BULK)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return (cpu_s(pid) - used) / (BULK * BULK_BYTES / 1e9), start, many, after
        finally:
            proxy.child.terminate()
            proxy.child.wait()


def main() -> None:
    """Prints a row for each proxy."""
    airpace, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    listener = socket.create_server(("127.0.0.1", 0), backlog=4_096)
    threading.Thread(target=asyncio.run, args=(serve(listener),), daemon=True).start()
    names = ["airpace", "haproxy", "haproxy, splice"]
    found: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            found[name].append(measure(name, airpace, listener.getsockname()[1]))
    print(f"{'':16} {'CPU s per GB':>12} {'MB at start':>12} {f'with {MANY:,}':>12} {'after them':>12}")
    for name, rows in found.items():
        medians = [statistics.median(column) for column in zip(*rows, strict=True)]
        print(f"{name:16} {medians[0]:12.3f}" + "".join(f" {value:12.1f}" for value in medians[1:]))


main()
