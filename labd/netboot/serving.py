"""The daemon's side of network boot: one keeper process for each target that is served, and what it has reported.

Light, since every daemon imports it. Blocks; it is called from the worker threads of calls, and reads each keeper in a
thread of its own. Thread-safe. Every event goes to the target's chronicle and, like all that the servers say, to a log
file of the target.
"""

from __future__ import annotations

import json
import os
import queue
import shlex
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from labd import paths, shim
from labd.errors import Busy, LabdError, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from labd.chronicle import Chronicle
    from labd.netboot.link import Links
    from labd.netboot.orders import Process
    from labd.netboot.plan import Plan

#: Seconds that a keeper gets to serve, and to stop.
START_SECONDS, STOP_SECONDS = 25.0, 15.0

#: Bytes of a log; the one before it is kept as `.1`.
LOG_BYTES = 4 << 20

#: Control characters, which a file name that a board asks for may hold, in a log of lines.
_PLAIN = dict.fromkeys([*range(32), 127], "?")

#: A file that a board asks for in vain is told once in so many seconds.
MISSING_SECONDS = 60.0


def log_path(state: str, lab_path: str, target: str) -> str:
    """Where what the servers of a target say is kept."""
    return os.path.join(state, "netboot", paths.lab_id(lab_path), f"{target}.log")


class Served:
    """One target that is served: its keeper, and what that has reported."""

    def __init__(self, lab_path: str, target: str, plan: Plan, directory: str, process: Process) -> None:
        self.lab_path = lab_path
        self.target = target
        self.plan = plan
        self.directory = directory
        self.process = process
        self.pid = process.pid
        self.since = time.time()
        self.leases: dict[str, dict[str, Any]] = {}
        self.transfers = {"tftp": 0, "http": 0}
        self.bytes = 0
        self.ended: dict[str, Any] | None = None
        self.reports: queue.Queue[dict[str, Any]] = queue.Queue()
        """Those that `start` and `stop` wait for."""
        self.told: dict[tuple[str, str], float] = {}
        self.gone = False
        """Whether the interface is not there just now; it is served again when it is back."""

    def facts(self) -> dict[str, Any]:
        """What is known of it."""
        return {
            "target": self.target, "lab": self.lab_path, "running": self.ended is None, "pid": self.pid,
            "directory": self.directory, "since": self.since, "uptime_s": round(time.time() - self.since, 1),
            **self.plan.as_data(), "leases": list(self.leases.values()), "transfers": dict(self.transfers),
            "interface_gone": self.gone and self.ended is None,
            "bytes": self.bytes, "why": (self.ended or {}).get("message") or (self.ended or {}).get("why") or None,
        }  # fmt: skip


class Netboots:
    """All that one daemon serves. `runtime` and `state` are its directories, `log` takes a line."""

    def __init__(self, runtime: str, state: str, chronicle: Chronicle, log: Callable[[str], None]) -> None:
        self.runtime = runtime
        self.state = state
        self.chronicle = chronicle
        self.log = log
        self.lock = threading.RLock()
        """Held while anything is started, stopped or changed: one at a time."""
        self.served: dict[tuple[str, str], Served] = {}

    # --- what operations ask -----------------------------------------------------------------------------------------

    def start(self, lab_path: str, target: str, plan: Plan, links: Links, who: Mapping[str, Any],
              env: Mapping[str, str]) -> tuple[dict[str, Any], str]:  # fmt: skip
        """Serve a target; (facts, `started`, `unchanged`, or `restarted` when it was served by another plan).

        Returns when it really answers. Raises LabdError, naming what is in the way; then nothing is left behind.
        """
        with self.lock:
            running = self.find(lab_path, target)
            if running is not None and running.plan == plan:
                return running.facts(), "unchanged"
            self.not_another(lab_path, target, plan.interface)
            from ipaddress import IPv4Address

            address = IPv4Address(plan.host_ip)
            links.guard(plan.interface, target, address, gains=True, ours=[running.plan.host_ip] if running else [])
            if running is not None:
                self.stop(lab_path, target, who)
            served = self._launch(lab_path, target, plan, links, env)
            self.served[os.path.realpath(lab_path), target] = served
            self._tell(served, "started", who=who, interface=plan.interface, address=plan.cidr, root=plan.tftp_root,
                       pool=f"{plan.first}-{plan.last}", http=plan.url)  # fmt: skip
            return served.facts(), "started" if running is None else "restarted"

    def stop(self, lab_path: str, target: str, who: Mapping[str, Any]) -> bool:
        """End serving a target; whether it was served. Raises LabdError when something could not be put back."""
        with self.lock:
            served = self.served.pop((os.path.realpath(lab_path), target), None)
            if served is None or served.ended is not None:
                return False
            last = self._end(served)
            self._tell(served, "stopped", who=who, interface=served.plan.interface, why=last.get("message"))
            if last.get("report") == "failed":
                from labd.netboot.orders import raised

                raise raised(last)
            return True

    def find(self, lab_path: str, target: str) -> Served | None:
        """What serves a target just now."""
        served = self.served.get((os.path.realpath(lab_path), target))
        return None if served is None or served.ended is not None else served

    def changed(self, lab_path: str, target: str, plan: Plan) -> bool:
        """Whether a target is served by another plan than this."""
        served = self.find(lab_path, target)
        return served is not None and served.plan != plan

    def facts(self, lab_path: str, target: str) -> dict[str, Any] | None:
        """What is known of the last serving of a target: also of one that ended by itself."""
        served = self.served.get((os.path.realpath(lab_path), target))
        return None if served is None else served.facts()

    def list(self) -> list[dict[str, Any]]:
        """All that is served."""
        return [served.facts() for served in list(self.served.values()) if served.ended is None]

    def not_another(self, lab_path: str, target: str, interface: str) -> None:
        """Raises Busy when an interface is served for another target."""
        for key, served in self.served.items():
            if key != (os.path.realpath(lab_path), target) and served.ended is None and \
                    served.plan.interface == interface:  # fmt: skip
                same = os.path.realpath(lab_path) == served.lab_path
                words = "" if same else f"--lab {shlex.quote(served.lab_path)} "
                raise Busy(
                    f"{interface} is already being served, for {served.target} of {served.lab_path}; nothing was done",
                    hint=f"labd {words}netboot stop {shlex.quote(served.target)}",
                )

    def close(self) -> None:
        """End all."""
        for lab_path, target in list(self.served):
            try:
                self.stop(lab_path, target, {"face": "daemon"})
            except LabdError as error:
                self.log(f"netboot of {target}: {error.message}")

    # --- inside ------------------------------------------------------------------------------------------------------

    def _launch(self, lab_path: str, target: str, plan: Plan, links: Links, env: Mapping[str, str]) -> Served:
        from labd.netboot.link import root_words
        from labd.netboot.orders import Orders, raised
        from labd.platform import net

        program = net.find_program("dnsmasq", env.get("PATH"))
        if program is None:
            mac = sys.platform == "darwin"
            raise Unreachable("network boot needs dnsmasq, which is not installed",
                              hint="brew install dnsmasq" if mac else "sudo apt-get install dnsmasq-base")  # fmt: skip
        before = root_words()
        directory = os.path.join(self.runtime, "netboot", plan.interface)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        orders = Orders(plan, program, os.getuid(), f"{target} of {lab_path} (pid {os.getpid()})",
                        f"labd {links.words}netboot set -t {target}")  # fmt: skip
        argv = [*before, sys.executable, "-m", "labd.netboot.keeper", directory]
        process = shim.start_kept(argv, cwd="/", env=dict(os.environ))
        served = Served(os.path.realpath(lab_path), target, plan, directory, process)
        threading.Thread(target=self._read, args=(served,), daemon=True).start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(orders.as_data()).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            pass  # its end is a report
        first = self._wait(served, START_SECONDS)
        if first.get("report") != "ready":
            self._end(served)
            raise raised(first)
        served.pid = first["pid"]  # not that of a sudo before it
        return served

    def _wait(self, served: Served, seconds: float) -> dict[str, Any]:
        try:
            return served.reports.get(timeout=seconds)
        except queue.Empty:
            return {"report": "failed", "type": "TimedOut", "message":
                    f"what serves {served.plan.interface} did not answer within {seconds:.0f} s"}  # fmt: skip

    def _end(self, served: Served) -> dict[str, Any]:
        """Close its stdin and wait for its last report; then by force."""
        if served.process.stdin is not None:
            served.process.stdin.close()
        last = served.ended or self._wait(served, STOP_SECONDS)
        try:
            served.process.wait(5)
        except Exception:  # subprocess.TimeoutExpired, which only the shim may name
            served.process.kill()
            served.process.wait()
        return last

    def _read(self, served: Served) -> None:
        """Every report of a keeper until it has ended."""
        assert served.process.stdout is not None
        last: dict[str, Any] = {}
        said = ""
        for raw in served.process.stdout:
            try:
                report = json.loads(raw)
            except ValueError:
                said = raw.decode("utf-8", "replace").rstrip()
                self._log(served, said)
                continue
            match report.get("report"):
                case "log":
                    self._log(served, report["text"])
                case "event":
                    try:
                        self._event(served, report)
                    except Exception as error:  # its reports must be read on, whatever it says
                        self.log(f"netboot of {served.target}: {report}: {error!r}")
                case "ready":
                    served.reports.put(report)
                case _:
                    last = report
        served.process.stdout.close()
        served.process.wait()
        self._ended(served, last or self._why_gone(served, said))

    def _why_gone(self, served: Served, said: str) -> dict[str, Any]:
        """The last report of a keeper that made none, whose last words were `said`; what it left is cleared away."""
        from labd.netboot.engine import end_left
        from labd.netboot.link import asks_password, no_root, put_back
        from labd.netboot.orders import failure

        if asks_password(said):
            return failure(no_root("sudo asks for a password"))
        end_left(served.directory)  # it was killed, and its dnsmasq runs as this user
        gone = f"what serves {served.plan.interface} ended unexpectedly{': ' + said if said else ''}"
        try:
            put_back(served.plan.interface, served.directory, served.target)
        except (LabdError, OSError) as error:
            gone += f"; its addresses may still be there: {error}"
        return {"report": "failed", "type": "Unreachable", "message": gone}

    def _ended(self, served: Served, last: dict[str, Any]) -> None:
        served.ended = last
        served.reports.put(last)
        self._log(served, f"ended {last.get('message', '')}".rstrip())
        if last.get("report") == "failed":
            self._tell(served, "failed", why=last.get("message"))

    def _event(self, served: Served, report: dict[str, Any]) -> None:
        fields = {key: value for key, value in report.items() if key not in ("report", "event")}
        kind = report["event"]
        if kind == "lease":
            if fields["state"] == "del":
                served.leases.pop(fields["mac"], None)
            else:
                served.leases[fields["mac"]] = {"mac": fields["mac"], "ip": fields["ip"], "name": fields["name"],
                                                "client": fields["client"], "at": time.time()}  # fmt: skip
                served.told.clear()
        elif kind == "transfer":
            served.transfers[fields["proto"]] += 1
            served.bytes += fields["bytes"]
        elif kind in ("lost", "mended"):
            served.gone = kind == "lost"
        elif kind == "missing":
            now = time.monotonic()
            if now - served.told.get((fields["ip"], fields["file"]), -MISSING_SECONDS) < MISSING_SECONDS:
                return
            served.told[fields["ip"], fields["file"]] = now
        if kind != "missing" or fields["proto"] == "http":
            words = " ".join(f"{key}={value}" for key, value in fields.items() if value != "")
            self._log(served, f"{kind} {words}")
        self._tell(served, kind, **fields)

    def _tell(self, served: Served, kind: str, **fields: Any) -> None:
        self.chronicle.tell(served.lab_path, served.target, "netboot", kind, **fields)

    def _log(self, served: Served, text: str) -> None:
        """Append a line; the log starts anew at `LOG_BYTES`."""
        path = log_path(self.state, served.lab_path, served.target)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{time.time_ns() // 1_000_000 % 1000:03d}Z"
        try:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            if os.path.exists(path) and os.path.getsize(path) > LOG_BYTES:
                os.replace(path, path + ".1")
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"{stamp} {text.translate(_PLAIN)}\n")
        except OSError as error:
            self.log(f"netboot of {served.target}: the log can't be written: {error.strerror}")
