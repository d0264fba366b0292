"""Reading consoles beside tesseract on the same frames: how long it takes and how many characters are wrong.

Steady state ("again") is what a screen costs that is read again and again; "first" includes finding the grid and the
font, once a change of mode. One thread each; CPU time too, which other work on the machine does not change. tesseract
gets the picture as its documentation wants it: dark on light, enlarged.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is loaded

import cv2

from labd.ocr import library, reader, tess
from labd.ocr.fonts import Font
from tests.ocr.rig import MODELS, captured, error_rate, screen, truth, vga

QUICK = ("720p", "1080p, 4:3 with bars", "720p, q20", "640x360")


def timed(work: Callable[[], Any], rounds: int) -> tuple[Any, float, float]:
    """(what it gave last, the least ms by the clock, the median ms of CPU)."""
    clock, used = [], []
    for _ in range(rounds):
        began, before = time.perf_counter(), time.process_time()
        found = work()
        clock.append((time.perf_counter() - began) * 1000)
        used.append((time.process_time() - before) * 1000)
    return found, min(clock), statistics.median(used)


def row(name: str, frame: Any, text: str, fonts: list[Font], rounds: int, beside: bool) -> None:
    """One line of the table."""
    first, first_ms, first_cpu = timed(lambda: reader.read(frame, fonts=fonts, engine="console"), 1)
    page, ms, cpu = timed(lambda: reader.read(frame, fonts=fonts, engine="console", hint=first.hint), rounds)
    words = f"{name:36} {error_rate(text, page.text):7.4f} {ms:8.1f} {cpu:6.1f} {first_ms:8.0f} {first_cpu:6.0f}"
    if beside:
        try:
            began = os.times()
            lines, ms, _ = timed(lambda: tess.read(frame, 60.0), 1)
            ended = os.times()
            cpu = (ended.children_user + ended.children_system - began.children_user - began.children_system) * 1000
            said = "\n".join(line.text for line in lines)
            words += f"   {error_rate(text, said):7.4f} {ms:8.0f} {cpu:6.0f}"
        except tess.TesseractFailed as failed:
            words += f"   {failed}"
    print(words, flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="four capture models instead of all")
    parser.add_argument("--no-tesseract", action="store_true", help="our reader alone")
    args = parser.parse_args()
    cv2.setNumThreads(1)
    fonts = library.find_fonts({**os.environ})
    if not any(font.name == "vga-9x16" for font in fonts):
        fonts.append(vga())
    rounds, beside = (3 if args.quick else 7), not args.no_tesseract
    print(f"{'':36} {'again':^23} {'first':^15}   {'tesseract':^23}")
    print("80x25 console".ljust(36) + "   wrong       ms    cpu       ms    cpu     wrong       ms    cpu")
    row("native pixels", screen("linux_p0"), truth("p0"), fonts, rounds, beside)
    row("native pixels, coloured words", screen("linux_c0"), truth("p0"), fonts, rounds, beside)
    for name in QUICK if args.quick else MODELS:
        row(name, captured(screen("linux_p0"), **MODELS[name]), truth("p0"), fonts, rounds, beside)
    for name in QUICK:
        row(f"coloured words: {name}", captured(screen("linux_c0"), **MODELS[name]), truth("p0"), fonts, rounds, beside)


if __name__ == "__main__":
    main()
