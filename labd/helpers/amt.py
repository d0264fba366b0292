"""switches a PC with Intel AMT (vPro) over the network, below its operating system: state, on, off, cycle, status.

A program of its own (`labd helper amt …`, `python -m labd.helpers.amt …`) and what a power hook calls. Standard
library only: WS-Management with digest authentication, over HTTP (port 16992) or TLS (16993). off cuts the power hard,
as four seconds on the button do. After each change it asks AMT again: exit 0 means that AMT itself says so.

The password is taken from AMT_PASSWORD or a file, never from the words of the command, which every user of the machine
can read. Over plain HTTP nothing but the password's digest is protected: use TLS on a network that is not yours alone.
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from labd.helpers import _program, _wsman
from labd.helpers._program import BAD_USAGE, FAILED, UNREACHABLE, Failure, word

#: How long a change may take to show, in seconds: AMT drops its link while the machine changes state.
SETTLE_S = 20.0
#: Between two questions, in seconds.
ASK_S = 0.5

PORT, TLS_PORT = 16992, 16993

#: CIM power states: on; soft and hard off in their variants; asleep or hibernating.
ON, OFF, ASLEEP = (2,), (6, 8, 12, 13), (3, 4, 7)
#: What is asked for: 2 is on, 8 is off, hard.
REQUEST = {True: 2, False: 8}
#: What RequestPowerStateChange returns when it does it: done, or begun.
ACCEPTED = ("0", "4096")

USAGE = (
    "amt -d HOST[:PORT] state|on|off|cycle|status [-u USER] [--tls] [--trust FILE|any] [--password-file FILE] "
    "[--delay-ms MS] [--timeout-ms MS]. HOST is AMT's address; PORT is 16992, or with --tls 16993; --trust is a file "
    "with the certificate to trust, or any for none to check. --delay-ms is how long a cycle leaves the power off (200 "
    "to 600000, default 3000). state prints on or off and nothing else; asleep is off, with a note. Exit codes: 0 done "
    "and read back from AMT, 1 it did not do it, 2 bad usage, 5 no answer in time, 7 unreachable, no AMT, or it wants "
    "another password. The password is taken from AMT_PASSWORD or the first line of FILE."
)
EXAMPLES = (
    ("amt -d 192.0.2.60 state", "on or off, and nothing else"),
    ("amt -d 192.0.2.60 cycle", "off (hard) for 3 s, then on; exit 0 only if it is on again"),
    ("amt -d 192.0.2.60 --tls --trust amt.pem on", "over TLS, with its certificate"),
    ("amt -d 192.0.2.60 status", "what AMT says of the power, as JSON"),
)
HOOK = 'labd power set -t TARGET --cycle-cmd "amt -d HOST cycle" --state-cmd "amt -d HOST state"'


class Machine:
    """One PC's power, through its AMT."""

    def __init__(self, service: _wsman.Service) -> None:
        self.service = service

    def status(self) -> dict[str, str]:
        """What AMT's power service says."""
        return self.service.get("CIM_AssociatedPowerManagementService")

    def code(self) -> int:
        """The CIM power state."""
        said = self.status().get("PowerState", "")
        if not said.isdigit() or int(said) not in (*ON, *OFF, *ASLEEP):
            raise Failure(f"{self.service.name} says power state {said!r}, which is neither on nor off", FAILED)
        return int(said)

    def turn(self, on: bool) -> None:
        """Switch, unless it is so, and read back. Raises Failure if it did not."""
        wanted = ON if on else OFF
        if self.code() in wanted:
            return
        arguments = f"<h:PowerState>{REQUEST[on]}</h:PowerState>{_wsman.MANAGED_SYSTEM}"
        said = self.service.invoke("CIM_PowerManagementService", "RequestPowerStateChange", arguments)
        if said.get("ReturnValue") not in ACCEPTED:
            raise Failure(f"{self.service.name} refused to switch {word(on)} (it returned {said.get('ReturnValue')})",
                          FAILED)  # fmt: skip
        self._await(wanted, on)

    def _await(self, wanted: tuple[int, ...], on: bool) -> None:
        end = time.monotonic() + SETTLE_S
        while True:
            try:
                if self.code() in wanted:
                    return
                problem = Failure(
                    f"{self.service.name} took the command, but the power is still {word(not on)}", FAILED
                )
            except Failure as failure:
                problem = failure
            if time.monotonic() >= end:
                raise problem
            time.sleep(ASK_S)


def _service(args: argparse.Namespace, env: Mapping[str, str]) -> _wsman.Service:
    try:
        parts = urlsplit(f"//{args.device}")
        host, port = parts.hostname, parts.port or (TLS_PORT if args.tls else PORT)
    except ValueError as error:
        raise Failure(f"-d {args.device}: not an address: {error}", BAD_USAGE) from None
    if not host or parts.path:
        raise Failure(f"-d {args.device}: give an address like 192.0.2.60 or pc.local:16992", BAD_USAGE)
    if args.trust and not args.tls:
        raise Failure("--trust goes with --tls", BAD_USAGE)
    path = args.password_file
    password = env.get("AMT_PASSWORD") if path is None else _program.first_line("--password-file", path)
    if not password:
        raise Failure("put AMT's password in AMT_PASSWORD or give --password-file FILE", UNREACHABLE)
    tls = _wsman.context(args.trust) if args.tls else None
    return _wsman.Service(host, port, args.user, password, tls, args.timeout_ms / 1000)


def _parser(out: Callable[[str], None]) -> _program.Words:
    parser = _program.Words("amt", "Switch a PC with Intel AMT over the network.", USAGE, EXAMPLES, HOOK, out)
    parser.add_argument(
        "-d", "--device", required=True, metavar="HOST", help="address of AMT, with :PORT if it differs"
    )
    parser.add_argument("verb", choices=("state", "on", "off", "cycle", "status"), help="what to do")
    parser.add_argument("-u", "--user", default="admin", metavar="USER", help="default admin")
    parser.add_argument("--tls", action="store_true", help="speak TLS, on port 16993")
    parser.add_argument("--trust", metavar="FILE|any", help="with --tls: the certificate to trust, or any")
    parser.add_argument("--password-file", metavar="FILE", help="a file with the password on its first line")
    parser.add_times(6000)
    return parser


def _do(args: argparse.Namespace, env: Mapping[str, str], say: Callable[[str], None]) -> str:
    machine = Machine(_service(args, env))
    if args.verb == "status":
        return json.dumps(machine.status(), indent=2)
    if args.verb == "cycle":
        return _program.cycle(f"the PC at {args.device}", lambda: machine.turn(False), lambda: machine.turn(True),
                              args.delay_ms / 1000, say, f"amt -d {args.device} on")  # fmt: skip
    if args.verb in ("on", "off"):
        machine.turn(args.verb == "on")
    code = machine.code()
    if code in ASLEEP:
        say(f"{args.device} is asleep or hibernating (power state {code})")
    return word(code in ON)


def main(argv: list[str], *, env: Mapping[str, str], out: Callable[[str], None], err: Callable[[str], None]) -> int:
    """The whole program: parse, do, print one answer on `out`, say on `err` what went wrong, return the exit code."""

    def say(text: str) -> None:
        err(f"amt: {text}\n")

    return _program.answered("amt", lambda: _do(_parser(out).parse_args(argv), env, say), out, err)


if __name__ == "__main__":
    raise SystemExit(_program.run("amt", main))
