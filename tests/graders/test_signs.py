"""What a subject's answers look like, as data: every wrong key is named, and nothing else than ours is raised."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders import signs
from graders.reading import Read
from graders.signs import EmptySign, Signs, SignsError, load

SHIPPED = sorted((Path(__file__).parents[2] / "scenarios").glob("*/signs.toml"))


def test_what_is_declared_is_what_is_loaded() -> None:
    told = load("""
        [[empty]]
        command = ["count", "places"]
        json = "count"
        number = '^(\\d+)$'
        [[empty]]
        command = "grep"
        exit = [1]
        refused = '^fatal'
        rows = "csv"
        header = 1
        [[empty]]
        having = ["-q"]
        exit = "any"
        never = true
        [hint]
        stderr = ['did you mean "(?P<word>[^"]+)"']
        json = ["error.near"]
        retry = [6]
        [[environment]]
        exit = [7]
        [degenerate]
        silent_s = 2
    """)
    assert told.empty == (
        EmptySign(("count", "places"), json="count", text=Read(number=r"^(\d+)$")),
        EmptySign(("grep",), exit=(1,), refused="^fatal", text=Read(rows="csv", header=1)),
        EmptySign(having=("-q",), exit=None, never=True),
    )
    assert told.hint.json == ("error.near",) and told.hint.retry == (6,) and told.environment[0].exit == (7,)
    assert (told.degenerate.silent_s, told.degenerate.waste) == (2, signs.WASTE)


def test_of_a_program_that_says_nothing_nothing_is_known() -> None:
    assert load("") == Signs()


@pytest.mark.parametrize(("text", "problem"), [
    ("[[empty]]\ncomand = 'x'\nnever = true", "empty[0].comand: unknown key; did you mean command?"),
    ("[[empty]]\ncommand = 'x'", "empty[0]: expected one of number, rows, stdout, never (or json alone), found none"),
    ("[[empty]]\nrows = 'csv'\nnever = true", "(or json alone), found rows, never"),
    ("[[empty]]\nrows = 'cvs'", "empty[0].rows: expected one of lines, csv, table, found 'cvs'; did you mean csv?"),
    ("[[empty]]\nnumber = '^\\d+$'", "empty[0].number: has no group that finds the number"),
    ("[[empty]]\nstdout = 'blank'\nheader = 1", "empty[0].header: without rows"),
    ("[[empty]]\nstdout = 'blank'\nrefused = 'x'", "empty[0].refused: without exit"),
    ("[[empty]]\nnever = true\nexit = [300]", "empty[0].exit[0]: expected a whole number from 0 to 255, found 300"),
    ("[hint]\nstderr = ['(']", "hint.stderr[0]: not a regular expression"),
    ("[[environment]]\nexit = 7", "environment[0].exit: expected an array, found 7"),
    ("[[environment]]\njson = ['x']", "environment[0]: expected stderr or exit, found neither"),
    ("[degenerate]\nsilent_s = 0", "degenerate.silent_s: expected seconds from 0.05 to 86400, found 0"),
    ("[[probe]]\nkind = 'vocabulery'", "probe[0].kind: expected one of vocabulary"),
    ("[hints]", "hints: unknown key; did you mean hint?"),
    ("x = ", "signs.toml: Invalid value"),
])  # fmt: skip
def test_a_wrong_key_is_named_with_what_was_meant(text: str, problem: str) -> None:
    with pytest.raises(SignsError) as caught:
        load(text)
    assert any(problem in line for line in caught.value.problems), caught.value.problems
    assert all(line.startswith("signs.toml: ") for line in caught.value.problems)


def test_all_mistakes_are_told_not_the_first() -> None:
    with pytest.raises(SignsError) as caught:
        load("[hint]\nstderr = 1\nretry = 2\n[[environment]]\nexit = 'x'")
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_the_signs_that_are_shipped_are_sound(path: Path) -> None:
    told = load(path.read_text(encoding="utf-8"), str(path))
    assert told.empty and (told.hint.stderr or told.hint.json)


@given(st.text(max_size=200))
def test_a_text_that_is_no_file_of_signs_raises_nothing_but_its_own_error(text: str) -> None:
    try:
        load(text)
    except SignsError as error:
        assert error.problems
