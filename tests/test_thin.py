"""The program that starts: what it imports, and what it does without parsing anything."""

import subprocess
import sys

import pytest

from tests.conftest import LABD, BenchInAFolder

#: What `python -c pass` has loaded by itself, and the three modules the hot path may add.
HOT_PATH = {"labd", "labd.thin", "_socket"}


def imported(code: str) -> set[str]:
    """The modules that running `code` loads beyond a bare start."""
    show = "import sys; print(*sorted(sys.modules))"
    runs = [subprocess.run([sys.executable, "-c", f"{c}\n{show}"], capture_output=True, text=True, check=True)
            for c in ("pass", code)]  # fmt: skip
    bare, full = (set(run.stdout.split()) for run in runs)
    return full - bare


def test_the_hot_path_imports_nothing_but_itself_and_sockets():
    assert imported("import labd.thin, _socket") <= HOT_PATH


def test_a_call_through_the_daemon_imports_nothing_more(board: BenchInAFolder):
    board("serial", "watch", "dut")
    code = (
        "import sys; sys.argv = ['labd', 'serial', 'log', 'dut', '--tail', '2']\n"
        "import labd.thin; code = labd.thin.main(); import os; os.write(1, b'\\n')\n"
        "assert code == 0"
    )
    env = {**board.env, "LABD_ARGV_LOG": str(board.log)}
    show = "import sys; print('MODULES', *sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{show}"], capture_output=True, text=True, env=env, cwd=board.root
    )
    bare = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True)
    loaded = set(done.stdout.split("MODULES")[1].split()) - set(bare.stdout.split())
    assert loaded <= HOT_PATH


#: What reading the journal without a daemon may load beyond a bare start: ours, and what is built in.
COLD_BUILTINS = {
    "_json",
    "_struct",
    "errno",
    "fcntl",
    "mmap",
    "struct",
    "zlib",
    "_socket",
    "marshal",
    "time",
    "__future__",
}


def test_reading_the_journal_without_a_daemon_stays_light(board: BenchInAFolder):
    board("serial", "watch", "dut")
    board("daemons", "stop")
    board("serial", "log", "dut")  # warms the cache of the lab file
    code = (
        "import sys; sys.argv = ['labd', 'serial', 'log', 'dut', '--tail', '2']\n"
        "import labd.thin; assert labd.thin.main() == 0"
    )
    show = "import sys; print('MODULES', *sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{show}"], capture_output=True, text=True, env=board.env, cwd=board.root
    )
    assert done.returncode == 0, done.stderr
    bare = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True)
    loaded = set(done.stdout.split("MODULES")[1].split()) - set(bare.stdout.split())
    assert {name for name in loaded if not name.startswith("labd")} <= COLD_BUILTINS


def test_the_version_needs_no_daemon_and_no_lab(labd: BenchInAFolder):
    assert labd.out("--version").startswith("labd ")
    assert labd.daemon_pid() is None


def test_a_runtime_directory_open_to_others_is_not_trusted(labd: BenchInAFolder):
    runtime = labd.runtime / "labd"
    runtime.mkdir(mode=0o777)
    runtime.chmod(0o777)
    labd("target", "add", "dut")
    labd("serial", "add", "console", "-t", "dut", "--device", "loopback:uboot")
    done = labd("serial", "watch", "dut", check=3)
    assert b"open to other users" in done.stderr


@pytest.mark.parametrize("argv", [["--help"], ["commands", "--json"]])
def test_a_reader_that_goes_away_ends_the_program_quietly(labd: BenchInAFolder, argv: list[str]):
    process = subprocess.Popen([LABD, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=labd.env)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(30) in (0, 141)


def test_the_table_of_commands_is_printed_without_heavy_modules(labd: BenchInAFolder):
    code = "import sys; sys.argv = ['labd', 'commands', '--json']\nimport labd.thin; assert labd.thin.main() == 0"
    show = f"{code}\nprint('MODULES', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, env=labd.env, check=True)
    loaded = set(done.stdout.rsplit("MODULES", 1)[1].split())
    assert not loaded & {"typing", "ast", "enum", "contextlib", "re", "json", "dataclasses", "shlex", "inspect"}
