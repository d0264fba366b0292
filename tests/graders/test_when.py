"""The predicate language over argv records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.argv_records import Invocation
from graders.when import WhenError, compared, compile_when


def ran(line, **more):
    words = line if isinstance(line, list) else line.split()
    start = {"argv": words, "operation": " ".join(words[1:3]), "effect": "config", "decision": "permitted"} | more
    return Invocation(start, {"code": more.get("code", 0), "signal": None})


ADD, RM = ran("labd target add pico"), ran("labd serial rm bmc")


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ('[operation == "target add"]', True),
        ('[operation == "target rm"]', False),
        ('not [operation == "target rm"]', True),
        ('[operation == "target add"] then [operation == "serial rm"]', True),
        ('[operation == "serial rm"] then [operation == "target add"]', False),
        ('[operation == "target add"] then [operation == "target add"]', False),
        ('[operation in ("x", "serial rm") and code in (0, 1)]', True),
        ('[operation == "serial rm" and not argv has "bmc"]', False),
        ('([operation == "x"] or [effect == "config"]) and [argv has "pico"]', True),
        ('[operation == "target add" and (code == 1 or code == 0)]', True),
        ('[line ~ "rm +bmc"]', True),
        ("[code != 0]", False),
        ("[signal == none]", True),
        ("[code == none]", False),
        ("[operation == 'target add']", True),
    ],
)
def test_predicates_hold_as_they_read(text, holds):
    assert compile_when(text)([ADD, RM]) is holds


def test_a_flag_inside_another_argument_is_not_that_flag():
    send = ran(["labd", "serial", "send", "dut", "grep --since x"])
    assert not compile_when('[argv has "--since"]')([send])


def test_a_number_is_not_its_text_and_true_is_not_one():
    assert not compile_when('[code == "0"]')([ADD])
    assert not compile_when("[code == 1]")([ran("labd x y", code=True)])


def test_nothing_was_run_by_nobody():
    assert not compile_when("[code == 0]")([])
    assert compile_when("not [code == 0]")([])


@pytest.mark.parametrize(
    "text",
    ["", "[", "[]", "operation == 1", '[operation = "x"]', '[operaton == "x"]', "[code ==]", '[line ~ "("]',
     "[code == 0", '[code == 0] [code == 1]',
     '[argv == "x"]', '[code in 0]', '[code == 0] then not [code == 1]', "[code == 0] nor"],
)  # fmt: skip
def test_what_is_no_predicate_is_refused_and_quoted(text):
    with pytest.raises(WhenError):
        compile_when(text)


@given(st.text(alphabet="[]()ab ~=!\"'\\0thenornd,code", max_size=40))
def test_any_text_is_a_predicate_or_a_when_error(text):
    try:
        compile_when(text)([ADD])
    except WhenError:
        pass


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[operation == 'a b' and code == 0]", [("operation", "a b"), ("code", 0)]),
        ('not [operation in ("a", "b")] then [effect != "config"]',
         [("operation", "a"), ("operation", "b"), ("effect", "config")]),
        ('[line ~ "x" and argv has "y"] or [target in ("t", none)]', [("target", "t")]),
    ],
)  # fmt: skip
def test_what_a_predicate_compares_can_be_read_off(text, found):
    assert compared(text) == found
