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
#: A longer line is no heading (characters).
MOST_HEADING = 500
#: A line with less to it than this tells no file from another (characters).
TELLING = 8

#: What may be a path; `_is_path` decides.
_WORD = r"(?P<path>[\w.@~+\-/\\]+)"
_PATHS = re.compile(r"(?<![\w.@~+\-/\\])[\w@~+\-]*+[./\\][\w.@~+\-/\\]++")
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
_MARKS = frozenset("#*=-+</")
_LABEL = re.compile(rf"\s{{0,3}}(?:[Ff]ile(?:name)?:? +|[Pp]ath:? +)?[`*\"']{{0,3}}{_WORD}[`*\"']{{0,3}}:?$")
_CONTENT = re.compile(r"^\s*(?:```|~~~|\d{1,6}\s*[\t|:→│])|^(?: {4}|\t)\S")
#: Both begin at a line's end, which is found fast: they are for a text behind one.
_LINES = re.compile(r"\n[^\S\n]*+(?:\d{1,6}(?:\t|→|: ?|\| ?|│ ?))?+[^\S\n]*+(\S(?:.*\S)?)")
#: The lines that may be a heading, or nothing but a path: the few that are worth a look.
_CANDIDATES = re.compile(r"\n(?! {4})([^\S\n]{0,3}(?:[#*=\-+</].*|(?:[A-Za-z]{4,8}:?[ \t]+)?[`*\"']{0,3}"
                         r"[\w.@~+\-/\\]++[`*\"']{0,3}:?))(?![^\n])")  # fmt: skip

_PATH_KEYS = ("path", "file", "file_path", "filePath", "filename", "relativePath", "uri", "name")
_CONTENT_KEYS = ("content", "contents", "text", "source", "code", "body", "snippet", "lines")


class Answer:
    """One answer's text. Everything is worked out once, when it is asked for."""

    def __init__(self, text: str) -> None:
        self.text = text[:MOST_CHARS]

    @cached_property
    def shipped(self) -> tuple[str, ...]:
        """The files with a section of their own, each once, in order."""
        return tuple(dict.fromkeys((*_sections(self.text), *_objects(self.text))))

    @property
    def size(self) -> int:
        """How many lines have something in them."""
        return sum(map(bool, map(str.strip, self.text.split("\n"))))

    @cached_property
    def lines(self) -> frozenset[int]:
        """The hashes of its lines that tell something."""
        return frozenset(map(hash, telling(self.text)))

    @cached_property
    def named(self) -> dict[str, set[str]]:
        """Last part → all paths with it that stand in the text."""
        found: dict[str, set[str]] = {}
        for word in set(_PATHS.findall(self.text)):
            path = _plain(word.rstrip("./\\"))
            found.setdefault(posixpath.basename(path), set()).add(path)
        return found

    @cached_property
    def shelf(self) -> "Shelf":
        """What this answer alone returned."""
        made = Shelf()
        made.add(self)
        return made


class Shelf:
    """What some answers returned: files, lines, names. Asking it costs the same however many they were."""

    def __init__(self) -> None:
        self._shipped: dict[str, set[str]] = {}
        self._lines: set[int] = set()
        self._named: dict[str, set[str]] = {}
        self._new: tuple[list[Answer], ...] = ([], [], [])

    def add(self, answer: Answer) -> None:
        """One more answer. It is looked into when somebody asks, for no more than what is asked."""
        for waiting in self._new:
            waiting.append(answer)

    def ships(self, path: str, read: frozenset[str] = frozenset()) -> bool:
        """Whether the content of the file was returned. `read`: the lines that a later read of it showed."""
        for answer in _taken(self._new[0]):
            for one in answer.shipped:
                self._shipped.setdefault(posixpath.basename(_plain(one)), set()).add(one)
        last = posixpath.basename(_plain(path))
        near = self._shipped.get(last, set()) if not _globbed(path) else set().union(*self._shipped.values())
        return any(same(path, one) for one in near) or self.shows(read)

    def shows(self, read: frozenset[str]) -> bool:
        """Whether these lines (`telling`) were here already: three of them, or all there are."""
        for answer in _taken(self._new[1]):
            self._lines |= answer.lines
        return bool(read) and sum(hash(line) in self._lines for line in read) >= min(ENOUGH, len(read))

    def names(self, path: str) -> bool:
        """Whether the file is named: by its path, or by the end of it."""
        for answer in _taken(self._new[2]):
            for last, paths in answer.named.items():
                self._named.setdefault(last, set()).update(paths)
        return any(same(path, one) for one in self._named.get(posixpath.basename(_plain(path)), ()))


def _taken(waiting: list[Answer]) -> list[Answer]:
    """What waits, which no longer does."""
    found = waiting[:]
    waiting.clear()
    return found


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


def telling(text: str) -> frozenset[str]:
    """The lines that tell one file from another, without their numbers."""
    lines = _LINES.findall("\n" + text, 0, MOST_CHARS)[:MOST_LINES]
    return frozenset(line for line in lines if len(line) >= TELLING)


def _sections(text: str) -> Iterator[str]:
    """The paths of sections. A label with nothing but its path needs content behind it."""
    text = "\n" + text
    for candidate in _CANDIDATES.finditer(text):
        line = candidate[1]
        if not 2 < len(line) < MOST_HEADING:
            continue
        found = None
        if line.lstrip()[:1] in _MARKS:
            found = next((match for match in (form.match(line) for form in _HEADINGS) if match), None)
        if found is None and (label := _LABEL.match(line)):
            next_two = text[candidate.end() + 1 : candidate.end() + 1 + MOST_HEADING].split("\n", 2)[:2]
            behind = next((one for one in next_two if one.strip()), "")
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
