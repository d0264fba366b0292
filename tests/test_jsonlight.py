"""Writing JSON without `json`: `json` must read it back as the same value."""

import json

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
