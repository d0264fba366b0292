"""The adb verbs through the real daemon; adb itself is a program of ours that runs a real shell."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import LABD, BenchInAFolder, until

FAKE = Path(__file__).parent / "fake_adb.py"


def png(width: int, height: int, noise: bytes = b"") -> bytes:
    """A grey picture; `noise` makes it larger."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(b"".join(b"\0" + b"\x80" * width for _ in range(height)))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"tEXt", b"n\0" + noise) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


class Tablet:
    """A lab with one Android device."""

    def __init__(self, labd: BenchInAFolder) -> None:
        self.labd = labd
        folder = labd.root / "bin"
        folder.mkdir()
        self.folder = folder
        program = folder / "adb"
        program.write_text(f"#!{sys.executable}\n{FAKE.read_text()}")
        program.chmod(0o755)
        labd.env["PATH"] = f"{folder}:{labd.env['PATH']}"
        labd.env["ANDROID_ADB_SERVER_PORT"] = "1"
        self.state("device")
        labd.lab.write_text('[targets.pico]\n[targets.tablet.adb]\nserial = "ABC123"\n')

    def state(self, state: str) -> None:
        (self.folder / "adb-state").write_text(state)

    def screen(self, data: bytes) -> None:
        (self.folder / "screen.png").write_bytes(data)

    def events(self) -> list[dict[str, object]]:
        """What the target's own journal has."""
        files = sorted(self.labd.root.glob("**/tablet/@bench/events/*.raw"))
        return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


@pytest.fixture
def tablet(labd: BenchInAFolder) -> Tablet:
    return Tablet(labd)


def test_a_command_has_its_own_streams_and_exit_code(tablet: Tablet) -> None:
    done = tablet.labd("adb", "run", "-t", "tablet", "echo out; echo err >&2; exit 7", check=7)
    assert (done.stdout, done.stderr) == (b"out\n", b"err\n")
    assert tablet.labd.out("adb", "run", "-t", "tablet", "echo", "a", "|", "tr", "a", "b") == "b\n"
    found = json.loads(tablet.labd("adb", "run", "--json", "-t", "tablet", "printf 'x\\377'").stdout)
    assert (found["output"], found["code"], found["errors"]) == ("x�", 0, "")
    assert tablet.labd.out("adb", "run", "-t", "tablet", "wc -c", timeout=20) == "0\n", "stdin is empty"
    ran = tablet.events()
    assert [event["kind"] for event in ran] == ["run"] * 4
    assert (ran[0]["command"], ran[0]["code"], ran[0]["channel"]) == ("echo out; echo err >&2; exit 7", 7, "adb")


def test_output_comes_as_it_is_said_and_ends_with_the_caller(tablet: Tablet) -> None:
    running = tablet.labd.start("adb", "run", "-t", "tablet", "echo $$; while true; do echo tick; sleep 0.1; done")
    assert running.stdout is not None
    pid = int(running.stdout.readline())
    assert running.stdout.readline() == b"tick\n"
    running.kill()
    running.communicate()
    until("the end of what ran for the caller", lambda: not Path(f"/proc/{pid}").exists())


def test_a_command_that_takes_too_long_is_exit_5(tablet: Tablet) -> None:
    begun = time.monotonic()
    done = tablet.labd("adb", "run", "-t", "tablet", "--timeout", "0.3", "echo begun; exec sleep 600", check=5)
    assert done.stdout == b"begun\n" and b"did not end within 0.3 s" in done.stderr
    assert time.monotonic() - begun < 10
    assert tablet.events()[-1]["code"] is None


def test_words_of_input_arrive_as_they_are(tablet: Tablet) -> None:
    said = tablet.labd.out("adb", "input", "-t", "tablet", "text", "it's 5 $HOME & more")
    assert said == "<text><it's 5 $HOME & more>\n"
    assert tablet.labd.out("adb", "input", "-t", "tablet", "tap", "-5", "10") == "<tap><-5><10>\n"


@pytest.mark.parametrize(
    ("state", "told", "way"),
    [
        ("unauthorized", "device unauthorized", "allow this computer"),
        ("none", "no devices/emulators found", "labd adb devices"),
        ("two", "more than one device", "--serial ID"),
    ],
)
def test_a_device_out_of_reach_is_exit_7_and_a_failing_command_is_not(
    tablet: Tablet, state: str, told: str, way: str
) -> None:
    tablet.state(state)
    done = tablet.labd("adb", "run", "-t", "tablet", "true", check=7)
    assert told in done.stderr.decode() and way in done.stderr.decode()
    tablet.labd("adb", "screencap", "tablet", "-o", "now.png", check=7)
    assert not (tablet.labd.root / "now.png").exists()
    tablet.state("device")
    tablet.labd("adb", "run", "-t", "tablet", "echo 'error: bad thing' >&2; exit 1", check=1)
    tablet.labd("adb", "set", "-t", "tablet", "--serial", "NOPE")
    assert b"device 'NOPE' not found" in tablet.labd("adb", "run", "-t", "tablet", "true", check=7).stderr


def test_a_picture_is_written_where_the_caller_is(tablet: Tablet) -> None:
    picture = png(640, 400, os.urandom(1 << 21))
    tablet.screen(picture)
    said = tablet.labd.out("adb", "screencap", "tablet", "-o", "now.png")
    assert said == f"{tablet.labd.root}/now.png: 640x400, {len(picture)} bytes\n"
    assert (tablet.labd.root / "now.png").read_bytes() == picture
    assert tablet.labd("adb", "screencap", "tablet").stdout == picture
    tablet.screen(b"[Warning] Multiple displays were found\n" + picture)
    found = tablet.labd.json("adb", "screencap", "-o", "other.png")
    assert found["sha256"] == hashlib.sha256((tablet.labd.root / "other.png").read_bytes()).hexdigest()
    assert (found["width"], found["height"], found["file"]) == (640, 400, f"{tablet.labd.root}/other.png")
    event = tablet.events()[-1]
    kept = next(tablet.labd.root.glob(f"**/@bench/pictures/{event['picture']}"))
    assert event["kind"] == "screencap" and kept.read_bytes() == picture


@pytest.mark.parametrize("sent", [b"", b"screencap: not found\n", png(64, 64)[:-20]])
def test_what_is_no_whole_picture_is_an_error_and_no_file(tablet: Tablet, sent: bytes) -> None:
    tablet.screen(sent)
    (tablet.labd.root / "now.png").write_bytes(b"the picture before")
    done = tablet.labd("adb", "screencap", "tablet", "-o", "now.png", check=1)
    assert b"picture (" in done.stderr and sent[:20].strip() in done.stderr.replace(b"half", sent[:20])
    assert (tablet.labd.root / "now.png").read_bytes() == b"the picture before"
    tablet.labd("adb", "screencap", "tablet", "--json", check=2)


def test_devices_and_no_adb(tablet: Tablet) -> None:
    assert tablet.labd.out("adb", "devices") == "ABC123\tdevice\tTab_8\n"
    assert tablet.labd.json("adb", "devices") == [{"serial": "ABC123", "state": "device", "model": "Tab_8"}]
    tablet.state("none")
    done = tablet.labd("adb", "devices")
    assert done.stdout == b"" and b"sees no device" in done.stderr
    (tablet.folder / "adb").unlink()
    for words in (("devices",), ("run", "-t", "tablet", "true"), ("screencap", "tablet", "-o", "x")):
        done = tablet.labd("adb", *words, check=7, env={"PATH": f"{Path(LABD).parent}"})
        assert b"no program adb" in done.stderr and b"apt install adb" in done.stderr
    assert b"has no adb channel" in tablet.labd("adb", "run", "-t", "pico", "true", check=4).stderr


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """An adb server that lists what it is told to, on a port of its own."""
    text = ["ABC123 offline usb:1-1\n"]
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    assert connection.recv(64) == b"000ehost:devices-l"
                    connection.sendall(f"OKAY{len(text[0]):04x}{text[0]}".encode())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield str(listener.getsockname()[1]), text
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def test_show_has_the_live_state_and_starts_nothing(tablet: Tablet, server: tuple[str, list[str]]) -> None:
    assert "state\tunknown: no adb server runs" in tablet.labd.out("adb", "show", "tablet")
    tablet.labd.env["ANDROID_ADB_SERVER_PORT"], text = server
    found = tablet.labd.json("adb", "show", "tablet")
    assert (found["state"], found["serial"], found["adb"]) == ("offline", "ABC123", str(tablet.folder / "adb"))
    text[0] = "OTHER device\n"
    assert tablet.labd.json("adb", "show")["state"] == "not seen"
    tablet.labd("adb", "set", "-t", "tablet", "--unset", "serial")
    assert 'serial\t"the only device"\n' in tablet.labd.out("adb", "show", "tablet")
    assert tablet.labd.json("adb", "show", "tablet")["state"] == "device"
    text[0] = "OTHER device\nABC123 device\n"
    assert (
        "no serial number says which"
        in tablet.labd.json("adb", "show", "tablet", env={"LABD_POLICY": "observe"})["state"]
    )
    assert not (tablet.folder / "adb-calls").exists()


def test_the_shell_is_on_the_callers_terminal(tablet: Tablet) -> None:
    assert b"needs a terminal" in tablet.labd("adb", "shell", "tablet", check=2).stderr
    ours, theirs = pty.openpty()
    shell = subprocess.Popen([LABD, "adb", "shell", "tablet"], stdin=theirs, stdout=theirs, stderr=theirs,
                             env=tablet.labd.env, start_new_session=True)  # fmt: skip
    os.close(theirs)
    os.write(ours, b"echo $((6 * 7)); exit 3\n")
    said = b""
    while b"42" not in said:
        said += os.read(ours, 4096)
    assert shell.wait(20) == 3
    os.close(ours)
