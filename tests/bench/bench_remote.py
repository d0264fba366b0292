"""A call on another machine beside `ssh host true`, over one warm control connection, interleaved; a real sshd.

    python -m tests.bench.bench_remote [--quick] [--rtt MS]

Target: a no-op there (`serial show` of a console) at most 1.2× `ssh host true`. Both start a program here; ours is in
Python, whose bare start is shown too, and `asked by a program` is the same call without one. The far shell reads no
start-up files. `--rtt` puts a network of that round trip in between.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import statistics
import subprocess
import sys
import threading
import time

from labd.client import Client
from tests.conftest import LABD, until
from tests.remote.far import a_far_machine


class Network:
    """A port that leads to another one, each byte `delay_s` later."""

    def __init__(self, port: int, delay_s: float) -> None:
        self.to = port
        self.delay_s = delay_s
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self._spawn(self._accept)

    def _spawn(self, run: object, *args: object) -> None:
        threading.Thread(target=run, args=args, daemon=True).start()  # type: ignore[arg-type]

    def _accept(self) -> None:
        while True:
            near, _ = self.listener.accept()
            far = socket.create_connection(("127.0.0.1", self.to))
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._spawn(self._carry, near, far)
            self._spawn(self._carry, far, near)

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                threading.Timer(self.delay_s, self._send, (sink, data)).start()

    def _send(self, sink: socket.socket, data: bytes) -> None:
        with contextlib.suppress(OSError):
            sink.sendall(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rtt", type=float, default=0.0, metavar="MS", help="round trip of the network between")
    options = parser.parse_args()
    with a_far_machine() as far:
        far.near.env.pop("LABD_ARGV_LOG")
        port = Network(far.port, options.rtt / 2000).port if options.rtt else far.port
        destination = far.ssh.replace(f":{far.port}", f":{port}")
        far.know(far.root / "host.pub", port)
        far.lab(ssh=destination)
        far.near("serial", "watch", "dut")
        until("the login prompt", lambda: "login:" in far.near.out("serial", "log", "dut"))
        (control,) = [path for path in (far.near.runtime / "labd" / "ssh").iterdir() if not path.suffix]
        ssh = ["ssh", "-F", str(far.root / "ssh.conf"), "-o", f"ControlPath={control}", destination]
        cases = {
            "ssh host true": [*ssh, "true"],
            "python -c pass": [sys.executable, "-c", "pass"],
            "serial show, there": [LABD, "serial", "show", "dut"],
            "serial log, there": [LABD, "serial", "log", "dut", "--tail", "20"],
            "serial send, there": [LABD, "serial", "send", "dut", " ", "--no-newline"],
            "ssh host labd daemons": [*ssh, f"{far.command} daemons"],
        }
        times: dict[str, list[float]] = {name: [] for name in (*cases, "asked by a program")}
        env = {**far.near.env, "PATH": far.near.env["PATH"].partition(":")[2]}  # ssh itself, not the tests' wrapper
        with Client(far.near.env) as client:
            for _ in range(11 if options.quick else 41):
                for name, words in cases.items():
                    began = time.perf_counter()
                    subprocess.run(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
                    times[name].append(time.perf_counter() - began)
                began = time.perf_counter()
                client.request("serial.show", {"target": "dut"}, lab=str(far.near.lab))
                times["asked by a program"].append(time.perf_counter() - began)
    bare = statistics.median(times["ssh host true"])
    print(f"{'round trip':12}{options.rtt:6.1f} ms{'ms':>13}{'ratio':>8}")
    for name, found in times.items():
        print(f"  {name:26}{statistics.median(found) * 1e3:8.1f}{statistics.median(found) / bare:8.2f}")


if __name__ == "__main__":
    main()
