"""The tools that `labd mcp` offers, made from the table of operations. Pure: knows no SDK, no daemon, starts nothing.

A tool is what a client's user permits or denies, so there is one an effect: who lets a model read need not let it act.
Each takes a command line, as guides and hints print it, so that nothing about a verb is said in two ways.
"""

from __future__ import annotations

import shlex
from typing import Any

from labd.argv import parse
from labd.errors import LabdError, Usage
from labd.operations import NOUNS, all_operations
from labd.operations.model import Operation

#: Tool → (effects that it may have, what it is for, whether it can destroy). What only looks may go through each.
BY_EFFECT = {
    "labd_read": (("help", "observe"), "Look, change nothing: the lab, consoles' logs, states, guides", False),
    "labd_config": (("config",), "Edit the lab file, claim a board", True),
    "labd_act": (
        ("actuate",),
        "Act on boards: capture and type into consoles, power, screens, keys, network boot",
        True,
    ),
    "labd_admin": (("admin",), "The daemon itself, and installing what it needs", True),
}

#: Effects that only look.
LOOKING = ("help", "observe")

#: Why a verb that keeps its caller's terminal is not for a tool, where no person sits at that.
_UNFIT = {
    "mcp": "is the server that you are talking to, and a tool can't start another",
    "daemon": "runs until it is ended, as a service; labd daemons start makes sure that it runs",
}

#: What a shell would do something with, and we don't.
SHELL = frozenset(("|", "||", "&&", ";", ">", ">>", "<", "2>&1", "2>/dev/null", "&"))

#: Bytes of a command line: splitting takes the square of a word's length, and all of the session's calls wait.
LINE_BYTES = 64 << 10

#: Seconds that a call may take, unless it says otherwise; and at most.
LIMIT_S, MOST_S = 600, 86_400

INSTRUCTIONS = """A lab bench: boards with serial consoles, power, screens, keyboards, network boot.
Start with labd_read "target list"; then labd_read "skill labd", the whole guide. labd_help finds and explains commands.
An error ends with "exit N" and says how to go on; `labd …` in a hint is a command for the tool of its effect.
Exit 3 is the operator's policy, and nothing ran: tell your user what was refused and what would permit it, and look \
for no way around.
"""


class Tool:
    """One tool: its name, what it says of itself, the JSON schema of its arguments, and what may run through it."""

    def __init__(self, name: str, title: str, description: str, properties: dict[str, Any], required: tuple[str, ...],
                 effects: tuple[str, ...], destroys: bool = False) -> None:  # fmt: skip
        self.name = name
        self.title = title
        self.description = description
        self.schema: dict[str, Any] = {"type": "object", "properties": properties, "required": list(required),
                       "additionalProperties": False}  # fmt: skip
        self.effects = effects
        self.read_only = set(effects) <= set(LOOKING)
        self.destroys = destroys


def tools() -> list[Tool]:
    """All tools, in the order in which they are listed."""
    return [_help(), *(_runs(name) for name in BY_EFFECT), _more()]


def _help() -> Tool:
    about = {"type": "string", "description": 'A command ("serial send"), a group ("serial"), or what you want to do, '
             'in words ("wait for the login prompt"); empty: all groups'}  # fmt: skip
    what = f"The help of a command or group, or the commands that fit your words. Groups: {', '.join(NOUNS)}."
    return Tool("labd_help", "Find and explain commands", what, {"about": about}, (), ("help",))


def _runs(name: str) -> Tool:
    effects, what, destroys = BY_EFFECT[name]
    found = [op for op in all_operations() if _may(op) & set(effects) and not op.terminal]
    example = next(line for op in found for line, _ in op.examples)
    properties = {
        "command": {"type": "string", "description": f"As typed behind a prompt, like: {example}. Quote words as in a "
                    "shell; there are no pipes and no variables. --json for data"},
        "stdin": {"type": "string", "description": "What a command reads that takes - for its input"},
        "limit_s": {"type": "number", "description": f"Seconds after which it is ended and what came is answered "
                    f"(default {LIMIT_S})"},
    }  # fmt: skip
    described = f"{what}. Commands: {_grouped(found)}."
    return Tool(name, what.partition(":")[0], described, properties, ("command",), effects, destroys)


def _more() -> Tool:
    properties = {
        "answer": {"type": "integer", "description": "The answer's number"},
        "from": {"type": "integer", "minimum": 0, "description": "The character to go on at"},
    }
    what = "The rest of an answer that was cut; runs nothing again. The cut answer says both numbers."
    return Tool("labd_more", "Read on in a long answer", what, properties, ("answer", "from"), ("help",))


def _may(op: Operation) -> set[str]:
    """The effects that a verb can have, by its parameters."""
    return {op.effect} | ({"actuate"} if op.acting and op.effect != "admin" else set())


def _grouped(found: list[Operation]) -> str:
    """The verbs with each group named once: `serial log|show, timeline`."""
    groups: dict[str, list[str]] = {}
    for op in found:
        groups.setdefault(op.path[0], []).append(" ".join(op.path[1:]))
    return ", ".join(f"{noun} {'|'.join(filter(None, verbs))}".strip() for noun, verbs in groups.items())


def words_of_line(line: str) -> list[str]:
    """A command line's words, without the program's name. Raises Usage for an open quote, and above LINE_BYTES."""
    size = len(line.encode("utf-8", "surrogatepass"))
    if size > LINE_BYTES:
        raise Usage(f"a command is at most {LINE_BYTES} bytes, not {size}; nothing ran",
                    hint="the tool's stdin, with a command that reads it: serial send pico -")  # fmt: skip
    try:
        words = shlex.split(line)
    except ValueError:
        raise Usage(
            "a quote in this command is never closed", hint='quote as a shell does: serial run pico "it\'s"'
        ) from None
    if "\0" in line:
        raise Usage("a command can't hold a zero byte; bytes are sent with: labd serial send pico --hex 00")
    return words[1:] if words[:1] == ["labd"] else words


def check(tool: Tool, words: list[str]) -> None:
    """Raises Usage, naming the right tool, for a verb that another tool runs, and for one that needs a terminal.

    What is wrong with the words themselves, the bench will say.
    """
    try:
        parsed = parse(words)
    except LabdError:
        return
    op, args = parsed.operation, parsed.args
    if op is None or args is None:
        return
    effect = op.effect_of(args)
    if op.terminal:
        raise Usage(f"labd {op.name} {_UNFIT.get(op.name, 'is for a person at a terminal')}; nothing ran",
                    hint=f"labd {op.path[0]} --help")  # fmt: skip
    if effect not in LOOKING and effect not in tool.effects:
        right = tool_for(words)
        takes = "only looks" if tool.read_only else f"is for other commands ({', '.join(tool.effects)})"
        raise Usage(f"labd {op.name} ({effect}) is not for {tool.name}, which {takes}; nothing ran",
                    hint=f"call the tool {right} with the same command")  # fmt: skip


def tool_for(words: list[str]) -> str:
    """The tool that a command belongs to; words that are none belong to the one that looks."""
    try:
        parsed = parse(words)
    except LabdError:
        return "labd_read"
    effect = parsed.operation.effect_of(parsed.args) if parsed.operation and parsed.args else "help"
    return next(name for name, (effects, *_) in BY_EFFECT.items() if effect in effects)


def shell_words(words: list[str]) -> str | None:
    """A hint for words that only a shell would understand; None where there are none."""
    found = [word for word in words if word in SHELL]
    return (
        f"no shell reads this, so {found[0]!r} was taken as a word: ask for less instead (--tail, --grep, --json)"
        if found
        else None
    )


def help_words(about: str) -> list[str]:
    """What `labd_help` runs: the help of what is named, else a search. Raises Usage for quotes that don't match."""
    words = words_of_line(about)
    if not words:
        return ["--help"]
    try:
        if parse([*words, "--help"]).wants_help and words[0] in NOUNS:
            return [*words, "--help"]
    except LabdError:
        pass
    return ["commands", "--search", *words]
