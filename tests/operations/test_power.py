"""The power verbs as a person uses them: real hooks, a real daemon, a simulated board or a served port to look at."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.channels.far import Rfc2217Server, rfc2217
from tests.conftest import BenchInAFolder, until
from tests.helpers.fake_shelly import FakeShelly
from tests.loopback.test_machine import machinefile

SWITCH = """\
#!/bin/sh
# A switch whose state is a file.
case $1 in
    state) cat "$LABD_FOLDER/power" ;;
    cycle) echo "$LABD_TARGET" >> "$LABD_FOLDER/cycled"; echo on > "$LABD_FOLDER/power"; echo was off for a moment ;;
    *) echo "$1" > "$LABD_FOLDER/power" ;;
esac
"""


class Bench:
    """A lab with one target and a script that switches it."""

    def __init__(self, labd: BenchInAFolder) -> None:
        self.labd = labd
        self.state = labd.root / "power"
        self.script("switch", SWITCH)
        self.state.write_text("on\n")

    def script(self, name: str, text: str) -> Path:
        path = self.labd.root / name
        path.write_text(text.replace("$LABD_FOLDER", str(self.labd.root)))
        path.chmod(0o755)
        return path

    def lab(self, more: str = "", **hooks: str) -> None:
        power = "".join(f"{key} = {json.dumps(value)}\n" for key, value in hooks.items())
        self.labd.lab.write_text(f"[targets.pico]\n[targets.pico.power]\n{power}{more}")

    def events(self, kind: str) -> list[dict[str, object]]:
        """What the target's own journal has of a kind."""
        files = sorted(self.labd.root.glob("**/@bench/events/*.raw"))
        lines = [json.loads(line) for file in files for line in file.read_bytes().splitlines()]
        return [line for line in lines if line["kind"] == kind]


@pytest.fixture
def bench(labd: BenchInAFolder) -> Bench:
    return Bench(labd)


def test_a_target_is_switched_read_back_and_recorded(bench: Bench) -> None:
    bench.lab(on_cmd="./switch on", off_cmd="./switch off", cycle_cmd="./switch cycle", state_cmd="./switch state")
    said = bench.labd.out("power", "off", "pico")
    assert said.startswith("pico: switched off (off_cmd ended well after 0.")
    assert "pico: verified: power off (state_cmd printed off)\n" in said and "not verified" not in said
    assert bench.labd.json("power-state", "pico")["power"] == "off"
    assert bench.labd.out("power", "state", "pico") == "pico: power off (state_cmd printed off)\n"
    found = bench.labd.json("power", "on", "pico")
    assert found["hook"]["name"] == "on_cmd" and found["unverified"] == ["that it boots"]
    assert [item["power"] for item in found["verified"]] == ["on"]
    found = bench.labd.json("power", "cycle", "pico")
    assert (bench.labd.root / "cycled").read_text() == "pico\n" and found["hook"]["said"] == "was off for a moment"
    assert any("cut in between" in what for what in found["unverified"])
    assert [event["action"] for event in bench.events("verify")] == ["off", "on", "cycle"]
    ran = bench.events("hook")
    assert [event["action"] for event in ran[:2]] == ["off", "state"] and ran[0]["command"] == "./switch off"
    assert {event["outcome"] for event in bench.events("verify")} == {"seen"}


def test_a_hook_that_ends_well_and_does_nothing_is_exit_1(bench: Bench) -> None:
    bench.lab(off_cmd="true", cycle_cmd="./switch off", state_cmd="./switch state")
    done = bench.labd("power", "off", "pico", "--within", "0.2", "--json", check=1)
    assert b"0.2 s later the power is still on: state_cmd printed on" in done.stderr
    assert json.loads(done.stdout)["ended"] == "failed"
    assert b"still off" in bench.labd("power-cycle", "pico", "--within", "0.2", check=1).stderr
    assert [event["outcome"] for event in bench.events("verify")] == ["contradicted"] * 2
    said = bench.labd.out("power", "off", "pico", "--verify", "none")
    assert "pico: not verified: its state (nobody asked for it)" in said


def test_without_a_state_the_answer_says_that_nothing_was_verified(bench: Bench) -> None:
    bench.lab(cycle_cmd="./switch cycle")
    said = bench.labd.out("power-cycle", "pico")
    assert "not verified: its state (it has no state_cmd and no sense line)" in said and "\npico: verified" not in said
    refused = bench.labd("power-cycle", "pico", "--verify", "state", check=7)
    assert b"nothing was done" in refused.stderr
    assert b"nobody knows whether it has power" in bench.labd("power-state", "pico", check=4).stderr
    assert (bench.labd.root / "cycled").read_text() == "pico\n"
    assert b"has no on_cmd, so nothing was done (it has cycle_cmd)" in bench.labd("power", "on", check=4).stderr


@pytest.mark.parametrize(("prints", "told"), [("maybe", "printed 'maybe'"), ("", "printed nothing")])
def test_a_state_that_is_neither_on_nor_off_is_an_error(bench: Bench, prints: str, told: str) -> None:
    bench.lab(state_cmd="./switch state", on_cmd="true")
    bench.state.write_text(prints)
    assert told in bench.labd("power-state", "pico", check=1).stderr.decode()
    bench.state.write_text("ON  4.2 W\n")
    assert bench.labd.json("power-state", "pico")["power"] == "on"
    bench.lab(state_cmd="sh -c 'exit 9'", on_cmd="true")
    assert b"exit code 9" in bench.labd("power-state", "pico", check=9).stderr
    done = bench.labd("power", "on", "pico", "--within", "0.1", check=9)
    assert b"the hook ended well, but the state can't be read back" in done.stderr


def test_a_hook_that_hangs_is_killed_with_its_children(bench: Bench) -> None:
    bench.script("hang", '#!/bin/sh\nsleep 600 & echo $! > "$LABD_FOLDER/child"\necho started\nwait\n')
    bench.lab(cycle_cmd="./hang --password=geheim", timeout_s="0.5")
    bench.labd.lab.write_text(bench.labd.lab.read_text().replace('"0.5"', "0.5"))
    done = bench.labd("power-cycle", "pico", check=5)
    assert b"did not end within 0.5 s; its process group was ended: " in done.stderr and b"started" in done.stderr
    assert b"geheim" not in done.stderr
    child = int((bench.labd.root / "child").read_text())
    until("the end of the hook's child", lambda: not _lives(child))


@pytest.mark.parametrize(
    ("script", "why"),
    [("#!/no/such/sh\nexit 0\n", "asks for '/no/such/sh', which is not there"),
     ("#!/bin/sh\r\nexit 0\r\n", "its lines end in CRLF"), ("exit 0\n", "is text without a first line #!"),
     ("#!/usr/bin/env nosuch\n", "asks env for 'nosuch'")],
)  # fmt: skip
def test_a_script_that_can_not_be_started_says_what_its_first_line_asks_for(
    bench: Bench, script: str, why: str
) -> None:
    bench.script("broken", script)
    bench.lab(cycle_cmd="./broken")
    assert why in bench.labd("doctor", "pico", check=None).stdout.decode()
    if "nosuch" not in script.split():  # env itself is started, and says so
        said = bench.labd("power-cycle", "pico", check=7).stderr.decode()
        assert f"broken {'can' if script.startswith('#!') else 'is'}" in said and why in said


def test_one_hook_at_a_time_runs_for_a_target_and_long_ones_are_told(bench: Bench) -> None:
    bench.script("slow", '#!/bin/sh\necho begin >> "$LABD_FOLDER/order"\nsleep 2.6\necho end >> "$LABD_FOLDER/order"\n')
    bench.lab(on_cmd="./slow")
    first = bench.labd.start("power", "on", "pico")
    until("the first hook", lambda: (bench.labd.root / "order").exists())
    second = bench.labd("power", "on", "pico")
    assert b"waiting for power on, which is running" in second.stderr
    assert b"the power hook for on is running; it may take 60 s" in first.communicate(timeout=30)[1]
    assert (bench.labd.root / "order").read_text() == "begin\nend\n" * 2


def test_a_hook_that_does_not_end_when_asked_to_says_how_long_it_was_given(bench: Bench) -> None:
    bench.script("deaf", "#!/bin/sh\ntrap '' TERM\nsleep 600\n")
    bench.lab(cycle_cmd="./deaf", timeout_s="0.5")
    bench.labd.lab.write_text(bench.labd.lab.read_text().replace('"0.5"', "0.5"))
    said = bench.labd("power-cycle", "pico", check=5).stderr
    assert b"within 0.5 s; its process group was asked to end, and killed 5 s later" in said


def test_stopping_the_daemon_waits_for_a_hook_and_says_which_or_ends_it_by_force(bench: Bench) -> None:
    bench.script("slow", '#!/bin/sh\necho $$ > "$LABD_FOLDER/begun"\nsleep $(cat "$LABD_FOLDER/seconds")\n')
    bench.lab(cycle_cmd="./slow", on_cmd="true")
    begun, seconds = bench.labd.root / "begun", bench.labd.root / "seconds"

    def cycle(takes: str) -> int:
        begun.unlink(missing_ok=True)
        seconds.write_text(takes)
        bench.labd.start("power-cycle", "pico")
        until("the hook", lambda: begun.exists() and begun.read_text().strip())
        return int(begun.read_text())

    hook = cycle("3")
    stopping = bench.labd.start("daemons", "stop")
    until("it lets nobody in", lambda: not (bench.labd.runtime / "labd" / "daemon.sock").exists())
    assert b"it may be waiting for a hook" in bench.labd("daemons", "stop", check=6).stderr
    _, said = stopping.communicate(timeout=60)
    assert stopping.returncode == 0 and not _lives(hook)
    assert b"waiting for power cycle of pico, which has been running for" in said and b"--force ends it" in said
    hook = cycle("600")
    before = time.monotonic()
    assert b"waiting for" not in bench.labd("daemons", "stop", "--force").stderr
    assert not _lives(hook) and time.monotonic() - before < 30
    assert bench.labd.json("daemons")["untracked"] == []


def test_who_switched_it_meanwhile_is_named_where_the_state_is_wrong(bench: Bench) -> None:
    bench.lab(on_cmd="./switch on", off_cmd="./switch off", state_cmd="echo on")
    first = bench.labd.start("power", "off", "pico", "--within", "4")
    until("it is off", lambda: bench.state.read_text() == "off\n")
    bench.labd("power", "on", "pico", "--verify", "none", env={"LABD_AS": "ann"})
    _, said = first.communicate(timeout=60)
    assert first.returncode == 1 and b"the power is still on" in said
    assert b"; meanwhile ann (cli, pid " in said and b") did power on" in said


def test_a_hook_goes_on_when_its_caller_goes_away(bench: Bench) -> None:
    bench.script("slow", '#!/bin/sh\necho off > "$LABD_FOLDER/power"\nsleep 0.7\necho on > "$LABD_FOLDER/power"\n')
    bench.lab(cycle_cmd="./slow")
    caller = bench.labd.start("power-cycle", "pico")
    until("the power to be off", lambda: bench.state.read_text() == "off\n")
    caller.kill()
    caller.wait()
    until("the power to be back", lambda: bench.state.read_text() == "on\n")


def test_a_cycle_of_off_and_on_brings_the_power_back_whatever_happens(
    bench: Bench,
) -> None:
    bench.lab(on_cmd="./switch on", off_cmd="sh -c './switch off; exit 3'")
    begun = time.monotonic()
    done = bench.labd("power-cycle", "pico", check=3)
    assert b"failed with exit code 3" in done.stderr and bench.state.read_text() == "on\n"
    assert time.monotonic() - begun >= 3
    bench.lab(on_cmd="./switch on", off_cmd="./switch off")
    bench.labd.start("power-cycle", "pico")
    until("the power to be off", lambda: bench.state.read_text() == "off\n")
    daemon = bench.labd.daemon_pid()
    assert daemon is not None
    os.kill(daemon, signal.SIGKILL)
    until("the power to be back, without the daemon", lambda: bench.state.read_text() == "on\n")


def test_helpers_are_found_by_name_also_by_a_hooks_shell(bench: Bench) -> None:
    plug = FakeShelly()
    try:
        bench.lab(
            cycle_cmd=f"sh -c 'shellyplug -d {plug.address} off && shellyplug -d {plug.address} on'",
            state_cmd=f"env X=1 shellyplug -d {plug.address} state",
        )
        found = bench.labd.json("power-cycle", "pico")
        assert [on for _, _, on in plug.changes] == [False, True] and found["verified"][0]["power"] == "on"
        plug.output[0] = False
        assert bench.labd.json("power-state")["power"] == "off"
        plug.password = "geheim"
        failing = bench.labd("power-state", check=7)
        assert b"authentication is on" in failing.stderr
        assert bench.labd.json("power-state", env={"SHELLYPLUG_PASSWORD": "geheim"})["power"] == "off"
    finally:
        plug.close()


def test_a_hook_that_needs_a_shell_is_refused_at_set_with_the_form_that_works(bench: Bench) -> None:
    bench.lab(on_cmd="true")
    done = bench.labd("power", "set", "-t", "pico", "--cycle-cmd", "a off; sleep 1; a on", check=2)
    assert b"""--cycle-cmd "sh -c 'a off; sleep 1; a on'\"""" in done.stderr
    assert b"meant as it is written" not in done.stderr
    url = "http://192.0.2.1/relay/0?turn=off&x=1"
    done = bench.labd("power", "set", "-t", "pico", "--off-cmd", f"curl {url}", check=2)
    assert f"""meant as it is written: --off-cmd "curl '{url}'\"""".encode() in done.stderr
    bench.labd("power", "set", "-t", "pico", "--off-cmd", f"curl '{url}'")
    bench.labd.lab.write_text(bench.labd.lab.read_text() + 'cycle_cmd = "a | b"\n')
    assert b"needs a shell for a pipe" in bench.labd("power-cycle", "pico", check=None).stderr


# --- a console that is looked at ------------------------------------------------------------------------------------

BOARD = """\
title = "A board that boots when it is told to reset"
banner = "U-Boot 2026.04 (Apr 06 2026)\\nHit any key\\n"
prompt = "=> "
[[respond]]
match = "reset"
reply = "resetting ...\\n\\nU-Boot 2026.04 (Apr 06 2026)\\nHit any key\\n"
"""
CONSOLE = '[[targets.pico.serial]]\nname = "console"\ndevice = "loopback:./board.toml"\n'


@pytest.fixture
def uboot(bench: Bench) -> Bench:
    """A board at its bootloader's prompt; its cycle hook types reset, which is what it does."""
    (bench.labd.root / "board.toml").write_text(BOARD)
    bench.script("reset", "#!/bin/sh\nlabd serial send pico reset\n")
    bench.lab(cycle_cmd="./reset", on_cmd="true", more=CONSOLE)
    return bench


def test_a_boot_is_seen_on_the_console_from_where_the_act_began(uboot: Bench) -> None:
    unseen = uboot.labd("power-cycle", "pico", "--expect", "Hit any key", check=7)
    assert b"is not being captured, so nobody would see it boot; nothing was done" in unseen.stderr
    uboot.labd("serial", "watch", "pico")
    uboot.labd("serial", "expect", "pico", "=> ", "--since", "0")
    found = uboot.labd.json("power-cycle", "pico", "--expect", "Hit any key")
    boot = found["verified"][-1]
    assert boot["what"] == "boot" and boot["by"] == "console" and boot["text"] == "Hit any key"
    assert boot["seq"] > found["console"][0]["since"] > 0
    uboot.labd("serial", "expect", "pico", "=> ", "--from-offset", str(boot["cursor"]))
    said = uboot.labd("power-cycle", "pico", "--verify", "boot")
    assert b"verified: console said #" in said.stdout and b"'U-Boot 2026" in said.stdout  # the line may still come
    assert b"serial log pico -i console --since " in said.stderr
    marked = uboot.labd.out("serial", "log", "pico", "--events")
    assert marked.count("-- power action=cycle") == 2


def test_what_the_console_said_before_is_no_boot(uboot: Bench) -> None:
    uboot.labd("serial", "watch", "pico")
    uboot.labd("serial", "expect", "pico", "Hit any key", "--since", "0")
    done = uboot.labd("power", "on", "pico", "--expect", "Hit any key", "--within", "0.3", check=5)
    assert b"its boot was not seen: not within 0.3 s" in done.stderr


def test_bad_patterns_and_contradictions_do_nothing(uboot: Bench) -> None:
    bad = uboot.labd("power-cycle", "pico", "--expect", "[", check=2)
    assert b"--literal" not in bad.stderr and rb"try: write \[ for the character [" in bad.stderr
    uboot.labd("power-cycle", "pico", "--expect", "x", "--verify", "none", check=2)
    uboot.labd("power", "off", "pico", "--verify", "boot", check=2)
    assert uboot.events("hook") == []


# --- a sense line ---------------------------------------------------------------------------------------------------

SENSE = """\
[[targets.pico.serial]]
name = "console"
device = "rfc2217://127.0.0.1:{port}"
power_sense_signal = "cts"
"""


@pytest.fixture
def far() -> Iterator[Rfc2217Server]:
    with rfc2217(banner=b"hello\r\n") as server:
        yield server


@pytest.fixture
def wired(bench: Bench, far: Rfc2217Server) -> Iterator[Bench]:
    """A board whose CTS follows the file that the script writes: not asserted is on."""
    bench.lab(
        on_cmd="./switch on",
        off_cmd="./switch off",
        cycle_cmd="sh -c './switch off; sleep 0.6; ./switch on; sleep 0.4'",
        more=SENSE.format(port=far.port),
    )
    over = threading.Event()

    def follow() -> None:
        while not over.wait(0.02):
            far.wires.cts = bench.state.read_text().strip() == "off"

    thread = threading.Thread(target=follow)
    thread.start()
    yield bench
    over.set()
    thread.join()


def test_the_state_is_that_of_the_sense_line_at_this_moment(wired: Bench) -> None:
    done = wired.labd("power-state", "pico", check=7)
    assert b"is not being captured, so its CTS can't be read" in done.stderr and b"serial watch pico" in done.stderr
    wired.labd("serial", "watch", "pico")
    assert wired.labd.out("power-state", "pico") == "pico: power on (CTS of console is not asserted)\n"
    wired.state.write_text("off\n")
    _settle(lambda: wired.labd.json("power-state", "pico")["power"] == "off")
    wired.state.write_text("on\n")
    _settle(lambda: wired.labd.json("power-state", "pico")["power"] == "on")


def test_a_cycle_that_really_cut_the_power_is_told_from_one_that_did_not(wired: Bench) -> None:
    wired.labd("serial", "watch", "pico")
    found = wired.labd.json("power-cycle", "pico")
    assert [item["what"] for item in found["verified"]] == ["state", "cut"]
    wired.labd("power", "set", "-t", "pico", "--cycle-cmd", "true")
    said = wired.labd.out("power-cycle", "pico")
    assert "not verified: that the power was cut in between (CTS of console never said off)" in said
    done = wired.labd("power-cycle", "pico", "--verify", "state", check=1)
    assert b"the power was not cut: CTS of console never said off" in done.stderr
    assert wired.labd.json("power", "off", "pico")["verified"][0]["by"] == "sense"


VIRTUAL = """\
[targets.pico]
[[targets.pico.serial]]
name = "console"
device = "board:uboot-x86"
[targets.pico.power]
cycle_cmd = "qmp cycle --delay-ms 50"
on_cmd = "qmp on"
off_cmd = "qmp off"
state_cmd = "qmp state"
"""


def test_a_virtual_board_is_switched_seen_and_heard_at_the_level_of_simulations(bench: Bench) -> None:
    if missing := machinefile.find("uboot-x86").missing():
        pytest.skip(f"a virtual board can't be played: {missing}")
    bench.labd.lab.write_text(VIRTUAL)
    bench.labd.env["LABD_POLICY"] = "simulated"
    bench.labd("serial", "watch", "pico")
    bench.labd("serial", "expect", "pico", "Hit any key", "--since", "0")
    found = bench.labd.json("power-cycle", "pico", "--verify", "boot")
    assert [item["what"] for item in found["verified"]] == ["state", "cut", "boot"] and found["unverified"] == []
    assert found["verified"][2]["says"].startswith("U-Boot 20")
    assert bench.labd.json("power", "off", "pico")["verified"][0]["power"] == "off"
    assert bench.labd.json("power-state", "pico")["power"] == "off"
    found = bench.labd.json("power", "on", "pico", "--expect", "Hit any key")
    assert [item["what"] for item in found["verified"]] == ["state", "boot"]


def _settle(check: Callable[[], bool]) -> None:
    until("the sense line to be read anew", check, 5)


def _lives(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
