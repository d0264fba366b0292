"""The DUT file: what a simulated board says, in TOML. This page is the format's reference.

A file is checked whole before anything runs (`python -m loopback --check FILE`): unknown keys are refused with the
nearest known one, regular expressions and fields in texts are compiled, state names are resolved, and each error
names the file and the full key (`board.toml: states.shell.respond[2].relpy: unknown key; did you mean reply?`).

The smallest board has one state and needs no name for it:

    title = "Says hello"
    banner = "hello, board\\n"          # printed when it boots
    prompt = "# "
    [[respond]]
    match = "ping (\\\\d+)"              # Python regex; the whole line must match; the first that matches wins
    reply = "pong {1}\\n"

Top level
    include      another board, by name or by a path from this file: what is not given here is as it is there;
                 [variables], [texts] and [states] are joined by name
    title, description   text; title is required
    start        the first state (default: the first one in the file)
    boot         when power is applied: "first-open" (default: when somebody first opens the near end, so that the
                 banner is not lost), "each-open" (opening resets the board, as DTR does), "at-start"
    settle_ms    how long after that opening the first byte comes (default 150: the opener sets its modes first)
    banner       printed at every boot, before the first state
    eol          what a "\\n" in texts becomes (default "\\r\\n")
    encoding     "utf-8" (default) or "latin-1"
    [line]       baud (default 115200; 0 = as fast as the reader takes it), bytesize, parity ("none", "even",
                 "odd"), stopbits, flow ("none", "rtscts"), fifo (default 4096: bytes that the receiver still holds
                 once its kernel buffer is full; what comes then is lost unless flow is "rtscts" or baud is 0)
    [input]      how the board reads: poll_ms (0 = interrupts; else it takes one byte each so many ms) from a
                 FIFO of fifo bytes (default 16); bytes that come while it is full are lost. A state may have a
                 poll_ms of its own
    [variables]  name = "value": used as {name}; `--set name=value` overrides; `set` changes them at run time
    [env]        name = "value": the board's environment (U-Boot's, a shell's), {env:name}; may hold {variables}
    [texts]      name = "…": long texts used as {text:name}; may hold fields, and earlier texts
    and, for a board of one state, everything that a state has.

A state: [states.NAME]
    enter        printed on entry; `line_ms` waits so long after each of its lines
    then         the next state, at once after `enter`
    mode         "line" (default): a tty's line editing: CR and LF both end a line, so CR LF ends two, as on a real
                 tty; backspace, ^U, ^C, ^D work; input is echoed unless echo = false. "key": each character is one
                 event for `respond`, nothing is echoed. "mute": input is ignored. "loop": every byte comes back.
    echo         default true; false for passwords
    prompt       printed on entry and after each answer
    unknown      the answer to a line that nothing matches (default: none); {line}, {word}
    poll_ms      instead of [input]'s, in this state
    shell        true: a line is split at ; && ||, quotes are removed, $? and $NAME are replaced (from [env]),
                 and each command is matched alone
    line_ms      default for this state's replies
    [states.NAME.countdown]  seconds (number or text, such as "{env:bootdelay}"), text (printed each second with
                 {left}), tick_ms (default 1000), goto (when it reaches 0), interrupt (the state after any key)
    [states.NAME.flood]      line (with {n}, the number, {n:08d} zero-padded, and {t}, seconds since boot), rate
                 (lines a second; 0 = as fast as the line takes), start (default true), first (default 1)
    [[states.NAME.after]]    spontaneous output: ms without input, print, goto, reboot, repeat (default false),
                 since ("input", default, or "enter": keys do not put it off); {n} counts its firings
    [[states.NAME.respond]]  match, reply, delay_ms (before the reply), line_ms, goto, reboot, prompt (default true;
                 not after goto or reboot), followup (a text or an array; each is printed followup_ms later, default
                 500, whatever happens meanwhile), status (of the command, for {status}; default 0),
                 set.NAME = "…", setenv.NAME = "…" (NAME and value may hold fields), unsetenv = "…", saveenv = true,
                 when_env = "…" (matches only if the environment has that name), flood ("start", "stop"),
                 flood_rate = "…"

Everything in milliseconds, bytes or counts takes a number, or a text of variables: poll_ms = "{rx_poll_ms}".

Fields: {0}, {1}… and named groups of `match`; {line}, {word} (its first word); {name} of [variables]; {nonce}, which
needs `--set nonce=…` unless it is in [variables]; {text:NAME}; {env:NAME}, {env:1} (the name is group 1), {env} (all,
one NAME=value a line); {boots} (counts from 1), {uptime} (seconds since boot, two decimals), {kernel_time} (the same
as in a kernel's log), {status}, {sent} (lines of the flood), {rate_now} (its rate). {{ and }} are braces.
A reboot counts `boots` up, forgets `set` and unsaved `setenv`, and starts over with the banner.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from . import include
from .dutmodel import Act, After, Countdown, Dut, FloodSpec, Followup, Line, Respond, State
from .strict import DutFileError, Table, near
from .template import EMPTY, Template, TemplateError, compile_template

BUILTINS = frozenset(
    ["line", "word", "env", "text", "boots", "uptime", "kernel_time", "status", "sent", "rate_now"],
)
MAIN = "main"
_FORMAT = re.compile(r"0?\d*d?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _Reader:
    """Turns tables into the dataclasses above; knows which names a field may have."""

    def __init__(self, file: str, variables: dict[str, str], texts: Collection[str]) -> None:
        self.file = file
        self.variables = variables
        self.texts = texts
        self.used: set[str] = set()
        self.needs: set[str] = set()
        self.gotos: list[tuple[Table, str, str]] = []
        self.poll_ms = 0
        self.input_fifo = 16

    def read_input(self, table: Table | None) -> None:
        if table is not None:
            self.poll_ms = self.number(table, "poll_ms", 0)
            self.input_fifo = max(1, self.number(table, "fifo", 16))
            table.done()

    def template(self, table: Table, key: str, text: str | None, extra: Collection[str] = ()) -> Template:
        if not text:
            return EMPTY
        try:
            compiled = compile_template(text)
        except TemplateError as error:
            raise table.fail(key, str(error)) from None
        for item in compiled.fields:
            self._check_field(table, key, item.name, item.arg, extra)
        return compiled

    def _check_field(self, table: Table, key: str, name: str, arg: str, extra: Collection[str]) -> None:
        if name in extra:
            if arg and not _FORMAT.fullmatch(arg):
                raise table.fail(key, f"{{{name}:{arg}}}: after the colon comes a width, such as 08d")
            return
        if name in self.variables:
            self.used.add(name)
        elif name == "nonce":
            self.used.add(name)
            self.needs.add(name)
        elif name not in BUILTINS:
            known = [*self.variables, *BUILTINS, "nonce", *extra]
            raise table.fail(key, f"unknown variable {{{name}}}", near(name, known))
        if name == "text" and arg not in self.texts:
            raise table.fail(key, f"no text named {arg!r} in [texts]", near(arg, self.texts))
        if name == "env" and arg.isdigit() and arg not in extra:
            raise table.fail(key, f"{{env:{arg}}}: the match has no group {arg}")

    def text(self, table: Table, key: str, extra: Collection[str] = (), default: str = "") -> Template:
        return self.template(table, key, table.text(key, default), extra)

    def number(self, table: Table, key: str, default: int) -> int:
        """A count that isn't negative, or a text of variables that makes one."""
        value = table.get(key, (int, str), "a number, or a text of variables that makes one")
        if isinstance(value, str):
            rendered = self.template(table, key, value).render(lambda name, arg: self.variables.get(name, "?"))
            if not rendered.strip().isdigit():
                raise table.fail(key, f"{value!r} gives {rendered!r}, which is not a whole number")
            value = int(rendered)
        if value is not None and value < 0:
            raise table.fail(key, f"{value} is negative")
        return default if value is None else int(value)

    def goto(self, table: Table, key: str) -> str | None:
        value = table.text(key)
        if value is not None:
            self.gotos.append((table, key, value))
        return value

    def act(self, table: Table) -> Act:
        act = Act(self.goto(table, "goto"), table.flag("reboot", False))
        if act.goto and act.reboot:
            raise table.fail("goto", "a reboot goes to the first state; take one of the two away")
        return act

    # -- parts of a state ---------------------------------------------------------------------------------------

    def respond(self, table: Table, line_ms: int) -> Respond:
        source = table.text("match")
        if source is None:
            raise table.fail("match", "is required")
        try:
            match = re.compile(source)
        except re.error as error:
            raise table.fail("match", f"is no regular expression: {error}") from None
        groups = {str(number) for number in range(match.groups + 1)} | set(match.groupindex)
        act = self.act(table)
        spec = Respond(
            match=match,
            reply=self.text(table, "reply", groups),
            act=act,
            delay_ms=self.number(table, "delay_ms", 0),
            line_ms=self.number(table, "line_ms", line_ms),
            prompt=table.flag("prompt", True) and not act.goto and not act.reboot,
            followup=self.followup(table, groups),
            status=self.number(table, "status", 0),
            set=self._assignments(table, groups),
            setenv=tuple(
                (self.template(table, "setenv", name, groups), self.template(table, "setenv", value, groups))
                for name, value in table.mapping("setenv").items()
            ),
            unsetenv=self.text(table, "unsetenv", groups),
            saveenv=table.flag("saveenv", False),
            when_env=self.text(table, "when_env", groups),
            flood=table.choice("flood", "", ["", "start", "stop"]),
            flood_rate=self.text(table, "flood_rate", groups),
        )
        table.done()
        return spec

    def followup(self, table: Table, groups: Collection[str]) -> Followup:
        texts = tuple(self.template(table, "followup", text, groups) for text in table.strings("followup"))
        return Followup(texts, self.number(table, "followup_ms", 500))

    def _assignments(self, table: Table, groups: Collection[str]) -> tuple[tuple[str, Template], ...]:
        pairs = table.mapping("set")
        for name in pairs:
            if name not in self.variables:
                raise table.fail(f"set.{name}", "no such variable in [variables]", near(name, self.variables))
            self.used.add(name)
        return tuple((name, self.template(table, f"set.{name}", value, groups)) for name, value in pairs.items())

    def after(self, table: Table) -> After:
        if "ms" not in table.data:
            raise table.fail("ms", "is required")
        spec = After(
            ms=self.number(table, "ms", 0),
            print=self.text(table, "print", ["n"]),
            act=self.act(table),
            since=table.choice("since", "input", ["input", "enter"]),
            repeat=table.flag("repeat", False),
        )
        if spec.repeat and not spec.ms:
            raise table.fail("ms", "0 with repeat would never pause")
        table.done()
        return spec

    def countdown(self, table: Table | None) -> Countdown | None:
        if table is None:
            return None
        for key in ("goto", "interrupt"):
            if key not in table.data:
                raise table.fail(key, "is required")
        value = table.get("seconds", (int, str), "a number or a text")
        spec = Countdown(
            seconds=self.template(table, "seconds", str(3 if value is None else value)),
            text=self.text(table, "text", ["left"]),
            tick_ms=max(1, self.number(table, "tick_ms", 1000)),
            goto=self.goto(table, "goto") or "",
            interrupt=self.goto(table, "interrupt") or "",
        )
        table.done()
        return spec

    def flood(self, table: Table | None) -> FloodSpec | None:
        if table is None:
            return None
        if "line" not in table.data:
            raise table.fail("line", "is required")
        spec = FloodSpec(
            line=self.text(table, "line", ["n", "t"]),
            rate=self.number(table, "rate", 0),
            start=table.flag("start", True),
            first=self.number(table, "first", 1),
        )
        table.done()
        return spec

    def state(self, name: str, table: Table) -> State:
        """Reads a state's keys; the caller says `done()`, since a board of one state has more of them."""
        line_ms = self.number(table, "line_ms", 0)
        return State(
            name=name,
            enter=self.text(table, "enter"),
            then=self.goto(table, "then"),
            mode=table.choice("mode", "line", ["line", "key", "mute", "loop"]),
            echo=table.flag("echo", True),
            prompt=self.text(table, "prompt"),
            unknown=self.text(table, "unknown", ["0"]),
            shell=table.flag("shell", False),
            line_ms=line_ms,
            poll_ms=self.number(table, "poll_ms", self.poll_ms),
            countdown=self.countdown(table.table("countdown")),
            flood=self.flood(table.table("flood")),
            after=tuple(self.after(item) for item in table.tables("after")),
            respond=tuple(self.respond(item, line_ms) for item in table.tables("respond")),
        )


def load(path: str | Path, settings: Mapping[str, str] | None = None, *, name: str | None = None) -> Dut:
    """Read and check the DUT file at `path` with `settings` (of `--set`) over its variables.

    Raises DutFileError for anything that is wrong with it, OSError if it can't be read. A `{nonce}` without a value
    is no error here: `Dut.needs` lists it.
    """
    path = Path(path)

    def check(data: dict[str, Any], included: Path) -> None:
        parse(data, str(included), included.stem, {})

    return parse(include.read(path, check), str(path), name or path.stem, settings or {})


def parse(data: dict[str, Any], file: str, name: str, settings: Mapping[str, str]) -> Dut:
    """The checked board that `data` describes; `file` is named in errors."""
    top = Table(data, file)
    declared = top.mapping("variables")
    for key in [*declared, *settings]:
        if not _NAME.fullmatch(key):
            raise top.fail(f"variables.{key}", "a name is letters, digits and _, and starts with no digit")
        if key in BUILTINS:
            raise top.fail(f"variables.{key}", "is a name that the player gives a value itself")
    texts = top.mapping("texts")
    reader = _Reader(file, {**declared, **settings}, texts)
    if not top.text("title"):
        raise top.fail("title", "is required")
    reader.read_input(top.table("input"))
    states = _states(reader, top)
    start = top.text("start", next(iter(states)))
    reader.gotos.append((top, "start", str(start)))
    line = _line(reader, top.table("line"))
    dut = Dut(
        name=name,
        file=file,
        title=str(top.text("title")),
        description=str(top.text("description", "")),
        start=str(start),
        boot=top.choice("boot", "first-open", ["first-open", "each-open", "at-start"]),
        settle_ms=reader.number(top, "settle_ms", 150),
        banner=reader.text(top, "banner"),
        eol=str(top.text("eol", "\r\n")),
        encoding=top.choice("encoding", "utf-8", ["utf-8", "latin-1"]),
        line=line,
        input_fifo=reader.input_fifo,
        variables=reader.variables,
        env=_env(reader, top),
        texts=_texts(reader, top, texts),
        states=states,
        needs=tuple(sorted(reader.needs)),
    )
    top.done()
    _check_names(reader, states, declared, settings)
    return dut


def _states(reader: _Reader, top: Table) -> dict[str, State]:
    named = top.table("states")
    if named is None:
        return {MAIN: reader.state(MAIN, top)}
    if not named.data:
        raise top.fail("states", "holds no state")
    states = {}
    for key in named.data:
        table = named.table(key)
        assert table is not None
        states[key] = reader.state(key, table)
        table.done()
    return states


def _texts(reader: _Reader, top: Table, texts: Mapping[str, str]) -> dict[str, Template]:
    done: dict[str, Template] = {}
    for key, text in texts.items():
        reader.texts = list(done)  # a text may use those before it, so none can hold itself
        done[key] = reader.template(top, f"texts.{key}", text)
    return done


def _env(reader: _Reader, top: Table) -> dict[str, str]:
    def look(name: str, arg: str) -> str:
        return reader.variables.get(name, "")

    return {key: reader.template(top, f"env.{key}", value).render(look) for key, value in top.mapping("env").items()}


def _check_names(
    reader: _Reader, states: Mapping[str, State], declared: Collection[str], settings: Collection[str]
) -> None:
    for table, key, goto in reader.gotos:
        if goto not in states:
            raise table.fail(key, f"no state is named {goto!r}", near(goto, states))
    for name in states:
        passed: list[str] = []
        while (follower := states[name].then) is not None:
            if name in passed:
                raise DutFileError(reader.file, f"states.{name}.then", "goes round in a circle that nothing leaves")
            passed.append(name)
            name = follower
    for key in settings:
        if key not in declared and key not in reader.used and key != "nonce":
            known = [*declared, *reader.used, "nonce"]
            raise DutFileError(reader.file, "", f"has no variable {key!r} to set", near(key, known))


def _line(reader: _Reader, table: Table | None) -> Line:
    if table is None:
        return Line()
    line = Line(
        baud=reader.number(table, "baud", 115200),
        bytesize=reader.number(table, "bytesize", 8),
        parity=table.choice("parity", "none", ["none", "even", "odd"]),
        stopbits=reader.number(table, "stopbits", 1),
        flow=table.choice("flow", "none", ["none", "rtscts"]),
        fifo=reader.number(table, "fifo", 4096),
    )
    if line.bytesize not in (5, 6, 7, 8):
        raise table.fail("bytesize", f"{line.bytesize} is not one of 5, 6, 7, 8")
    if line.stopbits not in (1, 2):
        raise table.fail("stopbits", f"{line.stopbits} is not one of 1, 2")
    table.done()
    return line
