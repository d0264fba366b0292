"""What an edit must not have touched."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.preserved import comments, comments_kept, lines_kept, other_data, parse

SEED = (
    "# top\na = \"x # no\" # yes\nb = '''# no\n# no\n''' # two\n[t] # three\n"
    'c = """\\"""# no""" # four\nd = "\\\\" # five\n'
)


def test_comments_are_found_and_strings_are_not_taken_for_them():
    assert tomllib.loads(SEED)
    assert [text for _, text in comments(SEED)] == ["# top", "# yes", "# two", "# three", "# four", "# five"]
    assert [line for line, _ in comments(SEED)] == [0, 1, 4, 5, 6, 7]


@given(st.text(alphabet="#\"'\\ab=\n", max_size=40))
def test_any_text_can_be_searched_for_comments(text):
    for line, comment in comments(text):
        assert comment in text.split("\n")[line]


def test_a_comment_that_is_gone_is_named():
    check = comments_kept("a = 1 # one\nb = 2 # two\n", "a = 1 # one\nb = 2\n", [])
    assert check.ok is False
    assert "# two" in check.detail


def test_the_same_comment_twice_has_to_be_there_twice():
    assert comments_kept("# x\n# x\n", "# x\n", []).ok is False
    assert comments_kept("# x\n# x\n", "# x\n# new\n# x\n", []).ok is True


def test_comments_of_lines_that_may_change_may_go():
    assert comments_kept("a = 1 # one\n", "", ["^a = "]).ok is True


@pytest.mark.parametrize(
    ("after", "ok"),
    [
        ("a = 1\nb = 2\n", True),
        ("a = 1\nnew = 3\nb = 2\n", True),
        ("a=1\nb = 2\n", False),
        ("b = 2\na = 1\n", False),
        ("a = 1\r\nb = 2\r\n", False),
        ("a = 1\n", False),
        ("", False),
    ],
)
def test_every_line_of_the_seed_stays_byte_for_byte_and_in_order(after, ok):
    assert lines_kept("a = 1\nb = 2\n", after, []).ok is ok


def test_a_line_that_may_change_may_change():
    assert lines_kept("a = 1\nb = 2\n", "a = 1\nb = 3\n", ["^b = "]).ok is True


def test_a_last_line_without_a_newline_may_get_one():
    assert lines_kept("a = 1", "a = 1\r\nb = 2\r\n", []).ok is True
    assert lines_kept("a = 1", "a = 10", []).ok is False


def test_a_separator_inside_a_string_is_no_line_end():
    assert lines_kept('a = "x\u2028y"\n', 'a = "x\u2028y"\n', []).ok is True


def test_data_outside_what_was_asked_for_is_compared_with_types():
    before, after = {"a": {"b": 1, "c": 2}}, {"a": {"b": 9, "c": 2}}
    assert other_data(before, after, ["a.b"]).ok is True
    assert other_data(before, after, ["a.c"]).ok is False
    assert "a.b: 1 became 9" in other_data(before, after, []).detail
    assert other_data({"a": 1}, {"a": True}, []).ok is False


def test_a_byte_order_mark_and_crlf_are_read():
    assert parse("\ufeffa = 1\r\nb = 2".encode()) == {"a": 1, "b": 2}
    assert parse(None) == {}
