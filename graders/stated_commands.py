"""Is a stated command line one that the live command reference knows? Pure: words and a surface.json, nothing else.

`read` finds the command, its target and what is wrong with the words. What exists nowhere in the reference is
`invented`: a command, or a flag that no command has. What exists and is put together wrongly is `malformed`: a flag of
another command, a value that is missing or out of its kind, a word too many, -t where a word is wanted or a word where
-t is. What somebody would still fill in (<seq>, FILE, $VALUE) is of every kind.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from labd.errors import nearest

#: What stands for a value that is not known yet: <seq> (as the extraction writes it), FILE, $VALUE, {seq}, …
HOLE = re.compile(r"[〈{].*|[A-Z][A-Z0-9_-]*(\.\.\.|…)?|\$.*|\.\.\.|…|.*[〉}]")

_NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?", re.IGNORECASE)
_TARGET_FLAGS = frozenset({"-t", "--target"})


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a line: D4 (`invented`) or D3 (`malformed`), and why."""

    kind: Literal["invented", "malformed"]
    text: str


@dataclass
class Reading:
    """What a line says. `path` is None for help, and where there is no such command. `bare`: nothing but the path."""

    path: str | None = None
    effect: str | None = None
    target: str | None = None
    bare: bool = False
    problems: list[Problem] = field(default_factory=list)

    @property
    def invented(self) -> str | None:
        """Why it does not exist; None if it does."""
        return next((one.text for one in self.problems if one.kind == "invented"), None)

    @property
    def malformed(self) -> str | None:
        """Why it would not be understood; None if it would."""
        return next((one.text for one in self.problems if one.kind == "malformed"), None)


def read(surface: Mapping[str, Any], words: Sequence[str]) -> Reading:
    """Check `words` (without the program's name) against the reference."""
    return _Reader(surface).read([word for word in words if word not in ("[", "]")])


class _Reader:
    def __init__(self, surface: Mapping[str, Any]) -> None:
        self.commands = {entry["path"]: entry for entry in surface["commands"]}
        self.names = {name: path for path, entry in self.commands.items() for name in (path, *entry.get("aliases", ()))}
        self.globals = {flag: entry for entry in surface.get("globals", ()) for flag in entry["flags"]}
        self.flags = {flag for entry in self.commands.values() for param in entry["params"] for flag in param["flags"]}
        self.found = Reading()
        self.help = False

    def read(self, words: list[str]) -> Reading:
        words = self._leading(words)
        if words[:1] == ["help"] and "help" not in self.names:
            self.help, words = True, words[1:]
        if not words or (self.help and words[0].startswith("-")):
            return self.found
        path, rest = self._resolve(words)
        if path is not None:
            entry = self.commands[path]
            self.found.path, self.found.effect = path, entry.get("effect")
            self.found.bare = not rest
            self._arguments(entry, rest)
            if self.help:
                self.found.path, self.found.effect = None, "help"
                self.found.problems = [one for one in self.found.problems if one.kind == "invented"]
        return self.found

    def _wrong(self, kind: Literal["invented", "malformed"], text: str) -> None:
        self.found.problems.append(Problem(kind, text))

    def _leading(self, words: list[str]) -> list[str]:
        """Global flags before and between the words of the path are taken away."""
        kept: list[str] = []
        at = 0
        while at < len(words) and len(kept) < 3:
            flag, eq, _ = words[at].partition("=")
            if flag not in self.globals:
                if words[at].startswith("-"):
                    break
                kept.append(words[at])
                at += 1
                continue
            self.help = self.help or flag in ("-h", "--help")
            at += 2 if self.globals[flag].get("takes_value") and not eq else 1
        return kept + words[at:]

    def _resolve(self, words: list[str]) -> tuple[str | None, list[str]]:
        """The command that the words begin with, and what follows; where there is none, why."""
        plain = list(words)
        while plain and plain[-1].startswith("-") and self.help:
            plain.pop()
        for size in (3, 2, 1):
            name = " ".join(words[:size])
            if len(words) >= size and name in self.names and self._fits(name, words[size:]):
                return self.names[name], words[size:]
        if HOLE.fullmatch(words[0]):
            return None, []
        below = {name.split(" ")[1] for name in self.names if name.startswith(words[0] + " ")}
        if words[0].startswith("-"):
            if words[0].partition("=")[0] not in self.flags:
                self._wrong("invented", f"no flag {words[0].partition('=')[0]}")
            else:
                self._wrong("malformed", f"{words[0]} before a command")
        elif not below and words[0] not in self.names:
            near = nearest(words[0], sorted({name.split(" ")[0] for name in self.names}))
            self._wrong("invented", f"no command {words[0]!r}" + (f"; near: {', '.join(near)}" if near else ""))
        elif len(words) > 1 and not self.help and not HOLE.fullmatch(words[1]) and not words[1].startswith("-"):
            self._below(words)
        return None, []

    def _below(self, words: list[str]) -> None:
        """A group is there and what follows is none of its verbs."""
        two = " ".join(words[:2])
        thirds = {name.split(" ")[2] for name in self.names if name.startswith(two + " ")}
        if not thirds:
            near = nearest(two, sorted(name for name in self.names if name.startswith(words[0] + " ")))
            self._wrong("invented", f"no command {two!r}" + (f"; near: {', '.join(near)}" if near else ""))
        elif len(words) > 2 and not HOLE.fullmatch(words[2]) and not words[2].startswith("-"):
            self._wrong("invented", f"no command {' '.join(words[:3])!r}")

    def _fits(self, name: str, rest: list[str]) -> bool:
        """Whether a name that is also a group's is meant as the command: what follows may be an argument of it."""
        longer = any(other.startswith(name + " ") and self.names[other] != self.names[name] for other in self.names)
        places = [param for param in self.commands[self.names[name]]["params"] if not param["flags"]]
        return not longer or not rest or bool(places) or rest[0].startswith("-")

    # -- arguments ---------------------------------------------------------------------------------------------

    def _arguments(self, entry: Mapping[str, Any], words: list[str]) -> None:
        options = {flag: param for param in entry["params"] for flag in param["flags"]}
        places = [param for param in entry["params"] if not param["flags"]]
        tail = next((param for param in places if param.get("kind") == "rest"), None)
        given: dict[str, list[str]] = {}
        plain: list[str] = []
        words = list(self._unbracketed(words))
        at = 0
        while at < len(words):
            word = words[at]
            flag, eq, value = word.partition("=")
            if tail is not None and len(plain) == len(places) - 1 and flag not in options and flag not in self.globals:
                given[tail["name"]] = words[at:]
                break
            if word == "--":
                room = len(words) if tail is None else len(places) - 1 - len(plain)
                plain += words[at + 1 : at + 1 + room]
                break
            if not _is_flag(word):
                plain.append(word)
                at += 1
                continue
            param = options.get(flag) or self._attached(word, options)
            if param is None:
                at += self._other_flag(entry, flag, bool(eq))
                continue
            attached = value if eq else word[2:] if flag not in options else None
            at += self._option(param, flag, attached, words[at + 1 :], given)
        self._places(entry, [place for place in places if place is not tail], plain, given)
        self.found.target = given.get("target", [None])[0]

    @staticmethod
    def _unbracketed(words: list[str]) -> Iterator[str]:
        """Words of a synopsis: `[--tail N]` says what may be left out, `...` that more may follow."""
        for word in words:
            bare = word.strip("[]") if word.startswith("[") or word.endswith("]") else word
            if bare and bare not in ("...", "…"):
                yield bare

    @staticmethod
    def _attached(word: str, options: Mapping[str, Any]) -> Any:
        """`-n20`: a short flag with its value behind it."""
        if len(word) > 2 and word[0] == "-" and word[1] != "-":
            return options.get(word[:2])
        return None

    def _other_flag(self, entry: Mapping[str, Any], flag: str, attached: bool) -> int:
        """A flag that is none of the command's. Returns how many words it takes."""
        if flag in self.globals:
            self.help = self.help or flag in ("-h", "--help")
            return 2 if self.globals[flag].get("takes_value") and not attached else 1
        path = entry["path"]
        if flag in _TARGET_FLAGS:
            self._wrong("malformed", f"{path} takes its target as a word, not with {flag}")
            return 1 if attached else 2
        if flag in self.flags:
            self._wrong("malformed", f"{path} has no flag {flag}")
        else:
            near = nearest(flag, sorted({one for param in entry["params"] for one in param["flags"]}))
            self._wrong("invented", f"{path} has no flag {flag}" + (f"; near: {', '.join(near)}" if near else ""))
        return 1

    def _option(self, param: Mapping[str, Any], flag: str, attached: str | None, following: list[str],
                given: dict[str, list[str]]) -> int:  # fmt: skip
        name = param["name"]
        if name in given and not param.get("repeat"):
            self._wrong("malformed", f"{flag} is given twice")
        if param.get("kind") == "switch":
            given.setdefault(name, []).append(attached or "true")
            if attached is None and following and following[0] in ("true", "false"):
                return 2
            return 1
        if attached is None and (not following or following[0] in self.flags | self.globals.keys()):
            self._wrong("malformed", f"{flag} needs a value")
            given.setdefault(name, []).append("")
            return 1
        value = following[0] if attached is None else attached
        given.setdefault(name, []).append(value)
        self._value(param, flag, value)
        return 1 if attached is not None else 2

    def _places(self, entry: Mapping[str, Any], places: list[Any], plain: list[str],
                given: dict[str, list[str]]) -> None:  # fmt: skip
        """Words by their place, as the program does it: one that may be left out is, while there are too few words."""
        spare = len(plain) - sum(_needed(place, given) for place in places)
        for place in places:
            if not _needed(place, given):
                if spare <= 0:
                    continue
                spare -= 1
            if plain:
                if place["name"] in given:
                    self._wrong("malformed", f"{place['name']} is given as a flag and as {plain[0]!r}")
                values = plain if place.get("repeat") else plain[:1]
                plain = plain[len(values) :]
                given[place["name"]] = values
                self._value(place, place["name"].upper(), values[0])
        if plain:
            by_flag = any(
                _TARGET_FLAGS & set(param["flags"]) and param["name"] not in given for param in entry["params"]
            )
            how = f"names its target with -t {plain[0]}" if by_flag else f"has no place for {plain[0]!r}"
            self._wrong("malformed", f"{entry['path']} {how}")
        for param in entry["params"]:
            if _needed(param, given) and param["name"] not in given:
                self._wrong("malformed", f"{entry['path']} needs {'/'.join(param['flags']) or param['name'].upper()}")

    def _value(self, param: Mapping[str, Any], name: str, value: str) -> None:
        if HOLE.fullmatch(value):
            return
        if param.get("kind") in ("int", "float") and not _NUMBER.fullmatch(value):
            self._wrong("malformed", f"{name} takes a number, not {value!r}")
        choices = param.get("choices") or ()
        if choices and not set(re.split(r"[|/]", value)) <= set(choices):
            self._wrong("malformed", f"{name} takes one of {', '.join(choices)}, not {value!r}")


def _needed(param: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    return bool(param.get("required")) and not any(other in given for other in param.get("unless") or ())


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and not _NUMBER.fullmatch(word)
