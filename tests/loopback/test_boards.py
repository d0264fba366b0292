"""The boards that come with the package, talked to as a person would."""

from __future__ import annotations

import re
from collections.abc import Callable

from .conftest import Play, Terminal

Open = Callable[[str], Terminal]


def test_linux_boots_logs_in_answers_and_reboots(play: Play, terminal: Open) -> None:
    player = play("linux-login", "--set", "nonce=k7f3", "--set", "line_ms=0", "--baud", "0")
    port = terminal(player.tty)
    boot = port.expect(rb"loopback login: ")
    assert len(re.findall(rb"\n\[ *\d+\.\d{6}\] ", boot)) >= 60
    assert b"board.id=k7f3" in boot
    port.send(b"root\r")
    assert port.expect(rb"# ").startswith(b"root\r\n")
    port.send(b"uname -a\r")
    assert re.search(rb"^uname -a\r\nLinux loopback \S+ #1 SMP .* aarch64 GNU/Linux\r\n", port.expect(rb"# "))
    port.send(b"cat /proc/version\r")
    assert port.expect(rb"# ").startswith(b"cat /proc/version\r\nLinux version ")
    port.send(b"cat /etc/board-id\r")
    port.expect(rb"\r\nk7f3\r\nroot@loopback:~# ")
    port.send(b"nosuch thing\r")
    port.expect(rb"\r\n-sh: nosuch: not found\r\nroot@loopback:~# ")
    port.send(b"dmesg\r")
    assert port.expect(rb":~# ").count(b"\r\n") >= 61
    port.send(b"exit\r")
    port.expect(rb"logout\r\n.*login: ")
    port.send(b"root\r")
    port.expect(rb":~# ")
    port.send(b"reboot\r")
    port.expect(rb"reboot: Restarting system\r\n.*Booting Linux.*login: ")
    assert player.stats()["boots"] == 2


def test_linux_asks_others_for_a_password_without_echo(play: Play, terminal: Open) -> None:
    player = play("linux-login", "--set", "line_ms=0", "--baud", "0")
    port = terminal(player.tty)
    port.expect(rb"login: ")
    port.send(b"lab\r")
    port.expect(rb"Password: ")
    port.send(b"wrong\r")
    assert b"wrong" not in port.expect(rb"Login incorrect\r\n.*login: ")
    port.send(b"lab\r")
    port.expect(rb"Password: ")
    port.send(b"lab\r")
    port.expect(rb"lab@loopback:~# ")


def test_the_shell_keeps_statuses_sequences_quotes_and_variables(play: Play, terminal: Open) -> None:
    player = play("linux-login", "--set", "line_ms=0", "--baud", "0")
    port = terminal(player.tty)
    port.expect(rb"login: ")
    port.send(b"root\r")
    port.expect(rb":~# ")
    for command, answer in {
        b"false; echo rc=$?": b"rc=1\r\n",
        b"true && echo yes || echo no": b"yes\r\n",
        b"nosuch || echo rc=$?": b"-sh: nosuch: not found\r\nrc=127\r\n",
        b"echo 'a;  b' \"c  $?\"": b"a;  b c  0\r\n",
        b"export X=5": b"",
        b"echo $X${X}": b"55\r\n",
        b"cat /none; echo $?": b"cat: can't open '/none': No such file or directory\r\n1\r\n",
        b"dmesg | tail": b"-sh: this board's shell has no pipes and no redirection\r\n",
    }.items():
        port.send(command + b"\r")
        assert port.expect(rb"root@loopback:~# ") == command + b"\r\n" + answer + b"root@loopback:~# "


def test_a_key_stops_the_countdown_and_the_prompt_answers(play: Play, terminal: Open) -> None:
    player = play("uboot", "--set", "nonce=n0n", "--set", "bootdelay=60", "--baud", "0")
    port = terminal(player.tty)
    assert b"Board: n0n\r\n" in port.expect(rb"stop autoboot: +\x08\x08\x0860 ")
    port.send(b" ")
    port.expect(rb"\r\n=> $")
    for command, answer in {
        b"version": rb"U-Boot 20\d\d\.\d\d ",
        b"help": rb"printenv  - print environment variables\r\n",
        b"printenv bootdelay": rb"\r\nbootdelay=60\r\n",
        b"printenv board_id": rb"\r\nboard_id=n0n\r\n",
        b"printenv nosuch": rb'## Error: "nosuch" not defined\r\n',
        b"setenv foo bar baz": rb"foo bar baz\r\n",
        b"printenv foo": rb"\r\nfoo=bar baz\r\n",
        b"setenv foo": rb"setenv foo\r\n",
        b"print foo": rb"not defined",
        b"nosuch": rb"Unknown command 'nosuch' - try 'help'\r\n",
        b"setenv bootdelay 1": rb"",
        b"setenv lost yes": rb"",
    }.items():
        port.send(command + b"\r")
        assert re.search(answer, port.expect(rb"=> "))
    port.send(b"printenv\r")
    assert b"\r\nlost=yes\r\n" in port.expect(rb"\r\n\r\nEnvironment size: .*=> ")


def test_uboot_forgets_at_reset_what_was_not_saved_and_boots_linux(play: Play, terminal: Open) -> None:
    player = play("uboot", "--set", "bootdelay=60", "--set", "line_ms=0", "--baud", "0")
    port = terminal(player.tty)
    port.expect(rb"stop autoboot: ")
    port.send(b"x")
    port.expect(rb"=> ")
    port.send(b"setenv bootdelay 0\rsaveenv\rsetenv bootdelay 9\rreset\r")
    port.expect(rb"resetting \.\.\.\r\n.*U-Boot SPL.*autoboot: [ \x08]*0 ")
    port.expect(rb"Starting kernel \.\.\.\r\n.*Booting Linux.*login: ")
    stats = player.stats()
    assert (stats["boots"], stats["state"]) == (2, "login")
    assert [entry["state"] for entry in player.records("state") if entry["boots"] == 2] == [
        "autoboot",
        "load",
        "kernel",
        "login",
    ]


def test_the_bmc_lists_sensors_and_remembers_power(play: Play, terminal: Open) -> None:
    player = play("bmc", "--set", "nonce=SN-42", "--baud", "0")
    port = terminal(player.tty)
    banner = port.expect(rb"bmc> ")
    assert b"Board serial: SN-42\r\n" in banner and banner.count(b"\r\n") > 20
    port.send(b"sensor list\r")
    assert port.expect(rb"bmc> ").count(b"| ok\r\n") == 10
    port.send(b"power status\r")
    port.expect(rb"Host power is on\r\nbmc> ")
    port.send(b"power off\r")
    port.expect(rb"Host power: off\r\nbmc> ")
    port.send(b"power status\r")
    port.expect(rb"Host power is off\r\nbmc> ")
    port.send(b"version\r")
    port.expect(rb"BMC firmware .*Board serial: SN-42\r\nbmc> ")


def test_the_bmc_speaks_at_9600_baud(play: Play, terminal: Open) -> None:
    player = play("bmc")
    port = terminal(player.tty)
    player.until("a third of the banner was carried", lambda stats: stats["to_host"]["carried"] > 200)
    first = player.stats()
    later = player.until("more was carried", lambda stats: stats["uptime_s"] > first["uptime_s"] + 0.3)
    rate = (later["to_host"]["carried"] - first["to_host"]["carried"]) / (later["uptime_s"] - first["uptime_s"])
    assert 850 < rate < 1000
    port.close()


def test_a_flood_is_numbered_without_gaps_and_obeys(play: Play, terminal: Open) -> None:
    player = play("flood", "--set", "rate=0")
    port = terminal(player.tty)
    port.expect(rb"flood board none\r\n")
    got = port.take(1_000_000)
    port.send(b"stop\r")
    got += port.expect(rb"flood: stopped, sent=\d+\r\n")
    numbers = [int(number) for number in re.findall(rb"kernel: flood (\d{8}) usb", got)]
    assert numbers == list(range(1, len(numbers) + 1)), "a number is missing or doubled"
    assert got.endswith(b"sent=%d\r\n" % len(numbers))
    port.send(b"stats\r")
    port.expect(rb"flood: sent=%d rate=full speed uptime=[\d.]+ board=none\r\n" % len(numbers))
    port.send(b"rate 200\r")
    port.expect(rb"flood: rate=200\r\n")
    port.send(b"start\r")
    port.expect(rb"kernel: flood %08d usb" % (len(numbers) + 1))
    stats = player.stats()
    more = player.until("half a second passed", lambda now: now["uptime_s"] > stats["uptime_s"] + 0.5)
    rate = (more["flood"]["sent"] - stats["flood"]["sent"]) / (more["uptime_s"] - stats["uptime_s"])
    assert 150 < rate < 250
