"""The helper over a real process that speaks as uhubctl does; and the real uhubctl where it is installed."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from labd import helpers
from labd.helpers import _program, usbhub
from tests.conftest import until
from tests.helpers.run import run

FAKE = Path(__file__).parent / "fake_uhubctl.py"


class Uhubctl:
    """The program in a folder of its own, with the state of its ports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "uhubctl"
        self.program.write_text(FAKE.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable}"))
        self.program.chmod(0o755)
        self.ports = {"1": True, "2": True}

    @property
    def ports(self) -> dict[str, bool]:
        found: dict[str, bool] = json.loads((self.folder / "ports.json").read_text())
        return found

    @ports.setter
    def ports(self, ports: dict[str, bool]) -> None:
        (self.folder / "ports.json").write_text(json.dumps(ports))

    def __call__(self, *words: str, fault: str = "", hub: str = "1-1.4") -> tuple[int, str, str]:
        env = {"PATH": f"{self.folder}:/usr/bin:/bin", "FAULT": fault}
        where = () if words == ("list",) else ("-l", hub)
        return run(usbhub, *where, *words, "--uhubctl", str(self.program), env=env)


@pytest.fixture
def hub(tmp_path: Path) -> Uhubctl:
    return Uhubctl(tmp_path)


def test_a_port_is_switched_and_read_back_from_both_halves(hub: Uhubctl) -> None:
    assert hub("state", "2") == (0, "on\n", "")
    assert hub("off", "2") == (0, "off\n", "")
    assert hub.ports == {"1": True, "2": False}
    assert hub("state", "2") == (0, "off\n", "") and hub("state", "1") == (0, "on\n", "")
    assert hub("on", "2") == (0, "on\n", "")
    assert "2109:2817" in hub("list")[1]


def test_a_hub_that_takes_the_command_and_does_nothing_is_a_failure(hub: Uhubctl) -> None:
    code, out, err = hub("off", "2", fault="stuck")
    assert (code, out) == (1, "") and "port 2 is still on" in err


def test_a_cycle_restores_the_power_with_several_tries(hub: Uhubctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_program, "RESTORE_PAUSE_S", 0.02)
    (hub.folder / "refuse").write_text("2")
    code, out, err = hub("cycle", "2", "--delay-ms", "200")
    assert code == 0 and out.startswith("on (was off for ") and "try 2 of 6" in err
    assert hub.ports["2"] is True
    (hub.folder / "refuse").write_text("1000")
    code, out, err = hub("cycle", "2", "--delay-ms", "200")
    assert (code, out) == (1, "") and "THE POWER MAY STILL BE OFF" in err and "usbhub -l 1-1.4 on 2" in err


def test_a_cycle_that_is_told_to_end_restores_the_power_first(hub: Uhubctl) -> None:
    words = ["-l", "1-1.4", "cycle", "2", "--delay-ms", "60000", "--uhubctl", str(hub.program)]
    process = subprocess.Popen([*helpers.command("usbhub"), *words], stderr=subprocess.PIPE, env=dict(os.environ))
    until("the port to be off", lambda: hub.ports["2"] is False)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=30)[1].endswith(b"usbhub: interrupted\n")
    assert (process.returncode, hub.ports["2"]) == (130, True)


@pytest.mark.parametrize(
    ("fault", "words", "code", "told"),
    [
        ("permission", ("state", "2"), 7, "sudo -n usbhub"),
        ("none", ("state", "2"), 4, "no hub 1-1.4 that can switch"),
        ("none", ("list",), 4, "no hub here"),
        ("", ("state", "9"), 4, "has no port 9"),
        ("slow", ("state", "2", "--timeout-ms", "200"), 5, "did not answer within 0.2 s"),
    ],
)
def test_what_goes_wrong_is_told_with_its_exit_code(
    hub: Uhubctl, fault: str, words: tuple[str, ...], code: int, told: str
) -> None:
    found, out, err = hub(*words, fault=fault)
    assert (found, out) == (code, "") and told in err


def test_bad_words_and_no_uhubctl(hub: Uhubctl) -> None:
    for words in (
        ("state",),
        ("state", "2"),
        ("-l", "1-1", "cycle"),
        ("-l", "1-1", "on", "0"),
        ("-l", "1-1", "up", "1"),
    ):
        assert run(usbhub, *words)[0] == 2
    code, _, err = run(usbhub, "-l", "1-1", "state", "1", "--uhubctl", str(hub.folder / "none"), env={"PATH": "/none"})
    assert code == 7 and "install uhubctl" in err
    assert hub.ports["2"] is True and not (hub.folder / "calls").exists()


def test_the_real_uhubctl_is_understood() -> None:
    program = shutil.which("uhubctl", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if program is None:
        pytest.skip("uhubctl is not installed")
    code, out, err = run(usbhub, "list", "--uhubctl", program, env=dict(os.environ))
    assert (code == 0 and "status for hub" in out) or (code in (4, 7) and err.startswith("usbhub: no "))
