"""A virtual board whose Ethernet is the other end of the target's netboot interface: switched on, it asks, and gets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.netboot.conftest import NetBench, a_net_bench, ip, needs_namespaces
from tests.netboot.test_boot import UBOOT, needs


@pytest.fixture
def tapped(tmp_path: Path) -> Iterator[NetBench]:
    """A bench whose target `dut` is a virtual board on the tap `tap1`."""
    with a_net_bench(tmp_path) as bench:
        ip("netns", "exec", bench.cable.here, "ip", "tuntap", "add", "dev", "tap1", "mode", "tap")
        ip("-n", bench.cable.here, "link", "set", "tap1", "up")
        bench.write(interface="tap1")
        serial = '[[targets.dut.serial]]\nname = "console"\ndevice = "board:uboot-arm64"\nprompt = "=> $"\n'
        bench.lab.write_text(bench.lab.read_text() + serial)
        yield bench


def carrier(bench: NetBench) -> bool:
    return "NO-CARRIER" not in ip("-n", bench.cable.here, "link", "show", "tap1")


@needs_namespaces
@needs("qemu-system-aarch64", files=(UBOOT,))
def test_a_virtual_board_is_wired_to_the_netboot_interface_and_gets_its_address_there(tapped: NetBench) -> None:
    assert not carrier(tapped), "without the board, nobody is at the other end"
    tapped("serial", "watch", "dut")
    tapped("serial", "expect", "dut", "Hit any key", "--from-offset", "0", "--timeout", "30")
    tapped("serial", "send", "dut", " ")
    assert carrier(tapped)
    tapped("netboot", "start", "dut")
    tapped("serial", "send", "dut", "setenv autoload no; dhcp", "--expect", "bound to address 10.77.0.",
           "--timeout", "40")  # fmt: skip
    assert [lease["ip"] for lease in tapped.json("netboot", "status", "dut")["leases"]], "and it is known here"
    tapped("serial", "stop", "dut")
    assert not carrier(tapped)
