"""Hints are commands that work as they are printed: in a shell, in the lab that was named, against the table of verbs.

The first tests read every hint in the source, so that none needs to be provoked; the others provoke some.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import labd
from labd.argv import parse
from labd.journal_files import cannot_open
from labd.lab.model import in_lab
from tests.conftest import BenchInAFolder

SOURCE = Path(labd.__file__).parent

#: What stands for the values in a hint, by the expression that gives them; a plain word for all others.
VALUES = {
    "self.words": "", "lab.words": "", "call.lab_words()": "", "words": "", "noun": "serial", "op.path[0]": "serial",
    "op.name": "serial send", "self.operation.name": "serial send", "kind": "power", "frm": "1", "to": "2",
    "max(0, (result.seq or 1) - 20)": "1", "reader.first_seq - 1": "1",
}  # fmt: skip
SHELL = ("ls", "df", "chmod", "mkdir", "fuser", "file", "sudo", "ssh", "tail")
#: Values that are no paths and need no quotes.
HARMLESS = {"pids", "group", "_user(os.getuid())"}


class Hint:
    """One hint in the source: its text with values in it, and the values that stand in it."""

    def __init__(self, place: str, node: ast.expr) -> None:
        self.place = place
        self.values: list[str] = []
        self.text = self._text(node)

    def _text(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value)
        assert isinstance(node, ast.JoinedStr)
        return "".join(self._value(part) if isinstance(part, ast.FormattedValue) else self._text(part)
                       for part in node.values)  # fmt: skip

    def _value(self, part: ast.FormattedValue) -> str:
        said = ast.unparse(part.value)
        self.values.append(said)
        return VALUES.get(said, "word")

    def commands(self) -> list[str]:
        """The commands of labd in it: each goes to the end, to a comment, or to the next semicolon."""
        parts = [re.search(r"(?<![\w./-])labd .*", part) for part in re.split(r"; ", self.text)]
        return [found[0] for found in parts if found]


def _choices(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.IfExp):
        yield from _choices(node.body)
        yield from _choices(node.orelse)
    elif isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        yield node


def _hints() -> Iterator[Hint]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "hint":
                for choice in _choices(node.value):
                    yield Hint(f"{path.relative_to(SOURCE)}:{choice.lineno}", choice)


ALL = list(_hints())


def test_every_command_of_ours_in_a_hint_is_one():
    wrong = []
    for hint in ALL:
        for command in hint.commands():
            try:
                words = shlex.split(command, comments=True)[1:]
                parsed = parse(words)
                assert parsed.operation is not None or parsed.wants_help
            except Exception as error:
                wrong.append(f"{hint.place}: {command}: {getattr(error, 'message', error)!s}")
    assert len(ALL) > 100 and not wrong, "\n".join(wrong)


def test_every_path_in_a_hint_for_the_shell_is_quoted():
    wrong = []
    for hint in ALL:
        if hint.text.split(" ")[0] in SHELL:
            bare = [said for said in hint.values if "quote" not in said and said not in HARMLESS]
            wrong += [f"{hint.place}: {hint.text}: {said}" for said in bare]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("labd target list", "labd --lab 'a b' target list"),
        ("ask ann, or labd claim pico --take", "ask ann, or labd --lab 'a b' claim pico --take"),
        ("labd target list; then labd config edit", "labd --lab 'a b' target list; then labd --lab 'a b' config edit"),
        ("labd --lab x target list", "labd --lab x target list"),
        ("labd serial log pico --lab x -i bmc", "labd serial log pico --lab x -i bmc"),
        ("labd daemons", "labd daemons"),
        ("labd init --path x", "labd init --path x"),
        ("a defect in labd: it broke", "a defect in labd: it broke"),
        ("leave one out", "leave one out"),
    ],
)  # fmt: skip
def test_a_hint_means_the_lab_that_was_named(text: str, meant: str):
    assert in_lab(text, "--lab 'a b' ") == meant
    assert in_lab(text, "") == text and in_lab(None, "--lab x ") is None


#: Calls that fail, each with another hint.
FAILING = """
target show nosuch
target list x
host show nosuch
power set -t nosuch --cycle-cmd true
serial log
serial log pico -i nosuch
serial log pico
serial log pico --raw --events -i a
serial log pico --to 1 --from 2 -i a
serial log pico -i a --grep (
serial watch bare
serial send pico x -i a
serial expect pico x -i a
serial expect pico '' -i a
serial run pico true -i a
serial dtr pico -i a
serial reset pico -i a
serial lines pico -i a --dtr on
serial break pico -i a
serial trigger add pico a b -i a
serial trigger rm nosuch
serial show nosuch
serial xfer send pico -i a
serial xfer send pico 'no such' -i a
serial set a -t pico
serial set nosuch -t pico --baud 1
serial rm nosuch -t pico
serial add a -t pico -d x
target add pico
host add bench1 --ssh x
host rm bench1
netboot show
netboot put pico x
claim nosuch
release nosuch
init
doctor --target nosuch
power-cycle pico
power set -t pico --cycle-cmd 'a | b'
helper nosuch
skill nosuch
serial watch pico --bad
serial wtach pico
daemons stop nosuch
target set pico --host nosuch
serial connect pico -i a
power-state bare
video shot bare
serial send pico -i a --hex 1
serial send pico -i a --eol cr --no-newline x
""".strip().splitlines()

LAB = """
[hosts.bench1]
ssh = "local"
[targets.pico]
host = "bench1"
[[targets.pico.serial]]
name = "a"
device = "loopback:nosuch"
[[targets.pico.serial]]
name = "b"
device = "/dev/nosuch"
[targets.bare]
"""


def test_what_a_failing_call_tells_to_try_can_be_typed(labd: BenchInAFolder):
    other = labd.root / "an other.toml"
    other.write_text(LAB)
    hints: dict[str, str] = {}
    for call in FAILING:
        done = labd("--lab", str(other), "--json", *shlex.split(call), check=None)
        last = done.stderr.splitlines()[-1] if done.stderr else b"{}"
        hint = json.loads(last).get("error", {}).get("hint") if done.returncode else None
        if hint:
            hints[call] = hint
    assert len(hints) > 30
    wrong = []
    for call, hint in hints.items():
        for part in hint.split("; "):
            found = re.search(r"(?<![\w./-])labd .*", part)
            if found is None:
                continue
            words = shlex.split(found[0], comments=True)[1:]
            checked = labd("commands", "--check", "--", *words, check=None)
            if checked.returncode:
                wrong.append(f"{call}: {found[0]}: {checked.stderr.decode()}")
            means = words[words.index("--lab") + 1] if "--lab" in words else ""
            alone = {"commands", "daemons", "helper", "skill", "init"} & set(words) or {"--help", "devices"} & set(
                words
            )
            if means != str(other) and not alone:
                wrong.append(f"{call}: {found[0]}: another lab")
    assert not wrong, "\n".join(wrong)


def test_notes_and_answers_name_the_lab_too(labd: BenchInAFolder):
    other = labd.root / "other.toml"
    other.write_text(LAB)
    said = labd("--lab", str(other), "serial", "stop", "pico").stderr.decode()
    assert f"labd --lab {other} serial log pico" in said
    labd.lab.write_text(LAB)
    assert "--lab" not in labd("--lab", str(labd.lab), "serial", "stop", "pico").stderr.decode()


def test_the_files_of_a_journal_are_named_for_a_shell():
    hint = cannot_open("/a b/it's", OSError(13, "Permission denied")).hint
    assert hint is not None
    assert shlex.split(hint) == ["df", "-h", "/a b/it's;", "ls", "-ld", "/a b/it's"]
