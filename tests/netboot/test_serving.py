"""`labd netboot start`: real dnsmasq, a real DHCP exchange over a cable, files by TFTP and HTTP; and what spoils it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import LABD, until
from tests.netboot.conftest import NetBench, a_net_bench, ip, needs_namespaces

pytestmark = needs_namespaces


def test_a_board_gets_its_address_and_its_files(net: NetBench) -> None:
    (net.tftp / "boot.ipxe").write_text("#!ipxe\n")
    (net.tftp / "kernel.img").write_bytes(os.urandom(300_000))
    said = net.out("netboot", "start", "dut")
    assert said.startswith("serves dut on va: DHCP 10.77.0.100-10.77.0.199, TFTP 10.77.0.1, http://10.77.0.1:8077/")
    assert net.cable.lease() == "10.77.0.100"

    got = net.root / "got"
    net.cable.board("busybox", "tftp", "-g", "-r", "kernel.img", "-l", str(got), "10.77.0.1")
    assert got.read_bytes() == (net.tftp / "kernel.img").read_bytes()
    fetch = "import sys, urllib.request as u; sys.stdout.buffer.write(u.urlopen(sys.argv[1]).read())"
    by_http = net.cable.board(sys.executable, "-c", fetch, "http://10.77.0.1:8077/kernel.img")
    assert by_http.stdout == got.read_bytes()
    net.cable.board("busybox", "tftp", "-g", "-r", "nothing.dtb", "-l", str(got), "10.77.0.1", check=False)

    sent = until("both transfers in the timeline", lambda: len(net.events("transfer")) == 2 and net.events("transfer"))
    assert {(row["proto"], row["file"], row["bytes"], row["ip"]) for row in sent} == {
        ("tftp", "kernel.img", 300_000, "10.77.0.100"), ("http", "kernel.img", 300_000, "10.77.0.100"),
    }  # fmt: skip
    assert [(row["file"], row["ip"]) for row in net.events("missing")] == [("nothing.dtb", "10.77.0.100")]
    assert [row["state"] for row in net.events("lease")] == ["add"]

    status = net.json("netboot", "status", "dut")
    assert status["running"] and status["transfers"] == {"tftp": 1, "http": 1} and status["bytes"] == 600_000
    assert [lease["ip"] for lease in status["leases"]] == ["10.77.0.100"]
    assert "lease\t10.77.0.100\t" in net.out("netboot", "status", "dut")
    log = net.out("netboot", "logs", "dut")
    assert "DHCPACK(va) 10.77.0.100" in log and "GET /kernel.img 200 300000 bytes" in log
    assert "02:6c:61:62:64" not in log and "labd-does-it-answer" not in log  # our own questions are no news


@pytest.mark.parametrize("boot_file", ["menu.ipxe", "kernel_2712.img"])
def test_each_kind_of_client_is_told_its_file(net: NetBench, boot_file: str) -> None:
    for name in ("undionly.kpxe", "snponly.efi", "boot.ipxe", "menu.ipxe", "kernel_2712.img"):
        (net.tftp / name).write_text("x")
    net.write(boot_file=boot_file)
    net("netboot", "start", "dut")
    bios, efi, http, ipxe, pi, other = net.cable.ask(
        {"vendor": "PXEClient:Arch:00000:UNDI:002001", "arch": 0},
        {"vendor": "PXEClient:Arch:00007:UNDI:003016", "arch": 7},
        {"vendor": "HTTPClient:Arch:00016:UNDI:003001", "arch": 16},
        {"vendor": "PXEClient:Arch:00007:UNDI:003010", "arch": 7, "user": "iPXE"},
        {"vendor": "PXEClient:Arch:00000:UNDI:002001", "arch": 0, "mac": "dc:a6:32:00:00:02"},
        {"mac": "52:54:00:00:00:03"},
    )
    one = boot_file if boot_file.endswith(".img") else ""
    assert bios["file"] == (one or "undionly.kpxe") and bios["next"] == "10.77.0.1"
    assert efi["file"] == (one or "snponly.efi")
    assert http["file"] == f"http://10.77.0.1:8077/{one or 'snponly.efi'}"
    assert bytes.fromhex(http["options"]["60"]) == b"HTTPClient"
    assert ipxe["file"] == boot_file
    assert pi["file"] == one and bytes.fromhex(pi["options"]["43"]) == b"Raspberry Pi Boot"
    assert bytes.fromhex(pi["options"]["66"]).rstrip(b"\0") == b"10.77.0.1" and pi["next"] == "10.77.0.1"
    assert other["file"] == one
    assert "3" not in other["options"]  # the link leads nowhere: no router
    firmware, system = net.cable.ask(
        {"client_id": "firmware", "mac": "52:54:00:00:00:09"}, {"client_id": "linux", "mac": "52:54:00:00:00:09"}
    )
    assert firmware["ip"] == system["ip"]  # one board, one address, whatever its stages call themselves


def test_addresses_follow_host_ip(net: NetBench) -> None:
    """And what is served follows the lab, when it is started again."""
    assert net.json("netboot", "start", "dut")["done"] == "started"
    assert net.json("netboot", "start", "dut")["done"] == "unchanged"
    net.write(host_ip="10.77.0.2", interface="lo")
    net.fails(3, "netboot", "start", "dut")  # what can't be served ends nothing
    assert net.cable.ask({})[0]["next"] == "10.77.0.1"
    net.write(host_ip="172.20.5.150", boot_file="other.img")
    assert b"the lab has changed since; labd netboot start dut" in net("netboot", "status", "dut").stderr
    assert net.json("netboot", "start", "dut")["done"] == "restarted"
    (offer,) = net.cable.ask({})
    assert (offer["ip"], offer["next"], offer["file"]) == ("172.20.5.10", "172.20.5.150", "other.img")
    assert "172.20.5.150/24" in net.cable.addresses() and "10.77.0.1/24" not in net.cable.addresses()
    assert len(net.keepers()) == 1
    net.lab.write_text("[targets.other]\n")
    assert net.json("netboot", "stop", "dut")["stopped"]  # also when the lab has it no more
    assert net.servers() == []
    net.write()
    net("netboot", "start", "dut")
    net.write(host_ip="10.77.0.7")
    assert net.json("netif", "mode", "off", "dut")["inet"] == []  # the address that is served is not another's


def test_daemons_lists_what_serves_and_a_restart_serves_again(net: NetBench) -> None:
    net("netboot", "start", "dut")
    listed = net.json("daemons")
    assert [(row["target"], row["interface"]) for row in listed["netboots"]] == [("dut", "va")]
    assert listed["untracked"] == []
    before = net.keepers()
    assert "; serves dut" in net.out("daemons", "restart")
    assert net.keepers() != before and net.cable.ask({})[0]["next"] == "10.77.0.1"


def test_stop_puts_the_addresses_back(net: NetBench) -> None:
    ip("-n", net.cable.here, "addr", "add", "fe80::1/64", "dev", "va")
    net("netboot", "start", "dut")
    assert "10.77.0.1/24" in net.cable.addresses() and "fe80::1/64" not in net.cable.addresses()
    net("netboot", "stop", "dut")
    assert net.cable.addresses() == ["fe80::1/64"]
    assert net.servers() == []
    assert net.out("netboot", "status", "dut") == "netboot\tnot running\n"
    assert "fd6c:" not in ip("-n", net.cable.here, "-6", "route", "show", "dev", "va")
    # … and takes none away that was there before.
    ip("-n", net.cable.here, "addr", "add", "10.77.0.1/24", "dev", "va")
    net("netboot", "start", "dut")
    net("netboot", "stop", "dut")
    assert net.cable.addresses() == ["10.77.0.1/24", "fe80::1/64"]


# --- what is in the way ----------------------------------------------------------------------------------------------


@pytest.fixture
def squatter(net: NetBench) -> Iterator[subprocess.Popen[bytes]]:
    """A program in our namespace that a test gives sockets to."""
    process: list[subprocess.Popen[bytes]] = []

    def start(code: str) -> subprocess.Popen[bytes]:
        argv = ["ip", "netns", "exec", net.cable.here, sys.executable, "-c", code]
        process.append(subprocess.Popen(argv, stdout=subprocess.PIPE))
        assert process[0].stdout is not None and process[0].stdout.readline() == b"ready\n"
        return process[0]

    yield start  # type: ignore[misc]
    for each in process:
        each.kill()
        each.wait()


LISTEN = """
import socket, time
sock = socket.socket(socket.AF_INET, socket.{kind})
sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, {reuse})
sock.bind(("0.0.0.0", {port}))
{listen}
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("kind", "port", "what"), [("SOCK_STREAM", 8077, "HTTP"), ("SOCK_DGRAM", 69, "TFTP"), ("SOCK_DGRAM", 67, "67")]
)
def test_a_port_that_is_taken_is_one_error_that_names_who_has_it(
    net: NetBench, squatter: object, kind: str, port: int, what: str
) -> None:
    listen = "sock.listen()" if kind == "SOCK_STREAM" else ""
    squatter(LISTEN.format(kind=kind, port=port, listen=listen, reuse=bool(listen)))  # type: ignore[operator]
    error = net.fails(6, "netboot", "start", "dut")
    assert what in error["message"] and "python" in error["message"] and "pid" in error["message"]
    assert error["hint"]
    assert net.servers() == [] and net.cable.addresses() == []


@contextlib.contextmanager
def a_rival(net: NetBench, *words: str) -> Iterator[None]:
    """Another DHCP server at the other end of the cable."""
    net.cable.board("ip", "addr", "flush", "dev", "vb")
    net.cable.board("ip", "addr", "replace", "10.77.0.9/24", "dev", "vb")
    rival = subprocess.Popen(
        ["ip", "netns", "exec", net.cable.there, "dnsmasq", "-k", "--conf-file=/dev/null", "--port=0", "--pid-file",
         "--interface=vb", "--bind-interfaces", "--user=root", "--dhcp-range=10.77.0.50,10.77.0.60", *words,
         f"--dhcp-leasefile={net.root}/rival", "--log-facility=-"],
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert rival.stderr is not None
        while b"IP range" not in rival.stderr.readline():
            pass
        yield
    finally:
        rival.terminate()
        rival.communicate()
        net.cable.board("ip", "addr", "flush", "dev", "vb")


def test_another_dhcp_server_on_the_link_is_not_fought(net: NetBench) -> None:
    with a_rival(net, "--no-ping"):
        error = net.fails(6, "netboot", "start", "dut")
        assert "another DHCP server answers on va: 10.77.0.9" in error["message"]
        assert net.servers() == [] and net.cable.addresses() == []
    # … nor one that is there only once the cable is in.
    net.cable.board("ip", "link", "set", "vb", "down")
    assert b"no carrier" in net("netboot", "start", "dut").stderr
    with a_rival(net, "--no-ping"):
        net.cable.board("ip", "link", "set", "vb", "up")
        why = until("the end", lambda: net.json("netboot", "status", "dut")["why"])
        assert "another DHCP server answers on va: 10.77.0.9" in why
        until("nothing left", lambda: not net.servers() and not net.cable.addresses(), seconds=5)


def test_a_dhcp_server_that_looks_for_3_s_whether_an_address_is_free_ends_the_serving(net: NetBench) -> None:
    with a_rival(net):
        net("netboot", "start", "dut")
        why = until("the end", lambda: net.json("netboot", "status", "dut")["why"], seconds=10)
        assert "another DHCP server answers on va: 10.77.0.9" in why
        assert why in [row["why"] for row in net.events("failed")]
        until("nothing left", lambda: not net.servers() and not net.cable.addresses(), seconds=5)


def test_a_second_server_on_an_interface_is_refused_whoever_asks(net: NetBench, tmp_path: Path) -> None:
    net("netboot", "start", "dut")
    net.lab.write_text(net.lab.read_text() + net.lab.read_text().replace("dut", "two"))
    error = net.fails(6, "netboot", "start", "two")
    assert "va is already being served, for dut" in error["message"] and error["hint"] == "labd netboot stop dut"
    error = net.fails(6, "netif", "mode", "off", "two")
    assert "va is already being served, for dut" in error["message"] and error["hint"] == "labd netboot stop dut"
    # … and by another daemon of this machine.
    env = {"XDG_RUNTIME_DIR": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    os.chmod(tmp_path, 0o700)
    try:
        error = net.fails(6, "netboot", "start", "dut", env=env)
        assert "va is already being served, for dut of" in error["message"] and "labd daemons" in error["hint"]
        assert net.cable.ask({})[0]["next"] == "10.77.0.1"
    finally:
        net("daemons", "stop", env=env, check=None)
    assert len(net.keepers()) == 1


def test_without_dnsmasq_it_says_what_to_install(net: NetBench, monkeypatch: pytest.MonkeyPatch) -> None:
    from labd.errors import Unreachable
    from labd.netboot import serving
    from labd.netboot.plan import plan
    from labd.platform import net as system

    monkeypatch.setattr(system, "find_program", lambda name, path: None)
    wanted = plan("dut", {"interface": "va", "tftp_root": "."}, {}, str(net.root))
    netboots = serving.Netboots("/nowhere", "/nowhere", None, print)  # type: ignore[arg-type]
    with pytest.raises(Unreachable) as raised:
        netboots._launch("/lab", "dut", wanted, None, {})  # type: ignore[arg-type]
    assert raised.value.hint in ("sudo apt-get install dnsmasq-base", "brew install dnsmasq")


def test_what_the_lab_lacks_is_said_before_anything_is_touched(net: NetBench) -> None:
    net.write(tftp_root=str(net.root / "nowhere"))
    assert net.fails(4, "netboot", "start", "dut")["hint"] == f"mkdir -p {net.root}/nowhere"
    net.write(tftp_root=None)
    assert "netboot set -t dut --tftp-root DIR" in net.fails(4, "netboot", "start", "dut")["hint"]
    net.write(interface=None)
    assert "netboot set -t dut --interface IF" in net.fails(4, "netboot", "start", "dut")["hint"]
    net.write(host_ip="10.77.0.0")
    assert "its network" in net.fails(2, "netboot", "start", "dut")["message"]
    assert net.cable.addresses() == []


def test_a_link_that_leads_out_is_not_served(net: NetBench) -> None:
    link = net.tftp / "link"
    link.symlink_to("/etc/passwd")
    try:
        error = net.fails(3, "netboot", "start", "dut")
        assert f"{link} is a link that leads out of tftp_root, to /etc/passwd" in error["message"]
        assert error["hint"].startswith(f"rm {link}  # and put a copy")
        assert net.servers() == [] and net.cable.addresses() == []
        link.unlink()
        net("netboot", "start", "dut")
        link.symlink_to("/etc/passwd")
        why = until("the end", lambda: net.json("netboot", "status", "dut")["why"], seconds=20)
        assert f"{link} is a link that leads out" in why
        until("nothing left", lambda: not net.servers() and not net.cable.addresses(), seconds=5)
    finally:
        link.unlink()


@pytest.mark.parametrize(
    ("flag", "value", "why"),
    [("--host-ip", "127.0.0.1", "loopback"), ("--host-ip", "239.1.1.1", "no address of one machine"),
     ("--host-ip", "fd00::1", "IPv4"), ("--boot-file", "../secret", "not in tftp_root"),
     ("--boot-file", "/etc/passwd", "not in tftp_root"), ("--tftp-root", "/srv/a,b", "comma")],
)  # fmt: skip
def test_what_can_never_be_served_is_refused_when_it_is_set(net: NetBench, flag: str, value: str, why: str) -> None:
    before = net.lab.read_bytes()
    assert why in net.fails(2, "netboot", "set", "-t", "dut", flag, value)["message"]
    assert net.lab.read_bytes() == before
    net("netboot", "set", "-t", "dut", "--boot-file", str(net.tftp / "k.img"))


def test_dnsmasqs_own_reason_is_shown(net: NetBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real dnsmasq that is told a directory which is not there."""
    from dataclasses import replace

    from labd.errors import Unreachable
    from labd.netboot.engine import Engine
    from labd.netboot.keeper import Reports
    from labd.netboot.orders import Orders
    from labd.netboot.plan import plan

    wanted = plan("dut", {"interface": "lo", "tftp_root": str(net.tftp), "host_ip": "10.77.0.1"}, {}, "/")
    orders = Orders(replace(wanted, tftp_root="/no/where"), "/usr/sbin/dnsmasq", 0, "dut", "")
    engine = Engine(str(tmp_path), orders, None, Reports(-1))  # type: ignore[arg-type]
    engine.start()
    with pytest.raises(Unreachable, match=r"dnsmasq ended at once: .*/no/where"):
        engine.answers(None)


def test_a_directory_that_went_while_it_was_served_is_named(net: NetBench) -> None:
    net("netboot", "start", "dut")
    net.tftp.rename(net.root / "away")
    try:
        said = net("netboot", "status", "dut").stderr.decode()
        assert f"there is no directory {net.tftp}" in said and "has changed" not in said
    finally:
        (net.root / "away").rename(net.tftp)


# --- what happens while it runs --------------------------------------------------------------------------------------


def test_a_killed_daemon_leaves_nothing_that_serves(tmp_path: Path) -> None:
    with a_net_bench(tmp_path) as net:
        net("netboot", "start", "dut")
        pid = net.daemon_pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until("the end of what served", lambda: not net.servers(), seconds=10)
        assert net.cable.addresses() == []


def test_a_killed_keeper_is_told_and_what_it_left_is_cleared_away(net: NetBench) -> None:
    ip("-n", net.cable.here, "addr", "add", "fe80::1/64", "dev", "va")
    before = net.json("netboot", "start", "dut")
    os.kill(net.keepers()[0], signal.SIGKILL)
    why = until("the end in the status", lambda: net.json("netboot", "status", "dut")["why"])
    assert "ended unexpectedly" in why and net.events("failed")
    until("the end of its dnsmasq", lambda: not net.servers(), seconds=5)
    assert net.cable.addresses() == ["fe80::1/64"]  # as it was
    assert net.json("netboot", "start", "dut")["pid"] != before["pid"]
    assert net.cable.ask({})[0]["next"] == "10.77.0.1"
    net("netboot", "stop", "dut")
    net("netif", "mode", "off", "dut")
    assert net.cable.addresses() == []


def test_off_clears_away_what_a_keeper_and_a_daemon_that_were_killed_left(tmp_path: Path) -> None:
    with a_net_bench(tmp_path) as net:
        net("netboot", "start", "dut")
        assert {"10.77.0.1/24", "fd6c:6162:640a:4d00::1/64"} <= set(net.cable.addresses())
        daemon, keeper = net.daemon_pid(), net.keepers()[0]
        assert daemon is not None
        for pid in (daemon, keeper):
            os.kill(pid, signal.SIGSTOP)
        for pid in (keeper, daemon):
            os.kill(pid, signal.SIGKILL)
        net("netif", "mode", "off", "dut")
        assert net.cable.addresses() == []


def test_what_breaks_is_mended(net: NetBench) -> None:
    net("netboot", "start", "dut")
    for pid in net.servers():
        if b"dnsmasq\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
    until("the restart in the timeline", lambda: net.events("restarted"))
    until("its answer", lambda: net.cable.board("busybox", "udhcpc", "-i", "vb", "-qnf", "-s", "/bin/true").stderr)

    # An adapter that is unplugged, when it is back.
    net.cable.unplug()
    until("the loss in the timeline", lambda: net.events("lost"))
    assert "netboot\twaiting: interface va is gone" in net.out("netboot", "status", "dut")
    assert net.json("netboot", "status", "dut")["interface_gone"]
    net.cable.plug()
    until("the address", lambda: "10.77.0.1/24" in net.cable.addresses())
    until("the new dnsmasq", lambda: net.events("mended"))
    assert "netboot\trunning\n" in net.out("netboot", "status", "dut")
    assert net.cable.lease().startswith("10.77.0.1")
    net("netboot", "stop", "dut")
    assert net.cable.addresses() == []


def test_logs_can_be_followed_and_nobody_else_is_served(net: NetBench) -> None:
    net("netboot", "start", "dut")
    argv = ["ip", "netns", "exec", net.cable.here, LABD, "netboot", "logs", "dut", "-f", "-n", "0"]
    following = subprocess.Popen(argv, env=net.env, stdout=subprocess.PIPE)
    try:
        time.sleep(0.3)
        net.cable.ask({"mac": "52:54:00:00:00:77"})
        assert following.stdout is not None
        assert b"52:54:00:00:00:77" in b"".join(following.stdout.readline() for _ in range(2))
    finally:
        following.kill()
        following.communicate()
    argv = ["ip", "netns", "exec", net.cable.here, sys.executable, "-c",
            "import socket; socket.create_connection(('127.0.0.1', 8077), 2)"]  # fmt: skip
    refused = subprocess.run(argv, capture_output=True, text=True)
    assert "refused" in refused.stderr
