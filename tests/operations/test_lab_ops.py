"""The verbs that configure the lab, as a user types them: what they change, what they say, what they refuse."""

import json
import os
import shlex

import pytest

from labd.argv import parse
from labd.call import Call
from labd.lab import load
from labd.lab.reading import digest
from labd.operations import noun_operations
from tests.operations.lab_bench import LAB, Bench

MINE = ("init", "config", "target", "host", "power", "power-cycle", "power-state", "video", "hid", "netboot", "netif",
        "adb")  # fmt: skip
EVERY = [op for noun in MINE for op in noun_operations(noun)]
EVERY += [op for op in noun_operations("serial") if op.path[1] in ("add", "set", "rm", "list")]


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


@pytest.fixture
def pico(bench):
    bench.lab.write_text(LAB)
    return bench


def changed_lines(before, after):
    assert len(before.splitlines()) == len(after.splitlines())
    return [new for old, new in zip(before.splitlines(), after.splitlines(), strict=True) if old != new]


@pytest.mark.parametrize("op", EVERY, ids=lambda op: op.name)
def test_every_verb_has_help_and_examples_that_parse(op):
    assert op.summary and op.examples
    for line, meaning in op.examples:
        assert meaning
        parsed = parse(shlex.split(line)[1:])
        assert parsed.operation is op, line


@pytest.mark.parametrize("op", [op for op in EVERY if op.missing], ids=lambda op: op.name)
def test_what_is_not_there_yet_says_so_with_exit_7(pico, op):
    if "-t pico" not in op.examples[0][0] and "tablet" in op.examples[0][0]:
        pico("labd target add tablet")
    assert "later version" in pico(op.examples[0][0], 7).err


def test_a_pi_is_provisioned_end_to_end(bench):
    said = bench("labd target add pico")
    assert said.out == "pico: added\n" and f"created new lab {bench.lab}" in said.err
    bench("labd netboot set -t pico --interface en7 --tftp-root '~/tftp/pico'")
    said = bench("labd serial add console -t pico --device /dev/cu.usbserial-XYZ --baud 115200")
    assert said.out == "pico.serial.console: added (device /dev/cu.usbserial-XYZ, baud 115200)\n"
    bench("labd power set -t pico --cycle-cmd '~/bin/cycle.sh'")
    assert bench.data() == {
        "targets": {
            "pico": {
                "netboot": {"interface": "en7", "tftp_root": "~/tftp/pico"},
                "serial": [{"name": "console", "device": "/dev/cu.usbserial-XYZ", "baud": 115200}],
                "power": {"cycle_cmd": "~/bin/cycle.sh"},
            }
        }
    }
    shown = bench("labd config show").out
    for word in ("pico", "en7", "~/tftp/pico", "/dev/cu.usbserial-XYZ", "115200", "~/bin/cycle.sh"):
        assert word in shown


def test_changing_one_value_changes_one_line(pico):
    for line, new in (
        ("labd serial set console -t pico --baud 9600", "  baud     = 9600       # as the boot ROM wants it"),
        ("labd power set -t pico --cycle-cmd 'plug cycle'", 'cycle_cmd = "plug cycle"   # old relay'),
        ("labd target set pico --note 'Pi 4'", 'description   =   "Pi 4"'),
        ("labd host set bench1 --ssh me@b", 'ssh="me@b"   # key is in the vault'),
        ("labd serial set bmc -t pico -d loopback:bmc", 'device = "loopback:bmc"'),
    ):
        before = pico.lab.read_text()
        pico(line)
        assert changed_lines(before, pico.lab.read_text()) == [new]


def test_what_an_edit_did_is_told_and_recorded(pico):
    before = pico.lab.read_bytes()
    said = pico.json("labd serial set console -t pico --baud 9600 --flow rtscts")
    assert said["did"] == "changed"
    assert said["fields"] == {"baud": {"before": 115200, "after": 9600}, "flow": {"before": None, "after": "rtscts"}}
    end = json.loads(pico.log.read_text().splitlines()[-1])
    assert end["lab_before"] == digest(before) and end["lab_after"] == digest(pico.lab.read_bytes())
    assert end["lab_after"] == load(str(pico.lab), pico.env).digest


def test_an_edit_that_is_so_already_says_so_and_writes_nothing(pico):
    was = os.stat(pico.lab)
    assert (
        pico("labd serial set console -t pico --baud 115200").out
        == "pico.serial.console: unchanged (it is so already)\n"
    )
    assert os.stat(pico.lab).st_ino == was.st_ino


def test_every_set_can_clear_a_field(pico):
    pico("labd target set pico --unset host --unset description")
    pico("labd power set -t pico --unset serial-interface")
    pico("labd serial set console -t pico --unset baud")
    data = pico.data()["targets"]["pico"]
    assert set(data) == {"serial", "power"}
    assert data["power"] == {"cycle_cmd": "~/bin/cycle.sh"} and "baud" not in data["serial"][0]
    assert "# never use the red button" in pico.lab.read_text()
    said = pico("labd power set -t pico --unset on_cmd")
    assert said.out == "pico.power: unchanged (on_cmd was not set)\n"


def test_sense_none_clears_and_power_button_takes_true_or_false(bench):
    bench("labd target add dut")
    bench("labd serial add console -t dut -d /dev/ttyS0 --sense cts --power-button")
    assert bench.data()["targets"]["dut"]["serial"][0]["power_button"] is True
    bench("labd serial set console -t dut --sense none --power-button false")
    assert bench.data()["targets"]["dut"]["serial"] == [
        {"name": "console", "device": "/dev/ttyS0", "power_button": False}
    ]


@pytest.mark.parametrize(
    ("line", "code", "message", "near"),
    [
        ("labd serial set console -t pcio --baud 1200", 4, "no target 'pcio'", ["pico"]),
        ("labd serial set consle -t pico --baud 1200", 4, "no serial interface 'consle' on target 'pico'", ["console"]),
        ("labd serial rm bcm -t pico", 4, "no serial interface 'bcm'", ["bmc"]),
        ("labd serial add aux -t pcio -d /dev/x", 4, "no target 'pcio'", ["pico"]),
        ("labd serial add aux -t pico -d ttyUSB3", 2, "must be a whole path", []),
        ("labd serial add aux -t pico -d lopback:uboot", 2, "did you mean loopback:?", []),
        ("labd serial add 'a/b' -t pico -d /dev/x", 2, "cannot be a serial interface", []),
        ("labd serial set console -t pico", 2, "nothing to set", []),
        ("labd serial set console -t pico --unset bawd", 2, "no field 'bawd'", ["baud"]),
        ("labd serial set console -t pico --unset device", 2, "cannot be cleared, only changed (--device", []),
        ("labd serial set console -t pico --baud 9600 --unset baud", 2, "which?", []),
        ("labd serial set console -t pico --prty even", 2, "no flag '--prty'", ["--parity"]),
        ("labd serial set console -t pico --parity evn", 2, "one of", ["even"]),
        ("labd serial set console -t pico --host bensh1", 4, "no host 'bensh1'", ["bench1"]),
        ("labd serial set console -t pico --encoding utf-99", 2, "text encoding", []),
        ("labd power set -t pico --unset cyclecmd", 2, "no field 'cyclecmd'", ["cycle_cmd"]),
        ("labd power set -t pico --serial-interface cnsole", 4, "no serial interface 'cnsole'", ["console"]),
        ("labd power set -t pico --timeout-s 0", 2, "at least 0.1", []),
        ("labd power set -t pico", 2, "nothing to set", []),
        ("labd hid set -t pico --host bench1", 2, "needs --cmd", []),
        ("labd video rm -t pico", 4, "has no video channel", []),
        ("labd video set -t pico --unset host", 4, "has no video channel", []),
        ("labd netboot set -t pico --http-port 70000", 2, "at most 65535", []),
        ("labd netboot set -t pico --host-ip 192.0.2", 2, "IP address", []),
        ("labd target set pcio --note x", 4, "no target 'pcio'", ["pico"]),
        ("labd target show pcio", 4, "no target 'pcio'", ["pico"]),
        ("labd target rm pcio", 4, "no target 'pcio'", ["pico"]),
        ("labd target add '../x'", 2, "cannot be a target", []),
        ("labd target add dut --host nowhere", 4, "no host 'nowhere'", []),
        ("labd host show bensh1", 4, "no host 'bensh1'", ["bench1"]),
        ("labd host set bench1 --unset ssh", 2, "cannot be cleared", []),
        ("labd host add local --ssh x", 2, "this machine", []),
        ("labd host add b2", 2, "--ssh", []),
    ],
)
def test_a_mistake_is_named_with_the_nearest_match_and_changes_nothing(pico, line, code, message, near):
    error = pico.error(line, code)
    assert message in error["message"]
    for word in near:
        assert word in error["near"]
    assert pico.lab.read_text() == LAB


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("labd target add pico", "labd target set pico"),
        ("labd host add bench1 --ssh x", "labd host set bench1"),
        ("labd serial add bmc -t pico -d /dev/x", "labd serial set bmc -t pico"),
    ],
)
def test_a_duplicate_is_refused_with_the_verb_that_changes_it(pico, line, hint):
    error = pico.error(line, 1)
    assert "already" in error["message"] and error["hint"].startswith(hint)
    assert parse(shlex.split(error["hint"])[1:]).operation is not None
    assert pico.lab.read_text() == LAB


def test_a_name_that_differs_only_in_capitals_is_refused(pico):
    assert "only in its capitals" in pico.error("labd target add Pico", 1)["message"]


def test_a_host_in_use_is_not_removed_and_the_hint_works(pico):
    pico("labd serial set bmc -t pico --host bench1")
    error = pico.error("labd host rm bench1", 1)
    assert "pico, pico.serial.bmc" in error["message"]
    pico(error["hint"])
    pico(pico.error("labd host rm bench1", 1)["hint"])
    assert pico("labd host rm bench1").out == "host bench1: removed\n"
    assert "hosts" not in pico.data()


def test_an_interface_that_power_uses_is_not_removed_and_the_hint_works(pico):
    error = pico.error("labd serial rm console -t pico", 1)
    pico(error["hint"])
    pico("labd serial rm console -t pico")
    assert [entry["name"] for entry in pico.data()["targets"]["pico"]["serial"]] == ["bmc"]


def test_one_interface_goes_and_every_other_line_stays(pico):
    pico("labd serial rm bmc -t pico")
    gone = '[[targets.pico.serial]]\t# split from its brother\nname = "bmc"\ndevice = "/dev/ttyUSB1"\n# tail\n'
    assert pico.lab.read_text() == LAB.replace("\n" + gone, "")


def test_a_target_goes_with_its_channels_and_nothing_else(pico):
    pico("labd target add keep --note mine")
    said = pico("labd target rm pico")
    assert said.out == "pico: removed (serial:console, serial:bmc, power)\n"
    assert pico.data() == {"hosts": {"bench1": {"ssh": "op@bench1"}}, "targets": {"keep": {"description": "mine"}}}
    assert pico.lab.read_text().startswith(LAB[: LAB.index("[targets.pico]")])


@pytest.mark.parametrize(
    ("hook", "what"),
    [("a | b", "a pipe"), ("a; b", "a sequence"), ("a && b", "&&"), ("a $(b)", "$ expansion"), ("a > b", "a redirect"),
     ("a `b`", "a backquote"), ("rm *.x", "a glob"), ("A=1 b", "a leading A=")],
)  # fmt: skip
def test_a_hook_that_needs_a_shell_is_refused_with_a_form_that_works(pico, hook, what):
    error = pico.error(f"labd power set -t pico --on-cmd {shlex.quote(hook)}", 2)
    assert what in error["message"]
    assert pico.lab.read_text() == LAB
    assert "'\"'" not in error["hint"], "it can be read"
    pico(error["hint"].removesuffix(" --json"))
    assert shlex.split(pico.data()["targets"]["pico"]["power"]["on_cmd"]) == ["sh", "-c", hook]


@pytest.mark.parametrize(
    "hook", ["curl -u admin:S3CRET http://x | tee y", "PDU_PASS=S3CRET pdu on", "echo 'it is' | pdu --password S3CRET"]
)
def test_the_refusal_of_a_hook_tells_no_secret_and_stays_readable(pico, hook):
    for flag in (f"--on-cmd {shlex.quote(hook)}", shlex.quote(f"--on-cmd={hook}")):
        said = pico(f"labd power set -t pico {flag}", 2)
        assert "S3CRET" not in said.err + said.out
        assert "power set -t pico --on-cmd" in said.err and "\"sh -c '…'\"" in said.err


def test_a_mistake_is_reported_of_the_flag_that_was_typed(pico):
    for flag in ("--description", "--note"):
        assert pico.error(f"labd target set pico {flag} \udcff", 2)["message"].startswith(f"{flag} is not valid UTF-8")


def test_hints_name_the_lab_that_is_in_force(pico, tmp_path):
    other = tmp_path / "o ther.toml"
    other.write_text(LAB.replace("op@bench1", "local"))
    lab = f"--lab {shlex.quote(str(other))}"
    hints = [
        pico.error(f"labd {lab} target show nope", 4)["hint"],
        pico.error(f"labd {lab} serial log", 4)["hint"],
        pico.error(f"labd {lab} hid show", 4)["hint"],
        pico.error(f"labd {lab} target set nope --note x", 4)["hint"],
        pico.error(f"labd target set pico --host nope {lab}", 4)["hint"],
    ]
    other.write_text("[x\n")
    hints += [pico.error(f"labd {lab} target list", 1)["hint"], pico.error(f"labd {lab} target add x", 1)["hint"]]
    for hint in hints:
        words = shlex.split(hint)
        assert words[0] == "labd" and words.count("--lab") == 1 and str(other) in words, hint
    assert "--lab" not in pico.error("labd target show nope", 4)["hint"]


def test_a_left_out_interface_is_told_as_the_command_that_names_it(pico):
    pico("labd host set bench1 --ssh local")
    hint = pico.error("labd serial log pico --tail 3", 4)["hint"]
    assert shlex.split(hint)[:5] == ["labd", "serial", "log", "pico", "--tail"] and "-i console" in hint


@pytest.mark.parametrize("editor", ["", "  "])
def test_an_editor_that_is_named_empty_is_none_and_without_a_terminal_none_is_started(pico, editor):
    for names in ({"EDITOR": editor}, {"VISUAL": editor, "EDITOR": editor}):
        assert "needs a terminal" in pico("labd config edit", 2, **names).err


def test_paths_in_hints_are_quoted(bench):
    hint = bench.error(f"labd --lab '{bench.home}/no such/lab.toml' target add pico", 1)["hint"]
    assert shlex.split(hint) == ["mkdir", "-p", f"{bench.home}/no such"]


def test_a_file_of_the_kernel_is_no_lab_and_nobody_is_told_to_try_again(bench):
    error = bench.error("labd --lab /proc/self/status target list", 1)
    assert "not a file on a disk" in error["message"] and error["hint"] == "ls -lL /proc/self/status"


def test_a_long_edit_says_that_it_goes_on(pico, monkeypatch):
    import threading

    from labd import lab
    from labd.operations import labedit

    real, told = lab.edit, threading.Event()
    monkeypatch.setattr(labedit, "PATIENCE_S", 0.0)
    note = Call.note
    monkeypatch.setattr(Call, "note", lambda call, text: (note(call, text), told.set())[0])

    def slow(*args):
        assert told.wait(20), "no note came"
        return real(*args)

    monkeypatch.setattr(lab, "edit", slow)
    assert "still editing" in pico("labd target set pico --note x").err
    assert pico.data()["targets"]["pico"]["description"] == "x"


def test_summaries_read_as_sentences_do():
    from labd.operations import all_operations

    for op in all_operations():
        assert not any(odd in f" {op.summary} " for odd in (" how how ", " is is ", " a adb ", " which which ")), (
            op.name
        )
        assert "take which" not in op.summary and not op.summary.endswith("."), op.name


def test_secrets_are_not_shown_and_not_lost(pico):
    pico("labd power set -t pico --on-cmd 'pdu --password S3CRET on' --off-cmd 'curl http://u:S3CRET@192.0.2.1/off'")
    for line in ("labd config show", "labd power show pico", "labd power list", "labd target show"):
        for form in ("", " --json"):
            assert "S3CRET" not in pico(line + form).out
    said = pico("labd power set -t pico --on-cmd 'pdu --password S3CRET2 on'")
    assert "S3CRET" not in said.out
    assert "S3CRET2" in pico.lab.read_text()


def test_an_empty_answer_says_why(bench):
    bench("labd init")
    for line in ("labd target list", "labd target show", "labd serial list", "labd power list"):
        said = bench(line)
        assert said.out == "" and bench.lab.name in said.err
    assert "Targets: none yet" in bench("labd config show").out


def test_without_a_lab_reading_says_what_makes_one(bench):
    for line in ("labd config show", "labd target list", "labd host list", "labd power show pico"):
        assert bench.error(line, 4)["hint"] == f"labd init --path {bench.lab}"
    assert bench.error("labd serial add console -t pico -d /dev/x", 4)["hint"] == "labd target add pico"
    assert not bench.lab.exists()


def test_init_makes_a_lab_once(bench):
    said = bench("labd init")
    assert said.out == f"Created lab: {bench.lab}\n" and "labd target add" in said.err
    text = bench.lab.read_text()
    assert "exists already" in bench.error("labd init", 1)["message"]
    assert bench.lab.read_text() == text
    bench("labd init --path ./other.toml")
    assert (bench.home / "other.toml").read_text() == text


def test_config_path_is_the_path_alone_and_says_whether_it_exists(bench):
    said = bench("labd config path")
    assert said.out == f"{bench.lab}\n" and "labd init" in said.err
    assert bench.json("labd config path") == {"path": str(bench.lab), "exists": False}


def test_config_path_works_for_a_lab_that_does_not_parse(bench):
    bench.lab.write_text("[x\n")
    assert bench("labd config path").out == f"{bench.lab}\n"
    assert ":1:3:" in bench.error("labd config show", 1)["message"]
    assert ":1:3:" in bench.error("labd target add pico", 1)["message"]
    assert bench.lab.read_text() == "[x\n"


def editor(home, script):
    path = home / "ed"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_config_edit_checks_what_was_saved_and_passes_the_editors_exit_code_on(pico):
    good = editor(pico.home, 'echo "[targets.new]" >> "$1"')
    assert "changed, and valid" in pico("labd config edit", EDITOR=good).out
    assert "unchanged" in pico("labd config edit", VISUAL=editor(pico.home, "exit 0")).out
    assert "exit code 3" in pico("labd config edit", 3, EDITOR=editor(pico.home, "exit 3")).err
    bad = editor(pico.home, 'echo "bawd = 1" >> "$1"')
    said = pico("labd config edit", 1, EDITOR=bad)
    assert "saved, but it is no valid lab now" in said.err and "'bawd'" in said.err
    assert "needs a terminal" in pico("labd config edit", 2).err


def test_a_target_left_out_is_the_sole_one_and_is_named(pico):
    pico("labd netboot set -t pico --tftp-root /srv/tftp --host local")
    said = pico("labd netboot tftp-root")
    assert said.out == "/srv/tftp\n" and "target pico" in said.err
    pico("labd target add other")
    error = pico.error("labd netboot tftp-root", 4)
    assert "pico, other" in error["message"]
    assert pico("labd netboot show").out.startswith("target\tpico\n")


def test_relative_paths_are_kept_whole_and_home_stays_home(pico):
    pico("labd netboot set -t pico --tftp-root ./boot")
    assert pico.data()["targets"]["pico"]["netboot"]["tftp_root"] == str(pico.home / "boot")
    pico("labd netboot set -t pico --tftp-root '~/boot'")
    assert pico.data()["targets"]["pico"]["netboot"]["tftp_root"] == "~/boot"


def test_an_adb_channel_may_be_empty(bench):
    bench("labd target add tablet")
    assert bench("labd adb set -t tablet").out == "tablet.adb: added\n"
    bench("labd adb set -t tablet --serial ABC123")
    bench('labd power set -t tablet --cycle-cmd "adb -s ABC123 reboot"')
    assert bench.data()["targets"]["tablet"] == {
        "adb": {"serial": "ABC123"},
        "power": {"cycle_cmd": "adb -s ABC123 reboot"},
    }


def test_two_interfaces_on_one_device_are_told(pico):
    said = pico("labd serial add aux -t pico -d /dev/ttyUSB0")
    assert "pico.serial.console names the same device" in said.err


def test_hosts_say_what_is_wired_to_them(pico):
    assert pico.json("labd host show bench1")["wired"] == [
        {"target": "pico", "channel": "serial console"},
        {"target": "pico", "channel": "serial bmc"},
        {"target": "pico", "channel": "power"},
    ]
    assert "(this machine)" in pico("labd host list").out


def test_policy_observe_refuses_edits_and_permits_reading(pico):
    assert "observe" in pico("labd target add x", 3, LABD_POLICY="observe").err
    assert pico.lab.read_text() == LAB
    pico("labd config show", LABD_POLICY="observe")


def test_a_value_with_a_line_break_cannot_forge_a_line(pico):
    pico("labd target set pico --note 'one\ntwo\t\x1b[31m'")
    assert pico.data()["targets"]["pico"]["description"] == "one\ntwo\t\x1b[31m"
    for line in ("labd config show", "labd target show pico"):
        shown = pico(line).out
        assert "\x1b" not in shown and "\ntwo" not in shown


@pytest.mark.parametrize(
    ("device", "told"),
    [("board:uboot-x68", "did you mean board:uboot-x86"), ("board:nosuch", "no virtual board 'nosuch' here; there is "),
     ("loopback:ubot", "did you mean loopback:uboot"), ("board:mine.toml", "no virtual board file ")],
)  # fmt: skip
def test_a_board_that_there_is_not_is_told_where_it_is_named(pico: Bench, device: str, told: str) -> None:
    assert told in pico(f"labd serial add aux -t pico -d {device}").err
    assert told in pico(f"labd serial set aux -t pico -d {device}").err
    if device.startswith("board:"):
        assert told in pico(f"labd video set -t pico -d {device}").err
    if device.endswith(".toml"):
        (pico.lab.parent / "mine.toml").write_text("")
        assert told not in pico(f"labd serial set aux -t pico -d {device}").err


def test_a_board_that_there_is_is_named_without_a_word(pico: Bench) -> None:
    assert "board" not in pico("labd serial add aux -t pico -d loopback:uboot").err


def test_what_is_secret_in_the_address_of_a_port_is_shown_nowhere(bench: Bench) -> None:
    bench.lab.write_text("[targets.pico]\n")
    bench("labd serial add aux -t pico -d 'socket://me:hunter2@127.0.0.1:1?token=SEKRET'")
    for verb in ("serial list", "serial list --json", "serial show pico", "serial show pico --json"):
        out = bench(f"labd {verb}").out
        assert "socket://me:***@127.0.0.1:1?token=***" in out and "SEKRET" not in out
