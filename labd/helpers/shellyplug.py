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
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from labd.helpers import _digest, _program
from labd.helpers._program import BAD_USAGE, FAILED, NO_SUCH, TIMED_OUT, UNREACHABLE, Failure, word

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
HOOK = 'labd power set -t TARGET --cycle-cmd "shellyplug -d HOST cycle" --state-cmd "shellyplug -d HOST state"'


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


def cycle(plug: Plug, switch: int, delay_s: float, say: Callable[[str], None]) -> str:
    """Off, wait, on; returns the line to print. Raises Failure, after all tries, when the power is not back."""
    if not plug.output(switch):
        say(f"{plug.device} switch {switch} was already off; it will be on afterwards")
    tries = 0

    def restore() -> None:
        nonlocal tries
        tries += 1
        # The plug's own timer may be about to do it, or has done it.
        if not plug.wait(switch, True, _program.RESTORE_PAUSE_S if tries == 1 else 0):
            plug.turn(switch, True)

    return _program.cycle(
        f"{plug.device} switch {switch}",
        lambda: plug.turn(switch, False, back_after_s=delay_s),
        restore,
        delay_s,
        say,
        f"shellyplug -d {plug.device} on {switch}",
    )


def _status(plug: Plug, switch: int) -> str:
    device, state = plug.rpc("Shelly.GetDeviceInfo"), plug.rpc("Switch.GetStatus", id=switch)
    return json.dumps({"device": device, "switch": state}, indent=2)


def _parser(out: Callable[[str], None]) -> _program.Words:
    parser = _program.Words("shellyplug", "Switch a Shelly plug or relay (Gen2 or newer) over its HTTP RPC.", USAGE,
                            EXAMPLES, HOOK, out)  # fmt: skip
    parser.add_argument(
        "-d", "--device", required=True, metavar="HOST", help="address of the plug, with :PORT if not 80"
    )
    parser.add_argument("verb", choices=("state", "on", "off", "cycle", "status"), help="what to do")
    parser.add_argument("switch", nargs="?", default=0, type=_program.number(0, 255), metavar="ID",
                        help="which switch of the device (default 0)")  # fmt: skip
    parser.add_times(6000)
    parser.add_argument("--password-file", metavar="FILE", help="a file with the password on its first line")
    return parser


def _do(args: argparse.Namespace, env: Mapping[str, str], say: Callable[[str], None]) -> str:
    path = args.password_file
    password = env.get("SHELLYPLUG_PASSWORD") if path is None else _program.first_line("--password-file", path)
    plug = Plug(args.device, password=password, timeout_s=args.timeout_ms / 1000)
    if args.verb == "status":
        return _status(plug, args.switch)
    if args.verb == "cycle":
        return cycle(plug, args.switch, args.delay_ms / 1000, say)
    if args.verb in ("on", "off"):
        plug.turn(args.switch, args.verb == "on")
    return word(plug.output(args.switch))


def main(argv: list[str], *, env: Mapping[str, str], out: Callable[[str], None], err: Callable[[str], None]) -> int:
    """The whole program: parse, do, print one answer on `out`, say on `err` what went wrong, return the exit code."""

    def say(text: str) -> None:
        err(f"shellyplug: {text}\n")

    return _program.answered("shellyplug", lambda: _do(_parser(out).parse_args(argv), env, say), out, err)


if __name__ == "__main__":
    raise SystemExit(_program.run("shellyplug", main))
