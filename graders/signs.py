"""How a subject's answers look: scenarios/NAME/signs.toml, text in, checked data out. Pure.

The classes of graders/taxonomy.py are the same for every program; what an empty answer, a hint, a failure of the
network look like is each program's own, and is said here as data, never guessed from prose:

    [[empty]]                  # the first entry that fits a call decides; without one: stdout is blank
    command = "count"          # the command path, or several; "" or left out: any command
    having = ["--quiet"]       # only with one of these flags
    lacking = ["--grep"]       # … and with none of these
    rest = true                # only with words behind `--` (false: only without)
    exit = [1]                 # exit codes, besides 0, that are an answer and no refusal; or "any"
    refused = '^fatal: '       # … unless stderr has this: then it is a refusal, whatever the code
    json = "places"            # where the answer stands if it is JSON ("": all of it): [], {}, 0, null are empty
    number = '^(\\d+)$'        # if it is text: a count, which is empty at 0
    rows = "csv"               # … or rows (csv, table, lines) behind `header` lines, of which there is none;
    head = '^name '            #   … or behind the first line that has this: without it, it is no answer
    pattern = '^\\s*\\S+:'      #   rows that don't have it don't count
    stdout = "blank"           # … or nothing at all
    never = true               # … or its silence is its answer: a verb that writes

    [hint]                     # where guidance stands: in the program's own error channel, never in what it prints
    stderr = ['did you mean "(?P<word>[^"]+)"', '; try: (?P<command>[^;]+)']
    stdout = ['^Automatic merge failed; ']   # for a program that explains its refusals there; only behind an exit code
    json = ["error.hint", "error.near"]      # paths into a JSON object on stderr, or into the answer itself; the other
                               #   texts of such an object on stderr are read as its lines are
    text = ['^(?P<command>atlas .+)$']       # what such a text is besides: there it says nothing but the hint
    retry = [5, 6]             # exit codes of refusals that time mends: the same words again are no mistake

    [[environment]]            # that it is nobody's fault here: a refusal with one of these codes (none: with any)
    exit = [7]                 #   and, if there are patterns, one of them on stderr, in the program's own form: what
    stderr = ['^atlas: cannot reach ']       # it quotes, and words that it was given, are taken out before ("…")
    json = ["error.message"]   # … or at these paths of a JSON object on stderr, where the message stands

    [degenerate]
    silent_s = 60              # seconds without one byte of output, from which nobody can use an answer any more
    waste = 10                 # an answer this many times as large as its limit flag asked for ([[probe]] limit_raise)

[[probe]] and [words] are those of graders/probe_signs.py. A hint's named groups `word` and `command` are what it
suggests; of a hint at a JSON path, what the patterns find in it, or else itself if it is one word or one of a list. An
empty answer that says what was looked through and what is there guides, too: it has no words to suggest.

An answer in which none of what its entry declares can be read (no count, no such table, no JSON where the call asked
for it by a flag of `json` in [words]) is no answer: it is taken for an empty one.
"""

import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from graders import parsed, probe_signs
from graders.probe_signs import ProbeSign, WordSigns
from graders.reading import ROWS, Read
from graders.shape import (
    Key,
    Report,
    Shape,
    each,
    is_a,
    one_of,
    pattern,
    table,
    text_or,
    whole_within,
    within,
)

FILE = "signs.toml"

#: Seconds of silence, unless the subject says otherwise: longer than anybody waits without a sign of life.
SILENT_S = 60.0
WASTE = 10.0
#: `exit = "any"`: every code is an answer.
ANY = "any"


class SignsError(ValueError):
    """A file of signs is wrong. `problems` has one line a mistake, each naming file and key."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class EmptySign:
    """One [[empty]]: which calls it is about, which exit codes are answers, and where an answer stands.

    `commands` empty: any. `json`: where it stands if it is JSON, None: that is not looked at. `text`: how it is counted
    if it is not, None: it is empty where stdout is blank. `never`: it may be silent.
    """

    commands: tuple[str, ...] = ()
    having: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    rest: bool | None = None
    exit: tuple[int, ...] | None = ()  # None: any
    refused: str = ""
    json: str | None = None
    text: Read | None = None
    never: bool = False


@dataclass(frozen=True)
class HintSigns:
    """[hint]: patterns and paths that find guidance, and the exit codes of refusals that time mends."""

    stderr: tuple[str, ...] = ()
    stdout: tuple[str, ...] = ()
    json: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    retry: tuple[int, ...] = ()


@dataclass(frozen=True)
class EnvironmentSign:
    """One [[environment]]: the exit codes (empty: any) and the patterns (empty: none is needed) of refusals that are
    nobody's fault here."""

    stderr: tuple[str, ...] = ()
    json: tuple[str, ...] = ()
    exit: tuple[int, ...] = ()


@dataclass(frozen=True)
class DegenerateSigns:
    """[degenerate]: seconds of silence, and times of what was asked for, from which an answer is of no use."""

    silent_s: float = SILENT_S
    waste: float = WASTE


@dataclass(frozen=True)
class Signs:
    """All that is known of a subject's answers. `Signs()` is a program of which nothing is known."""

    empty: tuple[EmptySign, ...] = ()
    hint: HintSigns = field(default_factory=HintSigns)
    environment: tuple[EnvironmentSign, ...] = ()
    degenerate: DegenerateSigns = field(default_factory=DegenerateSigns)
    probes: tuple[ProbeSign, ...] = ()
    words: WordSigns = field(default_factory=WordSigns)

    @cached_property
    def messages(self) -> tuple[str, ...]:
        """The paths at which the message of a refusal in JSON stands."""
        return tuple(dict.fromkeys(path for one in self.environment for path in one.json))

    @cached_property
    def valued(self) -> frozenset[str]:
        """The flags that take a value, as far as it tells."""
        return frozenset({*self.words.valued, *(flag for sign in self.probes for flag in sign.flags)})


_text, _flag = is_a(str, what="a text"), is_a(bool, what="true or false")
_texts, _patterns, _codes = each(_text), each(pattern), each(whole_within(0, 255))


def _codes_or_any(value: Any, key: str, report: Report) -> None:
    if value != ANY:
        _codes(value, key, report)


def _counted_once(entry: dict[str, Any], key: str, report: Report) -> None:
    ways = [name for name in ("number", "rows", "stdout", "never") if name in entry]
    if len(ways) > 1 or (not ways and "json" not in entry):
        told = ", ".join(ways) or "none"
        report(key, f"expected one of number, rows, stdout, never (or json alone), found {told}", [])
    for name in ("header", "head", "pattern"):
        if name in entry and "rows" not in entry:
            report(f"{key}.{name}", "without rows", [])
    if "refused" in entry and "exit" not in entry:
        report(f"{key}.refused", "without exit: every code but 0 is a refusal already", [])


def _number(value: Any, key: str, report: Report) -> None:
    pattern(value, key, report)
    if isinstance(value, str) and "(" not in value:
        report(key, "has no group that finds the number", [])


def _recognizable(entry: dict[str, Any], key: str, report: Report) -> None:
    if not {"stderr", "exit"} & set(entry):
        report(key, "expected stderr or exit, found neither: every refusal would be nobody's fault", [])


_EMPTY: Shape = {
    "command": Key(text_or(_texts)),
    "having": Key(_texts),
    "lacking": Key(_texts),
    "rest": Key(_flag),
    "exit": Key(_codes_or_any),
    "refused": Key(pattern),
    "json": Key(_text),
    "number": Key(_number),
    "rows": Key(one_of(*ROWS)),
    "header": Key(whole_within(0, 100)),
    "head": Key(pattern),
    "pattern": Key(pattern),
    "stdout": Key(one_of("blank")),
    "never": Key(_flag),
}
SHAPE: Shape = {
    "empty": Key(each(table(_EMPTY, _counted_once))),
    "hint": Key(
        table(
            {
                "stderr": Key(_patterns),
                "stdout": Key(_patterns),
                "json": Key(_texts),
                "text": Key(_patterns),
                "retry": Key(_codes),
            }
        )
    ),
    "environment": Key(
        each(table({"stderr": Key(_patterns), "json": Key(_texts), "exit": Key(_codes)}, _recognizable))
    ),
    "degenerate": Key(table({"silent_s": Key(within(0.05, 86_400, "seconds")), "waste": Key(within(2, 1e6, "times"))})),
    "probe": Key(each(probe_signs.PROBE)),
    "words": Key(probe_signs.WORDS),
}


def load(text: str, file: str = FILE) -> Signs:
    """The signs in a file's text. Raises SignsError, naming `file` and each key that is wrong."""
    try:
        told = parsed.from_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise SignsError([f"{file}: {error}"]) from error
    problems: list[str] = []

    def report(key: str, message: str, near: list[str]) -> None:
        meant = f"; did you mean {', '.join(near)}?" if near else ""
        problems.append(f"{file}: {key or 'the file'}: {message}{meant}")

    table(SHAPE)(told, "", report)
    if problems:
        raise SignsError(problems)
    return Signs(
        tuple(map(_empty, told.get("empty", ()))),
        HintSigns(**_tuples(told.get("hint", {}))),
        tuple(EnvironmentSign(**_tuples(one)) for one in told.get("environment", ())),
        DegenerateSigns(**told.get("degenerate", {})),
        tuple(map(probe_signs.probe, told.get("probe", ()))),
        probe_signs.words(told.get("words", {})),
    )


def _tuples(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) for name, value in entry.items()}


def _empty(entry: dict[str, Any]) -> EmptySign:
    command, code = entry.get("command", ""), entry.get("exit", ())
    commands = tuple(command) if isinstance(command, list) else (command,) * bool(command)
    text = None
    if "number" in entry:
        text = Read(number=entry["number"])
    elif "rows" in entry:
        text = Read(**{name: entry[name] for name in ("rows", "header", "head", "pattern") if name in entry})
    return EmptySign(
        commands,
        tuple(entry.get("having", ())),
        tuple(entry.get("lacking", ())),
        entry.get("rest"),
        None if code == ANY else tuple(code),
        entry.get("refused", ""),
        entry.get("json"),
        text,
        entry.get("never", False),
    )
