"""a virtual machine through QEMU's QMP socket: power on, off, cycle, state; a screenshot; keyboard and mouse.

A program of its own (`labd helper qmp …`) and what power and input hooks call. QEMU itself remembers what is held
down. `off` keeps the process: the machine is stopped and reset, as if its power had been cut.
"""

import argparse
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from labd.errors import LabdError, TimedOut, Unreachable, Usage
from labd.helpers import _input
from labd.helpers._qmp import Qmp
from labd.hid import keys
from labd.hid.device import Pace
from labd.hid.words import BUTTONS
from labd.lab.model import quoted

#: Seconds for a change of power to show in QEMU's own state.
SETTLE_S = 3.0
#: What QEMU's run states mean for somebody who looks at a power light; the others are on.
OFF_STATES = ("prelaunch", "shutdown")

#: Seconds for each press and release of a typed character. QEMU queues 16 for a USB keyboard and drops what is more,
#: without a word; firmware fetches one each 10 to 20 ms.
EVENT_S = 0.02

USAGE = (
    "qmp [--socket PATH] on|off|cycle [--delay-ms MS]|state|shot FILE, or WORDS for keyboard and mouse. PATH is the "
    "machine's QMP socket (default $LABD_QMP). state prints on or off and nothing else. off stops and resets the "
    "machine, on lets it run, cycle is off for MS (default 300) and on; each is read back from QEMU. shot writes a "
    "PNG (PPM where FILE ends in .ppm). WORDS are those of labd hid send; moveabs needs a machine with a tablet. Exit "
    "codes: 0 done and read back, 1 QEMU refused, 2 bad usage, 5 no answer in time, 6 somebody else is talking to it, "
    "7 no QEMU there."
)
EXAMPLES = (
    ("qmp --socket /run/vm/qmp state", "on or off, and nothing else"),
    ("qmp --socket /run/vm/qmp cycle", "off, then on"),
    ("qmp --socket /run/vm/qmp shot now.png", "what the screen shows"),
    ("qmp --socket /run/vm/qmp type hello", "type on its keyboard"),
    ("qmp --socket /run/vm/qmp key ctrl-alt-delete", "keys together"),
)

_QCODES = {
    "enter": "ret", "escape": "esc", "space": "spc", "equals": "equal", "left_bracket": "bracket_left",
    "right_bracket": "bracket_right", "quote": "apostrophe", "period": "dot", "forward_slash": "slash",
    "print_screen": "print", "page_up": "pgup", "page_down": "pgdn", "right_arrow": "right", "left_arrow": "left",
    "down_arrow": "down", "up_arrow": "up", "keypad_numlock": "num_lock", "keypad_forward_slash": "kp_divide",
    "keypad_asterisk": "kp_multiply", "keypad_minus": "kp_subtract", "keypad_plus": "kp_add",
    "keypad_enter": "kp_enter", "keypad_period": "kp_decimal", "keypad_backslash": "less", "application": "compose",
    "keypad_equals": "kp_equals", "left_control": "ctrl", "left_shift": "shift", "left_alt": "alt",
    "left_gui": "meta_l", "right_control": "ctrl_r", "right_shift": "shift_r", "right_alt": "alt_r",
    "right_gui": "meta_r",
}  # fmt: skip


def _qcode(usage: int) -> str:
    name = keys.name_of(usage)
    if 0x59 <= usage <= 0x62:
        return f"kp_{(usage - 0x58) % 10}"
    return _QCODES.get(name, name)


#: Usage → QEMU's name of the key (qapi/ui.json, QKeyCode); the non-US # and F13 on are not among them.
QCODES = {usage: _qcode(usage) for usage in dict.fromkeys(keys.NAMED.values())
          if usage != 0x32 and not 0x68 <= usage <= 0x73}  # fmt: skip


class Machine:
    """A QEMU's power, and its keyboard and mouse as an input device."""

    implementation = "qmp move moveabs"
    most_keys = None
    lacks = frozenset(keys.NAMED.values()) - set(QCODES)

    def __init__(self, qmp: Qmp) -> None:
        self.qmp = qmp

    # --- power -------------------------------------------------------------------------------------------------------

    def status(self) -> str:
        """QEMU's run state."""
        return str(self.qmp("query-status")["status"])

    def is_on(self) -> bool:
        """Whether it has power: paused and crashed machines have."""
        return self.status() not in OFF_STATES

    def off(self) -> None:
        """Stop and reset, as a cut of the power. Raises TimedOut when QEMU does not come to say so."""
        if self.is_on():
            self.qmp("stop")
            self.qmp("system_reset")
        self._until(False)

    def on(self) -> None:
        """Let it run; a machine that was shut down starts anew. Raises TimedOut when QEMU does not come to say so."""
        if self.status() in ("shutdown", "guest-panicked"):
            self.qmp("system_reset")
        if self.status() != "running":
            self.qmp("cont")
        self._until(True)

    def _until(self, on: bool) -> None:
        end = time.monotonic() + SETTLE_S
        while (self.status() == "running") is not on if on else self.is_on():
            if time.monotonic() > end:
                raise TimedOut(f"QEMU took the command, but its state is still {self.status()!r}")
            time.sleep(0.01)

    # --- the screen --------------------------------------------------------------------------------------------------

    def shot(self, path: str) -> None:
        """Write what the screen shows now to `path`; nothing half-written is left. Raises LabdError."""
        scratch = f"{os.path.abspath(path)}.{os.getpid()}.part"
        form = {} if path.endswith(".ppm") else {"format": "png"}
        try:
            self.qmp("screendump", filename=scratch, **form)
            os.replace(scratch, path)
        except OSError as error:
            raise LabdError(f"{path}: {error.strerror}") from None
        finally:
            if os.path.exists(scratch):
                os.unlink(scratch)

    # --- keyboard and mouse ------------------------------------------------------------------------------------------

    def keys(self, held: Sequence[int], before: Sequence[int]) -> None:
        """Exactly these keys are down now."""
        gone = [key for key in reversed(before) if key not in held]
        come = [key for key in held if key not in before]
        self._send([_key(key, False) for key in gone] + [_key(key, True) for key in come])

    def buttons(self, held: Collection[str], before: Collection[str]) -> None:
        """Exactly these mouse buttons are down now."""
        self._send([_button(name, name in held) for name in BUTTONS if (name in held) is not (name in before)])

    def move(self, dx: int, dy: int, held: Collection[str]) -> None:
        """Move the mouse by this."""
        self._send([_axis("rel", axis, by) for axis, by in (("x", dx), ("y", dy)) if by])

    def point(self, x: int, y: int, held: Collection[str]) -> None:
        """Put the tablet's pointer there."""
        self._send([_axis("abs", "x", x), _axis("abs", "y", y)])

    def scroll(self, notches: int, held: Collection[str]) -> None:
        """Turn the wheel."""
        wheel = "wheel-up" if notches > 0 else "wheel-down"
        for _ in range(abs(notches)):
            self._send([_button(wheel, True)])
            self._send([_button(wheel, False)])

    def release_all(self) -> None:
        """Let go of everything; as QEMU does not tell what is held, every button and key is released, one by one."""
        self._send([_button(name, False) for name in BUTTONS])
        for key in sorted(QCODES, reverse=True):  # modifiers first
            self._send([_key(key, False)])
            time.sleep(EVENT_S)

    def ping(self) -> None:
        """Raise unless QEMU answers."""
        self.status()

    def ready(self) -> None:
        """Raise unless the machine runs: QEMU takes keys for one that is off, and drops them."""
        status = self.status()
        if status != "running":
            raise Unreachable(f"the machine does not run ({status}), so nothing reaches it; nothing was sent",
                              hint=f"labd helper qmp --socket {quoted(self.qmp.path)} on")  # fmt: skip

    def settled(self) -> None:
        """QEMU has answered each event."""

    def _send(self, events: list[dict[str, Any]]) -> None:
        if not events:
            return
        try:
            self.qmp("input-send-event", events=events)
        except LabdError as error:
            if "andler not found" in error.message:
                what = "an absolute pointer (-device usb-tablet)" if events[0]["type"] == "abs" else "such a device"
                raise LabdError(f"this machine lacks {what}: {error.message}") from None
            raise


def _key(usage: int, down: bool) -> dict[str, Any]:
    return {"type": "key", "data": {"down": down, "key": {"type": "qcode", "data": QCODES[usage]}}}


def _button(name: str, down: bool) -> dict[str, Any]:
    return {"type": "btn", "data": {"button": name, "down": down}}


def _axis(kind: str, axis: str, value: int) -> dict[str, Any]:
    return {"type": kind, "data": {"axis": axis, "value": value}}


def _switch(verb: str) -> Callable[[Sequence[str]], _input.Act]:
    def make(said: Sequence[str]) -> _input.Act:
        _nothing_more(verb, said)

        def act(machine: Machine) -> str:
            (machine.on if verb == "on" else machine.off)()
            return _state(machine)

        return act

    return make


def _cycle(said: Sequence[str]) -> _input.Act:
    delay_s = _input.number(said, "--delay-ms", 300, 0, 600_000) / 1000

    def act(machine: Machine) -> str:
        try:
            machine.off()
            time.sleep(delay_s)
        finally:
            machine.on()
        return _state(machine)

    return act


def _asked(said: Sequence[str]) -> _input.Act:
    _nothing_more("state", said)
    return _state


def _state(machine: Machine) -> str:
    return "on\n" if machine.is_on() else "off\n"


def _nothing_more(verb: str, said: Sequence[str]) -> None:
    if said:
        raise Usage(f"{verb} takes no words: {' '.join(said)}")


def _shot(said: Sequence[str]) -> _input.Act:
    if len(said) != 1:
        raise Usage("shot takes one FILE")

    def act(machine: Machine) -> str:
        machine.shot(said[0])
        return f"{said[0]}\n"

    return act


def _address(args: argparse.Namespace, env: Mapping[str, str]) -> str:
    path = args.socket or env.get("LABD_QMP")
    if not path:
        raise Usage("which machine? give --socket PATH, or set LABD_QMP", hint="labd helper qmp --help")
    return os.path.abspath(path)


@contextmanager
def _connect(args: argparse.Namespace, address: str, place: str) -> Iterator[Machine]:
    with Qmp(address) as qmp:
        yield Machine(qmp)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--socket", metavar="PATH", help="the machine's QMP socket (default $LABD_QMP)")


PROGRAM = _input.Program(
    name="qmp",
    summary="Power, screen, keyboard and mouse of a virtual machine, through QEMU's QMP socket.",
    usage=USAGE,
    examples=EXAMPLES,
    options=_options,
    address=_address,
    connect=_connect,
    own={"on": _switch("on"), "off": _switch("off"), "cycle": _cycle, "state": _asked, "shot": _shot},
    pace=Pace(char_hold=EVENT_S, char_gap=EVENT_S, further=EVENT_S),
    remembers=True,
)

if __name__ == "__main__":
    raise SystemExit(_input.as_program(PROGRAM))
