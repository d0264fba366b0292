"""What an answer returned: which files it shipped (with their content), and which it only named. Pure.

A file counts as shipped if the answer has a section for it: a heading, label or tag that is nothing but its path, with
content behind it; or an object of a JSON answer with its path and its content; or if lines that a later read of the
file shows stand in the answer. A path in a list, in prose or before a line number is a name, and no content.
"""

import json
import posixpath
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

#: Of an answer, no more than this is looked into (characters); its lines are compared up to this number.
MOST_CHARS, MOST_LINES = 2_000_000, 50_000
#: So many lines of a file make it shipped; of a shorter file, all.
ENOUGH = 3
#: A line with less to it than this tells no file from another (characters).
TELLING = 8

#: What may be a path; `_is_path` decides.
_WORD = r"(?P<path>[\w.@~+\-/\\]+)"
_ENDING = re.compile(r"[^/\\.]\.\w{1,12}$|^[A-Z][\w-]*file$")
#: The headings that stand for a file's section whatever follows; a label needs content behind it.
_HEADINGS = tuple(
    re.compile(form.replace("PATH", _WORD))
    for form in (
        r"\s{0,3}(?:#{1,6} +)?\*\*`PATH`\*\*",
        r"\s{0,3}#{1,6} +(?:[Ff]ile:? +)?`?PATH`?(?:[ :(].*)?$",
        r"==> PATH <==$",
        r"(?:---|\+\+\+) [ab]/PATH(?:\t.*)?$",
        r"<(?:file|document|source)\b[^>]*\b(?:path|name|src)=[\"']PATH[\"'][^>]*>",
        r"(?:=+|-+|/{2,}|\*+) +(?:[Ff]ile:? +)?PATH(?: +[=\-/*]+)?$",
    )
)
_LABEL = re.compile(rf"\s{{0,3}}(?:[Ff]ile(?:name)?:? +|[Pp]ath:? +)?[`*\"']{{0,3}}{_WORD}[`*\"']{{0,3}}:?$")
_CONTENT = re.compile(r"^\s*(?:```|~~~|\d{1,6}\s*[\t|:→│])|^(?: {4}|\t)\S")
_NUMBERED = re.compile(r"^\s*\d{1,6}(?:\t|→|: ?|\| ?|│ ?)")

_PATH_KEYS = ("path", "file", "file_path", "filePath", "filename", "relativePath", "uri", "name")
_CONTENT_KEYS = ("content", "contents", "text", "source", "code", "body", "snippet", "lines")


class Answer:
    """One answer's text. Everything is worked out when it is asked for."""

    def __init__(self, text: str) -> None:
        self.text = text[:MOST_CHARS]

    @cached_property
    def shipped(self) -> tuple[str, ...]:
        """The files with a section of their own, each once, in order."""
        return tuple(dict.fromkeys((*_sections(self.text), *_objects(self.text))))

    @cached_property
    def lines(self) -> frozenset[str]:
        """The lines that tell something, without numbers before them."""
        return frozenset(_telling(self.text))

    @property
    def size(self) -> int:
        """How many lines have something in them."""
        return sum(bool(line.strip()) for line in self.text.split("\n"))

    def ships(self, path: str, read: str | None = None) -> bool:
        """Whether the content of the file was returned. `read`: what a later read of it showed, if that is known."""
        return any(same(path, one) for one in self.shipped) or (read is not None and self.shows(read))

    def shows(self, read: str) -> bool:
        """Whether this much of a text was here already: three lines that tell something, or all it has."""
        told = list(dict.fromkeys(_telling(read)))
        return bool(told) and sum(line in self.lines for line in told) >= min(ENOUGH, len(told))

    def names(self, path: str) -> bool:
        """Whether the file is named: by the whole of the path, or its last part where that has an ending."""
        last = posixpath.basename(path)
        wanted = [path, *([last] if "." in last.strip(".") else [])]
        return any(_stands(one, self.text) for one in wanted if one and not _globbed(one))


def same(path: str, other: str) -> bool:
    """Whether two paths may be one file's: one ends with the other, at a `/`. Either may be a glob."""
    ours, theirs = _plain(path), _plain(other)
    if _globbed(ours) or _globbed(theirs):
        glob, told = (ours, theirs) if _globbed(ours) else (theirs, ours)
        return fnmatchcase(told, glob) or fnmatchcase(told, f"*/{glob}")
    shorter, longer = sorted((ours, theirs), key=len)
    return bool(shorter) and (longer == shorter or longer.endswith("/" + shorter))


def _plain(path: str) -> str:
    path = path.removeprefix("file://").replace("\\", "/")
    return posixpath.normpath(path).removeprefix("~/").removeprefix("./") if path else ""


def _globbed(path: str) -> bool:
    return any(mark in path for mark in "*?[")


def _stands(word: str, text: str) -> bool:
    """Whether the word stands in the text by itself, as no part of a longer name."""
    at = text.find(word)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(word) : at + len(word) + 2]
        if not re.match(r"[\w.\-]", before) and not re.match(r"[\w\-]|\.\w", after):
            return True
        at = text.find(word, at + 1)
    return False


def _telling(text: str) -> Iterator[str]:
    for count, line in enumerate(text.split("\n")):
        if count >= MOST_LINES:
            return
        bare = _NUMBERED.sub("", line).strip()
        if len(bare) >= TELLING:
            yield bare


def _sections(text: str) -> Iterator[str]:
    """The paths of sections. A label with nothing but its path needs content behind it."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if len(line) > 500:
            continue
        found = next((match for match in (form.match(line) for form in _HEADINGS) if match), None)
        if found is None and (label := _LABEL.match(line)):
            behind = next((one for one in lines[at + 1 : at + 3] if one.strip()), "")
            found = label if _CONTENT.match(behind) else None
        if found is not None and _is_path(found["path"]):
            yield found["path"]


def _is_path(word: str) -> bool:
    return len(word) < 1000 and (_ENDING.search(word) is not None or "/" in word.strip("/."))


def _objects(text: str) -> list[str]:
    """The paths of a JSON answer's objects that have content, too."""
    if not text.lstrip().startswith(("{", "[")):
        return []
    try:
        left: list[Any] = [json.loads(text)]
    except (ValueError, RecursionError):
        return []
    found = []
    for _ in range(MOST_LINES):
        if not left:
            break
        one = left.pop()
        if isinstance(one, dict):
            path = next((one[key] for key in _PATH_KEYS if isinstance(one.get(key), str)), "")
            if _is_path(path.removeprefix("file://")) and any(one.get(key) for key in _CONTENT_KEYS):
                found.append(path)
            left += [value for value in one.values() if isinstance(value, (dict, list))]
        elif isinstance(one, list):
            left += one
    return found
