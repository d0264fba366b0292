"""This machine as a USB keyboard and pointer: reports through a real gadget, seen at the target's end by evdev."""

from __future__ import annotations

import struct

from tests.labvm.conftest import soon
from tests.labvm.vm import LabVm

#: linux/input-event-codes.h
EV_KEY, EV_ABS, ABS_X, ABS_Y, SHIFT = 1, 3, 0, 1, 42
CODES = {"H": 35, "e": 18, "l": 38, "o": 24, " ": 57, "4": 5, "2": 3, "\n": 28}


def test_what_is_typed_and_where_is_pointed_arrives_at_the_target_as_sent(vm: LabVm):
    vm.labd("helper", "hidgadget", "setup")
    inputs = "grep -l 'labd keyboard and pointer' /sys/class/input/event*/device/name"
    soon("the target's keyboard and pointer", lambda: len(vm.sh(inputs, check=False).out.split()) >= 2)
    names = [path.split("/")[4] for path in vm.sh(inputs).out.split()]
    vm.sh("".join(f"cat /dev/input/{name} >/run/{name}.raw & echo $! >/run/{name}.pid; " for name in names))
    vm.labd("hid", "send", "-t", "pc", "type", "Hello 42")
    vm.labd("hid", "send", "-t", "pc", "key", "enter")
    vm.labd("hid", "send", "-t", "pc", "moveabs", "12345", "6789")
    vm.sh("sleep 0.5; kill $(cat /run/event*.pid)")
    events = []
    for name in names:
        raw = vm.sh(f"cat /run/{name}.raw").raw
        events += [struct.unpack("<HHi", raw[at + 16 : at + 24]) for at in range(0, len(raw), 24)]
    pressed = [code for kind, code, value in events if kind == EV_KEY and value == 1]
    assert [code for code in pressed if code != SHIFT] == [CODES[char] for char in "Hello 42\n"]
    assert pressed[0] == SHIFT and pressed.count(SHIFT) == 1
    released = [code for kind, code, value in events if kind == EV_KEY and value == 0]
    assert sorted(released) == sorted(pressed), "nothing stays pressed"
    assert (EV_ABS, ABS_X, 12345) in events and (EV_ABS, ABS_Y, 6789) in events
