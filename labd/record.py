"""The argv record: two JSON lines for every passage through the shim, one when it starts and one when it ends.

Written to $LABD_ARGV_LOG, exactly, where that is set (no record, no passage), and with secrets blanked to
`argv.jsonl` in the state directory, as far as that can be written. A start without an end is a passage that was
killed. One write(2) with O_APPEND a line, so that writers don't mix.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock  # threading costs as much as the rest of the start

from labd import paths
from labd.errors import LabdError
from labd.jsonlight import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call

#: Bytes of stdout and of stderr that the end record keeps.
HEAD_BYTES = 512

#: The bench's own record is put aside at this size (bytes); one older file is kept.
OWN_LOG_BYTES = 4 << 20

_serial = 0


class Passage:
    """One call's record. `start` once it is decided, `end` exactly once after that."""

    def __init__(self, call: Call) -> None:
        global _serial
        _serial += 1
        self.call = call
        self.id = f"{call.caller.get('pid', os.getpid())}-{time.monotonic_ns():x}-{_serial}"
        self.heads = {1: b"", 2: b""}
        self.started_ns = 0
        self.secret = False
        log = call.env.get("LABD_ARGV_LOG")
        self.exact = paths.expand(log, call.env, call.cwd) if log else None

    def saw(self, fd: int, data: bytes) -> None:
        """Keep the first bytes of what went to stdout (1) or stderr (2)."""
        head = self.heads[fd]
        if len(head) < HEAD_BYTES:
            self.heads[fd] = head + data[: HEAD_BYTES - len(head)]

    def start(self, **decided: Any) -> None:
        """Write the start record. Raises LabdError when $LABD_ARGV_LOG can't be written: unrecorded means not run."""
        now = time.monotonic_ns()
        call = self.call
        caller = call.caller
        fields: dict[str, Any] = {
            "rec": "start",
            "id": self.id,
            "t": time.time(),
            "mono_ns": now,
            "argv": ["labd", *call.argv],
            "program": call.program,
            "cwd": call.cwd,
            "pid": caller.get("pid", os.getpid()),
            "ppid": caller.get("ppid"),
            "uid": caller.get("uid", os.getuid()),
            "face": call.face,
            **({"client": caller["client"]} if "client" in caller else {}),
            **decided,
        }
        self._write(fields)
        self.started_ns = now

    def end(self, code: int | None, signal: str | None = None) -> None:
        """Write the end record: exit code (None if it never had one), duration, heads of output.

        Raises LabdError when $LABD_ARGV_LOG can't be written any more. Nothing happens when no start was written.
        """
        if not self.started_ns:
            return
        fields: dict[str, Any] = {
            "rec": "end",
            "id": self.id,
            "t": time.time(),
            "code": code,
            "signal": signal,
            "duration_ms": round((time.monotonic_ns() - self.started_ns) / 1e6, 3),
            "stdout_head": _text(self.heads[1]),
            "stderr_head": _text(self.heads[2]),
            "lab_before": self.call.record.get("lab_before"),
            "lab_after": self.call.record.get("lab_after"),
        }
        self._write(fields)

    def _write(self, fields: dict[str, Any]) -> None:
        if self.exact is not None:
            try:
                _append(self.exact, dumps(fields))
            except OSError as error:
                raise LabdError(
                    f"cannot write the argv record {self.exact}: {error.strerror}; nothing runs unrecorded",
                    hint="make $LABD_ARGV_LOG writable, or unset it",
                ) from None
        try:
            _own_log.append(os.path.join(paths.state_dir(self.call.env), "argv.jsonl"), dumps(self._blanked(fields)))
        except OSError:
            pass  # the bench's own record is a convenience; a full disk must not stop the bench

    def _blanked(self, fields: dict[str, Any]) -> dict[str, Any]:
        """`fields` for our own record. What was printed can hold a secret of the words that were given."""
        if "argv" in fields:
            words = _blank(fields["argv"])
            self.secret = words is not fields["argv"]
            return {**fields, "argv": words}
        if not self.secret:
            return fields
        from labd.lab.redact import redact

        return {**fields, "stdout_head": redact(fields["stdout_head"]), "stderr_head": redact(fields["stderr_head"])}


def _append(path: str, line: str) -> None:
    """Add one line, whole or not at all. Raises OSError; a pipe that nobody reads is one, not a wait."""
    fd = _opened(path)
    try:
        _write_line(fd, line)
    finally:
        os.close(fd)


def _opened(path: str) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return os.open(path, flags, 0o600)


def _write_line(fd: int, line: str) -> None:
    data = line.encode() + b"\n"
    written = 0
    try:
        while written < len(data):
            written += os.write(fd, data[written:])
    except OSError:
        _take_back(fd, written)
        raise


def _take_back(fd: int, written: int) -> None:
    """A disk that filled up in the middle of a line: cut the half line off, so that the next one stands alone."""
    try:
        if written:
            os.ftruncate(fd, os.fstat(fd).st_size - written)
    except OSError:
        pass  # a pipe, or gone altogether


class _OwnLog:
    """The bench's own record, kept open between lines; put aside when it is long, made again when it was removed."""

    def __init__(self) -> None:
        self.path = ""
        self.fd = -1
        self.lock = allocate_lock()

    def append(self, path: str, line: str) -> None:
        """Add one line. Raises OSError."""
        with self.lock:
            if not self._is(path):
                self._open(path)
            _write_line(self.fd, line)

    def _is(self, path: str) -> bool:
        """Whether what is open is still what stands at `path`, and short enough."""
        if self.path != path or self.fd < 0:
            return False
        try:
            there, held = os.stat(path), os.fstat(self.fd)
        except OSError:
            return False
        return there.st_ino == held.st_ino and there.st_dev == held.st_dev and held.st_size <= OWN_LOG_BYTES

    def _open(self, path: str) -> None:
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            os.close(fd)
        self.path = path
        try:
            if os.stat(path).st_size > OWN_LOG_BYTES:
                os.replace(path, path + ".1")
        except FileNotFoundError:
            pass
        self.fd = _opened(path)


_own_log = _OwnLog()


def _text(head: bytes) -> str:
    return head.decode("utf-8", "surrogateescape")


#: Only words with one of these can hold a secret that `labd.lab.redact` knows; looking closer costs more.
_SECRET_WORDS = ("pass", "pw", "token", "secret", "key", "auth", "cred", "pat", "cookie", "bearer", "session", "user",
                 "://", "-u", "-p", "-b", "@")  # fmt: skip


def _blank(argv: list[str]) -> list[str]:
    """`argv` with its secrets blanked; the very same list where there are none."""
    joined = " ".join(argv).lower()
    if not any(word in joined for word in _SECRET_WORDS):
        return argv
    from labd.lab.redact import redact

    blank = [redact(word) for word in argv]
    return argv if blank == argv else blank
