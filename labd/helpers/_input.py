"""What the input helpers share: their options, running their words, staying (`serve`), and saying what went wrong.

A helper gives a `Program`; `as_program` is its whole `main`. A start that finds the same helper serving the same device
hands its words over to it, so that keys stay held and the port stays open; else it opens the device for this once.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import IO, Any, NamedTuple, NoReturn

from labd.errors import LabdError, Unreachable, Usage, nearest
from labd.hid import serving, words
from labd.hid.device import Device, Pace
from labd.hid.keys import name_of
from labd.hid.player import Player, seconds
from labd.hid.words import Step

#: Seconds that a kept helper may take for what takes no time by itself.
ANSWER_SECONDS = 30.0

COMMON = (
    "What to do: type TEXT, key K, combo K…, down K, up K, releaseall, move DX DY, moveabs X Y (0 to 32767), click "
    "[left|right|middle] [COUNT], mdown [B], mup [B], scroll N, ping, version, delay MS, sleep S, run FILE (- is "
    "stdin; one command a line). All of it is checked before anything is sent. serve keeps the device open and what "
    "is held down, until its stdin ends or stop: starts for the same device then go through it."
)


#: What an own verb does with the device; gives what to print.
Act = Callable[[Any], str]


class Program(NamedTuple):
    """One helper. `address` names its device, `connect` opens it: (options, address, a path beside which it may keep a
    file). `own` are the verbs that it has beside the common ones: each makes of its words what to do with the device,
    and raises Usage before there is one. `remembers` says that the device holds keys by itself: a helper that serves
    opens it for each request, so that others get at it."""

    name: str
    summary: str
    usage: str
    examples: tuple[tuple[str, str], ...]
    options: Callable[[argparse.ArgumentParser], None]
    address: Callable[[argparse.Namespace, Mapping[str, str]], str]
    connect: Callable[[argparse.Namespace, str, str], AbstractContextManager[Any]]
    own: Mapping[str, Callable[[Sequence[str]], Act]]
    pace: Pace = Pace()
    remembers: bool = False


class Helper:
    """One run of a program: its options, its device (opened when first needed), and its player."""

    def __init__(self, program: Program, argv: Sequence[str], env: Mapping[str, str],
                 out: Callable[[str], None]) -> None:  # fmt: skip
        self.program = program
        self.args = _Options(program, out).parse_args(list(argv))
        self.words: list[str] = self.args.words
        self.flags = list(argv[: len(argv) - len(self.words)])
        self.address = program.address(self.args, env)
        alone = program.remembers and self.words[:1] and self.words[0].lower() in program.own
        self.path = "" if alone else serving.place(env, program.name, self.address)
        self._open: AbstractContextManager[Any] | None = None
        self._player: Player | None = None

    def __enter__(self) -> "Helper":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def player(self) -> Player:
        """The player, on a device that is open: what it holds it holds on the next one too."""
        if self._open is None:
            opened = self.program.connect(self.args, self.address, self.path)
            device: Device = opened.__enter__()
            self._open = opened
            if self._player is None:
                self._player = Player(device, _paced(self.program.pace, self.args))
            self._player.device = device
        assert self._player is not None
        return self._player

    def close(self) -> None:
        """Close the device."""
        opened, self._open = self._open, None
        if opened is not None:
            opened.__exit__(None, None, None)

    def steps(self, said: Sequence[str], stdin: str) -> list[Step]:
        """The steps that the words mean; none where they are the helper's own. Raises Usage."""
        if self.act(said) is not None:
            return []
        common = [*words.VERBS, "run", "serve", "stop"]
        if said and said[0].lower() not in common:
            near = nearest(said[0], [*common, *self.program.own])
            raise Usage(f"no command {said[0]!r}", near=near, hint="labd hid send --help")
        return words.parse(said, lambda path: stdin)

    def act(self, said: Sequence[str]) -> Act | None:
        """What the helper's own words mean; None where they are common ones. Raises Usage."""
        make = self.program.own.get(said[0].lower()) if said else None
        return make(said[1:]) if make is not None else None

    def perform(self, args: argparse.Namespace, stdin: str) -> str:
        """Do what the words say on the device; what to print. `run` has its command file in `stdin` already."""
        said = args.words
        act, steps = self.act(said), self.steps(said, stdin)
        player = self.player()
        player.pace = _paced(self.program.pace, args)
        if act is not None:
            return act(player.device)
        answers = player.play(steps, args.delay_ms / 1000)
        player.device.settled()
        if said[0].lower() == "run":
            answers.append(f"OK ({len(steps)} command{'s' if len(steps) != 1 else ''})")
        return "".join(f"{answer}\n" for answer in answers)

    def answer(self, argv: Sequence[str], stdin: str) -> tuple[int, str, str]:
        """As `perform`, for another start of this helper: exit code, stdout, stderr. A lost device is opened anew."""
        lost = False
        try:
            return 0, self.perform(_Options(self.program, lambda text: None).parse_args(list(argv)), stdin), ""
        except LabdError as error:
            lost = isinstance(error, Unreachable)
            return error.exit_code, "", told(self.program.name, error)
        finally:
            if lost or self.program.remembers:
                self.close()

    def serve(self, out: Callable[[str], None]) -> None:
        """Stay, with the device open, until told to end; then let go of what is held."""
        self.player()
        if self.program.remembers:
            self.close()
        serving.serve(self.path, self.answer, lambda: out(f"serving {self.address}\n"))
        if self._player is not None and self._player.holds:
            self.player().let_go()

    def once(self, stdin: str, err: Callable[[str], None]) -> tuple[int, str, str]:
        """Do the words: through the one that serves this device, else on the device itself."""
        steps = self.steps(self.words, stdin)
        if steps or not self.program.remembers:
            limit = (
                ANSWER_SECONDS
                + 2 * seconds(steps, _paced(self.program.pace, self.args))
                + len(steps) * self.args.delay_ms / 1000
            )
            found = serving.ask(self.path, {"argv": [*self.flags, *self.words], "stdin": stdin}, limit)
            if found is not None:
                return found
        out = self.perform(self.args, stdin)
        if self._player is not None and self._player.holds and not self.program.remembers:
            left = [*map(name_of, self._player.held), *sorted(self._player.pressed)]
            err(f"{self.program.name}: {', '.join(left)} stays down until the next command; to hold it over several, "
                "keep the helper running with serve (labd hid serve)\n")  # fmt: skip
        return 0, out, ""


def main(program: Program, argv: Sequence[str], *, env: Mapping[str, str], stdin: Callable[[], str],
         out: Callable[[str], None], err: Callable[[str], None]) -> int:  # fmt: skip
    """The whole program: returns the exit code. What went wrong is one line on `err`."""
    try:
        with Helper(program, argv, env, out) as helper:
            if helper.words == ["serve"]:
                helper.serve(out)
                return 0
            if helper.words == ["stop"]:
                if serving.ask(helper.path, {"stop": True}, ANSWER_SECONDS) is None:
                    err(f"{program.name}: nothing serves {helper.address}\n")
                return 0
            code, said, wrong = helper.once(_given(helper, stdin), err)
            out(said)
            err(wrong)
            return code
    except LabdError as error:
        err(told(program.name, error))
        return error.exit_code
    except SystemExit:  # --help has been printed
        return 0


def as_program(program: Program) -> int:
    """Run as `python -m labd.helpers.NAME`. SIGTERM, which ends an overdue hook, is taken as Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def writer(stream: IO[str]) -> Callable[[str], None]:
        def write(text: str) -> None:
            stream.write(text)
            stream.flush()

        return write

    try:
        return main(program, sys.argv[1:], env=os.environ, stdin=sys.stdin.read, out=writer(sys.stdout),
                    err=writer(sys.stderr))  # fmt: skip
    except KeyboardInterrupt:
        writer(sys.stderr)(f"{program.name}: interrupted\n")
        return 130


def told(name: str, error: LabdError) -> str:
    """An error as a helper says it: what, near matches, what helps, on one line."""
    near = f"; did you mean {' or '.join(error.near)}?" if error.near else ""
    hint = f"; {error.hint}" if error.hint else ""
    return f"{name}: {error.message}{near}{hint}\n"


def number(words: Sequence[str], flag: str, default: int, low: int, high: int) -> int:
    """The value of `flag` N in a verb's own words, which may be nothing else. Raises Usage."""
    if not words:
        return default
    if len(words) != 2 or words[0] != flag or not words[1].isdigit() or not low <= int(words[1]) <= high:
        raise Usage(f"{' '.join(words)!r} is not {flag} N, {low} to {high}")
    return int(words[1])


def _given(helper: Helper, stdin: Callable[[], str]) -> str:
    """The command file of `run`, read; its name gives way to `-`, as whoever plays it gets the text."""
    if len(helper.words) != 2 or helper.words[0].lower() != "run":
        return ""
    path = helper.words[1]
    try:
        if path == "-":
            return stdin()
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeError) as error:
        raise Usage(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    words.script(text, path)  # told with the file's name, before it is lost
    helper.words = helper.args.words = ["run", "-"]
    return text


def _paced(pace: Pace, args: argparse.Namespace) -> Pace:
    if args.hold_ms is not None:
        hold = args.hold_ms / 1000
        pace = pace._replace(hold=hold, char_hold=hold, further=hold if pace.further else 0.0)
    if args.gap_ms is not None:
        pace = pace._replace(gap=args.gap_ms / 1000, char_gap=args.gap_ms / 1000)
    return pace


def _milliseconds(text: str) -> int:
    if not text.isdigit() or int(text) > 60_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not within 0 to 60000")
    return int(text)


def _page(prog: str) -> argparse.HelpFormatter:
    """Of a width of its own: asking the terminal for its width costs more than all the rest."""
    return argparse.RawDescriptionHelpFormatter(prog, width=100)


class _Options(argparse.ArgumentParser):
    """argparse that writes where it is told and raises Usage instead of ending the process."""

    def __init__(self, program: Program, out: Callable[[str], None]) -> None:
        super().__init__(prog=program.name, allow_abbrev=False, formatter_class=_page)
        self._program = program
        self._out = out
        program.options(self)
        self.add_argument("--hold-ms", type=_milliseconds, metavar="MS", help="how long a key is held")
        self.add_argument("--gap-ms", type=_milliseconds, metavar="MS", help="how long nothing is between two keys")
        self.add_argument("--delay-ms", type=_milliseconds, default=0, metavar="MS",
                          help="run: how long to wait between two commands")  # fmt: skip
        self.add_argument("words", nargs=argparse.REMAINDER, metavar="WORDS", help="what to do")

    def format_help(self) -> str:
        """The whole page."""
        import textwrap

        self.description = self._program.summary
        lines = [*textwrap.wrap(f"{self._program.usage} {COMMON}", 100), "", "examples:",
                 *(f"  labd helper {words:<44} {what}" for words, what in self._program.examples)]  # fmt: skip
        self.epilog = "\n".join(lines)
        return super().format_help()

    def _print_message(self, message: str, file: Any = None) -> None:
        self._out(message)

    def error(self, message: str) -> NoReturn:
        raise Usage(f"{message}; its own --help tells more")
