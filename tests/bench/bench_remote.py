"""A call on another machine beside `ssh host true`, over one warm control connection, interleaved; a real sshd.

Target: a no-op there (`serial show` of a console) at most 1.2× `ssh host true`. The far shell reads no start-up files.
The last row is the same question asked by hand, labd run there by ssh.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import time

from tests.conftest import LABD, until
from tests.remote.far import a_far_machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    count = 11 if parser.parse_args().quick else 41
    with a_far_machine() as far:
        far.near.env.pop("LABD_ARGV_LOG")
        far.lab()
        far.near("serial", "watch", "dut")
        until("the login prompt", lambda: "login:" in far.near.out("serial", "log", "dut"))
        (control,) = [path for path in (far.near.runtime / "labd" / "ssh").iterdir() if not path.suffix]
        ssh = ["ssh", "-F", str(far.root / "ssh.conf"), "-o", f"ControlPath={control}", far.ssh]
        cases = {
            "ssh host true": [*ssh, "true"],
            "serial show, there": [LABD, "serial", "show", "dut"],
            "serial log, there": [LABD, "serial", "log", "dut", "--tail", "20"],
            "serial send, there": [LABD, "serial", "send", "dut", " ", "--no-newline"],
            "ssh host labd daemons": [*ssh, f"{far.command} daemons"],
        }
        times: dict[str, list[float]] = {name: [] for name in cases}
        env = {**far.near.env, "PATH": far.near.env["PATH"].partition(":")[2]}  # ssh itself, not the tests' wrapper
        for _ in range(count):
            for name, words in cases.items():
                began = time.perf_counter()
                subprocess.run(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
                times[name].append(time.perf_counter() - began)
    bare = statistics.median(times["ssh host true"])
    print(f"{'':28}{'ms':>8}{'ratio':>8}")
    for name, found in times.items():
        print(f"  {name:26}{statistics.median(found) * 1e3:8.1f}{statistics.median(found) / bare:8.2f}")


if __name__ == "__main__":
    main()
