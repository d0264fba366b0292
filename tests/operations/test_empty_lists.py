"""A list that is empty says why on stderr, and what to do about it, so that nothing is never all that is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import BenchInAFolder

#: Last words of verbs that list.
LISTS = ("list", "devices", "show")


def is_empty(answer: Any) -> bool:
    """Whether there is no row in it, beside what it is about."""
    rows = [one for one in answer.values() if isinstance(one, list | dict)] if isinstance(answer, dict) else [answer]
    return bool(rows) and not any(rows)


@pytest.mark.parametrize(("text", "more"), [("", ()), ("[targets.pico]\n", ()), ("[targets.pico]\n", ("--quiet",))])
def test_every_verb_of_the_table_that_lists_says_why_there_is_nothing(
    labd: BenchInAFolder, text: str, more: tuple[str, ...]
):
    labd.lab.write_text(text)
    seen = set()
    for entry in json.loads(labd("commands", "--json").stdout)["operations"]:
        if entry["effect"] != "observe" or entry["path"].split()[-1] not in LISTS:
            continue
        done = labd(*entry["path"].split(), "--json", *more, check=None)
        if done.returncode == 0 and is_empty(json.loads(done.stdout)):
            seen.add(entry["path"])
            notes = [json.loads(line)["note"] for line in done.stderr.decode().splitlines()]
            assert notes, entry["path"]
            assert any("labd " in note or "left out" in note for note in notes), (entry["path"], notes)
    assert {"claim list", "serial trigger list", "power list"} <= seen


def test_a_log_that_was_never_captured_says_so_under_quiet_too(labd: BenchInAFolder):
    labd.lab.write_text('[[targets.pico.serial]]\nname = "console"\ndevice = "loopback:uboot"\n')
    done = labd("serial", "log", "pico", "--quiet")
    assert done.stdout == b""
    assert b"labd serial watch pico" in done.stderr
