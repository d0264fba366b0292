"""What a person or a program reads: help pages, errors, JSON. Made from the table and from values alone; no I/O."""

from __future__ import annotations

from labd import __version__
from labd.jsonlight import dumps
from labd.operations import NOUNS, noun_operations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from labd.errors import LabdError
    from labd.operations.model import Operation, Param

GLOBAL_HELP = (
    ("--lab PATH", "the lab file (else $LABD_LAB, else lab.toml in ~/.config/labd)"),
    ("--json", "answer in JSON: one object, or one a line for a stream"),
    ("-q, --quiet", "no notes or progress on stderr, but for why an answer is empty"),
    ("-h, --help", "this help"),
)
EXIT_CODES = (
    "0 done · 1 failed · 2 bad usage · 3 refused by policy · 4 no such thing · 5 timed out · 6 busy · "
    "7 device or host unreachable · 8 the target died"
)

FIRST_STEPS = (
    ("labd target add pico", "name a board"),
    ("labd serial add console -t pico --device loopback:uboot", "give it a console (here a simulated board's)"),
    ("labd serial watch pico", "start capturing; the daemon starts by itself"),
    ("labd serial log pico --tail 20", "read back what it said"),
)


def error_text(error: LabdError) -> str:
    """One line for a person: what was wrong, the near matches, the command that helps."""
    text = f"labd: {one_line(error.message)}"
    if error.near:
        text += "; did you mean " + " or ".join(repr(name) for name in error.near) + "?"
    if error.hint:
        text += (" try: " if error.near else "; try: ") + one_line(error.hint)
    return text


def error_json(error: LabdError) -> str:
    """The error as one JSON object on one line (design section 6)."""
    fields = {"code": error.name, "exit": error.exit_code, "message": error.message, "hint": error.hint,
              "near": error.near}  # fmt: skip
    return dumps({"error": fields})


def one_line(text: str) -> str:
    """`text` with line ends and control characters made visible, so that no value can forge a second line."""
    return "".join(c if c.isprintable() or "\ud800" <= c <= "\udfff" else repr(c)[1:-1] for c in text)


def columns(rows: Sequence[tuple[str, ...]], width: int = 80, indent: str = "  ") -> str:
    """Rows as aligned columns; the last column wraps at `width` characters."""
    if not rows:
        return ""
    sizes = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    lines = []
    for row in rows:
        head = indent + "".join(cell.ljust(size + 2) for cell, size in zip(row[:-1], sizes, strict=True))
        lines += _wrap(head, row[-1], width)
    return "\n".join(lines)


def example_lines(examples: Sequence[tuple[str, str]], width: int) -> str:
    """Command lines with what they do behind them, or below where the line would not fit."""
    longest = max(len(command) for command, _ in examples)
    if all(longest + len(what) + 6 <= width for _, what in examples):
        return "\n".join(f"  {command.ljust(longest)}  # {what}" for command, what in examples)
    return "\n".join(line for command, what in examples for line in (f"  {command}", *_wrap("      # ", what, width)))


def _exit_codes(width: int) -> str:
    return "\n".join(_wrap("exit codes: ", EXIT_CODES, width))


def _wrap(head: str, text: str, width: int) -> list[str]:
    room = max(24, width - len(head))
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > room:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    lines.append(line)
    return [(head if n == 0 else " " * len(head)) + part for n, part in enumerate(lines)]


def top_help(width: int) -> str:
    """`labd --help`."""
    nouns = [(noun, summary + _absent(noun)) for noun, (_, summary) in NOUNS.items()]
    return "\n".join(
        [
            f"labd {__version__}: one door to a hardware lab bench",
            "",
            "usage: labd COMMAND [VERB] [TARGET] [OPTIONS]",
            "",
            columns(nouns, width),
            "",
            "everywhere:",
            columns([*GLOBAL_HELP, ("-V, --version", "the version")], width),
            "",
            "examples:",
            example_lines(FIRST_STEPS, width),
            "",
            _exit_codes(width),
            "more: labd COMMAND --help · labd commands --search WORDS · labd skill labd (a guide for agents)",
        ]
    )


def _absent(noun: str) -> str:
    return " (not in this version)" if all(op.missing for op in noun_operations(noun)) else ""


def noun_help(noun: str, width: int) -> str:
    """`labd serial --help`."""
    operations = noun_operations(noun)
    rows = [(" ".join(("labd", *op.path)), op.summary + (" (not in this version)" if op.missing else ""))
            for op in operations]  # fmt: skip
    example = next((op.examples[0] for op in operations if op.examples), None)
    lines = [f"labd {noun}: {NOUNS[noun][1]}", "", columns(rows, width)]
    if example:
        lines += ["", "example:", example_lines([example], width)]
    return "\n".join([*lines, "", f"more: labd {noun} VERB --help"])


def operation_help(op: Operation, width: int) -> str:
    """`labd serial send --help`."""
    lines = [f"labd {op.name}: {op.summary}", "", "usage: " + usage_line(op)]
    if op.missing:
        lines += ["", *_wrap("", f"Not in this version: {op.missing}", width)]
    if op.doc:
        for paragraph in op.doc.strip().split("\n\n"):
            lines += ["", *_wrap("", paragraph, width)]
    places = [(p.metavar, param_text(p)) for p in op.params if p.positional]
    options = [(", ".join(p.flags) + value_word(p), param_text(p)) for p in op.params if not p.positional]
    lines += ["", columns([*places, *options, *GLOBAL_HELP], width)]
    tail = next((p for p in op.params if p.kind == "rest"), None)
    if tail is not None:
        lines += ["", f"All flags stand before {tail.metavar}: what follows is taken as it is."]
    if op.examples:
        lines += ["", "examples:", example_lines(op.examples, width)]
    if op.aliases:
        lines += ["", "also: " + ", ".join("labd " + " ".join(path) for path in op.aliases)]
    return "\n".join([*lines, "", f"effect: {effect_text(op)} (see [policy] in the lab file)", _exit_codes(width)])


def effect_text(op: Operation) -> str:
    """What an operation does to the world, and with which flags it does something else."""
    for effect, names in (("actuate", op.acting), ("observe", op.looking)):
        flags = [param.flags[-1] for param in op.params if param.name in names and param.flags]
        if flags:
            return f"{op.effect}, but {effect} with {' or '.join(flags)}"
    return op.effect


def usage_line(op: Operation) -> str:
    """`labd serial send [TARGET] TEXT [-i INTERFACE] …`; a `...` marks words that belong to another program."""
    words = ["labd", *op.path]
    for param in op.params:
        if param.kind == "rest":
            words.append(f"{param.metavar}..." if param.required else f"[{param.metavar}...]")
        elif param.positional:
            words.append(param.metavar if param.required and not param.unless else f"[{param.metavar}]")
        else:
            text = param.flags[0] + value_word(param) + ("..." if param.repeat else "")
            words.append(text if param.required else f"[{text}]")
    return " ".join(words)


def value_word(param: Param) -> str:
    """What stands behind a flag on a usage line, with its space: ` MS`, ` on|off`; empty for a switch."""
    if param.kind == "switch":
        return ""
    if param.kind == "choice":
        return " " + "|".join(param.choices)
    return f" {param.metavar}"


def param_text(param: Param) -> str:
    """The help of one parameter with its unit, bounds and default."""
    facts = []
    if param.unit:
        facts.append(param.unit)
    if param.default is not None and param.default is not False:
        facts.append(f"default {param.default!r}" if isinstance(param.default, str) else f"default {param.default:g}")
    if param.repeat:
        facts.append("may be given again")
    return param.help + (f" ({', '.join(facts)})" if facts else "")


def value_text(data: Any, indent: str = "") -> str:
    """Plain data as lines for a person, for operations that have no text of their own."""
    if isinstance(data, dict):
        return "\n".join(
            f"{indent}{key}:\n{value_text(value, indent + '  ')}"
            if isinstance(value, (dict, list)) and value
            else f"{indent}{key}: {_leaf(value)}"
            for key, value in data.items()
        )
    if isinstance(data, list):
        return "\n".join(value_text(item, indent) for item in data)
    return indent + _leaf(data)


def _leaf(value: Any) -> str:
    if value is None or value == [] or value == {}:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return one_line(str(value))
