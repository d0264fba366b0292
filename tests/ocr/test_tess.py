"""tesseract is run with one thread, a deadline and its whole process group ended; its table is taken apart."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from labd.ocr import tess
from tests.conftest import until

HEAD = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n"


def _fake(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "tesseract"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_one_that_hangs_is_ended_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(tmp_path, monkeypatch, f"sleep 600 & echo $! > {tmp_path}/child; wait")
    began = time.monotonic()
    with pytest.raises(tess.TesseractFailed, match=r"did not end within 0\.5 s"):
        tess.read(np.zeros((40, 40, 3), np.uint8), 0.5)
    assert time.monotonic() - began < 10
    child = int((tmp_path / "child").read_text())
    until("the end of tesseract's child", lambda: not _runs(child))


def _runs(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        try:
            os.kill(pid, 0)
        except OSError:
            return False
        return not Path("/proc/self").exists()


def test_it_gets_one_thread_and_a_picture_with_dark_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(tmp_path, monkeypatch, f'cat > {tmp_path}/in.png; echo "$OMP_THREAD_LIMIT $*" > {tmp_path}/how')
    assert tess.read(np.zeros((40, 60, 3), np.uint8)) == []
    assert (tmp_path / "how").read_text() == "1 stdin stdout --psm 6 tsv\n"
    import cv2

    sent = cv2.imread(str(tmp_path / "in.png"), cv2.IMREAD_GRAYSCALE)
    assert sent is not None
    assert (sent.shape, int(sent.min())) == ((80, 120), 255)


def test_its_failure_is_told_in_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(tmp_path, monkeypatch, "echo 'no language eng' >&2; exit 3")
    with pytest.raises(tess.TesseractFailed, match="exit code 3: no language eng"):
        tess.read(np.zeros((40, 40, 3), np.uint8))


def test_words_become_lines_with_their_box_and_how_sure_it_is() -> None:
    table = HEAD + "\n".join([
        "1\t1\t0\t0\t0\t0\t0\t0\t640\t480\t-1\t",
        "5\t1\t1\t1\t1\t1\t20\t40\t60\t30\t96.5\tBoot",
        "5\t1\t1\t1\t1\t2\t90\t42\t80\t28\t90.0\tmenu",
        "5\t1\t1\t1\t1\t3\t260\t42\t20\t28\t20\t>",
        "5\t1\t1\t1\t2\t1\t20\t90\t60\t30\t12.0\t~~;",
        "5\t1\t1\t1\t3\t1\t20\t140\t60\t30\t80\t\"",
    ])  # fmt: skip
    first, second = tess.lines_of(table, 2.0)
    assert (first.text, first.box) == ("Boot menu    >", (10, 20, 140, 35))
    assert first.confidence == pytest.approx((0.93 * 8 + 0.2) / 9)
    assert second.text == '"'
    assert tess.sure([first, second]) == pytest.approx((first.confidence * 14 + 0.8) / 15)
