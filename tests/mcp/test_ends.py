"""What is left when a client cancels, goes, or is killed: nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.conftest import LABD, BenchInAFolder, until
from tests.mcp.conftest import a_client
from tests.mcp.test_journey import calls_of

#: A client that asks for something endless, says so, and waits to be killed.
CLIENT = """
import os, sys, trio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
async def main():
    async with Client(StdioServerParameters(command=sys.argv[1], args=["mcp"], env=dict(os.environ))) as c:
        await c.call_tool("labd_act", {"command": "serial watch dut"})
        async def heard(*told):
            print("waits", flush=True)
        await c.call_tool(sys.argv[2], {"command": sys.argv[3]}, progress_callback=heard)
trio.run(main)
"""


def servers(board: BenchInAFolder) -> list[int]:
    """The pids of this bench's MCP servers and of what they started."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            env = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        ours = str(board.runtime).encode() in env
        if ours and (words[2:3] == [b"mcp"] or b"helper" in words or b"labd.helpers" in b" ".join(words)):
            found.append(int(pid))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    ("tool", "command"),
    [
        ("labd_read", "serial expect dut 'never said' --timeout 600"),
        ("labd_act", "helper shellyplug -d 192.0.2.1 --timeout 60 state"),
    ],
)
def test_a_client_that_is_killed_leaves_nothing_behind(board: BenchInAFolder, tool: str, command: str) -> None:
    client = subprocess.Popen([sys.executable, "-c", CLIENT, LABD, tool, command], env=board.env, cwd=board.root,
                              stdout=subprocess.PIPE)  # fmt: skip
    assert client.stdout is not None
    assert client.stdout.readline() == b"waits\n"
    assert servers(board)
    os.kill(client.pid, signal.SIGKILL)
    client.wait()
    until("the server and all it started to be gone", lambda: not servers(board))
    until("its call to be gone from the daemon", lambda: not calls_of(board))
    assert board.json("serial", "show", "dut")  # the bench goes on


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_server_that_is_killed_leaves_no_call_behind(board: BenchInAFolder) -> None:
    async def main() -> None:
        async with a_client(board) as (_, ask):
            await ask("labd_act", "serial watch dut")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_failing, ask, "labd_read", "serial expect dut 'never said' --timeout 600")
                while not await trio.to_thread.run_sync(calls_of, board):
                    await trio.sleep(0.02)
                for pid in servers(board):
                    os.kill(pid, signal.SIGKILL)

    trio.run(main)
    until("its call to be gone from the daemon", lambda: not calls_of(board))


async def _failing(ask: Any, *words: str) -> None:
    with pytest.raises(Exception):  # noqa: B017 - whatever the SDK makes of a dead server
        await ask(*words)


def test_a_cancelled_call_ends_at_the_daemon_and_the_session_goes_on(run: Any, board: BenchInAFolder) -> None:
    async def body(client: Any, ask: Any) -> Any:
        await ask("labd_act", "serial watch dut")
        with trio.move_on_after(1):
            await ask("labd_read", "serial expect dut 'never said' --timeout 600")
        with trio.fail_after(10):
            while await trio.to_thread.run_sync(calls_of, board):
                await trio.sleep(0.02)
        return await ask("labd_read", "target list")

    assert not run(body).error


def test_a_daemon_that_goes_in_the_middle_is_told_of_and_the_next_call_starts_another(
    run: Any, board: BenchInAFolder
) -> None:
    async def body(client: Any, ask: Any) -> tuple[Any, Any]:
        await ask("labd_act", "serial watch dut")
        told: list[Any] = []

        async def wait() -> None:
            told.append(await ask("labd_read", "serial expect dut 'never said' --timeout 600"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            while not await trio.to_thread.run_sync(calls_of, board):
                await trio.sleep(0.02)
            pid = board.daemon_pid()
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
        return told[0], await ask("labd_act", "serial watch dut")

    gone, again = run(body)
    assert gone.error and "went away" in gone.text and "exit 7 (unreachable)" in gone.text
    assert not again.error, again.text


def test_without_the_sdk_it_says_what_installs_it(board: BenchInAFolder) -> None:
    hide = ("import sys\nclass Hidden:\n def find_spec(self, name, *a):\n  if name.split('.')[0] == 'mcp': "
            "raise ModuleNotFoundError(name)\nsys.meta_path.insert(0, Hidden())\nsys.argv = ['labd', 'mcp']\n"
            "from labd.thin import main\nsys.exit(main())")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", hide], env=board.env, capture_output=True, timeout=30, input=b"")
    assert done.returncode == 7 and done.stdout == b""
    assert b"-m pip install 'mcp>=2.3'" in done.stderr and b"Traceback" not in done.stderr


def test_what_is_no_message_is_survived(board: BenchInAFolder) -> None:
    server = board.start("mcp", stdin=subprocess.PIPE)
    assert server.stdin is not None and server.stdout is not None
    began = time.monotonic()
    server.stdin.write(b'no json\n\xff\xfe\n[]\n{"jsonrpc": "2.0", "id": 7, "method": "ping"}\n')
    server.stdin.flush()
    lines = [server.stdout.readline()]
    while b'"id":7' not in lines[-1] and time.monotonic() - began < 20:
        lines.append(server.stdout.readline())
    server.stdin.close()
    assert server.wait(20) == 0
    assert b'"id":7' in lines[-1]


def test_the_tools_are_told_without_a_client(board: BenchInAFolder) -> None:
    assert "labd_act" in board.out("mcp", "--tools")
    assert board.json("mcp", "--tools")["tools"][0]["name"] == "labd_help"
