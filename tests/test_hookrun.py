"""How a hook's words become an argv: homes, the lab's folder, helpers by name, also behind sudo and env."""

import os
import subprocess
from pathlib import Path

import pytest

from labd import helpers, shim
from labd.errors import LabdError
from labd.hookrun import argv_of
from labd.power import CYCLE

ENV = {"HOME": "/home/me", "PATH": "/usr/bin:/bin"}
PLUG = helpers.command("shellyplug")


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("~/bin/cycle.sh --to ~/log 'a b'", ["/home/me/bin/cycle.sh", "--to", "/home/me/log", "a b"]),
        ("./cycle.sh ./x", ["/lab/cycle.sh", "./x"]),
        ("cycle", ["cycle"]),
        ("shellyplug -d h cycle", [*PLUG, "-d", "h", "cycle"]),
        ("sudo -n -u root shellyplug -d h on", ["sudo", "-n", "-u", "root", *PLUG, "-d", "h", "on"]),
        ("env A=1 shellyplug -d h on", ["env", "A=1", *PLUG, "-d", "h", "on"]),
        ("echo shellyplug", ["echo", "shellyplug"]),
        ("sh -c 'a | b'", ["sh", "-c", "a | b"]),
    ],
)
def test_the_argv_of_a_hook(command: str, argv: list[str]) -> None:
    assert argv_of(command, ENV, "/lab") == argv


@pytest.mark.parametrize("command", ["a | b", "a; b", "A=1 b", "a 'b", "", "a $B"])
def test_what_only_a_shell_understands_is_refused(command: str) -> None:
    with pytest.raises(LabdError):
        argv_of(command, ENV, "/lab")


def test_helpers_are_programs_in_a_folder_and_stay_untouched_when_right(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    helpers.place(str(folder))
    assert {path.name for path in folder.iterdir()} == set(helpers.bundled())
    made = os.stat(folder / "shellyplug").st_ino
    (folder / "pdu").write_text("something else")
    helpers.place(str(folder))
    assert os.stat(folder / "shellyplug").st_ino == made
    done = subprocess.run(["sh", "-c", "pdu --help | head -1"], capture_output=True, text=True,
                          env={"PATH": f"{folder}:/usr/bin:/bin"})  # fmt: skip
    assert done.stdout.startswith("usage: pdu")


def test_a_cycle_whose_off_hangs_and_hears_nothing_still_ends_with_power(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shim, "GRACE_SECONDS", 0.5)
    script = CYCLE.format(
        off="sh -c 'trap \"\" TERM; echo off > power; sleep 600'", on="sh -c 'echo on > power'", seconds=0
    )
    ended = shim.run_hook(["sh", "-c", script], cwd=str(tmp_path), env=dict(os.environ), timeout_s=0.5)
    assert ended.code is None and (tmp_path / "power").read_text() == "on\n"


def test_a_cycle_tries_three_times_to_switch_on(tmp_path: Path) -> None:
    on = "sh -c 'echo x >> tries; test $(wc -l < tries) -ge 2'"
    script = CYCLE.format(off="true", on=on, seconds=0)
    ended = shim.run_hook(["sh", "-c", script], cwd=str(tmp_path), env=dict(os.environ), timeout_s=20)
    assert (ended.code, (tmp_path / "tries").read_text()) == (0, "x\nx\n")
    script = CYCLE.format(off="sh -c 'exit 3'", on="sh -c 'exit 7'", seconds=0)
    assert shim.run_hook(["sh", "-c", script], cwd=str(tmp_path), env=dict(os.environ), timeout_s=20).code == 7
