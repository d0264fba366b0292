"""What could stand at the cursor of a line that somebody is typing: verbs, flags, choices, files, names of the lab.

`complete` is pure but for the `names` that it asks; `main` is the hidden call behind `labd completion`, which the
scripts in `labd/shell/` make at each Tab: it runs in its own process, starts no daemon and asks none, gives up after
`SECONDS`, and answers nothing rather than an error. Light, as a prompt waits for it.
"""

from __future__ import annotations

from labd.argv import GLOBALS
from labd.operations import NOUNS, noun_operations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from labd.operations.model import Operation, Param

    #: (what would stand there, what it is).
    Option = tuple[str, str]
    #: Asked for a kind (`Param.complete`), the operation, and the values given so far.
    Names = Callable[[str, Operation, dict[str, str]], list[Option]]

#: Characters of what is said of an answer: shells show them in columns.
MOST_CHARACTERS = 70

#: Seconds after which the hidden call gives up: a prompt that hangs is worse than one without an answer.
SECONDS = 1.0

GLOBAL_OPTIONS = (
    ("--lab", "the lab file"),
    ("--json", "answer in JSON"),
    ("--quiet", "no notes or progress on stderr"),
    ("--help", "help on this"),
)


class Found:
    """The answers: `options`, and whether the names of `files` are answers too."""

    __slots__ = ("files", "options")

    def __init__(self, options: list[Option] | None = None, files: bool = False) -> None:
        self.options = options or []
        self.files = files

    def add(self, other: Found) -> None:
        """Take another one's answers as well."""
        self.options += other.options
        self.files = self.files or other.files

    def starting(self, current: str) -> Found:
        """Those that begin as the word at the cursor does, each once."""
        kept = {value: what for value, what in reversed(self.options) if value.startswith(current)}
        return Found(list(reversed(kept.items())), self.files)


def complete(words: list[str], current: str, names: Names) -> Found:
    """What can stand for `current` behind `words` (without the program's name)."""
    at = _past_globals(words, 0)
    for_help = words[at : at + 1] == ["help"]
    at += for_help
    if at > len(words):
        return Found(files=True)
    if at == len(words):
        nouns = [(noun, what) for noun, (_, what) in NOUNS.items()]
        flags = list(GLOBAL_OPTIONS) if current.startswith("-") else []
        return Found(flags or ([*nouns] if for_help else [*nouns, ("help", "help on a command")])).starting(current)
    return _behind_noun(words, at, current, names, for_help).starting(current)


def _past_globals(words: list[str], at: int) -> int:
    """Where the global flags that begin at `at` end; behind the end of `words` when a value of one is missing."""
    while at < len(words) and words[at].partition("=")[0] in GLOBALS:
        flag, eq, _ = words[at].partition("=")
        at += 2 if GLOBALS[flag][1] and not eq else 1
    return at


def _behind_noun(words: list[str], at: int, current: str, names: Names, for_help: bool) -> Found:
    noun, at = words[at], _past_globals(words, at + 1)
    if at > len(words):
        return Found(files=True)
    if noun not in NOUNS:
        return Found()
    paths = {path: op for op in noun_operations(noun) for path in (op.path, *op.aliases) if path[0] == noun}
    path: tuple[str, ...] = (noun,)
    while at < len(words) and any(known[: len(path) + 1] == (*path, words[at]) for known in paths):
        path, at = (*path, words[at]), at + 1
    found = Found()
    if at == len(words):
        found.options = [(known[len(path)], op.summary if len(known) == len(path) + 1 else "") for known, op
                         in paths.items() if len(known) > len(path) and known[: len(path)] == path]  # fmt: skip
    if path in paths and not for_help:
        found.add(_Line(paths[path], names).complete(words[at:], current))
    elif current.startswith("-") and at == len(words):
        found.options += GLOBAL_OPTIONS
    return found


class _Line:
    """The words behind an operation's path, as far as they are written."""

    def __init__(self, op: Operation, names: Names) -> None:
        self.op = op
        self.names = names
        self.flags = {flag: param for param in op.params for flag in param.flags}
        self.places = [param for param in op.params if param.positional]
        self.given: dict[str, str] = {}
        self.words: list[str] = []
        self.globals: set[str] = set()
        self.pending: Param | None = None
        self.wants_lab = False
        self.data = False

    def complete(self, words: list[str], current: str) -> Found:
        """What can stand for `current` behind `words`."""
        for number, word in enumerate(words):
            if not self._awaits_value and self._in_tail(word):
                return self._tail(words[number + (word == "--") :], current)
            self._read(word)
        if self.wants_lab:
            return Found(files=True)
        if self.pending is not None:
            return self._values(self.pending)
        if not self.data and current.startswith("-"):
            return self._flag_value(current) if "=" in current else Found(self._open_flags())
        return self._place(current)

    @property
    def _awaits_value(self) -> bool:
        return self.pending is not None or self.wants_lab

    def _read(self, word: str) -> None:
        flag, eq, value = word.partition("=")
        if self._awaits_value:
            if self.pending is not None:
                self.given[self.pending.name] = word
            self.pending, self.wants_lab = None, False
        elif self.data or not word.startswith("-") or word == "-":
            self.words.append(word)
        elif word == "--":
            self.data = True
        elif flag in GLOBALS and flag not in self.flags:
            self.globals.add(flag)
            self.wants_lab = GLOBALS[flag][1] and not eq
        elif flag in self.flags:
            self.given[self.flags[flag].name] = value
            self.pending = self.flags[flag] if not eq and self.flags[flag].kind != "switch" else None
        elif word[:2] in self.flags:
            self.given[self.flags[word[:2]].name] = word[2:]
        elif word[1:].replace(".", "", 1).isdigit():
            self.words.append(word)

    def _in_tail(self, word: str) -> bool:
        """Whether `word` is the first of those that are taken as they are."""
        known = word.partition("=")[0] in self.flags or word.partition("=")[0] in GLOBALS
        return self._at_tail and not known

    @property
    def _at_tail(self) -> bool:
        return any(p.kind == "rest" for p in self.places) and len(self.words) == len(self.places) - 1

    def _tail(self, words: list[str], current: str) -> Found:
        """The trailing words: a command of ours once more, or another program's."""
        if self.places[-1].complete != "command":
            return Found(files=True)
        return complete(words[words[:1] == ["labd"] :], current, self.names)

    def _values(self, param: Param) -> Found:
        """What can be given for a parameter."""
        if param.choices:
            return Found([(choice, "") for choice in param.choices])
        if param.kind == "switch":
            return Found([("true", ""), ("false", "")])
        if param.kind == "path" or param.complete == "file":
            return Found(files=True)
        return Found(self.names(param.complete, self.op, self._known()) if param.complete else [])

    def _known(self) -> dict[str, str]:
        """Values by name: flags, and the words in the places that they would take."""
        return {**dict(zip((place.name for place in self.places), self.words, strict=False)), **self.given}

    def _flag_value(self, current: str) -> Found:
        flag = current.partition("=")[0]
        if flag == "--lab":
            return Found(files=True)
        found = self._values(self.flags[flag]) if flag in self.flags else Found()
        return Found([(f"{flag}={value}", what) for value, what in found.options], found.files)

    def _open_flags(self) -> list[Option]:
        """The flags that may still be given: the long spelling where there is one."""
        own = [(next((flag for flag in param.flags if flag.startswith("--")), param.flags[0]), param.help)
               for param in self.op.params
               if param.flags and (param.repeat or param.name not in self._known())]  # fmt: skip
        return [*own, *(option for option in GLOBAL_OPTIONS if option[0] not in self.globals)]

    def _place(self, current: str) -> Found:
        """What the next word may be: a place that may be left out leaves its turn to the one behind it, too."""
        places = [place for place in self.places if place.name not in self.given]
        found, at = Found(), len(self.words)
        if at >= len(places) and places and places[-1].repeat:
            at = len(places) - 1
        for place in places[at:]:
            found.add(self._tail([], current) if place.kind == "rest" else self._values(place))
            if place.required and not any(other in self.given for other in place.unless):
                break
        if at >= len(places) and not current and not self.data:
            found.options = self._open_flags()
        return found


# --- the hidden call ------------------------------------------------------------------------------------------------


def main(words: list[str]) -> int:
    """`labd __complete SHELL WORDS… CURRENT`: a line `files` or `-`, then a line `VALUE<tab>WHAT` for each answer.

    Always exit 0; says nothing where anything is wrong.
    """
    import os
    import signal

    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        text = _answer(words[0], words[1:-1], words[-1])
        _record(words)
        os.write(1, text.encode("utf-8", "surrogateescape"))
    except Exception:  # a prompt is no place for an error
        pass
    return 0


def _answer(shell: str, words: list[str], current: str) -> str:
    from labd.completing_names import Lab

    if shell == "bash":
        words, current = [_unquoted(word) for word in words], _unquoted(current)
    found = complete(words, current, Lab(words))
    lines = ["files" if found.files else "-"]
    lines += [f"{value}\t{_short(what)}" for value, what in found.options]
    return "\n".join(lines) + "\n"


def _short(text: str) -> str:
    """The beginning of a text, on one line, with nothing that a terminal would act on."""
    line = "".join([c if c.isprintable() else " " for c in text[: MOST_CHARACTERS + 1]])
    return line if len(line) <= MOST_CHARACTERS else line[: MOST_CHARACTERS - 1] + "…"


def _unquoted(word: str) -> str:
    """A word of a shell's line as the shell would give it to a program, also where its quote is still open."""
    if not any(char in word for char in "'\"\\"):
        return word
    import shlex

    try:
        return "".join(shlex.split(word))
    except ValueError:
        return word.lstrip("'\"")


def _record(words: list[str]) -> None:
    """In the record that was asked for by path, this call is one like any other; our own is not for keystrokes."""
    import os

    if not os.environ.get("LABD_ARGV_LOG"):
        return
    from labd.cli import own_call
    from labd.record import Passage

    passage = Passage(own_call(["__complete", *words]))
    passage.start(operation=None, effect="help", decision="permitted")
    passage.end(0)
