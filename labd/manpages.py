"""The manual pages of labd, made from the table of operations: labd(1), and one for each noun, as labd-serial(1).

Pure: the same table and date give the same bytes. `labd man` prints and installs them.
"""

from __future__ import annotations

from labd import __version__, render, roff
from labd.operations import NOUNS, noun_operations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from labd.operations.model import Operation

#: The date on the pages where $SOURCE_DATE_EPOCH gives none: of this version, never of the day they were made.
DATE = "2026-11-30"

MANUAL = "labd manual"

ENVIRONMENT = (
    ("LABD_LAB", "the lab file, where --lab does not name one"),
    ("LABD_POLICY", "the most that may be done: help, observe, config, simulated or bench; the strictest wins of all"),
    ("LABD_ARGV_LOG", "a file to which every call is recorded exactly; what can't be recorded does not run"),
    ("LABD_AS", "who claims a board, where several share an account"),
    ("LABD_DEBUG", "with 1, errors that are defects show where they are"),
    ("XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_RUNTIME_DIR", "where the files below are, by the XDG rules"),
    ("NO_COLOR, CLICOLOR_FORCE", "no colours, or colours also where there is no terminal"),
)  # fmt: skip

FILES = (
    ("~/.config/labd/lab.toml", "the lab file: which hardware is wired to what"),
    ("~/.local/state/labd/", "journals of what targets said, records of calls, what was learned"),
    ("$XDG_RUNTIME_DIR/labd/, or /tmp/labd-UID/", "the daemon's socket, lock and log"),
)


def names() -> dict[str, str]:
    """Every page by name, with what it is about."""
    return {"labd": "one door to a hardware lab bench", **{f"labd-{noun}": what for noun, (_, what) in NOUNS.items()}}


def date_of(env: Mapping[str, str]) -> str:
    """The date that pages get: of $SOURCE_DATE_EPOCH, where that is a time, so that builds can be reproduced."""
    import time

    text = env.get("SOURCE_DATE_EPOCH", "")
    if text.isascii() and text.isdigit() and len(text) < 12:
        return time.strftime("%Y-%m-%d", time.gmtime(int(text)))
    return DATE


def source(name: str, date: str) -> str:
    """The page of that name (one of `names`) as man(7) source."""
    return _whole(date) if name == "labd" else _noun(name.removeprefix("labd-"), date)


def _top(name: str, what: str, date: str) -> list[str]:
    return [roff.head(name, date, f"labd {__version__}", MANUAL), roff.section("NAME"),
            f"{roff.text(name)} \\- {roff.text(what)}"]  # fmt: skip


def exit_status() -> list[str]:
    """The section on exit codes."""
    pairs = (part.split(" ", 1) for part in render.EXIT_CODES.split(" · "))
    return [roff.section("EXIT STATUS"), *roff.listed((code, meaning) for code, meaning in pairs)]


def _whole(date: str) -> str:
    lines = [*_top("labd", names()["labd"], date), roff.section("SYNOPSIS"),
             f"{roff.bold('labd')} [GLOBAL OPTIONS] COMMAND [VERB] [TARGET] [OPTIONS]",
             roff.section("DESCRIPTION")]  # fmt: skip
    lines += roff.paragraphs(
        "labd drives the boards of a lab: serial consoles, power, screens, keyboards, network boot, Android. A lab "
        "file says what is wired to what. What a board prints is captured by a daemon that starts by itself, and read "
        "back with or without it. Every call is checked against the policy and recorded before it runs.\n\n"
        "Each command has a page of its own, as labd-serial(1). Global flags stand anywhere before --; nothing is "
        "abbreviated, and behind -- everything is data."
    )
    lines += [roff.section("COMMANDS"), *roff.listed((f"labd {noun}", f"{what}. See labd-{noun}(1).")
                                                     for noun, (_, what) in NOUNS.items())]  # fmt: skip
    lines += [roff.section("GLOBAL OPTIONS"), *roff.listed([*render.GLOBAL_HELP, ("-V, --version", "the version")])]
    lines += [*exit_status(), roff.section("ENVIRONMENT"), *roff.listed(ENVIRONMENT)]
    lines += [roff.section("FILES"), *roff.listed(FILES)]
    lines += [roff.section("EXAMPLES"), *roff.examples(render.FIRST_STEPS)]
    others = [name for name in (*names(), "labd-eval") if name != "labd"]
    lines += [roff.section("SEE ALSO"), ",\n".join(f"{roff.bold(name)}(1)" for name in others)]
    return roff.page(lines)


def _noun(noun: str, date: str) -> str:
    operations = [op for op in noun_operations(noun) if op.path[0] == noun]
    lines = [*_top(f"labd-{noun}", NOUNS[noun][1], date), roff.section("SYNOPSIS")]
    for number, op in enumerate(operations):
        lines += [*([".br"] if number else []), *roff.flowing(render.usage_line(op))]
    lines += [roff.section("DESCRIPTION")]
    for op in operations:
        lines += _operation(op)
    lines += [roff.section("GLOBAL OPTIONS"), *roff.listed(render.GLOBAL_HELP), *exit_status()]
    lines += [roff.section("SEE ALSO"), f"{roff.bold('labd')}(1)"]
    return roff.page(lines)


def _operation(op: Operation) -> list[str]:
    """One verb: what it is, what it takes, examples."""
    lines = [roff.subsection(f"labd {op.name}"), *roff.paragraphs(f"{op.summary[:1].upper()}{op.summary[1:]}.")]
    if op.missing:
        lines += roff.paragraphs(f"Not in this version: {op.missing}")
    lines += roff.paragraphs(op.doc) if op.doc else []
    lines += roff.listed((", ".join(param.flags) + render.value_word(param) if param.flags else param.metavar,
                          render.param_text(param)) for param in op.params)  # fmt: skip
    facts = [f"Effect: {render.effect_text(op)}."]
    if op.aliases:
        facts.append(f"Also: {', '.join('labd ' + ' '.join(path) for path in op.aliases)}.")
    if any(param.kind == "rest" for param in op.params):
        facts.append("All flags stand before the trailing words, which are taken as they are.")
    return [*lines, *roff.paragraphs(" ".join(facts)), *roff.examples(op.examples)]
