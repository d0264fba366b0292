"""What a shell's text runs of one program, and how surely. Where bash is there, it is asked too."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from graders.shell_found import Found
from graders.shell_words import commands

#: text → (words, reach) of each command of labd in it.
KNOWN = {
    "labd status": [("labd status", "always")],
    "/usr/bin/labd status": [("/usr/bin/labd status", "always")],
    "cd x && labd target add pico; labd serial log pico | head": [
        ("labd target add pico", "maybe"), ("labd serial log pico", "always")],
    "cd x && labd status": [("labd status", "on_success")],
    "false || labd x": [("labd x", "maybe")],
    "sh -c 'labd a && labd b'": [("labd a", "always"), ("labd b", "on_success")],
    "bash -lc \"labd x 'a b'\"": [("labd x a b", "always")],
    "A=1 B='2 3' labd a": [("labd a", "always")],
    "env -u Q A=1 timeout -k 1 5 nice -n 3 labd a": [("labd a", "always")],
    "for i in 1 2; do labd x; done": [("labd x", "maybe")],
    "while ! labd x; do sleep 1; done": [("labd x", "maybe")],
    "if labd a; then labd b; else labd c; fi": [("labd a", "always"), ("labd b", "maybe"), ("labd c", "maybe")],
    "case $x in a|b) labd z;; *) labd y;; esac": [("labd z", "maybe"), ("labd y", "maybe")],
    "cat <<EOF\nlabd no\nEOF\nlabd yes": [("labd yes", "always")],
    "cat <<-'E O'\n\tlabd no $(labd no)\n\tE O\nlabd yes": [("labd yes", "always")],
    "cat <<EOF\n$(labd within) labd no\nEOF": [("labd within", "always")],
    "bash <<'E'\nlabd k\nE": [("labd k", "always")],
    "x=$(labd q)": [("labd q", "always")],
    "echo `labd v` <(labd w)": [("labd v", "always"), ("labd w", "always")],
    "echo 'labd no'; echo labd no; echo \"labd no\" # labd no": [],
    "which labd; command -v labd; man labd; ls labd": [],
    "cd y || exit 1; labd x": [("labd x", "on_success")],
    "cd y || exit 0; labd x": [("labd x", "maybe")],
    "exit 0; labd x": [("labd x", "maybe")],
    "(exit 3); labd x": [("labd x", "always")],
    "exec labd a; labd b": [("labd a", "always"), ("labd b", "maybe")],
    "set -e\ncd q\nlabd x": [("labd x", "on_success")],
    "sh -ec 'cd q; labd x'": [("labd x", "on_success")],
    "[[ -f x && -f y ]] && labd q": [("labd q", "on_success")],
    "((i++)); labd x": [("labd x", "always")],
    "[ -f x ] && labd q; true": [("labd q", "maybe")],
    "{ labd a; labd b; } > f 2>&1": [("labd a", "always"), ("labd b", "always")],
    "labd a &\nwait": [("labd a", "maybe")],
    "f() { labd a; }; f": [("labd a", "maybe")],
    "labd() { :; }; labd a": [("labd a", "maybe")],
    "trap 'labd off' EXIT": [("labd off", "maybe")],
    "eval 'labd a'": [("labd a", "always")],
    "labd \\\n  status": [("labd status", "always")],
}  # fmt: skip


def one(text: str) -> Found:
    (found,) = commands(text, "labd")
    return found


@pytest.mark.parametrize("text", KNOWN)
def test_finds_the_commands_and_how_surely_they_run(text: str) -> None:
    assert [(" ".join(found.words), found.reach) for found in commands(text, "labd")] == KNOWN[text]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize("text", KNOWN)
def test_what_is_certain_is_what_bash_does(text: str, tmp_path: Path) -> None:
    """A stand-in notes each run: certain commands ran, and the text's code is that of the one that decides."""
    program, log = tmp_path / "labd", tmp_path / "log"
    program.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexit 7\n')
    program.chmod(0o755)
    text = text.replace("/usr/bin/labd", "labd").replace("while ! labd x; do sleep 1", "while labd x; do sleep 0")
    text = text.replace("bash -lc", "bash -c")  # a login shell's PATH is the machine's
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["bash", "-c", text], env=env, cwd=tmp_path, capture_output=True, timeout=20)
    ran = log.read_text().splitlines() if log.exists() else []
    found = commands(text, "labd")
    for command in found:
        line = " ".join(command.words[1:])
        assert line in ran or not command.certain, (line, ran, done.stderr)
        assert line in ran or command.reach != "on_success" or done.returncode
        assert not command.needed or done.returncode, "the stand-in fails, so what needs it does"
        if command.decides and command.certain:
            assert done.returncode == 7, line
    assert set(ran) <= {" ".join(command.words[1:]) for command in found}


@pytest.mark.parametrize(
    "text",
    ["labd '", "labd a; }", "if labd a", "echo $(labd", "labd a &&", "labd <<", "labd ${x:-$(labd y)}", "a; ; labd"],
)
def test_what_is_not_understood_is_only_a_mention(text: str) -> None:
    found = commands(text, "labd")
    assert found and not any(each.certain or each.decides or each.whole for each in found)


def test_tells_whose_the_exit_code_and_the_output_are() -> None:
    assert (one("labd a").decides, one("labd a").whole) == (True, True)
    assert (one("cd x; labd a").decides, one("cd x; labd a").whole) == (True, False)
    assert not one("labd a | head").decides and not one("labd a; true").decides
    assert not one("timeout 5 labd a").decides, "timeout may give another code"
    assert not one("! labd a").decides and one("! labd a").negated
    assert not commands("labd a && labd b", "labd")[0].decides
    assert not one("labd a > f").whole
    assert not one("set -o pipefail; true | labd a").decides
    assert not one("trap 'exit 0' EXIT; labd a").decides


def test_tells_what_an_exit_code_of_0_vouches_for() -> None:
    for text in (
        "labd a",
        "cd x && labd a",
        "labd a && echo ok",
        "sh -c 'labd a && true' && echo",
        "cd x || exit 1; labd a",
    ):
        assert one(text).needed, text
    for text in ("labd a; true", "labd a || true", "labd a && true || true", "labd a | cat", "! labd a", "x || labd a",
                 "exit 0; labd a", "labd a && b; c", "if labd a; then :; fi", "! sh -c 'labd a'",
                 "timeout 1 labd a"):  # fmt: skip
        assert not one(text).needed, text


def test_words_that_are_not_told_match_anything() -> None:
    found = one('labd add "$NAME" --baud 9600')
    assert found.holes == {2}
    assert found.matches(["labd", "add", "pico", "--baud", "9600"])
    assert found.matches(["labd", "add", "--baud", "9600"]), "unquoted, it may be no word"
    assert not found.matches(["labd", "add", "pico", "--baud", "115200"])
    assert one("xargs labd add").matches(["labd", "add", "a", "b"])
    assert one("labd add").matches(["/x/labd", "add"]) and not one("labd add").matches(["labd", "add", "a"])


def test_says_where_a_command_stands() -> None:
    text = "cd x; labd a 'b c' | head"
    assert text[one(text).start : one(text).end] == "labd a 'b c'"


@pytest.mark.parametrize(
    "text",
    ["(" * 5000, "$(" * 5000, "{ " * 5000, "sh -c " * 3000 + "labd", "if " * 3000, "`" * 5001, "((" * 5000,
     "( " * 50 + "labd a" + " )" * 50, "labd * " * 9000, "x" * 200_000 + " labd", "\x00\u2028\u0085labd\x00",
     "echo $(" * 11 + "labd a" + ")" * 11, "case x in " * 900, "&&" * 9000, "labd " + "$x " * 3000, "<<a\n" * 3000],
)  # fmt: skip
def test_hostile_texts_cost_little_and_break_nothing(text: str) -> None:
    start = time.process_time()
    found = commands(text, "labd")
    for each in found[:3]:
        each.matches(["labd", *["a"] * 50])
    assert time.process_time() - start < 3
