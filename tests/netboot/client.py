"""A DHCP client that only asks: `client.py INTERFACE '[{"mac": …, "vendor": …, "arch": 7, "user": …}, …]'`.

Prints, as JSON, what is offered to each: `ip`, `next` (siaddr), `file`, and the options by number in hex.
"""

import json
import os
import socket
import struct
import sys
from typing import Any


def option(number: int, data: bytes) -> bytes:
    return bytes([number, len(data)]) + data


def question(xid: int, mac: bytes, asked: dict[str, Any]) -> bytes:
    options = option(53, b"\x01") + option(55, bytes([1, 3, 43, 60, 66, 67]))
    if "vendor" in asked:
        options += option(60, asked["vendor"].encode())
    if "arch" in asked:
        options += option(93, struct.pack("!H", asked["arch"]))
    if "user" in asked:
        options += option(77, asked["user"].encode())
    if "client_id" in asked:
        options += option(61, asked["client_id"].encode())
    head = struct.pack("!BBBBIHH4x4x4x4x", 1, 1, 6, 0, xid, 0, 0x8000) + mac + bytes(10 + 64 + 128)
    return head + b"\x63\x82\x53\x63" + options + b"\xff" + bytes(60)


def understood(data: bytes) -> dict[str, Any]:
    found, at = {}, 240
    while data[at] != 255:
        if data[at] == 0:
            at += 1
            continue
        found[str(data[at])] = data[at + 2 : at + 2 + data[at + 1]].hex()
        at += 2 + data[at + 1]
    file = data[108:236].split(b"\0")[0].decode() or bytes.fromhex(found.get("67", "")).rstrip(b"\0").decode()
    return {"ip": socket.inet_ntoa(data[16:20]), "next": socket.inet_ntoa(data[20:24]), "file": file, "options": found}


def main() -> None:
    interface, questions = sys.argv[1], json.loads(sys.argv[2])
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
    sock.bind(("", 68))
    sock.settimeout(5)
    answers = []
    for asked in questions:
        xid = int.from_bytes(os.urandom(4), "big")
        mac = bytes.fromhex(asked.get("mac", "52:54:00:00:00:01").replace(":", ""))
        sock.sendto(question(xid, mac, asked), ("255.255.255.255", 67))
        while True:
            data = sock.recv(2048)
            if data[0] == 2 and data[4:8] == struct.pack("!I", xid):
                answers.append(understood(data))
                break
    print(json.dumps(answers))


main()
