"""Writing JSON without `json`: `json` must read it back as the same value."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labd.jsonlight import dumps, pretty

LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text())
VALUES = st.recursive(LEAVES, lambda v: st.one_of(st.lists(v), st.dictionaries(st.text(), v)), max_leaves=20)


@given(VALUES)
def test_what_is_written_reads_back_as_the_same_value(value):
    assert json.loads(dumps(value)) == value
    assert json.loads(pretty(value)) == value


@given(st.binary())
def test_undecodable_bytes_of_an_argv_survive(raw: bytes):
    text = raw.decode("utf-8", "surrogateescape")
    assert json.loads(dumps(text)).encode("utf-8", "surrogateescape") == raw


@given(VALUES)
def test_one_value_is_one_line(value):
    assert "\n" not in dumps(value)


def test_what_json_has_no_word_for_becomes_null():
    assert dumps([float("nan"), float("inf")]) == "[null, null]"


def test_indented_json_breaks_what_is_long_and_keeps_what_is_short_on_a_line():
    short = {"a": [1, None, False, {}], "b": ()}
    assert pretty(short) == '{"a": [1, null, false, {}], "b": []}'
    assert pretty({"k": short, "long": "x" * 90}) == (
        '{\n  "k": {"a": [1, null, false, {}], "b": []},\n  "long": "' + "x" * 90 + '"\n}'
    )


def test_indented_json_writes_each_value_once(monkeypatch: pytest.MonkeyPatch):
    written = []
    monkeypatch.setattr("labd.jsonlight.dumps", lambda value: written.append(value) or dumps(value))
    value: object = list(range(200))
    for _ in range(50):
        value = {"deeper": value}
    pretty(value)
    assert sorted(written) == list(range(200))
