"""The nearest miss: what a person would have pointed at."""

from __future__ import annotations

from labd.match_near import nearest
from labd.match_pattern import Pattern

LINES = [(1, "U-Boot 2024.07"), (2, "Starting kernel ..."), (3, "buildroot logim: "), (4, "")]


def test_a_letter_that_differs_is_named():
    miss = nearest(Pattern("login: "), LINES)
    assert miss is not None and miss["seq"] == 3
    assert miss["differs"] == "'m' instead of 'n'"


def test_a_regex_is_compared_with_some_characters_let_off():
    miss = nearest(Pattern(r"U-Boat \d+\.\d+"), LINES)
    assert miss is not None and miss["seq"] == 1 and "character" in miss["differs"]


def test_text_that_broke_off_is_told_with_what_is_missing():
    miss = nearest(Pattern("Starting kernel ... done"), LINES)
    assert miss is not None and miss["seq"] == 2 and "missing" in miss["differs"]


def test_nothing_near_is_nothing():
    assert nearest(Pattern("qqqqqqqq"), LINES) is None
    assert nearest(Pattern("login"), []) is None


def test_a_pattern_that_explodes_costs_its_time_limit_at_most():
    assert nearest(Pattern(r"(x+x+)+y\d{9}"), [(1, "x" * 300)]) is None
