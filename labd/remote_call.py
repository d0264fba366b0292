"""One call on another machine: the lab's slice and the words go there, streams, files and the exit code come back.

The far daemon checks and records the call like one of its own; this side has done so before it comes here. What is
spoken is the thin client's own protocol (`labd.thin`) behind one frame that brings the lab (`labd.remote_door`).
"""

from __future__ import annotations

import json
import select
import socket

from labd import __version__, claims
from labd.argv import words_of
from labd.errors import Busy, PassedOn, Unreachable
from labd.lab.hosts import own_name
from labd.lab.model import quoted
from labd.remote_files import PIECE, Shipment
from labd.remote_link import Link
from labd.remote_slice import name_of, origin_of, text_of
from labd.remote_ssh import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args, Operation
    from labd.remote_route import Place

#: What of the caller's environment means something there, too.
SENT_ENV = ("TERM", "NO_COLOR", "CLICOLOR_FORCE", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LABD_DEBUG")

#: Seconds that the far daemon gets to take the lab up, and between looks at whether the caller still listens.
TAKE_UP_S, LOOK_S = 20.0, 0.25


def run(op: Operation, args: Args, call: Call, place: Place) -> int:
    """Run a permitted call where its channel is; returns the exit code that it had there.

    Raises Unreachable where that machine can't be reached, or the link broke before the answer was complete.
    """
    lab = call.lab()
    link = Link(Host(place.host, lab.host(place.host), call.env, lab.directory), call)
    if op.path[0] == "daemons":
        return _without_daemon(op, args, call, link)
    shipment = Shipment(op, args, call)
    with _Visit(link, op, args, call, place, shipment) as visit:
        return _on_terminal(call, link, visit.lab) if op.where == "client" else visit.run()


def env_there(call: Call) -> dict[str, str]:
    """The variables of the call: who asks, from where, and the level that it is held to."""
    who = call.env.get(claims.NAME_VARIABLE) or f"{claims.name_of(call.env)}@{own_name()}"
    return {k: call.env[k] for k in SENT_ENV if k in call.env} | {"LABD_AS": who, "LABD_POLICY": call.level}


class _Visit:
    """`with _Visit(…) as visit`: a connection to the far daemon that has taken up the lab and the files.

    What only looks is asked for with the same words, which saves a way there and back: where nobody answers it can be
    asked again. What acts is asked for once somebody has answered, so that it is never asked for twice.
    """

    def __init__(self, link: Link, op: Operation, args: Args, call: Call, place: Place, shipment: Shipment) -> None:
        self.link = link
        self.op = op
        self.args = args
        self.in_daemon = call.bench is not None
        self.at_once = op.effect_of(args) == "observe" and op.where != "client" and not shipment.any
        self.call = call
        self.place = place
        self.shipment = shipment
        self.lab = self.work = ""
        self.buffer = b""
        self.socket: socket.socket | None = None
        self.ready = select.poll()

    def __enter__(self) -> _Visit:
        for _ in range(2):
            if self._greeted():
                return self
            self.link.open()
        if self._greeted():
            return self
        host = self.link.host
        raise Unreachable(
            f"host {host.name!r}: ssh gets there, but the socket of labd can't be reached through it; nothing was done",
            hint=f"ssh {quoted(host.ssh)} sudo sshd -T  # does it say allowstreamlocalforwarding yes?",
        )

    def __exit__(self, *exc: object) -> None:
        if self.socket is not None:
            self.socket.close()
            if self.in_daemon and exc[0] is None:
                self.link.keep_spare()

    def _greeted(self) -> bool:
        """Whether the far daemon took the lab up. False where nobody answered: nothing was asked for then."""
        self.call.check_cancelled()
        self.buffer = b""
        self.socket = self.link.connect()
        if self.socket is None:
            return False
        try:
            self.socket.settimeout(TAKE_UP_S)
            self._send_lab()
            answer = self._header()
        except TimeoutError:
            raise Unreachable(f"host {self.place.host!r} does not answer for {TAKE_UP_S:.0f} s; nothing was done there",
                              hint=self.link.host.by_hand()) from None  # fmt: skip
        except (ConnectionError, EOFError):
            self.socket.close()
            return False
        self.socket.settimeout(None)
        self.ready.register(self.socket, select.POLLIN)
        self._taken_up(answer)
        return True

    def _send_lab(self) -> None:
        assert self.socket is not None
        lab, files = self.call.lab(), self.shipment.listing()
        brought = {
            "version": __version__, "origin": origin_of(lab), "name": name_of(self.place.host, self.place.target),
            "lab": text_of(lab, self.place.host, self.place.target), "words": self.call.lab_words(),
            "files": files, "work": self.shipment.any, "from": own_name(), "face": self.call.face,
        }  # fmt: skip
        body = json.dumps(brought).encode()
        self.socket.sendall(b"%d\n%s" % (len(body), body) + (self._request() if self.at_once else b""))
        for piece in self.shipment.pieces({file["name"]: file["size"] for file in files}):
            self.socket.sendall(piece)

    def _taken_up(self, answer: bytes) -> None:
        kind, size = answer[:1], answer[1:]
        if kind == b"v":
            theirs = size.decode()
            raise Unreachable(f"the daemon on host {self.place.host!r} is labd {theirs}, this one is {__version__}",
                              hint=f"labd daemons restart --host {self.place.host}")  # fmt: skip
        said: dict[str, Any] = json.loads(self._exactly(int(size)))
        if kind == b"n":
            raise PassedOn(f"labd on host {self.place.host!r}: {said['message']}", said["exit"], hint=said["hint"])
        self.lab, self.work = said["lab"], said["work"]

    def run(self) -> int:
        """Ask for the call and copy what comes back; returns its exit code."""
        assert self.socket is not None
        self.call.check_cancelled()
        try:
            if not self.at_once:
                self.socket.sendall(self._request())
            return self._copy()
        except (ConnectionError, EOFError):
            raise self._lost() from None

    def _request(self) -> bytes:
        """The thin client's request; an empty directory means that there the daemon says where it works."""
        call = self.call
        ttys = "".join("1" if tty else "0" for tty in (call.stdin_tty, call.stdout_tty, call.stderr_tty))
        head = ["2", __version__, "", ttys, str(call.columns), call.program, str(call.caller.get("ppid") or 0)]
        env = [f"{name}={value}" for name, value in env_there(call).items()]
        fields = [*head, *env, "", *self._argv()]
        body = b"\0".join([field.encode("utf-8", "surrogateescape") for field in fields])
        return b"X%d\n%s" % (len(body), body)

    def _argv(self) -> list[str]:
        """The caller's words; anew from the values where a file or the host has another name there."""
        if not self.shipment.words and self.place.target is not None:
            return self.call.argv
        values = self.shipment.there(self.work)
        if self.place.target is None:
            values.pop("host", None)
        return [*_globals(self.call), *words_of(self.op, values)]

    def _copy(self) -> int:
        said = self.shipment.said(self.work, self.lab)
        errors = Errors(self.call)
        while True:
            if not self.buffer:
                self.call.flush()
            header = self._header()
            kind, size = header[:1], header[1:]
            if kind == b"o":
                for piece in self._pieces(int(size)):
                    self.call.out(said(piece))
            elif kind == b"e":
                errors.take(said(self._exactly(int(size))))
            elif kind == b"i":
                self._send_stdin()
            elif kind == b"w":
                about = json.loads(self._exactly(int(size)))
                self.shipment.arrive(about["name"], self._pieces(about["size"]))
            elif kind == b"x":
                return errors.ended(int(size))
            elif kind == b"f":
                raise Busy(f"the daemon on host {self.place.host!r} runs as many calls as it can",
                           hint=f"labd daemons --host {self.place.host}")  # fmt: skip
            elif kind != b"a":
                raise Unreachable(f"the daemon on host {self.place.host!r} speaks another protocol",
                                  hint=f"labd daemons restart --host {self.place.host}")  # fmt: skip

    def _send_stdin(self) -> None:
        assert self.socket is not None
        data = self.call.read_stdin()
        if data:
            self.socket.sendall(b"d%d\n%s" % (len(data), data))
        self.socket.sendall(b"d0\n")

    def _lost(self) -> Unreachable:
        """The link broke while the call ran there: for what only looks that is all, the rest may have been done."""
        host, target = self.place.host, self.place.target
        if self.op.effect_of(self.args) == "observe":
            return Unreachable(f"the link to host {host!r} was lost before the answer was complete",
                               hint="the same command again connects anew")  # fmt: skip
        look = f"labd serial log {target} --events" if self.op.channel == "serial" else f"labd doctor --host {host}"
        return Unreachable(
            f"the link to host {host!r} was lost before labd there had answered: it may have been done, or in part",
            hint=f"look before you do it again: {look}",
        )

    # --- reading ---------------------------------------------------------------------------------------------------

    def _more(self) -> None:
        assert self.socket is not None
        if self.socket.gettimeout() is None:
            while not self.ready.poll(LOOK_S * 1000):
                self.call.check_cancelled()
        data = self.socket.recv(PIECE)
        if not data:
            raise EOFError
        self.buffer += data

    def _header(self) -> bytes:
        while b"\n" not in self.buffer:
            self._more()
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    def _exactly(self, size: int) -> bytes:
        return b"".join(self._pieces(size))

    def _pieces(self, size: int) -> Iterator[bytes]:
        while size:
            if not self.buffer:
                self._more()
            piece, self.buffer = self.buffer[:size], self.buffer[size:]
            size -= len(piece)
            yield piece


class Errors:
    """What comes from there on stderr: passed on as it is, or for a face that takes errors apart, taken apart."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.error: dict[str, Any] | None = None

    def take(self, data: bytes) -> None:
        """Some lines of stderr."""
        if self.call.on_error is None:
            self.call.err(data)
            return
        for line in data.splitlines():
            try:
                said = json.loads(line)
                self.error = said.get("error", self.error)
                text = said.get("note")
            except (ValueError, AttributeError):
                text = line.decode("utf-8", "replace")
            if text:
                self.call.note(str(text).removeprefix("labd: "))

    def ended(self, code: int) -> int:
        """The exit code; raises the error that was told, where the face wants it."""
        if self.error is not None:
            from labd.client import error_of

            raise error_of({"message": self.error.get("message"), "data": self.error})
        return code


def _globals(call: Call) -> list[str]:
    return [*(["--json"] if call.json else []), *(["--quiet"] if call.quiet else [])]


def _on_terminal(call: Call, link: Link, lab: str) -> int:
    """What needs the caller's terminal runs in ssh's: its own process there, its keys and its size."""
    from labd import shim

    env = env_there(call) | {"LABD_LAB": lab}
    terminal = ("-t",) if call.stdin_tty else ("-T",)
    words = _without_lab(call)
    code = shim.run_attached(link.host.argv(link.host.run(words, env), options=terminal), call)
    if code == 255:
        raise Unreachable(f"the link to host {link.host.name!r} was lost", hint="the same command again connects anew")
    return code


def _without_lab(call: Call) -> list[str]:
    """The caller's words without the lab file's path, which means nothing there."""
    words = list(call.argv)
    if call.lab_flag is None:
        return words
    for at, word in enumerate(words):
        if word == "--lab":
            return words[:at] + words[at + 2 :]
        if word.startswith("--lab="):
            return words[:at] + words[at + 1 :]
    return words


def _without_daemon(op: Operation, args: Args, call: Call, link: Link) -> int:
    """What looks after the daemon itself runs beside it there, and starts none."""
    from labd.remote_link import GREET_S

    link.greet(start=False)
    values = {name: value for name, value in vars(args).items() if name != "host"}
    env = env_there(call)
    words = [*_globals(call), *words_of(op, values)]
    done = link.ssh(link.host.argv(link.host.run(words, env)), GREET_S)
    if done.code in (None, 255):
        raise Unreachable(f"the link to host {link.host.name!r} was lost; labd {op.name} may have been done there",
                          hint=f"labd daemons --host {link.host.name}")  # fmt: skip
    call.out(done.out)
    errors = Errors(call)
    errors.take(done.err)
    return errors.ended(done.code)
