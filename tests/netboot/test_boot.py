"""Machines that really boot from `labd netboot start`: QEMU on a tap of a bridge, in a namespace of its own.

A PC by SeaBIOS and iPXE, one by UEFI HTTP boot, and a board with U-Boot. None runs a system: what is booted says so on
the serial port.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

from tests.conftest import until
from tests.netboot.conftest import NetBench, a_net_bench, ip, needs_namespaces

OVMF = Path("/usr/share/OVMF")
UBOOT = Path("/usr/lib/u-boot/qemu_arm64/u-boot.bin")
LOADER = Path("/usr/lib/ipxe/snponly.efi")

#: A boot program of 21 bytes and a text: it sends the text to the first serial port, and stops.
HELLO = bytes.fromhex("31c08ed8baf803be157cac08c07403eeebf8f4ebfd") + b"\r\nBOOTED OVER HTTP\r\n\0"


def needs(*programs: str, files: tuple[Path, ...] = ()) -> pytest.MarkDecorator:
    missing = [name for name in programs if shutil.which(name) is None] + [str(f) for f in files if not f.exists()]
    missing += [] if os.access("/dev/net/tun", os.R_OK | os.W_OK) else ["/dev/net/tun"]
    return pytest.mark.skipif(bool(missing), reason=f"not here: {', '.join(missing)}")


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[NetBench]:
    """A bench that serves the bridge `br0`, with `tap0` as a port of it for a machine."""
    with a_net_bench(tmp_path) as bench:
        here = bench.cable.here
        ip("-n", here, "link", "add", "br0", "type", "bridge", "forward_delay", "0", "stp_state", "0")
        ip("-n", here, "link", "set", "br0", "up")
        ip("netns", "exec", here, "ip", "tuntap", "add", "dev", "tap0", "mode", "tap")
        ip("-n", here, "link", "set", "tap0", "master", "br0", "up")
        bench.write(interface="br0")
        yield bench


class Machine:
    """QEMU with its first serial port on our pipes."""

    def __init__(self, bench: NetBench, program: str, *words: str) -> None:
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", bench.cable.here, program, "-nodefaults", "-no-user-config", "-display", "none",
             "-accel", "tcg", "-serial", "stdio", "-netdev", "tap,id=n,ifname=tap0,script=no,downscript=no", *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.said = b""
        self.started = time.monotonic()

    def expect(self, text: bytes, seconds: float) -> float:
        """Read until it said `text`; seconds since power-on."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + seconds
        while text not in self.said:
            left = deadline - time.monotonic()
            ready = select.select([self.process.stdout], [], [], max(left, 0))[0]
            assert ready, f"no {text!r} within {seconds} s after {self.said[-1500:]!r}"
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, f"it ended after {self.said[-1500:]!r}"
            self.said += data
        self.said = self.said.partition(text)[2]
        return time.monotonic() - self.started

    def type(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()


@contextlib.contextmanager
def a_machine(bench: NetBench, program: str, *words: str) -> Iterator[Machine]:
    machine = Machine(bench, program, *words)
    try:
        yield machine
    finally:
        machine.process.kill()
        machine.process.communicate()


def served(bench: NetBench) -> list[tuple[str, str]]:
    return [(row["proto"], row["file"]) for row in bench.events("transfer")]


@needs_namespaces
@needs("qemu-system-x86_64")
@pytest.mark.vm
def test_a_pc_boots_by_pxe_and_http(bridge: NetBench) -> None:
    (bridge.tftp / "boot.ipxe").write_text("#!ipxe\nchain http://${next-server}:8077/hello.bin\n")
    (bridge.tftp / "hello.bin").write_bytes(HELLO)
    bridge("netboot", "start", "dut")
    with a_machine(bridge, "qemu-system-x86_64", "-m", "64", "-device", "virtio-net-pci,netdev=n,bootindex=1") as pc:
        took = pc.expect(b"BOOTED OVER HTTP", 60)
    print(f"PXE: {took:.1f} s from power-on")
    until("both files in the timeline", lambda: served(bridge) == [("tftp", "boot.ipxe"), ("http", "hello.bin")])
    assert bridge.json("netboot", "status", "dut")["leases"][0]["client"] == "ipxe"


@needs_namespaces
@needs("qemu-system-x86_64", files=(OVMF / "OVMF_CODE_4M.fd", OVMF / "OVMF_VARS_4M.fd", LOADER))
@pytest.mark.vm
def test_a_uefi_machine_boots_by_http(bridge: NetBench) -> None:
    shutil.copy(LOADER, bridge.tftp)
    (bridge.tftp / "boot.ipxe").write_text("#!ipxe\necho BOOTED AS ${platform} BY ${next-server}\nsleep 60\n")
    shutil.copy(OVMF / "OVMF_VARS_4M.fd", bridge.root / "vars.fd")
    bridge("netboot", "start", "dut")
    flash = ["-drive", f"if=pflash,unit=0,format=raw,readonly=on,file={OVMF}/OVMF_CODE_4M.fd",
             "-drive", f"if=pflash,unit=1,format=raw,file={bridge.root}/vars.fd"]  # fmt: skip
    no_pxe = [f"name=opt/org.tianocore/IPv{n}PXESupport,string=n" for n in (4, 6)]
    words = ["-M", "q35", "-m", "256", *flash, "-device", "virtio-rng-pci",
             "-device", "virtio-net-pci,netdev=n,romfile=,bootindex=1",
             *(word for option in no_pxe for word in ("-fw_cfg", option))]  # fmt: skip
    with a_machine(bridge, "qemu-system-x86_64", *words) as pc:
        took = pc.expect(b"BOOTED AS efi BY 10.77.0.1", 120)
    print(f"UEFI HTTP boot: {took:.1f} s from power-on")
    assert ("http", "snponly.efi") in served(bridge) and ("tftp", "boot.ipxe") in served(bridge)


@needs_namespaces
@needs("qemu-system-aarch64", files=(UBOOT,))
def test_a_board_with_u_boot_gets_an_address_and_a_file(bridge: NetBench) -> None:
    kernel = os.urandom(2_000_000)
    (bridge.tftp / "kernel.img").write_bytes(kernel)
    bridge.write(interface="br0", boot_file="kernel.img")
    bridge("netboot", "start", "dut")
    with a_machine(bridge, "qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a57", "-m", "128",
                   "-bios", str(UBOOT), "-device", "virtio-net-pci,netdev=n,romfile=") as board:  # fmt: skip
        board.expect(b"Hit any key", 30)
        board.type(" ")
        board.expect(b"=> ", 10)
        board.type("setenv autoload yes; dhcp 0x40200000; crc32 0x40200000 $filesize\r")
        board.expect(f"==> {crc32(kernel):08x}".encode(), 40)
    until("the file in the timeline", lambda: served(bridge) == [("tftp", "kernel.img")])
