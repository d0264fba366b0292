"""A screen's capture device, and what reading its text needs. Opens no camera, contacts no URL."""

import glob
import os
from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any

from labd.doctor import Bench, Row, access_denied, holders_words, install, let_go, row
from labd.doctor_boards import board_row
from labd.paths import state_dir


def check(bench: Bench, target: str, config: Mapping[str, Any]) -> Iterator[Row]:
    """The device, then the programs and data for reading text."""
    device = config.get("device")
    fix = f"labd video set -t {target} --device DEVICE  # labd discover lists them"
    if not device:
        yield row(target, "video", "incomplete", "no device is set", fix=fix)
    elif device.startswith("board:"):
        yield board_row(bench, target, "video", device, f"labd video set -t {target}")
    elif "://" in device:
        yield _stream(bench, target, device)
    elif device.startswith(("/", "~")):
        yield _path(bench, target, device, bench.path(device), fix)
    else:
        yield _name(bench, target, device, fix)
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


def _stream(bench: Bench, target: str, url: str) -> Row:
    from labd.lab.redact import redact

    scheme, _, rest = url.partition("://")
    if scheme == "file" and not os.path.exists(bench.path(rest)):
        fix = f"labd video set -t {target} --device URL"
        return row(target, "video", "missing", f"{bench.path(rest)} is not there", device=redact(url), fix=fix)
    return row(target, "video", "ok", "a stream; not contacted", device=redact(url))


def _path(bench: Bench, target: str, device: str, path: str, fix: str) -> Row:
    if not os.path.exists(path):
        return row(target, "video", "missing", f"{path} is not there", device=device, fix=fix)
    if not os.access(path, os.R_OK | os.W_OK):
        detail, group_fix = access_denied(bench, path)
        return row(target, "video", "denied", detail, device=device, fix=group_fix)
    node = os.path.realpath(path)
    if bench.machine.facts.is_metadata_node(node):
        near = f"video{int(node[len('/dev/video') :]) - 1}" if node[len("/dev/video") :].isdigit() else "DEVICE"
        detail = f"{node} gives no pictures, only what the driver says beside them"
        fix = f"labd video set -t {target} --device /dev/{near}  # labd discover lists them"
        return row(target, "video", "missing", detail, device=device, fix=fix)
    return _free(bench, target, device, node, "the device is there")


def _name(bench: Bench, target: str, wanted: str, fix: str) -> Row:
    known = bench.machine.facts.video_devices()
    if known is None:
        return row(
            target, "video", "warning", "this system did not tell its cameras", device=wanted, fix="labd discover"
        )
    hits = [v for v in known if wanted in (v["id"], str(v["index"]))] or [
        v for v in known if wanted == "auto" or wanted.lower() in v["name"].lower()
    ]
    if not hits:
        names = ", ".join(repr(v["name"]) for v in known) or "no capture device"
        return row(target, "video", "missing", f"nothing matches {wanted!r}; there is {names}", device=wanted, fix=fix)
    if len(hits) > 1 and wanted != "auto":
        ids = ", ".join(str(v["id"] or v["device"]) for v in hits)
        return row(
            target,
            "video",
            "incomplete",
            f"{wanted!r} matches {len(hits)} devices: {ids}",
            device=wanted,
            fix=f"labd video set -t {target} --device {quote(str(hits[0]['id'] or hits[0]['device']))}",
        )
    node = hits[0]["device"]
    if os.path.exists(node) and not os.access(node, os.R_OK | os.W_OK):
        detail, group_fix = access_denied(bench, node)
        return row(target, "video", "denied", f"{node}: {detail}", device=wanted, fix=group_fix)
    return _free(bench, target, wanted, node, f"matches {hits[0]['name']!r} ({node})")


def _free(bench: Bench, target: str, device: str, node: str, found: str) -> Row:
    """Whether another program has the device: two may open it, only one gets pictures."""
    holders = bench.machine.others(node)
    if holders:
        detail = f"{found}, and held by {holders_words(holders)}: only one program gets pictures"
        return row(target, "video", "busy", detail, device=device, fix=let_go(holders[0], node))
    return row(target, "video", "ok", found, device=device)
