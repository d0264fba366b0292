"""Which effects are permitted: pure rules, no I/O. The shim asks; nobody else decides.

Levels, from strict to free (design section 7). Every effect needs a level; the strictest of all that speak
(environment, lab file, target, the daemon's own) is in force. Fails closed: an unknown level is an error.
"""

from __future__ import annotations

from labd.errors import Refused, Usage, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from labd.operations.model import Operation

LEVELS = ("help", "observe", "config", "simulated", "bench")

#: Effect → the level that it needs. `actuate` needs `bench` unless all that it addresses is simulated.
NEEDS = {"help": "help", "observe": "observe", "config": "config", "actuate": "bench", "admin": "simulated"}

#: Devices with these prefixes are simulations: acting on them can't hurt a board.
SIMULATED = ("loopback:", "board:")

#: First words of operations that act through hooks → the channel whose commands they run.
HOOKED = {"power": "power", "power-cycle": "power", "power-state": "power", "hid": "hid"}


def addressed(noun: str, table: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a call of `noun` acts on, of a target's `table` and its serial `lines`: devices, and commands of hooks.

    A hook that can reach nothing but the target's own virtual board stands for that. Empty: nothing is known.
    """
    if noun == "serial":
        return [line["device"] for line in lines]
    if noun == "video":
        return [table["video"]["device"]] if "device" in table.get("video", {}) else []
    channel = HOOKED.get(noun)
    if channel is None:
        return []
    from labd.lab.model import virtual_board

    board = virtual_board(table)
    commands = [str(value) for key, value in table.get(channel, {}).items() if key.endswith("cmd")]
    sensed = [line["device"] for line in lines if channel == "power" and line["power_sense_signal"]]
    return [board if board and _own_board(command) else command for command in commands] + sensed


def _own_board(command: str) -> bool:
    """Whether a hook is the helper `qmp` with no socket of its own choice: it then talks to the target's board."""
    from labd.lab import hooks

    try:
        taken = hooks.take_apart(command)
    except ValueError:
        return False
    return not taken.shell and taken.words[0] == "qmp" and not any(word.startswith("--s") for word in taken.words)


def needed(operation: Operation, devices: list[str], effect: str = "") -> str:
    """The level that `operation` needs when it acts on `devices` (see `addressed`; empty: the worst is assumed).

    `effect` is that of the call, where it differs from the operation's.
    """
    effect = effect or operation.effect
    simulated = bool(devices) and all(device.startswith(SIMULATED) for device in devices)
    if effect == "actuate" and simulated:
        return "simulated"
    return NEEDS[effect]


def in_force(sources: list[tuple[str, str]]) -> tuple[str, str]:
    """The strictest of `sources` (who says it, level): (level, who). Nobody speaking means `bench`.

    Raises Usage for a level that does not exist.
    """
    strictest = ("bench", "the default")
    for who, level in sources:
        if level not in LEVELS:
            raise Usage(f"{who} asks for an unknown policy level {level!r}; the levels are {', '.join(LEVELS)}",
                        near=nearest(level, list(LEVELS)))  # fmt: skip
        if LEVELS.index(level) < LEVELS.index(strictest[0]):
            strictest = (level, who)
    return strictest


def permits(level: str, need: str) -> bool:
    """Whether `level` is at least `need`."""
    return LEVELS.index(need) <= LEVELS.index(level)


def check(operation: Operation, level: str, who: str, need: str) -> None:
    """Raise Refused, naming what would permit it, when `need` is above `level`."""
    if not permits(level, need):
        raise refusal(operation.name, level, who, need)


def refusal(name: str, level: str, who: str, need: str) -> Refused:
    """What to say to somebody who may not."""
    return Refused(
        f"labd {name} is refused: it needs policy level {need!r} and {who} sets {level!r}; nothing ran",
        hint=_way_out(who, need),
    )


def _way_out(who: str, need: str) -> str:
    if who == "LABD_POLICY":
        return f"ask whoever set LABD_POLICY in this environment; LABD_POLICY={need} would permit it"
    if who == "the running daemon":
        return f"start it with LABD_POLICY={need}, after labd daemons stop"
    return f"set level = {need!r} there with an editor, if that is yours to decide"
