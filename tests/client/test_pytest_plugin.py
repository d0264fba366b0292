"""The pytest plugin as a project meets it: a suite of its own, in a process of its own."""

from __future__ import annotations

import re
import site
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from tests.conftest import LAB_OF_ONE, BenchInAFolder

#: The checkout.
HERE = Path(__file__).parents[2]

SUITE = """
import pytest


@pytest.fixture
def shell(labd_console):
    labd_console.expect(r"login: ", cursor=labd_console.born, timeout=20)
    labd_console.send("root")
    labd_console.expect(r":~# ", timeout=20)
    return labd_console


def test_first(shell):
    shell.send("echo said-in-first")
    shell.expect("said-in-first")
    shell.send("exit")
    shell.expect("login: ")


def test_second_fails(labd_console):
    labd_console.send("root")
    labd_console.expect(":~# ")
    labd_console.send("echo said-in-second")
    labd_console.expect("said-in-second")
    assert False, "on purpose"


def test_third_uses_none():
    assert False, "on purpose too"
"""


def run(bench: BenchInAFolder, *words: str, suite: str = SUITE, python: str = sys.executable,
        **env: str) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """pytest in a directory with this suite alone."""
    where = bench.root / "suite"
    where.mkdir(exist_ok=True)
    (where / "test_it.py").write_text(suite)
    argv = [python, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--rootdir", str(where), *words, str(where)]
    return subprocess.run(argv, cwd=where, env={**bench.env, **env}, capture_output=True, text=True, timeout=300)


def test_a_failing_report_has_the_tests_own_slice_of_each_console(board: BenchInAFolder):
    done = run(board)
    assert "2 failed, 1 passed" in done.stdout, done.stdout
    second = done.stdout[done.stdout.index("_ test_second_fails _") : done.stdout.index("_ test_third_uses_none _")]
    third = done.stdout[done.stdout.index("_ test_third_uses_none _") :]
    assert "labd dut.console" in second
    assert re.search(r"#\d+ said-in-second", second) and 'tx "echo said-in-second' in second
    assert "said-in-first" not in second and "Booting Linux" not in second
    assert "labd dut.console" not in third


def test_a_failing_set_up_has_its_slice_too_and_an_error_of_the_bench_is_said(board: BenchInAFolder):
    suite = (
        "import pytest\n@pytest.fixture\ndef ready(labd_console):\n    labd_console.expect('login: ', timeout=20)\n"
        "    labd_console.expect('never', timeout=0.1)\ndef test_it(ready):\n    pass\n"
        "def test_what_it_needs(labd_target):\n    labd_target['no-such']\n"
    )
    done = run(board, suite=suite)
    assert "1 failed, 1 error" in done.stdout, done.stdout
    assert "Welcome to Loopback Linux" in done.stdout and "TimedOut: dut.console: not within 0.1 s" in done.stdout
    assert "no serial interface 'no-such' on target 'dut'" in done.stdout


def test_a_long_slice_is_cut_and_says_where_the_rest_is(board: BenchInAFolder):
    board.lab.write_text(LAB_OF_ONE.format(dut="flood"))
    suite = (
        "def test_it(labd_console):\n    labd_console.expect('flood 00000600', timeout=30,"
        " cursor=labd_console.born)\n    assert False\n"
    )
    done = run(board, suite=suite)
    assert re.search(r"bytes before: labd serial log dut -i console --from 1 --to \d+", done.stdout), done.stdout
    assert 190 <= len(re.findall(r"kernel: flood \d{8} usb", done.stdout)) <= 210


def test_options_choose_the_lab_and_the_target(board: BenchInAFolder):
    other = board.root / "other.toml"
    other.write_text(LAB_OF_ONE.format(dut="bmc") + LAB_OF_ONE.format(dut="bmc").replace("dut", "second"))
    suite = (
        "def test_it(labd_lab, labd_target):\n"
        "    assert (list(labd_lab), labd_target.name) == (['dut', 'second'], 'second')\n"
    )
    assert "1 passed" in run(board, "--labd-lab", str(other), "--labd-target", "second", suite=suite).stdout
    many = run(board, "--labd-lab", str(other), suite=suite)
    assert "1 error" in many.stdout and "which target? the lab has 2: dut, second" in many.stdout
    none = run(board, "--labd-lab", str(board.root / "none.toml"), suite=suite)
    assert "1 error" in none.stdout and "no lab file at" in none.stdout


def test_unused_it_does_nothing_and_loads_nothing(labd: BenchInAFolder):
    suite = (
        "import sys\ndef test_it():\n    mine = sorted(m for m in sys.modules if m.split('.')[0] in ('labd', 'pexpect',"
        " 'trio', 'serial'))\n    assert mine == ['labd', 'labd.pytest_plugin']\n"
    )
    done = run(labd, "-p", "no:anyio", suite=suite)  # a plugin of another's, which loads trio where there is one
    assert "1 passed" in done.stdout, done.stdout
    assert labd.daemon_pid() is None and not (labd.root / "state").exists()
    listed = run(labd, "--fixtures", "-v", suite=suite).stdout
    ours = re.findall(r"^(\S+).*-- .*labd/pytest_plugin\.py", listed, re.MULTILINE)
    assert sorted(ours) == ["labd_console", "labd_lab", "labd_target"]
    helped = run(labd, "--help", suite=suite).stdout
    assert "--labd-lab" in helped and "--labd-target" in helped


def test_it_is_the_entry_point_that_pytest_loads():
    with open(HERE / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    assert project["entry-points"]["pytest11"] == {"labd": "labd.pytest_plugin"}
    assert any(name.startswith("pexpect") for name in project["dependencies"])


BESIDE = """
def test_ours(labd_console):
    labd_console.expect("login: ", cursor=labd_console.born, timeout=20)


def test_all_are_loaded(pytestconfig):
    names = {name for name, _ in pytestconfig.pluginmanager.list_name_plugin()}
    assert {"labd"} <= names
    assert any("labgrid" in name for name in names), names
"""


def venv_with(root: Path, package: str) -> str | None:
    """The Python of a throwaway environment with this one's packages and one more; None if pip can't install it."""
    subprocess.run([sys.executable, "-m", "venv", str(root)], check=True, timeout=120)
    (own,) = root.glob("lib/python*/site-packages")
    (own / "ours.pth").write_text("\n".join(dict.fromkeys([*site.getsitepackages(), str(HERE)])))
    python = str(root / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
    try:
        return None if subprocess.run(pip, capture_output=True, timeout=420).returncode else python
    except subprocess.TimeoutExpired:
        return None


@pytest.mark.slow
@pytest.mark.parametrize(("peer", "plugin"), [("labgrid", "labgrid"), ("pytest-embedded-serial", "pytest_embedded")])
def test_it_works_in_one_environment_beside(peer: str, plugin: str, board: BenchInAFolder, tmp_path: Path):
    python = venv_with(tmp_path / "venv", peer)
    if python is None:
        pytest.skip(f"pip can't install {peer} here")
    begun = time.monotonic()
    done = run(board, suite=BESIDE.replace("labgrid", plugin), python=python)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert time.monotonic() - begun < 60
