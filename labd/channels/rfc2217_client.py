"""The client of an RFC 2217 server: pyserial's negotiates; what that does slowly or badly is done here.

Two threads pump between the TCP connection and one end of a pair of sockets. Line changes take a round trip instead
of 50 ms, so that a pulse is as long as it was asked to be. Nothing is purged on opening: the board may have spoken.
When the server goes, the pair is shut, and whoever reads its other end sees a hang-up after the last byte. What was
taken for sending and did not leave is counted. Everything blocks; it is called in threads.
"""

import errno
import os
import select
import socket
import struct
import termios
import threading
from fcntl import ioctl
from typing import Any

import serial.rfc2217 as peer

from labd.channels import netport, telnet
from labd.channels.closing import quietly
from labd.channels.portmodel import INPUTS, Settings

READ_BYTES = 64 << 10
SEND_BYTES = 2048
ANSWER_S = 3.0
"""How long the server may take to answer a request."""

POLL_S = 0.3
"""How long it may take to tell its modem lines when asked, which is no duty of its."""

_MASKS = {
    "cts": peer.MODEMSTATE_MASK_CTS,
    "dsr": peer.MODEMSTATE_MASK_DSR,
    "dcd": peer.MODEMSTATE_MASK_CD,
    "ri": peer.MODEMSTATE_MASK_RI,
}


class Client(peer.Serial):  # type: ignore[misc]  # pyserial has no types
    """pyserial's client between its TCP connection and `far`, our end of the pair."""

    _socket: Any
    _thread: Any

    def __init__(self, settings: Settings, far: socket.socket) -> None:
        self.settings = settings
        self.far = far
        self.peer = ""
        self.no_lines = False
        self.ended = ""
        """Why the connection is over; empty while it lives."""
        self._held = 0
        self._opening = True
        self._news = threading.Condition()
        self._told: set[str] = set()
        self._wires = threading.Lock()
        self._sender: threading.Thread | None = None
        self._polled = 0
        super().__init__()

    # Between the threads ----------------------------------------------------------------------------------------------

    def begin_sending(self) -> None:
        """Negotiated: what waits in the pair may go."""
        self._opening = False
        for option in self._telnet_options:
            if option.name == "they-BINARY" and not option.active:  # or the server may put a NUL behind each CR
                option.state = peer.REQUESTED
                self.telnet_send_option(option.send_yes, option.option)
        self.rfc2217_send_subnegotiation(peer.SET_MODEMSTATE_MASK, b"\xff")
        self._sender = threading.Thread(target=self._send_loop, name=f"labd sends to {self.portstr}", daemon=True)
        self._sender.start()

    def _telnet_read_loop(self) -> None:
        """pyserial starts this in a thread: from the connection into the pair, until either ends."""
        why = "closed the connection"
        try:
            netport.tune(self._socket)
            self.peer = netport.peer_of(self._socket, "")
            self._receive(self._socket, telnet.Parser())
        except (OSError, ValueError, AttributeError, struct.error) as error:
            why = f"broke the connection ({getattr(error, 'strerror', None) or error})"
        finally:
            self._end(why)

    def _receive(self, line: socket.socket, parser: telnet.Parser) -> None:
        while self.is_open:
            try:
                data = line.recv(READ_BYTES)
            except TimeoutError:
                continue
            if not data:
                return
            for kind, item in parser.feed(data):
                if kind == "data":
                    self.far.sendall(item)  # waits while the capture is behind; TCP then makes the server wait
                elif kind == "negotiate":
                    self._telnet_negotiate_option(item[:1], item[1:])
                elif kind == "option":
                    self._told_option(item)

    def _told_option(self, body: bytes) -> None:
        with self._news:
            self._telnet_process_subnegotiation(body)
            if body[:2] == peer.COM_PORT_OPTION + peer.SERVER_NOTIFY_MODEMSTATE:
                self._polled += 1
            self._news.notify_all()

    def _send_loop(self) -> None:
        try:
            while (data := self.far.recv(SEND_BYTES)) and self.is_open:
                self._send(data)
        except OSError as error:
            self._end(f"broke the connection ({error.strerror or error})")

    def _send(self, data: bytes) -> None:
        """All of it; waits as long as the server takes nothing, since a board may hold its line for ever."""
        self._held = len(data)
        rest = telnet.escape(data)
        while rest:
            line = self._socket
            if line is None or self.over:
                raise OSError(errno.EPIPE, os.strerror(errno.EPIPE))
            if not select.select([], [line], [], 1.0)[1]:
                continue
            with self._write_lock:
                count = line.send(rest)
                if telnet.torn(rest[:count]):  # a command must not come between the halves
                    line.sendall(rest[count : count + 1])
                    count += 1
            self._held -= count - rest[:count].count(b"\xff\xff")
            rest = rest[count:]

    def _end(self, why: str) -> None:
        """The connection is over, unless it is we who closed it: tell the waiting, and the capture loop."""
        with self._news:
            if self.is_open:
                self.ended = self.ended or why
            self._news.notify_all()
        quietly(lambda: self.far.shutdown(socket.SHUT_RDWR))

    @property
    def over(self) -> bool:
        """Whether nothing can come or go any more."""
        return bool(self.ended) or not self.is_open

    def unsent(self) -> int:
        """Bytes that were taken and have not left."""
        try:
            waiting = int(struct.unpack("i", ioctl(self.far.fileno(), termios.FIONREAD, b"\0\0\0\0"))[0])
        except (OSError, ValueError):
            waiting = 0
        return self._held + waiting

    def _internal_raw_write(self, data: bytes) -> None:
        """A command: whole or not at all, since half of one would spoil the stream."""
        with self._write_lock:
            if not select.select([], [self._socket], [], ANSWER_S)[1]:
                raise OSError(errno.ETIMEDOUT, "the server takes nothing")
            self._socket.sendall(data)

    # What pyserial does otherwise -------------------------------------------------------------------------------------

    def reset_input_buffer(self) -> None:
        """Keep what the board has said before we came."""

    def reset_output_buffer(self) -> None:
        """There is nothing of ours in it."""

    def close(self) -> None:
        """Without pyserial's wait of 0.3 s for servers; the back-off of a reopen is that."""
        self.is_open = False
        line, self._socket = self._socket, None
        if line is not None:
            quietly(lambda: line.shutdown(socket.SHUT_RDWR), line.close)
        quietly(lambda: self.far.shutdown(socket.SHUT_RDWR))
        for thread in (self._thread, self._sender):
            if thread is not None and thread is not threading.current_thread():
                thread.join(2.0)
        self._thread = None
        quietly(self.far.close)

    def rfc2217_set_control(self, value: bytes) -> None:
        """Drive a line, or choose flow control; returns when the server has said that it did.

        Raises OSError: ENOTTY when the server has no such control, ETIMEDOUT, EPIPE.
        """
        flow_none = value == peer.SET_CONTROL_USE_NO_FLOW_CONTROL
        try:
            with self._wires:
                self._control(value)
        except OSError as error:
            if not self._opening or error.errno not in (errno.ENOTTY, errno.ETIMEDOUT):
                raise
            if self.settings.flow != "none" and not self._is_wire(value):
                raise
            self.no_lines = self.no_lines or not flow_none

    def _control(self, value: bytes) -> None:
        if self.no_lines and self._is_wire(value):
            raise OSError(errno.ENOTTY, "the server does not control modem lines")
        item = self._rfc2217_options["control"]
        with self._news:
            item.set(value)
            if self._ignore_set_control_answer:
                return
            self._news.wait_for(lambda: item.state != peer.REQUESTED or self.over, min(ANSWER_S, self._network_timeout))
            state = item.state
        if self.over:
            raise OSError(errno.EPIPE, f"the server {self.ended or 'was left'}")
        if state == peer.REQUESTED:
            raise OSError(errno.ETIMEDOUT, "the server did not answer")
        if state != peer.ACTIVE:
            raise OSError(errno.ENOTTY, "the server refused")

    @staticmethod
    def _is_wire(value: bytes) -> bool:
        return value not in (
            peer.SET_CONTROL_USE_NO_FLOW_CONTROL,
            peer.SET_CONTROL_USE_SW_FLOW_CONTROL,
            peer.SET_CONTROL_USE_HW_FLOW_CONTROL,
        )

    def _update_dtr_state(self) -> None:
        if not self._opening or self.settings.dtr is not None:
            super()._update_dtr_state()

    def _update_rts_state(self) -> None:
        if not self._opening or self.settings.rts is not None:
            super()._update_rts_state()

    # The lines --------------------------------------------------------------------------------------------------------

    def put(self, wire: str, level: bool) -> None:
        """Drive `dtr`, `rts` or `break`."""
        setattr(self, "break_condition" if wire == "break" else wire, level)

    def levels(self) -> dict[str, bool | None]:
        """All lines: ours as they were set, the board's as the server says now, if it answers when it is asked."""
        if "silent" not in self._told:
            with self._news:
                before = self._polled
                self.rfc2217_send_subnegotiation(peer.NOTIFY_MODEMSTATE)
                if not self._news.wait_for(lambda: self._polled > before or self.over, POLL_S):
                    self._told.add("silent")  # many servers tell changes by themselves and answer no question
        if self.over:
            raise OSError(errno.EPIPE, f"the server {self.ended or 'was left'}")
        state = self._modemstate
        ours: dict[str, bool | None] = {
            "dtr": None if self.no_lines or self.settings.dtr is None else bool(self._dtr_state),
            "rts": None if self.no_lines or self.settings.rts is None else bool(self._rts_state),
        }
        return ours | {wire: None if state is None else bool(state & _MASKS[wire]) for wire in INPUTS}
