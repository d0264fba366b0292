"""qmp against a real QEMU: power read back, a picture, typing at U-Boot and reading its answer from its console."""

import os
import socket
import string
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from labd.helpers import _qmp, qmp
from tests.conftest import until
from tests.helpers.input_run import run, start
from tests.helpers.uboot_vm import UbootVm


@pytest.fixture(scope="module")
def vm() -> Iterator[UbootVm]:
    """At its prompt, autoboot stopped by its own keyboard."""
    machine = UbootVm()
    try:
        machine.wait("Hit any key")
        assert told(machine, "key", "space")[0] == 0
        machine.wait("=> ")
        yield machine
    finally:
        machine.close()


def told(vm: UbootVm, *words: str, **kw: str) -> tuple[int, str, str]:
    return run(qmp.PROGRAM, vm.home, *words, LABD_QMP=vm.qmp, **kw)


def test_what_is_typed_at_the_keyboard_is_answered_on_the_console(vm: UbootVm) -> None:
    at = len(vm.console())
    assert told(vm, "type", "echo labd-; echo over\n") == (0, "", "")
    assert "echo labd-; echo over\nlabd-\nover\n" in vm.wait("over\n=> ", at)


def test_every_printable_character_arrives_as_itself(vm: UbootVm) -> None:
    printable = "".join(sorted(set(string.printable) - set(string.whitespace))) + " x"
    for start_at in range(0, len(printable), 12):  # with a wait between, for a machine that gets no time
        at, text = len(vm.console()), printable[start_at : start_at + 12]
        assert told(vm, "--hold-ms", "12", "--gap-ms", "12", "type", text) == (0, "", "")
        vm.wait(text, at)
    assert told(vm, "key", "ctrl-c") == (0, "", "")
    vm.wait("=> ", at)


def test_held_shift_and_release(vm: UbootVm) -> None:
    at = len(vm.console())
    assert told(vm, "down", "shift")[0] == 0
    assert told(vm, "type", "ab1")[0] == 0
    assert told(vm, "releaseall") == (0, "", "")
    assert told(vm, "type", "c")[0] == 0
    assert "AB!c" in vm.wait("c", at)
    told(vm, "key", "ctrl-c")
    vm.wait("=> ", at)


def test_power_is_read_back_from_qemu_and_the_console_shows_it(vm: UbootVm) -> None:
    assert told(vm, "state") == (0, "on\n", "")
    assert told(vm, "off") == (0, "off\n", "")
    assert told(vm, "state") == (0, "off\n", "")
    code, out, err = told(vm, "type", "x")
    assert (code, out) == (7, "") and "does not run (prelaunch)" in err
    at = len(vm.console())
    assert told(vm, "on") == (0, "on\n", "")
    vm.wait("Hit any key", at)
    at = len(vm.console())
    assert told(vm, "cycle", "--delay-ms", "50") == (0, "on\n", "")
    vm.wait("Hit any key", at)
    told(vm, "key", "space")
    vm.wait("=> ", at)
    assert told(vm, "cycle", "--delay-ms", "x")[0] == 2


def test_a_picture_is_whole_or_not_there(vm: UbootVm, tmp_path: Path) -> None:
    shot = tmp_path / "now.png"
    assert told(vm, "shot", str(shot)) == (0, f"{shot}\n", "")
    data = shot.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", data[16:24]) == (1024, 768)
    told(vm, "shot", str(tmp_path / "now.ppm"))
    assert (tmp_path / "now.ppm").read_bytes()[:3] == b"P6\n"
    code, out, err = told(vm, "shot", str(tmp_path / "none" / "x.png"))
    assert (code, out) == (1, "") and "screendump" in err
    assert sorted(os.listdir(tmp_path)) == ["now.png", "now.ppm"]


def test_the_pointer_and_what_the_machine_lacks(vm: UbootVm) -> None:
    assert told(vm, "run", "-", stdin="moveabs 16384 16384\nclick\nscroll 2\nmove 3 -3\n") == (
        0, "OK (4 commands)\n", "")  # fmt: skip
    code, _, err = told(vm, "key", "f13")
    assert code == 2 and "no key 'f13'" in err
    assert told(vm, "version") == (0, "1 qmp move moveabs\n", "")


def test_a_kept_helper_leaves_the_socket_to_power_hooks_meanwhile(vm: UbootVm) -> None:
    kept = start(qmp.PROGRAM, vm.home, "serve", LABD_QMP=vm.qmp)
    try:
        assert kept.stdout.readline() == f"serving {vm.qmp}\n".encode()
        assert told(vm, "down", "shift") == (0, "", "")
        assert told(vm, "state") == (0, "on\n", "")
        at = len(vm.console())
        assert told(vm, "type", "q") == (0, "", "")
        vm.wait("Q", at)
    finally:
        kept.stdin.close()
        until("the kept helper's end", lambda: kept.poll() is not None)
    at = len(vm.console())
    told(vm, "type", "q")
    vm.wait("q", at)
    told(vm, "key", "ctrl-c")


def test_who_is_not_there_and_who_is_busy(vm: UbootVm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = run(qmp.PROGRAM, vm.home, "state")
    assert code == 2 and "LABD_QMP" in err
    for wrong in (("cycle", "--delay-ms", "-1"), ("shot",), ("on", "now"), ("--hold-ms", "x", "key", "a")):
        assert run(qmp.PROGRAM, vm.home, "--socket", str(vm.home / "none"), *wrong)[0] == 2
    code, _, err = run(qmp.PROGRAM, vm.home, "--socket", str(vm.home / "none"), "state")
    assert code == 7 and "does not exist" in err
    monkeypatch.setattr(_qmp, "GREETING_SECONDS", 0.3)
    with _qmp.Qmp(vm.qmp):
        code, _, err = told(vm, "state")
    assert code == 6 and "somebody else is talking to QEMU" in err


@pytest.mark.parametrize(
    ("said", "code", "why"),
    [(b'{"QMP": {}}\n', 7, "went away"), (b"hello\n", 7, "not understood"), (b'{"hello": 1}\n', 7, "no QEMU machine")],
)  # fmt: skip
def test_what_is_no_qemu_is_told(home: Path, said: bytes, code: int, why: str) -> None:
    path = str(home / "s")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen()

        def answer() -> None:
            client, _ = door.accept()
            client.sendall(said)
            client.close()

        thread = threading.Thread(target=answer)
        thread.start()
        found, _, err = run(qmp.PROGRAM, home, "--socket", path, "state")
        thread.join()
    assert found == code and why in err
