"""The console into a file by socat, started now, and the file read until what is looked for is in it. Types by a second
socat. One task, as arms/raw.py has it. socat ends when the port goes away, as it does unless told otherwise.
"""

import json
import os
import re
import subprocess  # noqa: TID251 - a script of its own, run in the sandbox
import sys
import time

PAUSE_S = 0.1
LOG = "console.log"


def typed(device, text):
    """Type it through another socat: the port is not held for one process alone."""
    subprocess.run(["socat", "-u", "-", f"{device},b115200,rawer"], input=text.encode(), check=False, timeout=20)


def main(task):
    """What is in the file, printed; exit 1 without."""
    until = time.monotonic() + task["patience_s"]
    log = subprocess.Popen(["socat", "-u", f"{task['device']},b115200,rawer", f"CREATE:{LOG}"])
    try:
        while not os.path.exists(LOG) and time.monotonic() < until:
            time.sleep(0.01)
        if task["type"]:
            typed(task["device"], task["type"])
        pressed = not task["see"]
        while time.monotonic() < until:
            with open(LOG, encoding="utf-8", errors="replace") as file:
                text = file.read()
            if not pressed and re.search(task["see"], text):
                typed(task["device"], task["press"])
                pressed = True
            found = re.search(task["look_for"], text)
            if found:
                sys.stdout.write(found[1] + "\n")
                return 0
            time.sleep(PAUSE_S)
        sys.stdout.write("not found\n")
        return 1
    finally:
        log.terminate()
        log.wait()


if __name__ == "__main__":
    raise SystemExit(main(json.loads(sys.argv[1])))
