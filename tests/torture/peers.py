"""Peers as subjects: conserver, ser2net and tio as they are installed, pexpect and labgrid by their drivers.

Each is found at run time; what is missing is left out with the reason. A peer keeps what it keeps by itself: conserver
and tio write a log; ser2net keeps none, so a TCP client of ours stores what it hands out. All run in the foreground,
as processes of ours, on ports of their own.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.torture.driven import Driven, bad
from tests.torture.far import holders
from tests.torture.subject import NotThere, Sent, Subject, Wrong, free_port, wait

VENV = Path(__file__).parents[2] / ".venv-peers"
OWN_WORDS = re.compile(rb"\[-- (?:Console|MARK|\w+@\S+)[^\]]*\]\r?\n|Device open failure: [^\r]*\r\n")

OWN_STAMPS = re.compile(r"\r?\n?\[\d\d:\d\d:\d\d\.\d+\] .*\r?\n")


class Running(Subject):
    """A peer that is a process of its own for each port, with `self._log` as what it keeps."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="torture-peer-"))
        self._log = self._folder / "log"
        self._words = self._folder / "words"
        self._count = 0

    def stored(self) -> bytes:
        with contextlib.suppress(FileNotFoundError):
            return OWN_WORDS.sub(b"", self._log.read_bytes())
        return b""

    def told(self) -> str:
        log = self._log.read_bytes() if self._log.exists() else b""
        return self._words.read_text(errors="replace") + b" ".join(OWN_WORDS.findall(log)).decode()

    def pids(self) -> list[int]:
        return _tree(self._process.pid) if self._process else []

    def close(self) -> None:
        process, self._process = self._process, None
        if process:
            family = _tree(process.pid)
            process.terminate()
            obeyed = True
            try:
                process.wait(3)
            except subprocess.TimeoutExpired:
                obeyed = False
            for pid in family:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
            if not obeyed:
                raise Wrong("did not end within 3 s of SIGTERM, and had to be killed")

    def quit(self) -> None:
        with contextlib.suppress(Wrong):
            self.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _fresh(self) -> None:
        self._count += 1
        self._log, self._words = self._folder / f"log{self._count}", self._folder / f"words{self._count}"
        self._words.touch()

    def _until_open(self, path: Path) -> None:
        """Return once it has the node open and has had time to set it."""
        node, deadline = os.path.realpath(path), time.monotonic() + 6
        while not set(holders(node)) & set(self.pids()):
            if time.monotonic() > deadline or (self._process and self._process.poll() is not None):
                words = " ".join(self.told().split()).partition("ERROR: ")[2].partition(" [")[0][:120]
                self.close()
                raise Wrong(f"did not open the port: {words}")
            time.sleep(0.02)
        time.sleep(0.4)


class Conserver(Running):
    """conserver, set up for a device that may come and go; its client `console` for typing."""

    name = "conserver"

    def __init__(self) -> None:
        super().__init__()
        self._client: subprocess.Popen[bytes] | None = None
        self._port = 0

    def open(self, path: Path, *, baud: int = 115200, tx_delay_ms: int = 0, prompt: str = "") -> None:
        self._fresh()
        self._port = free_port()
        config = self._folder / "conserver.cf"
        config.write_text(
            f"config * {{ }}\ndefault * {{ logfile {self._log}; rw *; master localhost; }}\n"
            f"console dut {{ type device; device {path}; baud {baud}; parity none;"
            " options !hupcl, !ixon, reinitoncc, autoreinit; }\n"
            "access * { trusted 127.0.0.1; }\n"
        )
        argv = ["conserver", "-C", str(config), "-M", "127.0.0.1", "-p", str(self._port), "-b", str(free_port())]
        with self._words.open("wb") as words:
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=words, stderr=words)
        self._until_open(path)

    def send(self, data: bytes, within_s: float) -> Sent:
        self._client = self._client or self._attach()
        assert self._client.stdin is not None
        view, deadline, pipe = memoryview(data), time.monotonic() + within_s - 5, self._client.stdin.fileno()
        os.set_blocking(pipe, False)
        while view and time.monotonic() < deadline:
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(pipe, view[:1024]) :]
                continue
            time.sleep(0.02)
        return Sent(None, "")

    def _attach(self) -> subprocess.Popen[bytes]:
        """A client that is attached; the server takes its time until it lets one in."""
        argv = ["console", "-M", "127.0.0.1", "-p", str(self._port), "-f", "dut"]
        pipe = subprocess.PIPE
        for _ in range(20):
            client = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
            assert client.stdout is not None
            if os.read(client.stdout.fileno(), 100):
                threading.Thread(target=_drain, args=(os.dup(client.stdout.fileno()),), daemon=True).start()
                time.sleep(0.5)
                return client
            client.communicate()
            time.sleep(0.25)
        raise Wrong("its client was not let in")

    def close(self) -> None:
        client, self._client = self._client, None
        if client:
            client.kill()
            client.wait()
        super().close()


class Ser2net(Running):
    """ser2net, raw TCP, and a client that stores what it gets and connects again when it is hung up on."""

    name = "ser2net"

    def __init__(self) -> None:
        super().__init__()
        self._socket: socket.socket | None = None
        self._over = threading.Event()

    def open(self, path: Path, *, baud: int = 115200, tx_delay_ms: int = 0, prompt: str = "") -> None:
        self._fresh()
        port = free_port()
        argv = ["ser2net", "-n", "-d", "-c", "/dev/null"]
        for line in (
            "connection: &c1",
            f"  accepter: tcp,127.0.0.1,{port}",
            f"  connector: serialdev(nouucplock=true),{path},{baud}n81,local",
            "  options:",
            "    max-connections: 5",
        ):
            argv += ["-Y", line]
        with self._words.open("wb") as words:
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=words, stderr=words)
        self._over = threading.Event()
        threading.Thread(target=self._read, args=(port, self._log, self._over), daemon=True).start()
        self._until_open(path)

    def _read(self, port: int, log: Path, over: threading.Event) -> None:
        with log.open("ab", buffering=0) as file:
            while not over.is_set():
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as link:
                    link.settimeout(None)
                    self._socket = link
                    while data := link.recv(65536):
                        file.write(data)
                over.wait(0.1)

    def send(self, data: bytes, within_s: float) -> Sent:
        if self._socket is None:
            raise Wrong("nobody is connected")
        began = time.monotonic()
        view = memoryview(data)
        while view and time.monotonic() - began < within_s - 5:
            with contextlib.suppress(BlockingIOError):
                view = view[self._socket.send(view, socket.MSG_DONTWAIT) :]
                continue
            time.sleep(0.02)
        return Sent(None, "")

    def close(self) -> None:
        self._over.set()
        link, self._socket = self._socket, None
        if link:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        super().close()


class Tio(Running):
    """tio on a terminal of its own, with its log; typing is typing into that terminal."""

    name = "tio"

    def __init__(self) -> None:
        super().__init__()
        self._terminal = -1

    def open(self, path: Path, *, baud: int = 115200, tx_delay_ms: int = 0, prompt: str = "") -> None:
        self._fresh()
        self._terminal, slave = os.openpty()
        argv = ["tio", "-b", str(baud), "-c", "none", "-o", str(tx_delay_ms), "--log", "--log-file", str(self._log)]
        env = {**os.environ, "TERM": "dumb", "HOME": str(self._folder)}
        self._process = subprocess.Popen([*argv, str(path)], stdin=slave, stdout=slave, stderr=slave, env=env)
        os.close(slave)
        threading.Thread(target=_drain, args=(os.dup(self._terminal), self._words), daemon=True).start()
        self._until_open(path)

    def shown(self) -> list[str]:
        """The log, which tio writes by the line, and behind it what only the screen has yet."""
        lines = super().shown()
        if lines[-1] == "":
            lines[-1] = self._screen().rpartition("\n")[2].rstrip("\r")
        return lines

    def settle(self, marker: bytes, within_s: float | None = None) -> None:
        within = self.patience_s if within_s is None else within_s
        missing = f"never stored or showed what was said last ({marker!r})"
        wait(lambda: marker in self.stored() or marker.decode() in self._screen()[-200:], within, missing)

    def _screen(self) -> str:
        return OWN_STAMPS.sub("", self._words.read_bytes().decode("utf-8", "replace"))

    def send(self, data: bytes, within_s: float) -> Sent:
        view, deadline = memoryview(data), time.monotonic() + within_s - 5
        os.set_blocking(self._terminal, False)
        while view and time.monotonic() < deadline:
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(self._terminal, view[:1024]) :]
                continue
            time.sleep(0.02)
        return Sent(None, "")

    def close(self) -> None:
        try:
            super().close()
        finally:
            if self._terminal >= 0:
                os.close(self._terminal)
                self._terminal = -1


def _drain(fd: int, into: Path | None = None) -> None:
    """Read all there is, into a file or away, until the other end is gone. `fd` is our own, and closed then: the
    number of one that another thread closes would soon be that of the next terminal."""
    with contextlib.suppress(OSError), open(into or os.devnull, "ab", buffering=0) as file, open(fd, "rb", 0):
        while True:
            try:
                data = os.read(fd, 65536)
            except BlockingIOError:
                time.sleep(0.01)
                continue
            if not data:
                return
            file.write(data)


def _tree(pid: int) -> list[int]:
    """The process and all that descend from it."""
    found = [pid]
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                found += _tree(int(child))
    return found


def _program(name: str, made: Callable[[], Running], *version: str) -> Subject:
    where = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if where is None:
        raise NotThere(f"{name} is not installed")
    os.environ["PATH"] = f"{os.environ.get('PATH', '')}:{Path(where).parent}"
    said = subprocess.run([where, *version], capture_output=True, timeout=20)
    subject = made()
    found = re.search(rb"\d+\.\d+(\.\d+)?", said.stdout + said.stderr)
    subject.version = found[0].decode() if found else "?"
    return subject


def _library(name: str) -> Subject:
    for python in (str(VENV / "bin" / "python"), sys.executable):
        if (
            Path(python).exists()
            and subprocess.run([python, "-c", f"import {name}"], capture_output=True).returncode == 0
        ):
            return Driven(name, python, reads_alone=False)
    raise NotThere(f"{name} is not installed, neither in {VENV.name} nor in .venv")


#: How each subject but labd is made; NotThere with the reason when it can't be.
FINDERS: dict[str, Callable[[], Subject]] = {
    "conserver": lambda: _program("conserver", Conserver, "-V"),
    "ser2net": lambda: _program("ser2net", Ser2net, "-v"),
    "tio": lambda: _program("tio", Tio, "-v"),
    "pexpect": lambda: _library("pexpect"),
    "labgrid": lambda: _library("labgrid"),
    "naive": lambda: bad("naive"),
    "cat": lambda: bad("cat"),
}
