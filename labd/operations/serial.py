"""`labd serial`: capture consoles, send to them, read back what they said. Configuration is in `serial_config`."""

from __future__ import annotations

from labd.errors import Refused, Usage
from labd.operations.consoles import who_of
from labd.operations.model import INTERFACE, TARGET, Operation, Param
from labd.operations.serial_config import SERIAL_CONFIG_OPERATIONS
from labd.operations.serial_connect import SERIAL_CONNECT
from labd.operations.serial_expect import SERIAL_EXPECT
from labd.operations.serial_hold import SERIAL_HOLD
from labd.operations.serial_lines import SERIAL_LINES
from labd.operations.serial_log import SERIAL_LOG
from labd.operations.serial_run import SERIAL_RUN
from labd.operations.serial_send import SERIAL_BREAK, SERIAL_SEND
from labd.operations.serial_show import SERIAL_SHOW, state_text
from labd.operations.serial_trigger import SERIAL_TRIGGERS
from labd.operations.serial_xfer import SERIAL_XFER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args


def watch(call: Call, args: Args) -> dict[str, Any]:
    """Open the interfaces and capture them; answers once they are open."""
    lab = call.lab()
    target = lab.resolve_target(args.target, call)
    interface = None if args.interface is None else lab.resolve_interface(target, args.interface, call)["name"]
    opened = call.hop(call.bench.watch, lab, target, interface, call.level)
    return {"target": target, "interfaces": opened}


def watch_text(data: dict[str, Any], call: Call) -> str:
    """One line an interface: what it resolved to."""
    return "\n".join(f"{data['target']}.{line['name']}: {state_text(line)}" for line in data["interfaces"])


def stop(call: Call, args: Args) -> dict[str, Any]:
    """Stop capturing; frees the ports. What was captured stays."""
    lab = call.lab()
    target = lab.resolve_target(args.target, call)
    interface = None if args.interface is None else lab.resolve_interface(target, args.interface, call)["name"]
    stopped = call.hop(call.bench.stop, lab, target, interface) if call.bench is not None else []
    if not stopped:
        call.note(f"{target} was not being captured; labd serial log {target} reads what was captured before")
    return {"target": target, "stopped": stopped}


def stop_text(data: dict[str, Any], call: Call) -> str | None:
    """What was stopped."""
    if not data["stopped"]:
        return None
    names = ", ".join(f"{data['target']}.{name}" for name in data["stopped"])
    return f"stopped {names}; labd {call.lab_words()}serial log {data['target']} still reads what was captured"


def devices(call: Call, args: Args) -> list[dict[str, Any]]:
    """This machine's serial ports."""
    from labd import platform

    found = platform.current().serial_ports()
    if not found:
        call.note("no serial port on this machine; a simulated one: --device loopback:uboot")
    return found


def devices_text(rows: list[dict[str, Any]], call: Call) -> str | None:
    """One line a port: the name to write into the lab, the node, what it is."""
    from labd.render import columns

    table = [
        (str(row.get("device") or row.get("path")), str(row.get("node") or ""), str(row.get("description") or ""))
        for row in rows
    ]
    return columns(table, call.columns, indent="") or None


def dtr(call: Call, args: Args) -> dict[str, Any]:
    """Press the DTR power button for a time."""
    lab = call.lab()
    target = lab.resolve_target(args.target, call)
    name = _button(call, target, args.interface)
    pulsed: dict[str, Any] = call.hop(call.bench.pulse_dtr, lab, target, name, args.ms, who_of(call))
    return pulsed


def dtr_text(data: dict[str, Any], call: Call) -> str:
    """What was done to which wire."""
    done, rests = ("asserted", "released") if data["pulsed"] else ("released", "asserted")
    return f"{data['target']}.{data['interface']}: DTR {done} for {data['ms']:g} ms; it rests {rests}"


def _button(call: Call, target: str, named: str | None) -> str:
    """The interface whose DTR is the target's power button. Raises Refused when none has opted in."""
    lab = call.lab()
    lines = {line["name"]: line for line in lab.serial(target)}
    buttons = [name for name, line in lines.items() if line.get("power_button")]
    power = lab.target(target).get("power", {})
    name = named or power.get("serial_interface") or (buttons[0] if len(buttons) == 1 else None)
    if name is None and len(buttons) > 1:
        raise Usage(f"{target} has several power buttons: {', '.join(buttons)}", hint="name one with -i")
    if name is None or not lab.resolve_interface(target, name, call).get("power_button"):
        name = name or next(iter(lines), "console")
        other = f"labd power-cycle {target}" if power.get("cycle_cmd") else f'labd serial send {target} "reboot"'
        raise Refused(
            f"{target}.{name} has not opted in to DTR as a power button; nothing was done",
            hint=f"{other}; or, where DTR is wired to the button: labd serial set {name} -t {target} --power-button",
        )
    return str(lab.resolve_interface(target, name, call)["name"])


def _pulse(verb: str, summary: str, example: tuple[str, str]) -> Operation:
    return Operation(
        ("serial", verb),
        summary,
        effect="actuate",
        where="daemon",
        params=(
            TARGET,
            Param(
                "ms",
                "how long: up to 500 is a soft press, 3000 and more a hard off, by convention",
                kind="float",
                flags=("--ms",),
                default=200.0,
                unit="ms",
                minimum=1,
                maximum=30000,
            ),
            INTERFACE,
        ),
        handler=dtr,
        text=dtr_text,
        doc="Only where the interface has opted in (labd serial set NAME -t TARGET --power-button), since DTR is wired "
        "to a button on some boards alone. A running board can be rebooted by its console: serial send TARGET reboot.",
        examples=(example,),
    )


OPERATIONS = (
    *SERIAL_CONFIG_OPERATIONS,
    Operation(
        ("serial", "watch"),
        "open the target's consoles and capture them",
        effect="actuate",
        where="daemon",
        params=(TARGET, INTERFACE),
        handler=watch,
        text=watch_text,
        doc="Answers when the ports are open and says what each device resolved to, or why it could not be opened. One "
        "watch owns all interfaces of the target; capture goes on until serial stop, over unplugs and reopens.",
        examples=(("labd serial watch pico", "capture all consoles of pico"), ("labd serial watch", "the sole target")),
    ),
    Operation(
        ("serial", "stop"),
        "stop capturing and free the ports",
        effect="actuate",
        params=(TARGET, INTERFACE),
        handler=stop,
        text=stop_text,
        doc="What was captured stays readable with serial log. A simulated board ends with its watch, and triggers do.",
        examples=(("labd serial stop pico", "free pico's ports for another program"),),
    ),
    SERIAL_SEND,
    SERIAL_BREAK,
    SERIAL_RUN,
    *SERIAL_TRIGGERS,
    SERIAL_EXPECT,
    SERIAL_LOG,
    SERIAL_LINES,
    SERIAL_SHOW,
    Operation(
        ("serial", "devices"),
        "list this machine's serial ports",
        effect="observe",
        handler=devices,
        text=devices_text,
        examples=(("labd serial devices", "what can be given to serial add --device"),),
    ),
    _pulse("dtr", "press the DTR power button", ("labd serial dtr pico --ms 3000", "hard off")),
    _pulse("reset", "soft reset by a short press of the DTR power button", ("labd serial reset pico", "a soft press")),
    SERIAL_CONNECT,
    SERIAL_HOLD,
    SERIAL_XFER,
)
