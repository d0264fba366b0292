#!/usr/bin/env python3
"""A program that speaks as uhubctl 2.5.0 does, of one USB 3 hub (two halves) whose state is in a file beside it.

FAULT in the environment: `stuck` takes commands and does nothing, `permission` and `none` say what uhubctl says then,
`slow` sleeps. While the file `refuse` holds a number above 0, switching on fails.
"""

import json
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
STATE = HERE / "ports.json"
HALVES = (
    ("1-1.4", "2109:2817 VIA Labs USB2.0 Hub, USB 2.10, 4 ports, ppps"),
    ("2-1.4", "2109:0817 VIA Labs USB3.0 Hub, USB 3.20, 4 ports, ppps"),
)


def show(which, only, ports):
    for name, about in HALVES:
        print(f"{which} status for hub {name} [{about}]")
        for port, on in ports.items():
            if only in (None, port):
                word = "0503 power highspeed enable connect" if on else "0000 off"
                if name.startswith("2"):
                    word = "02a0 power 5gbps Rx.Detect" if on else "0080 off"
                print(f"  Port {port}: {word} [1a86:7523 QinHeng USB power meter]")


def main():
    fault = os.environ.get("FAULT", "")
    if fault == "slow":
        time.sleep(60)
    if fault == "permission":
        print("No compatible devices detected!\nThere were permission problems while accessing USB.")
        return 1
    words = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    if fault == "none" or words.get("-l", "1-1.4") not in ("1-1.4", "2-1.4"):
        print("No compatible devices detected at location 7-7!\nRun with -h to get usage info.")
        return 1
    ports = json.loads(STATE.read_text())
    port = words.get("-p")
    show("Current", port, ports)
    if "-a" in words:
        with open(HERE / "calls", "a") as calls:
            calls.write(f"{words['-a']} {time.monotonic()}\n")
        refuse = HERE / "refuse"
        left = int(refuse.read_text()) if refuse.exists() else 0
        if words["-a"] == "on" and left > 0:
            refuse.write_text(str(left - 1))
            print("Failed to control port power!", file=sys.stderr)
            return 1
        if fault != "stuck":
            ports[port] = words["-a"] == "on"
            STATE.write_text(json.dumps(ports))
        print(f"Sent power {words['-a']} request")
        show("New", port, ports)
    return 0


raise SystemExit(main())
