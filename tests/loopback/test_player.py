"""The player as a program: how it starts, what it refuses, how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from loopback import library
from loopback.commandline import main

from .conftest import DEADLINE_S, Play, Terminal

Open = Callable[[str], Terminal]

IDLE = 'title = "t"\nmode = "mute"\n'


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "loopback", *args],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        stdin=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
    )


def test_the_ready_line_says_what_to_open(play: Play, tmp_path: Path) -> None:
    player = play("loop", "--link", str(tmp_path / "port"))
    assert player.ready == {
        "ready": True,
        "dut": "loop",
        "tty": player.tty,
        "link": str(tmp_path / "port"),
        "pid": player.process.pid,
    }
    assert os.path.exists(player.tty)


def test_the_end_of_standard_input_ends_it_and_takes_the_symlink_away(
    play: Play, terminal: Open, tmp_path: Path
) -> None:
    player = play(IDLE, "--link", str(tmp_path / "port"))
    port = terminal(player.tty)
    assert player.end() == 0
    assert port.hung_up()
    assert not os.path.lexists(tmp_path / "port")
    assert player.records("exit")[0]["code"] == 0


@pytest.mark.parametrize("how", ["quit", "sigterm", "sigint"])
def test_it_ends_when_told(play: Play, how: str) -> None:
    player = play(IDLE)
    if how == "quit":
        assert player.do(quit=True) == {"ok": True, "quit": True}
    else:
        player.process.send_signal({"sigterm": signal.SIGTERM, "sigint": signal.SIGINT}[how])
    assert player.process.wait(DEADLINE_S) == 0


def test_every_request_is_answered_with_its_id_and_nonsense_with_an_error(play: Play) -> None:
    player = play(IDLE)
    assert player.ask(id=7, fault="clear") == {"id": 7, "ok": True, "fault": "clear"}
    refused = player.ask(id="x", fault="unplugg")
    assert (refused["id"], refused["ok"], refused["near"]) == ("x", False, ["unplug"])
    assert player.process.stdin is not None
    player.process.stdin.write(b"power sideways\n\nstats\n")
    player.process.stdin.flush()
    assert player.answer()["ok"] is False
    assert player.answer()["stats"]["boots"] == 0


def test_a_real_tty_can_be_played_on_instead_of_a_cable(play: Play, terminal: Open, tmp_path: Path) -> None:
    cable = play("loop", "--set", "baud=0", "--link", str(tmp_path / "a"))
    board = play('title = "t"\nbanner = "hi\\n"\nprompt = "# "\nmode = "mute"\n', "--device", cable.tty)
    assert board.ready["tty"] == cable.tty and board.ready["link"] is None
    board.until("the board is powered", lambda stats: stats["powered"])
    cable.until("its bytes went through", lambda stats: stats["to_dut"]["delivered"] == 6)
    assert "cable" in board.ask(fault="unplug")["error"]
    cable.do(fault="unplug")
    assert board.process.wait(DEADLINE_S) == 1
    assert "went away" in board.stderr()


def test_a_file_in_the_links_place_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "port").write_text("precious")
    done = run("loop", "--link", str(tmp_path / "port"))
    assert done.returncode == 1 and "not replaced" in done.stderr
    assert (tmp_path / "port").read_text() == "precious"


def test_an_unknown_board_is_exit_4_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["linux-logn"]) == 4
    assert "did you mean linux-login" in capsys.readouterr().err
    assert main(["./nowhere.toml"]) == 4
    assert "nowhere.toml" in capsys.readouterr().err


def test_a_variable_without_a_value_or_without_a_use_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.toml").write_text('title = "t"\nbanner = "{nonce}"\n')
    assert main([str(tmp_path / "d.toml")]) == 2
    assert "--set nonce=" in capsys.readouterr().err
    assert main(["bmc", "--set", "nonse=3"]) == 2
    assert "did you mean nonce" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main(["bmc", "--set", "nonce"])
    assert stop.value.code == 2


def test_check_says_what_is_right_and_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = tmp_path / "good.toml"
    good.write_text('title = "t"\nbanner = "{nonce}"\n[[respond]]\nmatch = "a"\n')
    assert main(["--check", str(good)]) == 0
    assert "ok (1 states, 1 answers, needs --set nonce=…)" in capsys.readouterr().out
    bad = tmp_path / "bad.toml"
    bad.write_text('title = "t"\n[[respond]]\nmatch = "a"\nrelpy = "b"\n')
    assert main(["--check", str(bad)]) == 2
    assert capsys.readouterr().err == f"loopback: {bad}: respond[1].relpy: unknown key; did you mean reply?\n"
    assert main(["--check", str(tmp_path / "none.toml")]) == 1


def test_the_boards_are_listed_with_titles(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out
    for name in ("uboot", "linux-login", "bmc", "flood", "loop", "uboot-polled"):
        assert f"\n{name} " in "\n" + listed


@pytest.mark.parametrize("name", library.names())
def test_every_board_of_the_package_is_valid_and_takes_a_nonce(name: str) -> None:
    dut = library.find(name, {"nonce": "abc"})
    assert dut.variables["nonce"] == "abc" and not dut.needs
