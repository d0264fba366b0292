"""The modem lines and the break of a tty, by ioctl. Functions of a descriptor; they block for the length of a call."""

import fcntl
import struct
import sys
import termios

_BREAK_ON, _BREAK_OFF = (0x2000747B, 0x2000747A) if sys.platform == "darwin" else (0x5427, 0x5428)

BITS = {
    "dtr": termios.TIOCM_DTR,
    "rts": termios.TIOCM_RTS,
    "cts": termios.TIOCM_CTS,
    "dsr": termios.TIOCM_DSR,
    "dcd": termios.TIOCM_CD,
    "ri": termios.TIOCM_RI,
}


def put(fd: int, wire: str, level: bool) -> None:
    """Drive `dtr`, `rts` or `break`, and no other line. Raises OSError, ENOTTY where the driver has none."""
    if wire == "break":
        fcntl.ioctl(fd, _BREAK_ON if level else _BREAK_OFF)
    else:
        fcntl.ioctl(fd, termios.TIOCMBIS if level else termios.TIOCMBIC, struct.pack("I", BITS[wire]))


def levels(fd: int) -> dict[str, bool | None]:
    """All six lines as the driver has them now. Raises OSError."""
    word = struct.unpack("I", fcntl.ioctl(fd, termios.TIOCMGET, b"\0\0\0\0"))[0]
    return {wire: bool(word & bit) for wire, bit in BITS.items()}
