"""`labd serial xfer` against lrzsz on the far side of a real PTY, and against nobody."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import threading
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from labd import paths
from labd.journal_read import Reader
from labd.transfer import progress
from labd.transfer_place import Staging
from tests.conftest import LAB_OF_ONE, BenchInAFolder, until

needs_lrzsz = pytest.mark.skipif(
    not all(map(shutil.which, ("sx", "sb", "sz", "rx", "rb", "rz"))),
    reason="lrzsz is not installed (apt-get install lrzsz)",
)

#: Every byte value, in an order that no protocol finds handy, and the characters that flow control eats.
FILE = bytes(range(256)) * 40 + b"\x11\x13\x18\x18\x18\r\n" * 200


class Far:
    """The board's end of the cable: a PTY master on which programs can be run."""

    def __init__(self, bench: BenchInAFolder) -> None:
        self.master, near = pty.openpty()
        tty.setraw(near)
        tty.setraw(self.master)
        self.near = near
        bench.lab.write_text(LAB_OF_ONE.replace("loopback:{dut}", os.ttyname(near)))
        self.directory = bench.root / "board"
        self.directory.mkdir()

    @contextlib.contextmanager
    def runs(self, *argv: str) -> Iterator[subprocess.Popen[bytes]]:
        """A program of the board's on the cable; by pipes, as it would set the modes of a terminal, which is ours."""
        pipe = subprocess.PIPE
        program = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, bufsize=0,
                                   cwd=self.directory)  # fmt: skip
        ended, tell = os.pipe()
        relay = threading.Thread(target=self._relay, args=(program, ended))
        relay.start()
        try:
            yield program
        finally:
            if program.poll() is None:
                program.kill()
            program.wait()
            os.close(tell)
            relay.join(10)
            os.close(ended)
            for end in (program.stdin, program.stdout):
                with contextlib.suppress(OSError):
                    end.close()

    def _relay(self, program: subprocess.Popen[bytes], ended: int) -> None:
        out, master = program.stdout.fileno(), self.master
        while ended not in (ready := select.select([out, master, ended], [], [])[0]):
            with contextlib.suppress(OSError):
                if master in ready:
                    os.write(program.stdin.fileno(), os.read(master, 4096))
                if out in ready:
                    data = os.read(out, 4096)
                    if not data:
                        return
                    os.write(master, data)


@pytest.fixture
def far(labd: BenchInAFolder) -> Iterator[Far]:
    """A captured cable with nobody on the board's side."""
    far = Far(labd)
    labd("serial", "watch", "dut")
    yield far
    os.close(far.master)
    os.close(far.near)


@needs_lrzsz
@pytest.mark.parametrize(
    ("protocol", "receiver"), [("x", ["rx", "-b", "file.bin"]), ("y", ["rb", "-b"]), ("z", ["rz", "-b"])]
)
def test_a_file_arrives_byte_for_byte(labd: BenchInAFolder, far: Far, protocol: str, receiver: list[str]):
    (labd.root / "file.bin").write_bytes(FILE)
    call = labd.start("serial", "xfer", "send", "file.bin", "--protocol", protocol, "--json")
    until("the transfer", lambda: labd.json("serial", "show", "dut")[0].get("writer"))
    with far.runs(*receiver) as board:  # only now: the first word of one that waits alone is lost, the next comes late
        out, err = call.communicate(timeout=60)
        board.wait(20)
    assert call.returncode == 0, err
    done = json.loads(out)
    arrived = (far.directory / "file.bin").read_bytes()
    assert arrived[: len(FILE)] == FILE
    assert arrived[len(FILE) :].strip(b"\x1a") == b"" and (protocol == "x" or len(arrived) == len(FILE))
    assert (done["protocol"], done["size"], done["direction"]) == (protocol, len(FILE), "send")
    assert done["bytes"] > len(FILE)


@needs_lrzsz
def test_several_files_go_in_one_call(labd: BenchInAFolder, far: Far):
    (labd.root / "one").write_bytes(b"1" * 1000)
    (labd.root / "two").write_bytes(FILE)
    with far.runs("rz", "-b") as board:
        said = labd.out("serial", "xfer", "send", "one", "two", "-t", "dut", "-i", "console")
        board.wait(20)
    assert (far.directory / "one").read_bytes() == b"1" * 1000
    assert (far.directory / "two").read_bytes() == FILE
    assert "sent" in said and "bytes/s" in said


@needs_lrzsz
@pytest.mark.parametrize(("protocol", "sender"), [("x", "sx"), ("y", "sb"), ("z", "sz")])
def test_a_file_is_received_byte_for_byte(labd: BenchInAFolder, far: Far, protocol: str, sender: str):
    (far.directory / "dump.bin").write_bytes(FILE)
    names = ["dump.bin"] if protocol == "x" else []
    with far.runs(sender, "-b", "dump.bin") as board:
        done = labd.json("serial", "xfer", "recv", *names, "-t", "dut", "-p", protocol)
        board.wait(20)
    arrived = (labd.root / "dump.bin").read_bytes()
    assert arrived[: len(FILE)] == FILE and arrived[len(FILE) :].strip(b"\x1a") == b""
    assert done["direction"] == "recv" and "dump.bin" in done["files"][0]


@needs_lrzsz
@pytest.mark.parametrize(("protocol", "sender"), [("y", "sb"), ("z", "sz")])
def test_a_name_that_is_taken_loses_neither_file(labd: BenchInAFolder, far: Far, protocol: str, sender: str):
    (far.directory / "dump.bin").write_bytes(FILE)
    (labd.root / "dump.bin").write_bytes(b"mine")
    with far.runs(sender, "-b", "dump.bin") as board:
        done = labd("--json", "serial", "xfer", "recv", "-t", "dut", "-p", protocol)
        board.wait(20)
    assert json.loads(done.stdout)["files"] == ["dump.bin.1"] and b"was there already" in done.stderr
    assert (labd.root / "dump.bin").read_bytes() == b"mine"
    assert (labd.root / "dump.bin.1").read_bytes() == FILE
    assert not list(labd.root.glob(".labd-xfer-*"))


@needs_lrzsz
def test_a_board_that_goes_in_the_middle_leaves_what_came_where_it_is_told(labd: BenchInAFolder, far: Far):
    (far.directory / "dump.bin").write_bytes(FILE * 1000)
    call = labd.start("serial", "xfer", "recv", "-t", "dut", "-p", "z")
    with far.runs("sz", "-b", "dump.bin") as board:
        until("the first bytes", lambda: list(labd.root.glob(".labd-xfer-*/dump.bin")))
        board.send_signal(signal.SIGSTOP)  # it is in the middle, and stays there
        labd.out("serial", "stop", "dut")
        _, err = call.communicate(timeout=40)
        board.kill()
        board.wait(20)
    assert call.returncode == 7 and b".labd-xfer-" in err
    assert not (labd.root / "dump.bin").exists()


@needs_lrzsz
def test_what_starts_the_boards_side_is_typed_first(labd: BenchInAFolder, far: Far):
    (labd.root / "file.bin").write_bytes(FILE)
    call = labd.start("serial", "xfer", "send", "file.bin", "-p", "y", "--start", "loady 0x82000000")
    got = b""
    while not got.endswith(b"\r"):
        got += os.read(far.master, 1)
    assert got == b"loady 0x82000000\r"
    with far.runs("rb", "-b") as board:
        out, err = call.communicate(timeout=40)
        board.wait(20)
    assert call.returncode == 0, err
    assert (far.directory / "file.bin").read_bytes() == FILE and b"sent" in out


@needs_lrzsz
def test_nobody_else_types_meanwhile_and_ctrl_c_tells_the_board(labd: BenchInAFolder, far: Far):
    (labd.root / "file.bin").write_bytes(FILE)
    call = labd.start("serial", "xfer", "send", "file.bin", "-p", "z")
    until("the transfer", lambda: labd.json("serial", "show", "dut")[0].get("writer"))
    refused = labd("serial", "send", "dut", "x", "--wait", "0", check=6)
    assert b"ZMODEM transfer" in refused.stderr
    call.send_signal(signal.SIGINT)
    call.communicate(timeout=30)
    assert call.returncode in (130, -signal.SIGINT)
    got = b""
    while not got.endswith(b"\x08" * 8):
        got += os.read(far.master, 4096)
    assert b"\x18" * 8 in got
    until("a free console", lambda: not labd.json("serial", "show", "dut")[0].get("writer"))


@needs_lrzsz
def test_the_programs_own_failure_is_passed_on(labd: BenchInAFolder, far: Far):
    (labd.root / "file.bin").write_bytes(FILE)
    call = labd.start("serial", "xfer", "send", "file.bin", "-p", "x")
    until("the transfer", lambda: labd.json("serial", "show", "dut")[0].get("writer"))
    stop = threading.Event()

    def cancel() -> None:  # again and again, as sx may look only later
        while not stop.wait(0.1):
            os.write(far.master, b"\x18" * 10)

    board = threading.Thread(target=cancel)
    board.start()
    _, err = call.communicate(timeout=60)
    stop.set()
    board.join()
    assert call.returncode not in (0, None)
    assert b"sx ended with" in err


def test_without_lrzsz_it_names_the_package(labd: BenchInAFolder, far: Far):
    (labd.root / "file.bin").write_bytes(b"x")
    bare = labd.root / "bin"
    bare.mkdir()
    done = labd("serial", "xfer", "send", "file.bin", check=7, env={"PATH": str(bare)})
    assert b"lrzsz" in done.stderr and b"install lrzsz" in done.stderr
    with pytest.raises(BlockingIOError):
        os.set_blocking(far.master, False)
        os.read(far.master, 1)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["send"], 2, b"needs a file"),
        (["send", "nothing.bin"], 4, b"no file nothing.bin"),
        (["send", "."], 2, b"not a file"),
        (["send", "a", "b", "-p", "x"], 2, b"one file"),
        (["recv", "-p", "x"], 2, b"needs the name"),
        (["recv", "a", "-p", "z"], 2, b"the sender names"),
        (["recv", "there", "-p", "x"], 1, b"is there already"),
        (["fling", "a"], 2, b"send, recv"),
    ],
)
def test_what_can_not_be_done_is_said_before_anything_is_sent(
    labd: BenchInAFolder, far: Far, words: list[str], code: int, said: bytes
):
    Path(labd.root / "there").write_bytes(b"")
    assert said in labd("serial", "xfer", *words, check=code).stderr
    with pytest.raises(BlockingIOError):
        os.set_blocking(far.master, False)
        os.read(far.master, 1)


@needs_lrzsz
@pytest.mark.parametrize("start", ["rx", "rx checksum", "rx bad"])
def test_a_boards_loader_takes_a_file(labd: BenchInAFolder, start: str):
    labd.lab.write_text(LAB_OF_ONE.format(dut="xmodem"))
    (labd.root / "image.bin").write_bytes(FILE)
    labd("serial", "watch", "dut")
    labd("serial", "expect", "dut", "load> ", "--since", "0")
    labd("serial", "xfer", "send", "image.bin", "-p", "x", "--start", start, timeout=90)
    labd("serial", "expect", "dut", r"Received \d+ bytes, sha256 \w+", "--since", "0")
    padded = FILE + b"\x1a" * (-len(FILE) % 128)
    log = labd.out("serial", "log", "dut", "--grep", "Received")
    digests = [hashlib.sha256(data).hexdigest() for data in (FILE, padded)]
    assert any(digest in log for digest in digests), log


@needs_lrzsz
@pytest.mark.parametrize("start", ["sx", "sx 1k", "sx bad"])
def test_a_boards_loader_gives_a_file(labd: BenchInAFolder, start: str):
    labd.lab.write_text(LAB_OF_ONE.format(dut="xmodem"))
    labd("serial", "watch", "dut")
    labd("serial", "expect", "dut", "load> ", "--since", "0")
    labd("serial", "xfer", "recv", "dump.bin", "-p", "x", "--start", start, timeout=90)
    lines = (labd.root / "dump.bin").read_bytes().rstrip(b"\x1a").splitlines()
    assert len(lines) == (400 if start == "sx 1k" else 40)
    assert lines[-1].startswith(b"board ") and len(set(lines)) == len(lines)


@needs_lrzsz
@pytest.mark.parametrize(("protocol", "receiver"), [("y", ["rb", "-b"]), ("z", ["rz", "-b"])])
def test_an_empty_file_is_sent_and_its_figures_are_those_of_a_send(
    labd: BenchInAFolder, far: Far, protocol: str, receiver: list[str]
):
    (labd.root / "empty").write_bytes(b"")
    with far.runs(*receiver) as board:
        done = labd.json("serial", "xfer", "send", "empty", "-t", "dut", "-p", protocol)
        board.wait(20)
    assert (far.directory / "empty").read_bytes() == b""
    reader = Reader(paths.journal_dir(labd.env, str(labd.lab), "dut", "console"))
    sent = sum(event.fields["accepted"] for event in reader.events() if event.kind == "tx")
    assert (done["size"], done["bytes"]) == (0, sent) and sent != reader.end_offset


def test_progress_knows_an_empty_file_from_one_that_is_received():
    assert progress(30, 0, 2.0) == "sent 30 of about 0 bytes (99 %), 15 bytes/s …"
    assert progress(30, 60, 2.0) == "sent 30 of about 60 bytes (50 %), 15 bytes/s …"
    assert progress(30, None, 2.0) == "received 30 bytes, 15 bytes/s …"


@needs_lrzsz
def test_a_hidden_name_becomes_a_visible_one(labd: BenchInAFolder, far: Far):
    (far.directory / ".bashrc").write_bytes(b"evil\n")
    with far.runs("sz", "-b", ".bashrc") as board:
        done = labd("--json", "serial", "xfer", "recv", "-t", "dut", "-p", "z")
        board.wait(20)
    assert json.loads(done.stdout)["files"] == ["dot.bashrc"] and b"would be hidden" in done.stderr
    assert not (labd.root / ".bashrc").exists() and (labd.root / "dot.bashrc").read_bytes() == b"evil\n"


@needs_lrzsz
@pytest.mark.parametrize("how", ["--overwrite", "--append", "--newer", "--protect"])
def test_whatever_the_sender_asks_for_what_was_there_stays(labd: BenchInAFolder, far: Far, how: str):
    (far.directory / "dump.bin").write_bytes(FILE)
    (labd.root / "dump.bin").write_bytes(b"mine")
    with far.runs("sz", "-b", how, "dump.bin") as board:
        labd("serial", "xfer", "recv", "-t", "dut", "-p", "z")
        board.wait(20)
    assert (labd.root / "dump.bin").read_bytes() == b"mine"
    assert (labd.root / "dump.bin.1").read_bytes() == FILE


@needs_lrzsz
def test_a_path_leads_through_no_link_of_ours(labd: BenchInAFolder, far: Far):
    (far.directory / "etc").mkdir()
    (far.directory / "etc" / "passwd").write_bytes(FILE)
    (labd.root / "real").mkdir()
    (labd.root / "real" / "passwd").write_bytes(b"mine")
    (labd.root / "etc").symlink_to("real")
    with far.runs("sz", "-b", "--full-path", "--overwrite", "etc/passwd") as board:
        labd("serial", "xfer", "recv", "-t", "dut", "-p", "z", check=None)
        board.kill()
    assert (labd.root / "etc").is_symlink() and list((labd.root / "real").iterdir()) == [labd.root / "real" / "passwd"]
    assert (labd.root / "real" / "passwd").read_bytes() == b"mine"


def test_what_a_killed_daemon_left_is_named_or_removed_and_what_is_in_use_is_not(tmp_path: Path):
    (tmp_path / ".labd-xfer-empty").mkdir()
    (tmp_path / ".labd-xfer-full").mkdir()
    (tmp_path / ".labd-xfer-full" / "dump.bin").write_bytes(b"half")
    (tmp_path / ".labd-xfer-link").symlink_to(tmp_path)
    busy = Staging(str(tmp_path))
    assert list(Staging(str(tmp_path)).abandoned()) == [str(tmp_path / ".labd-xfer-full")]
    assert not (tmp_path / ".labd-xfer-empty").exists() and Path(busy.path).is_dir()


@needs_lrzsz
def test_the_next_receive_names_what_a_killed_daemon_left(labd: BenchInAFolder, far: Far):
    left = labd.root / ".labd-xfer-left"
    left.mkdir()
    (left / "dump.bin").write_bytes(b"half")
    (far.directory / "dump.bin").write_bytes(FILE)
    with far.runs("sz", "-b", "dump.bin") as board:
        done = labd("serial", "xfer", "recv", "-t", "dut", "-p", "z")
        board.wait(20)
    assert f"what came of it is in {left}" in done.stderr.decode()
    assert (left / "dump.bin").read_bytes() == b"half"
