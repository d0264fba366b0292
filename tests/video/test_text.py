"""`labd video read`, `text`, `wait`, `expect`, `learn-font`: a real daemon and capture process, a file for a screen.

The pictures are real screens; the font is learned from one of them, so that no firmware image is needed.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from labd.video.seek import CHART
from tests.conftest import BenchInAFolder, a_bench
from tests.ocr.rig import SCREENS, Array, draw, screen, truth, vga


def show(bench: BenchInAFolder, picture: Array) -> None:
    """Let the screen of `dut` show this, at once and whole."""
    fresh = bench.root / "fresh.png"
    assert cv2.imwrite(str(fresh), picture)
    os.replace(fresh, bench.root / "screen.png")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchInAFolder]:
    root = tmp_path_factory.mktemp("text")
    with a_bench(root) as made:
        made.lab.write_text('[targets.dut.video]\ndevice = "./screen.png"\n[targets.dut.hid]\ncmd = "./typist"\n')
        typist = root / "typist"
        typist.write_text('#!/bin/sh\necho "$*" >> "$(dirname "$0")/typed"\n')
        typist.chmod(0o755)
        show(made, screen("linux_p0"))
        made("video", "watch", "dut", timeout=120)
        shutil.copy(SCREENS / "p0.txt", root / "known.txt")
        learned = made.json("video", "learn-font", "dut", "--text", "known.txt", "--name", "text-mode", timeout=120)
        assert (learned["exact"], learned["width"], learned["height"]) == (True, 9, 16)
        assert Path(learned["file"]).exists()
        yield made


@pytest.fixture(autouse=True)
def fresh(bench: BenchInAFolder) -> None:
    show(bench, screen("linux_p0"))


def test_the_screen_is_read_without_an_error_and_it_says_how(bench: BenchInAFolder) -> None:
    done = bench("video", "read", "dut", "--engine", "console")
    assert done.stdout.decode().rstrip("\n") == truth("p0")
    assert b"native pixels" in done.stderr
    assert b"hash=" in done.stderr


def test_json_has_the_box_and_the_confidence_of_each_line(bench: BenchInAFolder) -> None:
    said = bench.json("video", "read", "dut", "--region", "0,16,720,32")
    assert [line["text"] for line in said["lines"]] == truth("p0").split("\n")[1:3]
    assert said["lines"][1]["box"][:2] == [0, 32]
    assert said["lines"][0]["confidence"] == 1.0
    assert (said["engine"], said["grid"]["cell_width"], said["grid"]["cell_height"]) == ("console", 9, 16)
    assert len(said["hash"]) == 16


def test_a_screen_without_text_is_exit_1_and_why(bench: BenchInAFolder) -> None:
    picture = np.zeros((400, 720, 3), np.uint8)
    cv2.circle(picture, (360, 200), 150, (0, 200, 255), 40)
    show(bench, picture)
    done = bench("video", "read", "dut", "--engine", "console", "--stable", check=1)
    assert done.stdout == b""
    assert b"no text can be read on the screen: " in done.stderr
    error = json.loads(bench("video", "read", "dut", "--engine", "console", "--json", check=1).stderr.splitlines()[-1])
    assert "no text can be read" in json.dumps(error)


def test_the_difference_is_the_lines_that_came_and_went(bench: BenchInAFolder) -> None:
    first = bench.json("video", "text", "dut", "--stable")
    lines = truth("p0").split("\n")
    show(bench, draw(vga(), [*lines[2:], "root@vdut:~# mount", "/dev/mmcblk0p1 on /"], (720, 400)))
    done = bench("video", "text", "dut", "--diff", "--changed-since", first["hash"])
    wanted = [f"- {line}" for line in lines[:2]] + ["+ root@vdut:~# mount", "+ /dev/mmcblk0p1 on /"]
    assert sorted(done.stdout.decode().splitlines()) == sorted(wanted)
    again = bench("video", "text", "dut", "--diff")
    assert again.stdout == b""
    back = bench.json("video", "text", "dut", "--diff", "--since", first["hash"])
    assert back["removed"] == lines[:2]
    assert bench("video", "text", "dut", "--diff", "--since", "0123456789abcdef", check=4).stdout == b""


def test_wait_finds_what_is_there_and_what_comes(bench: BenchInAFolder) -> None:
    said = bench.json("video", "wait", "dut", "eth6: link up", "--timeout", "10")
    assert said["line"].endswith("12:3b:16:12:dd:27")
    assert said["box"][1] == 0
    later = threading.Timer(1.0, show, [bench, draw(vga(), ["", "dut login: "], (720, 400))])
    later.start()
    began = time.monotonic()
    assert bench.out("video", "wait", "dut", "login: ", "--timeout", "30").splitlines() == ["dut login:"]
    assert time.monotonic() - began < 25
    later.join()


def test_a_text_that_the_screen_broke_at_its_edge_is_found(bench: BenchInAFolder) -> None:
    show(bench, draw(vga(), ["x" * 70 + "/usr/lib/m", "odules/6.1.0 loaded"], (720, 400)))
    said = bench.json("video", "wait", "dut", "/usr/lib/modules/6.1.0", "--timeout", "10")
    assert said["match"] == "/usr/lib/modules/6.1.0"


def test_a_wait_in_vain_is_exit_5_with_the_nearest_miss(bench: BenchInAFolder) -> None:
    done = bench("video", "wait", "dut", "No such file or dlrectory", "--timeout", "1", check=5)
    assert b"No such file or directory" in done.stderr
    assert done.stdout == b""


def test_expect_presses_keys_once_it_is_there_and_tells_the_record(bench: BenchInAFolder) -> None:
    said = bench.json("video", "expect", "dut", r"root@(\w+)", "--type", "ls", "--key", "enter", "--timeout", "10")
    assert (said["groups"], said["match"]) == (["vdut"], "root@vdut") or said["groups"] == ["dut"]
    assert (bench.root / "typed").read_text() == "type ls\nkey enter\n"
    assert len(said["did"]) == 2
    told = bench.out("timeline", "dut")
    assert "seen" in told


def test_a_key_that_there_is_not_is_refused_before_the_wait(bench: BenchInAFolder) -> None:
    began = time.monotonic()
    bench("video", "expect", "dut", "never to come", "--key", "f99", "--timeout", "60", check=2)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("pattern", ["(", ""])
def test_a_pattern_that_is_none_is_refused(bench: BenchInAFolder, pattern: str) -> None:
    bench("video", "expect", "dut", pattern, check=2)
    said = bench("video", "wait", "dut", pattern, "--regex", check=2).stderr
    assert b"--literal" not in said and b"serial" not in said


def test_a_font_is_not_learned_from_a_screen_that_says_something_else(bench: BenchInAFolder) -> None:
    done = bench("video", "learn-font", "dut", "--name", "wrong", check=1)
    assert b"does not show that text" in done.stderr
    assert not list(bench.root.glob("state/labd/fonts/wrong*"))


def test_the_chart_has_each_character_twice(bench: BenchInAFolder) -> None:
    assert bench.out("video", "learn-font", "--chart").splitlines() == list(CHART)
    assert sorted("".join(CHART)) == sorted([chr(code) for code in range(0x21, 0x7F)] * 2)


def test_a_screen_that_is_not_captured_says_so(bench: BenchInAFolder, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text('[targets.dut.video]\ndevice = "./screen.png"\n')
    done = bench("video", "read", "dut", env={"LABD_LAB": str(other)}, check=7)
    assert b"labd video watch dut" in done.stderr


@pytest.mark.parametrize("verb", ["wait", "expect", "read", "text", "shot"])
def test_a_target_without_a_screen_is_told_at_once(bench: BenchInAFolder, verb: str) -> None:
    before = bench.lab.read_text()
    try:
        bench.lab.write_text(before + '[targets.blind]\ndescription = "no camera"\n')
        more = ["login", "--timeout", "30"] if verb in ("wait", "expect") else []
        began = time.monotonic()
        out = ["-o", "never.png"] if verb == "shot" else []
        assert b"labd video set" in bench("video", verb, "blind", *more, *out, check=4, timeout=30).stderr
        assert time.monotonic() - began < 10
    finally:
        bench.lab.write_text(before)
