"""A program that has a serial port open and lets go of it when it is properly asked. A copy of it runs in a trial.

    meter TTY SOCKET            hold TTY; one JSON line when it is open; ends with its standard input
    meter --ask SOCKET PID      what `letgo PID` does: have the holder with that process id close its port

Exit codes of the holder: 0 it was asked and has let go, 3 it never was. A signal ends it as any program. Stands alone:
standard library only, started without site-packages.
"""

import fcntl
import os
import select
import socket
import sys
import termios


def hold(tty: str, place: str) -> int:
    """Hold the port until somebody asks; then stay without it until standard input ends."""
    port = os.open(tty, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    fcntl.ioctl(port, termios.TIOCEXCL)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(place)
        door.listen()
        os.write(1, b'{"ready": true, "ok": true}\n')
        while True:
            ready, _, _ = select.select([0, door, *([port] if port >= 0 else [])], [], [])
            if 0 in ready and not os.read(0, 4096):
                return 0 if port < 0 else 3
            if port in ready:
                os.read(port, 4096)
            if door in ready:
                visitor, _ = door.accept()
                with visitor:
                    visitor.settimeout(5)
                    right = visitor.recv(64).strip() == str(os.getpid()).encode()
                    if right and port >= 0:
                        os.close(port)
                        port = -1
                    visitor.sendall(b"let go\n" if right else b"no such holder\n")


def ask(place: str, pid: str) -> int:
    """Ask the holder."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(10)
        line.connect(place)
        line.sendall(pid.encode())
        answer = line.recv(64).decode()
    sys.stdout.write(answer)
    return 0 if answer == "let go\n" else 1


def main(words: list[str]) -> int:
    """The command line."""
    if len(words) == 3 and words[0] == "--ask":
        return ask(words[1], words[2])
    if len(words) == 2:
        return hold(*words)
    sys.stderr.write("usage: letgo PID\n")
    return 2


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(1) from error
