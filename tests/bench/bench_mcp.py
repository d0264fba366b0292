"""A tool call of `labd mcp` beside the same operation by the daemon's own RPC, turn about on the same board.

The client here is no SDK's: it writes a line and reads a line, so that what is measured is the server. `ping` is what
the SDK's server costs with nothing behind it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Callable
from typing import Any

from labd.client import Client
from tests.conftest import LABD, BenchInAFolder, a_board

#: What is asked: a name, the operation by RPC, the tool and its command.
CASES = (
    ("serial show", "serial.show", {"target": "dut"}, "labd_read", "serial show dut"),
    ("serial log, 100 lines", "serial.log", {"target": "dut", "tail": 100}, "labd_read", "serial log dut --tail 100"),
    ("serial expect, there already", "serial.expect", {"target": "dut", "pattern": "login", "since": "0"}, "labd_read",
     "serial expect dut login --since 0"),
    ("serial run 'echo hi'", "serial.run", {"target": "dut", "command": "echo hi"}, "labd_act",
     "serial run dut 'echo hi'"),
)  # fmt: skip

#: At most this much dearer than the RPC.
MOST = 1.5


class Server:
    """`labd mcp`, spoken to by lines."""

    def __init__(self, bench: BenchInAFolder) -> None:
        self.process = subprocess.Popen([LABD, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=bench.env,
                                        cwd=bench.root)  # fmt: skip
        self.id = 0
        who = {"name": "bench", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who})
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def say(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        assert self.process.stdout is not None
        self.id += 1
        self.say({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.id:
                return answer["result"]

    def call(self, tool: str, command: str) -> None:
        told = self.ask("tools/call", {"name": tool, "arguments": {"command": command}})
        assert not told.get("isError"), told

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(20)


def turn_about(one: Callable[[], Any], other: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """The median time of each, in seconds: what else the machine does falls on both."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for call, spent in zip((one, other), times, strict=True):
            began = time.perf_counter()
            call()
            spent.append(time.perf_counter() - began)
    return statistics.median(times[0]), statistics.median(times[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    rounds = 60 if parser.parse_args().quick else 400
    with a_board() as bench:
        bench("serial", "watch", "dut")
        bench("serial", "expect", "dut", "login:", "--since", "0", "--timeout", "30")
        bench("serial", "send", "dut", "root", "--expect", "[#$] ", "--timeout", "30")
        server = Server(bench)
        with Client(bench.env) as client:
            ping, _ = turn_about(lambda: server.ask("ping", {}), lambda: None, rounds)
            print(f"{'the SDK alone (ping)':30} {ping * 1e3:6.2f} ms")
            for name, method, params, tool, command in CASES:
                by_rpc, by_tool = turn_about(lambda m=method, p=params: client.request(m, p, on_item=lambda item: None),
                                             lambda t=tool, c=command: server.call(t, c), rounds)  # fmt: skip
                ratio = by_tool / by_rpc
                told = f"{ratio:4.2f}x{'' if ratio <= MOST else f'  (more than {MOST}x)'}"
                print(f"{name:30} {by_tool * 1e3:6.2f} ms   RPC {by_rpc * 1e3:6.2f} ms   {told}")
        server.close()


if __name__ == "__main__":
    main()
