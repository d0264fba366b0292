"""`serial run` by the installed program, on boards whose shells are real ones, on boot loaders, and on consoles that
have no shell.
"""

from __future__ import annotations

import signal

import pytest

from tests.conftest import LAB_OF_ONE, BenchInAFolder, until


def on(labd: BenchInAFolder, dut: str, prompt: str = "") -> BenchInAFolder:
    """The bench with the simulated board `dut`, captured, once it shows `prompt`."""
    labd.lab.write_text(LAB_OF_ONE.format(dut=dut))
    labd("serial", "watch", "dut")
    if prompt:
        labd("serial", "expect", "dut", prompt, "--since", "0", "--literal")
    return labd


#: A command for a POSIX shell, the code it ends with, and what it prints.
COMMANDS = [
    ("true", 0, b""),
    ("false", 1, b""),
    ("echo hello world", 0, b"hello world\n"),
    ("printf 'no newline'; (exit 42)", 42, b"no newline"),
    ("echo 'a  b' \"it's\" # a comment", 0, b"a  b it's\n"),
    ("if true; then echo yes; fi", 0, b"yes\n"),
    ("printf 'one\\ntwo\\n'\nexit_code() { return 9; }\nexit_code", 9, b"one\ntwo\n"),
    ("x=5; echo tab\there", 0, b"tab here\n"),
    ("echo $x", 0, b"5\n"),
    ("seq 1 3000 | tail -n 1; echo " + "long " * 60, 0, b"3000\n" + b"long " * 59 + b"long\n"),
    ("kill -9 $$ & wait", None, b""),
]


@pytest.mark.parametrize("dut", ["dash-shell", "bash-shell", "busybox-shell", "fancy-shell"])
def test_real_shells_give_exactly_the_output_and_the_exit_code(labd: BenchInAFolder, dut: str):
    on(labd, dut)
    for command, code, output in COMMANDS:
        if code is not None:
            done = labd("serial", "run", "dut", command, check=code)
            assert done.stdout == output, command
    failed = labd("serial", "run", "dut", "fi", check=2)
    assert b"yntax error" in failed.stdout
    exact = labd("serial", "run", "dut", "printf '\\000\\r\\n\\377 \\033[1mx'; exit 7", "--binary", check=7)
    assert exact.stdout == b"\x00\r\n\xff \x1b[1mx"


def test_a_kernel_that_logs_in_between_costs_no_exit_code(labd: BenchInAFolder):
    on(labd, "chatty-kernel")
    for code in range(1, 13):
        done = labd("serial", "run", "dut", f"echo one; echo two; (exit {code})", check=None)
        assert done.returncode == code or (done.returncode == 1 and b"can't be told" in done.stderr)
        if done.stdout != b"one\ntwo\n":
            assert b"interleaved" in done.stderr
    binary = labd("serial", "run", "dut", "seq 1 300; exit 5", "--binary", check=5)
    assert binary.stdout == b"".join(b"%d\n" % n for n in range(1, 301))


def test_a_boot_loaders_shell_gives_output_and_code(labd: BenchInAFolder):
    labd.lab.write_text(LAB_OF_ONE.format(dut="uboot"))
    labd("serial", "trigger", "add", "dut", "Hit any key", "--key", "space")
    on(labd, "uboot", "=> ")
    assert labd.out("serial", "run", "dut", "printenv arch") == "arch=arm\n"
    failed = labd("serial", "run", "dut", "printenv nothing", check=1)
    assert failed.stdout == b'## Error: "nothing" not defined\n'
    assert labd.json("serial", "run", "dut", "echo $?; version")["shell"] == "hush"
    assert b"one line" in labd("serial", "run", "dut", "a\nb", check=2).stderr


def test_a_console_without_exit_codes_says_so_and_is_never_a_false_success(labd: BenchInAFolder):
    on(labd, "bmc", "bmc> ")
    done = labd("serial", "run", "dut", "power status", check=1)
    assert done.stdout == b"Host power is on\n"
    assert b"the exit code is unknown" in done.stderr
    assert labd("serial", "run", "dut", "power off", "--no-status").stdout == b"Host power: off\n"
    found = labd.json("serial", "run", "dut", "power status", check=1)
    assert (found["code"], found["output"], found["shell"]) == (None, "Host power is off\n", "none")


def test_exact_bytes_need_a_shell_and_none_is_no_empty_success(labd: BenchInAFolder):
    on(labd, "bmc", "bmc> ")
    refused = labd("serial", "run", "dut", "power status", "--binary", check=1).stderr
    assert b"has no shell, which --binary needs; the command was not typed" in refused
    assert b"--binary needs a shell" in labd("serial", "run", "dut", "help", "--binary", "--no-status", check=2).stderr
    assert b"Host power is on" not in labd("serial", "log", "dut").stdout


def test_words_that_can_not_be_meant_are_refused_before_anything_is_typed(labd: BenchInAFolder):
    on(labd, "dash-shell", "# ")
    no_command = labd("serial", "run", "dut", check=2).stderr
    assert b"has no command, and 'dut' is a target" in no_command
    assert b"can't hold a NUL" in labd("serial", "run", "dut", "-", stdin=b"echo a\0b\n", check=2).stderr
    assert b" tx " not in labd("serial", "log", "dut", "--events").stdout
    assert labd("serial", "run", "-t", "dut", "dut", check=127).stdout.endswith(b"dut: not found\n")


def test_a_question_that_was_swallowed_is_asked_again_though_a_kernel_logs_behind_the_prompt(labd: BenchInAFolder):
    on(labd, "chatty-kernel")
    labd("serial", "run", "dut", "true")
    labd("serial", "run", "dut", "read x", "--timeout", "1.5", check=5)
    codes = [labd("serial", "run", "dut", f"echo one; (exit {code})", "--timeout", "15", check=None).returncode
             for code in (3, 4)]  # fmt: skip
    assert codes == [3, 4]


def test_what_is_told_of_a_command_that_waits_is_not_our_own_typing(labd: BenchInAFolder):
    on(labd, "dash-shell")
    late = labd("serial", "run", "dut", "read x", "--timeout", "5", check=5).stderr
    assert b"last lines: ''" in late
    assert b"serial send dut -i console --key ctrl-c" in late
    labd("serial", "send", "dut", "--key", "ctrl-c")
    assert labd.out("serial", "run", "dut", "echo next") == "next\n"


def test_nothing_is_typed_at_a_login_prompt(board: BenchInAFolder):
    on(board, "linux-login", "login: ")
    refused = board("serial", "run", "dut", "reboot", check=1).stderr
    assert b"asks 'loopback login:', so there is no shell; nothing was typed" in refused
    assert b"reboot" not in board("serial", "log", "dut", "--events", "--tail", "3").stdout


def test_a_command_that_does_not_end_is_left_and_what_it_printed_is_there(labd: BenchInAFolder):
    on(labd, "dash-shell")
    labd("serial", "run", "dut", "true")
    late = labd("serial", "run", "dut", "echo begun; sleep 5", "--timeout", "1", check=5)
    assert late.stdout == b"begun\n"
    assert b"did not end in 1 s; it may still run, and is not typed again" in late.stderr
    labd("serial", "send", "dut", "--key", "ctrl-c")
    assert labd.out("serial", "run", "dut", "echo next") == "next\n"
    labd("serial", "run", "dut", "sleep 20", "--timeout", "1", check=5)
    refused = labd("serial", "run", "dut", "echo never", "--timeout", "1", check=5).stderr
    assert b"'echo never' was not typed" in refused and b"did not end" not in refused
    labd("serial", "send", "dut", "--key", "ctrl-c")
    assert labd.out("serial", "run", "dut", "echo next") == "next\n"


@pytest.mark.parametrize("dut", ["dash-shell", "bash-shell"])
@pytest.mark.parametrize("before", [True, False])
def test_a_question_that_a_program_swallowed_is_asked_again(labd: BenchInAFolder, dut: str, before: bool):
    on(labd, dut, "# ")  # what is typed before it is echoed before it, and the program would seem to be a prompt
    read = 'read x; echo "got $x"'
    if before:
        labd("serial", "run", "dut", read, "--timeout", "2", check=5)
    else:
        labd("serial", "send", "dut", read)
    for code in (7, 8):
        found = labd.json("serial", "run", "dut", f"echo one; (exit {code})", check=code)
        assert (found["code"], found["shell"], found["output"]) == (code, "sh", "one\n")


def test_a_program_between_two_shells_is_never_remembered_as_a_console_without_codes(labd: BenchInAFolder):
    on(labd, "dash-shell")
    labd("serial", "run", "dut", "true")
    labd("serial", "send", "dut", "PS1='sub# '; while printf 'sub# ' && read x && test ${#x} -ne 3; do echo got; done")
    found = labd.json("serial", "run", "dut", "true", check=1)
    assert found["shell"] == "none"
    labd("serial", "send", "dut", "end")
    assert labd.json("serial", "run", "dut", "(exit 7)", check=7)["shell"] == "sh"


def test_a_port_that_goes_away_ends_a_run_with_what_had_come_and_nothing_is_typed_again(labd: BenchInAFolder):
    on(labd, "dash-shell")
    labd("serial", "run", "dut", "true")
    run = labd.start("serial", "run", "dut", "echo begun; sleep 3; echo $((40 + 2))")
    until("the command's first output", lambda: b"#" in labd("serial", "log", "dut", "--grep", "^begun$").stdout)
    labd("serial", "stop", "dut")
    out, err = run.communicate(timeout=30)
    assert (run.returncode, out) == (7, b"begun\n")
    assert b"nothing is typed again" in err or b"not being captured any more" in err
    labd("serial", "watch", "dut")
    assert labd.out("serial", "run", "dut", "echo back") == "back\n"
    assert labd("serial", "log", "dut", "--raw", "--tail", "0").stdout.count(b"40 + 2") == 1


def test_a_run_holds_the_console_and_gives_it_back_also_when_interrupted(labd: BenchInAFolder):
    on(labd, "dash-shell")
    labd("serial", "run", "dut", "true")
    run = labd.start("serial", "run", "dut", "sleep 60", "--timeout", "90")
    until("the run to hold the console", lambda: labd.json("serial", "show", "dut")[0].get("writer"))
    refused = labd("serial", "run", "dut", "true", "--wait", "0", check=6).stderr
    assert b"a run of 'sleep 60', until" in refused
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=30)
    until("the console to be free", lambda: labd.json("serial", "show", "dut")[0]["writer"] is None)
    labd("serial", "send", "dut", "--key", "ctrl-c")
    assert labd.out("serial", "run", "dut", "echo mine") == "mine\n"


@pytest.mark.parametrize("dut", ["bash-shell", "fancy-shell", "chatty-kernel", "dash-shell"])
def test_a_command_that_ends_the_shell_ends_the_run_when_there_is_a_new_prompt(labd: BenchInAFolder, dut: str):
    on(labd, dut)
    labd("serial", "run", "dut", 'PS1="zzz "')
    for _ in range(2):
        done = labd("serial", "run", "dut", "exit 3", "--timeout", "20", check=1)
        assert b"shows a prompt without having told the exit code" in done.stderr


def test_a_run_whose_console_is_taken_over_says_so(labd: BenchInAFolder):
    on(labd, "dash-shell")
    labd("serial", "run", "dut", "true")
    run = labd.start("serial", "run", "dut", "echo begun; sleep 3; echo over")
    until("the command's first output", lambda: b"#" in labd("serial", "log", "dut", "--grep", "^begun$").stdout)
    assert labd("serial", "run", "dut", "echo mine; (exit 4)", "--take", check=4).stdout == b"mine\n"
    out, err = run.communicate(timeout=30)
    assert (run.returncode, out) == (6, b"begun\n")
    assert b"was taken over by" in err and b"its exit code is unknown" in err


def test_runs_at_once_take_turns(labd: BenchInAFolder):
    on(labd, "dash-shell")
    runs = [labd.start("serial", "run", "dut", f"echo {n}; (exit {n})", "--wait", "60") for n in range(1, 6)]
    for n, run in enumerate(runs, 1):
        out, err = run.communicate(timeout=60)
        assert (run.returncode, out) == (n, b"%d\n" % n), err


def test_a_line_that_loses_input_is_typed_by_its_echo(labd: BenchInAFolder):
    on(labd, "lossy", "# ")
    done = labd("serial", "run", "dut", "echo the quick brown fox jumps over", "--verify-echo", "--shell", "hush")
    assert done.stdout == b"the quick brown fox jumps over\n"
