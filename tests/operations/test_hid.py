"""`labd hid` as a person uses it: typing on a rig and on a virtual board, refusing before anything is sent, keeping."""

import json
import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labd.hid.words import script as steps_of
from labd.operations import hid
from tests.conftest import BenchInAFolder, a_bench, until
from tests.helpers.fake_rig import FakeRig

NONE = "0101080000000000000000"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchInAFolder]:
    """One daemon for all of them."""
    with a_bench(tmp_path_factory.mktemp("hid")) as made:
        yield made


@pytest.fixture
def rig() -> Iterator[FakeRig]:
    fake = FakeRig()
    yield fake
    fake.close()


@pytest.fixture
def typed(bench: BenchInAFolder, rig: FakeRig) -> Iterator[BenchInAFolder]:
    """A bench whose target `pico` has the rig."""
    bench.lab.write_text(f'[targets.pico.hid]\ncmd = "hidrig -d {rig.path} --hold-ms 1 --gap-ms 1"\n')
    bench.since = len(told(bench))
    yield bench
    bench("hid", "stop", "pico")


def script(bench: BenchInAFolder, text: str) -> Path:
    path = bench.root / "keys.txt"
    path.write_text(text)
    return path


def told(bench: BenchInAFolder, kind: str = "") -> list[dict[str, Any]]:
    """What pico's own journal tells of this test: all events, or those of a kind."""
    rows = [json.loads(row) for row in bench("--json", "timeline", "pico").stdout.splitlines()]
    rows = [row for row in rows if row["channel"] == "hid"]
    return [row for row in rows[getattr(bench, "since", 0) :] if row["event"] == kind] if kind else rows


def test_what_is_sent_arrives_is_told_and_is_recorded(typed: BenchInAFolder, rig: FakeRig) -> None:
    assert typed.out("hid", "send", "-t", "pico", "type", "aB") == "pico: type 2 characters\n"
    assert rig.hid == ["0101080000040000000000", NONE, "0101080200050000000000", NONE]
    data = (
        typed.json("hid", "send", "--json", "-t", "pico", "version")
        if False
        else json.loads(typed("--json", "hid", "send", "version").stdout)
    )
    assert (data["target"], data["commands"], data["out"]) == ("pico", 1, "1 hidrig moveabs power\n")
    first, second = told(typed, "hook")
    assert (first["channel"], first["action"], first["code"]) == ("hid", "type", 0)
    assert second["action"] == "version"


def test_words_that_are_wrong_start_nothing(typed: BenchInAFolder, rig: FakeRig) -> None:
    for words, why in (
        (("key", "entr"), "no key 'entr'; did you mean 'enter'"),
        (("tpye", "x"), "no input command 'tpye'; did you mean 'type'"),
        (("type", "naïve"), "can't type 'ï' (U+00EF), character 3 of 5"),
        (("moveabs", "1920", "99999"), "99999 is not within 0 to 32767"),
        (("power", "off"), "labd power set -t pico --help"),
        (("serve",), "labd hid serve pico"),
        (("run", "none.txt"), "none.txt: No such file"),
        (("run", str(script(typed, "key a\nkey bee\n"))), "line 2: no key 'bee'"),
    ):
        assert why in typed("hid", "send", "-t", "pico", *words, check=2).stderr.decode()
    assert rig.frames == [] and told(typed, "hook") == []


def test_a_command_file_is_read_where_the_caller_is_and_may_be_stdin(typed: BenchInAFolder, rig: FakeRig) -> None:
    script(typed, "# setup\nkey f2\nsleep 0.1\ntype ok\n")
    assert typed.out("hid", "send", "run", "keys.txt") == "OK (3 commands)\n"
    assert rig.hid[0] == "01010800003b0000000000"
    rig.frames.clear()
    typed("hid", "send", "run", "-", stdin=b"key a")
    assert rig.hid == ["0101080000040000000000", NONE]
    assert [event["text"] for event in told(typed, "script")][-1] == "key a"


def test_the_helpers_exit_code_and_reason_are_passed_on(typed: BenchInAFolder, rig: FakeRig) -> None:
    rig.refusal = "ERR full"
    err = typed("hid", "send", "ping", check=1).stderr.decode()
    assert "failed with exit code 1" in err and "refuses: full" in err
    typed.lab.write_text('[targets.pico.hid]\ncmd = "hidrig -d /dev/nosuch"\n')
    assert "/dev/nosuch can't be opened" in typed("hid", "send", "ping", check=7).stderr.decode()


def test_a_long_text_at_a_slow_pace_has_the_time_that_it_needs(bench: BenchInAFolder) -> None:
    steps = steps_of("type " + "x" * 1000)
    assert hid._limit("hidrig -d X", steps) > 60 + 1000 * 0.08
    assert hid._limit("hidrig -d X --hold-ms 500", steps) > 60 + 1000 * 0.5


def test_another_command_gets_the_words_as_they_are(typed: BenchInAFolder) -> None:
    typed.lab.write_text("[targets.pico.hid]\ncmd = 'printf \"<%s>\" -'\n")
    assert typed.out("hid", "send", "-t", "pico", "press", "a b", "-x", "--") == "<-><press><a b><-x><-->\n"
    typed.lab.write_text('[targets.pico.hid]\ncmd = "shellyplug -d 192.0.2.1"\n')
    assert "types nothing" in typed("hid", "send", "key", "a", check=2).stderr.decode()


def test_a_kept_helper_holds_keys_is_listed_and_lets_go(typed: BenchInAFolder, rig: FakeRig) -> None:
    err = typed("hid", "send", "down", "shift").stderr.decode()
    assert "stays down until the next command" in err
    assert typed.out("hid", "show", "pico").splitlines()[-1] == "serve\tnot kept"
    kept = typed.json("hid", "serve", "pico")
    assert kept["started"] and typed.json("hid", "serve", "pico")["pid"] == kept["pid"]
    [row] = typed.json("daemons")["kept"]
    assert (row["target"], row["channel"], row["pid"]) == ("pico", "hid", kept["pid"])
    assert f"pid {kept['pid']}" in typed.out("daemons") and "untracked" not in typed.out("daemons")
    assert typed.out("hid", "show", "pico").splitlines()[-1] == f"serve\tkept, pid {kept['pid']}"
    rig.frames.clear()
    assert typed("hid", "send", "down", "shift").stderr == b"labd: target pico\n"
    typed("hid", "send", "key", "a")
    assert rig.hid == ["0101080200000000000000", "0101080200040000000000", "0101080200000000000000"]
    assert typed.json("hid", "stop", "pico")["stopped"]
    until("the keys to be released", lambda: rig.hid[-1] == NONE)
    assert [event["state"] for event in told(typed, "helper")] == ["serving", "stopped"]
    assert not typed.json("hid", "stop", "pico")["stopped"]


def test_a_kept_helper_that_dies_is_told_and_input_goes_on_without_it(typed: BenchInAFolder, rig: FakeRig) -> None:
    pid = typed.json("hid", "serve", "pico")["pid"]
    os.kill(pid, signal.SIGKILL)
    until("its end to be told", lambda: [event["state"] for event in told(typed, "helper")] == ["serving", "ended"])
    assert typed.json("daemons")["kept"] == []
    typed("hid", "send", "key", "a")
    assert typed.json("hid", "serve", "pico")["started"]


def test_a_kept_helper_ends_with_the_daemon_also_with_one_that_is_killed(typed: BenchInAFolder, rig: FakeRig) -> None:
    typed("hid", "serve", "pico")
    typed("hid", "send", "down", "ctrl")
    os.kill(typed.daemon_pid(), signal.SIGKILL)
    until("the held key to be released", lambda: rig.hid[-1] == NONE)
    pid = typed.json("hid", "serve", "pico")["pid"]
    typed("daemons", "stop")
    until("its end", lambda: not os.path.exists(f"/proc/{pid}") if os.path.isdir("/proc/self") else _gone(pid))


def test_a_restart_of_the_daemon_keeps_it_again(typed: BenchInAFolder, rig: FakeRig) -> None:
    before = typed.json("hid", "serve", "pico")["pid"]
    typed("hid", "send", "down", "alt")
    assert "pico's input command is kept again" in typed("daemons", "restart").stderr.decode()
    [row] = typed.json("daemons")["kept"]
    assert row["target"] == "pico" and row["pid"] != before and rig.hid[-1] == NONE


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_helper_that_can_not_serve_says_why(typed: BenchInAFolder, rig: FakeRig) -> None:
    typed.lab.write_text('[targets.pico.hid]\ncmd = "hidrig -d /dev/nosuch"\n')
    err = typed("hid", "serve", "pico", check=7).stderr.decode()
    assert "ended with exit code 7" in err and "/dev/nosuch can't be opened" in err


def test_a_command_of_ones_own_is_kept_by_its_word(typed: BenchInAFolder) -> None:
    own = typed.root / "own"
    own.write_text("#!/bin/sh\n[ $1 = serve ] && { echo serving here; cat >/dev/null; exit 0; }\necho did $*\n")
    own.chmod(own.stat().st_mode | stat.S_IXUSR)
    typed.lab.write_text('[targets.pico.hid]\ncmd = "./own"\n')
    kept = typed.json("hid", "serve", "pico")
    assert typed.out("hid", "send", "key", "a") == "did key a\n"
    typed("hid", "stop", "pico")
    assert _gone(kept["pid"])


def test_sending_needs_the_level_of_the_bench_and_looking_does_not(typed: BenchInAFolder, rig: FakeRig) -> None:
    env = {"LABD_POLICY": "simulated"}
    assert "refused" in typed("hid", "send", "key", "a", check=3, env=env).stderr.decode()
    assert "refused" in typed("hid", "serve", "pico", check=3, env=env).stderr.decode()
    typed("hid", "show", "pico", env={"LABD_POLICY": "observe"})
    assert rig.frames == []
