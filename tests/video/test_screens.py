"""A target's screen through a real daemon, its capture process and an MJPEG server that stalls, hangs up and goes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.conftest import LABD, BenchInAFolder, a_bench, until
from tests.video.camera import Camera, console

SIZE = (1280, 720)
PNG = b"\x89PNG\r\n\x1a\n"


class Rig:
    """A bench whose target `pico` has a camera of ours."""

    def __init__(self, bench: BenchInAFolder, camera: Camera) -> None:
        self.bench = bench
        self.camera = camera
        self.port = camera.port
        self.lab = f'[targets.pico.video]\ndevice = "{camera.url}"\n'

    def shot(self, *argv: str, **kw: Any) -> dict[str, Any]:
        """`video shot --json`."""
        found: dict[str, Any] = self.bench.json("video", "shot", "pico", "-o", "shot.png", *argv, **kw)
        return found

    def refused(self, code: int, *argv: str) -> str:
        """The words of a shot that fails with this code."""
        return self.bench("video", "shot", "pico", *argv, check=code).stderr.decode()

    def state(self) -> dict[str, Any]:
        """What the capture process says it sees."""
        return self.bench.json("video", "show", "pico")["state"] or {}

    def show(self, picture: Any) -> None:
        """Show this, and wait until it was sent and has come in."""
        self.camera.show(picture)
        served = self.camera.served
        until("frames of it were sent", lambda: self.camera.served > served + 2)

    def later(self, seconds: float, *lines: str) -> None:
        """Show these lines in a while."""
        threading.Timer(seconds, self.camera.show, (console(*lines, size=SIZE),)).start()

    def events(self) -> list[dict[str, Any]]:
        """What the record has of the screen."""
        text = self.bench.out("timeline", "pico", "--json", "--tail", "0")
        return [row for row in map(json.loads, text.splitlines()) if row.get("channel") == "video"]

    def kinds(self) -> list[str]:
        """The kinds of these events."""
        return [str(row["event"]) for row in self.events()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with a_bench(tmp_path_factory.mktemp("screens")) as bench, Camera(noise=3) as camera:
        bench.env.pop("LABD_ARGV_LOG")
        yield Rig(bench, camera)


@pytest.fixture
def rig(whole: Rig) -> Iterator[Rig]:
    """The screen shows a prompt and is captured."""
    whole.bench.lab.write_text(whole.lab)
    whole.camera.stalled.clear()
    whole.camera.show(console("debian login: ", size=SIZE))
    whole.bench("video", "watch", "pico")
    whole.shot("--timeout", "20000")
    yield whole


def test_a_shot_is_the_picture_with_its_facts(rig: Rig) -> None:
    facts = rig.shot()
    picture = cv2.imread(facts["file"])
    assert picture.shape == (720, 1280, 3) and facts["signal"] == "ok"
    assert np.abs(picture.astype(int) - console("debian login: ", size=SIZE)).mean() < 6
    piped = rig.bench("video", "shot", "pico")
    assert piped.stdout.startswith(PNG) and f"signal=ok  hash={facts['hash']}" in piped.stderr.decode()
    assert rig.shot("--stable")["hash"] == facts["hash"], "noise is no change"


def test_a_shot_is_never_older_than_its_request(rig: Rig) -> None:
    for n in range(4):
        rig.show(console(f"page {n}", size=SIZE))
        facts = rig.shot()
        picture = cv2.imread(facts["file"])
        assert np.abs(picture.astype(int) - console(f"page {n}", size=SIZE)).mean() < 6, f"an older page than {n}"


def test_a_part_of_the_picture(rig: Rig) -> None:
    facts = rig.shot("--region", "0,0,640,32")
    assert cv2.imread(facts["file"]).shape == (32, 640, 3)
    assert "1280x720" in rig.refused(2, "--region", "1000,0,400,10")
    for wrong in ("1,2,3", "a,b,c,d", "0,0,0,5", "-1,0,5,5"):
        assert "labd:" in rig.refused(2, f"--region={wrong}")


def test_changed_since_waits_for_one_typed_word_and_with_stable_until_it_is_still(rig: Rig) -> None:
    before = rig.shot()["hash"]
    rig.later(0.6, "debian login: root")
    after = rig.shot("--changed-since", before, "--timeout", "10000")
    seen_s = after["wall_ns"] / 1e9 - time.time() + time.monotonic()
    assert after["hash"] != before and 0 <= seen_s - rig.camera.shown_ns / 1e9 < 1
    for n in range(8):
        rig.later(0.1 * n + 0.3, "debian login: root", "Password: ", "." * n)
    last = rig.shot("--changed-since", after["hash"], "--stable", "--timeout", "20000")
    assert np.abs(cv2.imread(last["file"]).astype(int)
                  - console("debian login: root", "Password: ", "." * 7, size=SIZE)).mean() < 6  # fmt: skip


def test_changed_since_in_a_part_does_not_hear_of_the_rest(rig: Rig) -> None:
    before = rig.shot()["hash"]
    rig.later(0.1, "debian login: ", "", "", "noise elsewhere")
    assert "has not changed" in rig.refused(5, "--changed-since", before, "--region", "0,0,1280,29")
    rig.later(0.3, "debian login: root", "", "", "noise elsewhere")
    rig.shot("--changed-since", before, "--region", "0,0,1280,29", "--timeout", "10000")


def test_a_timeout_says_what_was_seen_and_writes_nothing(rig: Rig, tmp_path: Path) -> None:
    before, out = rig.shot()["hash"], tmp_path / "never.png"
    words = rig.refused(5, "--changed-since", before, "--timeout", "300", "-o", str(out))
    assert f"has not changed since the picture with the hash {before}" in words
    lines = iter(range(10**6))
    rig.show(lambda: console(f"counting {next(lines)}", size=SIZE))
    assert "has not settled" in rig.refused(5, "--stable", "--timeout", "1200", "-o", str(out))
    assert not out.exists()


def test_no_signal_is_a_state_and_never_a_picture(rig: Rig) -> None:
    rig.show(np.full((720, 1280, 3), (200, 0, 0), np.uint8))
    words = rig.refused(5, "--timeout", "3000")
    assert "no signal" in words and "plain colour" in words
    until("the state says so", lambda: rig.state()["signal"] == "none")
    until("the record says so", lambda: "no-signal" in rig.kinds())
    rig.later(0.3, "it is back")
    rig.shot("--timeout", "10000")
    until("the record says that it is back", lambda: "signal" in rig.kinds())


def test_wrong_hashes(rig: Rig) -> None:
    for wrong in ("xyz", "123", "0" * 17):
        assert "16 hex digits" in rig.refused(2, "--changed-since", wrong)
    words = rig.refused(4, "--changed-since", "0" * 16)
    assert "is known to this capture" in words and "labd video shot pico -o now.png" in words


def test_a_terminal_gets_no_picture(rig: Rig) -> None:
    command = [LABD, "video", "shot", "pico"]
    master, slave = os.openpty()
    done = subprocess.run(command, env=rig.bench.env, stdout=slave, stderr=subprocess.PIPE, timeout=60)
    os.close(slave)
    os.close(master)
    assert done.returncode == 2 and b"-o shot.png" in done.stderr


def test_a_stall_is_a_loss_after_a_while_and_then_it_comes_back(rig: Rig) -> None:
    before = len(rig.kinds())
    rig.camera.stalled.set()
    until("it is stale", lambda: rig.state()["signal"] == "stale", 10)
    words = rig.refused(5, "--timeout", "300")
    assert "the last frame came" in words
    until("it is lost", lambda: rig.state()["signal"] == "lost", 15)
    rig.camera.stalled.clear()
    rig.shot("--timeout", "20000")
    assert rig.kinds()[before:].count("lost") == 1 and "back" in rig.kinds()[before:]


def test_a_server_that_hangs_up_is_connected_to_again(rig: Rig) -> None:
    for _ in range(3):
        rig.camera.hang_up()
        rig.shot("--timeout", "20000")


def test_a_server_that_is_gone_is_told_and_waited_for(rig: Rig) -> None:
    port = rig.camera.port
    rig.camera.close()
    try:
        until("it is lost", lambda: rig.state()["signal"] == "lost")
        assert "the screen is lost" in rig.refused(7, "--timeout", "300")
    finally:
        rig.camera = until("the port is free", lambda: _again(port))
        rig.camera.noise = 3
    rig.camera.show(console("debian login: ", size=SIZE))
    rig.shot("--timeout", "20000")


def _again(port: int) -> Camera | None:
    try:
        return Camera(port=port)
    except OSError:
        return None


def test_a_refused_connection_fails_the_watch_and_leaves_nothing(rig: Rig) -> None:
    rig.bench.lab.write_text(
        rig.lab + '[targets.gone.video]\ndevice = "http://me:hunter2@127.0.0.1:9/cam?token=SEKRET"\n'
    )
    words = rig.bench("video", "watch", "gone", check=7).stderr.decode()
    assert "can't be captured" in words and "127.0.0.1:9/cam?token=***" in words
    told = words + rig.bench.out("timeline", "gone", "--json", "--tail", "0")
    assert '"stop"' in told and "hunter2" not in told and "SEKRET" not in told
    assert rig.bench.json("video", "show", "gone")["state"] is None
    assert "labd video watch gone" in rig.bench("video", "shot", "gone", check=7).stderr.decode()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=lambda number: number.name)
def test_a_capture_process_that_is_killed_or_hangs_is_replaced_and_knows_what_was_given_out(
    rig: Rig, number: signal.Signals
) -> None:
    before, old = rig.shot()["hash"], rig.state()["pid"]
    os.kill(old, number)
    assert rig.shot("--timeout", "40000")["signal"] == "ok", "a request meanwhile is answered by the next"
    new = rig.state()["pid"]
    assert new != old and not os.path.exists(f"/proc/{old}")
    assert "has not changed" in rig.refused(5, "--changed-since", before, "--timeout", "3000")
    assert "restarted" in rig.kinds()


def test_restart_starts_afresh_and_watch_again_does_not(rig: Rig) -> None:
    old = rig.state()["pid"]
    assert rig.bench.json("video", "watch", "pico")["started"] is False
    assert rig.state()["pid"] == old
    assert rig.bench.json("video", "watch", "pico", "--restart")["started"] is True
    assert rig.state()["pid"] != old


def test_an_edit_of_the_lab_is_taken_up(rig: Rig, tmp_path: Path) -> None:
    other = tmp_path / "other.png"
    cv2.imwrite(str(other), console("another screen"))
    rig.bench("video", "set", "-t", "pico", "--device", str(other))
    until("the other picture is seen", lambda: rig.state().get("width") == 720)
    rig.bench("video", "rm", "-t", "pico")
    rig.bench.lab.write_text("[targets.pico]\n")
    until("its process is gone", lambda: not rig.bench.json("daemons")["screens"])


def test_the_next_daemon_watches_it_again_and_stop_forgets(rig: Rig) -> None:
    before = rig.shot()["hash"]
    rig.show(console("another page", size=SIZE))
    rig.bench("daemons", "restart")
    until("it is seen again", lambda: rig.state().get("signal") == "ok")
    assert "is known to this capture" in rig.refused(4, "--changed-since", before)
    pid = rig.state()["pid"]
    rig.bench("daemons", "stop")
    assert not os.path.exists(f"/proc/{pid}")
    rig.bench("daemons", "start")
    assert rig.state() == {}
    assert rig.bench.json("daemons")["untracked"] == []


def test_after_a_daemon_that_was_killed_the_first_request_finds_the_screen_watched(rig: Rig) -> None:
    pid = rig.bench.daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until("the daemon is gone", lambda: rig.bench.daemon_pid() is None)
    assert rig.shot("--timeout", "30000")["signal"] == "ok"
    assert rig.bench.json("video", "watch", "pico")["started"] is False


def test_the_record_has_watch_shots_changes_and_modes(rig: Rig, tmp_path: Path) -> None:
    """A picture's file changes its size as a virtual board does; FFmpeg scales a stream to its first size."""
    path = tmp_path / "screen.png"
    cv2.imwrite(str(path), console("large", size=SIZE))
    rig.bench("video", "set", "-t", "pico", "--device", str(path))
    rig.bench("video", "watch", "pico")
    hashes = [rig.shot()["hash"]]
    for what in (console("larger", size=SIZE), console("small", size=(640, 480))):
        cv2.imwrite(f"{path}.png", what)
        os.replace(f"{path}.png", path)
        time.sleep(0.3)  # a letter more may be a cursor for a while: the hash is still that of before
        hashes.append(rig.shot("--changed-since", hashes[-1], "--timeout", "10000")["hash"])
    found = [row for row in rig.events() if row["event"] in ("watch", "opened", "shot", "changed", "mode")]
    modes = [row["mode"] for row in found if row["event"] == "mode"]
    assert modes[-1] == "640x480"
    shots = [row for row in found if row["event"] == "shot"]
    assert [row["hash"] for row in shots][-3:] == hashes and shots[-1]["file"].endswith("shot.png")
    assert hashes[1] in [row.get("hash") for row in found if row["event"] == "changed"]


def test_a_screen_that_changes_all_the_time_does_not_flood_the_record(rig: Rig) -> None:
    lines = iter(range(10**6))
    before = rig.kinds().count("changed")
    rig.camera.show(lambda: console(f"counting {next(lines)}", size=SIZE))
    time.sleep(3)
    rig.shot()
    assert 1 <= rig.kinds().count("changed") - before <= 5


def test_a_recording_has_a_picture_of_each_change(rig: Rig, tmp_path: Path) -> None:
    rig.bench("record", "start", "pico", "--name", "film")
    begun = [row for row in rig.events() if row["event"] == "picture"]
    rig.show(console("debian login: root", "Password:", size=SIZE))
    taken = until("a picture of the change", lambda: [r for r in rig.events() if r["event"] == "picture"][len(begun) :])
    rig.bench("record", "stop", "pico")
    ended = [row for row in rig.events() if row["event"] == "picture"]
    rig.bench("record", "export", "pico", "--name", "film", "-o", str(tmp_path / "film.zip"))
    with zipfile.ZipFile(tmp_path / "film.zip") as bundle:
        names = [name for name in bundle.namelist() if name.startswith("pictures/")]
        assert f"pictures/{taken[-1]['picture']}" in names and len(names) >= 2
        assert all(bundle.read(name).startswith(PNG) for name in names)
    rig.show(console("and on", size=SIZE))
    time.sleep(1)
    assert [row for row in rig.events() if row["event"] == "picture"] == ended
