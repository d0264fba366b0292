"""A program that speaks as adb does of one device, ABC123, whose shell is this machine's sh. Stands at the process
boundary: what is around it is real. The folder beside it says how it is: `state` (device, unauthorized, none, two),
`screen.png` (what exec-out screencap -p sends)."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
TROUBLE = {
    "unauthorized": "error: device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set",
    "none": "* daemon not running; starting now at tcp:5037\n* daemon started successfully\n"
    "error: no devices/emulators found",
    "two": "error: more than one device/emulator",
}


def main(words: list[str]) -> int:
    state = (HERE / "adb-state").read_text()
    with open(HERE / "adb-calls", "a") as calls:
        calls.write(repr(words) + "\n")
    serial = ""
    if words[0] == "-s":
        serial, words = words[1], words[2:]
    if words == ["devices", "-l"]:
        print("List of devices attached")
        if state != "none":
            print(f"ABC123                 {'unauthorized' if state == 'unauthorized' else 'device'} usb:1-1 product:p "
                  "model:Tab_8 device:d transport_id:1")  # fmt: skip
        return 0
    if serial not in ("", "ABC123"):
        print(f"error: device '{serial}' not found", file=sys.stderr)
        return 1
    if state in TROUBLE:
        print(TROUBLE[state], file=sys.stderr)
        return 1
    if words[0] == "shell" and len(words) > 1:
        os.execv("/bin/sh", ["sh", "-c", "input() { printf '<%s>' \"$@\"; echo; }\n" + " ".join(words[1:])])
    if words == ["shell"]:
        os.execv("/bin/sh", ["sh"])
    if words == ["exec-out", "screencap", "-p"]:
        sys.stdout.buffer.write((HERE / "screen.png").read_bytes())
        return 0
    return 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
