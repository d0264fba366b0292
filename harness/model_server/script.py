"""What a scripted model plays: threads of turns, each with text, tool calls, or a fault. Reads it from TOML.

```toml
summary = "looks, sets, answers"

[[turn]]                                   # the main thread; {nonce}, {lab}, {home} and saved names are filled in
text = "I look first."
shell = "labd target list"                 # one call of the product's own shell tool
save = { seq = 'line (\\d+)' }             # from the call's output; later turns may say {seq}
until = "ready"                            # the same turn again until the output matches (at most `tries` times)

[[turn]]
calls = [                                  # several at once
  { shell = "sleep 5", background = true },
  { agent = "SUBTASK: count the boards" },
  { tool = "flash_board", input = { board = "pico" } },
]

[[turn]]
error = 529                                # so the first `times` answers, then the rest of the turn (0: always)
times = 2
retry_after = 1
text = "Done: {output}"                    # {output}: what the last call printed

[[turn]]                                   # a turn for one case, skipped in others
when = "did you mean"                      # the last output matches; `unless`: it doesn't; `told`: the prompt does
text = "It meant something else."

[[thread]]                                 # a subagent's: chosen when `match` is in its first user text
match = "SUBTASK"
[[thread.turn]]
text = "three"
```

Other keys of a turn: `delay_s` (before the answer); in the first `times` answers `slow_s` (between the parts of a
stream), `stall_s` (in its middle) and `cut` (the connection breaks there); `repeat` (the thread stays at this
turn), `message` (of an error), `usage` (`input`, `output`, `cache_read`, `cache_write`, `reasoning`).
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from graders import parsed
from labd.errors import LabdError


class ScriptError(LabdError):
    """The script can't be played; says where and why."""


@dataclass(frozen=True)
class Call:
    """One tool call in a product-neutral form: exactly one of `shell` (a command line), `agent` (a subagent's prompt)
    and `tool` (a tool by its own name, with `input`: how a tool is invented).

    `by`: the tool of the subject's MCP server that takes the shell's line as its command, where one is offered."""

    shell: str = ""
    by: str = ""
    agent: str = ""
    tool: str = ""
    input: Mapping[str, Any] = field(default_factory=dict)
    background: bool = False


@dataclass(frozen=True)
class Usage:
    """The tokens that an answer says it took. `input` is without what came from the cache or went into it."""

    input: int = 100
    output: int = 20
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Turn:
    """One answer of the model; the module's text says what each field does."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    error: int = 0
    times: int = 0
    retry_after: float | None = None
    message: str = ""
    delay_s: float = 0.0
    slow_s: float = 0.0
    stall_s: float = 0.0
    cut: bool = False
    repeat: bool = False
    until: str = ""
    when: str = ""
    unless: str = ""
    told: str = ""
    tries: int = 40
    save: Mapping[str, str] = field(default_factory=dict)
    usage: Usage = Usage()


@dataclass(frozen=True)
class Thread:
    """One conversation. An empty `match` is the main one."""

    match: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True)
class Script:
    """All of it. `threads` has the main thread last, so that the first that fits is the right one."""

    threads: tuple[Thread, ...]
    summary: str = ""
    values: Mapping[str, str] = field(default_factory=dict)

    def thread(self, first: str) -> Thread:
        """The thread whose first user text this is."""
        return next(thread for thread in self.threads if thread.match in first)


def load(path: Path, values: Mapping[str, str] | None = None) -> Script:
    """The script in a file. Raises ScriptError."""
    try:
        return parse(parsed.from_toml(path.read_text("utf-8")), values or {})
    except OSError as error:
        raise ScriptError(f"{path}: {error.strerror}", hint="labd-eval model --help") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScriptError(f"{path}: {error}", hint="labd-eval model --help") from error
    except ScriptError as error:
        raise ScriptError(f"{path}: {error.message}", hint="labd-eval model --help") from error


def parse(raw: Mapping[str, Any], values: Mapping[str, str]) -> Script:
    """The script in parsed TOML. Raises ScriptError."""
    _known(raw, {"summary", "turn", "thread"}, "script")
    threads = []
    for number, given in enumerate(_list(raw, "thread", "script"), 1):
        where = f"thread {number}"
        _known(given, {"match", "turn"}, where)
        if not isinstance(given.get("match"), str) or not given["match"]:
            raise ScriptError(f"{where}: needs `match`, the text that its first prompt holds")
        threads.append(Thread(given["match"], _turns(given, where)))
    return Script((*threads, Thread("", _turns(raw, "script"))), str(raw.get("summary", "")), dict(values))


def _turns(raw: Mapping[str, Any], where: str) -> tuple[Turn, ...]:
    found = tuple(_turn(given, f"{where}, turn {number}") for number, given in enumerate(_list(raw, "turn", where), 1))
    if not found:
        raise ScriptError(f"{where}: has no turn")
    return found


_PLAIN: dict[str, tuple[type, ...]] = {
    "text": (str,), "error": (int,), "times": (int,), "retry_after": (int, float), "message": (str,),
    "delay_s": (int, float), "slow_s": (int, float), "stall_s": (int, float), "cut": (bool,), "repeat": (bool,),
    "until": (str,), "when": (str,), "unless": (str,), "told": (str,), "tries": (int,), "save": (dict,),
    "usage": (dict,),
}  # fmt: skip


def _turn(raw: Mapping[str, Any], where: str) -> Turn:
    _known(raw, {*_PLAIN, "shell", "calls"}, where)
    given: dict[str, Any] = {}
    for name, value in raw.items():
        if name not in _PLAIN:
            continue
        if not isinstance(value, _PLAIN[name]) or (isinstance(value, bool) and bool not in _PLAIN[name]):
            raise ScriptError(f"{where}: {name} is of the wrong type: {value!r}")
        given[name] = value
    if given.get("error") and not 400 <= given["error"] <= 599:
        raise ScriptError(f"{where}: error is an HTTP status from 400 to 599, found {given['error']}")
    if "usage" in given:
        _known(given["usage"], {one.name for one in fields(Usage)}, f"{where}, usage")
        given["usage"] = Usage(**given["usage"])
    patterns = [(name, given.get(name, "")) for name in ("until", "when", "unless", "told")]
    for name, pattern in [*patterns, *given.get("save", {}).items()]:
        try:
            re.compile(pattern, re.MULTILINE)
        except (re.error, TypeError) as error:
            raise ScriptError(f"{where}: {name}: {error}") from error
    calls = [{"shell": raw["shell"]}] if "shell" in raw else []
    calls += _list(raw, "calls", where)
    return Turn(**given, calls=tuple(_call(call, where) for call in calls))


def _call(raw: Mapping[str, Any], where: str) -> Call:
    _known(raw, {one.name for one in fields(Call)}, f"{where}, call")
    kinds = [name for name in ("shell", "agent", "tool") if raw.get(name)]
    if len(kinds) != 1 or not isinstance(raw[kinds[0]], str):
        raise ScriptError(f"{where}: a call has one of shell, agent and tool, a text")
    return Call(**raw)


def _list(raw: Mapping[str, Any], name: str, where: str) -> list[Mapping[str, Any]]:
    found = raw.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ScriptError(f"{where}: {name} has to be a list of tables")
    return found


def _known(raw: Mapping[str, Any], names: set[str], where: str) -> None:
    strange = sorted(set(raw) - names)
    if strange:
        raise ScriptError(f"{where}: unknown key {strange[0]!r}; there are {', '.join(sorted(names))}")
