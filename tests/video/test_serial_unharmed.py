"""Eight serial ports lose nothing while a camera's process is killed and stopped in the midst of its stream."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

from tests.conftest import a_bench, until
from tests.video.camera import Camera, console

PORTS = 8
RATE = 100


def test_eight_serial_ports_lose_nothing_while_a_camera_dies(tmp_path: Path) -> None:
    with a_bench(tmp_path) as bench, Camera(noise=3) as camera:
        camera.show(console("debian login: ", size=(1280, 720)))
        names = [f"s{n}" for n in range(PORTS)]
        lines = "".join(f'[[targets.pico.serial]]\nname = "{name}"\ndevice = "loopback:flood"\n' for name in names)
        bench.lab.write_text(f'[targets.pico.video]\ndevice = "{camera.url}"\n{lines}')
        bench("video", "watch", "pico")
        bench("serial", "watch", "pico")
        for name in names:
            bench("serial", "send", "pico", "-i", name, f"rate {RATE}")
        killed = set()
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGKILL):
            pid = until("a capture process", lambda: _next(bench.json("video", "show", "pico")["state"], killed))
            os.kill(pid, number)
            killed.add(pid)
            time.sleep(0.3)
        for name in names:
            sent = bench.json("serial", "send", "pico", "-i", name, "stop", "--expect", r"stopped, sent=(\d+)")
            log = bench.out("serial", "log", "pico", "-i", name, "--tail", "0")
            numbers = [int(found) for found in re.findall(r"kernel: flood (\d{8}) usb", log)]
            count = int(re.findall(r"stopped, sent=(\d+)", log)[-1])
            assert numbers == list(range(numbers[0], numbers[0] + count)), (name, sent)
        assert all(row["capture"]["complete"] for row in bench.json("serial", "show", "pico"))
        until("the screen is seen again", lambda: bench.json("video", "show", "pico")["state"]["signal"] == "ok")
        assert bench.json("video", "show", "pico")["state"]["restarts"] >= len(killed)


def _next(state: dict[str, Any], killed: set[int]) -> int | None:
    """The pid of a capture process that sees the screen and was not killed yet."""
    pid: int | None = state["pid"]
    return pid if state["signal"] == "ok" and pid not in killed else None
