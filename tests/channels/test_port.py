"""One tty: opened raw, exclusive and gently, refused with the reason and the command that helps, closed for good."""

import errno
import fcntl
import os
import subprocess
import sys
import termios
import tty
from collections.abc import Iterator
from typing import Any

import pytest

from labd.channels import port as port_module
from labd.channels import raw
from labd.channels.port import Port, Settings, change_settings, close_port, open_port
from labd.errors import Busy, Unreachable
from tests.channels.rig import end, process


@pytest.fixture
def pty() -> Iterator[tuple[int, str]]:
    """A master, and the name of a slave as cooked as the kernel makes it."""
    master, slave = os.openpty()
    name = os.ttyname(slave)
    yield master, name
    os.close(slave)
    os.close(master)


@pytest.fixture
def opened(pty: tuple[int, str]) -> Iterator[Port]:
    port = open_port(pty[1], Settings(), label="pico.console")
    yield port
    close_port(port, hung_up=True)


def test_an_open_port_is_raw_with_vmin_1_and_without_hupcl(opened: Port) -> None:
    assert raw.faults(opened.fd, xonxoff=False) == []
    iflag, oflag, cflag, lflag, _, _, cc = termios.tcgetattr(opened.fd)
    assert not iflag & (termios.IXON | termios.IXOFF | termios.ICRNL | termios.BRKINT | termios.ISTRIP)
    assert not oflag & termios.OPOST
    assert not cflag & termios.HUPCL
    assert not lflag & (termios.ICANON | termios.ECHO | termios.ISIG)
    assert cc[termios.VMIN] in (1, b"\x01")
    with pytest.raises(BlockingIOError):  # and not b"", which could mean a hang-up
        os.read(opened.fd, 1)


def test_software_flow_control_only_by_request(pty: tuple[int, str]) -> None:
    port = open_port(pty[1], Settings(flow="xonxoff"), label="pico.console")
    assert termios.tcgetattr(port.fd)[0] & termios.IXON
    change_settings(port, Settings(flow="none"), label="pico.console")
    assert not termios.tcgetattr(port.fd)[0] & termios.IXON
    close_port(port, hung_up=True)


def test_a_driver_that_ignores_raw_mode_is_refused(pty: tuple[int, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw, "make_raw", lambda fd, xonxoff: None)  # as if tcsetattr had changed only a part
    with pytest.raises(Unreachable, match="would not take raw mode: VMIN stayed"):
        open_port(pty[1], Settings(), label="pico.console")


def test_a_pty_takes_a_rate_that_no_uart_table_has_and_says_that_it_means_nothing(pty: tuple[int, str]) -> None:
    port = open_port(pty[1], Settings(baud=1_234_567), label="pico.console")
    assert port.kind == "pty"
    assert "not a UART" in port.notes[0]
    assert port.settings.baud == 1_234_567
    close_port(port, hung_up=True)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_terminal_that_has_no_line_rate_opens_all_the_same_and_says_so(
    pty: tuple[int, str], monkeypatch: pytest.MonkeyPatch, wrapped: bool
) -> None:
    import serial.serialposix

    def no_rate(self: object, baud: int) -> None:  # as IOSSIOSPEED on a PTY of macOS, wrapped or not
        if wrapped:
            try:
                raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
            except OSError as error:
                raise ValueError(f"Failed to set custom baud rate ({baud}): {error}") from None
        raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))

    monkeypatch.setattr(serial.serialposix.PlatformSpecific, "_set_special_baudrate", no_rate)
    monkeypatch.setattr(port_module.current(), "is_pty", lambda path: False)  # so that the rate is really asked for
    port = open_port(pty[1], Settings(baud=31_337), label="pico.console")
    assert "this port has no line rate: 31337 baud was not set" in port.notes
    os.write(pty[0], b"all the same")
    assert os.read(port.fd, 100) == b"all the same"
    close_port(port, hung_up=True)


def test_a_uart_that_does_not_take_a_rate_is_refused(pty: tuple[int, str], monkeypatch: pytest.MonkeyPatch) -> None:
    import serial.serialposix

    def refuses(self: object, baud: int) -> None:
        raise ValueError(f"Failed to set custom baud rate ({baud}): [Errno 22] Invalid argument")

    monkeypatch.setattr(serial.serialposix.PlatformSpecific, "_set_special_baudrate", refuses)
    monkeypatch.setattr(port_module.current(), "is_pty", lambda path: False)
    with pytest.raises(Unreachable, match="Failed to set custom baud rate"):
        open_port(pty[1], Settings(baud=31_337), label="pico.console")


def test_flock_and_tiocexcl_keep_others_out_and_are_gone_after_the_close(pty: tuple[int, str]) -> None:
    _, name = pty
    os.chmod(name, 0o666)
    port = open_port(name, Settings(), label="pico.console")
    other = os.open(name, os.O_RDWR | os.O_NOCTTY) if os.getuid() == 0 else None
    if other is not None:
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)
    assert _open_as_nobody(name) == "EBUSY"
    close_port(port, hung_up=True)
    assert _open_as_nobody(name) == "opened"  # although the slave of the fixture keeps the tty alive


def _open_as_nobody(name: str) -> str:
    code = """if 1:
        import errno, os, sys
        if os.getuid() == 0:
            os.setgid(65534); os.setuid(65534)
        try:
            os.close(os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)); print("opened")
        except OSError as error:
            print(errno.errorcode[error.errno])
    """
    return subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True).stdout.strip()


def test_a_flock_of_another_process_is_busy_and_names_it(pty: tuple[int, str], monkeypatch: pytest.MonkeyPatch) -> None:
    holder = process(
        "import fcntl,os,sys; fd=os.open(sys.argv[1], os.O_RDWR|os.O_NOCTTY); fcntl.flock(fd, fcntl.LOCK_EX);"
        "print('ready', flush=True); sys.stdin.read()",
        pty[1],
    )
    monkeypatch.setattr(port_module, "_free", lambda *args, **more: None)  # as if it came right after the look
    try:
        with pytest.raises(Busy, match=f"pid {holder.pid}"):
            open_port(pty[1], Settings(), label="pico.console")
    finally:
        end(holder)


def test_a_simulator_that_keeps_its_own_slave_open_is_no_rival(pty: tuple[int, str]) -> None:
    code = """if 1:
        import os, sys
        master, slave = os.openpty()
        print("ready", flush=True); print(os.ttyname(slave), flush=True); sys.stdin.read()
    """
    simulator = process(code)
    try:
        assert simulator.stdout is not None
        name = simulator.stdout.readline().decode().strip()
        close_port(open_port(name, Settings(), label="pico.console"), hung_up=True)
    finally:
        end(simulator)


@pytest.mark.skipif(os.getuid() != 0, reason="needs to become another user")
def test_a_forbidden_port_names_owner_mode_and_the_group_to_join(pty: tuple[int, str]) -> None:
    os.chown(pty[1], 0, _a_group())
    os.chmod(pty[1], 0o660)
    code = """if 1:
        import grp, os, pwd, sys
        from labd.channels.port import Settings, open_port
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
        try:
            open_port(sys.argv[1], Settings(), label="pico.console")
        except Exception as error:
            print(type(error).__name__, error.exit_code, error.message, error.hint, sep="|")
    """
    done = subprocess.run([sys.executable, "-c", code, pty[1]], capture_output=True, text=True)
    name, code_, message, hint = done.stdout.strip().split("|")
    assert (name, code_) == ("Forbidden", "7")
    assert "belongs to root:" in message and "mode 0660" in message
    assert hint.startswith("sudo usermod -aG ") and "log in again" in hint


def _a_group() -> int:
    import grp

    return next(group.gr_gid for group in grp.getgrall() if group.gr_gid not in (0, 65534))


def test_a_port_without_modem_lines_opens_all_the_same(pty: tuple[int, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port_module.current(), "is_pty", lambda path: False)
    port = open_port(pty[1], Settings(dtr=True, rts=False), label="pico.console")
    assert port.kind == "tty"
    assert "no modem lines (DTR, RTS) on this port" in port.notes
    close_port(port, hung_up=True)


def test_a_driver_that_fails_on_modem_lines_otherwise_is_reported(
    pty: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _count_ioctls(monkeypatch, {termios.TIOCMBIS: errno.EIO})
    with pytest.raises(Unreachable, match="could not be opened"):
        open_port(pty[1], Settings(dtr=True), label="pico.console")


def test_modem_lines_are_left_alone_unless_the_lab_says_something(
    pty: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = _count_ioctls(monkeypatch, {})
    close_port(open_port(pty[1], Settings(), label="pico.console"), hung_up=True)
    assert not {termios.TIOCMBIS, termios.TIOCMBIC} & set(seen)
    close_port(open_port(pty[1], Settings.of({"power_button": True}), label="pico.console"), hung_up=True)
    assert termios.TIOCMBIC in seen and termios.TIOCMBIS not in seen


def _count_ioctls(monkeypatch: pytest.MonkeyPatch, failing: dict[int, int]) -> list[int]:
    """Record every ioctl of pyserial; those in `failing` fail with that errno, modem lines else succeed."""
    import serial.serialposix

    seen: list[int] = []
    real = fcntl.ioctl

    def ioctl(fd: int, request: int, *args: Any) -> Any:
        seen.append(request)
        if request in failing:
            raise OSError(failing[request], os.strerror(failing[request]))
        if request in (termios.TIOCMBIS, termios.TIOCMBIC):
            return b""
        return real(fd, request, *args)

    monkeypatch.setattr(serial.serialposix.fcntl, "ioctl", ioctl)
    return seen


def test_an_adapter_that_lost_its_name_is_found_under_the_new_one(
    pty: tuple[int, str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = {"vid": "0403", "pid": "6001", "serial": "A1", "interface": "00", "topology": "1-1"}
    monkeypatch.setattr(port_module.current(), "find", lambda wanted: pty[1] if wanted == mine else None)
    monkeypatch.setattr(port_module.current(), "identity", lambda node: mine if node == pty[1] else None)
    port = open_port("/dev/ttyUSB-gone", Settings(), label="pico.console", expected=mine)
    assert (port.node, port.identity) == (pty[1], mine)
    close_port(port, hung_up=True)


def test_another_adapter_under_the_old_name_is_refused(pty: tuple[int, str], monkeypatch: pytest.MonkeyPatch) -> None:
    mine = {"vid": "0403", "pid": "6001", "serial": "A1", "interface": "00", "topology": "1-1", "product": "FT232R"}
    monkeypatch.setattr(port_module.current(), "find", lambda wanted: None)
    monkeypatch.setattr(port_module.current(), "identity", lambda node: {**mine, "serial": "B2"})
    with pytest.raises(Unreachable, match="is another adapter now; FT232R serial A1 has not come back"):
        open_port(pty[1], Settings(), label="pico.console", expected=mine)


def test_one_of_two_like_adapters_is_not_taken_for_the_other_by_their_common_link(
    pty: tuple[int, str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_id = tmp_path / "usb-1a86_USB_Serial-if00-port0"
    by_id.symlink_to(pty[1])  # where udev left it when the other one was plugged in last
    mine = {"vid": "1a86", "pid": "7523", "serial": None, "interface": "00", "topology": "1-2", "twins": True}
    monkeypatch.setattr(port_module.current(), "identity", lambda node: {**mine, "topology": "1-3"})
    monkeypatch.setattr(port_module.current(), "find", lambda wanted: None)
    with pytest.raises(Unreachable, match=r"another adapter now; USB 1a86:7523 at 1-2 has not come back"):
        open_port(str(by_id), Settings(), label="pico.console", expected=mine)
    alone = {**mine, "twins": False}  # no twin was ever seen: it may have come back in another socket
    close_port(open_port(str(by_id), Settings(), label="pico.console", expected=alone), hung_up=True)


def test_a_name_that_two_adapters_share_is_said_at_the_open(
    pty: tuple[int, str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = {"node": pty[1], "by_id": "/dev/serial/by-id/x", "by_path": "/dev/serial/by-path/y", "twins": ["/dev/t1"]}
    who = {"vid": "1a86", "pid": "7523", "serial": None, "interface": "00", "topology": "1-2"}
    monkeypatch.setattr(port_module.current(), "is_pty", lambda path: False)
    monkeypatch.setattr(port_module.current(), "identity", lambda node: dict(who))
    monkeypatch.setattr(port_module.current(), "serial_ports", lambda: [listed])
    port = open_port(pty[1], Settings(), label="pico.console")
    assert port.identity == {**who, "twins": True}
    assert any("name it by its socket: /dev/serial/by-path/y" in note for note in port.notes)
    close_port(port, hung_up=True)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.write_text("x"), "is not a serial port"),
        (lambda path: path.mkdir(), "is not a serial port"),
        (lambda path: None, "is not there"),
        (lambda path: path.symlink_to("/dev/null"), "is not a serial port that can be set"),
    ],
)
def test_what_is_no_tty_is_said_to_be_none(tmp_path: Any, make: Any, says: str) -> None:
    path = tmp_path / "device"
    make(path)
    with pytest.raises(Unreachable, match=says):
        open_port(str(path), Settings(), label="pico.console")


def test_closing_twice_or_after_a_hang_up_raises_nothing(pty: tuple[int, str]) -> None:
    port = open_port(pty[1], Settings(), label="pico.console")
    close_port(port, hung_up=False)
    master, slave = os.openpty()
    tty.setraw(slave)
    gone = open_port(os.ttyname(slave), Settings(), label="pico.console")
    os.close(master)
    close_port(gone, hung_up=True)
    os.close(slave)


def test_settings_on_a_closed_port_are_refused_and_touch_no_descriptor(pty: tuple[int, str]) -> None:
    port = open_port(pty[1], Settings(), label="pico.console")
    close_port(port, hung_up=True)
    with pytest.raises(Unreachable, match="went down"):
        change_settings(port, Settings(baud=9600), label="pico.console")


def test_a_node_that_waits_for_a_carrier_is_opened_by_its_other_name(
    pty: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_module.current(), "callout", lambda path: pty[1] if path == "/dev/tty.usb1" else path)
    port = open_port("/dev/tty.usb1", Settings(), label="pico.console")
    assert port.notes[0] == f"opened as {pty[1]}: /dev/tty.usb1 would wait for a carrier"
    close_port(port, hung_up=True)
