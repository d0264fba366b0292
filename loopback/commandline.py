"""The command line of `python -m loopback`. Exit codes: 0 ended as asked, 1 failed, 2 bad usage or a bad DUT file, 4 no
such DUT.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import serial

from . import library, replay
from .capture import NoJournal
from .dutfile import load
from .dutmodel import Dut
from .player import Player, tell
from .program import NoProgramError
from .record import Record
from .server import address
from .strict import DutFileError


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE")
    return name, value


def _address(text: str) -> tuple[str, int]:
    try:
        return address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m loopback",
        description="Play a simulated board on a simulated serial cable until standard input ends.",
        epilog="Prints one JSON line when the near end can be opened; requests are read from standard input "
        "(unplug, replug, power cycle, stats, quit, or JSON: see loopback/control.py).",
    )
    parser.add_argument("dut", nargs="?", help="a built-in board (--list) or the path of a DUT file")
    parser.add_argument("--link", metavar="PATH", help="a symbolic link kept on the near end, over replugs too")
    parser.add_argument("--device", metavar="TTY", help="play on this tty instead of a cable")
    parser.add_argument("--rfc2217", type=_address, metavar="[HOST:]PORT", help="serve it by RFC 2217; port 0 = any")
    parser.add_argument("--socket", type=_address, metavar="[HOST:]PORT", help="serve its bytes alone over TCP")
    parser.add_argument("--baud", type=int, metavar="N", help="the line's speed instead of the file's; 0 = unpaced")
    parser.add_argument("--set", type=_setting, action="append", default=[], metavar="NAME=VALUE", dest="settings")
    parser.add_argument("--record", metavar="FILE", help="append what the board received and did, as JSON Lines")
    parser.add_argument(
        "--allow-programs", action="store_true", help="run a DUT file's [program] with your rights, not shut in"
    )
    parser.add_argument("--from-journal", metavar="DIR", help="print a DUT file that replays a captured journal")
    parser.add_argument("--speed", type=float, metavar="X", help="with --from-journal: times as fast; 0 = at once")
    parser.add_argument("--list", action="store_true", help="list the built-in boards and exit")
    parser.add_argument("--check", metavar="FILE", help="check a DUT file and exit")
    args = parser.parse_args(argv)
    chosen = [bool(args.list), args.check is not None, args.from_journal is not None, args.dut is not None]
    if sum(chosen) != 1:
        parser.error("name one board, or say --list, --check FILE or --from-journal DIR")
    if args.speed is not None and (args.from_journal is None or not 0 <= args.speed < float("inf")):
        parser.error("--speed is 0 or more, and goes with --from-journal")
    if args.device and args.link:
        parser.error("--link names the near end of a cable, and there is none with --device")
    if sum(option is not None for option in (args.device, args.rfc2217, args.socket)) > 1 or (
        args.link and (args.rfc2217 or args.socket)
    ):
        parser.error("a board is played on one of a cable (--link), --device, --rfc2217 and --socket")
    if args.baud is not None and args.baud < 0:
        parser.error("--baud is 0 or more")
    return args


def _check(path: str, settings: dict[str, str]) -> int:
    dut = load(path, settings)
    answers = sum(len(state.respond) for state in dut.states.values())
    needs = f", needs --set {' '.join(f'{name}=…' for name in dut.needs)}" if dut.needs else ""
    sys.stdout.write(f"{path}: ok ({len(dut.states)} states, {answers} answers{needs})\n")
    return 0


async def _play(args: argparse.Namespace, dut: Dut, record: Record) -> int:
    player = Player(
        dut,
        link=args.link,
        device=args.device,
        record=record,
        baud=args.baud,
        allowed=args.allow_programs,
        serve=args.rfc2217 or args.socket,
        rfc2217=args.rfc2217 is not None,
    )
    return await player.run()


def main(argv: Sequence[str] | None = None) -> int:
    """The command line. Returns the exit code."""
    args = _arguments(argv)
    settings = dict(args.settings)
    try:
        if args.list:
            for name, title in library.titles().items():
                sys.stdout.write(f"{name:<14} {title}\n")
            return 0
        if args.from_journal is not None:
            sys.stdout.write(replay.make(Path(args.from_journal), 1.0 if args.speed is None else args.speed))
            return 0
        if args.check is not None:
            return _check(args.check, settings)
        dut = library.find(args.dut, settings)
        if dut.needs:
            tell(f"{dut.file}: {{{dut.needs[0]}}} has no value; give it with --set {dut.needs[0]}=…")
            return 2
        return asyncio.run(_play(args, dut, Record(args.record)))
    except (library.NoSuchDut, NoJournal) as error:
        tell(str(error))
        return 4
    except DutFileError as error:
        tell(str(error))
        return 2
    except (OSError, serial.SerialException, NoProgramError) as error:
        tell(str(error))
        return 1
