"""The Python client as its users meet it: a real daemon, a real board on a PTY."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

from labd.client import Client, Lab
from labd.errors import Busy, LabdError, NotFound, PassedOn, Refused, TimedOut, Unreachable, Usage
from labd.lab_console import Console
from tests.conftest import LAB_OF_ONE, BenchInAFolder, until


def test_the_first_operation_starts_the_daemon_and_watch_tells_what_the_device_is(lab: Lab, board: BenchInAFolder):
    assert board.daemon_pid() is None
    opened = lab["dut"].console.watch()
    assert (opened.state, opened.device) == ("open", "loopback:linux-login")
    assert opened.node is not None and opened.node.startswith("/dev/pts/")
    assert board.daemon_pid() is not None


def test_names_are_those_of_the_lab_file_and_a_wrong_one_names_the_near_one(lab: Lab):
    assert (list(lab), len(lab), "dut" in lab, "dtu" in lab) == (["dut"], 1, True, False)
    assert lab.target is lab["dut"] and lab["dut"].interfaces == ["console"]
    with pytest.raises(NotFound) as wrong:
        lab["dtu"]
    assert wrong.value.near == ["dut"]
    with pytest.raises(NotFound) as wrong:
        lab["dut"]["consle"]
    assert wrong.value.near == ["console"]


def test_of_several_interfaces_the_console_is_the_one_of_that_name(lab: Lab, board: BenchInAFolder):
    more = '[[targets.dut.serial]]\nname = "{}"\ndevice = "loopback:bmc"\n'
    board.lab.write_text(LAB_OF_ONE.format(dut="linux-login") + more.format("bmc"))
    assert lab["dut"].console.name == "dut.console"
    board.lab.write_text(board.lab.read_text().replace('"console"', '"soc"'))
    with pytest.raises(NotFound, match="soc, bmc"):
        _ = lab["dut"].console


def test_what_is_sent_arrives_and_the_answer_can_be_read_from_where_it_began(shell: Console):
    sent = shell.send("echo $((6*7)) done")
    assert sent.accepted == len("echo $((6*7)) done\r")
    until("the answer", lambda: shell.bytes(sent.offset).endswith(b"# "))
    lines = [line.text for line in shell.log(since=sent.seq)]
    assert any("done" in line for line in lines)
    (event,) = [event for event in shell.events(kinds=["tx"]) if event.data.startswith(b"echo")]
    assert event.offset >= sent.offset


@pytest.mark.parametrize("data", [b"-", b"--", b"", b"\x00\xff\xfe\x80", b"-e\r", "ü".encode(), bytes(range(256))])
def test_bytes_go_out_exactly(lab: Lab, board: BenchInAFolder, data: bytes):
    board.lab.write_text(LAB_OF_ONE.format(dut="linux-login"))
    console = lab["dut"].console
    console.watch()
    if not data:
        with pytest.raises(LabdError, match="nothing to send"):
            console.send(data)
        return
    assert console.send(data).accepted == len(data)
    (event,) = console.events(kinds=["tx"])
    assert event.data == data


def test_what_was_captured_is_read_with_the_daemon_down(shell: Console, board: BenchInAFolder):
    up = [line.raw for line in shell.log(tail=20)]
    board("daemons", "stop")
    with Lab(env=board.env) as later:
        assert [line.raw for line in later["dut"].console.log(tail=20)] == up
    until("no daemon", lambda: board.daemon_pid() is None)


def test_a_follow_gives_lines_as_they_come_and_ends_when_the_lab_is_closed(lab: Lab, shell: Console):
    came: list[str] = []
    thread = threading.Thread(target=lambda: came.extend(line.text for line in shell.follow(grep="marker")))
    thread.start()
    until("the follower", lambda: shell._bells)
    shell.send("echo marker-$((1+1))")
    until("the line", lambda: came)
    lab.close()
    thread.join(10)
    assert not thread.is_alive() and "marker" in came[-1]


def test_a_follow_with_a_timeout_ends(shell: Console):
    assert [line.partial for line in shell.follow(timeout=0.05)] in ([True], [])


def test_many_threads_use_one_lab(shell: Console):
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(5):
                assert shell.send(f"echo t{number}.{turn}").accepted
                assert shell.state().state == "open"
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert len(list(shell.events(kinds=["tx"]))) == 31  # the login, too


def test_a_lab_that_is_closed_hangs_up_and_says_so(lab: Lab, shell: Console, board: BenchInAFolder):
    lab.close()
    with Client(board.env) as client:
        until("no call left", lambda: client.request("daemon.status")["calls"] == [])
    with pytest.raises(Unreachable, match="closed"):
        shell.send("x")


def test_a_daemon_that_was_restarted_meanwhile_is_found_again(lab: Lab, shell: Console, board: BenchInAFolder):
    board("daemons", "stop")
    assert shell.watch().state == "open"
    assert shell.send("hello").accepted == 6


def test_any_operation_can_be_called_by_its_name(lab: Lab):
    assert lab.call("config.show")["targets"]["dut"]
    lab["dut"].watch()
    until("the board's first line", lambda: lab["dut"].console.bytes())
    assert lab.call("serial.log", target="dut", tail=0)[0]["seq"] == 1
    with pytest.raises(LabdError, match="no method"):
        lab.call("serial.fly", target="dut")


def test_the_policy_is_in_force(board: BenchInAFolder):
    with Lab(env={**board.env, "LABD_POLICY": "observe"}) as lab:
        with pytest.raises(Refused, match="observe"):
            lab["dut"].console.watch()
        assert list(lab["dut"].console.log()) == []
    with Lab(env={**board.env, "LABD_POLICY": "help"}) as lab, pytest.raises(Refused):
        _ = lab["dut"].console


def test_the_client_brings_no_trio_and_no_asyncio():
    code = (
        "import sys; from labd.client import Lab; Lab; print(sorted({'trio', 'asyncio', 'pexpect'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_expect_goes_on_from_what_was_sent_and_from_the_last_match(shell: Console):
    shell.send("echo one; echo two")
    first = shell.expect(r"(?m)^(o\w+)")
    assert (first[1], shell.expect("two").before) == ("one", "\n") and first.fields["interface"] == "console"
    shell.send("echo three")
    second = shell.expect(["four", "three"], timeout=10)
    assert (second.index, second.pattern, second.text) == (1, "three", "three")
    assert shell.bytes(second.start, second.end) == b"three"
    with pytest.raises(TimedOut) as missed:
        shell.expect("thref", cursor=first.end, timeout=0.1)
    assert any("three" in note for note in missed.value.__notes__)
    with pytest.raises(Usage):
        shell.expect("(")


def test_run_gives_the_output_and_the_exit_code_of_the_command(board: BenchInAFolder):
    board.lab.write_text(LAB_OF_ONE.format(dut="dash-shell"))
    with Lab(env=board.env) as lab:
        console = lab["dut"].console
        console.watch()
        ran = console.run("echo hello; false")
        assert (ran.output, ran.code) == ("hello\n", 1)
        assert str(console.run("echo again", check=True)) == "again\n"
        with pytest.raises(PassedOn) as failed:
            console.run("exit_7() { return 7; }; exit_7", check=True)
        assert failed.value.exit_code == 7
        assert console.run("printf '\\0\\377'", binary=True).data == b"\x00\xff"


def test_a_held_console_is_written_to_by_its_holder_alone(shell: Console, board: BenchInAFolder):
    with shell.hold(why="a measurement"):
        assert shell.send("echo mine").accepted
        refused = board("serial", "send", "dut", "x", "--wait", "0", check=6)
        assert b"a measurement" in refused.stderr
        with Lab(env=board.env) as other:
            assert other["dut"].console.state().fields["writer"]["what"] == "a measurement"
    until("the console free again", lambda: shell.state().fields["writer"] is None)
    board("serial", "send", "dut", "x")


def test_a_hold_that_was_taken_over_is_told_to_who_believes_in_it(shell: Console, board: BenchInAFolder):
    with pytest.raises(Busy, match="taken over"), shell.hold(why="a measurement"):
        board("serial", "send", "dut", "echo theirs", "--take")
        until("the hold's end", lambda: _raises(Busy, lambda: shell.send("echo mine")))
        until("the same of a run", lambda: _raises(Busy, lambda: shell.run("echo mine")))
    assert shell.send("echo free").accepted


def test_a_hold_does_not_outlive_its_daemon_silently(shell: Console, board: BenchInAFolder):
    with pytest.raises(Unreachable, match=r"held no more.*others may have typed"), shell.hold():
        board("daemons", "restart")
    with shell.hold():
        assert shell.send("echo again").accepted


def _raises(kind: type[Exception], act: Any) -> bool:
    try:
        act()
    except kind:
        return True
    return False


def test_a_forked_process_has_connections_of_its_own_and_leaves_its_parents_alone(lab: Lab, shell: Console):
    following = shell.follow(timeout=20)
    first = next(following)  # so that it waits on a connection
    out, into = os.pipe()
    with shell.hold(why="the parent's"):
        child = os.fork()
        if child == 0:
            try:
                codes = [shell.state().state, str(shell.expect("login: ", cursor=0, timeout=10).index)]
                lab.close()
                os.write(into, " ".join(codes).encode())
            finally:
                os._exit(0)
        answers = [shell.expect("login: ", cursor=0, timeout=10).text for _ in range(10)]
        os.waitpid(child, 0)
        assert (answers, os.read(out, 100)) == (["login: "] * 10, b"open 0")
        assert shell.send("echo still-$((1+1))held").accepted
    assert first.text and any("still-" in str(line) for line in following)
    os.close(out)
    os.close(into)


def test_what_is_held_is_let_go_though_a_forked_process_lives_on(shell: Console):
    with shell.hold():
        child = os.fork()
        if child == 0:
            signal.pause()
    try:
        until("the console free again", lambda: shell.state().fields["writer"] is None, seconds=5)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.parametrize("daemon", ["killed", "restarted"])
def test_a_daemon_that_goes_under_a_wait_is_said_and_the_next_call_finds_another(
    shell: Console, board: BenchInAFolder, daemon: str
):
    failed: list[BaseException] = []

    def wait() -> None:
        try:
            shell.expect("never", timeout=20)
        except LabdError as error:
            failed.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    with Client(board.env) as client:
        until("the wait", lambda: any("expect" in str(call) for call in client.request("daemon.status")["calls"]))
    pid = board.daemon_pid()
    assert pid is not None
    if daemon == "killed":
        os.kill(pid, signal.SIGKILL)
    else:
        board("daemons", "restart")
    assert shell.watch().state == "open"
    waiting.join(20)
    assert isinstance(failed[0], Unreachable) and "may have done it already" in str(failed[0])
    assert failed[0].hint == "labd timeline TARGET"


@pytest.mark.parametrize("wrong", [b"bytes", 5, None, [], ["login", b"# "], ["login", "("], "", "("])
def test_a_pattern_that_is_none_is_a_usage_error(shell: Console, wrong: Any):
    with pytest.raises(Usage):
        shell.expect(wrong, timeout=0.1)


@pytest.mark.parametrize("wrong", [None, "5", math.nan, math.inf, -1, 1e12])
def test_a_timeout_that_is_no_time_is_a_usage_error(shell: Console, wrong: Any):
    with pytest.raises(Usage):
        shell.expect("login", timeout=wrong)
    with pytest.raises(Usage):
        shell.run("true", timeout=wrong)


def test_what_can_not_be_sent_is_a_usage_error_and_bytes_of_any_kind_can_be(shell: Console):
    wrong: Any
    for wrong in (5, None, ["x"]):
        with pytest.raises(Usage, match="text or bytes"):
            shell.send(wrong)
    with pytest.raises(Usage, match="a command is text"):
        shell.run(b"true")  # type: ignore[arg-type]
    with pytest.raises(Usage, match=r"bogus can.t be"):
        shell.send("x", bogus=object())
    before = len(list(shell.events(kinds=["tx"])))
    shell.send(memoryview(b"m\r"))
    shell.send(bytearray(b"b\r"))
    assert [event.data for event in shell.events(kinds=["tx"])][before:] == [b"m\r", b"b\r"]
