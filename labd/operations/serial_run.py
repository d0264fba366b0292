"""`labd serial run`: one command in the board's shell: its output, and its exit code as ours. Light."""

from __future__ import annotations

from labd.errors import Busy, LabdError, Usage
from labd.operations.consoles import (
    PACE_PARAMS,
    TARGET_EITHER,
    WRITER_PARAMS,
    Held,
    console,
    paced_seconds,
    tell_failing,
    who_of,
)
from labd.operations.model import INTERFACE, TARGET, Answer, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from labd.call import Call
    from labd.console_io import Console
    from labd.operations.model import Args
    from labd.run_shell import How, Ran


def run(call: Call, args: Args) -> Any:
    """Run a command; output goes out as it comes, the exit code is the command's."""
    lab, target, line = console(call, args)
    text = args.command
    if text == "-":
        text = call.read_stdin().decode("utf-8", "surrogateescape").removesuffix("\n")
    _check(args, text, lab.targets)
    what = f"a run of {text[:40]!r}"
    with Held(call, args, lab, target, line["name"], what=what, ttl_s=args.timeout + 30) as lease:
        from labd.console_io import Console

        board = Console(call, lab, target, line, who_of(call), lease)
        return _run(call, args, board, text)


def _check(args: Args, text: str, targets: Iterable[str]) -> None:
    """Raise Usage for words that can't have been meant."""
    if "\0" in text:
        raise Usage("a command can't hold a NUL", hint="printf '\\000' prints one")
    if args.binary and (args.no_status or args.shell in ("none", "hush")):
        raise Usage("--binary needs a shell with pipes and base64", hint="leave out --binary")
    if args.target is None and text in targets:
        raise Usage(f"labd serial run {text} has no command, and {text!r} is a target",
                    hint=f"labd serial run {text} 'uname -a'  # or -t TARGET if {text!r} is the command")  # fmt: skip


def _run(call: Call, args: Args, board: Console, command: str) -> Any:
    import time
    from dataclasses import replace

    from labd import run_shell

    begun, rx = time.monotonic(), board.cursor
    seq = board.reader.seq_at(rx) - 1
    kept: list[bytes] = []
    how = run_shell.How(_typist(args, board), _out(call, kept), call.note, args.timeout, binary=args.binary,
                        shell="none" if args.no_status else args.shell)  # fmt: skip
    how.still_ours = lambda: _still_ours(call, board, how)
    key = (call.lab_path, board.target, board.line["name"])
    how.known = call.bench.shells.get(key)
    data = {"target": board.target, "interface": board.line["name"], "command": command}
    try:
        ran = run_shell.run(board, command, how)
    except LabdError as error:
        if error.name == "timed_out" and how.typed:
            before = how.learned[-1] if how.learned else how.known or run_shell.Known("", "")
            how.learned.append(replace(before, left=True))
        _failed(
            call, error, {**data, **_failing(call, board), "code": None, **_output(args, kept), "rx": rx, "seq": seq}
        )
        raise
    finally:
        if how.learned:
            call.bench.shells[key] = how.learned[-1]
    data |= {**_failing(call, board), **run_shell.plain_answer(ran), **_output(args, kept), "rx": rx, "seq": seq,
             "ms": round((time.monotonic() - begun) * 1000, 3)}  # fmt: skip
    return Answer(data, code=_exit(call, args, ran), text="")


def _failing(call: Call, board: Console) -> dict[str, Any]:
    """For --json, and said: that the journal can't be written, through which the output is read."""
    failing = board.failing()
    tell_failing(call, board.name, failing)
    return {"failing": failing} if failing else {}


def _still_ours(call: Call, board: Console, how: How) -> None:
    """Raise Busy where the console was taken over: what comes is not only the command's any more."""
    if board.lease is None:
        return
    try:
        call.bench.writers.leases.admit(board.lease.key, board.who, board.lease)
    except Busy as error:
        how_far = "the command may still run; its exit code is unknown" if how.typed else "the command was not typed"
        raise Busy(f"{error.message}; {how_far}", hint=error.hint) from None


def _typist(args: Args, board: Console) -> Any:
    eol = board.line["eol"].encode()

    def type_line(text: str) -> None:
        data = text.encode("utf-8", "surrogateescape") + eol
        if args.verify_echo:
            from labd.echo_check import PATIENCE_S, Typist

            def one(piece: bytes) -> None:
                board.skip()
                board.send(piece, pace_ms=args.pace_ms)

            patience = PATIENCE_S + 4 * args.pace_ms / 1000
            Typist(one, board.read, patience_s=patience).type(data[: len(data) - len(eol)])
            board.skip()
            data = eol
        board.send(data, pace_ms=args.pace_ms, line_pace_ms=args.line_pace_ms,
                   timeout_s=10 + paced_seconds(data, args))  # fmt: skip

    return type_line


def _out(call: Call, kept: list[bytes]) -> Any:
    if call.json:
        return kept.append
    return call.out


def _output(args: Args, kept: list[bytes]) -> dict[str, Any]:
    """The output for --json: text, or base64 of the exact bytes."""
    whole = b"".join(kept)
    if args.binary:
        from base64 import b64encode

        return {"output": None, "base64": b64encode(whole).decode("ascii")}
    return {"output": whole.decode("utf-8", "replace")}


def _failed(call: Call, error: LabdError, data: dict[str, Any]) -> None:
    """Tell what was received before it went wrong; where there is no --json it has been told."""
    call.flush()
    if call.json and call.face != "rpc":
        from labd.call import encode
        from labd.jsonlight import pretty

        call.out(encode(pretty({**data, "ended": error.name}) + "\n"))


def _exit(call: Call, args: Args, ran: Ran) -> int:
    """Our exit code, and what has to be said about it."""
    call.flush()
    if ran.interleaved:
        where = (
            f"{ran.foreign} lines of the output look like the kernel's" if ran.foreign else "a marker was broken into"
        )
        call.note(f"interleaved: something else was printed in between ({ran.why or where})"
                  + ("; --binary tells the exact output" if ran.foreign else ""))  # fmt: skip
    if ran.code is not None:
        return ran.code if ran.code < 256 else 255
    if args.no_status and ran.shell == "none":
        return 0
    if ran.shell == "none":
        call.note("the exit code is unknown: " + ran.why + ", so this one is 1; --no-status makes it 0 once the prompt "
                  "is back")  # fmt: skip
    else:
        call.note(f"the exit code can't be told, so this one is 1: {ran.why}")
    return 1


SERIAL_RUN = Operation(
    ("serial", "run"),
    "run a command in the board's shell: its output, its exit code",
    effect="actuate",
    where="daemon",
    params=(
        TARGET,
        Param("command", "the command, as one word; - reads it from stdin", required=True),
        TARGET_EITHER,
        INTERFACE,
        Param("timeout", "give up after this long; the command is then left as it is", kind="float",
              flags=("--timeout",), default=30.0, unit="s", minimum=0.1, maximum=604800),
        Param("binary", "the exact bytes of stdout, checked: through base64 and cksum on the board", kind="switch",
              flags=("--binary",), default=False),
        Param("no_status", "the console has no exit codes (a BMC): type the bare command, exit 0 when the prompt is "
              "back", kind="switch", flags=("--no-status",), default=False),
        Param("shell", "what is there; auto asks it, with a line that runs nothing", kind="choice", flags=("--shell",),
              choices=("auto", "sh", "hush", "none"), default="auto"),
        *PACE_PARAMS,
        Param("verify_echo", "type the line by its echo, as serial send --verify-echo", kind="switch",
              flags=("--verify-echo",), default=False),
        *WRITER_PARAMS,
    ),
    handler=run,
    doc="Prints what the command printed, stdout and stderr as the console shows them, and nothing else; the exit code "
    "is the command's. labd's own failures print a line that begins with 'labd:' and exit as everywhere (5 not in "
    "time, 6 somebody else writes, 7 the port went away; what had come is printed, and nothing is typed again). It "
    "runs in the shell that is there, so cd and variables stay. When its time is over, or at Ctrl-C, labd ends and the "
    "command goes on: labd serial send TARGET --key ctrl-c interrupts it.\n\n"
    "Works in sh, dash, bash, busybox and in U-Boot. Where the kernel logged in between, a note says 'interleaved'; an "
    "exit code that is not beyond doubt is never told: exit 1, with the reason, and code null in --json. A console "
    "without exit codes gives 1 as well, unless --no-status says that you know. At a login prompt nothing is typed.",
    examples=(
        ("labd serial run pico 'uname -a'", "its output alone"),
        ("labd serial run pico 'test -e /dev/mmcblk0'", "the exit code is the board's"),
        ("labd serial run pico 'cat /boot/config.bin' --binary --timeout 120", "the exact bytes"),
        ("labd serial run pico -i bmc 'power status' --no-status", "a console without exit codes"),
    ),
)  # fmt: skip
