"""Edits of odd files: one value is one line, nothing else moves, whichever way the edit is made."""

import re
import tomllib

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from labd.errors import LabdError
from labd.lab import kit, surgery
from labd.lab.change import Add, Append, Remove, Set, Unset, applied, same
from labd.lab.rewrite import faithful, rewrite
from labd.lab.scan import Document
from tests.lab.odd_files import odd_labs

odd = settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
NEW_VALUES = st.sampled_from(("new", 'it\'s "quoted"', "tab\t#", 7, True, 0.5, "ü\\x"))


def scalars(data, path=()):
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        if isinstance(value, (dict, list)):
            yield from scalars(value, (*path, key))
        else:
            yield (*path, key)


def tables(data, path=()):
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        if isinstance(value, (dict, list)):
            if isinstance(value, dict):
                yield (*path, key)
            yield from tables(value, (*path, key))


def lines(text):
    return text.replace("\r\n", "\n").split("\n")


def comments(text):
    return sorted(re.findall(r"\bc\d+\b", text))


def some_path(data, found):
    paths = sorted(found, key=repr)
    assume(paths)
    return data.draw(st.sampled_from(paths))


def get(data, path):
    for key in path:
        data = data[key]
    return data


@odd
@given(odd_labs(), st.data())
def test_setting_a_value_changes_the_one_line_it_stands_on(text, data):
    before = tomllib.loads(text)
    path = some_path(data, scalars(before))
    value = data.draw(NEW_VALUES)
    after = rewrite(text, [Set(path, value)])
    assert same(tomllib.loads(after), applied(before, [Set(path, value)]))
    assert comments(after) == comments(text)
    old, new = lines(text), lines(after)
    if "\n" not in str(get(before, path)) and not re.search(r'"""|\'\'\'', text):
        assert len(old) == len(new)
        assert sum(one != other for one, other in zip(old, new, strict=True)) == (before != tomllib.loads(after))
    if "\r\n" in text:
        assert after.count("\n") == after.count("\r\n")


@odd
@given(odd_labs(), st.data())
def test_a_new_key_is_one_new_line_or_an_entry_of_its_inline_table(text, data):
    before = tomllib.loads(text)
    path = (*some_path(data, tables(before)), "brand_new")
    assume(path[:-1] != ("targets",))
    change = Set(path, data.draw(NEW_VALUES))
    after = rewrite(text, [change])
    assert same(tomllib.loads(after), applied(before, [change]))
    assert comments(after) == comments(text)
    assert faithful(Document(text), after, change)
    assert text.endswith("\n") == after.endswith("\n")


@odd
@given(odd_labs(), st.data())
def test_clearing_a_key_takes_its_line_and_leaves_its_table(text, data):
    before = tomllib.loads(text)
    path = some_path(data, scalars(before))
    after = rewrite(text, [Unset(path)])
    assert same(tomllib.loads(after), applied(before, [Unset(path)]))
    lost = set(comments(text)) - set(comments(after))
    assert len(lost) <= 1
    assert len(lines(after)) <= len(lines(text))


@odd
@given(odd_labs(), st.data())
def test_a_new_table_leaves_every_line_as_it_was(text, data):
    before = tomllib.loads(text)
    parent = data.draw(st.sampled_from([("targets",), *(("targets", name) for name in before.get("targets", {}))]))
    change = Add((*parent, "brand_new"), {"a": "x", "b": 2})
    after = rewrite(text, [change])
    assert same(tomllib.loads(after), applied(before, [change]))
    assert comments(after) == comments(text)
    assert faithful(Document(text), after, change)


@odd
@given(odd_labs(), st.data())
def test_a_new_interface_leaves_every_line_as_it_was(text, data):
    before = tomllib.loads(text)
    target = some_path(data, (("targets", name) for name in before.get("targets", {})))
    change = Append((*target, "serial"), {"name": "new", "baud": 9600})
    after = rewrite(text, [change])
    assert same(tomllib.loads(after), applied(before, [change]))
    assert comments(after) == comments(text)
    assert faithful(Document(text), after, change)


@odd
@given(odd_labs(), st.data())
def test_removing_a_table_leaves_every_other_line(text, data):
    before = tomllib.loads(text)
    path = some_path(data, (path for path in tables(before) if path != ("targets",)))
    after = rewrite(text, [Remove(path)])
    assert same(tomllib.loads(after), applied(before, [Remove(path)]))
    new = [line for line in lines(after) if line not in lines(text)]
    assert len(new) <= 1


@odd
@given(odd_labs(), st.data())
def test_both_ways_agree_on_the_data_where_both_can(text, data):
    before = tomllib.loads(text)
    change = Set(some_path(data, scalars(before)), data.draw(NEW_VALUES))
    by_kit = rewrite(text, [change], (kit.proposals,))
    by_hand = rewrite(text, [change], (surgery.proposals,))
    assert same(tomllib.loads(by_kit), tomllib.loads(by_hand))


def test_without_a_faithful_proposal_the_edit_is_refused():
    def vandal(document, change):
        yield document.text.replace("9600", "1") + "# more\n"
        yield "not toml ["
        raise RuntimeError("and it breaks")

    with pytest.raises(LabdError, match="without touching other lines"):
        rewrite("a = 9600\nb = 2\n", [Set(("a",), 1)], (vandal,))


def test_setting_what_is_there_already_changes_nothing():
    text = "a   =  0x10 # sixteen\n"
    assert rewrite(text, [Set(("a",), 16)]) == text
