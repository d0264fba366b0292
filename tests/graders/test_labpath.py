"""The path language of assertions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders import labpath
from graders.labpath import MISSING, Index, Key, PathError, Where, find, parse, show, without

LAB = {
    "targets": {
        "pico": {"serial": [{"name": "console", "baud": 115200}, {"name": "bmc", "baud": 9600, "on": True}]},
        "a.b": {"x": 1},
    }
}

words = st.text(min_size=0, max_size=8)
paths = st.tuples(
    st.builds(Key, words),
    st.lists(st.one_of(st.builds(Key, words), st.builds(Index, st.integers(0, 99)), st.builds(Where, words, words))),
).map(lambda pair: (pair[0], *pair[1]))
values = st.recursive(
    st.one_of(st.integers(), st.booleans(), st.text(max_size=3), st.floats(allow_nan=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=8,
)


@given(paths)
def test_what_is_shown_parses_to_the_same_path(path):
    assert parse(show(path)) == path


@given(st.text(max_size=30))
def test_any_text_is_a_path_or_an_error_that_quotes_it(text):
    try:
        assert parse(show(parse(text))) == parse(text)
    except PathError as error:
        assert repr(text) in str(error)


@pytest.mark.parametrize("text", ["", ".", "a.", "a..b", "a[", "a[b]", "a[b=]", "a[b=c", "[0]", "a b", 'a."x', "a[0]b"])
def test_what_is_no_path_is_refused(text):
    with pytest.raises(PathError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("targets.pico.serial[name=bmc].baud", 9600),
        ("targets.pico.serial[0].name", "console"),
        ("targets.pico.serial[on=true].name", "bmc"),
        ("targets.pico.serial[baud=9600].name", "bmc"),
        ('targets."a.b".x', 1),
        ("targets.pico.serial[name=none].baud", MISSING),
        ("targets.pico.serial[9]", MISSING),
        ("targets.pico.name", MISSING),
        ("targets.pico[0]", MISSING),
        ("targets.pico.serial.name", MISSING),
    ],
)
def test_a_path_finds_its_value_or_nothing(text, value):
    assert find(LAB, parse(text)) == value or (value is MISSING and find(LAB, parse(text)) is MISSING)


def test_a_selector_that_fits_two_elements_finds_neither():
    twins = {"s": [{"name": "a", "n": 1}, {"name": "a", "n": 2}]}
    assert find(twins, parse("s[name=a].n")) is MISSING


def test_a_new_line_is_wholly_covered_once_its_fields_are():
    before = {"t": {"serial": [{"name": "console"}]}}
    after = {"t": {"serial": [{"name": "console"}, {"name": "bmc", "baud": 9600}]}}
    assert without(after, [parse("t.serial[name=bmc].baud")]) == before
    assert without(after, [parse("t.serial[name=console]"), parse("t.serial[name=bmc]")]) == {}


def test_taking_out_a_scalar_of_a_list_takes_out_that_one_only():
    assert without({"l": ["x", "x", "y"]}, [parse("l[1]")]) == {"l": ["x", "y"]}


@given(values, st.lists(paths, max_size=3))
def test_taking_out_what_is_not_there_changes_nothing(value, taken):
    for path in taken:
        if find(value, path) is MISSING:
            assert without(value, [path]) == value


@given(values)
def test_nothing_differs_from_itself(value):
    assert list(labpath.differences(value, value)) == []


@pytest.mark.parametrize(("one", "two"), [(1, True), (1, 1.0), ("1", 1), ([], {}), ({"a": 1}, {}), ([1], [1, 1])])
def test_types_and_lengths_count_as_differences(one, two):
    assert len(list(labpath.differences(one, two))) == 1
