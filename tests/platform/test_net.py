"""Interfaces on both systems: what their programs print is understood, and what is done to one is the right command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from labd.errors import Unreachable
from labd.platform import net_linux
from labd.platform.net import done
from labd.platform.net_linux import LinuxNet
from labd.platform.net_macos import MacNet

IFCONFIG = """lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 16384 index 1
\toptions=1203<RXCSUM,TXCSUM,TXSTATUS,SW_TIMESTAMP>
\tinet 127.0.0.1 netmask 0xff000000
\tinet6 ::1 prefixlen 128
\tinet6 fe80::1%lo0 prefixlen 64 scopeid 0x1
en0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500 index 14
\tether a4:83:e7:00:00:01
\tinet6 fe80::1c:aa%en0 prefixlen 64 secured scopeid 0xe
\tinet 192.168.1.20 netmask 0xffffff00 broadcast 192.168.1.255
\tmedia: autoselect
\tstatus: active
en5: flags=8963<UP,BROADCAST,SMART,RUNNING,PROMISC,SIMPLEX,MULTICAST> mtu 1500 index 9
\tether ac:de:48:00:11:22
\tmedia: autoselect (100baseTX <full-duplex>)
\tstatus: active
en7: flags=8822<BROADCAST,SMART,SIMPLEX,MULTICAST> mtu 1500 index 20
\tether 00:e0:4c:68:00:01
\tinet 169.254.7.7 netmask 0xffff0000 broadcast 169.254.255.255
\tmedia: autoselect (none)
\tstatus: inactive
bridge0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500 index 18
\tConfiguration:
\t\tid 0:0:0:0:0:0 priority 0 hellotime 0 fwddelay 0
\tmember: en5 flags=3<LEARNING,DISCOVER>
\tstatus: active
utun3: flags=8051<UP,POINTOPOINT,RUNNING,MULTICAST> mtu 1380 index 22
\tinet 100.64.0.2 --> 100.64.0.2 netmask 0xffffffff
"""
ROUTE = {"-inet": "   route to: default\n  gateway: 192.168.1.1\n  interface: en0\n", "-inet6": "  interface: utun3\n"}
NDP = """Neighbor                                Linklayer Address  Netif Expire    1s    5s
fe80::1%en7                             0:e0:4c:68:0:1       en7 permanent R
fe80::77%en7                            52:54:0:0:0:1        en7 23h59m58s S
fe80::dead%en7                          (incomplete)         en7 expired   N
fe80::99%en0                            52:54:0:0:0:2        en0 1s        R
"""
ARP = """? (10.77.0.100) at 52:54:0:0:0:1 on en7 ifscope [ethernet]
? (10.77.0.1) at 0:e0:4c:68:0:1 on en7 ifscope permanent [ethernet]
? (10.77.0.255) at ff:ff:ff:ff:ff:ff on en7 ifscope [ethernet]
? (10.77.0.9) at (incomplete) on en7 ifscope [ethernet]
? (224.0.0.251) at 1:0:5e:0:0:fb on en7 ifscope permanent [ethernet]
"""


class Programs:
    """What the system's programs answer, by their name; and what they were asked."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[list[str]] = []

    def __call__(self, argv: list[str]) -> tuple[int | None, str, str]:
        self.asked.append(argv)
        words = [word.rpartition("/")[2] for word in argv]
        name = next(word for word in words if word in self.answers)
        answer = self.answers[name]
        text = answer(argv) if callable(answer) else answer
        return text if isinstance(text, tuple) else (0, text, "")


@pytest.fixture
def mac() -> MacNet:
    return MacNet(Programs(ifconfig=IFCONFIG, route=lambda argv: ROUTE[argv[3]], ndp=NDP, arp=ARP,
                           lsof="p12\ncnginx\nf6\np13\ncnginx\n"), ["sudo", "-n", "--"])  # fmt: skip


def asked(net: Any) -> list[str]:
    return [" ".join(argv) for argv in net.run.asked]


def test_macos_interfaces(mac: MacNet) -> None:
    links = mac.links()
    assert list(links) == ["lo0", "en0", "en5", "en7", "bridge0", "utun3"]
    en0, en7 = links["en0"], links["en7"]
    assert (en0.index, en0.mac, en0.up, en0.carrier) == (14, "a4:83:e7:00:00:01", True, True)
    assert (en0.inet, en0.inet6) == (("192.168.1.20/24",), ("fe80::1c:aa/64",))
    assert (en7.up, en7.carrier, en7.networks()) == (False, False, [])  # an address that it gave to itself
    assert links["en5"].master == "bridge0" and links["bridge0"].master is None
    assert links["utun3"].inet == ("100.64.0.2/32",)
    assert mac.default_interfaces() == {"en0"}


def test_macos_neighbours_and_ports(mac: MacNet) -> None:
    assert mac.peers("en7") == ["fe80::77", "10.77.0.100"]
    assert mac.port_holder("tcp", 80) == "nginx (pid 12)"
    assert "-sTCP:LISTEN" in asked(mac)[-1]


def test_macos_changes_are_made_by_ifconfig_as_root(mac: MacNet) -> None:
    mac.add("en7", "10.77.0.1/24")
    mac.add("en7", "fe80::1/64")
    mac.remove("en7", "10.77.0.1/24")
    mac.remove("en7", "fe80::1/64")
    mac.up("en7")
    mac.down("en7")
    sudo = "sudo -n -- /sbin/ifconfig en7"
    assert asked(mac) == [
        f"{sudo} inet 10.77.0.1 netmask 255.255.255.0 alias", f"{sudo} inet6 fe80::1 prefixlen 64 alias",
        f"{sudo} inet 10.77.0.1 -alias", f"{sudo} inet6 fe80::1 -alias", f"{sudo} up", f"{sudo} down",
    ]  # fmt: skip
    assert "Wake-on-LAN is as it was" in (mac.wake_off("en7") or "")


def test_macos_a_change_that_fails_says_what_the_system_said() -> None:
    net = MacNet(Programs(ifconfig=(1, "", "ifconfig: ioctl (SIOCAIFADDR): Operation not permitted\n")))
    with pytest.raises(Unreachable, match=r"SIOCAIFADDR.*not permitted") as raised:
        net.add("en7", "10.77.0.1/24")
    assert "root" in (raised.value.hint or "")


ADDR = [
    {"ifindex": 1, "ifname": "lo", "flags": ["LOOPBACK", "UP", "LOWER_UP"], "address": "00:00:00:00:00:00",
     "addr_info": [{"family": "inet", "local": "127.0.0.1", "prefixlen": 8}]},
    {},
    {"ifindex": 7, "ifname": "enx1", "flags": ["NO-CARRIER", "BROADCAST", "MULTICAST", "UP"], "master": "br0",
     "address": "00:e0:4c:68:00:01", "addr_info": [{"family": "inet6", "local": "fe80::1", "prefixlen": 64}, {}]},
]  # fmt: skip


def linux(**answers: Any) -> LinuxNet:
    return LinuxNet(Programs(**answers), ["sudo", "-n", "--"])


def test_linux_interfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(net_linux, "find_program", lambda name, path: f"/sbin/{name}")
    net = linux(
        ip=json.dumps([{**row, "addr_info": [a for a in row.get("addr_info", ()) if a]} for row in ADDR if row])
    )
    link = net.links()["enx1"]
    assert (link.index, link.up, link.carrier, link.master) == (7, True, False, "br0")
    assert link.has("fe80::1/128") and link.has("fe80:0::1") and not link.has("fe80::2")


def test_linux_default_routes_of_any_table_and_any_number_of_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(net_linux, "find_program", lambda name, path: f"/sbin/{name}")
    four = [{"dst": "default", "dev": "eth0"}, {"dst": "default", "nexthops": [{"dev": "eth1"}, {"dev": "wlan0"}]}]
    six = [{"type": "unreachable", "dst": "default", "dev": "lo"}, {"dst": "default", "dev": "wwan0"}]
    net = linux(ip=lambda argv: json.dumps(four if "-4" in argv else six))
    assert net.default_interfaces() == {"eth0", "eth1", "wlan0", "wwan0"}
    assert all(words.endswith("route show table all default") for words in asked(net))


def test_linux_neighbours_that_did_not_answer_are_no_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(net_linux, "find_program", lambda name, path: f"/sbin/{name}")
    rows = [{"dst": "fe80::77", "lladdr": "52:54:00:00:00:01", "state": ["STALE"]},
            {"dst": "fe80::dead", "state": ["FAILED"]}, {"dst": "10.0.0.9", "state": ["INCOMPLETE"]},
            {"dst": "10.0.0.8", "lladdr": "52:54:00:00:00:01", "state": ["REACHABLE"]}]  # fmt: skip
    assert linux(ip=json.dumps(rows)).peers("enx1") == ["fe80::77", "10.0.0.8"]


def test_linux_changes_are_made_as_root_and_wake_on_lan_may_be_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(net_linux, "find_program", lambda name, path: f"/sbin/{name}")
    net = linux(ip="", sysctl="", ethtool=(1, "", "netlink error: Operation not supported\n"))
    net.add("enx1", "10.77.0.1/24")
    net.add("enx1", "fe80::1/64")
    net.down("enx1")
    assert net.wake_off("enx1") is None
    switch = tmp_path / "sys/net/ipv6/conf/en.1/disable_ipv6"
    switch.parent.mkdir(parents=True)
    net.proc = str(tmp_path)
    switch.write_text("0\n")
    net.enable_ipv6("en.1")
    switch.write_text("1\n")
    net.enable_ipv6("en.1")
    assert asked(net) == [
        "sudo -n -- /sbin/ip addr replace 10.77.0.1/24 dev enx1 brd +",
        "sudo -n -- /sbin/ip addr replace fe80::1/64 dev enx1 nodad",
        "sudo -n -- /sbin/ip link set enx1 down",
        "sudo -n -- /sbin/ethtool -s enx1 wol d",
        "sudo -n -- /sbin/sysctl -q -w net/ipv6/conf/en.1/disable_ipv6=0",
    ]
    with pytest.raises(Unreachable, match="no IPv6"):
        net.enable_ipv6("gone")
    net.run = Programs(ethtool=(1, "", "netlink error: Operation not permitted\n"))
    assert "Wake-on-LAN is as it was" in (net.wake_off("enx1") or "")


def test_linux_programs_that_are_missing_are_named_with_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(net_linux, "find_program", lambda name, path: None)
    with pytest.raises(Unreachable) as raised:
        linux().links()
    assert raised.value.hint == "sudo apt-get install iproute2"
    assert "for want of ethtool" in (linux().wake_off("enx1") or "")


def test_linux_who_holds_a_port_is_found_by_its_socket(tmp_path: Path) -> None:
    head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    row = " 0: {address}:{port:04X} 00000000:0000 {state} 0:0 0:0 0 0 0 {inode} 2\n"
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_text(
        head + row.format(address="0100007F", port=80, state="01", inode=500)  # a connection
        + row.format(address="00000000", port=80, state="0A", inode=501)
    )  # fmt: skip
    (tmp_path / "net" / "udp").write_text(head + row.format(address="00000000", port=69, state="07", inode=502))
    for pid, name, inode in ((7, "client", 500), (8, "nginx", 501), (9, "in.tftpd", 502)):
        (tmp_path / str(pid) / "fd").mkdir(parents=True)
        (tmp_path / str(pid) / "comm").write_text(f"{name}\n")
        (tmp_path / str(pid) / "fd" / "3").symlink_to(f"socket:[{inode}]")
    net = LinuxNet(Programs(), proc=str(tmp_path))
    assert net.port_holder("tcp", 80) == "nginx (pid 8)"
    assert net.port_holder("udp", 69) == "in.tftpd (pid 9)"
    assert net.port_holder("tcp", 69) is None


def test_a_command_that_does_not_end_is_an_error() -> None:
    with pytest.raises(Unreachable, match="did not end in time"):
        done(lambda argv: (None, "", ""), ["ip", "addr"])
