"""pexpect on a captured console: a suite of somebody's shape runs on it, and the capture goes on."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import termios
import threading

import pexpect
import pexpect.fdpexpect
import pytest

from labd.client import Lab
from labd.lab_console import Console
from tests.conftest import LAB_OF_ONE, BenchInAFolder, until


def log_in_as_suites_do(child: pexpect.spawnbase.SpawnBase) -> None:
    """What is found in board suites: alternatives, sendline, before, expect_exact, a timeout that is expected."""
    index = child.expect([r"=> ", r"login: ", pexpect.TIMEOUT, pexpect.EOF], timeout=20)
    assert index == 1
    child.sendline("root")
    child.expect(r"\w+@loopback:~# ")
    child.sendline("uname -r")
    child.expect_exact("uname -r\r\n")
    child.expect(r"(\d+)\.(\d+)\.(\d+)[^\r\n]*")
    assert child.match.group(1) == "6"
    child.expect_exact(":~# ")
    assert child.before.strip() == "root@loopback"
    with pytest.raises(pexpect.TIMEOUT):
        child.expect("this never comes", timeout=0.2)


def test_a_suite_written_for_pexpect_runs_unchanged_and_is_captured(lab: Lab, board: BenchInAFolder):
    console = lab["dut"].console
    log = io.StringIO()
    child = console.pexpect(encoding="utf-8", timeout=20, logfile=log)
    assert isinstance(child, pexpect.fdpexpect.fdspawn)
    console.watch()
    log_in_as_suites_do(child)
    child.close()
    assert not child.isalive()
    assert "uname -r" in log.getvalue()
    until("the capture", lambda: "6.12" in board.out("serial", "log", "dut", "--tail", "5"))
    assert [event.data for event in console.events(kinds=["tx"])] == [b"root\r", b"uname -r\r"]
    assert console.state().state == "open"


def test_several_spawns_see_every_byte_and_read_beside_each_other(shell: Console):
    first = shell.pexpect(timeout=20)
    second = shell.pexpect(timeout=20)
    first.sendline(b"echo one-$((1+1))")
    second.expect(rb"\none-[^\r\n]*\r\n")
    second.sendline(b"echo two-more")
    for child in (first, second):
        child.expect(rb"\ntwo-more\r\n")
    first.close()
    second.sendline(b"echo three-more")
    second.expect(rb"\nthree-more\r\n")
    second.close()


def test_bytes_go_out_exactly_and_come_in_exactly(shell: Console):
    child = shell.pexpect(timeout=20)
    data = bytes(range(256))
    assert child.send(data) == 256
    until("the send", lambda: any(event.data == data for event in shell.events(kinds=["tx"])))
    child.sendcontrol("c")
    child.sendintr()
    child.sendeof()
    child.write(b"-")
    child.writelines([b"a", b"b"])
    sent = [event.data for event in shell.events(kinds=["tx"])][2:]
    assert sent == [b"\x03", b"\x03", b"\x04", b"-", b"a", b"b"]
    child.close()


def test_it_can_begin_with_what_was_said_before(shell: Console):
    child = shell.pexpect(cursor=0, encoding="utf-8", timeout=20)
    child.expect("Booting Linux")
    child.expect("login: ")
    child.close()


def test_a_backlog_larger_than_every_buffer_arrives_whole(lab: Lab, board: BenchInAFolder):
    board.lab.write_text(LAB_OF_ONE.format(dut="flood"))
    console = lab["dut"].console
    console.watch()
    console.send("rate 0")
    until("the backlog", lambda: console.end > 400_000)
    console.send("stop")
    child = console.pexpect(cursor=0, timeout=20, searchwindowsize=2000)
    child.expect(rb"flood: stopped, sent=(\d+)\r\n")
    whole = child.before + child.after
    assert len(whole) > 400_000 and console.bytes(0, len(whole)) == whole
    child.close()


def test_the_end_of_the_capture_is_eof(shell: Console):
    child = shell.pexpect(timeout=20)
    shell.send("echo last-words")
    child.expect(rb"\nlast-words\r\n")
    shell.stop()
    child.expect(pexpect.EOF)
    assert not child.isalive()
    with pytest.raises(OSError, match="not being captured"):
        child.sendline(b"x")
    child.close()


def test_closing_ends_a_read_that_waits(shell: Console):
    child = shell.pexpect(timeout=20)
    child.terminate()
    assert child.closed
    child.close()
    until("the pump's end", lambda: not any(t.name == "labd-pexpect" for t in threading.enumerate()))


def test_pexpects_asyncio_support_works(shell: Console):
    async def main() -> int:
        child = shell.pexpect(encoding="utf-8", timeout=20)
        child.sendline("echo from-asyncio")
        index = await child.expect([r"\nfrom-asyncio\r\n"], async_=True)
        child.close()
        return int(index)

    assert asyncio.run(main()) == 0


def test_a_spawn_that_was_closed_sends_nothing(shell: Console):
    child = shell.pexpect()
    child.close()
    before = len(list(shell.events(kinds=["tx"])))
    with pytest.raises(OSError, match="closed"):
        child.sendline(b"reboot")
    assert len(list(shell.events(kinds=["tx"]))) == before


def test_the_end_of_the_lab_is_eof(lab: Lab, shell: Console):
    child = shell.pexpect(timeout=20)
    threading.Timer(0.2, lab.close).start()
    child.expect(pexpect.EOF)
    assert not child.isalive()
    child.close()


INTERACTS = """
import sys
from labd.client import Lab

with Lab() as lab:
    child = lab["dut"].console.pexpect(encoding="utf-8", timeout=20, logfile=open("log", "w", encoding="utf-8"))
    child.sendline("echo before-it")
    child.expect("before-it")
    sys.stdout.write("now\\n")
    child.interact(output_filter=lambda data: data.replace(b"secret", b"******"))
    sys.stdout.write("over\\n")
    child.sendline("echo after-it")
    child.expect(r"\\nafter-it\\r")
    sys.stdout.write("matched\\n")
"""


def test_a_person_interacts_and_the_suite_goes_on(shell: Console, board: BenchInAFolder):
    person = pexpect.spawn(sys.executable, ["-c", INTERACTS], env=board.env, cwd=str(board.root), timeout=20,
                           encoding="utf-8")  # fmt: skip
    modes = termios.tcgetattr(person.child_fd)
    person.expect("now\r\n")
    person.expect("before-it")
    person.send("echo typed-$((1+1)) secret\r")
    person.expect(r"typed-\$\(\(1\+1\)\) \*{6}\r\n")
    person.send("\x03echo \u00fc\r")
    person.expect("echo \u00fc\r\n")
    until("the raw terminal", lambda: not termios.tcgetattr(person.child_fd)[3] & termios.ICANON)
    person.send("\x1d")
    person.expect("over\r\n")
    assert termios.tcgetattr(person.child_fd) == modes
    person.expect("matched\r\n")
    person.expect(pexpect.EOF)
    person.close()
    assert person.exitstatus == 0
    assert b"echo \xc3\xbc\r" in b"".join(event.data for event in shell.events(kinds=["tx"]))
    assert "typed-" in (board.root / "log").read_text()


def test_without_a_terminal_there_is_no_interacting(shell: Console, board: BenchInAFolder):
    done = subprocess.run([sys.executable, "-c", INTERACTS], env=board.env, cwd=board.root, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60)  # fmt: skip
    assert "termios.error" in done.stderr and "over" not in done.stdout
