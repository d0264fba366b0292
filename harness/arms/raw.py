"""A careful pyserial script for one task. Opens the port, types what has to be typed, reads until what it looks for is
there or its patience is over, answers a question as soon as it sees it, and opens the port again when that goes away.

    raw.py '{"device": …, "look_for": …, "type": …, "see": …, "press": …, "patience_s": …}'
"""

import json
import re
import sys
import time

import serial

RETRY_S = 0.1


def opened(device, until):
    """The port; tried again while it is not there or is held by somebody."""
    while True:
        try:
            return serial.Serial(device, 115200, timeout=0.05, exclusive=True)
        except (serial.SerialException, OSError):
            if time.monotonic() > until:
                raise
            time.sleep(RETRY_S)


def main(task):
    """What it found, printed; exit 1 without."""
    until = time.monotonic() + task["patience_s"]
    text = ""
    port = opened(task["device"], until)
    if task["type"]:
        port.write(task["type"].encode())
    pressed = not task["see"]
    while time.monotonic() < until:
        try:
            text += port.read(max(1, port.in_waiting)).decode("utf-8", "replace")
        except (serial.SerialException, OSError):
            port.close()
            port = opened(task["device"], until)
            continue
        if not pressed and re.search(task["see"], text):
            port.write(task["press"].encode())
            pressed = True
        found = re.search(task["look_for"], text)
        if found:
            sys.stdout.write(found[1] + "\n")
            return 0
    sys.stdout.write("not found\n")
    return 1


if __name__ == "__main__":
    raise SystemExit(main(json.loads(sys.argv[1])))
