"""Virtual boards: their files, and the player that is one QEMU."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loopback import machinefile
from loopback.strict import DutFileError
from tests.conftest import until

GOOD = """
title = "one"
has = ["serial"]
program = "qemu-system-x86_64"
package = "qemu-system-x86"
args = ["-M", "pc", "-bios", "{rom}", "-netdev", "{nic}"]
[files.rom]
look = ["/nowhere/u-boot.rom"]
package = "u-boot-qemu"
"""


def alive(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}") and " Z " not in Path(f"/proc/{pid}/stat").read_text()


# --- files ----------------------------------------------------------------------------------------------------------


def a_file(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", machinefile.names())
def test_every_board_that_is_shipped_says_what_it_is_and_can_be_filled_in(name: str, tmp_path: Path):
    board = machinefile.find(name)
    assert board.title and "serial" in board.has
    if not board.missing():
        argv = board.argv(str(tmp_path), "user,id=net0", "52:54:00:00:00:01")
        assert argv[0] == board.program and not any("{" in word for word in argv)


@pytest.mark.parametrize(
    ("old", "new", "key", "near"),
    [
        ('has = ["serial"]', 'has = ["serail"]', "has", "serial"),
        ("{nic}", "{nci}", "args", ""),
        ("program =", "programme =", "program", ""),
        ("package = \"u-boot-qemu\"", "packgae = \"u\"", "files.rom.packgae", "package"),
        ('look = ["/nowhere/u-boot.rom"]', "", "files.rom.look", ""),
        ("title =", "=", "", ""),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_by_its_key(tmp_path: Path, old: str, new: str, key: str, near: str):
    with pytest.raises(DutFileError) as caught:
        machinefile.load(a_file(tmp_path, GOOD.replace(old, new, 1)))
    assert caught.value.key == key and (not near or near in str(caught.value))


def test_what_the_board_wrote_is_kept_over_its_starts(tmp_path: Path):
    (tmp_path / "vars.fd").write_bytes(b"factory")
    text = GOOD.replace('"/nowhere/u-boot.rom"', f'"{tmp_path}/vars.fd"') + "own_copy = true\n"
    board = machinefile.load(a_file(tmp_path, text))
    (tmp_path / "b").mkdir()
    copy = board.argv(str(tmp_path / "b"), "user", "52:54:00:00:00:01")[4]
    assert Path(copy).read_bytes() == b"factory" and copy != f"{tmp_path}/vars.fd"
    Path(copy).write_bytes(b"settings")
    assert Path(board.argv(str(tmp_path / "b"), "user", "52:54:00:00:00:01")[4]).read_bytes() == b"settings"


# --- the player -----------------------------------------------------------------------------------------------------


class Player:
    """`python -m loopback.machine`, and what it says."""

    def __init__(self, directory: Path, *argv: str, env: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "loopback.machine", *argv, "--dir", str(directory)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=env, **pipes)

    def say(self) -> dict[str, Any]:
        """Its next line."""
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], 20)[0], "it said nothing for 20 s"
        return json.loads(self.process.stdout.readline() or self.errors())

    def errors(self) -> bytes:
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(10)


@pytest.fixture
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Player]]:
    """Starts players; none is left behind."""
    if machinefile.find("uboot-x86").missing():
        pytest.skip(f"a virtual board can't be played: {machinefile.find('uboot-x86').missing()}")
    started: list[Player] = []

    def start(directory: Path, *argv: str, **kw: Any) -> Player:
        started.append(Player(directory, *(argv or ("uboot-x86",)), **kw))
        return started[-1]

    yield start
    for player in started:
        if player.process.poll() is None:
            player.process.terminate()
            player.process.wait(10)


def console(directory: Path) -> socket.socket:
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(20)
    line.connect(str(directory / "serial"))
    return line


def read_to(line: socket.socket, text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        more = line.recv(65536)
        assert more, f"the board hung up before it said {text!r}: {seen[-300:]!r}"
        seen += more
    return seen


def qmp(path: Path, *commands: str) -> None:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(10)
        line.connect(str(path))
        answers = line.makefile("rb")
        answers.readline()
        for command in ("qmp_capabilities", *commands):
            line.sendall(json.dumps({"execute": command}).encode() + b"\n")
            while b'"return"' not in answers.readline():
                pass


def test_a_board_has_power_says_its_first_words_and_ends_with_its_owner(tmp_path: Path, play: Callable[..., Player]):
    player = play(tmp_path, "uboot-x86", "--wait", "20")
    ready = player.say()
    assert (ready["ready"], ready["board"], ready["has"]) == (True, "uboot-x86", ["serial", "video", "keyboard"])
    assert (tmp_path / "pid").read_text().split() == [str(ready["qemu"])]
    with console(tmp_path) as line:
        assert read_to(line, b"Hit any key").lstrip().startswith(b"U-Boot 20"), "nothing of the beginning is lost"
        line.sendall(b" ")
        read_to(line, b"=> ")
    assert player.end() == 0
    assert not alive(ready["qemu"])
    assert os.listdir(tmp_path) == ["lock"], "no socket that leads nowhere"


def test_it_tells_what_becomes_of_the_boards_power(tmp_path: Path, play: Callable[..., Player]):
    player = play(tmp_path)
    player.say()
    qmp(tmp_path / "qmp", "stop", "system_reset")
    assert player.say() == {"state": "off"}
    qmp(tmp_path / "qmp-video", "cont")
    assert player.say() == {"state": "on"}
    qmp(tmp_path / "qmp", "system_reset")
    assert player.say() == {"state": "reset"}
    qmp(tmp_path / "qmp", "stop")
    assert player.say() == {"state": "paused"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the next player clears it away")
def test_a_killed_player_leaves_no_qemu_and_the_next_takes_its_place(tmp_path: Path, play: Callable[..., Player]):
    player = play(tmp_path)
    qemu = player.say()["qemu"]
    second = play(tmp_path)
    assert second.process.wait(10) == 1 and b"being played" in second.errors(), "one board a directory"
    player.process.send_signal(signal.SIGKILL)
    until("the end of QEMU", lambda: not alive(qemu))
    assert play(tmp_path).say()["ready"]


def test_a_qemu_that_ends_by_itself_ends_its_player(tmp_path: Path, play: Callable[..., Player]):
    player = play(tmp_path)
    os.kill(player.say()["qemu"], signal.SIGKILL)
    assert player.process.wait(10) == 1


def test_what_is_missing_is_said_with_its_package(tmp_path: Path):
    env = {**os.environ, "PATH": str(tmp_path)}
    player = Player(tmp_path / "d", str(a_file(tmp_path, GOOD)), env=env)
    assert player.process.wait(10) == 7
    assert player.errors().decode() == (
        "qemu-system-x86_64 is not on PATH; there is no /nowhere/u-boot.rom "
        "(sudo apt-get install qemu-system-x86 u-boot-qemu)\n"
    )


def test_qemus_own_complaint_is_passed_on(tmp_path: Path, play: Callable[..., Player]):
    rom = shutil.which("qemu-system-x86_64")
    text = GOOD.replace('"/nowhere/u-boot.rom"', f'"{rom}"').replace('"-M", "pc"', '"-M", "no-such-machine"')
    player = play(tmp_path / "d", str(a_file(tmp_path, text)))
    assert player.process.wait(10) == 1
    assert b"unsupported machine type" in player.errors()


def test_a_board_that_does_not_exist_is_told_with_what_was_meant(tmp_path: Path):
    player = Player(tmp_path / "d", "uboot-x68")
    assert player.process.wait(10) == 4
    assert "did you mean uboot-x86?" in player.errors().decode()
