"""The share card: what its colours tell, and that its rows fill a panel and stay apart in it."""

from itertools import pairwise

import pytest

from harness.release import card


def subject(jobs, passed=(3, 2, 0)):
    scenarios = [{"variant": "normal", "result": f"{n}/3", "cells": [{"passed": n, "valid": 3}]} for n in passed]
    domains = [{"title": f"Domain {n}", "score": 0.5, "applicable": True} for n in range(6)]
    return {"subject": "git", "readiness": {"version": "1", "overall": 0.5, "domains": domains},
            "jobs": [{"job": "j", "title": "Publish", "controls": [], "scenarios": scenarios}] * jobs}  # fmt: skip


def shapes(jobs):
    data = {"name": "x", "published": "2026-11-30", "labels": [], "runs": [], "subjects": [subject(jobs)]}
    return list(card.shapes(data))


def test_all_some_and_none_have_a_colour_each_and_so_has_what_was_not_measured():
    def color(*passed):
        return card._n([{"passed": n, "valid": 3} for n in passed])[1]

    assert [color(3), color(2), color(0), color()] == [card.GOOD, card.SOME, card.BAD, card.NONE]
    assert (color(3, 3), color(3, 0), color(0, 0)) == (card.GOOD, card.SOME, card.BAD)
    assert len({card.GOOD, card.SOME, card.BAD, card.NONE}) == 4
    assert [one.color for one in shapes(1) if isinstance(one, card.Box) and one.height == 34] == [
        card.GOOD, card.SOME, card.BAD]  # fmt: skip


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_the_domains_fill_the_panel_and_no_line_touches_the_next(jobs):
    rows = [one for one in shapes(jobs) if isinstance(one, card.Text) and one.text.startswith("Domain")]
    low = card.HEIGHT - 66
    assert len(rows) == 6 and low - 65 < rows[-1].y < low - 5
    steps = [after.y - before.y for before, after in pairwise(rows)]
    assert all(step >= rows[0].size for step in steps)
