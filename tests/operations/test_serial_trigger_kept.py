"""Triggers over the end of a daemon: armed again, late rather than never, never twice, and ended when told to."""

from __future__ import annotations

import os
import pty
import select
import signal
import tty
from collections.abc import Iterator
from typing import Any

import pytest

from labd import paths
from labd.journal_read import Reader
from labd.match import Matcher
from labd.trigger_store import NAME, TriggerStore
from tests.capture.test_away import alive
from tests.channels.far import rfc2217
from tests.conftest import LAB_OF_ONE, BenchInAFolder, until


class Cable:
    """A captured cable whose far end is ours, and the bench at its near end."""

    def __init__(self, bench: BenchInAFolder) -> None:
        self.bench = bench
        self.master, self.near = pty.openpty()
        tty.setraw(self.near)
        bench.lab.write_text(LAB_OF_ONE.replace("loopback:{dut}", os.ttyname(self.near)))
        bench("serial", "watch", "dut")

    def says(self, data: bytes) -> None:
        """And wait until it is stored, daemon or not."""
        end = self.reader().end_offset + len(data)
        os.write(self.master, data)
        until(f"{data!r} on the disk", lambda: self.reader().end_offset >= end)

    def hears(self, count: int, seconds: float = 20.0) -> bytes:
        got = b""
        while len(got) < count and select.select([self.master], [], [], seconds)[0]:
            got += os.read(self.master, 4096)
        return got

    def quiet(self) -> bool:
        """Whether nothing comes, after a question that is answered behind whatever a trigger would have sent."""
        self.bench("serial", "send", "dut", "~", "--no-newline")
        return self.hears(1) == b"~"

    def reader(self) -> Reader:
        return Reader(paths.journal_dir(self.bench.env, str(self.bench.lab), "dut", "console"))

    def events(self) -> list[dict[str, Any]]:
        return [event.fields for event in self.reader().events() if event.kind == "trigger"]

    def told(self) -> list[str]:
        return [event["what"] for event in self.events()]

    def kill(self) -> None:
        pid = self.bench.daemon_pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until("its end", lambda: not alive(pid))

    def next_daemon(self) -> None:
        self.bench("serial", "send", "dut", "!", "--no-newline")

    def rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.bench.json("serial", "trigger", "list")
        return found


@pytest.fixture
def cable(labd: BenchInAFolder) -> Iterator[Cable]:
    made = Cable(labd)
    yield made
    os.close(made.master)
    os.close(made.near)


def test_what_came_while_no_daemon_was_there_fires_late_and_once_and_it_is_said(cable: Cable):
    cable.bench("serial", "trigger", "add", "dut", "Hit any key", "--key", "space")
    cable.kill()
    cable.says(b"U-Boot\r\nHit any key")
    cable.next_daemon()
    assert sorted(cable.hears(2)) == sorted(b" !")
    [fired] = until("the firing's event", lambda: [e for e in cable.events() if e["what"] == "fired"])
    assert fired["late"] == "it came while no daemon was there" and fired["ms"] > 0
    assert cable.told() == ["armed", "armed again", "fired"]
    listed = " ".join(cable.bench.out("serial", "trigger", "list").split())
    assert "late (it came while no daemon was there)" in listed
    cable.kill()
    cable.says(b"\r\nHit any key\r\n")
    cable.next_daemon()
    assert cable.hears(1) == b"!" and cable.quiet()
    [row] = cable.rows()
    assert (row["id"], row["state"], row["fired"]) == ("t1", "spent", 1)


def test_a_restart_in_the_midst_of_the_text_does_not_hide_it(cable: Cable):
    cable.bench("serial", "trigger", "add", "dut", "Hit any key", "--key", "space")
    cable.says(b"before\r\nHit an")
    cable.bench("daemons", "restart")
    assert cable.told() == ["armed", "armed again"]
    cable.says(b"y key\r\n")
    assert cable.hears(1) == b" "
    [fired] = until("the firing's event", lambda: [e for e in cable.events() if e["what"] == "fired"])
    assert "late" not in fired


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_what_has_fired_does_not_fire_again_and_goes_on_firing(cable: Cable, how: str):
    cable.bench("serial", "trigger", "add", "dut", "login: ", "root", "--always", "--literal")
    cable.says(b"login: ")
    assert cable.hears(5) == b"root\r"
    cable.bench("daemons", "restart") if how == "restart" else cable.kill()
    assert cable.quiet()
    cable.says(b"root\r\nlogin: ")
    assert cable.hears(5) == b"root\r"
    [row] = cable.rows()
    assert (row["state"], row["fired"], row["id"]) == ("armed", 2, "t1")


def test_of_several_prompts_that_nobody_answered_only_the_newest_is(cable: Cable):
    cable.bench("serial", "trigger", "add", "dut", "login: ", "root", "--always", "--literal")
    cable.kill()
    cable.says(b"login: \r\nreboot\r\nlogin: \r\nreboot\r\nlogin: ")
    cable.next_daemon()
    assert sorted(cable.hears(6)) == sorted(b"root\r!") and cable.quiet()
    [fired] = [e for e in cable.events() if e["what"] == "fired"]
    assert (fired["passed"], fired["stop"]) == (2, cable.reader().end_offset)


def test_the_echo_of_what_was_typed_before_the_end_fires_nothing_after_it(cable: Cable):
    cable.bench("serial", "trigger", "add", "dut", "DONE", "--key", "x", "--literal")
    cable.says(b"# ")
    cable.bench("serial", "send", "dut", "true DONE")
    assert cable.hears(10) == b"true DONE\r"
    cable.kill()
    cable.says(b"true DONE\r\n# ")
    assert cable.quiet() and cable.told() == ["armed", "armed again"]
    cable.says(b"\r\nDONE\r\n")
    assert cable.hears(1) == b"x"


def test_a_daemon_that_was_killed_as_it_fired_leaves_a_doubt_that_is_said_and_nothing_is_sent_twice(cable: Cable):
    cable.bench("serial", "trigger", "add", "dut", "Hit any key", "--key", "space")
    cable.kill()
    cable.says(b"Hit any key")
    with open(cable.bench.runtime / "labd" / NAME, "ab") as file:  # as if it had been about to send
        file.write(b'["fired","t1",11]\n["at","t1"')
    assert cable.quiet()
    assert cable.told() == ["armed", "failed"]
    assert "not known" in cable.events()[-1]["why"] and cable.rows()[0]["state"] == "spent"


def test_they_end_with_the_capture_of_their_console(cable: Cable):
    cable.bench("serial", "trigger", "add", "dut", "Hit any key", "--key", "space", "--always")
    cable.bench("serial", "stop", "dut")
    assert cable.events()[-1]["what"] == "ended" and cable.events()[-1]["why"] == "the capture was stopped"
    cable.bench("daemons", "restart")
    cable.bench("serial", "watch", "dut")
    cable.says(b"Hit any key\r\n")
    assert cable.quiet()
    assert [(row["state"], row["why"]) for row in cable.rows()] == [("ended", "the capture was stopped")]


@pytest.mark.parametrize("killed", [False, True])
def test_they_end_with_the_daemon_that_is_told_to_stop(cable: Cable, killed: bool):
    cable.bench("serial", "trigger", "add", "dut", "Hit any key", "--key", "space")
    if killed:
        cable.kill()
    cable.bench("daemons", "stop")
    assert killed or (cable.events()[-1]["what"], cable.events()[-1]["why"]) == ("ended", "the daemon was stopped")
    cable.bench("serial", "watch", "dut")
    cable.says(b"Hit any key\r\n")
    assert cable.quiet() and cable.rows() == []


def test_one_that_waits_for_the_first_watch_waits_over_a_crash(labd: BenchInAFolder):
    labd.lab.write_text(LAB_OF_ONE.format(dut="uboot"))
    labd("serial", "trigger", "add", "dut", "Hit any key", "--key", "space")
    pid = labd.daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until("its end", lambda: not alive(pid))
    labd("serial", "watch", "dut")
    labd("serial", "expect", "dut", "=> ", "--since", "0", "--literal")
    [row] = labd.json("serial", "trigger", "list")
    assert (row["state"], row["fired"]) == ("spent", 1) and "late" not in row["last"]


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_over_rfc2217_they_are_armed_again_when_the_port_is_open_again(labd: BenchInAFolder, how: str):
    with rfc2217() as server:
        labd.lab.write_text(LAB_OF_ONE.replace("loopback:{dut}", f"rfc2217://127.0.0.1:{server.port}"))
        labd("serial", "watch", "dut")
        labd("serial", "trigger", "add", "dut", "Hit any key", "--key", "space", "--literal")
        pid = labd.daemon_pid()
        assert pid is not None
        if how == "restart":
            labd("daemons", "restart")
        else:
            os.kill(pid, signal.SIGKILL)
            until("its end", lambda: not alive(pid))
            labd("serial", "watch", "dut")
        reader = Reader(paths.journal_dir(labd.env, str(labd.lab), "dut", "console"))
        kinds = [
            event.fields.get("what", event.kind) for event in reader.events() if event.kind in ("trigger", "reopened")
        ]
        assert kinds == ["armed", "reopened", "armed again"]
        [row] = labd.json("serial", "trigger", "list")
        assert (row["id"], row["state"]) == ("t1", "armed")


def test_a_store_that_can_not_be_written_is_none(labd: BenchInAFolder, tmp_path):
    said: list[str] = []
    store = TriggerStore(str(tmp_path), said.append)
    store.write(1, [{"id": "t1", "once": True, "state": "armed", "offset": 0, "fired": 0}])
    assert store.kept and TriggerStore(str(tmp_path), said.append).load()[0] == 1
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, store._fd)
    os.close(full)
    store.note("fired", "t1", 10)
    assert not store.kept and not (tmp_path / NAME).exists() and "would not outlive" in said[-1]
    assert TriggerStore(str(tmp_path), said.append).load() == (0, [])


def test_what_was_kept_before_the_machine_started_anew_is_nothing(tmp_path):
    store = TriggerStore(str(tmp_path), lambda text: None)
    store.write(1, [{"id": "t1", "once": True, "state": "armed", "offset": 0, "fired": 0}])
    path = tmp_path / NAME
    path.write_bytes(path.read_bytes().replace(b'{"boot": "', b'{"boot": "an earlier one '))
    assert store.load() == (0, [])


@pytest.mark.parametrize(("pattern", "resume"), [("key", 4), (r"two\n.*three", 0)])
def test_a_matcher_says_where_another_one_must_begin(pattern: str, resume: int):
    matcher = Matcher([pattern])
    matcher.feed(0, b"one\nHit an", 0.0)
    assert matcher.resume == resume
