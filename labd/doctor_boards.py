"""Simulated and virtual boards named as devices: whether there is one of that name, and what plays it."""

import os

from labd.doctor import Bench, Row, row
from labd.errors import nearest
from labd.inventory import simulated, virtual


def loopback_row(bench: Bench, target: str, name: str, device: str) -> Row:
    """Whether a simulated board (`loopback:NAME` or `loopback:FILE`) exists."""
    dut = device.removeprefix("loopback:")
    if "/" in dut or dut.endswith(".toml"):
        path = bench.path(dut)
        if os.path.isfile(path):
            return row(target, "serial", "ok", f"simulated board {path}", interface=name, device=device)
        return row(
            target,
            "serial",
            "missing",
            f"no simulated board file {path}",
            interface=name,
            device=device,
            fix=f"labd serial set {name} -t {target} --device loopback:FILE.toml",
        )
    known = list(simulated())
    if dut in known:
        return row(target, "serial", "ok", "simulated board, built in", interface=name, device=device)
    near = nearest(dut, known) or known
    detail = f"no simulated board {dut!r}; there is {', '.join(known) or 'none (loopback is not installed)'}"
    fix = f"labd serial set {name} -t {target} --device loopback:{near[0]}" if near else "labd discover"
    return row(target, "serial", "missing", detail, interface=name, device=device, fix=fix)


def board_row(bench: Bench, target: str, channel: str, device: str, change: str, name: str | None = None) -> Row:
    """Whether a virtual board (`board:NAME`) exists and the program that plays it is installed.

    `change` is the command that names another device, without its --device.
    """
    wanted, known = device.removeprefix("board:"), virtual(bench.env)
    if "/" in wanted or wanted.endswith(".toml"):
        path = bench.path(wanted)
        if os.path.isfile(path):
            return row(target, channel, "ok", f"virtual board {path}", interface=name, device=device)
        fix = f"{change} --device board:FILE.toml"
        return row(target, channel, "missing", f"no virtual board file {path}", interface=name, device=device, fix=fix)
    if wanted not in known:
        near = nearest(wanted, list(known)) or list(known)
        detail = f"no virtual board {wanted!r}; there is {', '.join(known) or 'none (loopback is not installed)'}"
        fix = f"{change} --device board:{near[0]}" if near else "labd discover"
        return row(target, channel, "missing", detail, interface=name, device=device, fix=fix)
    board = known[wanted]
    if board["missing"]:
        return row(
            target,
            channel,
            "missing",
            f"the virtual board {wanted} is played by {board['missing']}, which is not here",
            interface=name,
            device=device,
            fix=board["fix"],
        )
    detail = f"virtual board, played by {board['program']}"
    return row(target, channel, "ok", detail, interface=name, device=device)
