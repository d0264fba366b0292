"""`serial send`, `serial break`, and who may write, by the installed program on simulated boards."""

from __future__ import annotations

import json

from tests.channels.far import rfc2217
from tests.conftest import LAB_OF_ONE, BenchInAFolder, until


def on(labd: BenchInAFolder, dut: str) -> BenchInAFolder:
    """The bench with the simulated board `dut`, captured."""
    labd.lab.write_text(LAB_OF_ONE.format(dut=dut))
    labd("serial", "watch", "dut")
    return labd


def sent(bench: BenchInAFolder) -> list[bytes]:
    """What went out to the board so far, a `tx` event each."""
    rows = bench("serial", "log", "dut", "--events", "--tail", "0", "--json").stdout.splitlines()
    events = [json.loads(row) for row in rows]
    return [row["data"].encode("latin-1") for row in events if row.get("event") == "tx"]


#: The words of a send, its stdin, and what goes out.
GOES_OUT: list[tuple[tuple[str, ...], bytes, bytes]] = [
    (("hello",), b"", b"hello\r"),
    (("hello", "--no-newline"), b"", b"hello"),
    (("hello", "--eol", "crlf"), b"", b"hello\r\n"),
    (("hello", "--eol", "none"), b"", b"hello"),
    (("",), b"", b"\r"),
    (("--key", "ctrl-c"), b"", b"\x03"),
    (("--key", "esc", "--key", "up", "--key", "f1"), b"", b"\x1b\x1b[A\x1bOP"),
    (("--hex", "00 ff:0x41,1b5b"), b"", b"\x00\xff\x41\x1b\x5b"),
    (("--hex", "41", "--eol", "lf"), b"", b"A\n"),
    (("-",), b"from stdin\n", b"from stdin\r"),
    (("-", "--no-newline"), b"exact\n", b"exact\n"),
    (("-", "--eol", "cr"), b"a\nb\r\nc", b"a\rb\rc\r"),
    (("--", "-v"), b"", b"-v\r"),
]


def test_what_is_named_is_what_goes_out(labd: BenchInAFolder):
    on(labd, "loop")
    for words, stdin, _ in GOES_OUT:
        labd("serial", "send", "dut", *words, stdin=stdin)
    assert sent(labd) == [out for _, _, out in GOES_OUT]


def test_a_file_goes_out_byte_for_byte_or_line_by_line(labd: BenchInAFolder):
    on(labd, "loop")
    data = bytes(range(256)) * 4
    (labd.root / "blob").write_bytes(data)
    (labd.root / "lines").write_bytes(b"one\ntwo\n")
    labd("serial", "send", "dut", "is the board there", "--verify-echo")
    before = len(b"".join(sent(labd)))
    labd("serial", "send", "dut", "--file", "blob")
    labd("serial", "send", "dut", "--file", "lines", "--eol", "crlf", "--line-pace-ms", "20")
    assert b"".join(sent(labd))[before:] == data + b"one\r\ntwo\r\n"
    until("all of it back", lambda: data + b"one\r\ntwo\r\n" in labd("serial", "log", "dut", "--raw").stdout)


#: Words that can't be meant, and what they are told.
WRONG: list[tuple[tuple[str, ...], str]] = [
    (("--key", "entr"), "did you mean 'enter'"),
    (("--hex", "1b 5"), "odd number of digits"),
    (("--hex", "zz"), "no hex digit"),
    (("--file", "nowhere"), "can't be read: No such file"),
    (("--file", "."), "can't be read"),
    (("x", "--pace-ms", "-1"), "at least 0"),
    (("x", "--line-pace-ms", "-1"), "at least 0"),
    (("x", "--expect", "we(a"), "position 4"),
    (("x", "--timeout", "3"), "--timeout is for --expect"),
    (("x", "--hex", "41"), "both say what to send"),
    (("--key", "esc", "--file", "y"), "both say what to send"),
    (("x", "--no-newline", "--eol", "cr"), "contradict"),
    (("x\ty", "--verify-echo"), "control character"),
    (("", "--no-newline"), "nothing to send"),
]


def test_a_text_that_was_forgotten_is_not_taken_for_the_targets_name(labd: BenchInAFolder):
    on(labd, "loop")
    for words in (("send", "dut"), ("send", "console"), ("expect", "dut", "--timeout", "1")):
        told = labd("serial", *words, check=2).stderr.decode()
        assert f"'{words[1]}' is the name of" in told and "with -t dut, it is the " in told
    assert sent(labd) == []
    labd("serial", "send", "-t", "dut", "dut")
    assert sent(labd) == [b"dut\r"]


def test_what_can_not_be_meant_is_exit_2_and_nothing_is_sent(labd: BenchInAFolder):
    on(labd, "loop")
    for words, says in WRONG:
        assert says in labd("serial", "send", "dut", *words, check=2).stderr.decode(), words
    assert sent(labd) == []


def test_send_expect_sees_the_answer_and_not_the_echo(board: BenchInAFolder):
    board("serial", "watch", "dut")
    board("serial", "expect", "dut", "login: ", "--since", "0")
    assert "root@" in board.out("serial", "send", "dut", "root", "--expect", "[#] ")
    found = board.json("serial", "send", "dut", "echo step-$?", "--expect", r"step-\d+")
    assert found["text"] == "step-0" and found["sent"]["accepted"] == 13
    missed = board("serial", "send", "dut", "echo other", "--expect", "never", "--timeout", "0.5", check=5)
    assert b"other" in missed.stderr


def test_a_break_reaches_a_port_that_has_one_and_is_exit_7_elsewhere(board: BenchInAFolder):
    board("serial", "watch", "dut")
    assert b"a PTY has no break" in board("serial", "break", "dut", check=7).stderr
    board("serial", "stop", "dut")
    with rfc2217(banner=b"hello\r\n") as far:
        board.lab.write_text(
            f'[targets.dut]\n[[targets.dut.serial]]\nname = "console"\ndevice = "rfc2217://127.0.0.1:{far.port}"\n'
        )
        board("serial", "watch", "dut")
        assert board.out("serial", "break", "dut", "--ms", "60") == "dut.console: break for 60 ms\n"
        board("serial", "stop", "dut")


def test_a_console_that_loses_input_gets_every_byte_by_its_echo(labd: BenchInAFolder):
    on(labd, "lossy")
    labd("serial", "expect", "dut", "# ", "--since", "0")
    text = "echo the quick brown fox jumps over the lazy dog and 0123456789"
    answer = labd.json("serial", "send", "dut", text, "--verify-echo")
    labd("serial", "expect", "dut", "lazy dog and 0123456789\n", "--since", str(answer["seq"]), "--literal")
    assert answer["echo"]["confirmed"] == len(text)


def test_a_second_writer_is_refused_or_waits_or_takes_over(labd: BenchInAFolder):
    on(labd, "loop")
    slow = labd.start("serial", "send", "dut", "x" * 100, "--pace-ms", "100")

    def holder() -> bool:
        rows = labd.json("serial", "show", "dut")
        return rows[0].get("writer") is not None

    until("the paced send to hold the console", holder)
    refused = labd("serial", "send", "dut", "me", "--wait", "0", check=6).stderr.decode()
    assert f"is written to by root (cli, pid {slow.pid}): a paced send, until" in refused.replace(
        labd.json("serial", "show", "dut")[0]["writer"]["who"]["user"], "root"
    )
    assert b"x" * 5 not in sent(labd) and labd("serial", "log", "dut").returncode == 0
    taken = labd.json("serial", "send", "dut", "mine", "--take")
    assert taken["accepted"] == 5
    _, err = slow.communicate(timeout=30)
    assert slow.returncode == 6 and b"taken over by" in err
    assert labd.json("serial", "show", "dut")[0]["writer"] is None


def test_a_second_writer_that_waits_gets_its_turn(labd: BenchInAFolder):
    on(labd, "loop")
    slow = labd.start("serial", "send", "dut", "x" * 20, "--pace-ms", "40")
    until("the paced send to hold the console", lambda: labd.json("serial", "show", "dut")[0].get("writer"))
    labd("serial", "send", "dut", "me", "--wait", "30")
    assert slow.wait(30) == 0
    slow.communicate()
    assert b"".join(sent(labd)) == b"x" * 20 + b"\rme\r"
