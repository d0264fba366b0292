"""What a picture says, for the capture process: `read(picture, options)`, the text as plain data.

Keeps what makes the next reading of the same screen quick (fonts, where the characters were), and the last texts, so
that it can be told what has changed since. One reading at a time: the worker holds a lock around it.
"""

from __future__ import annotations

import difflib
import os
from collections import OrderedDict
from typing import Any

from labd.errors import NotFound
from labd.ocr import learn, library, reader
from labd.ocr.fonts import Font
from labd.ocr.page import Hint
from labd.video.frame import Picture, Region

#: Texts that are kept, by the hash of their picture, to be compared with.
TEXTS_MOST = 32

_fonts: list[Font] | None = None
_hints: dict[str, Hint] = {}
_texts: OrderedDict[tuple[str, str], list[str]] = OrderedDict()


def read(picture: Picture, options: dict[str, Any], name: str) -> dict[str, Any]:
    """The text of a picture whose hash is `name`, as `Page.as_data` says it.

    `options`: `engine`, `region` (X,Y,W,H), `diff` with `since` (the hash of an earlier text; by default the last one),
    `learn` with `lines` and `name`. Raises Usage, NotFound (no text is known of that hash), LabdError.
    """
    region = str(options.get("region") or "")
    part = Region.parse(region) if region else None
    if options.get("learn"):
        return _learn(picture, options, part)
    box = None if part is None else (part.x, part.y, part.x + part.width, part.y + part.height)
    page = reader.read(picture, engine=str(options.get("engine") or "auto"), fonts=fonts(), region=box,
                       hint=_hints.get(region))  # fmt: skip
    if page.hint is not None:
        _hints[region] = page.hint
    data = page.as_data()
    lines = [line.text for line in page.lines]
    if options.get("diff"):
        data |= _changes(region, lines, options.get("since"))
    _keep(region, name, lines)
    return data


def fonts() -> list[Font]:
    """The fonts of this machine, looked for once."""
    global _fonts
    if _fonts is None:
        _fonts = library.find_fonts(os.environ)
    return _fonts


def _learn(picture: Picture, options: dict[str, Any], part: Region | None) -> dict[str, Any]:
    """Make a font from a picture whose text is known, and use it from now on."""
    global _fonts
    shown = picture if part is None else part.of(picture)
    font, facts = learn.learn(shown, [str(line) for line in options["lines"]], str(options["name"]), fonts())
    path = library.keep(font, os.environ)
    _fonts = None
    _hints.clear()
    return {"font": font.name, "file": path, **facts}


def _changes(region: str, lines: list[str], since: str | None) -> dict[str, Any]:
    """Lines that came and went since the text of the picture with that hash, or since the last text."""
    before: list[str] = []
    if since is not None:
        known = _texts.get((region, since))
        if known is None:
            raise NotFound(f"no text was read of a picture with the hash {since} by this capture")
        before = known
    else:
        last = next((key for key in reversed(_texts) if key[0] == region), None)
        if last is not None:
            since, before = last[1], _texts[last]
    added, removed = [], []
    for word in difflib.ndiff(before, lines):
        if word.startswith("+ "):
            added.append(word[2:])
        elif word.startswith("- "):
            removed.append(word[2:])
    return {"since": since, "added": added, "removed": removed}


def _keep(region: str, name: str, lines: list[str]) -> None:
    _texts[region, name] = lines
    _texts.move_to_end((region, name))
    while len(_texts) > TEXTS_MOST:
        _texts.popitem(last=False)
