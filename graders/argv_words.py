"""A command's words as flags, their values, and plain words, and the same command with a part of it put otherwise.

What takes a value is told by whoever knows the program: nothing is guessed from a word's looks, except that a word
with a leading dash is a flag. Pure functions; a probe asks by these words, so none of them may be lost.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

#: The name by which `-5`, a dash and a number, is known.
NUMBER = "-#"
#: What no more flags stand behind.
END = "--"

_NUMBERED = re.compile(r"-(\d+)")


@dataclass(frozen=True)
class Item:
    """A flag with its value (None: it has none), or a plain word (`name` empty). `rest`: it stands behind `--`.

    It is the words of the command from `at` on, `width` of them.
    """

    name: str
    value: str | None
    at: int
    width: int = 1
    rest: bool = False


@dataclass(frozen=True)
class Words:
    """A command without the program's name, taken apart."""

    argv: tuple[str, ...]
    items: tuple[Item, ...]

    @cached_property
    def plain(self) -> list[Item]:
        """The plain words: the command path, and what stands behind it."""
        return [one for one in self.items if not one.name and not one.rest]

    def is_of(self, path: str) -> bool:
        """Whether the command path is `path` (`serial log`; empty: any)."""
        wanted = path.split()
        return [one.value for one in self.plain[: len(wanted)]] == wanted

    def flags(self, names: Collection[str]) -> list[Item]:
        """Where one of these flags stands, in order."""
        return [one for one in self.items if one.name in names]

    def has(self, names: Collection[str]) -> bool:
        """Whether one of these flags is there, with a value or without; `--` is, with words behind it."""
        return any((END if one.rest else one.name) in names for one in self.items)

    def rest(self) -> list[Item]:
        """The words behind `--`."""
        return [one for one in self.items if one.rest]

    def instead(self, changes: Sequence[tuple[Item, Sequence[str]]]) -> tuple[str, ...]:
        """The command with other words in the place of these items (none: without them)."""
        argv = list(self.argv)
        for item, words in sorted(changes, key=lambda change: change[0].at, reverse=True):
            argv[item.at : item.at + item.width] = words
        return tuple(argv)

    def with_path(self, path: str, other: str) -> tuple[str, ...]:
        """The command by another path, the rest as it is."""
        old = self.plain[: len(path.split())]
        gone = [(one, list[str]()) for one in old[1:]]
        return self.instead([(old[0], other.split()), *gone]) if old else (*other.split(), *self.argv)

    def with_more(self, words: Sequence[str]) -> tuple[str, ...]:
        """The command with these words besides: before `--`, behind which they would be something else."""
        at = self.argv.index(END) if END in self.argv else len(self.argv)
        return (*self.argv[:at], *words, *self.argv[at:])


def take_apart(argv: Sequence[str], valued: Collection[str]) -> Words:
    """The words of a command. `valued`: the flags that take a value, by all their spellings (NUMBER is one of them)."""
    items: list[Item] = []
    at, rest = 0, False
    while at < len(argv):
        item = Item("", argv[at], at, rest=True) if rest else _item(argv, at, valued)
        rest = rest or (item.name == END)
        items += [item] if item.name != END else []
        at += item.width
    return Words(tuple(argv), tuple(items))


def _item(argv: Sequence[str], at: int, valued: Collection[str]) -> Item:
    word = argv[at]
    if not word.startswith("-") or word == "-":
        return Item("", word, at)
    if word == END:
        return Item(END, None, at)
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        if equals:
            return Item(name, value, at)
    elif word not in valued:
        if found := _NUMBERED.fullmatch(word):
            return Item(NUMBER, found[1], at)
        if word[:2] in valued:  # -n5
            return Item(word[:2], word[2:].removeprefix("="), at)
    if word in valued and at + 1 < len(argv):
        return Item(word, argv[at + 1], at, 2)
    return Item(word, None, at)
