"""switches the power of a USB hub's port through uhubctl: state, on, off, cycle, list.

A program of its own (`labd helper usbhub …`, `python -m labd.helpers.usbhub …`) and what a power hook calls. Needs
uhubctl (the package of that name) and the right to talk to hubs: root, or a udev rule. After each change it asks the
hub again: exit 0 means that the hub itself says so. Whether the hub really cuts the voltage, only a meter knows; many
that say so do not. A cycle is made of off and on here, so that the power comes back when this program is interrupted.
"""

import argparse
import re
from collections.abc import Callable, Mapping

from labd import shim
from labd.errors import Unreachable
from labd.helpers import _program
from labd.helpers._program import FAILED, NO_SUCH, TIMED_OUT, UNREACHABLE, Failure, word

USAGE = (
    "usbhub -l LOCATION state|on|off|cycle PORT [--delay-ms MS] [--timeout-ms MS] [--uhubctl PROGRAM]; usbhub list. "
    "LOCATION is the hub as list shows it (1-1.4), PORT its port's number; of a USB 3 hub both halves are switched. "
    "--delay-ms is how long a cycle leaves the power off (200 to 600000, default 3000). state prints on or off and "
    "nothing else. Exit codes: 0 done and read back from the hub, 1 the hub did not do it, 2 bad usage, 4 no such hub "
    "or port, 5 no answer in time, 7 no uhubctl, or no right to talk to the hub (root, or uhubctl's udev rule; in a "
    "hook: sudo -n usbhub …). Many hubs say that a port is off and leave its voltage on: measure once."
)
EXAMPLES = (
    ("usbhub list", "the hubs that can switch, their ports, and what is plugged in"),
    ("usbhub -l 1-1.4 state 2", "on or off, and nothing else"),
    ("usbhub -l 1-1.4 cycle 2", "off for 3 s, then on; exit 0 only if it is on again"),
)
HOOK = 'labd power set -t TARGET --cycle-cmd "usbhub -l 1-1.4 cycle 2" --state-cmd "usbhub -l 1-1.4 state 2"'

_HUB = re.compile(r"(?:Current|New) status for hub (\S+)")
_PORT = re.compile(r"\s+Port (\d+): ([0-9a-f]{4})([^\[]*)")


class Hub:
    """One hub, asked and switched by the program `uhubctl`."""

    def __init__(self, program: str, location: str, timeout_s: float, env: Mapping[str, str]) -> None:
        self.program = program
        self.location = location
        self.timeout_s = timeout_s
        self.env = {**env, "PATH": f"{env.get('PATH', '')}:/usr/sbin:/sbin"}  # where it is, and most users don't look

    def on(self, port: int) -> bool:
        """Whether a port has power, as the hub says: as soon as one half of a USB 3 hub does."""
        found = [power for number, power in _ports(self._ask("-l", self.location, "-p", str(port))) if number == port]
        if not found:
            raise Failure(f"hub {self.location} has no port {port}", NO_SUCH)
        return any(found)

    def turn(self, port: int, on: bool) -> None:
        """Switch a port and read it back. Raises Failure if it did not."""
        self._ask("-l", self.location, "-p", str(port), "-a", word(on))
        if self.on(port) != on:
            raise Failure(f"hub {self.location} took the command, but port {port} is still {word(not on)}", FAILED)

    def list(self) -> str:
        """What uhubctl says of every hub that can switch."""
        return self._ask().rstrip()

    def _ask(self, *words: str) -> str:
        try:
            ended = shim.run_hook([self.program, *words], cwd="/", env=self.env, timeout_s=self.timeout_s)
        except Unreachable as error:
            raise Failure(f"{error.message}; install uhubctl (the package of that name)", UNREACHABLE) from None
        text = (ended.out + ended.err).decode("utf-8", "replace")
        if ended.code is None:
            raise Failure(f"uhubctl did not answer within {self.timeout_s:g} s", TIMED_OUT)
        if "permission" in text.lower():
            raise Failure("no right to talk to the hub: run as root (sudo -n usbhub …), or install uhubctl's udev rule",
                          UNREACHABLE)  # fmt: skip
        if "No compatible devices" in text:
            raise Failure(f"no hub {self.location} that can switch power; see: labd helper usbhub list" if words else
                          "no hub here can switch the power of its ports", NO_SUCH)  # fmt: skip
        if ended.code:
            raise Failure(f"uhubctl: {(text.strip().splitlines() or ['it failed'])[-1]}", FAILED)
        return text


def _ports(text: str) -> list[tuple[int, bool]]:
    """(port, whether it has power), a line of uhubctl's last word on each hub."""
    newest: dict[str, list[tuple[int, bool]]] = {}
    hub = ""
    for line in text.splitlines():
        if named := _HUB.match(line):
            hub = named[1]
            newest[hub] = []
        elif (port := _PORT.match(line)) and hub:
            newest[hub].append((int(port[1]), "power" in port[3].split()))
    return [port for ports in newest.values() for port in ports]


def _parser(out: Callable[[str], None]) -> _program.Words:
    parser = _program.Words("usbhub", "Switch the power of a USB hub's port through uhubctl.", USAGE, EXAMPLES, HOOK,
                            out)  # fmt: skip
    parser.add_argument("-l", "--location", metavar="LOCATION", help="the hub, as list shows it: 1-1.4")
    parser.add_argument("verb", choices=("state", "on", "off", "cycle", "list"), help="what to do")
    parser.add_argument("port", nargs="?", type=_program.number(1, 255), metavar="PORT", help="which port of it")
    parser.add_times(10_000)
    parser.add_argument("--uhubctl", default="uhubctl", metavar="PROGRAM", help="the uhubctl to run")
    return parser


def _do(parser: _program.Words, args: argparse.Namespace, env: Mapping[str, str], say: Callable[[str], None]) -> str:
    hub = Hub(args.uhubctl, args.location or "", args.timeout_ms / 1000, env)
    if args.verb == "list":
        return hub.list()
    if not args.location or args.port is None:
        parser.error(f"{args.verb} needs -l LOCATION and PORT")
    if args.verb == "cycle":
        what = f"port {args.port} of hub {args.location}"
        return _program.cycle(what, lambda: hub.turn(args.port, False), lambda: hub.turn(args.port, True),
                              args.delay_ms / 1000, say, f"usbhub -l {args.location} on {args.port}")  # fmt: skip
    if args.verb in ("on", "off"):
        hub.turn(args.port, args.verb == "on")
    return word(hub.on(args.port))


def main(argv: list[str], *, env: Mapping[str, str], out: Callable[[str], None], err: Callable[[str], None]) -> int:
    """The whole program: parse, do, print one answer on `out`, say on `err` what went wrong, return the exit code."""

    def do() -> str:
        parser = _parser(out)
        return _do(parser, parser.parse_args(argv), env, lambda text: err(f"usbhub: {text}\n"))

    return _program.answered("usbhub", do, out, err)


if __name__ == "__main__":
    raise SystemExit(_program.run("usbhub", main))
