"""What the owner of a player may ask on its standard input, one request a line, each answered by one JSON line.

    {"fault": "unplug"}                        the near end hangs up, its node and symlink go
    {"fault": "replug"}                        it comes back under another node: answers "tty"
    {"fault": "wander", "ms": 300}             unplug now, replug so much later
    {"fault": "stall", "ms": 500}              nothing is carried for so long (without ms: until resume)
    {"fault": "resume"}
    {"fault": "drop", "count": 3}              the next 3 bytes vanish; "every": 7 = each 7th from now on
    {"fault": "flip", "every": 100, "bit": 0}  the same, but a bit is inverted
    {"fault": "fifo", "bytes": 64}             the size of the receivers' FIFOs
    {"fault": "baud", "baud": 9600}            the speed of the line from now on, 0 = unpaced
    {"fault": "clear"}                         no more stall, drop or flip
    {"power": "off" | "on" | "cycle"}          the board's supply; on boots it
    {"lines": {"dsr": true, "ri": false}}      the modem lines DSR, CD and RI of a port served by --rfc2217
    {"say": "text"}                            the board sends exactly these bytes (characters U+0000 to U+00FF)
    {"stats": true}                            counts of bytes and boots, the board's state
    {"quit": true}

drop and flip take "above": only bytes that come faster than so many a second, beyond a burst of 8.
drop, flip and stall take "direction": "to_host" (default; what the board sends), "to_dut" or "both". Any request may
carry an "id", which its answer repeats. Answers are {"ok": true, …} or {"ok": false, "error": …, "near": […]}.
For people the same in words: `unplug`, `drop every=7 direction=both`, `power cycle`, `lines dsr=1 ri=0`, `say hello`,
`stats`, `quit`.

Pure: text in, a checked request out. `loopback.player` acts on it.
"""

from __future__ import annotations

import json
from typing import Any

from .strict import near

FAULTS: dict[str, dict[str, type]] = {
    "unplug": {},
    "replug": {},
    "wander": {"ms": int},
    "stall": {"ms": int, "direction": str},
    "resume": {},
    "drop": {"count": int, "every": int, "above": int, "direction": str},
    "flip": {"count": int, "every": int, "bit": int, "above": int, "direction": str},
    "fifo": {"bytes": int},
    "baud": {"baud": int},
    "clear": {},
}
VERBS = ("fault", "power", "lines", "say", "stats", "quit")
DIRECTIONS = ("to_host", "to_dut", "both")
LINES = ("dsr", "cd", "ri")
POWER = ("off", "on", "cycle")


class ControlError(ValueError):
    """A request that can't be understood; `near` are near matches, `id` is the request's, if it had one."""

    def __init__(self, message: str, near_names: list[str] | None = None, request_id: Any = None) -> None:
        super().__init__(message)
        self.near = near_names or []
        self.id = request_id


def parse(line: str) -> dict[str, Any] | None:
    """The request that `line` holds, None for a blank line. Raises ControlError."""
    line = line.strip()
    if not line:
        return None
    request = _json(line) if line.startswith("{") else _words(line)
    try:
        return _check(request)
    except ControlError as error:
        error.id = request.get("id")
        raise


def _json(line: str) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except ValueError as error:
        raise ControlError(f"not JSON: {error}") from None
    assert isinstance(request, dict)
    return request


def _words(line: str) -> dict[str, Any]:
    verb, _, rest = line.partition(" ")
    if verb == "say":
        return {"say": rest + "\r\n"}
    if verb == "power":
        return {"power": rest.strip()}
    if verb in ("stats", "quit"):
        return {verb: True}
    request: dict[str, Any] = {"fault": verb}
    if verb == "lines":
        pairs = [word.partition("=") for word in rest.split()]
        return {"lines": {name: {"0": False, "1": True}.get(value, value) for name, _, value in pairs}}
    for word in rest.split():
        key, equals, value = word.partition("=")
        if not equals:
            raise ControlError(f"{word!r} is no name=value")
        request[key] = int(value) if value.isdigit() else value
    return request


def _check(request: dict[str, Any]) -> dict[str, Any]:
    verbs = [verb for verb in VERBS if verb in request]
    if len(verbs) != 1:
        unknown = next((key for key in request if key != "id"), "")
        raise ControlError(f"one of {', '.join(VERBS)} is required", near(unknown, VERBS))
    verb = verbs[0]
    allowed: dict[str, type] = {}
    if verb == "fault":
        name = request["fault"]
        if not isinstance(name, str) or name not in FAULTS:
            raise ControlError(f"no fault is named {name!r}", near(str(name), [*FAULTS, *VERBS]))
        allowed = FAULTS[name]
    for key, value in request.items():
        if key in ("id", verb):
            continue
        if key not in allowed:
            raise ControlError(f"unknown key {key!r}", near(key, allowed))
        if not isinstance(value, allowed[key]) or isinstance(value, bool):
            raise ControlError(f"{key}: expected {allowed[key].__name__}, got {value!r}")
    _check_values(verb, request)
    return request


def _check_values(verb: str, request: dict[str, Any]) -> None:
    if verb == "power" and request["power"] not in POWER:
        raise ControlError(f"power is one of {', '.join(POWER)}", near(str(request["power"]), POWER))
    if verb == "say" and not (isinstance(request["say"], str) and all(ord(char) < 256 for char in request["say"])):
        raise ControlError("say takes a string of characters U+0000 to U+00FF, each one byte")
    if verb == "lines":
        _check_lines(request["lines"])
    if verb != "fault":
        return
    for key in ("ms", "count", "every", "bytes", "baud", "above"):
        if request.get(key, 0) < 0:
            raise ControlError(f"{key}: {request[key]} is negative")
    if request.get("direction", "both") not in DIRECTIONS:
        raise ControlError(f"direction is one of {', '.join(DIRECTIONS)}", near(request["direction"], DIRECTIONS))
    if not 0 <= request.get("bit", 0) <= 7:
        raise ControlError("bit is 0 to 7")
    need = {
        "drop": ("count", "every"),
        "flip": ("count", "every"),
        "fifo": ("bytes",),
        "baud": ("baud",),
        "wander": ("ms",),
    }
    wanted = need.get(request["fault"], ())
    if wanted and sum(key in request for key in wanted) != 1:
        raise ControlError(f"{request['fault']} takes one of {', '.join(wanted)}")


def _check_lines(lines: Any) -> None:
    if not isinstance(lines, dict) or not lines:
        raise ControlError('lines takes an object, such as {"dsr": true}')
    for name, level in lines.items():
        if name not in LINES:
            raise ControlError(f"no line {name!r} can be set", near(name, LINES))
        if not isinstance(level, bool):
            raise ControlError(f"{name}: expected true or false, got {level!r}")
