"""switches a Shelly plug or relay, Gen2 or newer, over its HTTP RPC: state, on, off, cycle, status.

A program of its own (`labd helper shellyplug …`, `python -m labd.helpers.shellyplug …`) and what a power hook
calls. Standard library only. After each change it reads the switch back: exit 0 means that the plug itself says
so. A cycle arms the plug's own timer before it cuts the power, so that a killed host does not leave the board
dark, and then makes sure that the power is back, trying again and saying so when it is not.

The password of a plug with authentication is taken from SHELLYPLUG_PASSWORD or a file, never from the words of
the command, which every user of the machine can read. It never follows a redirect and uses no proxy.
"""

import argparse
import http.client
import json
import os
import secrets
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TextIO
from urllib.parse import urlencode, urlsplit

from labd.helpers import _digest

OK, FAILED, BAD_USAGE, NO_SUCH, TIMED_OUT, UNREACHABLE = 0, 1, 2, 4, 5, 7

#: How often, and how far apart in seconds, a cycle tries to bring the power back.
RESTORE_TRIES, RESTORE_PAUSE_S = 6, 1.0
#: How long a change may take to show in the plug's own status, in seconds.
SETTLE_S = 2.0

USAGE = (
    "shellyplug -d HOST state|on|off|cycle|status [ID] [--delay-ms MS] [--timeout-ms MS] [--password-file FILE]. "
    "HOST is the plug's address; ID is which switch of it (default 0); --delay-ms is how long a cycle leaves the "
    "power off (200 to 600000, default 3000). state prints on or off and nothing else. Exit codes: 0 done and read "
    "back from the plug, 1 the plug did not do it, 2 bad usage, 4 no such switch, 5 no answer in time, 7 unreachable, "
    "no Gen2 Shelly, or it wants another password. When authentication is on, the password is taken from "
    "SHELLYPLUG_PASSWORD or the first line of FILE."
)
EXAMPLES = (
    ("shellyplug -d 192.0.2.41 state", "on or off, and nothing else"),
    ("shellyplug -d 192.0.2.41 cycle", "off for 3 s, then on; exit 0 only if it is on again"),
    ("shellyplug -d 192.0.2.41 off 1", "the second switch of a Shelly that has several"),
    ("shellyplug -d 192.0.2.41 status", "model, firmware and power, as JSON"),
)
EPILOG = "\n".join(
    [
        *textwrap.wrap(USAGE, 100),
        "",
        "examples:",
        *(f"  labd helper {words:<34} {what}" for words, what in EXAMPLES),
        "",
        "as a power hook:",
        '  labd power set -t TARGET --cycle-cmd "shellyplug -d HOST cycle" --state-cmd "shellyplug -d HOST state"',
    ]
)


class Failure(Exception):
    """Why it did not work: a line for a person, and the exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Plug:
    """One Shelly at `device` (`HOST`, `HOST:PORT` or `http://HOST`). Each call is a connection of its own."""

    def __init__(self, device: str, *, password: str | None = None, timeout_s: float = 6.0) -> None:
        self.device = device
        self.password = password
        self.timeout_s = timeout_s
        try:
            parts = urlsplit(device if "://" in device else f"http://{device}")
            self._host, self._port = parts.hostname, parts.port or 80
        except ValueError as error:
            raise Failure(f"-d {device}: not an address: {error}", BAD_USAGE) from None
        if parts.scheme != "http" or not self._host:
            raise Failure(f"-d {device}: give an address like 192.0.2.41 or plug.local:80", BAD_USAGE)

    def rpc(self, method: str, **params: Any) -> dict[str, Any]:
        """Call one RPC method and return its result. Raises Failure: unreachable, refused, or the plug's error."""
        uri = f"/rpc/{method}" + (f"?{urlencode(params)}" if params else "")
        status, headers, body = self._get(uri, None)
        if status == 401:
            status, headers, body = self._get(uri, self._answer(uri, headers))
            if status == 401:
                raise Failure(f"{self.device} refuses the password in SHELLYPLUG_PASSWORD", UNREACHABLE)
        return self._result(method, status, body)

    def output(self, switch: int) -> bool:
        """Whether the switch is on, as the plug itself says."""
        value = self.rpc("Switch.GetStatus", id=switch).get("output")
        if not isinstance(value, bool):
            raise Failure(f"{self.device} does not know the state of switch {switch}", FAILED)
        return value

    def turn(self, switch: int, on: bool, *, back_after_s: float | None = None) -> None:
        """Switch and read back. `back_after_s` has the plug undo it by itself. Raises Failure if it did not."""
        timer = {} if back_after_s is None else {"toggle_after": f"{back_after_s:g}"}
        self.rpc("Switch.Set", id=switch, on="true" if on else "false", **timer)
        within = SETTLE_S if back_after_s is None else min(SETTLE_S, back_after_s / 2)
        if not self.wait(switch, on, within):
            raise Failure(f"{self.device} took the command, but switch {switch} is still {word(not on)}", FAILED)

    def wait(self, switch: int, on: bool, seconds: float) -> bool:
        """Whether the switch comes to say `on` within the time; asked at least once."""
        end = time.monotonic() + seconds
        while self.output(switch) is not on:
            if time.monotonic() >= end:
                return False
            time.sleep(0.1)
        return True

    def _answer(self, uri: str, headers: Mapping[str, str]) -> str:
        asked = _digest.challenge(headers.get("www-authenticate", ""))
        if self.password is None:
            raise Failure(
                f"authentication is on at {self.device}: put its password in SHELLYPLUG_PASSWORD "
                "or give --password-file FILE",
                UNREACHABLE,
            )
        told = asked and _digest.authorization(
            asked, user="admin", password=self.password, method="GET", uri=uri, cnonce=secrets.token_hex(16)
        )
        if not told:
            raise Failure(f"{self.device} wants a kind of authentication that this program does not know", UNREACHABLE)
        return told

    def _get(self, uri: str, authorization: str | None) -> tuple[int, dict[str, str], bytes]:
        assert self._host is not None
        connection = http.client.HTTPConnection(self._host, self._port, timeout=self.timeout_s)
        try:
            connection.request("GET", uri, headers={"Authorization": authorization} if authorization else {})
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read(1 << 20)
        except TimeoutError:
            raise Failure(f"{self.device} did not answer within {self.timeout_s:g} s", TIMED_OUT) from None
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise Failure(f"{self.device} is unreachable: {reason}", UNREACHABLE) from None
        finally:
            connection.close()

    def _result(self, method: str, status: int, body: bytes) -> dict[str, Any]:
        try:
            result = json.loads(body)
        except ValueError:
            result = None
        if not isinstance(result, dict):
            old = " (a first-generation Shelly has another interface)" if status == 404 else ""
            raise Failure(f"{self.device} answers HTTP {status}, but not as a Gen2 Shelly{old}", UNREACHABLE)
        if status != 200:
            missing = result.get("code") in (-105, 404)
            reason = result.get("message") or f"HTTP {status}"
            raise Failure(f"{self.device} refused {method}: {reason}", NO_SUCH if missing else FAILED)
        return result


def word(on: bool) -> str:
    """`on` or `off`."""
    return "on" if on else "off"


def cycle(plug: Plug, switch: int, delay_s: float, err: Callable[[str], None]) -> str:
    """Off, wait, on; returns the line to print. Raises Failure, after all tries, when the power is not back."""
    if not plug.output(switch):
        err(f"shellyplug: {plug.device} switch {switch} was already off; it will be on afterwards\n")
    start = time.monotonic()
    try:
        plug.turn(switch, False, back_after_s=delay_s)
        time.sleep(max(0.0, start + delay_s - time.monotonic()))
    except Failure as failure:
        _restore(plug, switch, err)
        raise Failure(f"not cycled: {failure}; the power is on", failure.code) from None
    except KeyboardInterrupt:
        _restore(plug, switch, err)
        raise
    _restore(plug, switch, err)
    return f"on (was off for {time.monotonic() - start:.1f} s)"


def _restore(plug: Plug, switch: int, err: Callable[[str], None]) -> None:
    """See to it that the power is on. The plug's own timer may already have done it."""
    for attempt in range(1, RESTORE_TRIES + 1):
        try:
            if not plug.wait(switch, True, RESTORE_PAUSE_S if attempt == 1 else 0):
                plug.turn(switch, True)
            return
        except Failure as failure:
            err(f"shellyplug: power not back yet (try {attempt} of {RESTORE_TRIES}): {failure}\n")
            last = failure
            if attempt < RESTORE_TRIES:
                time.sleep(RESTORE_PAUSE_S)
    raise Failure(
        f"THE POWER MAY STILL BE OFF at {plug.device} switch {switch}: {last}; "
        f"try: labd helper shellyplug -d {plug.device} on {switch}",
        last.code,
    )


def _status(plug: Plug, switch: int) -> str:
    device, state = plug.rpc("Shelly.GetDeviceInfo"), plug.rpc("Switch.GetStatus", id=switch)
    return json.dumps({"device": device, "switch": state}, indent=2)


def _number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{value} is not within {low} to {high}")
        return value

    parse.__name__ = "number"
    return parse


class _Words(argparse.ArgumentParser):
    """argparse that writes where it is told and raises instead of ending the process."""

    def __init__(self, out: Callable[[str], None]) -> None:
        super().__init__(
            prog="shellyplug", description="Switch a Shelly plug or relay (Gen2 or newer) over its HTTP RPC.",
            epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
        )  # fmt: skip
        self._out = out

    def _print_message(self, message: str, file: Any = None) -> None:
        self._out(message)

    def error(self, message: str) -> NoReturn:
        raise Failure(f"{message}; see: labd helper shellyplug --help", BAD_USAGE)


def _parser(out: Callable[[str], None]) -> _Words:
    parser = _Words(out)
    parser.add_argument(
        "-d", "--device", required=True, metavar="HOST", help="address of the plug, with :PORT if not 80"
    )
    parser.add_argument("verb", choices=("state", "on", "off", "cycle", "status"), help="what to do")
    parser.add_argument("switch", nargs="?", default=0, type=_number(0, 255), metavar="ID",
                        help="which switch of the device (default 0)")  # fmt: skip
    parser.add_argument("--delay-ms", default=3000, type=_number(200, 600_000), metavar="MS",
                        help="cycle: how long the power stays off (200 to 600000, default 3000)")  # fmt: skip
    parser.add_argument("--timeout-ms", default=6000, type=_number(100, 60_000), metavar="MS",
                        help="how long to wait for each answer (default 6000)")  # fmt: skip
    parser.add_argument("--password-file", metavar="FILE", help="a file with the password on its first line")
    return parser


def _password(path: str | None, env: Mapping[str, str]) -> str | None:
    if path is None:
        return env.get("SHELLYPLUG_PASSWORD")
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline().rstrip("\r\n")
    except (OSError, UnicodeError) as error:
        raise Failure(f"--password-file {path}: {getattr(error, 'strerror', None) or error}", BAD_USAGE) from None


def _do(args: argparse.Namespace, plug: Plug, err: Callable[[str], None]) -> str:
    if args.verb == "status":
        return _status(plug, args.switch)
    if args.verb == "cycle":
        return cycle(plug, args.switch, args.delay_ms / 1000, err)
    if args.verb in ("on", "off"):
        plug.turn(args.switch, args.verb == "on")
    return word(plug.output(args.switch))


def main(argv: list[str], *, env: Mapping[str, str], out: Callable[[str], None], err: Callable[[str], None]) -> int:
    """The whole program: parse, do, print one answer on `out`, say on `err` what went wrong, return the exit code."""
    try:
        args = _parser(out).parse_args(argv)
        plug = Plug(args.device, password=_password(args.password_file, env), timeout_s=args.timeout_ms / 1000)
        out(_do(args, plug, err) + "\n")
        return OK
    except Failure as failure:
        err(f"shellyplug: {failure}\n")
        return failure.code
    except SystemExit:  # --help has been printed
        return OK


def _as_program() -> int:
    """Run as `python -m labd.helpers.shellyplug`. SIGTERM, which ends an overdue hook, is taken as Ctrl-C."""
    import signal

    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def writer(stream: TextIO) -> Callable[[str], None]:
        def write(text: str) -> None:
            stream.write(text)
            stream.flush()

        return write

    try:
        return main(sys.argv[1:], env=os.environ, out=writer(sys.stdout), err=writer(sys.stderr))
    except KeyboardInterrupt:
        writer(sys.stderr)("shellyplug: interrupted\n")
        return 130


if __name__ == "__main__":
    raise SystemExit(_as_program())
