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
    settle_ms    how long after that opening, and after what an RFC 2217 client sets, the first byte comes (default 150)
    banner       printed at every boot, before the first state
    eol          what a "\\n" in texts becomes (default "\\r\\n")
    encoding     "utf-8" (default) or "latin-1"
    [line]       baud (default 115200; 0 = as fast as the reader takes it), bytesize, parity ("none", "even",
                 "odd"), stopbits, flow ("none", "rtscts"), fifo (default 4096: bytes that the receiver still holds
                 once its kernel buffer is full; what comes then is lost unless flow is "rtscts" or baud is 0)
    [input]      how the board reads: poll_ms (0 = interrupts; else it takes one byte each so many ms) from a
                 FIFO of fifo bytes (default 16); bytes that come while it is full are lost. A state may have a
                 poll_ms of its own. A polling board looks only while it waits for input: while it prints (as long
                 as the line takes for that) or answers, the FIFO fills up, and in a delay_ms all but ^C is thrown
                 away, as a boot loader does. So lines need a pause between them, and bytes one of poll_ms
    [variables]  name = "value": used as {name}; `--set name=value` overrides; `set` changes them at run time
    [env]        name = "value": the board's environment (U-Boot's, a shell's), {env:name}; may hold {variables}
    [texts]      name = "…": long texts used as {text:name}; may hold fields, and earlier texts
    [wires]      with --rfc2217: dtr = "reset" (default: the board is held in reset while DTR is turned over from where
                 it rests), "rise" (DTR going up resets it, also at opening), "power-button" (a press switches it
                 on; one of hold_ms, default 4000, off) or "none". CTS is always its supply. See `loopback.modem`
    [[damage]]   what the cable does to bytes from the beginning: kind ("drop", default, or "flip", with bit 0 to 7),
                 every (each n-th; 0 = none) or count (the first n), direction ("to_host", default, "to_dut",
                 "both"), above (only bytes that come faster than so many a second, beyond a burst of 8; default 0)
    [kernel]     lines that a kernel writes on the same console whatever else is being printed: see below
    [program]    the board is a real program under a PTY instead of states: see below
    and, for a board of one state, everything that a state has.

A state: [states.NAME]
    enter        printed on entry; `line_ms` waits so long after each of its lines
    steps        an array of steps (below), played after `enter`
    then         the next state, at once after `enter` and `steps`
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
    [states.NAME.xmodem]     instead of answers, a file by X-modem: role ("receive", "send"), goto (the state after it),
                 failed (after a failure), wait_ms (for the other side; default 3000), bad (the number of a block that
                 fails once); to receive: crc (default true; false asks for checksums at once), to send: size (128,
                 default, or 1024) and content (steps). It is in the record, kind "transfer"
    [states.NAME.flood]      line (with {n}, the number, {n:08d} zero-padded, and {t}, seconds since boot), rate
                 (lines a second; 0 = as fast as the line takes), start (default true), first (default 1)
    [[states.NAME.after]]    spontaneous output: ms without input, print, goto, reboot, wander_ms, stall_ms, repeat
                 (default false), since ("input", default, or "enter": keys do not put it off); {n} counts its firings
    [[states.NAME.respond]]  match, reply, delay_ms (before the reply), line_ms, goto, reboot, prompt (default true;
                 not after goto or reboot), followup (a text or an array; each is printed followup_ms later, default
                 500, whatever happens meanwhile), steps (after the reply), later (steps, meanwhile), wander_ms (the
                 adapter leaves the bench after the answer, and is back under another node so much later), stall_ms
                 (after the answer the board takes no bytes for so long), status (of the command; default 0),
                 set.NAME = "…", setenv.NAME = "…" (NAME and value may hold fields), unsetenv = "…", saveenv = true,
                 when_env = "…" (matches only if the environment has that name), flood ("start", "stop"),
                 flood_rate = "…"

A step, in TOML a table such as {wait_ms = 50, hex = "AC 0A"}: it waits (wait_ms), then sends one of text (with fields),
bytes (a string of U+0000 to U+00FF, each that byte exactly) or hex, count times (default 1; {n} counts), every_ms
apart. ^C ends the steps.

The kernel's lines: [kernel]
    lines        a text or an array, used in turn; each is printed as "[   12.345678] TEXT" and the eol
    mid_line     3 = in the middle of every 3rd line of output (0, as everywhere here, is never)
    between      between lines: before every n-th
    before_prompt   between the output and every n-th prompt
    after_prompt    50 ms after every n-th prompt, which is not printed again
    in_echo      in the middle of the echo of what is typed, at every n-th prompt
    every_ms     by the clock, wherever the output is just then
    prompt       the text by which the prompt is known at the beginning of a line; only in_echo cuts such a line

A real program: [program] (a shell, so that a bench meets the real thing; `loopback.program` runs it and says what it
can reach, which is little). Only the package's own files may have one, others need `--allow-programs`; a file that
includes such a board may change its [variables].
    argv         the program and its arguments; argv_or: instead, where argv's program is not installed
    env, files   tables: its whole environment besides HOME, PATH and TERM=vt100, and files in its HOME
    copies       files of this package that are put in its HOME; a program called "python" is the player's own Python
    columns, rows   of its terminal, 80 by 24
    restart_ms   it is started again so long after it has ended (default 500), as getty does; 0 = only by power
    ask_position    true: ESC[6n follows each `prompt`, unless the program asks itself, as busybox does, and the answer
                 is kept from it
A key goes to its terminal as it comes; `banner` is printed before it starts; states, respond and so on are refused.

Everything in milliseconds, bytes or counts takes a number, or a text of variables: poll_ms = "{rx_poll_ms}".

Fields: {0}, {1}… and named groups of `match`; {line}, {word} (its first word); {name} of [variables]; {nonce}, which
needs `--set nonce=…` unless it is in [variables]; {text:NAME}; {env:NAME}, {env:1} (the name is group 1), {env} (all,
one NAME=value a line); {boots} (counts from 1), {uptime} (seconds since boot, two decimals), {kernel_time} (the same
as in a kernel's log), {status}, {sent} (lines of the flood), {rate_now} (its rate); of the last transfer
{file_bytes}, {file_sha256} (both without padding at the end), {retries}, {result}. {{ and }} are braces.
A reboot counts `boots` up, forgets `set` and unsaved `setenv`, and starts over with the banner.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from . import include
from .dutmodel import Dut, Line, State
from .dutread import BUILTINS, NAME, Reader
from .strict import DutFileError, Table, near
from .template import Template

MAIN = "main"


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
        if not NAME.fullmatch(key):
            raise top.fail(f"variables.{key}", "a name is letters, digits and _, and starts with no digit")
        if key in BUILTINS:
            raise top.fail(f"variables.{key}", "is a name that the player gives a value itself")
    texts = top.mapping("texts")
    reader = Reader(file, {**declared, **settings}, texts)
    if not top.text("title"):
        raise top.fail("title", "is required")
    reader.read_input(top.table("input"))
    program = reader.program(top.table("program"))
    states = _states(reader, top) if program is None else {MAIN: _stateless(reader)}
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
        wires=reader.wires(top.table("wires")),
        damage=tuple(reader.damage(item) for item in top.tables("damage")),
        kernel=reader.kernel(top.table("kernel")),
        program=program,
        needs=tuple(sorted(reader.needs)),
    )
    top.done()
    _check_names(reader, states, declared, settings)
    return dut


def _states(reader: Reader, top: Table) -> dict[str, State]:
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


def _stateless(reader: Reader) -> State:
    """The one state of a board that is a program: such a board has none of the keys of a state."""
    return reader.state(MAIN, Table({}, reader.file))


def _texts(reader: Reader, top: Table, texts: Mapping[str, str]) -> dict[str, Template]:
    done: dict[str, Template] = {}
    for key, text in texts.items():
        reader.texts = list(done)  # a text may use those before it, so none can hold itself
        done[key] = reader.template(top, f"texts.{key}", text)
    return done


def _env(reader: Reader, top: Table) -> dict[str, str]:
    def look(name: str, arg: str) -> str:
        return reader.variables.get(name, "")

    return {key: reader.template(top, f"env.{key}", value).render(look) for key, value in top.mapping("env").items()}


def _check_names(
    reader: Reader, states: Mapping[str, State], declared: Collection[str], settings: Collection[str]
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


def _line(reader: Reader, table: Table | None) -> Line:
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
