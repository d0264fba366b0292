"""What every helper that switches power is made of: its words, its exit codes, how it ends, and a cycle that restores.

For the helpers alone. A helper is a program: `main(argv, env=, out=, err=)` prints one answer on `out`, says on `err`
what went wrong and returns its exit code; nothing but `run` ends the process.
"""

import argparse
import os
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TextIO

OK, FAILED, BAD_USAGE, NO_SUCH, TIMED_OUT, UNREACHABLE = 0, 1, 2, 4, 5, 7

#: How often, and how far apart in seconds, a cycle tries to bring the power back.
RESTORE_TRIES, RESTORE_PAUSE_S = 6, 1.0

Say = Callable[[str], None]


class Failure(Exception):
    """Why it did not work: a line for a person, and the exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Words(argparse.ArgumentParser):
    """argparse that writes where it is told and raises Failure instead of ending the process.

    Below the arguments its help has the helper's USAGE, its EXAMPLES and `hook`: how a power hook calls it.
    """

    def __init__(self, name: str, description: str, usage: str, examples: Sequence[tuple[str, str]], hook: str,
                 out: Say) -> None:  # fmt: skip
        self._out = out
        lines = [*textwrap.wrap(usage, 100), "", "examples:"]
        lines += [f"  labd helper {words:<38} {what}" for words, what in examples]
        lines += ["", "as a power hook:", f"  {hook}"]
        super().__init__(prog=name, description=description, epilog="\n".join(lines), allow_abbrev=False,
                         formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip

    def _print_message(self, message: str, file: Any = None) -> None:
        self._out(message)

    def error(self, message: str) -> NoReturn:
        raise Failure(f"{message}; see: labd helper {self.prog} --help", BAD_USAGE)

    def add_times(self, timeout_ms: int) -> None:
        """The options --delay-ms of a cycle and --timeout-ms of every answer."""
        self.add_argument("--delay-ms", default=3000, type=number(200, 600_000), metavar="MS",
                          help="cycle: how long the power stays off (200 to 600000, default 3000)")  # fmt: skip
        self.add_argument("--timeout-ms", default=timeout_ms, type=number(100, 60_000), metavar="MS",
                          help=f"how long to wait for each answer (default {timeout_ms})")  # fmt: skip


def number(low: int, high: int) -> Callable[[str], int]:
    """A type for argparse: an integer within bounds."""

    def parse(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{value} is not within {low} to {high}")
        return value

    parse.__name__ = "number"
    return parse


def first_line(flag: str, path: str) -> str:
    """The first line of a file that holds a secret. Raises Failure."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline().rstrip("\r\n")
    except (OSError, UnicodeError) as error:
        raise Failure(f"{flag} {path}: {getattr(error, 'strerror', None) or error}", BAD_USAGE) from None


def word(on: bool) -> str:
    """`on` or `off`."""
    return "on" if on else "off"


def cycle(what: str, cut: Callable[[], None], restore: Callable[[], None], delay_s: float, say: Say, undo: str) -> str:
    """Off, wait, on; returns the line to print. `cut` and `restore` switch and read back, and raise Failure.

    However the cut ended, the power is brought back, with several tries. `what` names it, `undo` is the command that a
    person needs when all of them failed. Raises Failure when it was not cut, or is not back.
    """
    start = time.monotonic()
    try:
        cut()
        time.sleep(max(0.0, start + delay_s - time.monotonic()))
    except Failure as failure:
        _restore(what, restore, say, undo)
        raise Failure(f"not cycled: {failure}; the power is on", failure.code) from None
    except KeyboardInterrupt:
        _restore(what, restore, say, undo)
        raise
    _restore(what, restore, say, undo)
    return f"on (was off for {time.monotonic() - start:.1f} s)"


def _restore(what: str, restore: Callable[[], None], say: Say, undo: str) -> None:
    for attempt in range(1, RESTORE_TRIES + 1):
        try:
            restore()
            return
        except Failure as failure:
            say(f"power not back yet (try {attempt} of {RESTORE_TRIES}): {failure}")
            last = failure
            if attempt < RESTORE_TRIES:
                time.sleep(RESTORE_PAUSE_S)
    raise Failure(f"THE POWER MAY STILL BE OFF at {what}: {last}; try: labd helper {undo}", last.code)


def answered(name: str, do: Callable[[], str], out: Say, err: Say) -> int:
    """Print what `do` answers, or why it could not; the exit code."""
    try:
        out(do() + "\n")
        return OK
    except Failure as failure:
        err(f"{name}: {failure}\n")
        return failure.code
    except SystemExit:  # --help has been printed
        return OK


def run(name: str, main: Callable[..., int]) -> int:
    """Run a helper's `main` as a program. SIGTERM, which ends an overdue hook, is taken as Ctrl-C."""
    import signal

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    env: Mapping[str, str] = os.environ
    try:
        return main(sys.argv[1:], env=env, out=_writer(sys.stdout), err=_writer(sys.stderr))
    except KeyboardInterrupt:
        _writer(sys.stderr)(f"{name}: interrupted\n")
        return 130


def _writer(stream: TextIO) -> Say:
    def write(text: str) -> None:
        stream.write(text)
        stream.flush()

    return write
