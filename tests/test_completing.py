"""What is offered at a cursor, and that the call which shells make at each Tab is quick and harmless."""

import os
import signal
import subprocess
import sys
import time

import pytest

from labd.completing import complete
from labd.completing_names import _KINDS
from labd.operations import NOUNS, all_operations
from labd.operations.model import Operation
from tests.conftest import LABD, BenchInAFolder
from tests.test_thin import imported

NAMES = {"target": ["pico", "pine"], "interface": ["console"], "host": ["bench1"], "skill": ["labd"], "key": ["ctrl-c"]}


def offered(line: str) -> list[str]:
    """What completes the last word of a line; `FILES` stands for the names of files."""
    *words, current = line.split(" ")
    found = complete(words, current, lambda kind, op, given: [(name, "") for name in NAMES.get(kind, ())])
    return [value for value, _ in found.options] + (["FILES"] if found.files else [])


def test_commands_come_from_the_table():
    assert offered("") == [*NOUNS, "help"]
    assert offered("power-") == ["power-cycle", "power-state"]
    assert offered("help serial tr") == ["trigger"]
    assert offered("serial trigger ") == ["add", "list", "rm"]
    assert offered("skill l") == ["list", "labd"]
    assert offered("nonsense ") == []


@pytest.mark.parametrize("op", all_operations(), ids=lambda op: op.name)
def test_every_verb_and_every_flag_can_be_reached(op: Operation):
    for end in range(1, len(op.path) + 1):
        assert op.path[end - 1] in offered(" ".join(op.path[:end])), op.path
    flags = offered(f"{' '.join(op.path)} --") if not any(p.kind == "rest" and not p.flags for p in op.params) else []
    for param in op.params if flags else ():
        assert not param.flags or any(flag in flags for flag in param.flags), (param.flags, flags)


def test_a_flag_is_offered_once_unless_it_may_be_given_again():
    assert "--timeout" not in offered("serial expect --timeout 3 --")
    assert "--any" in offered("serial expect --any x --")
    assert offered("serial expect --js") == ["--json"] and offered("serial expect --json --js") == []
    assert "--target" not in offered("serial expect pico --")  # the board is named already


def test_values_are_choices_names_and_files():
    assert offered("serial add c --parity e") == ["even"]
    assert offered("serial add c --parity=e") == ["--parity=even"]
    assert offered("serial send --no-newline=") == ["--no-newline=true", "--no-newline=false"]
    assert offered("serial log -t pi") == ["pico", "pine"] == offered("serial log --target pi")
    assert offered("serial log -i ") == ["console"]
    assert offered("serial send pico --key ct") == ["ctrl-c"]
    assert offered("init --path ") == ["FILES"] == offered("--lab ") == offered("serial log --lab ")
    assert offered("video shot pico -o x") == ["FILES"]
    assert offered("serial send pico --timeout ") == []


def test_places_are_filled_in_order_and_one_that_may_be_left_out_does_not_hide_the_next():
    assert offered("serial watch p") == ["pico", "pine"]
    assert offered("serial xfer ") == ["send", "recv"] and offered("serial xfer send ") == ["FILES"]
    assert offered("netif mode off p") == ["pico", "pine"]
    assert offered("serial send -t pico p") == []  # a text, which nobody can know
    assert "--interface" in offered("serial watch pico ")  # nothing but flags is left


def test_what_is_data_is_left_alone():
    assert offered("serial send pico -- --") == []
    assert offered("helper usbhub -x --") == ["FILES"]
    assert offered("hid send run ") == ["FILES"]
    assert offered("commands --check -- serial wat") == ["watch"]
    assert offered("commands --check -- labd power-s") == ["power-state"]


def test_global_flags_stand_anywhere():
    assert offered("--json serial wat") == ["watch"] == offered("--lab x serial wat") == offered("serial --json wat")
    assert offered("--") == ["--lab", "--json", "--quiet", "--help"]


def test_every_kind_of_name_in_the_table_is_known():
    used = {param.complete for op in all_operations() for param in op.params} - {"", "file", "command"}
    assert used <= set(_KINDS)


# --- the hidden call ------------------------------------------------------------------------------------------------


def asked(labd: BenchInAFolder, *words: str, shell: str = "zsh", **env: str) -> list[str]:
    """The lines of the hidden call, less what it says about the answers."""
    done = labd("__complete", shell, *words, env=env)
    assert done.stderr == b""
    return [line.split("\t")[0] for line in done.stdout.decode().splitlines()]


LAB = """
[hosts.bench1]
ssh = "me@bench1"
[targets.pico]
description = "the\\u001b[31m red one"
[[targets.pico.serial]]
name = "console"
device = "loopback:uboot"
[targets.pine]
[[targets.pine.serial]]
name = "bmc"
device = "loopback:bmc"
"""


def test_names_are_those_of_the_lab_at_that_moment(labd: BenchInAFolder):
    labd.lab.write_text(LAB)
    assert asked(labd, "serial", "watch", "") == ["-", "pico", "pine"]
    assert asked(labd, "serial", "log", "pine", "-i", "") == ["-", "bmc"]
    assert asked(labd, "serial", "log", "-i", "") == ["-", "console", "bmc"]
    assert asked(labd, "discover", "--host", "") == ["-", "bench1", "local"]
    assert asked(labd, "host", "show", "") == ["-", "bench1"]
    assert asked(labd, "serial", "set", "console", "-t", "pico", "--unset", "b") == ["-", "baud", "bytesize"]
    labd("record", "start", "pico", "--name", "odd")
    assert asked(labd, "record", "stop", "pico", "--name", "") == ["-", "odd"]
    assert b"\x1b" not in labd("__complete", "zsh", "serial", "watch", "").stdout
    other = labd.root / "other lab.toml"
    other.write_text("[targets.elsewhere]\n")
    assert asked(labd, "--lab", str(other), "target", "show", "") == ["-", "elsewhere"]
    assert asked(labd, "--lab", f"'{other}'", "target", "show", "", shell="bash") == ["-", "elsewhere"]


@pytest.mark.parametrize("where", ["environment", "lab"])
def test_a_policy_that_forbids_to_look_hides_the_names(labd: BenchInAFolder, where: str):
    labd.lab.write_text(LAB + ('[policy]\nlevel = "help"\n' if where == "lab" else ""))
    policy = {"LABD_POLICY": "help"} if where == "environment" else {}
    assert asked(labd, "serial", "watch", "", **policy) == ["-"]
    assert asked(labd, "netboot", "set", "-t", "pico", "-i", "", **policy) == ["-"]
    assert "kvm-puppeting" in asked(labd, "skill", "", **policy)
    assert asked(labd, "serial", "watch", "", LABD_POLICY="nonsense") == []


def test_triggers_that_are_armed_are_names_too(board: BenchInAFolder):
    board("serial", "watch", "dut")
    number = board.json("serial", "trigger", "add", "dut", "panic", "--key", "enter")["id"]
    assert asked(board, "serial", "trigger", "rm", "") == ["-", number]


@pytest.mark.parametrize("lab", [None, "no [ lab", "fifo"])
def test_a_lab_that_is_missing_or_broken_has_no_names_and_is_no_error(labd: BenchInAFolder, lab: str | None):
    if lab == "fifo":
        os.mkfifo(labd.lab)
    elif lab is not None:
        labd.lab.write_text(lab)
    assert asked(labd, "serial", "watch", "") in (["-"], [])


@pytest.mark.parametrize("words", [[], ["zsh"], ["zsh", "\udcff"], ["bash", "serial", "'open"], ["x", "--", ""]])
def test_nothing_that_is_typed_makes_it_fail(labd: BenchInAFolder, words: list[str]):
    assert labd("__complete", *words).stderr == b""


def test_it_starts_no_daemon_and_asks_none_that_hangs(board: BenchInAFolder):
    asked(board, "serial", "watch", "")
    assert board.daemon_pid() is None
    board("serial", "watch", "dut")
    pid = board.daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        assert asked(board, "serial", "watch", "") == ["-", "dut"]
    finally:
        os.kill(pid, signal.SIGCONT)


def test_it_gives_up_rather_than_hold_a_prompt():
    code = ("import labd.completing as c, time; c.SECONDS = 0.2; c._answer = lambda *_: time.sleep(30); "
            "c.main(['zsh', ''])")  # fmt: skip
    begun = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"") and time.monotonic() - begun < 10


def test_it_is_in_the_record_that_was_asked_for_and_not_in_the_benchs_own(labd: BenchInAFolder):
    asked(labd, "ser")
    assert [record.get("argv") for record in labd.records()] == [["labd", "__complete", "zsh", "ser"], None]
    own = labd.root / "state" / "labd" / "argv.jsonl"
    before = own.read_bytes() if own.exists() else b""
    labd.env.pop("LABD_ARGV_LOG")
    asked(labd, "ser")
    assert (own.read_bytes() if own.exists() else b"") == before


def test_its_start_is_light(board: BenchInAFolder):
    for line in ([""], ["serial", "log", "--"]):
        loaded = imported(f"import labd.thin, labd.completing as c; c._answer('zsh', {line[:-1]}, {line[-1]!r})")
        assert not loaded & {"typing", "re", "json", "dataclasses", "shlex", "tomlkit", "trio", "inspect", "enum"}


def test_the_program_is_found_by_its_own_name():
    assert subprocess.run([LABD, "__complete", "zsh", "comp"], capture_output=True, check=True).stdout.startswith(
        b"-\ncompletion\t")  # fmt: skip
