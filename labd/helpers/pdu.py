"""switches an outlet of a network PDU through labgrid's back ends, some thirty models: state, on, off, cycle, models.

A program of its own (`labd helper pdu …`, `python -m labd.helpers.pdu …`) and what a power hook calls. The models are
the modules of `labgrid.driver.power`, which come with the extra `pdu`; each has power_set and power_get of a host and
an outlet. After each change it asks the PDU again: exit 0 means that the PDU itself says so.
"""

import argparse
import importlib
import importlib.util
import os
import signal
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from labd.helpers import _program
from labd.helpers._program import BAD_USAGE, FAILED, NO_SUCH, TIMED_OUT, UNREACHABLE, Failure, word

#: How long a change may take to show in the PDU's own answer, in seconds.
SETTLE_S = 5.0

USAGE = (
    "pdu -m MODEL -d HOST state|on|off|cycle OUTLET [--delay-ms MS] [--timeout-ms MS]; pdu models. MODEL is one of "
    "labgrid's power back ends (pdu models lists them); HOST is what that back end wants: an address, or a URL where "
    "it takes one; @FILE takes it from the first line of a file, as a URL may hold a password. OUTLET is the outlet as "
    "the back end counts it. --delay-ms is how long a cycle leaves the power off (200 to 600000, default 3000). state "
    "prints on or off and nothing else. Exit codes: 0 done and read back from the PDU, 1 it did not do it, 2 bad "
    "usage, 4 no such model, 5 no answer in time, 7 unreachable, or labgrid is not installed (pip install 'labd[pdu]')."
)
EXAMPLES = (
    ("pdu models", "the models that can be switched"),
    ("pdu -m netio -d 192.0.2.50 state 3", "on or off, and nothing else"),
    ("pdu -m apc -d 192.0.2.51 cycle 5", "off for 3 s, then on; exit 0 only if it is on again"),
    ("pdu -m rest -d @/etc/pdu-url on 1", "the URL, with its password, out of a file"),
)
HOOK = 'labd power set -t TARGET --cycle-cmd "pdu -m MODEL -d HOST cycle 5" --state-cmd "pdu -m MODEL -d HOST state 5"'


class Pdu:
    """One PDU: labgrid's back end for its model, and where it is."""

    def __init__(self, model: str, host: str, timeout_s: float) -> None:
        self.model = model
        self.backend = _backend(model)
        self.timeout_s = timeout_s
        self.host, self.port = host, None
        if hasattr(self.backend, "PORT"):  # as labgrid does: such a back end wants both apart
            parts = urlsplit(host if "//" in host else f"//{host}")
            try:
                self.host, self.port = parts.hostname or host, parts.port or self.backend.PORT
            except ValueError as error:
                raise Failure(f"-d {host}: {error}", BAD_USAGE) from None

    def on(self, outlet: str) -> bool:
        """Whether an outlet is on, as the PDU itself says."""
        return bool(self._call(self.backend.power_get, outlet))

    def turn(self, outlet: str, on: bool) -> None:
        """Switch and read back, with time to follow. Raises Failure if it did not."""
        self._call(self.backend.power_set, outlet, on)
        end = time.monotonic() + SETTLE_S
        while self.on(outlet) != on:
            if time.monotonic() >= end:
                raise Failure(f"the PDU took the command, but outlet {outlet} is still {word(not on)}", FAILED)
            time.sleep(0.2)

    def _call(self, function: Callable[..., Any], outlet: str, *value: bool) -> Any:
        """Call the back end, which has no time limit of its own. Raises Failure for whatever it raises."""
        before = signal.signal(signal.SIGALRM, self._late)
        signal.setitimer(signal.ITIMER_REAL, self.timeout_s)
        try:
            return function(self.host, self.port, outlet, *value)
        except (Failure, KeyboardInterrupt):
            raise
        except Exception as error:
            raise _failure(self.model, outlet, error) from None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _late(self, *_: Any) -> None:
        raise Failure(f"the PDU did not answer within {self.timeout_s:g} s", TIMED_OUT)


def models() -> list[str]:
    """The models that labgrid can switch. Raises Failure when it is not installed."""
    folder = os.path.join(_labgrid(), "driver", "power")
    names = (os.path.splitext(entry) for entry in os.listdir(folder))
    return sorted(name for name, extension in names if extension == ".py" and name != "__init__")


def _labgrid() -> str:
    spec = importlib.util.find_spec("labgrid")
    if spec is None or not spec.submodule_search_locations:
        raise Failure("labgrid, whose back ends this uses, is not installed; try: pip install 'labd[pdu]'", UNREACHABLE)
    return next(iter(spec.submodule_search_locations))


def _backend(model: str) -> ModuleType:
    known = models()
    if model not in known:
        raise Failure(f"labgrid has no power back end {model!r}; it has {', '.join(known)}", NO_SUCH)
    try:
        return importlib.import_module(f"labgrid.driver.power.{model}")
    except ImportError as error:
        raise Failure(f"the back end {model} needs {error.name}; try: pip install {error.name}", UNREACHABLE) from None


def _failure(model: str, outlet: str, error: Exception) -> Failure:
    """What a back end raised, as a line that tells no secret of a URL."""
    if isinstance(error, (AssertionError, ValueError, KeyError, IndexError)):
        return Failure(f"the back end {model} does not take outlet {outlet!r} or this host, or did not understand the "
                       f"PDU ({type(error).__name__})", FAILED)  # fmt: skip
    if isinstance(error, OSError):  # requests' errors are OSErrors too
        return Failure(f"the PDU is unreachable: {type(error).__name__}", UNREACHABLE)
    return Failure(f"the back end {model} failed: {type(error).__name__}: {str(error)[:200]}", FAILED)


def _parser(out: Callable[[str], None]) -> _program.Words:
    parser = _program.Words("pdu", "Switch an outlet of a network PDU through labgrid's back ends.", USAGE, EXAMPLES,
                            HOOK, out)  # fmt: skip
    parser.add_argument("-m", "--model", metavar="MODEL", help="labgrid's name of the model")
    parser.add_argument("-d", "--device", metavar="HOST", help="address or URL of the PDU; @FILE: out of a file")
    parser.add_argument("verb", choices=("state", "on", "off", "cycle", "models"), help="what to do")
    parser.add_argument("outlet", nargs="?", metavar="OUTLET", help="which outlet of it")
    parser.add_times(10_000)
    return parser


def _do(parser: _program.Words, args: argparse.Namespace, say: Callable[[str], None]) -> str:
    if args.verb == "models":
        return "\n".join(models())
    if not args.model or not args.device or args.outlet is None:
        parser.error(f"{args.verb} needs -m MODEL, -d HOST and OUTLET")
    host = _program.first_line("-d @", args.device[1:]) if args.device.startswith("@") else args.device
    pdu = Pdu(args.model, host, args.timeout_ms / 1000)
    if args.verb == "cycle":
        undo = f"pdu -m {args.model} -d {args.device} on {args.outlet}"
        return _program.cycle(f"outlet {args.outlet}", lambda: pdu.turn(args.outlet, False),
                              lambda: pdu.turn(args.outlet, True), args.delay_ms / 1000, say, undo)  # fmt: skip
    if args.verb in ("on", "off"):
        pdu.turn(args.outlet, args.verb == "on")
    return word(pdu.on(args.outlet))


def main(argv: list[str], *, env: Mapping[str, str], out: Callable[[str], None], err: Callable[[str], None]) -> int:
    """The whole program: parse, do, print one answer on `out`, say on `err` what went wrong, return the exit code."""

    def do() -> str:
        parser = _parser(out)
        return _do(parser, parser.parse_args(argv), lambda text: err(f"pdu: {text}\n"))

    return _program.answered("pdu", do, out, err)


if __name__ == "__main__":
    raise SystemExit(_program.run("pdu", main))
