"""Triggers as a person arms them, on simulated boards."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from tests.channels.rig import Board
from tests.conftest import LAB_OF_ONE, BenchInAFolder, until


def on(labd: BenchInAFolder, dut: str) -> BenchInAFolder:
    labd.lab.write_text(LAB_OF_ONE.format(dut=dut))
    labd("serial", "watch", "dut")
    return labd


def events(bench: BenchInAFolder, kind: str) -> list[dict[str, Any]]:
    rows = bench("serial", "log", "dut", "--events", "--tail", "0", "--json").stdout.splitlines()
    return [row for row in map(json.loads, rows) if row.get("event") == kind]


def test_armed_before_the_first_watch_it_stops_the_countdown_once(labd: BenchInAFolder):
    labd.lab.write_text(LAB_OF_ONE.format(dut="uboot"))
    made = labd.json("serial", "trigger", "add", "dut", "Hit any key", "--key", "space")
    labd("serial", "watch", "dut")
    assert (made["once"], made["data"], made["state"]) == (True, " ", "armed")
    labd("serial", "expect", "dut", "=> ", "--since", "0", "--literal")
    [row] = labd.json("serial", "trigger", "list")
    assert (row["state"], row["fired"]) == ("spent", 1) and row["last"]["text"] == "Hit any key"
    [sent] = events(labd, "tx")
    assert (sent["data"], sent["who"]["face"]) == (" ", "trigger")
    told = [event["what"] for event in events(labd, "trigger")]
    assert told == ["fired"]


def test_it_logs_in_after_each_boot_when_it_is_to_fire_always(board: BenchInAFolder):
    on(board, "linux-login")
    board("serial", "trigger", "add", "dut", "loopback login: ", "root", "--always", "--literal")
    board("serial", "expect", "dut", "# ", "--since", "0", "--literal")
    board("serial", "send", "dut", "exit", "--expect", "# ", "--literal")
    [row] = board.json("serial", "trigger", "list", "dut")
    assert (row["state"], row["fired"]) == ("armed", 2)
    board("serial", "trigger", "rm", row["id"])
    assert board.out("serial", "trigger", "list") == ""
    board("serial", "send", "dut", "exit", "--expect", "login: ", "--literal")
    assert board.json("serial", "trigger", "list") == []


def test_a_pattern_that_can_grow_fires_with_all_of_it(board: BenchInAFolder):
    on(board, "linux-login")
    board("serial", "expect", "dut", "login: ", "--since", "0", "--literal")
    board("serial", "send", "dut", "root", "--expect", "# ", "--literal")
    board("serial", "trigger", "add", "dut", r"release=(\d+)", "echo seen")
    board("serial", "send", "dut", "echo release=1234", "--expect", "seen")
    [row] = board.json("serial", "trigger", "list")
    assert row["last"]["text"] == "release=1234"


def test_it_does_not_fire_on_the_echo_of_what_others_type(board: BenchInAFolder):
    on(board, "linux-login")
    board("serial", "expect", "dut", "login: ", "--since", "0", "--literal")
    board("serial", "send", "dut", "root", "--expect", "# ", "--literal")
    board("serial", "trigger", "add", "dut", "STEP_DONE", "echo fired", "--literal")
    board("serial", "send", "dut", "true STEP_DONE", "--expect", "# ", "--literal")
    board("serial", "send", "dut", "true", "--expect", "# ", "--literal")
    assert board.json("serial", "trigger", "list")[0]["fired"] == 0
    board("serial", "send", "dut", "echo STEP_''DONE", "--expect", "fired")


def test_one_that_would_fire_on_its_own_text_is_refused(board: BenchInAFolder):
    on(board, "linux-login")
    refused = board("serial", "trigger", "add", "dut", "root", "root", "--always", check=2).stderr
    assert b"it would fire on itself" in refused
    board("serial", "trigger", "add", "dut", "no such thing", "no such thing")


def test_two_that_answer_each_other_are_stopped_and_it_is_said(labd: BenchInAFolder):
    on(labd, "linux-login")
    labd("serial", "expect", "dut", "login: ", "--since", "0", "--literal")
    labd("serial", "send", "dut", "root", "--expect", "# ", "--literal")
    labd("serial", "trigger", "add", "dut", "PING", "echo PO''NG", "--always")
    labd("serial", "trigger", "add", "dut", "PONG", "echo PI''NG", "--always")
    labd("serial", "send", "dut", "echo PI''NG")

    def rows() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = labd.json("serial", "trigger", "list")
        return found

    until("one of them to be disarmed", lambda: any(row["state"] == "limited" for row in rows()))
    assert all(row["fired"] <= 50 for row in rows())
    assert any(event["what"] == "limited" and "so it was disarmed" in event["why"] for event in events(labd, "trigger"))


def test_arming_the_same_again_leaves_one_and_names_it_and_anything_else_is_another(board: BenchInAFolder):
    on(board, "linux-login")
    board("serial", "expect", "dut", "login: ", "--since", "0", "--literal")
    board("serial", "send", "dut", "root", "--expect", "# ", "--literal")
    first = board.json("serial", "trigger", "add", "dut", "panic-7", "echo woken")
    again = board.json("serial", "trigger", "add", "dut", "panic-7", "echo woken")
    assert (first["already"], again["already"], again["id"]) == (False, True, first["id"])
    assert first["kept"] and again["kept"]
    assert "armed already" in board.out("serial", "trigger", "add", "dut", "panic-7", "echo woken")
    assert not board.json("serial", "trigger", "add", "dut", "panic-8", "echo woken")["already"]
    assert not board.json("serial", "trigger", "add", "dut", "panic-7", "echo woken", "--always")["already"]
    board("serial", "trigger", "rm", "t3")
    board("serial", "send", "dut", "echo panic-7", "--expect", "woken")
    until("t1 fired", lambda: board.json("serial", "trigger", "list")[0]["fired"] == 1)
    assert [event["data"] for event in events(board, "tx")].count("echo woken\r") == 1
    spent = board.json("serial", "trigger", "add", "dut", "panic-7", "echo woken")
    assert not spent["already"], "one that is spent answers nothing any more"


def test_what_can_not_be_armed_is_told_at_once(board: BenchInAFolder):
    on(board, "linux-login")
    assert b"position 4" in board("serial", "trigger", "add", "dut", "we(a", "b", check=2).stderr
    board("serial", "trigger", "add", "dut", "", "b", check=2)
    board("serial", "trigger", "add", "dut", "a", "b", "--once", "--always", check=2)
    board("serial", "trigger", "add", "dut", "a", "--key", "nokey", check=2)
    board("serial", "trigger", "rm", check=2)
    board("serial", "trigger", "rm", "t9", check=4)
    assert b"add, list, rm" in board("serial", "trigger", check=2).stderr


def test_what_could_not_be_sent_is_no_echo_that_it_waits_for(labd: BenchInAFolder):
    """Sends that a port that is down refused must not use up what is looked for once it is back."""
    board = Board(labd.root / "adapter")
    try:
        labd.lab.write_text(
            f'[targets.dut]\n[[targets.dut.serial]]\nname = "console"\ndevice = "{board.path}"\n', encoding="utf-8"
        )
        labd("serial", "watch", "dut")
        labd("serial", "trigger", "add", "dut", "MARK-[0-9]", "fired", "--always")
        board.unplug()
        until("the loss", lambda: labd.json("serial", "show", "dut")[0]["state"] == "lost")
        for number in range(6):
            labd("serial", "send", "dut", f"refused {number}", check=7)
        board.replug()
        until("its return", lambda: labd.json("serial", "show", "dut")[0]["state"] == "open")
        labd("serial", "send", "dut", "say MARK-7 to me")
        got = bytearray()
        until("what was typed", lambda: hear(board, got) == b"say MARK-7 to me\r")
        board.say(b"say MARK-7 to me\r\nit says MARK-8\r\n")
        until("the answer", lambda: labd.json("serial", "trigger", "list")[0]["fired"])
        [row] = labd.json("serial", "trigger", "list")
        assert (row["fired"], row["last"]["text"]) == (1, "MARK-8")
    finally:
        board.close()


def hear(board: Board, got: bytearray) -> bytes:
    """All that came so far."""
    with contextlib.suppress(BlockingIOError):
        got += os.read(board.master, 4096)
    return bytes(got)
