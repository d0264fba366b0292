"""Every runtime verb on a channel of another machine, over a real sshd."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from pathlib import Path

import pytest

from labd import __version__
from tests.conftest import until
from tests.remote.far import Far


def slices(far: Far) -> list[Path]:
    return sorted((far.bench.root / "state" / "labd" / "remote").rglob("*.toml"))


def shell(far: Far) -> None:
    """Capture `dut`, and be logged in there, whatever was before."""
    far.near("serial", "watch", "dut")
    until("a prompt", lambda: far.near("serial", "send", "dut", "root", "--expect", "# ", "--timeout", "3",
                                       check=None).returncode == 0)  # fmt: skip


def test_a_console_there_is_watched_read_typed_at_and_waited_for_from_here(far: Far):
    near = far.near
    assert b"dut.console: open" in near("serial", "watch", "dut").stdout
    assert near.json("serial", "show", "dut")[0]["state"] == "open"
    near("serial", "expect", "dut", "login:", "--from-offset", "0", "--timeout", "20")
    near("serial", "send", "dut", "root", "--expect", "# ", "--timeout", "20")
    done = near("serial", "run", "dut", "uname -r")
    assert done.stdout.strip() == b"6.12.44-labd"
    assert near("serial", "run", "dut", "false", check=1).stdout == b""
    lines = [json.loads(line) for line in near("serial", "log", "dut", "--json").stdout.splitlines()]
    assert any("Run /sbin/init" in line["text"] for line in lines)
    assert near("serial", "log", "dut", "--raw", "--tail", "0").stdout.count(b"\r\n") > 20
    near("serial", "expect", "dut", "never said", "--timeout", "0.3", check=5)


def test_a_warm_call_starts_no_ssh_and_nothing_is_captured_here(far: Far):
    far.near("serial", "watch", "dut")
    before = far.ssh_runs()
    far.near("serial", "show", "dut")
    far.near("serial", "log", "dut")
    assert far.ssh_runs() == before
    assert far.near.json("daemons")["channels"] == []
    assert not (far.near.root / "state" / "labd" / "journal").exists()


def test_a_connection_for_the_next_call_is_made_ahead_and_one_that_ended_is_not_used(far: Far):
    far.near("serial", "watch", "dut")
    (door,) = [path for path in (far.near.runtime / "labd" / "ssh").iterdir() if path.suffix == ".sock"]
    with socket.socket(socket.AF_UNIX) as spare:  # as the daemon does it
        spare.connect(str(door))
        spare.sendall(b"S")
        far.bench("daemons", "stop")
        spare.settimeout(20)
        assert spare.recv(1) == b""
    far.near("serial", "show", "dut")
    far.near("serial", "watch", "dut")


def test_what_stdin_brings_is_typed_there(far: Far):
    shell(far)
    far.near("serial", "send", "dut", "-", stdin=b"echo from-stdin\n")
    far.near("serial", "expect", "dut", "from-stdin", "--since", "0", "--timeout", "20")


def test_the_slice_has_that_target_alone_and_keeps_its_path_and_the_journal(far: Far):
    far.lab("dut", "other", extra='[targets.other.power]\ncycle_cmd = "plug S3CRET"\n[targets.dut.power]\n'
                                  'host = "local"\ncycle_cmd = "plug HERE"\n')  # fmt: skip
    far.near("serial", "watch", "dut")
    (slice_,) = [path for path in slices(far) if path.name == "dut.toml"]
    text = slice_.read_text()
    assert slice_.stat().st_mode & 0o777 == 0o600
    assert "S3CRET" not in text and "HERE" not in text and far.ssh not in text and str(far.command) not in text
    seq = json.loads(far.near("serial", "log", "dut", "--tail", "1", "--json").stdout.splitlines()[-1])["seq"]
    far.lab("dut", extra="# the lab was edited\n[journal]\nkeep_days = 30\n")
    again = json.loads(far.near("serial", "log", "dut", "--tail", "1", "--json").stdout.splitlines()[-1])["seq"]
    assert again >= seq
    assert "keep_days = 30" in slice_.read_text()


def test_refused_here_means_that_nothing_is_sent(far: Far):
    before = far.ssh_runs(), len(far.bench.records())
    done = far.near("serial", "send", "dut", "reboot", check=3, env={"LABD_POLICY": "observe"})
    assert b"LABD_POLICY" in done.stderr
    assert (far.ssh_runs(), len(far.bench.records())) == before
    started = [record for record in far.near.records() if record["rec"] == "start"][-1]
    assert started["decision"] == "refused"


def test_both_machines_record_the_call_and_there_it_says_who_and_from_where(far: Far):
    far.near("serial", "watch", "dut", env={"LABD_AS": "alice"})
    far.near("serial", "send", "dut", "true", env={"LABD_AS": "alice"})
    here = [record for record in far.near.records() if record["rec"] == "start"][-1]
    assert here["host"] == "far" and here["decision"] == "permitted"
    own = far.bench.root / "state" / "labd" / "argv.jsonl"
    there = [json.loads(line) for line in own.read_text().splitlines()]
    sent = [record for record in there if record.get("operation") == "serial send"][-1]
    assert sent["argv"][-3:] == ["send", "dut", "true"] and sent["program"].startswith(os.uname().nodename + ":")
    events = far.near("serial", "log", "dut", "--events", "--json").stdout
    assert b'"user": "alice"' in events


def test_a_policy_there_holds_too(far: Far):
    far.lab(extra='[policy]\nlevel = "simulated"\n')
    far.near("serial", "watch", "dut")
    assert 'level = "simulated"' in next(path for path in slices(far) if path.name == "dut.toml").read_text()


def test_the_level_of_the_daemon_there_holds_too(far: Far):
    far.lab(extra='[targets.real]\nhost = "far"\n[[targets.real.serial]]\nname = "x"\ndevice = "/dev/no-such-tty"\n')
    far.bench("daemons", "stop")
    far.bench("daemons", "start", env={"LABD_POLICY": "simulated"})
    try:
        done = far.near("serial", "send", "real", "x", check=3)
        assert b"the running daemon sets 'simulated'" in done.stderr
        assert far.near.json("serial", "show", "dut")[0]["host"] == "far"
    finally:
        far.bench("daemons", "stop")


def test_a_claim_here_keeps_others_from_the_board_there(far: Far):
    far.near("claim", "dut", env={"LABD_AS": "alice"})
    try:
        done = far.near("serial", "send", "dut", "x", check=6, env={"LABD_AS": "bob"})
        assert b"alice" in done.stderr
    finally:
        far.near("release", "dut", env={"LABD_AS": "alice"})


def test_a_file_here_is_typed_there_and_one_that_is_missing_is_told_before_anything_is_sent(far: Far):
    near = far.near
    shell(far)
    (near.root / "script").write_text("echo of-a-file\n")
    near("serial", "send", "dut", "--file", "script", "--eol", "cr")
    near("serial", "expect", "dut", "of-a-file", "--since", "0", "--timeout", "20")
    before = len(far.bench.records())
    done = near("serial", "send", "dut", "--file", "/etc/no-such", check=4)
    assert b"on this machine" in done.stderr
    assert len(far.bench.records()) == before


def test_a_hint_from_there_works_here(far: Far):
    other = far.near.root / "other lab.toml"
    far.near.lab.rename(other)
    try:
        done = far.near("serial", "log", "dut", "--lab", str(other), "--grep", "nothing like it")
        far.near("serial", "stop", "dut", "--lab", str(other))
        done = far.near("serial", "send", "dut", "x", "--lab", str(other), check=7)
    finally:
        other.rename(far.near.lab)
    assert f"labd --lab '{other}' serial watch dut".encode() in done.stderr
    assert b"remote/" not in done.stderr


def test_all_consoles_are_listed_and_say_which_are_elsewhere(far: Far):
    far.lab("dut", extra='[targets.here]\n[[targets.here.serial]]\nname = "console"\ndevice = "loopback:uboot"\n')
    states = {row["target"]: row["state"] for row in far.near.json("serial", "show")}
    assert states["here"] == "not captured"
    assert states["dut"] == "wired to far: labd serial show dut asks there"


def test_errors_keep_their_code_and_their_form(far: Far):
    far.near("serial", "watch", "dut")
    done = far.near("serial", "log", "dut", "--grep", "(", "--json", check=2)
    assert json.loads(done.stderr.splitlines()[-1])["error"]["code"] == "usage"


def test_a_console_of_this_machine_stays_here(far: Far):
    far.lab("dut", extra='[targets.here]\n[[targets.here.serial]]\nname = "console"\ndevice = "loopback:uboot"\n')
    far.near("serial", "watch", "here")
    assert [line["target"] for line in far.near.json("daemons")["channels"]] == ["here"]
    far.near("serial", "stop", "here")


def test_a_host_of_this_machines_name_is_this_machine(far: Far):
    far.lab(hostname=os.uname().nodename)
    far.near("serial", "watch", "dut")
    assert [line["target"] for line in far.near.json("daemons")["channels"]] == ["dut"]
    far.near("serial", "stop", "dut")


def test_consoles_on_different_machines_need_a_name(far: Far):
    far.lab("dut", extra='[[targets.dut.serial]]\nname = "bmc"\nhost = "local"\ndevice = "loopback:bmc"\n')
    done = far.near("serial", "show", "dut", check=4)
    assert b"console on far, bmc on local" in done.stderr
    far.near("serial", "watch", "dut", "-i", "console")


def test_ctrl_c_here_ends_it_there_and_leaves_nothing(far: Far):
    near = far.near
    near("serial", "watch", "dut")
    (near.root / "blob").write_bytes(b"x" * 3000)
    process = near.start("serial", "send", "dut", "--file", "blob", "--pace-ms", "1000")
    work = far.bench.root / "state" / "labd" / "remote" / "calls"
    until("the call runs there", lambda: list(work.glob("*/blob")))
    process.send_signal(signal.SIGINT)
    process.wait(10)
    until("its directory is gone", lambda: not list(work.iterdir()), 15)
    near("serial", "send", "dut", "true", "--wait", "5")


def test_a_follower_ends_there_when_it_ends_here(far: Far):
    near = far.near
    near("serial", "watch", "dut")
    process = near.start("serial", "log", "dut", "--follow")
    running = lambda: "--follow" in json.dumps(status(far))  # noqa: E731
    until("it runs there", running)
    process.send_signal(signal.SIGINT)
    process.wait(10)
    until("it ended there", lambda: not running(), 10)


def status(far: Far) -> dict[str, object]:
    from labd.client import Client

    with Client(far.bench.env) as client:
        found: dict[str, object] = client.request("daemon.status")
        return found


def test_a_link_that_is_lost_in_mid_call_is_exit_7_with_what_may_have_been_done(far: Far):
    near = far.near
    near("serial", "watch", "dut")
    near("serial", "show", "dut")
    process = near.start("serial", "send", "dut", "x" * 60, "--pace-ms", "200")
    until("it is typing there", lambda: '"send"' in json.dumps(status(far)))
    reader = near.start("serial", "log", "dut", "--follow")
    until("it is read there", lambda: "--follow" in json.dumps(status(far)))
    time.sleep(0.3)
    far.cut()
    assert b"was lost before the answer was complete" in reader.communicate(timeout=20)[1]
    assert reader.returncode == 7
    _, said = process.communicate(timeout=20)
    assert process.returncode == 7
    assert b"may have been done" in said and b"labd serial log dut --events" in said
    done = near("serial", "show", "dut", check=7)
    assert b"nothing listens for ssh" in done.stderr and b"try: ssh " in done.stderr
    far.start()
    near("serial", "show", "dut")


def test_a_daemon_there_that_was_killed_is_started_again(far: Far):
    far.near("serial", "watch", "dut")
    pid = far.bench.daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until("it is gone", lambda: far.bench.daemon_pid() is None)
    assert far.near.json("serial", "show", "dut")[0]["capture"]["complete"] is not None
    assert far.bench.daemon_pid() not in (None, pid)


def test_daemons_there_are_listed_restarted_and_stopped_and_listing_starts_none(far: Far):
    near = far.near
    near("serial", "watch", "dut")
    pid = far.bench.daemon_pid()
    listed = near.json("daemons", "--host", "far")
    assert listed["daemon"]["pid"] == pid and listed["channels"][0]["target"] == "dut"
    near("daemons", "restart", "--host", "far")
    assert far.bench.daemon_pid() not in (None, pid)
    assert near.json("daemons")["daemon"]["pid"] == near.daemon_pid()
    assert near("daemons", "stop", "dut.console", "--host", "far").stdout == b"stopped dut.console\n"
    assert b"stopped labd" in near("daemons", "stop", "--host", "far").stdout
    assert near.json("daemons", "--host", "far")["daemon"] is None
    until("it has ended there", lambda: far.bench.daemon_pid() is None)
    assert near.daemon_pid() is not None
    near("serial", "watch", "dut")


def test_hardware_there_is_listed_and_checked_from_here(far: Far):
    found = far.near.json("discover", "--host", "far")
    assert any(board["device"] == "loopback:linux-login" for board in found["simulated"])
    far.lab("dut", "lost", extra='[[targets.lost.serial]]\nname = "x"\ndevice = "/dev/no-such-tty"\n')
    done = far.near("doctor", "--host", "far", "--json", check=1)
    rows = json.loads(done.stdout)["rows"]
    assert {row["status"] for row in rows if row["interface"] == "x"} == {"missing"}
    far.near("doctor", "dut", "--host", "far")
    done = far.near("doctor", "--host", "nope", check=4)
    assert b"no host 'nope'" in done.stderr


def test_the_connections_end_with_the_daemon_here(far: Far):
    far.near("serial", "show", "dut")
    assert [(link["host"], link["ssh"]) for link in far.near.json("daemons")["links"]] == [("far", far.ssh)]
    assert b"ssh to far" in far.near("daemons", "stop").stdout
    assert far.near.json("daemons")["links"] == []


# --- what can be wrong with the other machine ---------------------------------------------------------------------


@pytest.fixture
def cold(far: Far) -> Far:
    """The machine, with no connection to it."""
    far.near("daemons", "stop")
    return far


def test_an_older_labd_there_is_told_with_both_versions_and_what_to_run(cold: Far):
    old = cold.root / "old-labd"
    old.write_text("#!/bin/sh\necho labd 0.0.9\n")
    old.chmod(0o755)
    cold.lab(labd_cmd=str(old))
    done = cold.near("serial", "show", "dut", check=7)
    assert b"0.0.9" in done.stderr and __version__.encode() in done.stderr
    assert b"labd setup --user-only --yes --host far" in done.stderr
    old.write_text("#!/bin/sh\necho labd 7.1\n")
    assert b"newer than this one" in cold.near("serial", "show", "dut", check=7).stderr


def test_an_older_daemon_that_runs_there_is_told_too(cold: Far):
    old = cold.root / "old-labd"
    hello = '{"version": "0.0.8", "socket": "/none", "build": ""}'
    old.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo labd {__version__} || echo '{hello}'\n")
    old.chmod(0o755)
    cold.lab(labd_cmd=str(old))
    done = cold.near("serial", "show", "dut", check=7)
    assert b"is labd 0.0.8" in done.stderr and b"labd daemons restart --host far" in done.stderr


def test_an_sshd_that_forwards_no_sockets_is_told(cold: Far):
    config = cold.root / "sshd.conf"
    before = config.read_text()
    try:
        config.write_text(before + "AllowStreamLocalForwarding no\n")
        cold.cut()
        cold.start()
        done = cold.near("serial", "send", "dut", "x", check=7)
    finally:
        config.write_text(before)
        cold.cut()
    assert b"can't be reached through it; nothing was done" in done.stderr
    assert b"allowstreamlocalforwarding" in done.stderr


def test_no_labd_there(cold: Far):
    cold.lab(labd_cmd="/no/such/labd")
    done = cold.near("serial", "show", "dut", check=7)
    assert b"no labd runs there as '/no/such/labd'" in done.stderr and b"labd setup --yes --host far" in done.stderr


def test_a_key_that_it_does_not_take_and_one_that_it_does(cold: Far):
    (cold.root / "ssh.conf").write_text((cold.root / "ssh.conf").read_text().replace("/user\n", "/none\n"))
    try:
        cold.lab(identity=str(cold.root / "stranger"))
        done = cold.near("serial", "show", "dut", check=7)
        assert b"it did not let us in" in done.stderr and f"ssh -i {cold.root}/stranger".encode() in done.stderr
        assert done.stderr.count(b"\n") == 2, done.stderr
        cold.lab(identity=str(cold.root / "user"))
        cold.near("serial", "show", "dut")
    finally:
        (cold.root / "ssh.conf").write_text((cold.root / "ssh.conf").read_text().replace("/none\n", "/user\n"))


def test_a_host_key_that_changed(cold: Far):
    cold.know(cold.root / "stranger.pub")
    try:
        done = cold.near("serial", "show", "dut", check=7)
    finally:
        cold.know(cold.root / "host.pub")
    assert b"host key is another one" in done.stderr


def test_a_control_path_of_ones_own_is_used_and_left(cold: Far):
    control = cold.near.runtime / "mine"
    cold.lab(control_path=str(control))
    cold.near("serial", "show", "dut")
    assert control.exists()
    cold.near("daemons", "stop")
    assert control.exists()
    cold.cut()
    until("the connection ended", lambda: not control.exists())
