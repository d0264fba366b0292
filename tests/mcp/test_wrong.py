"""What a client may get wrong: lines that are no messages, words too large to read. Each is answered, none ends it."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from labd.errors import LabdError, NotFound, brief, nearest
from labd.mcp_tools import LINE_BYTES, words_of_line
from tests.conftest import LABD, BenchInAFolder

HELLO = {"jsonrpc": "2.0", "id": "hello", "method": "initialize",
         "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                    "clientInfo": {"name": "t", "version": "1"}}}  # fmt: skip
OVER = b"x" * (17 << 20)
WRONG = [
    (b"garbage", -32700, None),
    (b"{", -32700, None),
    (b"\xff\xfe", -32700, None),
    (b'{"jsonrpc":"2.0","id":4,"method":"ping","params":{"a":"\\ud800"}}', -32700, 4),
    (b"[]", -32600, None),
    (b'{"id":3}', -32600, 3),
    (b'{"jsonrpc":"1.0","id":"five","method":"ping"}', -32600, "five"),
    (b'{"jsonrpc":"2.0","id":6,"method":"ping","params":{"a":"' + OVER + b'"}}', -32600, 6),
    (b'{"method":"ping","params":{"id":1,"a":"' + OVER + b'"},"jsonrpc":"2.0","id":7}', -32600, 7),
    (b'{"params":{"a":"' + OVER + b'","id":8}}', -32600, None),
]


def answers(bench: BenchInAFolder, *lines: bytes) -> list[dict[str, Any]]:
    """What a server says to these lines after the hello, which it then has to answer, too."""
    sent = b"\n".join((*lines, json.dumps(HELLO).encode()))
    done = subprocess.run([LABD, "mcp"], input=sent, capture_output=True, env=bench.env, cwd=bench.root, timeout=60)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told.pop()["id"] == "hello"
    return told


def test_each_line_that_is_no_message_is_answered_and_the_session_goes_on(board: BenchInAFolder) -> None:
    told = answers(board, *(line for line, *_ in WRONG))
    assert [(one["error"]["code"], one["id"]) for one in told] == [(code, to) for _, code, to in WRONG]


def test_a_command_that_is_too_long_is_refused_before_it_is_split(run: Any) -> None:
    async def body(client: Any, ask: Any) -> tuple[Any, Any]:
        return await ask("labd_read", "a" * 900_000), await ask("labd_help", about="a" * 900_000)

    for told in run(body):
        assert told.error
        assert told.text.endswith("exit 2 (bad usage)")
        assert f"at most {LINE_BYTES} bytes, not 900000" in told.text
        assert len(told.text) < 400
    assert len(words_of_line("é" * (LINE_BYTES // 2))[0]) == LINE_BYTES // 2


def test_an_error_echoes_no_more_than_one_reads(run: Any) -> None:
    async def body(client: Any, ask: Any) -> list[Any]:
        long = "a" * 60_000
        lines = (long, f"serial log {long}", f"serial log dut --grep '({long}'", f"target list --{long}")
        return [await ask("labd_read", line) for line in lines]

    for told in run(body):
        assert told.error
        assert "more characters)" in told.text
        assert len(told.text) < 1000, told.text


@pytest.mark.parametrize("text", ["no target 'pico'", "x" * 240, "many words " * 150])
def test_an_error_that_can_be_read_is_told_whole(text: str) -> None:
    assert LabdError(text, hint=text).message == LabdError(text, hint=text).hint == text


def test_a_long_text_is_cut_word_by_word_and_then_as_a_whole() -> None:
    assert brief(f"no {'a' * 900} here") == f"no {'a' * 200}…(700 more characters) here"
    assert len(brief("ab " * 50_000)) < 2100
    assert str(NotFound("b" * 10**6)) == "b" * 200 + "…(999800 more characters)"
    assert nearest("pico" * 1000, ["pico"]) == []


def test_help_takes_the_argument_that_the_other_tools_have(run: Any) -> None:
    async def body(client: Any, ask: Any) -> list[Any]:
        given = ({"command": "serial send"}, {"about": "serial send"}, {"about": "", "command": "x"})
        return [await ask("labd_help", **one) for one in given]

    by_command, by_about, both = run(body)
    assert by_command.text == by_about.text
    assert not by_command.error
    assert "no argument 'command'" in both.text


def test_why_a_verb_is_for_no_tool_is_said_as_it_is(run: Any) -> None:
    async def body(client: Any, ask: Any) -> list[str]:
        return [(await ask("labd_read", "mcp")).text, (await ask("labd_admin", "daemon")).text,
                (await ask("labd_config", "config edit")).text]  # fmt: skip

    server, daemon, editor = run(body)
    assert "labd mcp is the server that you are talking to" in server
    assert "labd daemons start" in daemon
    assert "a person at a terminal" in editor
    assert "terminal" not in server + daemon
