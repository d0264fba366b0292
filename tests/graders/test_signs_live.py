"""The shipped signs against the programs as they are installed: what they say when asked wrongly, or for nothing."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from graders.signs import load
from graders.taxonomy import Facts, classify

ROOT = Path(__file__).parents[2]
LABD = os.path.join(os.path.dirname(sys.executable), "labd")
GIT = shutil.which("git")

Ask = Callable[[str], tuple[str | None, str | None, str]]


def asking(name: str, program: str, env: Mapping[str, str], cwd: Path) -> Ask:
    """Runs a line of words; gives its class, its subtype and the evidence."""
    signs = load((ROOT / "scenarios" / name / "signs.toml").read_text(encoding="utf-8"))

    def ask(line: str) -> tuple[str | None, str | None, str]:
        words = shlex.split(line)
        ended = subprocess.run([program, *words], env=dict(env), cwd=cwd, capture_output=True, timeout=30,
                               stdin=subprocess.DEVNULL, check=False)  # fmt: skip
        out, err = (text.decode("utf-8", "replace") for text in (ended.stdout, ended.stderr))
        one = classify(Facts(tuple(words), ended.returncode, out, err), signs)
        return one.cls, one.subtype, one.evidence

    return ask


@pytest.fixture(scope="module")
def labd(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """labd with one target and nothing running; no verb that is asked starts a daemon."""
    place = tmp_path_factory.mktemp("labd")
    env = {"PATH": os.environ["PATH"], "HOME": str(place), "LABD_LAB": str(place / "lab.toml"), "LABD_POLICY": "config",
           "XDG_RUNTIME_DIR": str(place), "XDG_STATE_HOME": str(place / "state")}  # fmt: skip
    ask = asking("labd", LABD, env, place)
    for line in ("init", "target add pico", "serial add console -t pico --device loopback:uboot"):
        assert ask(line)[0] is None, line
    return ask


@pytest.mark.parametrize("line", [
    "target show pica", "target show pica --json", "target add pico", "target add", "targt list", "target lst",
    "target add pico2 --hosst x", "serial set console -t pico --baud abc",
    "serial set console -t pico --baud abc --json", "daemons stop",
    "serial set consol -t pico --baud 9600", "serial rm bmc -t pico", "serial log pico --tail x",
    "serial add aux -t pico --device x", "power set -t pico", "video show pico", "host show nope", "skill nope",
    "target show 'Read-only file system'", "target show 'x: No space left on device' --json",
    "serial watch pico", "target list --lab /nowhere/lab.toml", "helper nope", "record stop pico",
])  # fmt: skip
def test_no_refusal_of_labd_leaves_the_agent_to_guess(labd: Ask, line: str) -> None:
    assert labd(line)[0] == "B", labd(line)


@pytest.mark.parametrize(("line", "code", "stderr", "cls"), [
    ("serial expect dut 'Read-only file system'", 5, "labd: waiting for 'Read-only file system', 1 s\nlabd: x", "A"),
    ("serial expect dut 'No space left on device'", 5, "labd: dut: no 'No space left on device'; try: labd help", "B"),
    ("serial send dut x --expect 'ssh: Connection refused'", 5, "labd: no 'ssh: Connection refused' within 3 s", "A"),
    ("serial expect dut login:", 8, "labd: the board died; last line 'EXT4-fs: Read-only file system'", "C"),
    ("power on dut", 1, "labd: dut: the hook on_cmd ended with 1: \"ssh: x can't be reached\"", "A"),
    ("power on dut", 1, '{"error": {"message": "dut: on_cmd said \'cp: Read-only file system\'"}}', "A"),
    ("power on dut", 1, "labd: dut: on_cmd ended with 1: ssh: Connection refused", "A"),
    ("serial show dut", 7, "labd: dut.console: socket://h:4 can't be reached (Connection refused); try: x", "E"),
    ("target list", 7, "labd: host 'h', u@h: nothing listens for ssh there (ssh: Connection refused); nothing", "E"),
    ("target add x", 1, "labd: cannot write /l/lab.toml: No space left on device; the file is as it was", "E"),
    ("target add x", 1, '{"error": {"message": "no space left in /l to write /l/lab.toml; it is as it was"}}', "E"),
    ("video shot dut", 1, "labd: Read-only file system /s/x.png", "E"),
])  # fmt: skip
def test_only_labds_own_sentence_makes_it_the_environment(line: str, code: int, stderr: str, cls: str) -> None:
    signs = load((ROOT / "scenarios" / "labd" / "signs.toml").read_text(encoding="utf-8"))
    assert classify(Facts(tuple(shlex.split(line)), code, "", stderr), signs).cls == cls


@pytest.mark.parametrize("line", ["timeline pico --since 0s", "video list", "video list --json",
                                  "record list pico", "record list pico --json",
                                  "serial log pico", "adb list --json", "claim list", "claim list --json",
                                  "serial trigger list", "serial trigger list pico --json"])  # fmt: skip
def test_no_empty_answer_of_labd_is_silent(labd: Ask, line: str) -> None:
    assert labd(line)[0] == "B", labd(line)


@pytest.mark.parametrize("line", ["target list", "target list --json", "serial list --json", "config show", "--help",
                                  "serial send --help", "skill labd", "doctor", "doctor --json", "discover --json",
                                  ])  # fmt: skip
def test_an_answer_of_labd_is_one(labd: Ask, line: str) -> None:
    assert labd(line)[0] is None, labd(line)


def test_every_command_that_the_signs_of_labd_name_is_one() -> None:
    from labd.operations import all_operations

    known = load((ROOT / "scenarios" / "labd" / "signs.toml").read_text(encoding="utf-8"))
    named = {path for sign in known.empty for path in sign.commands}
    assert named and named <= {op.name for op in all_operations()}


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """git in a repository with one commit and one branch that it can't be merged with."""
    if GIT is None:
        pytest.skip("git is not installed; install it: apt-get install git")
    place = tmp_path_factory.mktemp("git")
    env = {"PATH": os.environ["PATH"], "HOME": str(place), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
           "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true"}  # fmt: skip
    ask = asking("git", GIT, env, place)

    def did(*lines: str) -> None:
        for line in lines:
            assert ask(line)[0] is None, (line, ask(line))

    did("init -q -b main .", "config user.email a@example.com", "config user.name A")
    (place / "f").write_text("one\n")
    did("add f", "commit -q -m one", "switch -q -c other")
    (place / "f").write_text("two\n")
    did("commit -q -a -m two", "switch -q main")
    (place / "f").write_text("three\n")
    did("commit -q -a -m three", "tag v1")
    return ask


def test_every_verb_by_which_git_changes_something_may_be_silent() -> None:
    assert GIT
    listed = subprocess.run([GIT, "--list-cmds=list-ancillarymanipulators,list-plumbingmanipulators"], check=True,
                            capture_output=True, text=True).stdout.split()  # fmt: skip
    known = load((ROOT / "scenarios" / "git" / "signs.toml").read_text(encoding="utf-8"))
    silent = {path for sign in known.empty if sign.never and not sign.having for path in sign.commands}
    printing = {"commit-tree", "fast-export", "hash-object", "mktag", "mktree", "write-tree"}  # what they made
    assert set(listed) - printing <= silent


@pytest.mark.parametrize(("line", "cls"), [
    ("status --short", None), ("diff", None), ("diff --quiet main other", None), ("grep -q nothing", None),
    ("grep three", None), ("log --oneline", None), ("log -h", None), ("branch spare", None), ("tag v2", None),
    ("rev-parse --verify -q nothing", None),
    ("log --grep nothing", "C"), ("log -- nothing", "C"), ("diff -- nothing", "C"), ("grep nothing", "C"),
    ("branch --list x*", "C"), ("ls-files nothing", "C"), ("status --short -- nothing", "C"),
    ("diff --cached", None), ("diff-index --cached HEAD", None), ("diff-files", None), ("archive -o a.tar HEAD", None),
    ("bundle create -q b HEAD", None), ("pack-refs --all", None), ("update-server-info", None), ("rerere", None),
    ("maintenance run --task=commit-graph", None), ("check-ref-format refs/heads/x", None), ("gc -q", None),
    ("check-ref-format a..b", None), ("verify-commit HEAD", None), ("symbolic-ref -q nothing", None),
    ("replace main other", None), ("replace -d main", None), ("check-ignore f", None), ("cat-file -e HEAD:f", None),
    ("diff --no-index f /dev/null", None), ("diff --no-index f f", None), ("merge-tree main other", None),
    ("verify-commit nothing", "A"), ("symbolic-ref nothing", "A"), ("replace -l x*", "C"), ("diff -- f", "C"),
    ("diff --no-index f /nowhere", "A"),
    ("comit -m x", "B"), ("commit -amend", "B"), ("log nothing", "B"), ("merge other", "B"), ("commit --amned", "B"),
    ("switch nothing", "A"), ("blame nothing", "A"), ("tag v1", "A"), ("config nothing.at-all", "A"),
    ("clone http://127.0.0.1:9/x.git y", "E"),
])  # fmt: skip
def test_git_is_taken_as_it_is(git: Ask, line: str, cls: str | None) -> None:
    found = git(line)
    assert found[0] == cls, found
    assert found[1] == ("c-unknown" if cls == "C" else None)
