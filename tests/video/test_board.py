"""The screen of a virtual board: real firmware in QEMU, seen by QMP."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import cv2
import pytest

from tests.conftest import BenchInAFolder, a_bench, until

LAB = """[targets.pc]
[targets.pc.video]
device = "board:uboot-x86"
[[targets.pc.serial]]
name = "console"
device = "board:uboot-x86"
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchInAFolder]:
    """A bench whose target `pc` is U-Boot in QEMU."""
    if not shutil.which("qemu-system-x86_64"):
        pytest.skip("qemu-system-x86_64 is not installed")
    if subprocess.run(["dpkg-query", "-s", "u-boot-qemu"], capture_output=True).returncode and sys.platform == "linux":
        pytest.skip("the package u-boot-qemu is not installed")
    with a_bench(tmp_path_factory.mktemp("board")) as made:
        made.lab.write_text(LAB)
        yield made


def shot(bench: BenchInAFolder, *argv: str) -> dict[str, str]:
    found: dict[str, str] = bench.json("video", "shot", "pc", "-o", "s.png", "--timeout", "30000", *argv)
    return found


def test_a_board_is_seen_from_its_first_picture_on_and_through_a_reset(bench: BenchInAFolder) -> None:
    bench("video", "watch", "pc")
    first = shot(bench, "--stable", "--still", "3000")  # its countdown is over
    assert cv2.imread(first["file"]).shape == (768, 1024, 3)
    bench("serial", "watch", "pc")
    bench("serial", "send", "pc", "echo seen-on-the-screen")
    typed = shot(bench, "--changed-since", first["hash"], "--stable")
    with socket.socket(socket.AF_UNIX) as qmp:
        qmp.connect(str(next((bench.runtime / "labd" / "boards").glob("*/qmp"))))
        for command in ("qmp_capabilities", "system_reset"):
            qmp.sendall(json.dumps({"execute": command}).encode())
        qmp.recv(65536)
        stale = bench("video", "shot", "pc", "--timeout", "700", check=None)
    if stale.returncode:  # unless its firmware was quicker than we
        assert stale.returncode == 5 and any(word in stale.stderr for word in (b"was reset", b"no signal", b"no frame"))
    again = shot(bench, "--stable", "--still", "3000")
    assert again["hash"] != typed["hash"], "never the picture of before the reset"


def test_a_board_is_ended_with_what_watches_its_screen_and_started_by_the_next_watch(bench: BenchInAFolder) -> None:
    bench("video", "watch", "pc")
    bench("daemons", "stop", "pc.board")
    assert bench.json("video", "show", "pc")["state"] is None
    bench("video", "watch", "pc")
    assert shot(bench)["signal"] == "ok"


def test_the_board_ends_with_the_last_channel_that_uses_it(bench: BenchInAFolder) -> None:
    bench("video", "watch", "pc")
    bench("serial", "stop", "pc")
    assert [board["name"] for board in bench.json("daemons")["boards"]] == ["pc.board"]
    bench("video", "stop", "pc")
    until("the board has ended", lambda: not bench.json("daemons")["boards"])
    assert not list(Path(bench.runtime / "labd" / "boards").glob("*/screen*"))
