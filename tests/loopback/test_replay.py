"""A captured journal becomes a board: it says what was heard, when it was, and answers what was sent."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labd.journal import Journal
from loopback import capture, replay

from .conftest import DEADLINE_S, Play, Terminal

Open = Callable[[str], Terminal]
Script = list[tuple[float, str, bytes]]

LOGIN: Script = [
    (0, "rx", b"\r\nU-Boot 2026\r\nHit any key: \b\b\b 3 "),
    (300, "rx", b"\b\b\b 2 "),
    (10, "tx", b" "),
    (5, "rx", b"\r\n=> "),
    (50, "tx", b"boot\r"),
    (2, "rx", b"boot\r\n"),
    (400, "rx", b"Linux {braces} \xff\x00\x7f \xe2\x82\xac\r\nlogin: "),
    (50, "tx", b"root\r"),
    (5, "rx", b"root\r\nPassword: "),
    (50, "tx", b"secret\r"),
    (50, "rx", b"\r\n# "),
    (10, "tx", b"da"),
    (1, "rx", b"da"),
    (10, "tx", b"te\r"),
    (1, "rx", b"te\r\nMonday\r\n# "),
    (10, "tx", b"true\r"),
    (1, "rx", b"true\r\n# "),
    (10, "tx", b"date\r"),
    (1, "rx", b"date\r\nTuesday\r\n# "),
    (1500, "rx", b"[ 12.3] late\r\n"),
    (10, "tx", b"sleep 99\r"),
    (1, "rx", b"sleep 99\r\n"),
    (10, "tx", b"\x03"),
    (1, "rx", b"^C\r\n# "),
]


def journal(directory: Path, script: Script) -> Path:
    """A journal as the bench itself writes it; times are milliseconds after the entry before."""
    at_ns = 1_700_000_000_000_000_000
    written = Journal(str(directory))
    clock = {"wall": at_ns, "mono": 5_000_000_000}
    real = time.time_ns, time.monotonic_ns
    try:
        time.time_ns = lambda: clock["wall"]
        time.monotonic_ns = lambda: clock["mono"]
        for ms, kind, data in script:
            clock["wall"] += int(ms * 1e6)
            clock["mono"] += int(ms * 1e6)
            if kind == "rx":
                written.rx(data, clock["wall"], clock["mono"])
            else:
                written.tx(data)
        written.close()
    finally:
        time.time_ns, time.monotonic_ns = real
    return directory


def test_turns_are_lines_keys_and_what_was_not_echoed(tmp_path: Path) -> None:
    found = replay.turns(capture.read(journal(tmp_path / "j", LOGIN)))
    assert [(turn.sent, turn.kind) for turn in found] == [
        (b" ", "key"),
        (b"boot\r", "lines"),
        (b"root\r", "lines"),
        (b"secret\r", "quiet"),
        (b"date\r", "lines"),
        (b"true\r", "lines"),
        (b"date\r", "lines"),
        (b"sleep 99\r", "lines"),
        (b"\x03", "key"),
    ]


def test_a_capture_replays_byte_for_byte_with_its_pauses(tmp_path: Path, play: Play, terminal: Open) -> None:
    path = tmp_path / "replay.toml"
    path.write_text(replay.make(journal(tmp_path / "j", LOGIN), 1.0))
    port = terminal(play(str(path)).tty)
    begun = time.monotonic()
    seen = b""
    for _, kind, data in LOGIN:
        if kind == "tx":
            port.send(data)
        else:
            seen += port.take(len(data))
    assert seen == b"".join(data for _, kind, data in LOGIN if kind == "rx")
    assert time.monotonic() - begun > 0.3 + 0.4 + 1.5


def test_it_replays_faster_and_in_another_order(tmp_path: Path, play: Play, terminal: Open) -> None:
    path = tmp_path / "replay.toml"
    path.write_text(replay.make(journal(tmp_path / "j", LOGIN), 0))
    port = terminal(play(str(path)).tty)
    for send, until in (
        (b"", rb" 2 "),
        (b" ", rb"=> "),
        (b"root\r", rb"Password: "),
        (b"secret\r", rb"\r\n# "),
        (b"true\r", rb"true\r\n# "),
        (b"date\r", rb"Monday\r\n# "),
        (b"date\r", rb"Tuesday\r\n# .*late\r\n"),
        (b"date\r", rb"Tuesday\r\n# "),
    ):
        port.send(send)
        port.expect(until)


def test_the_command_line_prints_a_file_that_checks(tmp_path: Path) -> None:
    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "loopback", *args],
            capture_output=True,
            text=True,
            cwd=Path(__file__).parents[2],
            timeout=DEADLINE_S,
        )

    directory = journal(tmp_path / "j", LOGIN)
    done = run("--from-journal", str(directory), "--speed", "2")
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "made.toml").write_text(done.stdout)
    assert "ok (" in run("--check", str(tmp_path / "made.toml")).stdout
    assert "wait_ms = 150" in done.stdout
    done = run("--from-journal", str(tmp_path))
    assert (done.returncode, "holds no journal" in done.stderr) == (4, True)
    assert run("--speed", "2", "uboot").returncode == 2
    assert run("--from-journal", str(directory), "--speed", "-1").returncode == 2


def test_a_journal_of_several_segments_and_a_torn_end_is_read(tmp_path: Path) -> None:
    written = Journal(str(tmp_path / "j"), segment_bytes=1000)
    for number in range(300):
        written.rx(b"line %d\r\n" % number, 1, 1)
    written.tx(b"x\r")
    written.close()
    assert len(list((tmp_path / "j" / "rx").glob("*.raw"))) > 1
    last = sorted((tmp_path / "j" / "rx").glob("*.idx"))[-1]
    last.write_bytes(last.read_bytes() + b"torn")
    with open(sorted((tmp_path / "j" / "events").glob("*.raw"))[-1], "ab") as events:
        events.write(b'{"kind": "tx", "rx"')
    found = capture.read(tmp_path / "j")
    assert b"".join(chunk.data for chunk in found.heard) == b"".join(b"line %d\r\n" % n for n in range(300))
    assert [chunk.data for chunk in found.sent] == [b"x\r"]


PIECES = st.lists(
    st.tuples(
        st.floats(0, 3000),
        st.sampled_from(["rx", "tx"]),
        st.binary(min_size=1, max_size=12) | st.sampled_from([b"a\r", b"b\r\n", b"\x03", b"a", b"a\r\n", b"\x1b[A"]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=PIECES)
def test_whatever_was_captured_makes_a_board(tmp_path_factory: pytest.TempPathFactory, script: Script) -> None:
    directory = journal(tmp_path_factory.mktemp("j"), script)
    if not any(kind == "rx" for _, kind, _ in script):
        with pytest.raises(capture.NoJournal):
            capture.read(directory)
        return
    assert replay.make(directory, 1.0).startswith("title = ")
    assert b"".join(turn.sent for turn in replay.turns(capture.read(directory))) == b"".join(
        data for _, kind, data in script if kind == "tx"
    )
