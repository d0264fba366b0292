"""Shuts a program in, then becomes it: what a board with a real shell runs behind its console.

    python -I -S confine.py HOME [--free] -- /PATH/OF/PROGRAM ARG…

Its standard input is the terminal that the program gets as its controlling one. On Linux the kernel then holds the
program and all that it starts (Landlock, seccomp; neither needs a privilege, neither can be undone):

- it may read and run what is under /usr, /bin, /sbin, /lib* and where this Python is installed, read a few files that
  programs need (`READABLE`), and write in HOME and to the harmless devices; every other file is as good as not there,
  other processes' too;
- it has no sockets of any kind, so no network, no daemon of the machine and not the bench that watches the board;
- it holds no privilege, whoever started it (a root's shell may not reboot the machine), and gains none;
- it can trace no process, and signal none but its own (Linux 6.12; before that only the user's rights stop it);
- it ends when its starter does.

`--free` leaves all this out, for people who said `--allow-programs`. Where the kernel offers none of it (macOS, old
Linux) `why_not()` says so and `loopback.program` refuses the board unless that was said.

Runs as a script before the program and imports nothing of the package; `why_not` is for `loopback.program`.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import resource
import struct
import sys
import termios

PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
READABLE = (
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime"),
    *("/etc/terminfo", "/etc/alternatives", "/proc/version", "/proc/uptime", "/proc/cpuinfo", "/proc/meminfo"),
    *("/proc/loadavg", "/dev/urandom", "/dev/random"),
)
WRITABLE = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")
FILE_BYTES = 64 << 20

# Landlock: rights by bit, and since which version of the interface each group is known.
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: TRUNCATE, 5: IOCTL_DEV}
RIGHTS_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
LEAST = 3  # without truncation in it, any file that can be named could be emptied

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 22, 24, 38
CAPABILITIES = 64
# machine: (audit architecture, forbidden system calls: socket, socketpair, ptrace, process_vm_readv, …writev, io_uring)
MACHINES = {
    "x86_64": (0xC000003E, (41, 53, 101, 310, 311, 425, 426, 427)),
    "aarch64": (0xC00000B7, (198, 199, 117, 270, 271, 425, 426, 427)),
}


class CannotConfineError(Exception):
    """The kernel does not do what is asked of it."""


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _landlock_version() -> int:
    return int(_libc().syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1)))


def why_not() -> str | None:
    """Why programs cannot be shut in on this machine; None when they can."""
    if not sys.platform.startswith("linux"):
        return f"{sys.platform} has no Landlock"
    if platform.machine() not in MACHINES:
        return f"no table of system calls for {platform.machine()}"
    if _landlock_version() < LEAST:
        return "this kernel has no Landlock, or an early one"
    return None


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise CannotConfineError(f"{what}: {os.strerror(number)}")
    return result


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        is_dir = os.path.isdir(path)
        rule = struct.pack("=Qi", rights if is_dir else rights & RIGHTS_OF_FILES, fd)
        _check(libc.syscall(ADD_RULE, ruleset, 1, rule, 0), f"Landlock rule for {path}")
    finally:
        os.close(fd)


def _landlock(home: str) -> None:
    libc, version = _libc(), _landlock_version()
    every = 0
    for since, rights in RIGHTS.items():
        every |= rights if version >= since else 0
    network = 3 if version >= 4 else 0
    scoped = 3 if version >= 6 else 0
    fields = [every] + ([network] if version >= 4 else []) + ([scoped] if version >= 6 else [])
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = _check(libc.syscall(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0), "Landlock")
    for path in (*PROGRAMS, sys.base_prefix):
        _allow(libc, ruleset, path, EXECUTE | READ_FILE | READ_DIR)
    for path in READABLE:
        _allow(libc, ruleset, path, READ_FILE | READ_DIR)
    for path in WRITABLE:
        _allow(libc, ruleset, path, (READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV) & every)
    _allow(libc, ruleset, home, every)
    _check(libc.syscall(RESTRICT_SELF, ruleset, 0), "Landlock")
    os.close(ruleset)


def _seccomp() -> None:
    architecture, forbidden = MACHINES[platform.machine()]
    deny = 0x00050000 | errno.EPERM
    load, equal, at_least, ret = 0x20, 0x15, 0x35, 0x06
    program = [(load, 0, 0, 4), (equal, 1, 0, architecture), (ret, 0, 0, deny), (load, 0, 0, 0)]
    program.append((at_least, len(forbidden) + 1, 0, 0x40000000))  # the x32 calls of x86_64
    for index, number in enumerate(forbidden):
        program.append((equal, len(forbidden) - index, 0, number))
    program += [(ret, 0, 0, 0x7FFF0000), (ret, 0, 0, deny)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    header = struct.pack("@HP", len(program), ctypes.addressof(code))
    _check(_libc().prctl(PR_SET_SECCOMP, 2, header, 0, 0), "seccomp")


def _prctl(option: int, value: int, what: str) -> None:
    unused = ctypes.c_ulong(0)
    _check(_libc().prctl(option, ctypes.c_ulong(value), unused, unused, unused), what)


def main(argv: list[str]) -> int:
    """Become the program. Returns only when that failed, with the code to exit with."""
    home, *rest = argv
    free = rest[0] == "--free"
    program = rest[rest.index("--") + 1 :]
    try:
        os.chdir(home)
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if sys.platform.startswith("linux"):
            _prctl(PR_SET_PDEATHSIG, 9, "death signal")
        if not free:
            resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
            for capability in range(CAPABILITIES):  # fails where there are none to lose
                _libc().prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), *[ctypes.c_ulong(0)] * 3)
            _prctl(PR_SET_NO_NEW_PRIVS, 1, "no new privileges")
            _landlock(home)
            _seccomp()
        os.execv(program[0], program)  # noqa: TID251 — the bench's rule; a board is a program of its own
    except (OSError, CannotConfineError) as error:
        sys.stderr.write(f"{program[0]}: {error}\r\n")
        return 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
