"""The daemon as its users meet it: real processes, real sockets, real boards on PTYs."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import time

import pytest

from labd import __version__
from labd.client import Client
from labd.errors import LabdError
from tests.conftest import LAB_OF_ONE, LABD, BenchInAFolder, until


def alive(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def log_has(bench: BenchInAFolder, text: str, *more: str) -> bool:
    return text in bench.out("serial", "log", "dut", "--tail", "0", *more)


def test_the_first_runtime_verb_starts_the_daemon_and_watch_answers_when_the_port_is_open(board: BenchInAFolder):
    assert board.daemon_pid() is None
    opened = board.json("serial", "watch", "dut")
    (line,) = opened["interfaces"]
    assert (line["state"], line["kind"]) == ("open", "loopback")
    assert os.path.exists(line["node"])
    assert board.daemon_pid() is not None


def test_what_the_board_says_can_be_read_at_once_and_answers_to_what_is_sent(board: BenchInAFolder):
    board("serial", "watch", "dut")
    until("login prompt", lambda: log_has(board, "login:"))
    sent = board.json("serial", "send", "dut", "root")
    assert sent["accepted"] == 5
    until("shell prompt", lambda: log_has(board, "root@", "--since", str(sent["seq"])))


def test_the_journal_reads_the_same_with_the_daemon_down(board: BenchInAFolder):
    board("serial", "watch", "dut")
    until("login prompt", lambda: log_has(board, "login:"))
    up = board.out("serial", "log", "dut", "--tail", "20")
    board("daemons", "stop")
    assert board.out("serial", "log", "dut", "--tail", "20") == up


def test_sending_while_nothing_is_captured_sends_nothing_and_says_what_to_do(board: BenchInAFolder):
    done = board("serial", "send", "dut", "hello", check=7)
    assert b"labd serial watch dut" in done.stderr and done.stdout == b""


def test_an_error_under_json_is_one_object_on_stderr(board: BenchInAFolder):
    done = board("serial", "watch", "dtu", "--json", check=4)
    error = json.loads(done.stderr)["error"]
    assert (error["code"], error["near"], done.stdout) == ("not_found", ["dut"], b"")


def test_two_daemons_started_at_once_leave_one(board: BenchInAFolder):
    both = [board.start("serial", "watch", "dut") for _ in range(4)]
    assert [process.wait(60) for process in both] == [0, 0, 0, 0]
    listed = board.json("daemons")
    assert listed["daemon"]["pid"] == board.daemon_pid()
    assert listed["untracked"] == []
    assert len(listed["boards"]) == 1


def test_a_daemon_that_was_killed_blocks_nothing_and_the_next_goes_on_with_its_boards(board: BenchInAFolder):
    board("serial", "watch", "dut")
    listed = board.json("daemons")
    os.kill(listed["daemon"]["pid"], signal.SIGKILL)
    until("the daemon's end", lambda: not alive(listed["daemon"]["pid"]))
    assert board.json("serial", "watch", "dut")["interfaces"][0]["state"] == "open"
    again = board.json("daemons")
    assert again["daemon"]["pid"] != listed["daemon"]["pid"]
    assert (again["capture"]["pid"], again["untracked"]) == (listed["capture"]["pid"], [])
    assert [b["pid"] for b in again["boards"]] == [b["pid"] for b in listed["boards"]]
    board("daemons", "stop")
    until("the end of all", lambda: not any(map(alive, [again["capture"]["pid"], again["boards"][0]["pid"]])))


def test_stop_ends_what_a_killed_daemon_left_behind(board: BenchInAFolder):
    board("serial", "watch", "dut")
    listed = board.json("daemons")
    os.kill(listed["daemon"]["pid"], signal.SIGKILL)
    until("the daemon's end", lambda: not alive(listed["daemon"]["pid"]))
    alone = board.json("daemons")
    assert (alone["daemon"], alone["capture"]["pid"], alone["untracked"]) == (None, listed["capture"]["pid"], [])
    assert "capture" in board.out("daemons", "stop")
    until("the end of all", lambda: not any(map(alive, [listed["capture"]["pid"], listed["boards"][0]["pid"]])))


def test_a_vanished_socket_is_made_again_and_running_calls_go_on(board: BenchInAFolder):
    board("serial", "watch", "dut")
    pid = board.daemon_pid()
    follow = board.start("serial", "log", "dut", "--follow")
    assert follow.stdout is not None and follow.stdout.readline()
    path = board.runtime / "labd" / "daemon.sock"
    path.unlink()
    until("the socket again", path.exists)
    board("serial", "send", "dut", "root")
    assert board.json("daemons")["daemon"]["pid"] == pid
    assert follow.poll() is None
    follow.send_signal(signal.SIGINT)
    assert follow.wait(30) == -signal.SIGINT
    follow.stdout.close()
    assert follow.stderr is not None
    follow.stderr.close()


def test_ctrl_c_cancels_at_the_daemon(board: BenchInAFolder):
    board("serial", "watch", "dut")
    follow = board.start("serial", "log", "dut", "--follow")
    with Client(board.env) as client:
        until("the running call", lambda: len(client.request("daemon.status")["calls"]) == 1)
        follow.send_signal(signal.SIGINT)
        assert follow.wait(30) == -signal.SIGINT
        until("no running call", lambda: client.request("daemon.status")["calls"] == [])
    follow.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_daemon_cleanly(board: BenchInAFolder, number: int):
    board("serial", "watch", "dut")
    listed = board.json("daemons")
    os.kill(listed["daemon"]["pid"], number)
    until("the daemon's end", lambda: board.daemon_pid() is None)
    until("the board's end", lambda: not alive(listed["boards"][0]["pid"]))
    until("the capture process's end", lambda: not alive(listed["capture"]["pid"]))
    assert not (board.runtime / "labd" / "daemon.sock").exists()


def test_sockets_are_for_this_user_only(board: BenchInAFolder):
    board("serial", "watch", "dut")
    directory = board.runtime / "labd"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / "daemon.sock").stat().st_mode) == 0o600


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become somebody else")
def test_another_users_connection_is_not_served(board: BenchInAFolder):
    board("serial", "watch", "dut")
    directory = board.runtime / "labd"
    os.chmod(board.runtime, 0o755)
    os.chmod(directory, 0o755)
    os.chmod(directory / "daemon.sock", 0o666)
    code = (
        "import os, socket, sys; os.setgid(65534); os.setuid(65534)\n"
        f"s = socket.socket(socket.AF_UNIX); s.connect({str(directory / 'daemon.sock')!r})\n"
        'try:\n    s.sendall(b\'{"id": 1, "method": "daemon.hello"}\\n\'); print(len(s.recv(100)))\n'
        "except OSError: print(0)"
    )
    done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "0", done.stderr


def test_a_client_that_stops_reading_delays_nobody(board: BenchInAFolder):
    board.lab.write_text(LAB_OF_ONE.format(dut="flood"))
    board("serial", "watch", "dut")
    stuck = board.start("serial", "log", "dut", "--follow")  # its pipe fills and nobody reads it
    until("lines of the flood", lambda: board.json("serial", "show", "dut")[0]["rx"] > 300_000)
    began = time.monotonic()
    board("serial", "log", "dut", "--tail", "20")
    assert time.monotonic() - began < 10
    before = board.json("serial", "show", "dut")[0]["rx"]
    until("capture going on", lambda: board.json("serial", "show", "dut")[0]["rx"] > before)
    stuck.kill()
    stuck.communicate()


def test_a_board_that_was_killed_comes_back_and_capture_goes_on(board: BenchInAFolder):
    board("serial", "watch", "dut")
    until("login prompt", lambda: log_has(board, "login:"))
    seq = json.loads(board.out("serial", "log", "dut", "--tail", "1", "--json"))["seq"]
    os.kill(board.json("daemons")["boards"][0]["pid"], signal.SIGKILL)
    until("the second boot", lambda: log_has(board, "login:", "--since", str(seq)))
    until("its second player", lambda: board.json("daemons")["boards"][0]["restarts"] == 1)

    def kinds() -> set[str | None]:
        told = board.out("serial", "log", "dut", "--tail", "0", "--events", "--json").splitlines()
        return {json.loads(line).get("event") for line in told}

    until("its loss and its return in the record", lambda: {"lost", "reopened", "dut"} <= kinds())


def test_a_killed_boards_link_leads_nowhere_before_it_is_back(board: BenchInAFolder):
    """Its node's number is soon somebody else's, and capture must not follow it there."""
    board("serial", "watch", "dut")
    (link,) = (board.runtime / "labd" / "loopback").iterdir()
    before = os.readlink(link)
    os.kill(board.json("daemons")["boards"][0]["pid"], signal.SIGKILL)
    until("the link's end", lambda: not link.is_symlink(), seconds=5)
    mine = []
    try:
        while before not in [os.ttyname(secondary) for _, secondary in mine] and len(mine) < 64:
            mine.append(os.openpty())  # take the number that has come free
        until("the board again", lambda: board.json("daemons")["boards"][0]["restarts"] == 1)
        until("capture again", lambda: board.json("serial", "show", "dut")[0]["state"] == "open")
        assert board.json("serial", "show", "dut")[0]["node"] != before
    finally:
        for primary, secondary in mine:
            os.close(primary)
            os.close(secondary)


def test_edits_of_the_lab_are_taken_up_while_it_runs(board: BenchInAFolder):
    board("serial", "watch", "dut")
    with board.lab.open("a") as lab:
        lab.write('[[targets.dut.serial]]\nname = "bmc"\ndevice = "loopback:bmc"\n')
    until("the new interface", lambda: len(board.json("daemons")["channels"]) == 2)
    board.lab.write_text('[targets.dut]\n[[targets.dut.serial]]\nname = "bmc"\ndevice = "loopback:bmc"\n')
    until("the old one's end", lambda: [c["name"] for c in board.json("daemons")["channels"]] == ["bmc"])


def test_a_lab_broken_by_hand_keeps_what_runs_running(board: BenchInAFolder):
    board("serial", "watch", "dut")
    good = board.lab.read_text()
    board.lab.write_text("[targets.dut\n")
    until("a word in the log", lambda: "going on" in (board.runtime / "labd" / "daemon.log").read_text())
    board.lab.write_text(good)
    assert board.json("serial", "show", "dut")[0]["state"] == "open"


def test_a_lab_that_is_empty_while_an_editor_writes_it_ends_nothing(board: BenchInAFolder):
    board("serial", "watch", "dut")
    good = board.lab.read_text()
    board.lab.write_text("")
    time.sleep(1.5)  # longer than the daemon's look at its labs
    board.lab.write_text(good)
    time.sleep(1.5)
    assert board.json("serial", "show", "dut")[0]["state"] == "open"


def test_two_labs_that_name_one_device_contend_openly(board: BenchInAFolder):
    node = board.json("serial", "watch", "dut")["interfaces"][0]["node"]
    other = board.root / "other.toml"
    other.write_text(f'[targets.x]\n[[targets.x.serial]]\nname = "console"\ndevice = "{node}"\n')
    done = board("serial", "watch", "--lab", str(other), check=6)
    assert str(board.daemon_pid()) in done.stderr.decode() or b"labd" in done.stderr


def test_restart_captures_again_what_was_captured(board: BenchInAFolder):
    board("serial", "watch", "dut")
    pid = board.daemon_pid()
    again = board.json("daemons", "restart")
    assert again["captured_again"] == ["dut.console"] and again["pid"] != pid


def test_the_daemons_own_level_is_fixed_at_its_start(board: BenchInAFolder):
    board("serial", "watch", "dut", env={"LABD_POLICY": "simulated"})
    board.lab.write_text(board.lab.read_text().replace("loopback:linux-login", "/dev/null"))
    done = board("serial", "watch", "dut", check=3)
    assert b"the running daemon" in done.stderr and b"nothing ran" in done.stderr


def test_a_refusal_runs_nothing_not_even_a_daemon(board: BenchInAFolder):
    done = board("serial", "watch", "dut", check=3, env={"LABD_POLICY": "config"})
    assert b"LABD_POLICY" in done.stderr
    assert board.daemon_pid() is None
    start, end = board.records()
    assert (start["decision"], start["policy"], end["code"]) == ("refused", "config", 3)


def test_garbage_on_the_socket_hurts_nobody(board: BenchInAFolder):
    board("serial", "watch", "dut")
    path = str(board.runtime / "labd" / "daemon.sock")
    attacks = [
        b"\x00" * 100,
        b'{"id":NaN,"method":"daemon.hello"}\n',
        b'{"id":1,"method":"serial.show","labd":{"lab":"a\\u0000b"}}\n',
        b'{"id":1,"method":"serial.show","labd":{"env":{"HOME":"\\ud800"}}}\n',
        b"X30\n2\0" + __version__.encode() + b"\0/\x00000\x0080\0labd\0x\0y\n",
        b"X999999999\n",
        b"X5\nabcde",
        b"X\n",
        b"{",
        b"{}\n",
        b"[1]\n",
        b'{"method": 1}\n',
        b'{"id": 1, "method": "no.such"}\n',
        b'{"id": 1, "method": "serial.log", "params": [1]}\n',
        b'{"id":1,"method":"daemon.stop_board","params":{"x":1}}\n',
        b"{" * 100000 + b"\n",
        b"{" + b"x" * (5 << 20),
    ]
    for attack in attacks:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(10)
            peer.connect(path)
            try:
                peer.sendall(attack)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(65536):
                    pass
            except ConnectionError:
                pass  # hung up on in the middle of it, as it deserves
    assert board.json("serial", "show", "dut")[0]["state"] == "open"


def test_a_reader_that_leaves_early_ends_the_program_quietly(board: BenchInAFolder):
    board("serial", "watch", "dut")
    line = f"{LABD} commands --json | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], env=board.env, capture_output=True, text=True)
    assert done.stderr == "" and done.stdout.splitlines()[-1] == "141"


@pytest.mark.parametrize("up", [False, True])
@pytest.mark.parametrize("how", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_hurt_nothing(board: BenchInAFolder, how: str, up: bool):
    if up:
        board("serial", "watch", "dut")
    done = subprocess.run(["bash", "-c", f"{LABD} target list {how}"], env=board.env, capture_output=True, timeout=60)
    assert done.returncode == 0 and b"Traceback" not in done.stderr


@pytest.mark.parametrize("up", [False, True])
def test_an_answer_that_can_not_be_written_is_one_line_and_a_failure(board: BenchInAFolder, up: bool):
    if up:
        board("serial", "watch", "dut")
    for words in ("--version", "target list"):
        done = subprocess.run(["bash", "-c", f"{LABD} {words} > /dev/full"], env=board.env, capture_output=True)
        assert done.returncode == 1 and done.stderr.count(b"\n") == 1 and b"No space" in done.stderr


@pytest.mark.parametrize("up", [False, True])
@pytest.mark.parametrize("log", ["/dev/full", "/proc/nope/x", ".", "fifo"])
def test_a_record_that_can_not_be_written_stops_the_command_with_one_error(board: BenchInAFolder, log: str, up: bool):
    if up:
        board("serial", "watch", "dut")
    os.mkfifo(board.root / "fifo")
    done = board("target", "list", "--json", check=1, env={"LABD_ARGV_LOG": log})
    assert "nothing runs unrecorded" in json.loads(done.stderr)["error"]["message"] and done.stdout == b""


def test_secrets_stay_out_of_the_benchs_own_record(board: BenchInAFolder):
    board("power", "set", "-t", "dut", "--on-cmd", "curl -u me:hunter2 http://u:hunter2@h/?x", check=None)
    own = board.root / "state" / "labd" / "argv.jsonl"
    assert own.exists() and "hunter2" not in own.read_text()
    assert "hunter2" in board.log.read_text()  # the record that was asked for by its path is exact


def test_a_level_can_not_be_got_round_by_an_edit_of_the_lab(board: BenchInAFolder, tmp_path):
    level = {"LABD_POLICY": "simulated"}
    primary, secondary = os.openpty()
    node = os.ttyname(secondary)
    try:
        board("serial", "watch", "dut", env=level)
        board("serial", "set", "console", "-t", "dut", "--device", node, env=level)
        time.sleep(2.5)  # longer than the daemon's look at its labs
        assert node not in str(board.json("daemons")["channels"])
        board("serial", "send", "dut", "boo", check=3, env=level)
    finally:
        os.close(primary)
        os.close(secondary)


def test_what_is_asked_over_rpc_obeys_the_level_and_is_recorded(board: BenchInAFolder):
    board("serial", "watch", "dut")
    with Client({**board.env, "LABD_POLICY": "help"}) as client:
        for method, params in (("daemon.stop", {}), ("daemon.stop_board", {"name": "dut.console"})):
            with pytest.raises(LabdError) as caught:
                client.request(method, params)
            assert caught.value.name == "refused"
    refused = [record for record in board.records() if record.get("decision") == "refused"]
    assert [record["argv"] for record in refused] == [
        ["labd", "daemons", "stop"],
        ["labd", "daemons", "stop", "dut.console"],
    ]
    assert board.daemon_pid() is not None


def followers(board: BenchInAFolder, count: int) -> list[socket.socket]:
    """Callers of `serial log --follow`, as the thin client would be, without a process each."""
    env = [f"{name}={value}".encode() for name, value in board.env.items()]
    head = [b"2", __version__.encode(), b"/", b"000", b"80", b"labd", b"1"]
    body = b"\0".join([*head, *env, b"", b"serial", b"log", b"dut", b"--follow"])
    callers = [socket.socket(socket.AF_UNIX) for _ in range(count)]
    for caller in callers:
        caller.connect(str(board.runtime / "labd" / "daemon.sock"))
        caller.sendall(b"X%d\n%s" % (len(body), body))
    return callers


def test_when_too_many_calls_run_the_next_is_told_and_the_daemon_can_be_stopped(board: BenchInAFolder):
    board("serial", "watch", "dut")
    with Client(board.env) as client:
        callers = followers(board, 205)
        try:
            until("as many calls as it can", lambda: len(client.request("daemon.status")["calls"]) >= 200, seconds=60)
            assert b"as many calls" in board("serial", "send", "dut", "x", check=6).stderr
            assert board("target", "list").stdout  # what needs no daemon goes on without it
            board("daemons", "stop")
        finally:
            for caller in callers:
                caller.close()


def test_json_rpc_answers_what_the_command_line_answers(board: BenchInAFolder):
    board("serial", "watch", "dut")
    until("login prompt", lambda: log_has(board, "login:"))
    with Client(board.env) as client:
        shown = client.request("serial.show", {"target": "dut"})
        assert shown[0]["device"] == "loopback:linux-login"
        items: list[dict[str, object]] = []
        client.request("serial.log", {"target": "dut", "tail": 3}, on_item=items.append)
        assert [sorted(item) for item in items] == [["partial", "seq", "text", "ts_ms"]] * 3
        with pytest.raises(LabdError) as caught:
            client.request("serial.show", {"target": "dtu"})
        assert (caught.value.name, caught.value.near) == ("not_found", ["dut"])


def test_a_daemon_of_another_version_is_told_apart(board: BenchInAFolder):
    board("serial", "watch", "dut")
    path = str(board.runtime / "labd" / "daemon.sock")
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(path)
        body = b"\0".join([b"2", b"9.9.9", b"/", b"000", b"80", b"labd", b"1", b"", b"serial", b"show"])
        peer.sendall(b"X%d\n%s" % (len(body), body))
        assert peer.recv(100).startswith(b"v0.")


def test_it_notifies_a_service_manager(board: BenchInAFolder, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        address = str(board.runtime / "notify")
        manager.bind(address)
        manager.settimeout(20)
        daemon = subprocess.Popen([LABD, "daemon"], env={**board.env, "NOTIFY_SOCKET": address},
                                  stderr=subprocess.DEVNULL)  # fmt: skip
        try:
            assert manager.recv(100) == b"READY=1"
        finally:
            daemon.terminate()
        assert manager.recv(100) == b"STOPPING=1"
        assert daemon.wait(30) == 0


def test_stdin_reaches_a_verb_that_asks_for_it(board: BenchInAFolder):
    board("serial", "watch", "dut")
    assert board.json("serial", "send", "dut", "-", stdin=b"root")["bytes"] == 5


def test_argv_of_any_bytes_is_recorded_exactly(board: BenchInAFolder):
    words = ["serial", "send", "nope", "a\nb\t\x01", "", "\udcff"]
    done = subprocess.run([LABD.encode(), *[os.fsencode(w) for w in words]], env=board.env, capture_output=True)
    assert done.returncode == 2
    assert board.records()[0]["argv"] == ["labd", *words]


def test_an_unwritable_record_stops_the_command(board: BenchInAFolder):
    done = board("config", "path", check=1, env={"LABD_ARGV_LOG": "/proc/nope/argv.jsonl"})
    assert b"nothing runs unrecorded" in done.stderr


def test_a_simulated_board_ends_with_its_last_watch_and_its_log_stays(board: BenchInAFolder):
    board.lab.write_text(LAB_OF_ONE.format(dut="linux-login") + '[[targets.dut.serial]]\nname = "bmc"\n'
                         'device = "loopback:bmc"\n')  # fmt: skip
    board("serial", "watch", "dut")
    until("login prompt", lambda: log_has(board, "login:", "-i", "console"))
    pids = {running["name"]: running["pid"] for running in board.json("daemons")["boards"]}
    board("serial", "stop", "dut", "-i", "console")
    assert not alive(pids["dut.console"]) and alive(pids["dut.bmc"])
    assert [running["name"] for running in board.json("daemons")["boards"]] == ["dut.bmc"]
    assert log_has(board, "login:", "-i", "console")
    board("serial", "stop", "dut")
    assert board.json("daemons")["boards"] == [] and not alive(pids["dut.bmc"])
    assert board.json("serial", "watch", "dut", "-i", "console")["interfaces"][0]["state"] == "open"


def test_labd_of_another_runtime_directory_is_listed_with_what_ends_it(board: BenchInAFolder, tmp_path):
    other = tmp_path / "r"
    other.mkdir(mode=0o700)
    state = {"XDG_RUNTIME_DIR": str(other), "XDG_STATE_HOME": str(tmp_path / "s")}
    board("daemons", "start", env=state)
    (listed,) = [each for each in board.json("daemons")["elsewhere"] if each["runtime"] == f"{other}/labd"]
    assert listed["end"] == f"env XDG_RUNTIME_DIR={other} labd daemons stop"
    assert all(map(alive, listed["pids"]))
    words = listed["end"].split()
    subprocess.run(words, env=board.env, check=True, capture_output=True, timeout=60)
    until("its end", lambda: not any(map(alive, listed["pids"])))
    assert f"{other}/labd" not in str(board.json("daemons"))


def test_a_lowered_policy_suspends_a_capture_says_why_and_its_return_takes_it_up_again(board: BenchInAFolder):
    board("serial", "watch", "dut")
    text = board.lab.read_text()
    board.lab.write_text('[policy]\nlevel = "observe"\n' + text)
    why = "the lab's policy level 'observe' no longer permits it"
    until("it is suspended", lambda: board.json("serial", "show", "dut")[0]["state"] == "suspended")
    assert f"({why}; it is captured again once that does)" in board.out("serial", "show", "dut")
    events = [json.loads(line) for line in
              board.out("serial", "log", "dut", "--tail", "0", "--events", "--json").splitlines()]  # fmt: skip
    assert [event["why"] for event in events if event.get("event") == "closed"] == [why]
    board.lab.write_text(text)
    until("it is captured again", lambda: board.json("serial", "show", "dut")[0]["state"] == "open")
    board.lab.write_text('[policy]\nlevel = "observe"\n' + text)
    until("it is suspended", lambda: board.json("serial", "show", "dut")[0]["state"] == "suspended")
    board.lab.write_text("[targets.dut]\n")
    time.sleep(1.5)
    board.lab.write_text(text)
    time.sleep(1.5)
    assert board.json("serial", "show", "dut")[0]["state"] == "not captured", "it was taken out of the lab meanwhile"
