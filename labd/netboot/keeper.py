"""The process that serves one interface: `python -m labd.netboot.keeper DIR`, as root, its orders on stdin.

It holds the interface's lock, sets our address, runs dnsmasq and the HTTP server, reports on stdout, and looks after
all of it: an address that vanished comes back, a dnsmasq that died is started again. When its stdin ends, the daemon is
gone or wants it to stop: it ends what it started, puts the addresses back, and goes. What a killed one left (`undo`, a
dnsmasq of this DIR) is taken over by the next.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import select
import signal
import sys
import threading
import time
from ipaddress import ip_interface
from typing import TYPE_CHECKING, Any

from labd import shim
from labd.errors import Busy, LabdError, Unreachable
from labd.netboot import dnsmasq
from labd.netboot.fileserver import FileServer
from labd.netboot.link import InterfaceLock, tool_run
from labd.netboot.orders import Orders, failure
from labd.netboot.probe import MAC_TEXT, NO_FILE, XIDS, Asker, tftp_answers
from labd.platform import net
from labd.platform.processes import end_processes, with_argument

if TYPE_CHECKING:
    from labd.netboot.orders import Process
    from labd.platform.net import Link, Net

#: Seconds that another DHCP server of the link gets to make itself known before ours starts.
OTHERS_SECONDS = 1.0
#: Seconds that dnsmasq gets to answer.
ANSWER_SECONDS = 5.0
#: Seconds between looks at the interface and at dnsmasq.
LOOK_SECONDS = 2.0
#: A dnsmasq that ends so often within so many seconds is not started again.
DEATHS, DEATHS_SECONDS = 3, 30.0
#: What mode ffx gives the interface, which netboot takes away.
FFX_ADDRESS = "fe80::1/64"


class Reports:
    """What the daemon hears: one JSON object a line. Thread-safe; never raises, since the daemon may be gone."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.lock = threading.Lock()

    def __call__(self, **fields: Any) -> None:
        """Write one."""
        line = json.dumps(fields, separators=(",", ":")).encode() + b"\n"
        with self.lock:
            try:
                while line:
                    line = line[os.write(self.fd, line) :]
            except OSError:
                pass

    def log(self, text: str) -> None:
        """A line for the log."""
        self(report="log", text=text)


class Undo:
    """What was changed at the interface, kept in a file from before it is changed until it is changed back."""

    def __init__(self, interface: Net, name: str, path: str) -> None:
        self.net = interface
        self.name = name
        self.path = path
        try:
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
        except (OSError, ValueError):
            data = {}
        self.added: list[str] = data.get("added", [])
        self.removed: list[str] = data.get("removed", [])

    def add(self, cidr: str) -> None:
        """Give the interface an address that it lacks."""
        if not self.net.links()[self.name].has(cidr):
            self._note(self.added, cidr)
            self.net.add(self.name, cidr)

    def remove(self, cidr: str) -> None:
        """Take an address away that is in the way."""
        if self.net.links()[self.name].has(cidr):
            self._note(self.removed, cidr)
            self.net.remove(self.name, cidr)

    def _note(self, where: list[str], cidr: str) -> None:
        if cidr not in where:
            where.append(cidr)
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump({"added": self.added, "removed": self.removed}, file)

    def _of_ours(self, link: Link) -> list[str]:
        """What was added, and what the system gave itself when it heard our own router advertisements."""
        six = [ip_interface(cidr).network for cidr in self.added if ":" in cidr]
        made = [cidr for cidr in link.inet6 if ip_interface(cidr).network in six]
        return [*(found for cidr in self.added for found in link.cidrs(cidr) if found not in made), *made]

    def all(self) -> None:
        """Put everything back, as far as the interface is still there. Raises the first failure, having tried all."""
        link = self.net.links().get(self.name)
        todo = []
        if link is not None:
            todo += [(self.net.remove, cidr) for cidr in self._of_ours(link)]
            todo += [(self.net.add, cidr) for cidr in self.removed if not link.has(cidr)]
        failed: LabdError | None = None
        for act, cidr in todo:
            try:
                act(self.name, cidr)
            except LabdError as error:
                failed = failed or error
        self.added, self.removed = [], []
        if os.path.exists(self.path):
            os.unlink(self.path)
        if failed is not None:
            raise failed


class Keeper:
    """Serving one plan. `start`, then `look` until it is to end, then `stop` in any case."""

    def __init__(self, directory: str, orders: Orders, report: Reports) -> None:
        self.directory = directory
        self.orders = orders
        self.plan = orders.plan
        self.report = report
        self.net = net.current(tool_run)
        self.undo = Undo(self.net, self.plan.interface, os.path.join(directory, "undo"))
        self.lock: InterfaceLock | None = None
        self.http: FileServer | None = None
        self.process: Process | None = None
        self.index = 0
        self.deaths: list[float] = []
        self.last_line = ""
        self.advertise = False

    def start(self) -> None:
        """Returns when DHCP, TFTP and HTTP answer. Raises LabdError, saying what is in the way."""
        name = self.plan.interface
        self.lock = InterfaceLock(name, self.orders.who)
        mine = with_argument("dnsmasq", f"--dhcp-leasefile={dnsmasq.leases_path(self.directory)}", _ps)
        if mine:
            self.report.log(f"ending the dnsmasq that a killed one left: pid {', '.join(map(str, mine))}")
            end_processes(mine)
        self.net.up(name)
        self.undo.remove(FFX_ADDRESS)
        self.undo.add(self.plan.cidr)
        try:
            self.undo.add(self.plan.ula)
            self.advertise = True
        except LabdError as error:
            self.report.log(f"no IPv6 on this link, so no router advertisements: {error.message}")
        self.index = self.net.links()[name].index
        self._listen()
        asker = self._asker()
        try:
            self._nobody_else(asker)
            self._write_script()
            self._run_dnsmasq()
            self._answers(asker)
        finally:
            if asker is not None:
                asker.close()
        if self.orders.uid != os.geteuid():
            os.seteuid(self.orders.uid)  # files are opened with the rights of whoever asked; `stop` takes root back

    def _listen(self) -> None:
        """Open the HTTP port, and see that TFTP's is free."""
        plan = self.plan
        try:
            self.http = FileServer((plan.host_ip, plan.http_port), plan.tftp_root, plan.cidr, plan.content_type,
                                   self._served)  # fmt: skip
        except OSError as error:
            self._taken("tcp", plan.http_port, "HTTP", error, f"{self.orders.set_words} --http-port PORT")
        assert self.http is not None
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        import socket

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            try:
                sock.bind((plan.host_ip, 69))
            except OSError as error:
                self._taken("udp", 69, "TFTP", error, None)

    def _taken(self, kind: str, port: int, what: str, error: OSError, hint: str | None) -> None:
        """Raises Busy naming who has the port."""
        holder = self.net.port_holder(kind, port)
        who = f"is held by {holder}" if holder else f"can't be had: {error.strerror}"
        raise Busy(f"port {port} ({what}) of {self.plan.host_ip} {who}", hint=hint or _who_has("udp", port))

    def _asker(self) -> Asker | None:
        try:
            return Asker(self.net, self.plan.interface)
        except OSError as error:
            self.report.log(f"DHCP can't be asked from here: port 68: {error.strerror}")
            return None

    def _nobody_else(self, asker: Asker | None) -> None:
        """Raises Busy when a DHCP server answers already."""
        link = self.net.links()[self.plan.interface]
        if asker is None or not link.carrier:
            return
        others = asker.servers(OTHERS_SECONDS, first=True)
        if others:
            raise Busy(
                f"another DHCP server answers on {link.name} already: {', '.join(sorted(others))}; two would fight "
                "over each board",
                hint="stop that one, or use another interface: labd netboot devices",
            )

    def _run_dnsmasq(self) -> None:
        """Start it, and a thread that reads what it says."""
        user = pwd.getpwuid(self.orders.uid)
        group = grp.getgrgid(user.pw_gid).gr_name
        argv = dnsmasq.argv(self.plan, self.orders.dnsmasq, self.directory, user.pw_name, group,
                            advertise=self.advertise)  # fmt: skip
        self.process = shim.start_dnsmasq(argv)
        threading.Thread(target=self._read_log, args=(self.process,), daemon=True).start()

    def _write_script(self) -> None:
        """The script that dnsmasq calls, and the FIFO that it writes into."""
        fifo, script = os.path.join(self.directory, "events"), dnsmasq.script_path(self.directory)
        self._sweep()
        os.mkfifo(fifo, 0o600)
        with open(script, "w", encoding="utf-8") as file:
            file.write(dnsmasq.script(fifo))
        os.chmod(script, 0o700)
        for path in (fifo, script):
            os.chown(path, self.orders.uid, -1)
        threading.Thread(target=self._read_events, args=(os.open(fifo, os.O_RDWR),), daemon=True).start()

    def _sweep(self) -> None:
        for name in ("events", "told"):
            path = os.path.join(self.directory, name)
            if os.path.exists(path):
                os.unlink(path)

    def _answers(self, asker: Asker | None) -> None:
        """Wait until a board would be answered. Raises Busy or Unreachable with dnsmasq's own words."""
        deadline = time.monotonic() + ANSWER_SECONDS
        dhcp = asker is None
        while time.monotonic() < deadline:
            if self.process is None or self.process.poll() is not None:
                self._ended_at_start()
            dhcp = dhcp or (asker is not None and self.plan.host_ip in asker.servers(0.3, first=True))
            if dhcp and tftp_answers(self.plan.host_ip, 0.5):
                return
        lacks = "TFTP" if dhcp else "DHCP"
        raise Unreachable(f"dnsmasq runs, but {lacks} does not answer on {self.plan.interface}: {self.last_line}",
                          hint="does a firewall of this machine stop UDP ports 67 and 69?")  # fmt: skip

    def _ended_at_start(self) -> None:
        time.sleep(0.1)  # its last words are still on their way
        if "in use" in self.last_line:
            port = 69 if "tftp" in self.last_line.lower() or " 69" in self.last_line else 67
            holder = self.net.port_holder("udp", port)
            raise Busy(f"UDP port {port} is held by {holder or 'another program'}: dnsmasq: {self.last_line}",
                       hint=_who_has("udp", port))  # fmt: skip
        raise Unreachable(f"dnsmasq ended at once: {self.last_line or 'it said nothing'}")

    # --- what comes in -----------------------------------------------------------------------------------------------

    def _read_log(self, process: Process) -> None:
        assert process.stdout is not None
        for raw in process.stdout:
            line = raw.decode("utf-8", "replace").rstrip()
            if not dnsmasq.worth_keeping(line) or any(own in line for own in (MAC_TEXT, NO_FILE, *XIDS)):
                continue  # what is said of our own questions too
            self.last_line = line.removeprefix("dnsmasq: ").removeprefix("failed to ").strip()
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
                what, *words = line.decode("utf-8", "replace").split("\t")
                if what == "tftp":
                    size, ip, path = words[:3]
                    self.report(report="event", event="transfer", proto="tftp", ip=ip, bytes=int(size),
                                file=dnsmasq.below(path, self.plan.tftp_root))  # fmt: skip
                else:
                    mac, ip, name, vendor, tags = (words + [""] * 5)[:5]
                    self.report(report="event", event="lease", state=what, mac=mac, ip=ip, name=name, vendor=vendor,
                                client=_client(tags))  # fmt: skip

    def _served(self, answer: dict[str, Any]) -> None:
        """One answer of the HTTP server."""
        self.report.log("http: {ip} {method} /{file} {code} {bytes} bytes {ms} ms".format(**answer))
        facts = {"proto": "http", "file": answer["file"], "ip": answer["ip"]}
        if answer["code"] == 404:
            self.report(report="event", event="missing", **facts)
        elif answer["method"] == "GET" and answer["code"] in (200, 206):
            whole = answer["bytes"] == answer["of"]
            self.report(report="event", event="transfer" if whole else "failed", bytes=answer["bytes"],
                        ms=answer["ms"], **facts)  # fmt: skip

    # --- while it runs -----------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Mend what can be mended. Raises Unreachable when dnsmasq does not stay alive."""
        link = self.net.links().get(self.plan.interface)
        if link is None:
            if self.index:
                self.report(report="event", event="lost", interface=self.plan.interface)
                self.index = 0
            return
        back = link.index != self.index
        lacks = back or not link.has(self.plan.host_ip)
        if lacks or self.process is None or self.process.poll() is not None:
            with _Root(self.orders.uid):
                self._mend(link.index, back=back, lacks=lacks)

    def _mend(self, index: int, *, back: bool, lacks: bool) -> None:
        if lacks:
            self._bring_back(index)
        if back:
            self._end_dnsmasq()
        if self.process is None or self.process.poll() is not None:
            self._again(expected=back)

    def _bring_back(self, index: int) -> None:
        self.net.up(self.plan.interface)
        self.undo.add(self.plan.cidr)
        if self.advertise:
            self.undo.add(self.plan.ula)
        self.index = index
        self.report(report="event", event="mended", interface=self.plan.interface, address=self.plan.cidr)

    def _again(self, *, expected: bool) -> None:
        """Start dnsmasq again."""
        if not expected:
            now = time.monotonic()
            self.deaths = [*(death for death in self.deaths if now - death < DEATHS_SECONDS), now]
            if len(self.deaths) >= DEATHS:
                raise Unreachable(f"dnsmasq ended {DEATHS} times within {DEATHS_SECONDS:.0f} s: {self.last_line}")
            self.report(report="event", event="restarted", why=self.last_line)
        self._run_dnsmasq()

    # --- the end -----------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End what was started and put the addresses back. Raises LabdError when an address stays."""
        if self.lock is None:
            return  # the interface is another's: nothing was done
        with _Root(self.orders.uid):
            try:
                if self.http is not None:
                    self.http.shutdown()
                    self.http.server_close()
                self._end_dnsmasq()
                self._sweep()
                self.undo.all()
            finally:
                self.lock.close()

    def _end_dnsmasq(self) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        for end in (process.terminate, process.kill):
            if process.poll() is None:
                end()
                deadline = time.monotonic() + 3
                while process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.01)


class _Root:
    """`with _Root(uid):` root's rights for a while, where the process went on with those of `uid`."""

    def __init__(self, uid: int) -> None:
        self.uid = uid

    def __enter__(self) -> None:
        if os.getuid() == 0:
            os.seteuid(0)

    def __exit__(self, *exc: object) -> None:
        if os.getuid() == 0:
            os.seteuid(self.uid)


def _client(tags: str) -> str:
    """Which kind of client the tags that dnsmasq gave it mean."""
    words = tags.split()
    known = ("ipxe", "pi", "httpclient", *dict.fromkeys(dnsmasq.ARCHITECTURES.values()))
    return next((word for word in known if word in words), "")


def _who_has(kind: str, port: int) -> str:
    """A hint for whoever wants a port that is taken."""
    return f"sudo lsof -nP -i{kind.upper()}:{port}  # names the program to stop"


def _ps() -> bytes:
    return shim.run_captured(["ps", "-axo", "pid=,command="], 5)[1]


def _run(directory: str, report: Reports) -> None:
    lines = sys.stdin.buffer
    keeper = Keeper(directory, Orders.of(json.loads(lines.readline())), report)
    try:
        keeper.start()
        pid = keeper.process.pid if keeper.process else None
        report(report="ready", pid=os.getpid(), dnsmasq=pid)
        while not select.select([lines], [], [], LOOK_SECONDS)[0]:
            keeper.look()
    finally:
        keeper.stop()


def main(argv: list[str]) -> int:
    """Serve until stdin ends. What went wrong is the last report."""
    report = Reports(os.dup(1))
    os.dup2(2, 1)  # nothing but reports goes to the daemon
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        _run(argv[0], report)
    except LabdError as error:
        report(**failure(error))
        return error.exit_code
    except SystemExit:
        report(report="ended", why="it was told to by a signal")
        return 0
    report(report="ended", why="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
