"""Terminal modes, exactly: raw, 8-bit clean, VMIN=1, HUPCL off; set after pyserial, and read back.

pyserial leaves BRKINT, HUPCL and VMIN=0 behind. VMIN=0 makes an empty read ambiguous (no data, or hung up?), HUPCL
drops DTR at every close and so resets boards, BRKINT turns a break into a flush. And tcsetattr succeeds when any one
change did, so only reading back tells. Functions of a descriptor; they block, for the length of an ioctl.
"""

import termios

_I_OFF = (
    termios.IGNBRK
    | termios.BRKINT
    | termios.PARMRK
    | termios.INPCK
    | termios.ISTRIP
    | termios.INLCR
    | termios.IGNCR
    | termios.ICRNL
)
_I_FLOW = termios.IXON | termios.IXOFF | termios.IXANY
_L_OFF = termios.ICANON | termios.ECHO | termios.ECHONL | termios.ISIG | termios.IEXTEN


def make_raw(fd: int, *, xonxoff: bool) -> None:
    """Complete what pyserial set. Raises termios.error when `fd` is no terminal."""
    iflag, oflag, cflag, lflag, ispeed, ospeed, cc = termios.tcgetattr(fd)
    iflag &= ~(_I_OFF | (termios.IXANY if xonxoff else _I_FLOW))
    oflag &= ~termios.OPOST
    lflag &= ~_L_OFF
    cflag = (cflag | termios.CLOCAL | termios.CREAD) & ~termios.HUPCL
    cc[termios.VMIN], cc[termios.VTIME] = 1, 0
    termios.tcsetattr(fd, termios.TCSANOW, [iflag, oflag, cflag, lflag, ispeed, ospeed, cc])


def faults(fd: int, *, xonxoff: bool) -> list[str]:
    """What of the terminal's modes would change, hold back or hide bytes, by their termios names. Empty: raw."""
    iflag, oflag, cflag, lflag, _, _, cc = termios.tcgetattr(fd)
    wrong = [
        name
        for name in ("IGNBRK", "BRKINT", "PARMRK", "INPCK", "ISTRIP", "INLCR", "IGNCR", "ICRNL")
        if iflag & getattr(termios, name)
    ]
    wrong += [name for name in ("IXON", "IXOFF", "IXANY") if not xonxoff and iflag & getattr(termios, name)]
    wrong += ["OPOST"] if oflag & termios.OPOST else []
    wrong += [name for name in ("ICANON", "ECHO", "ECHONL", "ISIG", "IEXTEN") if lflag & getattr(termios, name)]
    wrong += ["HUPCL"] if cflag & termios.HUPCL else []
    if _number(cc[termios.VMIN]) != 1:
        wrong.append("VMIN")
    if _number(cc[termios.VTIME]) != 0:
        wrong.append("VTIME")
    return wrong


def speed(fd: int) -> int | None:
    """The output speed that the driver says it has, in baud; None when it isn't one of the named speeds."""
    code = termios.tcgetattr(fd)[5]
    for name in dir(termios):
        if name[0] == "B" and name[1:].isdigit() and getattr(termios, name) == code:
            return int(name[1:])
    return None


def _number(value: object) -> int:
    """A control character as tcgetattr gives it: a byte, or an integer for VMIN and VTIME outside canonical mode."""
    return value[0] if isinstance(value, bytes) else int(str(value))
