"""The capture loop alone, without trio: exact bytes, one notice of an end, no spinning, no port harming another."""

import os
import select
import subprocess
import sys
import time
import tty
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from labd.capture import CaptureLoop, Token

DEADLINE_S = 20.0


class Pair:
    """A raw PTY: `master` is the board, `slave` what the loop reads."""

    def __init__(self) -> None:
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        os.set_blocking(self.slave, False)
        self.data = bytearray()
        self.stamps: list[tuple[int, int]] = []
        self.reasons: list[str] = []
        self.wakes = 0

    def sink(self, data: bytes, wall_ns: int, mono_ns: int) -> None:
        self.data += data
        self.stamps.append((wall_ns, mono_ns))

    def wake(self) -> None:
        self.wakes += 1

    def join(self, loop: CaptureLoop) -> Token:
        return loop.add(self.slave, self.sink, self.reasons.append, self.wake)

    def close(self) -> None:
        for fd in (self.master, self.slave):
            if fd >= 0:
                os.close(fd)


@pytest.fixture
def loop() -> Iterator[CaptureLoop]:
    loop = CaptureLoop()
    yield loop
    loop.close()


@pytest.fixture
def pairs() -> Iterator[list[Pair]]:
    made = [Pair() for _ in range(3)]
    yield made
    for pair in made:
        pair.close()


def turn(loop: CaptureLoop, until: Any, what: str) -> None:
    """Wait on the loop's descriptor and step, until `until()`."""
    deadline = time.monotonic() + DEADLINE_S
    while not until():
        assert time.monotonic() < deadline, f"still not: {what}"
        select.select([loop.fileno()], [], [], 0.1)
        loop.step()


def test_nothing_is_reported_when_nothing_came(loop: CaptureLoop, pairs: list[Pair]) -> None:
    pairs[0].join(loop)
    assert loop.step() == []
    assert not select.select([loop.fileno()], [], [], 0)[0]


def test_every_value_is_handed_over_as_it_came_with_both_clocks(loop: CaptureLoop, pairs: list[Pair]) -> None:
    token = pairs[0].join(loop)
    wall, mono = time.time_ns(), time.monotonic_ns()
    os.write(pairs[0].master, bytes(range(256)))
    assert select.select([loop.fileno()], [], [], DEADLINE_S)[0], "no notice of the bytes"
    fed = loop.step()
    turn(loop, lambda: len(pairs[0].data) == 256, "256 bytes")
    assert bytes(pairs[0].data) == bytes(range(256))
    assert fed == [token]
    assert pairs[0].stamps[0][0] >= wall
    assert mono <= pairs[0].stamps[0][1] <= time.monotonic_ns()
    assert pairs[0].wakes >= 1


def test_a_flood_from_another_process_arrives_complete_on_every_port(loop: CaptureLoop, pairs: list[Pair]) -> None:
    size = 2_000_000
    code = """if 1:
        import os, random, select, sys
        masters = [int(word) for word in sys.argv[2:]]
        block = random.Random(1).randbytes(int(sys.argv[1]))
        at = dict.fromkeys(masters, 0)
        for fd in masters: os.set_blocking(fd, False)
        while at:
            for fd in select.select([], list(at), [])[1]:
                try: at[fd] += os.write(fd, block[at[fd]:at[fd] + 65536])
                except BlockingIOError: continue
                if at[fd] == len(block): del at[fd]
        sys.stdin.read()
    """
    masters = [pair.master for pair in pairs]
    feeder = subprocess.Popen(
        [sys.executable, "-c", code, str(size), *map(str, masters)], stdin=subprocess.PIPE, pass_fds=masters
    )
    try:
        for pair in pairs:
            pair.join(loop)
        turn(loop, lambda: all(len(pair.data) >= size for pair in pairs), "all bytes of all ports")
    finally:
        feeder.kill()
        feeder.communicate()
    import random

    wanted = zlib.crc32(random.Random(1).randbytes(size))
    assert [zlib.crc32(pair.data) for pair in pairs] == [wanted] * 3
    assert all(pair.reasons == [] for pair in pairs)


def test_the_far_end_closing_is_told_once_and_costs_nothing_after(loop: CaptureLoop, pairs: list[Pair]) -> None:
    token = pairs[0].join(loop)
    os.close(pairs[0].master)
    pairs[0].master = -1
    turn(loop, lambda: pairs[0].reasons, "the end to be told")
    assert len(pairs[0].reasons) == 1
    assert "hang-up" in pairs[0].reasons[0]
    assert not token.live
    assert not select.select([loop.fileno()], [], [], 0)[0]
    before = time.process_time()
    for _ in range(100):
        assert loop.step() == []
    assert time.process_time() - before < 0.5


def test_eio_of_a_masters_side_comes_after_its_last_bytes(loop: CaptureLoop) -> None:
    master, slave = os.openpty()
    tty.setraw(slave)
    os.set_blocking(master, False)
    got, reasons = bytearray(), []
    loop.add(master, lambda data, wall, mono: got.extend(data), reasons.append)
    os.write(slave, b"last words")
    os.close(slave)
    turn(loop, lambda: reasons, "the end to be told")
    assert bytes(got) == b"last words"
    assert "Input/output error" in reasons[0]
    os.close(master)


def test_one_busy_port_never_starves_another(loop: CaptureLoop, pairs: list[Pair]) -> None:
    noisy, quiet = pairs[0], pairs[1]
    noisy.join(loop)
    quiet.join(loop)
    os.set_blocking(noisy.master, False)
    for _ in range(50):
        try:
            os.write(noisy.master, b"x" * 65536)
        except BlockingIOError:
            pass
        os.write(quiet.master, b".")
        before = len(quiet.data)
        turn(loop, lambda n=before: len(quiet.data) > n, "the quiet port's byte")


def test_a_sink_that_raises_ends_its_own_port_only(loop: CaptureLoop, pairs: list[Pair]) -> None:
    bad, good = pairs[0], pairs[1]

    def sink(data: bytes, wall: int, mono: int) -> None:
        raise RuntimeError("disk gone")

    loop.add(bad.slave, sink, bad.reasons.append)
    good.join(loop)
    os.write(bad.master, b"x")
    os.write(good.master, b"y")
    turn(loop, lambda: bad.reasons and good.data, "the end of one and the byte of the other")
    assert "disk gone" in bad.reasons[0]
    assert loop.faults == 1


def test_callbacks_that_raise_are_counted_and_go_no_further(loop: CaptureLoop, pairs: list[Pair]) -> None:
    def bad(*args: object) -> None:
        raise RuntimeError

    loop.add(pairs[0].slave, pairs[0].sink, bad, bad)
    os.write(pairs[0].master, b"x")
    turn(loop, lambda: pairs[0].data, "the byte")
    os.close(pairs[0].master)
    pairs[0].master = -1
    turn(loop, lambda: loop.faults == 2, "both faults")


def test_removing_hands_over_what_has_arrived_if_asked(loop: CaptureLoop, pairs: list[Pair]) -> None:
    token = pairs[0].join(loop)
    os.write(pairs[0].master, b"late")
    loop.remove(token, drain=True)
    assert bytes(pairs[0].data) == b"late"
    loop.remove(token, drain=True)
    os.write(pairs[0].master, b"later")
    loop.step()
    assert bytes(pairs[0].data) == b"late"


def test_a_descriptor_is_in_the_loop_once(loop: CaptureLoop, pairs: list[Pair]) -> None:
    pairs[0].join(loop)
    with pytest.raises(ValueError, match="already"):
        pairs[0].join(loop)


def test_a_port_may_be_removed_by_another_ports_callback(loop: CaptureLoop, pairs: list[Pair]) -> None:
    second = pairs[1].join(loop)
    loop.add(pairs[0].slave, lambda data, wall, mono: loop.remove(second), pairs[0].reasons.append)
    third = pairs[2].join(loop)
    for pair in pairs:
        os.write(pair.master, b"x")
    turn(loop, lambda: not second.live and pairs[2].data, "the removal")
    assert third.live


class _Lying:
    """A poller that reports a port although there is nothing: chance, a foreign VMIN=0, or a hang-up never told."""

    safety_poll_s = None

    def __init__(self, fd: int, *, hung: bool) -> None:
        self.fd, self.hung, self.asked = fd, hung, 0

    def ready(self) -> list[tuple[int, bool]]:
        self.asked += 1
        return [(self.fd, self.hung)] if self.asked % 2 else []

    def hung_up(self, fd: int) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return lambda *args: None


def test_an_empty_read_without_a_hang_up_is_ignored_but_not_for_ever(pairs: list[Pair]) -> None:
    import termios

    pair = pairs[0]
    mode = termios.tcgetattr(pair.slave)
    mode[6][termios.VMIN] = 0
    termios.tcsetattr(pair.slave, termios.TCSANOW, mode)
    loop = CaptureLoop(_Lying(pair.slave, hung=False))  # type: ignore[arg-type]
    pair.join(loop)
    for _ in range(5):
        loop.step()
    assert pair.reasons == []
    for _ in range(20):
        loop.step()
    assert pair.reasons == ["reads nothing although it is ready"]


def test_a_hang_up_that_reads_eagain_ends_the_port_too(pairs: list[Pair]) -> None:
    loop = CaptureLoop(_Lying(pairs[0].slave, hung=True))  # type: ignore[arg-type]
    pairs[0].join(loop)
    loop.step()
    assert "hang-up" in pairs[0].reasons[0]


def test_a_sweep_finds_what_no_notice_told_of(pairs: list[Pair]) -> None:
    class Silent(_Lying):
        def ready(self) -> list[tuple[int, bool]]:
            return []

    loop = CaptureLoop(Silent(pairs[0].slave, hung=False))  # type: ignore[arg-type]
    token = pairs[0].join(loop)
    os.write(pairs[0].master, b"unnoticed")
    assert loop.sweep() == [token]
    assert bytes(pairs[0].data) == b"unnoticed"
    assert loop.sweep() == []


def test_trio_is_not_imported() -> None:
    code = "import sys, labd.capture; print(sorted({'trio', 'serial', 'asyncio', 'json'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
