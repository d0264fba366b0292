"""The help walker reads real pages: recorded of docker, kubectl, ruff and flask, live of argparse and git."""

import subprocess
import sys
from pathlib import Path

import pytest

from graders import stated_commands
from harness import helpwalk, surface
from harness.subject import load
from labd.errors import LabdError

PAGES = Path(__file__).parent / "help_pages"


def read(name):
    return helpwalk.page((PAGES / f"{name}.txt").read_text())


def params(page):
    return {flag: one for one in page.params for flag in one["flags"] or [one["name"]]}


def names(page):
    return [one.name for one in page.commands]


def test_cobra_lists_commands_and_types_its_flags():
    assert names(read("cobra-docker-volume")) == ["create", "inspect", "ls", "prune", "rm", "update"]
    found = params(read("cobra-docker-volume-create"))
    assert found["-d"] is found["--driver"]
    assert (found["--driver"]["kind"], found["--label"]["repeat"]) == ("str", True)
    assert found["volume"]["required"] is False
    top = read("cobra-docker")
    assert {"run", "container", "swarm"} <= set(names(top))
    assert ["-H", "--host"] in [one["flags"] for one in top.globals]


def test_kubectls_template_of_cobra_tells_a_default_in_the_place_of_a_value():
    assert {"get", "rollout", "delete"} <= set(names(read("cobra-kubectl")))
    found = params(read("cobra-kubectl-delete"))
    assert (found["--all"]["kind"], found["-f"]["kind"], found["--grace-period"]["kind"]) == ("switch", "str", "str")


def test_clap_has_values_choices_and_global_options():
    top = read("clap-ruff")
    assert names(top) == [
        "check",
        "rule",
        "config",
        "linter",
        "clean",
        "format",
        "server",
        "analyze",
        "version",
        "help",
    ]
    assert [one["flags"] for one in top.globals] == [["--config"], ["--isolated"], ["--color"]]
    found = params(read("clap-ruff-check"))
    assert found["--output-format"]["choices"][:2] == ["concise", "full"]
    assert found["--fix"]["kind"] == "switch"
    assert (found["files"]["repeat"], found["files"]["required"]) == (True, False)


def test_click_lists_commands_and_pairs_of_flags():
    top = read("click-flask")
    assert names(top) == ["routes", "run", "shell"]
    found = params(top)
    assert found["--debug"]["flags"] == ["--debug", "--no-debug"]
    assert (found["--debug"]["kind"], found["-A"]["kind"]) == ("switch", "str")


ARGPARSE = """
import argparse
top = argparse.ArgumentParser(prog="tool")
top.add_argument("--verbose", action="store_true")
below = top.add_subparsers(metavar="COMMAND")
add = below.add_parser("add", help="add a thing", aliases=["a"])
add.add_argument("name")
add.add_argument("rest", nargs="*")
add.add_argument("-m", "--mode", choices=["fast", "slow"], help="how")
group = below.add_parser("remote", help="others").add_subparsers(title="what to do")
group.add_parser("rm", help="forget one").add_argument("url", nargs="?")
top.parse_args()
"""


def test_argparse_is_walked_to_the_last_command(tmp_path):
    script = tmp_path / "tool.py"
    script.write_text(ARGPARSE)

    def ask(words):
        ran = subprocess.run([sys.executable, str(script), *words[1:]], capture_output=True, text=True, check=False)
        return ran.returncode, ran.stdout, ran.stderr

    told = helpwalk.walk(ask, "tool", effects={"add": "config"})
    commands = {entry["path"]: entry for entry in told["commands"]}
    assert set(commands) == {"add", "remote rm"}
    assert (commands["add"]["aliases"], commands["add"]["effect"], commands["add"]["summary"]) == (
        ["a"], "config", "add a thing")  # fmt: skip
    assert set(told["help"]) == {"", "add", "remote", "remote rm"}

    def problems(line):
        return [one.kind for one in stated_commands.read(told, line.split()).problems]

    assert problems("--verbose add x y --mode fast") == []
    assert problems("add x --mode quick") == ["malformed"]
    assert problems("add x --colour") == ["invented"]
    assert problems("remote rm") == []
    assert problems("remote frob") == ["invented"]


def test_a_program_without_help_is_told():
    with pytest.raises(LabdError, match="gave no page"):
        helpwalk.walk(lambda words: (1, "", "no"), "mute")


@pytest.fixture(scope="module")
def git():
    with surface.live("git") as ask:
        return load("git").kind.reference(ask)


@pytest.mark.parametrize("line", [
    "commit --amend --no-edit", "log --oneline -3", "stash push -m later -- notes.txt", "bisect run sh check.sh",
    "-C there reset --soft HEAD~1", "commit --no-verify -m x", "cherry-pick -x abc", "branch -D old",
    "commit -am text", "switch -c new", "remote add origin url", "restore --staged a.txt",
])  # fmt: skip
def test_right_lines_of_git_are_found_right(git, line):
    assert stated_commands.read(git, line.split()).problems == []


@pytest.mark.parametrize("line", ["frobnicate", "commit --amnd", "branch --undelete x", "cherry-pick --squish x"])
def test_what_git_does_not_have_is_invented(git, line):
    assert stated_commands.read(git, line.split()).invented


def test_git_lists_its_verbs_and_none_that_are_holes_of_a_usage(git):
    paths = {entry["path"] for entry in git["commands"]}
    assert {"stash push", "bisect good", "remote rename", "worktree add", "commit", "rev-parse"} <= paths
    assert not {"rebase options", "mergetool file", "version --build-options"} & paths
