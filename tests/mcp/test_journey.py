"""An agent's work on a simulated board through the official SDK's client and the real daemon."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import trio

from labd.client import Client
from tests.conftest import BenchInAFolder, until
from tests.mcp.conftest import a_client


def calls_of(board: BenchInAFolder) -> list[list[str]]:
    """The words of the calls that run in the daemon now."""
    with Client(board.env) as client:
        return [call["argv"] for call in client.request("daemon.status")["calls"]]


async def logged_in(ask: Any) -> None:
    """Wait for the login prompt of the watched board, and log in."""
    assert "login:" in (await ask("labd_read", "serial expect dut 'login:' --since 0 --timeout 20")).text
    told = await ask("labd_act", "serial send dut root --expect '[#$] ' --timeout 20")
    assert not told.error, told.text


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_watch_send_expect_run_and_read_back(run: Any, board: BenchInAFolder, mode: str) -> None:
    async def body(client: Any, ask: Any) -> None:
        assert "dut" in (await ask("labd_read", "target list")).text
        assert not (await ask("labd_act", "serial watch dut")).error
        await logged_in(ask)
        assert (await ask("labd_act", "labd serial run dut 'echo said by it'")).content[0].text == "said by it\n"
        assert (await ask("labd_act", "serial run dut -", stdin="echo from stdin")).content[0].text == "from stdin\n"
        assert "from stdin" in (await ask("labd_read", "serial log dut --tail 5")).text
        facts = await ask("labd_read", "serial show dut --json")
        assert json.loads(facts.content[0].text)

    run(body, mode=mode)
    called = [record for record in board.records() if record["rec"] == "start" and record["face"] == "mcp"]
    assert [record["operation"] for record in called] == [
        "target list", "serial watch", "serial expect", "serial send", "serial run", "serial run", "serial log",
        "serial show",
    ]  # fmt: skip
    assert {record["client"] for record in called} == {"tester 1.0"}
    ends = {record["id"]: record["code"] for record in board.records() if record["rec"] == "end"}
    assert [ends[record["id"]] for record in called] == [0] * len(called)


def test_the_policy_refuses_and_says_how_to_ask(run: Any, board: BenchInAFolder) -> None:
    board.lab.write_text(board.lab.read_text() + '[targets.dut.power]\ncycle_cmd = "touch cut"\n')

    async def body(client: Any, ask: Any) -> Any:
        assert not (await ask("labd_read", "power show dut")).error
        return await ask("labd_act", "power-cycle dut")

    told = run(body, LABD_POLICY="observe")
    assert told.error and told.text.endswith("exit 3 (refused by policy)")
    assert "LABD_POLICY=bench would permit it" in told.text and "nothing ran" in told.text
    assert not (board.root / "cut").exists()
    record = next(r for r in board.records() if r["rec"] == "start" and r["operation"] == "power-cycle")
    assert (record["decision"], record["face"], record["policy"]) == ("refused", "mcp", "observe")


def test_a_verb_in_the_wrong_tool_does_not_run_and_the_right_one_is_named(run: Any, board: BenchInAFolder) -> None:
    async def body(client: Any, ask: Any) -> Any:
        return await ask("labd_read", "serial watch dut")

    told = run(body)
    assert told.error and "call the tool labd_act" in told.text and "exit 2 (bad usage)" in told.text
    record = next(r for r in board.records() if r["rec"] == "start" and r["face"] == "mcp")
    assert (record["argv"], record["decision"]) == (["labd", "serial", "watch", "dut"], "invalid")
    assert board.daemon_pid() is None


ERRORS = [
    ("labd_read", {"command": "serial lgo dut"}, "serial log", "exit 2 (bad usage)"),
    ("labd_read", {"command": "serial log pico"}, "pico", "exit 4 (no such thing)"),
    ("labd_read", {"command": "serial log 'dut"}, "quote", "exit 2 (bad usage)"),
    ("labd_read", {"command": "serial log dut | tail -3"}, "no shell reads this", "exit 2 (bad usage)"),
    ("labd_act", {"command": "serial run dut 'uname -a'"}, "labd serial watch", "exit 7 (unreachable)"),
    ("labd_act", {"command": "serial connect dut"}, "a person at a terminal", "exit 2 (bad usage)"),
    ("labd_read", {}, "needs command", "exit 2 (bad usage)"),
    ("labd_read", {"command": 7}, "is a string", "exit 2 (bad usage)"),
    ("labd_read", {"command": "target list", "json": True}, "no argument 'json'", "exit 2 (bad usage)"),
    ("labd_read", {"command": "target list", "limit_s": -1}, "limit_s", "exit 2 (bad usage)"),
    ("labd_more", {"answer": 9, "from": 0}, "not kept any more", "exit 4 (no such thing)"),
    ("labd_shell", {"command": "ls"}, "labd_act", "exit 4 (no such thing)"),
]  # fmt: skip


def test_every_error_says_what_is_wrong_and_how_it_ended(run: Any) -> None:
    async def body(client: Any, ask: Any) -> Any:
        return [await ask(tool, **given) for tool, given, *_ in ERRORS]

    for (tool, given, *wanted), told in zip(ERRORS, run(body), strict=True):
        assert told.error, (tool, given)
        assert all(text in told.text for text in wanted), (tool, given, told.text)
        assert "Traceback" not in told.text


def test_a_long_answer_is_cut_and_read_on_in_without_running_it_again(run: Any, board: BenchInAFolder) -> None:
    async def body(client: Any, ask: Any) -> str:
        told = await ask("labd_read", "commands --json")
        whole = ""
        while "[cut: " in told.text:
            text, _, cut = told.text.partition("\n[cut: ")
            whole += text
            told = await ask("labd_more", **json.loads(cut[cut.index("{") : cut.index("}") + 1]))
        return whole + told.text

    assert json.loads(run(body))["operations"]
    assert len([r for r in board.records() if r.get("operation") == "commands" and r["rec"] == "start"]) == 1


def test_what_needs_a_process_of_its_own_runs_in_one(run: Any, board: BenchInAFolder) -> None:
    async def body(client: Any, ask: Any) -> Any:
        helped = await ask("labd_act", "helper shellyplug --help")
        started = await ask("labd_admin", "daemons start")
        stopped = await ask("labd_admin", "daemons stop")
        return helped, started, stopped

    helped, started, stopped = run(body)
    assert "shellyplug" in helped.text and not helped.error
    assert not started.error and not stopped.error
    until("the daemon to be gone", lambda: board.daemon_pid() is None)
    called = [r["operation"] for r in board.records() if r["rec"] == "start" and r["face"] == "mcp"]
    assert called == ["helper shellyplug", "daemons start", "daemons stop"]


def test_a_picture_is_an_image(run: Any, board: BenchInAFolder) -> None:
    cv2, np = pytest.importorskip("cv2"), pytest.importorskip("numpy")
    picture = board.root / "screen.png"
    pixels = np.full((48, 64, 3), 120, np.uint8)
    pixels[10:20, 10:30] = 255  # one plain colour would be no signal
    cv2.imwrite(str(picture), pixels)
    board.lab.write_text(board.lab.read_text() + f'[targets.dut.video]\ndevice = "{picture}"\n')

    async def body(client: Any, ask: Any) -> Any:
        assert not (await ask("labd_act", "video watch dut")).error
        return await ask("labd_act", "video shot dut --timeout 20000")

    told = run(body)
    image = told.content[0]
    assert (image.type, image.mime_type) == ("image", "image/png"), told.text
    assert base64.b64decode(image.data).startswith(b"\x89PNG")
    assert "hash=" in told.text


def test_progress_tells_the_notes_and_that_it_still_runs(run: Any) -> None:
    told: list[str] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        told.append(str(message))

    async def body(client: Any, ask: Any) -> Any:
        await ask("labd_act", "serial watch dut")
        return await ask("labd_read", "serial expect dut 'never said' --timeout 5", progress_callback=heard)

    assert "exit 5 (timed out)" in run(body).text
    assert any("still running" in line for line in told), told
    assert any("interface console" in line for line in told), told


def test_a_call_ends_at_its_limit_with_what_came(run: Any, board: BenchInAFolder) -> None:
    async def body(client: Any, ask: Any) -> Any:
        await ask("labd_act", "serial watch dut")
        await logged_in(ask)
        return await ask("labd_read", "serial log dut --tail 3 --follow", limit_s=1)

    told = run(body)
    assert told.error and "root@loopback" in told.content[0].text and "ended after 1 s" in told.text
    until("the follower to be gone", lambda: not calls_of(board))


def test_two_clients_at_once_are_told_apart_and_claims_hold_between_them(board: BenchInAFolder) -> None:
    async def main() -> Any:
        async with a_client(board, "one", LABD_AS="one") as (_, one), a_client(board, "two", LABD_AS="two") as (_, two):
            assert not (await one("labd_act", "serial watch dut")).error
            assert not (await one("labd_config", "claim dut --for 5m --why 'bisecting'")).error
            refused = await two("labd_act", "serial send dut root")
            read = await two("labd_read", "serial log dut")
            async with trio.open_nursery() as nursery:
                for ask in (one, two):
                    for _ in range(5):
                        nursery.start_soon(ask, "labd_read", "serial show dut")
            return refused, read

    refused, read = trio.run(main)
    assert "claimed by one" in refused.text and "exit 6 (busy)" in refused.text
    assert not read.error
    shown = [r["client"] for r in board.records() if r["rec"] == "start" and r["operation"] == "serial show"]
    assert (shown.count("one 1.0"), shown.count("two 1.0")) == (5, 5)
