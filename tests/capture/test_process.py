"""The capture process alone: handed descriptors over its socket, by daemons that come, go, sleep and talk nonsense."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import tempfile
import time
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labd.capture_wire import LOCK, SOCKET, Wire, connect
from labd.client import answers
from labd.journal_read import Reader
from tests.conftest import until


class Process:
    """A running capture process and what a daemon would do with it."""

    def __init__(self, runtime: Path, idle_s: float) -> None:
        self.runtime = runtime
        self.child = subprocess.Popen([sys.executable, "-m", "labd.capture_process", str(runtime), str(idle_s)])
        until("its door", lambda: answers(str(runtime / SOCKET)))  # the file is there a moment before anybody listens

    def peer(self) -> Peer:
        return Peer(connect(str(self.runtime)))

    def end(self) -> None:
        self.child.kill()
        self.child.wait(20)


class Peer:
    """A connection: `ask` and `hear`, with deadlines. `heard` keeps what nobody asked for."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.heard: list[Any] = []
        self.number = 0
        self.hello = self.hear(lambda message: isinstance(message, dict) and "labd" in message)

    def hear(self, wanted: Any, seconds: float = 20.0) -> Any:
        deadline = time.monotonic() + seconds
        while True:
            for message in self.heard:
                if wanted(message):
                    self.heard.remove(message)
                    return message
            assert select.select([self.wire], [], [], max(0.0, deadline - time.monotonic()))[0], "not heard in time"
            self.heard += self.wire.receive()

    def ask(self, do: str, fds: tuple[int, ...] = (), **more: Any) -> dict[str, Any]:
        self.number += 1
        self.wire.post({"do": do, "id": self.number, **more}, fds)
        self.wire.flush()
        answer: dict[str, Any] = self.hear(lambda m: isinstance(m, dict) and m.get("re") == self.number)
        return answer

    def news(self, key: str) -> Any:
        return self.hear(lambda message: isinstance(message, dict) and key in message)


class Cable:
    """A raw PTY."""

    def __init__(self) -> None:
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        os.set_blocking(self.slave, False)

    def close(self) -> None:
        for fd in (self.master, self.slave):
            if fd >= 0:
                os.close(fd)

    def unplug(self) -> None:
        os.close(self.master)
        self.master = -1


@pytest.fixture
def runtime() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="lt-", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.fixture
def process(runtime: Path) -> Iterator[Process]:
    running = Process(runtime, 60.0)
    yield running
    running.end()


@pytest.fixture
def cable() -> Iterator[Cable]:
    made = Cable()
    yield made
    made.close()


def stored(directory: Path) -> bytes:
    return Reader(str(directory)).bytes(0)


def test_bytes_of_a_handed_descriptor_are_stored_stamped_and_noticed(
    process: Process, cable: Cable, tmp_path: Path
) -> None:
    daemon = process.peer()
    daemon.ask("attach")
    answer = daemon.ask("capture", (cable.slave,), key=str(tmp_path))
    assert (answer["ok"], answer["end"]) == (True, 0)
    before = time.monotonic_ns()
    os.write(cable.master, bytes(range(256)))
    number, end, line, mono = daemon.hear(lambda message: isinstance(message, tuple) and message[1] == 256)
    assert (number, end, line) == (answer["port"], 256, 1)
    assert before <= mono <= time.monotonic_ns()
    assert stored(tmp_path) == bytes(range(256))
    record = Reader(str(tmp_path)).record_at(0)
    assert record is not None and before <= record.mono_ns <= mono


def test_a_daemon_that_does_not_read_its_notices_delays_nothing(process: Process, cable: Cable, tmp_path: Path) -> None:
    daemon = process.peer()
    daemon.ask("attach")
    daemon.ask("capture", (cable.slave,), key=str(tmp_path))
    size = 0
    for _ in range(20_000):  # far more notices than a socket's buffer holds, had each been sent
        size += os.write(cable.master, b"line\n")
    until("all bytes", lambda: len(stored(tmp_path)) == size)
    _, end, line, _ = daemon.hear(lambda message: isinstance(message, tuple) and message[1] == size)
    assert (end, line) == (size, size // 5)


def test_the_next_daemon_gets_the_descriptor_back_and_no_byte_is_missing(
    process: Process, cable: Cable, tmp_path: Path
) -> None:
    first = process.peer()
    first.ask("attach")
    first.ask("capture", (cable.slave,), key=str(tmp_path), meta={"name": "console"})
    os.write(cable.master, b"one\n")
    first.wire.close()
    os.write(cable.master, b"two\n")
    second = process.peer()
    second.ask("attach")
    port = second.news("port")
    (fd,) = port["fds"]
    assert (port["key"], port["meta"], port["live"]) == (str(tmp_path), {"name": "console"}, True)
    assert os.path.sameopenfile(fd, cable.slave) or os.fstat(fd).st_rdev == os.fstat(cable.slave).st_rdev
    os.write(fd, b"to the board")
    os.close(fd)
    assert os.read(cable.master, 100) == b"to the board"
    os.write(cable.master, b"three\n")
    until("all three", lambda: stored(tmp_path) == b"one\ntwo\nthree\n")


def test_what_a_daemon_did_not_acknowledge_is_told_to_the_next(process: Process, cable: Cable, tmp_path: Path) -> None:
    (tmp_path / "rx").mkdir()
    (tmp_path / "rx" / f"{0:020d}.raw").write_bytes(b"unindexed")  # so that opening it mends something
    first = process.peer()
    first.ask("attach")
    first.ask("capture", (cable.slave,), key=str(tmp_path))
    assert first.news("told")["kind"] == "repaired"
    first.wire.close()
    second = process.peer()
    second.ask("attach")
    told = second.news("told")
    assert told["kind"] == "repaired" and "9 bytes" in told["fields"]["what"][0]
    second.wire.post({"do": "ack", "key": str(tmp_path), "n": told["n"]})
    second.ask("ping")
    second.wire.close()
    third = process.peer()
    third.ask("attach")
    third.ask("ping")
    assert not [message for message in third.heard if isinstance(message, dict) and "told" in message]


def test_a_hang_up_is_told_at_once_or_to_the_next_daemon_with_its_time(
    process: Process, cable: Cable, tmp_path: Path
) -> None:
    other = Cable()
    daemon = process.peer()
    daemon.ask("attach")
    port = daemon.ask("capture", (cable.slave,), key=str(tmp_path / "a"))["port"]
    daemon.ask("capture", (other.slave,), key=str(tmp_path / "b"))
    os.write(cable.master, b"last words")
    time_before = time.monotonic_ns()
    until("the last words", lambda: stored(tmp_path / "a") == b"last words")
    cable.unplug()
    gone = daemon.news("gone")
    assert gone["gone"] == port and "hang-up" in gone["why"] and gone["rx"] == 10 and gone["mono_ns"] > time_before
    daemon.wire.close()
    other.unplug()
    watcher = process.peer()
    until("the second hang-up", lambda: not [p for p in process.peer().hello["ports"] if p["live"]])
    watcher.ask("attach")
    ends = [watcher.news("port")["ended"] for _ in range(2)]
    assert all("hang-up" in end["why"] for end in ends)
    assert not [message for message in watcher.heard if isinstance(message, dict) and "gone" in message]
    other.close()


def test_released_means_stored_closed_and_free_for_others(process: Process, cable: Cable, tmp_path: Path) -> None:
    daemon = process.peer()
    daemon.ask("attach")
    daemon.ask("capture", (cable.slave,), key=str(tmp_path))
    os.write(cable.master, b"at the last moment")
    assert daemon.ask("release", key=str(tmp_path))["end"] == 18
    assert daemon.ask("finish", key=str(tmp_path))["ok"]
    from labd.journal import Journal

    Journal(str(tmp_path)).close()  # its lock is free
    os.close(cable.slave)
    cable.slave = -1
    with pytest.raises(OSError):  # nobody has the near end any more
        os.read(cable.master, 1)


def test_a_journal_that_another_writes_is_refused_and_the_descriptor_let_go(
    process: Process, cable: Cable, tmp_path: Path
) -> None:
    from labd.journal import Journal

    journal = Journal(str(tmp_path))
    daemon = process.peer()
    answer = daemon.ask("capture", (cable.slave,), key=str(tmp_path))
    assert (answer["ok"], answer["error"]) == (False, "busy") and str(os.getpid()) in answer["message"]
    journal.close()
    assert daemon.ask("capture", (cable.slave,), key=str(tmp_path))["ok"]


def test_what_is_held_is_given_to_the_next_daemon_and_let_go_when_dropped(process: Process) -> None:
    reading, writing = os.pipe()
    first = process.peer()
    first.ask("attach")
    first.ask("hold", (writing,), key="board", meta={"ready": {"pid": 12}})
    os.close(writing)
    first.wire.close()
    second = process.peer()
    assert second.hello["holds"] == [{"key": "board", "pid": 12}]
    second.ask("attach")
    hold = second.news("hold")
    os.write(hold["fds"][0], b"x")
    os.close(hold["fds"][0])
    second.ask("drop", key="board")
    assert os.read(reading, 10) == b"x"
    assert os.read(reading, 10) == b"", "the last writer has closed it"
    os.close(reading)


def test_quit_stores_what_has_arrived(process: Process, cable: Cable, tmp_path: Path) -> None:
    daemon = process.peer()
    daemon.ask("capture", (cable.slave,), key=str(tmp_path))
    os.write(cable.master, b"the end")
    daemon.wire.post({"do": "quit"})
    daemon.wire.flush()
    assert process.child.wait(20) == 0
    assert stored(tmp_path) == b"the end"
    assert not (process.runtime / SOCKET).exists()


def test_it_ends_by_itself_when_there_is_nothing_to_do(runtime: Path) -> None:
    process = Process(runtime, 0.2)
    try:
        assert process.child.wait(20) == 0
    finally:
        process.end()


def test_it_does_not_end_while_it_captures_even_without_a_daemon(runtime: Path, cable: Cable, tmp_path: Path) -> None:
    process = Process(runtime, 0.2)
    try:
        daemon = process.peer()
        daemon.ask("capture", (cable.slave,), key=str(tmp_path))
        daemon.wire.close()
        began = time.monotonic()
        written = 0
        while time.monotonic() - began < 3:
            written += os.write(cable.master, b"x")
            until("the byte", lambda wanted=written: len(stored(tmp_path)) == wanted)
        assert process.child.poll() is None
    finally:
        process.end()


def test_it_ends_when_its_directory_is_gone_for_nobody_can_find_it(runtime: Path, cable: Cable, tmp_path: Path) -> None:
    process = Process(runtime, 60)
    try:
        daemon = process.peer()
        daemon.ask("capture", (cable.slave,), key=str(tmp_path))
        daemon.wire.close()
        for name in (SOCKET, LOCK):
            (runtime / name).unlink()
        runtime.rmdir()
        assert process.child.wait(20) == 0
    finally:
        process.end()
        runtime.mkdir(exist_ok=True)


def test_a_swept_socket_is_made_again(process: Process) -> None:
    (process.runtime / SOCKET).unlink()
    until("the socket again", (process.runtime / SOCKET).exists)
    assert process.peer().hello["pid"] == process.child.pid


def test_a_second_one_gives_way(process: Process) -> None:
    second = subprocess.run([sys.executable, "-m", "labd.capture_process", str(process.runtime)], timeout=20)
    assert second.returncode == 0
    assert process.peer().hello["pid"] == process.child.pid


@pytest.mark.parametrize("noise", [b"\0" * 100, b"{\n", b"[1]\n", b'{"do":"no such"}\n', b'{"do":"capture"}\n',
                                   b'{"do":"capture","key":"x","fds":1}\n', b"n 1\n", b'{"do":"_obey"}\n'])  # fmt: skip
def test_nonsense_ends_the_connection_and_nothing_else(process: Process, noise: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(20)
        peer.connect(str(process.runtime / SOCKET))
        peer.sendall(noise)
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(65536):
            pass
    assert process.peer().ask("ping")["ok"]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become somebody else")
def test_another_user_is_not_served(process: Process) -> None:
    os.chmod(process.runtime, 0o755)
    os.chmod(process.runtime / SOCKET, 0o666)
    code = (
        "import os, socket, sys; os.setgid(65534); os.setuid(65534)\n"
        f"s = socket.socket(socket.AF_UNIX); s.connect({str(process.runtime / SOCKET)!r})\n"
        "print(len(s.recv(100)))\n"
    )
    done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() in ("0", ""), done.stderr


def test_it_is_small_and_imports_nothing_heavy(process: Process) -> None:
    code = (
        "import sys, labd.capture_process\n"
        "print(sorted({'trio', 'serial', 'asyncio', 'subprocess', 'tomllib', 'regex', 're2'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
    status = Path(f"/proc/{process.child.pid}/status")
    if status.exists():
        peak = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        assert peak < 30_000, f"{peak} kB"


def test_a_lost_port_is_remembered_without_a_daemon_until_it_is_given_up(
    runtime: Path, cable: Cable, tmp_path: Path
) -> None:
    process = Process(runtime, 0.2)
    try:
        daemon = process.peer()
        daemon.ask("attach")
        daemon.ask("capture", (cable.slave,), key=str(tmp_path), meta={"name": "console"})
        cable.unplug()
        assert daemon.news("gone")["why"].startswith("hang-up")
        daemon.ask("release", key=str(tmp_path))
        daemon.wire.close()
        with pytest.raises(subprocess.TimeoutExpired):
            process.child.wait(2.5)
        later = process.peer()
        later.ask("attach")
        found = later.news("port")
        assert (found["live"], found["meta"]) == (False, {"name": "console"})
        assert found["ended"]["why"].startswith("hang-up") and found["ended"]["recorded"]
        later.ask("finish", key=str(tmp_path))
        later.wire.close()
        assert process.child.wait(20) == 0
    finally:
        process.end()
