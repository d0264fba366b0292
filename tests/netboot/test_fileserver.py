"""The HTTP server for boot files, over real sockets on loopback: what UEFI and iPXE ask, and what nobody may get."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labd.netboot.fileserver import FileServer, byte_range
from tests.conftest import until

DATA = bytes(range(256)) * 40


class Served:
    """A server of a folder, the answers that it told of, and one connection to it."""

    def __init__(self, root: Path, network: str = "127.0.0.0/24", content_type: str = "") -> None:
        self.told: list[dict[str, Any]] = []
        self.server = FileServer(("127.0.0.1", 0), str(root), network, content_type, self.told.append)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.port = self.server.server_port
        self.http = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        self.http.request(method, path, headers=headers)
        answer = self.http.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    def close(self) -> None:
        self.http.close()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "tftp"
    (folder / "sub").mkdir(parents=True)
    (folder / "kernel.img").write_bytes(DATA)
    (folder / "sub" / "with space.efi").write_bytes(b"efi")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "tftp2").mkdir()
    (tmp_path / "tftp2" / "near").write_text("secret")
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "in").symlink_to("kernel.img")
    return folder


@pytest.fixture
def served(root: Path) -> Iterator[Served]:
    found = Served(root)
    yield found
    found.close()


def test_head_and_get_say_the_length_and_keep_the_connection(served: Served) -> None:
    code, headers, body = served.ask("/kernel.img", "HEAD")
    assert (code, headers["Content-Length"], body) == (200, "10240", b"")
    assert headers["Accept-Ranges"] == "bytes" and headers["Content-Type"] == "application/vnd.efi-img"
    before = served.http.sock
    code, headers, body = served.ask("/kernel.img?serial=1")
    assert (code, body) == (200, DATA) and served.http.sock is before
    assert served.ask("/sub/with%20space.efi")[1]["Content-Type"] == "application/efi"
    assert served.ask("/in")[2] == DATA  # a link that stays inside
    until("all answers told", lambda: len(served.told) == 4)
    assert served.told[1] == {"method": "GET", "file": "kernel.img", "code": 200, "bytes": 10240, "of": 10240,
                              "ip": "127.0.0.1", "ms": served.told[1]["ms"], "why": ""}  # fmt: skip


def test_one_range_is_sent_and_one_beyond_the_end_is_refused(served: Served) -> None:
    code, headers, body = served.ask("/kernel.img", Range="bytes=100-199")
    assert (code, body, headers["Content-Range"]) == (206, DATA[100:200], "bytes 100-199/10240")
    assert served.ask("/kernel.img", Range="bytes=-5")[2] == DATA[-5:]
    assert served.ask("/kernel.img", Range="bytes=10000-")[2] == DATA[10000:]
    code, headers, _ = served.ask("/kernel.img", Range="bytes=10240-")
    assert (code, headers["Content-Range"]) == (416, "bytes */10240")
    assert served.ask("/kernel.img", Range="bytes=0-1,5-6")[0] == 200  # several: all of it, as the RFC permits


@pytest.mark.parametrize(
    ("header", "part"),
    [(None, (0, 10)), ("bytes=2-", (2, 10)), ("bytes=-3", (7, 10)), ("bytes=-30", (0, 10)), ("bytes=0-99", (0, 10)),
     ("bytes=10-", None), ("bytes=-0", None), ("bytes=5-2", (0, 10)), ("bytes=-", (0, 10)), ("lines=1-2", (0, 10))],
)  # fmt: skip
def test_ranges(header: str | None, part: tuple[int, int] | None) -> None:
    assert byte_range(header, 10) == part


@pytest.mark.parametrize(
    "path",
    ["/../secret", "/%2e%2e/secret", "/..%2fsecret", "/sub/../../secret", "//../secret", "/out", "/../tftp2/near",
     "/", "/sub", "/nothing", "/kernel.img%00", "/kernel.img/"],
)  # fmt: skip
def test_nothing_outside_of_the_folder_is_served(served: Served, path: str) -> None:
    code, headers, body = served.ask(path)
    assert (code, body, headers["Content-Length"]) == (404, b"", "0")
    assert served.ask("/kernel.img")[0] == 200  # on the same connection


@pytest.mark.parametrize(
    ("path", "why"), [("/out", "leads out of"), ("/../secret", "leads out of"), ("/sub", "a directory"),
                      ("/sub/", "a directory"), ("/nothing", "no such file")],
)  # fmt: skip
def test_why_a_file_is_not_served_is_told(served: Served, path: str, why: str) -> None:
    assert served.ask(path)[0] == 404
    assert why in until("the answer told", lambda: served.told)[0]["why"]


def test_nothing_but_get_and_head(served: Served) -> None:
    assert served.ask("/kernel.img", "PUT")[0] == 501
    assert served.ask("/kernel.img", "DELETE")[0] == 501


def test_the_type_of_the_lab_is_for_all(root: Path) -> None:
    served = Served(root, content_type="application/x-boot")
    assert served.ask("/sub/with%20space.efi")[1]["Content-Type"] == "application/x-boot"
    served.close()


def test_a_machine_of_another_network_gets_no_answer(root: Path) -> None:
    served = Served(root, network="10.77.0.1/24")
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        served.ask("/kernel.img")
    served.close()


def test_a_board_that_hangs_up_is_told_of_and_stops_nothing(root: Path, served: Served) -> None:
    (root / "big").write_bytes(bytes(64 << 20))
    with socket.create_connection(("127.0.0.1", served.port)) as board:
        board.sendall(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        board.recv(1000)
    broken = until("its end", lambda: [told for told in served.told if told["file"] == "big"])[0]
    assert broken["bytes"] < broken["of"] == 64 << 20
    assert served.ask("/kernel.img")[0] == 200
