"""`labd serial lines`: the modem lines of a captured console, shown as they are now, and DTR and RTS driven. Light."""

from __future__ import annotations

from labd.errors import Refused
from labd.operations.model import INTERFACE, TARGET, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args

LEVELS = ("on", "off")
OUTPUTS = ("dtr", "rts")
INPUTS = ("cts", "dsr", "dcd", "ri")


def lines(call: Call, args: Args) -> dict[str, Any]:
    """Set what was asked for, then read them all."""
    lab = call.lab()
    target = lab.resolve_target(args.target, call)
    interface = lab.resolve_interface(target, args.interface, call)
    name = interface["name"]
    wanted = {wire: level == "on" for wire, level in args.given(*OUTPUTS).items()}
    if "dtr" in wanted and not interface.get("power_button"):
        raise Refused(
            f"{target}.{name} has not opted in to DTR, which resets some boards; nothing was done",
            hint=f"where DTR is wired to the board's button: labd serial set {name} -t {target} --power-button; "
            f"for a level from the open on: labd serial set {name} -t {target} --assert-dtr false",
        )
    if wanted:
        who = {"face": call.face, "pid": call.caller.get("pid")}
        found: dict[str, Any] = call.hop(call.bench.set_lines, lab, target, name, wanted, who)
    else:
        found = call.hop(call.bench.lines, lab, target, name)
    signal = interface.get("power_sense_signal")
    level = found.get(signal) if signal else None
    return {**found, "sense": signal, "power_on": None if level is None else not level}


def lines_text(data: dict[str, Any], call: Call) -> str:
    """Two lines: what we drive, what the board answers; then the power, where a line tells it."""

    def words(wires: tuple[str, ...]) -> str:
        return "  ".join(f"{wire.upper()} {_word(data[wire])}" for wire in wires)

    where = f"{data['target']}.{data['interface']}"
    text = f"{where}: driven here  {words(OUTPUTS)}\n{where}: driven there {words(INPUTS)}"
    if data["power_on"] is not None:
        level = "asserted" if data[data["sense"]] else "not asserted"
        text += f"\n{where}: power {'on' if data['power_on'] else 'off'} ({data['sense'].upper()} is {level})"
    return text


def _word(level: bool | None) -> str:
    return "unknown" if level is None else "on" if level else "off"


SERIAL_LINES = Operation(
    ("serial", "lines"),
    "show the modem lines; drive DTR and RTS",
    effect="observe",
    acting=OUTPUTS,
    where="daemon",
    params=(
        TARGET,
        INTERFACE,
        Param("dtr", "drive DTR; only where it is a power button", kind="choice", flags=("--dtr",), choices=LEVELS),
        Param("rts", "drive RTS", kind="choice", flags=("--rts",), choices=LEVELS),
    ),
    handler=lines,
    text=lines_text,
    doc="On means asserted. The lines are read from the port at this moment, so watch first; over RFC 2217 the server "
    "is asked. Of the line that follows the board's power (serial set --sense), off means that the power is on, as the "
    "inputs are active low. What is driven stays until the port is opened again, which sets both as the lab says "
    "(assert_dtr, assert_rts). A PTY, a simulated board's too, has no modem lines: exit 7.",
    examples=(
        ("labd serial lines pico", "all six, and whether the board has power"),
        ("labd serial lines pico --rts off", "release RTS"),
    ),
)
