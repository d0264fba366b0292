"""dnsmasq as it runs: started, asked whether it answers, listened to, ended. One keeper's; it knows no interface rule.

What it says goes into the log, and what happened into reports: leases by its script, which writes a line into our
FIFO, and transfers by TFTP by its log.
"""

from __future__ import annotations

import grp
import os
import pwd
import threading
import time
from typing import TYPE_CHECKING

from labd import shim
from labd.errors import Busy, Unreachable
from labd.netboot import dnsmasq
from labd.netboot.probe import MAC_TEXT, NO_FILE, XIDS, tftp_answers
from labd.platform.processes import end_processes, with_argument

if TYPE_CHECKING:
    from labd.netboot.keeper import Reports
    from labd.netboot.orders import Orders, Process
    from labd.netboot.probe import Asker
    from labd.platform.net import Net

#: Seconds that dnsmasq gets to answer, and to end.
ANSWER_SECONDS, END_SECONDS = 5.0, 3.0


class Engine:
    """One dnsmasq after the other for one set of orders; `directory` is the keeper's."""

    def __init__(self, directory: str, orders: Orders, net: Net, report: Reports) -> None:
        self.directory = directory
        self.orders = orders
        self.plan = orders.plan
        self.net = net
        self.report = report
        self.advertise = False
        """Whether the link has IPv6, so that routers can be advertised."""
        self.last_line = ""
        self._process: Process | None = None

    @property
    def pid(self) -> int | None:
        """The process, if it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def prepare(self) -> None:
        """End the dnsmasq that a killed keeper of this directory left; make the script and its FIFO."""
        left = end_left(self.directory)
        if left:
            self.report.log(f"ended the dnsmasq that a killed one left: pid {', '.join(map(str, left))}")
        self.sweep()
        fifo, script = os.path.join(self.directory, "events"), dnsmasq.script_path(self.directory)
        os.mkfifo(fifo, 0o600)
        with open(script, "w", encoding="utf-8") as file:
            file.write(dnsmasq.script(fifo))
        os.chmod(script, 0o700)
        for path in (fifo, script):
            os.chown(path, self.orders.uid, -1)
        threading.Thread(target=self._read_events, args=(os.open(fifo, os.O_RDWR),), daemon=True).start()

    def sweep(self) -> None:
        """Take script and FIFO away."""
        for name in ("events", "told"):
            path = os.path.join(self.directory, name)
            if os.path.exists(path):
                os.unlink(path)

    def start(self) -> None:
        """Start it, and a thread that reads what it says."""
        user = pwd.getpwuid(self.orders.uid)
        group = grp.getgrgid(user.pw_gid).gr_name
        argv = dnsmasq.argv(self.plan, self.orders.dnsmasq, self.directory, user.pw_name, group,
                            advertise=self.advertise)  # fmt: skip
        self._process = shim.start_dnsmasq(argv)
        threading.Thread(target=self._read_log, args=(self._process,), daemon=True).start()

    def answers(self, asker: Asker | None) -> None:
        """Wait until a board would be answered. Raises Busy or Unreachable with dnsmasq's own words."""
        deadline = time.monotonic() + ANSWER_SECONDS
        dhcp = asker is None
        while time.monotonic() < deadline:
            if self.pid is None:
                raise self._why_ended()
            dhcp = dhcp or (asker is not None and self.plan.host_ip in asker.servers(0.06, first=True))
            if dhcp and tftp_answers(self.plan.host_ip, 0.2):
                return
        raise Unreachable(
            f"dnsmasq runs, but {'TFTP' if dhcp else 'DHCP'} does not answer on {self.plan.interface}: "
            f"{self.last_line}",
            hint="does a firewall of this machine stop UDP ports 67 and 69?",
        )

    def end(self) -> None:
        """SIGTERM, then SIGKILL."""
        process, self._process = self._process, None
        if process is None:
            return
        for end in (process.terminate, process.kill):
            if process.poll() is None:
                end()
                deadline = time.monotonic() + END_SECONDS
                while process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.01)

    def _why_ended(self) -> Busy | Unreachable:
        """What to say of one that ended at once."""
        time.sleep(0.1)  # its last words are still on their way
        if "in use" not in self.last_line:
            return Unreachable(f"dnsmasq ended at once: {self.last_line or 'it said nothing'}")
        port = 69 if "tftp" in self.last_line.lower() else 67
        holder = self.net.port_holder("udp", port) or "another program"
        return Busy(f"UDP port {port} is held by {holder}: dnsmasq: {self.last_line}", hint=who_has("udp", port))

    def _read_log(self, process: Process) -> None:
        assert process.stdout is not None
        for raw in process.stdout:
            line = raw.decode("utf-8", "replace").rstrip()
            if not dnsmasq.worth_keeping(line) or any(own in line for own in (MAC_TEXT, NO_FILE, *XIDS)):
                continue  # what is said of our own questions too
            if "FAILED to start up" not in line:  # which it says after the reason
                self.last_line = line.removeprefix("dnsmasq: ").strip()
            self.report.log(line)
            event = dnsmasq.event_in(line, self.plan.tftp_root)
            if event:
                self.report(report="event", **event)

    def _read_events(self, fd: int) -> None:
        rest = b""
        while True:
            rest += os.read(fd, 65536)
            *lines, rest = rest.split(b"\n")
            for line in lines:
                state, mac, ip, name, vendor, tags = (line.decode("utf-8", "replace").split("\t") + [""] * 6)[:6]
                self.report(report="event", event="lease", state=state, mac=mac, ip=ip, name=name, vendor=vendor,
                            client=dnsmasq.client(tags))  # fmt: skip


def who_has(kind: str, port: int) -> str:
    """A hint for whoever wants a port that is taken."""
    return f"sudo lsof -nP -i{kind.upper()}:{port}  # names the program to stop"


def end_left(directory: str) -> list[int]:
    """End what runs of the dnsmasq of a keeper that was killed; the processes, which may have been none."""
    found = with_argument("dnsmasq", f"--dhcp-leasefile={dnsmasq.leases_path(directory)}", _ps)
    end_processes(found)
    return found


def _ps() -> bytes:
    return shim.run_captured(["ps", "-axo", "pid=,command="], 5)[1]
