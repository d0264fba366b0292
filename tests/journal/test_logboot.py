"""--since-boot: the newest boot by what was done to the board or by what it printed, and no false ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from labd import logquery
from labd.journal_read import Line
from tests.journal.parts import Board

SPL = b"\r\nU-Boot SPL 2026.04 (Apr 06 2026)\r\nTrying to boot from MMC1\r\n"
UBOOT = b"\r\n\r\nU-Boot 2026.04 (Apr 06 2026)\r\n\r\nHit any key to stop autoboot:  0 \r\n"
LINUX = (
    b"Starting kernel ...\r\n\r\n"
    b"[    0.000000] Booting Linux on physical CPU 0x0\r\n"
    b"[    0.000000] Linux version 6.12.0 (build@host)\r\n[    1.000000] ready\r\n"
)


@pytest.fixture
def board(tmp_path: Path) -> Board:
    """A board with a journal."""
    return Board(tmp_path)


def since_boot(board: Board) -> list[bytes]:
    """The lines since the last boot, without their line ends."""
    asked = logquery.query(board.directory, since_boot=True, tail=0)
    return [item.raw.strip() for item in asked if isinstance(item, Line) and item.raw.strip()]


def test_the_stages_of_one_boot_are_one_boot(board: Board) -> None:
    board.says(b"old\r\n", SPL, UBOOT, LINUX, b"login: ")
    lines = since_boot(board)
    assert lines[0] == b"U-Boot SPL 2026.04 (Apr 06 2026)" and lines[-1] == b"login:"


def test_of_several_boots_it_is_the_last(board: Board) -> None:
    for number in range(3):
        board.says(SPL, UBOOT, LINUX, b"boot %d\r\n" % number)
    lines = since_boot(board)
    assert lines[0].startswith(b"U-Boot SPL") and lines[-1] == b"boot 2"
    assert b"boot 1" not in lines
    board.says(b"x\r\n" * 300_000)
    assert since_boot(board)[0].startswith(b"U-Boot SPL"), "however far back"


def test_a_boot_that_got_only_to_the_loader_counts(board: Board) -> None:
    board.says(UBOOT, LINUX, UBOOT, b"=> ")
    assert since_boot(board) == [
        b"U-Boot 2026.04 (Apr 06 2026)",
        b"Hit any key to stop autoboot:  0",
        b"=>",
    ]


@pytest.mark.parametrize(
    "words",
    [
        b"=> version\r\nU-Boot 2026.04 (Apr 06 2026)\r\naarch64-linux-gnu-gcc\r\n",
        b"# dmesg\r\n[    0.000000] Booting Linux on physical CPU 0x0\r\n[    0.000000] Linux version 6.12.0\r\n",
        b"# cat /proc/version\r\nLinux version 6.12.0 (build@host)\r\n",
        b"# strings vmlinux\r\nx\r\nLinux version 6.12.0 (build@host)\r\n",
        b"# echo 'about U-Boot SPL 2026'\r\nabout U-Boot SPL 2026\r\n",
    ],
)
def test_the_same_words_on_request_are_no_boot(board: Board, words: bytes) -> None:
    board.says(SPL, UBOOT, LINUX, words, b"end\r\n")
    lines = since_boot(board)
    assert lines[0].startswith(b"U-Boot SPL") and lines[-1] == b"end"


def test_a_reset_is_a_boot_before_the_board_has_said_anything(board: Board) -> None:
    board.says(SPL, UBOOT, LINUX, b"# ")
    board.journal.event("reset", ms=200)
    assert since_boot(board) == [b"#"]
    board.says(b"\r\nodd firmware\r\n")
    assert since_boot(board) == [b"#", b"odd firmware"]
    board.says(SPL, UBOOT)
    assert since_boot(board)[1] == b"odd firmware", "the banners that follow belong to the same boot"
    board.says(SPL, UBOOT, b"second\r\n")
    assert b"odd firmware" not in since_boot(board)


@pytest.mark.parametrize("state", ["started", "reset", "on"])
def test_a_simulated_board_that_was_started_or_reset_has_booted(board: Board, state: str) -> None:
    board.says(b"before\r\n")
    board.journal.event("dut", state=state, pid=7)
    board.journal.tx(b"x")
    board.says(b"after\r\n")
    board.journal.event("dut", state="exited", code=0)
    assert since_boot(board) == [b"after"]


def test_a_boots_first_words_may_be_faster_than_the_news_of_it(board: Board) -> None:
    board.says(b"old\r\n", UBOOT)
    board.journal.event("dut", state="reset", wall_ns=board.now, mono_ns=board.now)
    board.says(LINUX)
    assert since_boot(board)[0] == b"U-Boot 2026.04 (Apr 06 2026)"


def test_where_nothing_looks_like_a_boot_all_is_shown_and_that_is_said(board: Board) -> None:
    board.says(b"a\r\n", b"b\r\n")
    asked = logquery.query(board.directory, since_boot=True)
    assert len(list(asked)) == 2
    assert asked.notes() == ["no boot is in what is kept (no reset, no boot banner); this is what there is"]


def test_the_evidence_is_named(board: Board) -> None:
    board.says(b"x\r\n", UBOOT)
    asked = logquery.query(board.directory, since_boot=True)
    list(asked)
    assert asked.notes() == ["the last boot begins at #4 (its banner: U-Boot 2026.04 (Apr 06 2026))"]


def test_other_selectors_narrow_the_boot_down(board: Board) -> None:
    board.says(UBOOT, b"error 1\r\n", UBOOT, b"error 2\r\n", b"fine\r\n")
    asked = logquery.query(board.directory, since_boot=True, grep="error")
    assert [item.raw for item in asked if isinstance(item, Line)] == [b"error 2\r"]
