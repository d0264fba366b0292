"""Reads the tables of a DUT file into the model, key by key. Used by `loopback.dutfile`, which documents them."""

from __future__ import annotations

import re
from collections.abc import Collection

from .dutmodel import (
    Act,
    After,
    Countdown,
    DamageSpec,
    FloodSpec,
    KernelSpec,
    ProgramSpec,
    Respond,
    State,
    Step,
    Wires,
    XmodemSpec,
)
from .include import Trusted
from .memory import TRANSFER
from .strict import Table, near
from .template import EMPTY, Template, TemplateError, compile_template

BUILTINS = frozenset(
    ["line", "word", "env", "text", "boots", "uptime", "kernel_time", "status", "sent", "rate_now", *TRANSFER],
)
_FORMAT = re.compile(r"0?\d*d?")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILE = re.compile(r"[A-Za-z0-9._-]+")


class Reader:
    """Turns tables into the model; knows which names a field may have."""

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
        act = Act(
            goto=self.goto(table, "goto"),
            reboot=table.flag("reboot", False),
            wander_ms=self.number(table, "wander_ms", 0),
            stall_ms=self.number(table, "stall_ms", 0),
        )
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
            steps=self.steps(table, "steps", groups),
            later=self._followup(table, groups) + self.steps(table, "later", groups),
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

    def _followup(self, table: Table, groups: Collection[str]) -> tuple[Step, ...]:
        """Texts that come later by themselves, each `followup_ms` after the one before."""
        wait_ms = self.number(table, "followup_ms", 500)
        texts = table.strings("followup")
        return tuple(Step(wait_ms, self.template(table, "followup", text, groups), b"", 1, 0) for text in texts)

    def steps(self, table: Table, key: str, groups: Collection[str] = ()) -> tuple[Step, ...]:
        return tuple(self._step(item, groups) for item in table.tables(key))

    def _step(self, table: Table, groups: Collection[str]) -> Step:
        given = [key for key in ("text", "bytes", "hex") if key in table.data]
        if len(given) > 1 or not (given or "wait_ms" in table.data):
            raise table.fail(given[-1] if given else "text", "a step has one of text, bytes, hex, or only wait_ms")
        step = Step(
            wait_ms=self.number(table, "wait_ms", 0),
            text=self.text(table, "text", [*groups, "n"]),
            data=_latin1(table, "bytes") or _hex(table, "hex"),
            count=self.number(table, "count", 1),
            every_ms=self.number(table, "every_ms", 0),
        )
        table.done()
        return step

    def wires(self, table: Table | None) -> Wires:
        if table is None:
            return Wires()
        dtr = table.choice("dtr", "reset", ["reset", "rise", "power-button", "none"])
        wires = Wires(dtr, self.number(table, "hold_ms", 4000))
        table.done()
        return wires

    def damage(self, table: Table) -> DamageSpec:
        kind = table.choice("kind", "drop", ["drop", "flip"])
        spec = DamageSpec(
            bit=self.number(table, "bit", 0) % 8 if kind == "flip" else None,
            every=self.number(table, "every", 0),
            count=self.number(table, "count", 0),
            direction=table.choice("direction", "to_host", ["to_host", "to_dut", "both"]),
            above=self.number(table, "above", 0),
        )
        if spec.every and spec.count:
            raise table.fail("count", "is the next so many bytes, every is each n-th: take one of the two away")
        table.done()
        return spec

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

    def xmodem(self, table: Table | None) -> XmodemSpec | None:
        if table is None:
            return None
        for key in ("role", "goto", "failed"):
            if key not in table.data:
                raise table.fail(key, "is required")
        bad = self.number(table, "bad", 0)
        spec = XmodemSpec(
            role=table.choice("role", "receive", ["receive", "send"]),
            crc=table.flag("crc", True),
            size=self.number(table, "size", 128),
            wait_ms=max(1, self.number(table, "wait_ms", 3000)),
            bad=(bad,) if bad else (),
            content=self.steps(table, "content"),
            goto=self.goto(table, "goto") or "",
            failed=self.goto(table, "failed") or "",
        )
        if spec.size not in (128, 1024):
            raise table.fail("size", f"{spec.size} is not one of 128, 1024")
        if (spec.role == "send") != bool(spec.content):
            raise table.fail("content", "is what is sent: required to send, and only then")
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
            steps=self.steps(table, "steps"),
            then=self.goto(table, "then"),
            mode=table.choice("mode", "line", ["line", "key", "mute", "loop"]),
            echo=table.flag("echo", True),
            prompt=self.text(table, "prompt"),
            unknown=self.text(table, "unknown", ["0"]),
            shell=table.flag("shell", False),
            line_ms=line_ms,
            poll_ms=self.number(table, "poll_ms", self.poll_ms),
            countdown=self.countdown(table.table("countdown")),
            xmodem=self.xmodem(table.table("xmodem")),
            flood=self.flood(table.table("flood")),
            after=tuple(self.after(item) for item in table.tables("after")),
            respond=tuple(self.respond(item, line_ms) for item in table.tables("respond")),
        )

    # -- parts of the board -------------------------------------------------------------------------------------

    def kernel(self, table: Table | None) -> KernelSpec | None:
        if table is None:
            return None
        spec = KernelSpec(
            lines=tuple(self.template(table, "lines", text) for text in table.strings("lines")),
            prompt=self.text(table, "prompt"),
            mid_line=self.number(table, "mid_line", 0),
            between=self.number(table, "between", 0),
            before_prompt=self.number(table, "before_prompt", 0),
            after_prompt=self.number(table, "after_prompt", 0),
            in_echo=self.number(table, "in_echo", 0),
            every_ms=self.number(table, "every_ms", 0),
        )
        if not spec.lines:
            raise table.fail("lines", "is required: what the kernel says, one line or an array of them")
        if not spec.prompt and (spec.before_prompt or spec.after_prompt or spec.in_echo):
            raise table.fail("prompt", "is required where lines come before or after it, or in the echo behind it")
        table.done()
        return spec

    def program(self, table: Table | None) -> ProgramSpec | None:
        if table is None:
            return None
        files = table.mapping("files")
        for name in files:
            if not _FILE.fullmatch(name) or name.strip(".") == "":
                raise table.fail(f"files.{name}", "a file's name is letters, digits, dots, - and _, no path")
        spec = ProgramSpec(
            argv=tuple(self.template(table, "argv", text) for text in table.strings("argv")),
            argv_or=tuple(self.template(table, "argv_or", text) for text in table.strings("argv_or")),
            env=self._texts(table, "env", table.mapping("env")),
            files=self._texts(table, "files", files),
            copies=tuple(table.strings("copies")),
            columns=self.number(table, "columns", 80),
            rows=self.number(table, "rows", 24),
            restart_ms=self.number(table, "restart_ms", 500),
            prompt=self.text(table, "prompt"),
            ask_position=table.flag("ask_position", False),
            built_in=isinstance(table.data, Trusted),
        )
        if spec.copies and not spec.built_in:
            raise table.fail("copies", "are files of the package; your own board has files")
        if not spec.argv:
            raise table.fail("argv", "is required: the program and its arguments")
        if spec.ask_position and not spec.prompt:
            raise table.fail("prompt", "is required with ask_position, which asks after each prompt")
        table.done()
        return spec

    def _texts(self, table: Table, key: str, texts: dict[str, str]) -> tuple[tuple[str, Template], ...]:
        return tuple((name, self.template(table, f"{key}.{name}", text)) for name, text in texts.items())


def _latin1(table: Table, key: str) -> bytes:
    text = table.text(key, "") or ""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as error:
        raise table.fail(key, f"{text[error.start]!r} is no byte: write U+0000 to U+00FF") from None


def _hex(table: Table, key: str) -> bytes:
    try:
        return bytes.fromhex(table.text(key, "") or "")
    except ValueError:
        raise table.fail(key, "expected two hexadecimal digits a byte") from None
