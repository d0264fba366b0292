"""Words → operation and values, by the table of operations. Pure: reads no file, starts nothing.

Why not argparse: it guesses (abbreviated flags), takes a repeated flag silently, wants global flags in one place,
cannot offer near matches, and its tree of all commands costs more than four interpreter starts (measured). The
rules here: global flags work anywhere before `--` or a pass-through tail; a single-value flag given twice is an
error; nothing is abbreviated; after `--` everything is data; the value of an option is never a verb.
"""

from __future__ import annotations

from labd.errors import Usage, nearest
from labd.operations import noun_operations
from labd.operations.model import Args

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.operations.model import Operation, Param

#: Global flags: spelling → (name, takes a value).
GLOBALS = {
    "--lab": ("lab", True),
    "--json": ("json", False),
    "--quiet": ("quiet", False),
    "-q": ("quiet", False),
    "--help": ("help", False),
    "-h": ("help", False),
    "--version": ("version", False),
    "-V": ("version", False),
}


class Parsed:
    """What the words say. `operation` is None for help on a group (`words` are its words) and for --version."""

    __slots__ = ("args", "globals", "operation", "words")

    def __init__(self, words: tuple[str, ...], operation: Operation | None, args: Args | None,
                 found: dict[str, Any]) -> None:  # fmt: skip
        self.words = words
        self.operation = operation
        self.args = args
        self.globals = found

    @property
    def wants_help(self) -> bool:
        """Whether help was asked for instead of the operation."""
        return bool(self.globals.get("help"))


def parse(argv: list[str]) -> Parsed:
    """The operation that `argv` (without the program's name) asks for, checked against its parameters.

    Raises Usage naming what is wrong, the near matches and the command that lists what exists.
    """
    found: dict[str, Any] = {}
    rest = _take_globals(argv, found)
    if rest and rest[0] == "help":
        found["help"] = True
        rest = rest[1:]
    if not rest or found.get("version"):
        return Parsed((), None, None, found)
    rest[1:] = _take_globals(rest[1:], found, strict=False)
    operation, path, rest = _resolve(rest, bool(found.get("help")))
    if operation is None or found.get("help"):
        return Parsed(path, operation, None, found)
    reader = _Reader(operation, found)
    reader.read(rest)
    if found.get("help"):
        return Parsed(path, operation, None, found)
    return Parsed(path, operation, Args(reader.values()), found)


def _take_globals(words: list[str], found: dict[str, Any], strict: bool = True) -> list[str]:
    """Consume global flags up to the first word that is none; the reader of the operation takes the later ones.

    `strict` makes any other flag an error here, where no command has been named yet.
    """
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        flag, eq, value = words[at].partition("=")
        if flag not in GLOBALS and not strict:
            break
        if flag not in GLOBALS:
            raise Usage(f"unknown flag {flag!r} before a command", near=nearest(flag, list(GLOBALS)),
                        hint="labd --help")  # fmt: skip
        at = _global(words, at, flag, value if eq else None, found)
    return words[at:]


def _global(words: list[str], at: int, flag: str, attached: str | None, found: dict[str, Any]) -> int:
    """Record the global flag at `words[at]`; returns where reading goes on."""
    name, takes_value = GLOBALS[flag]
    if not takes_value:
        if attached is not None:
            raise Usage(f"{flag} takes no value")
        found[name] = True
        return at + 1
    if name in found:
        raise Usage(f"{flag} was given twice", hint=f"leave one out: {flag} {found[name]}")
    if attached is None:
        if at + 1 >= len(words):
            raise Usage(f"{flag} needs a value")
        attached, at = words[at + 1], at + 1
    if not attached:
        raise Usage(f"{flag} needs a value, not an empty one")
    found[name] = attached
    return at + 1


def _resolve(words: list[str], for_help: bool) -> tuple[Operation | None, tuple[str, ...], list[str]]:
    """The operation that the leading words name, its path, and the words behind them."""
    noun = words[0]
    operations = noun_operations(noun)
    by_path = {path: op for op in operations for path in (op.path, *op.aliases) if path[0] == noun}
    for size in (3, 2):
        wanted = tuple(words[:size])
        if len(wanted) == size and wanted in by_path:
            return by_path[wanted], by_path[wanted].path, words[size:]
    verbs = sorted({path[1] for path in by_path if len(path) > 1})
    if len(words) > 1 and words[1] in verbs and not for_help:
        _third(noun, words, sorted({path[2] for path in by_path if path[1:2] == (words[1],) and len(path) == 3}))
    if verbs and (for_help or any(word in ("-h", "--help") for word in words[1:3])):
        return None, (noun,), []
    bare = by_path.get((noun,))
    if bare is not None and (not verbs or _may_follow(bare, words[1:2])):
        return bare, bare.path, words[1:]
    if len(words) > 1 and words[1].startswith("-"):
        raise Usage(f"{words[1].partition('=')[0]} comes after the verb: labd {noun} VERB {words[1]}",
                    hint=f"labd {noun} --help")  # fmt: skip
    if len(words) > 1:
        raise Usage(f"labd {noun} has no verb {words[1]!r}", near=[f"{noun} {v}" for v in nearest(words[1], verbs)],
                    hint=f"labd {noun} --help")  # fmt: skip
    raise Usage(f"labd {noun} needs a verb: {', '.join(verbs)}", hint=f"labd {noun} --help")


def _third(noun: str, words: list[str], thirds: list[str]) -> None:
    """A verb of two words (`serial trigger add`) whose second one is missing or unknown. Raises Usage, unless help
    is asked for.
    """
    if words[2:3] in (["-h"], ["--help"]):
        return
    verb = f"labd {noun} {words[1]}"
    if len(words) == 2 or words[2].startswith("-"):
        raise Usage(f"{verb} needs a verb: {', '.join(thirds)}", hint=f"labd {noun} --help")
    near = [f"{noun} {words[1]} {third}" for third in nearest(words[2], thirds)]
    raise Usage(f"{verb} has no verb {words[2]!r}", near=near, hint=f"labd {noun} --help")


def _may_follow(bare: Operation, following: list[str]) -> bool:
    """Whether the word after a bare noun can be its first argument, rather than a verb that does not exist."""
    return not following or following[0].startswith("-") or any(p.positional for p in bare.params)


class _Reader:
    """Reads the words behind an operation's path into values."""

    def __init__(self, operation: Operation, found: dict[str, Any]) -> None:
        self.operation = operation
        self.found = found
        self.options = {flag: param for param in operation.params for flag in param.flags}
        self.places = [param for param in operation.params if param.positional]
        self.given: dict[str, Any] = {}
        self.words: list[str] = []

    def read(self, words: list[str]) -> None:
        """Sort `words` into options, global flags and positionals."""
        tail = next((place for place in self.places if place.kind == "rest"), None)
        before_tail = len(self.places) - 1
        at = 0
        while at < len(words):
            word = words[at]
            if tail is not None and len(self.words) == before_tail and not self._is_known_flag(word):
                self.given[tail.name] = words[at + 1 :] if word == "--" else words[at:]
                return
            if word == "--":
                self._data(words[at + 1 :], tail, before_tail)
                return
            if len(word) > 1 and word.startswith("-") and not _is_number(word):
                at = self._option(words, at)
            else:
                self.words.append(word)
                at += 1

    def _data(self, words: list[str], tail: Param | None, before_tail: int) -> None:
        """Words behind `--`: all of them are data."""
        need = before_tail - len(self.words) if tail is not None else len(words)
        self.words += words[:need]
        if tail is not None:
            self.given[tail.name] = words[need:]

    def _is_known_flag(self, word: str) -> bool:
        flag = word.partition("=")[0]
        return flag in self.options or flag in GLOBALS

    def _option(self, words: list[str], at: int) -> int:
        flag, eq, value = words[at].partition("=")
        attached: str | None = value if eq else None
        if flag not in self.options and flag not in GLOBALS and self._takes_value(flag[:2]) and flag[1] != "-":
            flag, attached = flag[:2], words[at][2:]
        if flag in self.options:
            return self._store(words, at, flag, attached)
        if flag in GLOBALS:
            return _global(words, at, flag, attached, self.found)
        known = [*self.options, *GLOBALS]
        raise Usage(f"labd {self.operation.name} has no flag {flag!r}", near=nearest(flag, known),
                    hint=self._dash_hint(words[at]))  # fmt: skip

    def _takes_value(self, flag: str) -> bool:
        return flag in self.options and self.options[flag].kind != "switch"

    def _dash_hint(self, word: str) -> str:
        takes_text = any(place.kind == "str" for place in self.places)
        described = f"labd {self.operation.name} --help"
        return f"{described}; if {word!r} is data, put -- before it" if takes_text else described

    def _store(self, words: list[str], at: int, flag: str, attached: str | None) -> int:
        param = self.options[flag]
        if param.name in self.given and not param.repeat:
            kept = "" if param.kind == "switch" else f" {self.given[param.name]}"
            raise Usage(f"{flag} was given twice; labd {self.operation.name} takes one",
                        hint=f"leave one out: {flag}{kept}")  # fmt: skip
        if param.kind == "switch":
            if attached is None and words[at + 1 : at + 2] in (["true"], ["false"]):
                attached, at = words[at + 1], at + 1
            value: Any = _switch(flag, attached)
        else:
            if attached is None:
                if at + 1 >= len(words) or (self._is_known_flag(words[at + 1]) or words[at + 1] == "--"):
                    raise Usage(f"{flag} needs a value ({param.metavar})",
                                hint=f"write {flag}=VALUE if the value starts with a dash")  # fmt: skip
                attached, at = words[at + 1], at + 1
            value = convert(param, attached, flag)
        if param.repeat:
            self.given.setdefault(param.name, []).append(value)
        else:
            self.given[param.name] = value
        return at + 1

    def values(self) -> dict[str, Any]:
        """All values by parameter name, defaults filled. Raises Usage when something is missing or too much."""
        if self.found.get("help"):
            return {}
        self._fill_places()
        missing = [p for p in self.operation.params if self._needed(p) and p.name not in self.given]
        if missing:
            names = " and ".join("/".join(p.flags) + f" {p.metavar}" if p.flags else p.metavar for p in missing)
            raise Usage(f"labd {self.operation.name} needs {names}", hint=f"labd {self.operation.name} --help")
        filled = {p.name: ([] if p.repeat or p.kind == "rest" else p.default) for p in self.operation.params}
        return filled | self.given

    def _needed(self, param: Param) -> bool:
        """Whether it must be given, as things stand."""
        return param.required and not any(other in self.given for other in param.unless)

    def _fill_places(self) -> None:
        places = [p for p in self.places if p.kind != "rest"]
        spare = len(self.words) - sum(self._needed(p) for p in places)
        words = iter(self.words)
        for param in places:
            if not self._needed(param):
                if spare <= 0:
                    continue
                spare -= 1
            word = next(words, None)
            if word is not None:
                self._place(param, word)
            if param.repeat and word is not None:
                more = [next(words) for _ in range(max(spare, 0))]
                self.given[param.name] = [convert(param, w, param.metavar) for w in (word, *more)]
                spare = 0
        extra = next(words, None)
        if extra is not None:
            raise Usage(f"labd {self.operation.name} has no place for {extra!r}", hint=self._extra_hint(extra))

    def _place(self, param: Param, word: str) -> None:
        if param.name in self.given:
            raise Usage(f"{param.name} was given twice: as a flag and as {word!r}",
                        hint=f"leave one out: {param.name} {self.given[param.name]}")  # fmt: skip
        self.given[param.name] = convert(param, word, param.metavar)

    def _extra_hint(self, word: str) -> str:
        if "-t" in self.options and "target" not in self.given:
            return f"name the target with -t {word}"
        if any(place.kind == "str" for place in self.places):
            return "quote words that belong together"
        return f"labd {self.operation.name} --help"


def convert(param: Param, text: str, spelled: str) -> Any:
    """`text` as the kind of value that `param` holds. Raises Usage that names the spelling, the value and the rule."""
    if param.kind in ("int", "float"):
        return _number(param, text, spelled)
    if param.kind == "choice" and text not in param.choices:
        raise Usage(f"{spelled} is one of {', '.join(param.choices)}, not {text!r}",
                    near=nearest(text, list(param.choices)))  # fmt: skip
    if param.kind == "switch":
        return _switch(spelled, text)
    return text


def _number(param: Param, text: str, spelled: str) -> float:
    whole = param.kind == "int"
    unit = f" {param.unit}" if param.unit else ""
    try:
        if not text.isascii() or "_" in text or text != text.strip():  # which Python's own readers would let pass
            raise ValueError
        value = int(text) if whole else float(text)
    except ValueError:
        raise Usage(f"{spelled} is a {'whole ' if whole else ''}number{unit and ' of' + unit}, not {text!r}",
                    hint=_number_hint(param, text, spelled)) from None  # fmt: skip
    if value != value or value in (float("inf"), float("-inf")):
        raise Usage(f"{spelled} is a number{unit and ' of' + unit}, not {text!r}",
                    hint=_number_hint(param, text, spelled))  # fmt: skip
    if param.minimum is not None and value < param.minimum:
        raise Usage(f"{spelled} is at least {_plain(param.minimum)}{unit}, not {text}")
    if param.maximum is not None and value > param.maximum:
        raise Usage(f"{spelled} is at most {_plain(param.maximum)}{unit}, not {text}")
    return value


#: Units of time that people write behind a number, in seconds.
_SECONDS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def _number_hint(param: Param, text: str, spelled: str) -> str:
    """How the number is written: the one that was meant where its unit tells that, else the default or another."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text[len(digits) :].strip()
    try:
        meant = float(digits)
        if unit != param.unit:
            meant *= _SECONDS[unit] / _SECONDS[param.unit]
    except (ValueError, KeyError):
        meant = param.default if isinstance(param.default, int | float) and param.default else 10
        meant = min(max(meant, param.minimum or 0), param.maximum or meant)
    shown = _plain(round(meant, 6)) if param.kind != "int" else str(round(meant))
    return f"write {spelled} {shown}" if param.flags else f"write {shown}"


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def _switch(flag: str, attached: str | None) -> bool:
    if attached in (None, "true", "yes", "on"):
        return True
    if attached in ("false", "no", "off"):
        return False
    raise Usage(f"{flag} is a switch: true or false, not {attached!r}")


def _is_number(word: str) -> bool:
    return word[1:].replace(".", "", 1).isdigit()


def operation_named(method: str) -> Operation:
    """The operation with the dotted name `method` (`serial.send`). Raises Usage with near matches."""
    path = tuple(method.split("."))
    operations = noun_operations(path[0])
    for op in operations:
        if op.path == path:
            return op
    names = [".".join(op.path) for op in operations]
    raise Usage(f"no method {method!r}", near=nearest(method, names), hint="labd commands --json")


def words_of(op: Operation, params: dict[str, Any]) -> list[str]:
    """The words that ask for `op` with these parameter values.

    RPC calls become words, so that they are checked and recorded like every other call. Raises Usage for an unknown
    parameter or a value that words can't hold.
    """
    by_name = {param.name: param for param in op.params}  # of one that can be given either way, the flag is taken
    unknown = [name for name in params if name not in by_name]
    if unknown:
        raise Usage(f"{op.name} has no parameter {unknown[0]!r}", near=nearest(unknown[0], list(by_name)))
    flags = [word for name, value in params.items() for word in _flag_words(by_name[name], value)]
    places: list[str] = []
    for name, param in by_name.items():
        if param.positional and params.get(name) is not None:
            places += _texts(param, params[name])
    return [*op.path, *flags, "--", *places] if places else [*op.path, *flags]


def _flag_words(param: Param, value: Any) -> list[str]:
    if param.positional or value is None:
        return []
    if param.kind == "switch":
        return [f"{param.flags[-1]}={'true' if value else 'false'}"]
    return [f"{param.flags[-1]}={text}" for text in _texts(param, value)]


def _texts(param: Param, value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for item in value for text in _texts(param, item)]
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise Usage(f"{param.name} can't be {type(value).__name__}")
    return [str(value)]
