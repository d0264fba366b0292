"""`labd netboot devices`: the interfaces that could lead to a board, on a made-up machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from labd import inventory
from labd.call import Call
from labd.operations.model import Args
from labd.operations.netboot import devices, devices_text
from tests.inventory.machine import FakeMachine


def test_the_default_route_is_left_out_and_active_ones_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = FakeMachine(tmp_path)
    machine.nic("enx1", carrier="0")
    machine.nic("enp4s0", usb=False)
    machine.nic("eth0", usb=False, default=True)
    monkeypatch.setattr(inventory, "this_machine", lambda: machine.machine)
    said: list[bytes] = []
    call = Call(face="cli", argv=[], cwd="/", env={}, out=said.append, err=said.append)
    rows = devices(call, Args({}))
    assert [(row["device"], row["active"], row["usb"]) for row in rows] == [
        ("enp4s0", True, False),
        ("enx1", False, True),
    ]
    assert devices_text(rows, call) == "enp4s0\t\tactive\nenx1\t\tinactive"
    assert b"eth0 carries this machine's default route and is left out" in said[0]
