"""A no-op over the daemon's socket beside a bare trio echo over a socket of the same kind, and a whole operation."""

from __future__ import annotations

import argparse
import socket
import statistics
import subprocess
import sys
import time

from labd.client import Client
from tests.conftest import BenchInAFolder, a_board, until

BARE = """
import socket, sys, trio
async def serve(stream):
    async for data in stream:
        await stream.send_all(data)
async def main():
    raw = trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    await raw.bind(sys.argv[1]); raw.listen(5)
    await trio.serve_listeners(serve, [trio.SocketListener(raw)])
trio.run(main)
"""


def percentiles(times: list[float]) -> str:
    ordered = sorted(times)
    return f"p50 {statistics.median(ordered) * 1e6:7.0f} us   p99 {ordered[int(len(ordered) * 0.99) - 1] * 1e6:7.0f} us"


def bare(path: str, count: int) -> list[float]:
    server = subprocess.Popen([sys.executable, "-c", BARE, path])
    try:
        peer = socket.socket(socket.AF_UNIX)

        def connected() -> bool:
            try:
                peer.connect(path)
            except OSError:
                return False
            return True

        until("the bare server", connected)
        times = []
        for _ in range(count):
            began = time.perf_counter()
            peer.sendall(b'{"id": 1, "method": "ping"}\n')
            peer.recv(100)
            times.append(time.perf_counter() - began)
        peer.close()
        return times
    finally:
        server.terminate()
        server.wait()


def calls(client: Client, method: str, params: dict[str, object], count: int) -> list[float]:
    times = []
    for _ in range(count):
        began = time.perf_counter()
        client.request(method, params)
        times.append(time.perf_counter() - began)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    count = 300 if parser.parse_args().quick else 2000
    with a_board() as bench, Client(_watched(bench).env) as client:
        print(f"bare trio echo, UNIX socket    {percentiles(bare(str(bench.runtime / 'bare'), count))}")
        print(f"no-op (daemon.hello)           {percentiles(calls(client, 'daemon.hello', {}, count))}")
        print(
            f"an operation (serial.show)     {percentiles(calls(client, 'serial.show', {'target': 'dut'}, count // 4))}"
        )


def _watched(bench: BenchInAFolder) -> BenchInAFolder:
    bench("serial", "watch", "dut")
    return bench


if __name__ == "__main__":
    main()
