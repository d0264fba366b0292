"""The scripts of `labd completion` in the real shells: a line is typed, Tab is pressed, the shell says what it has."""

import re
import shutil
import subprocess
from pathlib import Path

import pexpect
import pytest

from labd.operations.completion import INSTALL
from tests.conftest import LABD, BenchInAFolder

LAB = """
[targets.pico]
description = "the first: with a colon"
[[targets.pico.serial]]
name = "console"
device = "loopback:uboot"
[targets.vim3]
[[targets.vim3.serial]]
name = "con.sole"
device = "loopback:linux-login"
"""

#: Shell → what its own file of settings holds before labd's completion is installed, and how it gets its prompt.
START = {
    "bash": (".bashrc", "", "PS1='READY> '"),
    "zsh": (".zshrc", "autoload -Uz compinit && compinit -D -u\n", "PS1='READY> '"),
    "fish": (".config/fish/config.fish", "", "function fish_prompt; echo -n 'READY> '; end"),
}


class Shell:
    """An interactive shell on a terminal of its own, for which labd's completion was installed as it says."""

    def __init__(self, name: str, labd: BenchInAFolder, own: str | None = None) -> None:
        """`own` are settings in place of the usual ones and of the installation."""
        rc, first, setup = START[name]
        (labd.root / rc).parent.mkdir(parents=True, exist_ok=True)
        (labd.root / rc).write_text(first if own is None else own)
        if own is None:
            subprocess.run(["sh", "-c", INSTALL[name][0]], env=labd.env, check=True, cwd=labd.root)
        env = {**labd.env, "TERM": "dumb" if name != "fish" else "xterm", "PATH": f"{Path(LABD).parent}:/usr/bin:/bin"}
        env.pop("LABD_ARGV_LOG")
        self.process = pexpect.spawn(shutil.which(name) or name, ["-i"], env=env, cwd=str(labd.root),
                                     encoding="utf-8", timeout=20, dimensions=(40, 200))  # fmt: skip
        self.process.sendline(f"{setup}; echo SET''UP")
        self.process.expect("SETUP")
        self.process.expect("READY> ")

    def completed(self, line: str) -> str:
        """The line after Tab: echoed by the shell itself, which sees its words (so quotes are gone)."""
        self.process.send(line + "\t")
        self.process.send("\x01echo '<<'\"\" \x05 '>>'\r")
        self.process.expect(r"<< (?!')(.*?) ?>>")
        found = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.process.match.group(1))
        self.process.expect("READY> ")
        return found.rstrip()

    def close(self) -> None:
        """End it."""
        self.process.close(force=True)


@pytest.fixture(params=list(INSTALL))
def shell(request: pytest.FixtureRequest, labd: BenchInAFolder):
    if shutil.which(request.param) is None:
        pytest.skip(f"no {request.param} here")
    labd.lab.write_text(LAB)
    (labd.root / "pictures").mkdir()
    (labd.root / "pictures" / "boot.png").touch()
    (labd.root / "spare file.bin").touch()
    made = Shell(request.param, labd)
    yield made
    made.close()
    assert labd.daemon_pid() is None


def test_tab_completes_commands_flags_choices_names_and_files(shell: Shell):
    for typed, wanted in (
        ("labd disc", "labd discover"),
        ("labd serial wat", "labd serial watch"),
        ("labd serial watch pi", "labd serial watch pico"),
        ("labd serial log -t pico -i c", "labd serial log -t pico -i console"),
        ("labd serial log --since-b", "labd serial log --since-boot"),
        ("labd serial add x --parity ev", "labd serial add x --parity even"),
        ("labd serial add x --parity=ev", "labd serial add x --parity=even"),
        ("labd serial send pico -d loopback:x --key ctrl-\\\\", "labd serial send pico -d loopback:x --key ctrl-\\"),
        ("labd video shot pico -o pictures/bo", "labd video shot pico -o pictures/boot.png"),
        ("labd serial send --file=pictures/bo", "labd serial send --file=pictures/boot.png"),
        ("labd serial xfer send sp", "labd serial xfer send spare file.bin"),
        ("labd --json serial add x -d loopback:uboot --fl", "labd --json serial add x -d loopback:uboot --flow"),
        ("labd skill kvm", "labd skill kvm-puppeting"),
    ):  # fmt: skip
        assert shell.completed(typed) == wanted


def test_what_has_no_answer_stays_as_it_is_and_nothing_is_printed(shell: Shell):
    assert shell.completed("labd serial send pico hel") == "labd serial send pico hel"
    assert shell.completed("labd nonsense x") == "labd nonsense x"
    assert shell.completed("labd serial send pico -- --fi") == "labd serial send pico -- --fi"


def test_several_answers_are_listed(shell: Shell):
    shell.process.send("labd serial trigger \t\t")
    for name in ("add", "list", "rm"):
        shell.process.expect(name)


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh here")
def test_zsh_may_also_load_it_from_its_path_of_functions(labd: BenchInAFolder):
    labd.lab.write_text(LAB)
    (labd.root / "functions").mkdir()
    (labd.root / "functions" / "_labd").write_bytes(labd("completion", "zsh").stdout)
    shell = Shell("zsh", labd, "fpath=(~/functions $fpath); autoload -Uz compinit && compinit -D -u\n")
    try:
        assert shell.completed("labd serial watch pi") == "labd serial watch pico"
    finally:
        shell.close()


def test_the_script_is_printed_with_a_way_to_install_it_that_says_so_only_to_a_person(labd: BenchInAFolder):
    for name, (command, _) in INSTALL.items():
        done = labd("completion", name)
        assert done.stderr == b"" and b"__complete " + name.encode() in done.stdout
        assert labd.json("completion", name)["install"] == command
    assert b"bash, zsh, fish" in labd("completion", "tcsh", check=2).stderr
    person = pexpect.spawn(LABD, ["completion", "bash"], env=labd.env, encoding="utf-8", timeout=20)
    person.expect("to install it: echo 'eval")
    person.expect(pexpect.EOF)
