#!/usr/bin/env python3
"""A stand-in for labd: adds targets to the lab file, records itself as labd does, and can misbehave on demand."""

import hashlib
import json
import os
import subprocess
import sys
import time

#: The real program, which is asked about itself.
REAL = "labd"
LAB = os.environ.get("LABD_LAB", "")
EFFECTS = {"target add": "config", "config show": "observe", "daemons stop": "admin"}


def lab() -> bytes:
    try:
        with open(LAB, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def digest() -> "str | None":
    return hashlib.sha256(lab()).hexdigest() if os.path.exists(LAB) else None


def record(**fields: object) -> None:
    own = os.path.join(os.environ["XDG_STATE_HOME"], "labd", "argv.jsonl")
    for log in (os.environ.get("LABD_ARGV_LOG"), own):
        if log and os.path.isdir(os.path.dirname(log)):
            with open(log, "a") as file:
                file.write(json.dumps(fields) + "\n")


def main() -> int:
    words = sys.argv[1:]
    if words[:1] == ["commands"] or "--help" in words:
        os.execv(REAL, [REAL, *words])
    mono = time.monotonic_ns()
    identity = f"{os.getpid()}-{mono:x}-1"
    operation = " ".join(words[:2])
    record(rec="start", id=identity, t=time.time(), mono_ns=mono, pid=os.getpid(), cwd=os.getcwd(),
           argv=["labd", *words], program=os.path.abspath(sys.argv[0]),
           face="cli", lab=LAB, operation=operation if operation in EFFECTS else None,
           effect=EFFECTS.get(operation, "observe"), decision="permitted")  # fmt: skip
    before = digest()
    code = act(operation, words)
    record(rec="end", id=identity, t=time.time(), code=code, signal=None, lab_before=before, lab_after=digest(),
           stdout_head="", stderr_head="")  # fmt: skip
    return code


def act(operation: str, words: "list[str]") -> int:
    if operation == "target add":
        whole = lab() + b"[targets." + words[2].encode() + b"]\n"
        with open(f"{LAB}.{os.getpid()}", "wb") as file:
            file.write(whole)
        os.rename(f"{LAB}.{os.getpid()}", LAB)
        print(f"{words[2]}: added")
    elif operation == "config show":
        sys.stdout.buffer.write(lab())
    elif words[0] == "environment":
        print(json.dumps(dict(os.environ)))
    elif words[0] == "sleep":
        time.sleep(float(words[1]))
    elif words[0] == "count":  # prints 1, 2, 3 … over several runs
        with open("counter", "a+") as file:
            file.write("x")
            file.seek(0)
            print(f"count {len(file.read())}")
    elif words[0] == "fork":  # leaves a process in a session of its own behind
        child = subprocess.Popen(["/bin/sleep", "600"], start_new_session=True, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        print(child.pid)
    else:
        print(f"labd: no command {operation}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
