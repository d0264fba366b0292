"""X-modem: the protocol by itself, damaged in every way, and against lrzsz over a real line."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopback import xmodem

from .conftest import DEADLINE_S, Play, Terminal

Open = Callable[[str], Terminal]
needs_lrzsz = pytest.mark.skipif(not (shutil.which("sx") and shutil.which("rx")), reason="lrzsz is not installed")


def carry(
    sender: xmodem.Sender, receiver: xmodem.Receiver, damage: Callable[[bytes], bytes] = lambda data: data
) -> None:
    """Let both talk until both have ended; time passes only when nobody says anything."""
    now = 0.0
    to_sender, to_receiver = receiver.start(now), sender.start(now)
    for _ in range(3000):
        if sender.result is not None and receiver.result is not None:
            return
        said = damage(to_sender), damage(to_receiver)
        to_sender = to_receiver = b""
        if said[0] and sender.result is None:
            to_receiver = sender.feed(said[0], now)
        if said[1] and receiver.result is None:
            to_sender = receiver.feed(said[1], now)
        if to_sender or to_receiver:
            continue
        going = [one for one in (sender, receiver) if one.result is None]
        now = max(now, min((one.due for one in going), default=now))
        if sender.result is None and sender.due <= now:
            to_receiver = sender.late(now)
        if receiver.result is None and receiver.due <= now:
            to_sender = receiver.late(now)


def test_the_crc_is_that_of_the_protocol() -> None:
    assert xmodem.crc16(b"123456789") == 0x31C3


@settings(deadline=None)
@given(data=st.binary(min_size=1, max_size=3000), size=st.sampled_from([128, 1024]), crc=st.booleans())
def test_any_file_arrives_padded_to_whole_blocks(data: bytes, size: int, crc: bool) -> None:
    sender, receiver = xmodem.Sender(data, size, 3), xmodem.Receiver(crc, 3)
    carry(sender, receiver)
    assert (sender.result, receiver.result, sender.retries, receiver.retries) == ("ok", "ok", 0, 0)
    assert bytes(receiver.data) == data + b"\x1a" * (-len(data) % size)


@settings(deadline=None, max_examples=60)
@given(
    data=st.binary(min_size=300, max_size=2000),
    hits=st.dictionaries(st.integers(1, 40), st.sampled_from(["drop", "flip", "lose"]), max_size=4),
)
def test_a_damaged_line_costs_retries_but_never_a_wrong_file(data: bytes, hits: dict[int, str]) -> None:
    sent = 0

    def damage(said: bytes) -> bytes:
        nonlocal sent
        if not said:
            return said
        sent += 1
        how = hits.get(sent)
        middle = len(said) // 2
        if how == "lose":
            return b""
        if how == "drop":
            return said[:middle] + said[middle + 1 :]
        return said[:middle] + bytes([said[middle] ^ 0x55]) + said[middle + 1 :] if how == "flip" else said

    sender, receiver = xmodem.Sender(data, 128, 3), xmodem.Receiver(True, 3)
    carry(sender, receiver, damage)
    if receiver.result == "ok":
        assert bytes(receiver.data) == data + b"\x1a" * (-len(data) % 128)
    else:
        assert receiver.result is not None


def test_a_bad_block_is_refused_once_and_sent_again() -> None:
    for bad_sender, bad_receiver in (((), (2,)), ((2,), ())):
        sender, receiver = xmodem.Sender(b"x" * 400, 128, 3, bad_sender), xmodem.Receiver(True, 3, bad_receiver)
        carry(sender, receiver)
        assert (sender.result, receiver.result, sender.retries, receiver.retries) == ("ok", "ok", 1, 1)
        assert bytes(receiver.data).rstrip(b"\x1a") == b"x" * 400


def test_a_receiver_that_nobody_answers_asks_for_checksums_and_then_gives_up() -> None:
    receiver = xmodem.Receiver(True, 3)
    said = receiver.start(0)
    while receiver.result is None:
        said += receiver.late(receiver.due)
    assert said == b"CCC" + b"\x15" * 8 + b"\x18\x18"
    assert receiver.result == "too many retries"


def test_a_lost_acknowledgement_doubles_no_block() -> None:
    receiver = xmodem.Receiver(True, 3)
    receiver.start(0)
    first = xmodem.block(1, b"a" * 128, True)
    assert receiver.feed(first, 0) == receiver.feed(first, 1) == b"\x06"
    assert receiver.data == b"a" * 128


def test_two_cans_end_it() -> None:
    sender, receiver = xmodem.Sender(b"x", 128, 3), xmodem.Receiver(True, 3)
    sender.feed(b"C\x18\x18", 0)
    receiver.start(0)
    receiver.feed(b"\x18", 0)
    assert receiver.result is None
    receiver.feed(b"\x18", 0)
    assert (sender.result, receiver.result) == ("cancelled", "cancelled")


# -- the board --------------------------------------------------------------------------------------------------


def lrzsz(port: Terminal, *argv: str, cwd: Path) -> None:
    """Run a program of lrzsz on the port, over pipes: at its end it flushes a terminal, and with it what a PTY's
    tcdrain did not wait for, the last acknowledgement."""
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    deadline = time.monotonic() + DEADLINE_S * 2
    try:
        os.write(process.stdin.fileno(), bytes(port.seen))
        port.seen.clear()
        while ready := select.select([port.fd, process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
            if port.fd in ready:
                with contextlib.suppress(BrokenPipeError):
                    os.write(process.stdin.fileno(), os.read(port.fd, 4096))
            if process.stdout in ready:
                if not (data := os.read(process.stdout.fileno(), 4096)):
                    break
                port.send(data)
        assert process.wait(DEADLINE_S) == 0, process.stderr.read().decode("utf-8", "replace")
    finally:
        process.kill()
        process.communicate()


def ended(port: Terminal, what: str) -> tuple[int, str, int]:
    found = re.search(rb"(\d+) bytes, sha256 (\w+), (\d+) retries", port.expect(what.encode() + rb" .*\r\nload> "))
    assert found
    return int(found[1]), found[2].decode(), int(found[3])


@needs_lrzsz
@pytest.mark.parametrize(
    ("command", "options", "retries"), [("rx", [], 0), ("rx", ["-k"], 0), ("rx checksum", [], 0), ("rx bad", [], 1)]
)
def test_sx_sends_to_the_board(
    play: Play, terminal: Open, tmp_path: Path, command: str, options: list[str], retries: int
) -> None:
    data = bytes(range(256)) * 12 + b"end"
    (tmp_path / "file").write_bytes(data)
    player = play("xmodem", "--baud", "0")
    port = terminal(player.tty)
    port.expect(rb"load> ")
    port.send(command.encode() + b"\r")
    port.expect(rb"Ready to receive by X-modem\r\n")
    lrzsz(port, "sx", *options, "file", cwd=tmp_path)
    size, digest, again = ended(port, "Received")
    assert (size, digest) == (len(data), hashlib.sha256(data).hexdigest())
    assert again >= retries
    assert player.records("transfer")[0]["file_sha256"] == digest


@needs_lrzsz
@pytest.mark.parametrize("command", ["sx", "sx 1k", "sx bad", "sx checksum"])
def test_rx_receives_from_the_board(play: Play, terminal: Open, tmp_path: Path, command: str) -> None:
    options = [] if command == "sx checksum" else ["-c"]
    player = play("xmodem", "--baud", "0", "--set", "nonce=k3y")
    port = terminal(player.tty)
    port.expect(rb"load> ")
    port.send(command.replace(" checksum", "").encode() + b"\r")
    port.expect(rb"Ready to send by X-modem\r\n")
    lrzsz(port, "rx", "-b", *options, "got", cwd=tmp_path)
    size, digest, _ = ended(port, "Sent")
    got = (tmp_path / "got").read_bytes()
    assert hashlib.sha256(got[:size]).hexdigest() == digest
    assert set(got[size:]) <= {0x1A}
    assert got.startswith(b"board k3y line 000001\r\n")


def test_a_transfer_that_nobody_takes_part_in_fails_and_says_why(play: Play, terminal: Open) -> None:
    port = terminal(play("xmodem", "--set", "wait_ms=20").tty)
    port.expect(rb"load> ")
    port.send(b"rx\r")
    port.expect(rb"C.*\x15.*\x18\x18\r\nTransfer failed: too many retries\r\nload> ")
    port.send(b"sx\r")
    port.expect(rb"Transfer failed: nobody asked\r\nload> ")
    port.send(b"rx\r")
    port.expect(rb"X-modem\r\nC")
    port.send(b"\x18\x18")
    port.expect(rb"Transfer failed: cancelled\r\nload> ")
