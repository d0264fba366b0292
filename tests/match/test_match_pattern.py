"""What a pattern is: whether it can grow, whether it reaches over lines, what it can be passed over by."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labd.errors import Usage
from labd.match_pattern import DEATHS, Pattern, compile_all


@pytest.mark.parametrize("text", ["login: ", r"[$#>] ", r"a{3}", r"ab|cd", r"^ok!", r"(?i)ok", r"\d\d:\d\d"])
def test_text_and_patterns_of_one_width_can_not_grow(text: str):
    assert Pattern(text).fixed


@pytest.mark.parametrize(
    "text", [r"\d+", r"ok$", r"ab|abc", r"ok\b", r"ok(?=\n)", r"(?:foo){e<=1}", "[[:alpha:]]", r"a?b", r"(.)\1"]
)
def test_others_can_or_depend_on_what_follows(text: str):
    assert not Pattern(text).fixed


@pytest.mark.parametrize("text", [r"a\s+b", "a\nb", "[^x]+y", r"(?s)a.*b", r"a\Wb", r"\x0a+b"])
def test_patterns_that_can_match_a_line_end_are_known(text: str):
    assert Pattern(text).lines


def test_patterns_within_a_line_are_known():
    assert not Pattern(r"a.*b\d+").lines and not Pattern("login: ").lines


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["login: ", "foo.*zzz", "(?i)Panic|oops", r"ab+c\d?", "abc|bcd", "x{2,}yz", r"\[ok\]", "aab?c"]),
    st.text("abcoxyzPANICpanicOoOpslgin: [k]1\n", max_size=60),
    st.booleans(),
)
def test_bytes_that_are_passed_over_hold_no_match(source, text, ignore_case):
    pattern = Pattern(source, ignore_case=ignore_case)
    raw = text.encode()
    if pattern.absent(raw, raw.lower()):
        assert pattern._compiled is None or pattern._compiled.search(text) is None
        assert pattern.find(text) is None


def test_the_first_bad_one_of_several_is_named_with_its_position():
    with pytest.raises(Usage, match=r"'\[x': .*position 2"):
        compile_all(["ok", "[x", "("])


@pytest.mark.parametrize("bad", ["[x", "x*", "a$b"])
def test_the_hint_names_only_what_the_verb_has(bad: str):
    with pytest.raises(Usage) as raised:
        compile_all([bad])
    assert "--literal" in str(raised.value.hint)
    with pytest.raises(Usage) as raised:
        compile_all([bad], as_written="")
    assert "--literal" not in str(raised.value.hint)


def test_each_death_is_plain_text_and_none_is_part_of_another():
    for death in DEATHS:
        assert Pattern(death, literal=True).literal == death
        assert not any(death in other for other in DEATHS if other != death)
