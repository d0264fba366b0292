"""A USB serial adapter with Linux's own driver: named, captured, pulled out, plugged in again."""

from __future__ import annotations

from typing import Any

from tests.labvm.conftest import soon
from tests.labvm.vm import LabVm


def console_of(vm: LabVm) -> dict[str, Any]:
    found: list[dict[str, Any]] = vm.json("daemons")["channels"]
    return found[0] if found else {}


def test_an_adapter_is_named_captured_and_found_again_after_it_was_pulled_out(vm: LabVm):
    board = vm.cable()
    board.settimeout(60)
    vm.plug_in()
    soon("the adapter", lambda: vm.sh("test -e /dev/ttyUSB0", check=False).code == 0)
    (port,) = [port for port in vm.json("serial", "devices") if port["node"] == "/dev/ttyUSB0"]
    assert (port["vid"], port["pid"], port["serial"], port["driver"]) == ("0403", "6001", "LABVM001", "ftdi_sio")
    if not port["by_id"]:  # no udev here
        vm.labd("serial", "set", "console", "-t", "pc", "--device", "/dev/ttyUSB0")
    vm.labd("serial", "watch", "pc")
    board.sendall(b"hello from the board\r\n")
    vm.labd("serial", "expect", "pc", "hello from the board", "--from-offset", "0", "--timeout", "60")
    vm.labd("serial", "send", "pc", "typed")
    heard = b""
    while not heard.endswith(b"typed\r"):
        heard += board.recv(64)

    vm.pull_out()
    soon("the loss", lambda: console_of(vm).get("state") == "lost")
    assert "hello" in vm.labd("serial", "log", "pc", "-q").out, "what was captured stays"
    vm.plug_in()
    soon("the port again", lambda: console_of(vm).get("state") == "open")
    assert console_of(vm)["reopened"] == 1
    board.sendall(b"hello again\r\n")
    vm.labd("serial", "expect", "pc", "hello again", "--from-offset", "0", "--timeout", "60")
    assert vm.labd("serial", "log", "pc", "-q").out.count("hello again") == 1
    vm.labd("serial", "stop", "pc")
