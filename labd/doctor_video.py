"""A screen's capture device, and what reading its text needs. Opens no camera, contacts no URL."""

import glob
import os
from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any

from labd.doctor import Bench, Row, access_denied, holders_words, install, let_go, row
from labd.doctor_boards import board_row
from labd.errors import NotFound
from labd.lab.redact import redact
from labd.paths import state_dir
from labd.video.names import Found, look_up


def check(bench: Bench, target: str, config: Mapping[str, Any]) -> Iterator[Row]:
    """The device, what the daemon sees of it, then the programs and data for reading text."""
    device = config.get("device")
    if not device:
        fix = f"labd video set -t {target} --device DEVICE  # labd discover lists them"
        yield row(target, "video", "incomplete", "no device is set", fix=fix)
    elif device.startswith("board:"):
        yield board_row(bench, target, "video", device, f"labd video set -t {target}")
    else:
        yield _device(bench, target, device)
    screen = bench.screens.get(target)
    if screen and screen.get("signal") not in ("ok", None):
        detail = f"labd watches it, and the signal is {screen['signal']}"
        fix = "is the board on, and the cable in? labd video show " + target
        yield row(target, "video", "warning", detail, interface="signal", device=screen["device"], fix=fix)
    yield from reading(bench, target)


def reading(bench: Bench, target: str) -> Iterator[Row]:
    """What text on a screen is read with: console fonts for fixed cells, tesseract for all else."""
    program = bench.on_path("tesseract")
    if program is None:
        yield row(
            target,
            "video",
            "warning",
            "tesseract is not installed: text other than a console's can't be read",
            interface="text",
            fix=install(bench, "tesseract-ocr", "tesseract"),
        )
    elif "eng" not in (languages := _languages(bench, program)):
        yield row(
            target,
            "video",
            "warning",
            f"tesseract knows no English (it knows {', '.join(languages) or 'no language'})",
            interface="text",
            device=program,
            fix=install(bench, "tesseract-ocr-eng", "tesseract-lang"),
        )
    if not bench.machine.facts.console_fonts() and not glob.glob(os.path.join(state_dir(bench.env), "fonts", "*.npz")):
        yield row(
            target,
            "video",
            "warning",
            "no console font is here or was learned: text consoles are read by tesseract, slower and with mistakes",
            interface="text",
            fix=install(bench, "console-setup-linux", "qemu"),
        )


def _languages(bench: Bench, program: str) -> list[str]:
    _, text = bench.machine.query([program, "--list-langs"], 5.0)
    return [line.strip() for line in text.decode("utf-8", "replace").splitlines()[1:] if line.strip()]


def _device(bench: Bench, target: str, device: str) -> Row:
    """What the lab calls a device, looked up as the capture itself does it."""
    listed = bench.machine.facts.video_devices()
    shown = redact(device)
    try:
        found = look_up(bench.path(device) if device.startswith(("/", "~", ".")) else device, listed or [])
    except NotFound as error:
        if listed is None:
            detail = "this system did not tell its cameras"
            return row(target, "video", "warning", detail, device=shown, fix="labd discover")
        near = f"labd video set -t {target} --device {quote(error.near[0])}" if error.near else "labd discover"
        status = "incomplete" if "means" in error.message else "missing"
        return row(target, "video", status, error.message, device=shown, fix=near)
    if found.kind == "url":
        return row(target, "video", "ok", "a stream; not contacted", device=shown)
    if not os.path.exists(found.where) or (found.kind != "camera" and not os.access(found.where, os.R_OK)):
        fix = f"labd video set -t {target} --device DEVICE  # labd discover lists them"
        status = "denied" if os.path.exists(found.where) else "missing"
        what = "may not be read" if status == "denied" else "is not there"
        return row(target, "video", status, f"{found.where} {what}", device=shown, fix=fix)
    if found.kind != "camera":
        return row(target, "video", "ok", f"a {found.kind} in a file", device=shown)
    return _camera(bench, target, shown, found)


def _camera(bench: Bench, target: str, device: str, found: Found) -> Row:
    node = found.where
    if bench.machine.facts.is_metadata_node(node):
        near = f"video{int(node[len('/dev/video') :]) - 1}" if node[len("/dev/video") :].isdigit() else "DEVICE"
        detail = f"{node} gives no pictures, only what the driver says beside them"
        fix = f"labd video set -t {target} --device /dev/{near}  # labd discover lists them"
        return row(target, "video", "missing", detail, device=device, fix=fix)
    if not os.access(node, os.R_OK | os.W_OK):
        detail, group_fix = access_denied(bench, node)
        return row(target, "video", "denied", f"{node}: {detail}", device=device, fix=group_fix)
    return _free(bench, target, device, node, f"{found.name or 'the device'} is there ({node})")


def _free(bench: Bench, target: str, device: str, node: str, found: str) -> Row:
    """Whether another program has the device: two may open it, only one gets pictures."""
    holders = bench.machine.others(node)
    if holders:
        detail = f"{found}, and held by {holders_words(holders)}: only one program gets pictures"
        return row(target, "video", "busy", detail, device=device, fix=let_go(holders[0], node))
    return row(target, "video", "ok", found, device=device)
