"""A scenario's board that is written in the scenario itself, as a DUT file: a built-in one with other variables, or a
banner, answers and what comes later. What needs more than that gets a file under fixtures/duts.

Pure: a table in, a text out. The format is loopback/dutfile.py's; the scenario loader has checked the table.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

#: What the file is called beside the lab: `device = "loopback:dut.toml"`.
NAME = "dut.toml"

#: Keys of [loopback] that describe a board.
KEYS = ("dut", "variables", "banner", "mode", "respond", "followup")

#: Milliseconds between the texts of `followup`, the first counted from the end of the banner.
FOLLOWUP_MS = 1000


def text(loopback: Mapping[str, Any], title: str) -> str | None:
    """The DUT file that a [loopback] table describes, placeholders still in it; None if it describes none."""
    if not any(key in loopback for key in KEYS):
        return None
    return "\n".join(_lines(loopback, title)) + "\n"


def _lines(loopback: Mapping[str, Any], title: str) -> Iterator[str]:
    yield f"title = {_quoted(title)}"
    if "dut" in loopback:
        yield f"include = {_quoted(loopback['dut'])}"
    for key in ("banner", "mode"):
        if key in loopback:
            yield f"{key} = {_quoted(loopback[key])}"
    if loopback.get("variables"):
        yield "[variables]"
        yield from (f"{name} = {_quoted(value)}" for name, value in loopback["variables"].items())
    for entry in loopback.get("respond", ()):
        yield "[[respond]]"
        yield from (f"{key} = {_quoted(entry[key])}" for key in ("match", "reply"))
    for number, later in enumerate(loopback.get("followup", ()), 1):
        yield f'[[after]]\nsince = "enter"\nms = {number * FOLLOWUP_MS}\nprint = {_quoted(later)}'


def _quoted(value: str) -> str:
    """A TOML string: JSON's escapes are TOML's, but for DEL, which TOML wants escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
