"""The HTTP server for boot files: GET and HEAD of what is below one directory, for the boards of one link alone.

Bound to one address. Answers with Content-Length always, takes Range (one), keeps connections open. Nothing outside of
the directory is served, also not by a symbolic link that leads out of it. No listings, no writing.
"""

from __future__ import annotations

import ipaddress
import os
import re
import sys
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from labd.netboot.tree import inside

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

#: The types that UEFI HTTP boot goes by (UEFI 2.10, 24.7.3.1), by the end of the name.
TYPES = {".efi": "application/efi", ".iso": "application/vnd.efi-iso", ".img": "application/vnd.efi-img",
         ".ipxe": "text/plain", ".cfg": "text/plain", ".txt": "text/plain", ".json": "application/json"}  # fmt: skip

#: Seconds that a connection may be silent.
IDLE_SECONDS = 60.0

#: Bytes that are sent in one go; how much a broken transfer had sent is known to this.
PIECE = 1 << 20

_RANGE = re.compile(r"bytes=(\d*)-(\d*)$")


class FileServer(ThreadingHTTPServer):
    """Serves `root` at `address` to the machines of `network`; `tell` is told of each answer. Raises OSError."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], root: str, network: str, content_type: str,
                 tell: Callable[[dict[str, Any]], None]) -> None:  # fmt: skip
        self.root = os.path.realpath(root)
        self.network = ipaddress.ip_network(network, strict=False)
        self.content_type = content_type
        self.tell = tell
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        """Bind, without looking up what the address is called: there is no name server on this link."""
        import socketserver

        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Only machines of the link get an answer: another network may have a route to our address."""
        return ipaddress.ip_address(client_address[0]) in self.network

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A board that hangs up is no error of ours; anything else is, and goes into the log."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def find(self, target: str) -> str | None:
        """The file that a request's target means, None when there is none to be served."""
        name = unquote(target.split("?", 1)[0].split("#", 1)[0])
        if "\0" in name or name.endswith("/"):
            return None
        path = os.path.realpath(os.path.join(self.root, name.lstrip("/")))
        return path if inside(path, self.root) and os.path.isfile(path) else None

    def why_not(self, target: str) -> str:
        """Why there is no file to be served for a request's target, for the log."""
        name = unquote(target.split("?", 1)[0].split("#", 1)[0])
        if "\0" in name:
            return "no name of a file"
        path = os.path.join(self.root, name.lstrip("/"))
        if not inside(os.path.realpath(path), self.root):
            return f"it leads out of {self.root}"
        return "it is a directory" if os.path.isdir(path) else "there is no such file"


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: FileServer
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS

    def do_GET(self) -> None:
        """Send a file, or the part of it that is asked for."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Say how long it is."""
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        started = time.monotonic()
        path = self.server.find(self.path)
        try:
            file = open(path or "", "rb")  # noqa: SIM115 - closed below, whatever is answered
        except PermissionError:
            self._refuse(403)
            return
        except OSError:
            self._refuse(404, why=self.server.why_not(self.path))
            return
        with file:
            size = os.fstat(file.fileno()).st_size
            part = byte_range(self.headers.get("Range"), size)
            if part is None:
                self._refuse(416, ("Content-Range", f"bytes */{size}"))
                return
            sent = self._send(file, path or "", size, part) if body else self._head(path or "", file, size, part)
        self._tell(206 if part != (0, size) else 200, sent, part[1] - part[0], started)

    def _head(self, path: str, file: BinaryIO, size: int, part: tuple[int, int]) -> int:
        first, end = part
        self.send_response(206 if part != (0, size) else 200)
        self.send_header("Content-Type", self.server.content_type or TYPES.get(os.path.splitext(path)[1].lower(),
                         "application/octet-stream"))  # fmt: skip
        self.send_header("Content-Length", str(end - first))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Last-Modified", formatdate(os.fstat(file.fileno()).st_mtime, usegmt=True))
        if part != (0, size):
            self.send_header("Content-Range", f"bytes {first}-{end - 1}/{size}")
        self.end_headers()
        return 0

    def _send(self, file: BinaryIO, path: str, size: int, part: tuple[int, int]) -> int:
        """Headers and bytes; how many of these went out."""
        self._head(path, file, size, part)
        first, end = part
        sent = 0
        try:
            while first + sent < end:
                count = self.connection.sendfile(file, first + sent, min(end - first - sent, PIECE))
                if not count:
                    break  # the file got shorter meanwhile
                sent += count
        except OSError:
            pass  # the board hung up, or was silent for too long
        if first + sent < end:
            self.close_connection = True
        return sent

    def _refuse(self, code: int, *headers: tuple[str, str], why: str = "") -> None:
        self.send_response(code)
        for name, value in (*headers, ("Content-Length", "0")):
            self.send_header(name, value)
        self.end_headers()
        self._tell(code, 0, 0, time.monotonic(), why)

    def _tell(self, code: int, sent: int, wanted: int, started: float, why: str = "") -> None:
        self.server.tell({
            "method": self.command, "file": unquote(self.path.split("?", 1)[0]).lstrip("/"), "code": code,
            "bytes": sent, "of": wanted, "ip": self.client_address[0],
            "ms": round((time.monotonic() - started) * 1000, 1), "why": why,
        })  # fmt: skip

    def version_string(self) -> str:
        """The Server header."""
        return "labd"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Answers are told as data; nothing goes to stderr."""


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """[first, end) that a Range header asks for; all of it when it asks for no single range; None: there is no such.

    >>> byte_range("bytes=2-", 10), byte_range("bytes=-3", 10), byte_range("bytes=0-1", 10), byte_range("bytes=10-", 10)
    ((2, 10), (7, 10), (0, 2), None)
    """
    found = _RANGE.match(header or "")
    if not found or found[1] == found[2] == "":
        return 0, size
    if found[1] == "":
        return (max(0, size - int(found[2])), size) if int(found[2]) else None
    first = int(found[1])
    end = min(int(found[2]) + 1, size) if found[2] else size
    if found[2] and int(found[2]) < first:
        return 0, size
    return (first, end) if first < size else None
