"""`labd netif`: the modes of a link, what is to be seen of it, and the guard that stands before every one of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import until
from tests.netboot.conftest import NetBench, ip, needs_namespaces

pytestmark = needs_namespaces

#: Everything that touches an interface.
TOUCHING = [
    ("netboot", "start", "dut"),
    *(("netif", "mode", mode, "dut") for mode in ("netboot", "link", "ffx", "off")),
    ("netif", "down-hard", "dut"),
]


def test_each_mode_gives_the_link_its_addresses_and_ends_the_one_before(net: NetBench) -> None:
    assert net.json("netif", "status", "dut")["mode"] == "off"
    assert net.json("netif", "mode", "link", "dut")["mode"] == "link"
    assert net.cable.addresses() == ["10.77.0.1/24"]

    assert net.json("netif", "mode", "ffx", "dut")["mode"] == "ffx"
    assert net.cable.addresses() == ["10.77.0.1/24", "fe80::1/64"]

    assert net.json("netif", "mode", "netboot", "dut")["mode"] == "netboot"
    assert "fe80::1/64" not in net.cable.addresses() and net.keepers()

    said = net("netif", "mode", "ffx", "dut")
    assert b"stopped serving dut" in said.stderr and b"\nmode\tffx\n" in said.stdout
    assert net.servers() == []

    assert net.json("netif", "mode", "off", "dut")["mode"] == "off"
    assert net.cable.addresses() == []
    modes = [row["mode"] for row in net.events("mode")]
    assert modes == ["link", "ffx", "ffx", "off"]
    again = net.out("netif", "mode", "off", "dut")  # to be where one is already is no error
    assert again.startswith("target\tdut\ninterface\tva\nmode\toff\ncarrier\tup\n")


def test_down_hard_takes_the_carrier_from_the_board_and_any_mode_gives_it_back(net: NetBench) -> None:
    net("netif", "mode", "link", "dut")
    carrier = ("cat", "/sys/class/net/vb/carrier")
    assert net.cable.board(*carrier).stdout == b"1\n"
    down = net.json("netif", "down-hard", "dut")
    assert (down["mode"], down["up"], down["carrier"], down["inet"]) == ("off", False, False, [])
    assert net.cable.board(*carrier).stdout == b"0\n"
    assert "state\tswitched off" in net.out("netif", "status", "dut")
    up = net.json("netif", "mode", "link", "dut")
    assert up["up"] and up["inet"] == ["10.77.0.1/24"]
    until("the board's carrier", lambda: net.cable.board(*carrier).stdout == b"1\n")


def test_the_carrier_is_the_boards_side_whatever_the_mode(net: NetBench) -> None:
    net.cable.board("ip", "link", "set", "vb", "down")
    try:
        assert net.json("netif", "mode", "link", "dut")["carrier"] is False
        assert "carrier\tdown" in net.out("netif", "status", "dut")
    finally:
        net.cable.board("ip", "link", "set", "vb", "up")


def test_peers_are_those_that_answer_with_the_command_for_ffx(net: NetBench) -> None:
    net.cable.board("ip", "addr", "replace", "fe80::77/64", "dev", "vb", "nodad")
    here = net.cable.here
    ip("-n", here, "neigh", "replace", "fe80::dead", "lladdr", "02:00:00:00:00:01", "dev", "va", "nud", "failed")
    net("netif", "mode", "ffx", "dut")
    peers = until("the board", lambda: [p for p in net.json("netif", "status", "dut")["peers"] if "fe80::77" in p])
    assert peers == ["fe80::77"]
    said = net.out("netif", "status", "dut")
    assert "peer\tfe80::77%va\tffx target add fe80::77%va\n" in said
    assert "fe80::dead" not in said and "peer\tfe80::1%" not in said


# --- the guard -------------------------------------------------------------------------------------------------------


@pytest.fixture
def untouched(net: NetBench) -> Iterator[NetBench]:
    """Fails when the interface is changed."""
    yield net
    assert net.servers() == []
    assert "UP" in ip("-n", net.cable.here, "link", "show", "va").split("mtu")[0]


def interface_row(net: NetBench) -> dict[str, Any]:
    """What the doctor says of va, which has no hardware behind it."""
    rows: list[dict[str, Any]] = json.loads(net("doctor", "dut", "--json", check=None).stdout)["rows"]
    return next(row for row in rows if row["channel"] == "netboot" and row["device"] == "va")


def test_the_interface_of_the_default_route_is_refused_by_every_mode(untouched: NetBench) -> None:
    here = untouched.cable.here
    ip("-n", here, "addr", "add", "10.77.0.1/24", "dev", "va")
    ip("-n", here, "route", "add", "default", "via", "10.77.0.2", "dev", "va", "table", "77")
    try:
        for words in TOUCHING:
            error = untouched.fails(3, *words)
            assert "va carries this machine's default route" in error["message"], words
            assert "nothing was done" in error["message"] and "--interface OTHER" in error["hint"], words
            assert untouched.cable.addresses() == ["10.77.0.1/24"], words
        assert interface_row(untouched)["status"] == "denied"
    finally:
        ip("-n", here, "route", "flush", "table", "77")


def test_a_link_that_is_in_use_is_refused_by_every_mode(untouched: NetBench) -> None:
    here = untouched.cable.here
    ip("-n", here, "addr", "add", "192.0.2.5/24", "dev", "va")
    try:
        for words in TOUCHING:
            error = untouched.fails(6, *words)
            assert "va is in use for another network (192.0.2.5/24)" in error["message"], words
            assert "--host-ip 192.0.2.5" in error["hint"], words
            assert untouched.cable.addresses() == ["192.0.2.5/24"], words
        row = interface_row(untouched)
        assert row["status"] == "busy" and "in use for another network (192.0.2.5/24)" in row["detail"]
    finally:
        ip("-n", here, "addr", "del", "192.0.2.5/24", "dev", "va")


def test_an_interface_that_is_not_there_names_near_ones(untouched: NetBench) -> None:
    untouched.write(interface="vaa")
    for words in [*TOUCHING, ("netif", "status", "dut")]:
        error = untouched.fails(4, *words)
        assert "no network interface 'vaa'" in error["message"], words
        assert error["near"] == ["va"] and error["hint"] == "labd netboot set -t dut --interface va", words


def test_other_interfaces_that_lead_to_no_board_are_refused(untouched: NetBench) -> None:
    untouched.write(interface="lo")
    assert "loopback" in untouched.fails(3, "netif", "mode", "link", "dut")["message"]
    here = untouched.cable.here
    ip("-n", here, "link", "add", "bridge0", "type", "bridge")
    ip("-n", here, "link", "set", "va", "master", "bridge0")
    try:
        untouched.write()
        error = untouched.fails(6, "netif", "down-hard", "dut")
        assert "va is a port of bridge0" in error["message"] and error["hint"].endswith("--interface bridge0")
    finally:
        ip("-n", here, "link", "del", "bridge0")


def test_a_network_that_another_interface_has_is_refused_with_a_free_one(untouched: NetBench) -> None:
    here = untouched.cable.here
    ip("-n", here, "link", "add", "other", "type", "bridge")
    ip("-n", here, "addr", "add", "10.77.0.200/16", "dev", "other")
    try:
        for words in (("netboot", "start", "dut"), ("netif", "mode", "link", "dut")):
            error = untouched.fails(6, *words)
            assert "10.77.0.0/24 of dut's link is on other too" in error["message"], words
            assert error["hint"] == "labd netboot set -t dut --host-ip 192.168.99.1", words
        untouched("netif", "mode", "off", "dut")  # which brings no address
    finally:
        ip("-n", here, "link", "del", "other")
