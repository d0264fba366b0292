"""The process that serves one interface: `python -m labd.netboot.keeper DIR`, as root, its orders on stdin.

It holds the interface's lock, sets our address, runs dnsmasq and the HTTP server, reports on stdout, and looks after
all of it: an address that vanished comes back, a dnsmasq that died is started again. When its stdin ends, the daemon is
gone or wants it to stop: it ends what it started, puts the addresses back, and goes. What a killed one left (`undo`, a
dnsmasq of this DIR) is taken over by the next.
"""

from __future__ import annotations

import json
import os
import pwd
import select
import signal
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from labd.errors import Busy, LabdError, Unreachable
from labd.netboot.engine import Engine, who_has
from labd.netboot.fileserver import FileServer
from labd.netboot.link import FFX_ADDRESS, InterfaceLock, tool_run
from labd.netboot.orders import Orders, failure
from labd.netboot.probe import Asker
from labd.netboot.tree import sealed
from labd.netboot.undo import Undo
from labd.platform import net

if TYPE_CHECKING:
    from typing import NoReturn

#: Seconds that another DHCP server of the link gets to make itself known: before ours starts, and while ours answers
#: already, as some look for three seconds whether an address is free.
OTHERS_SECONDS, LATE_SECONDS = 0.5, 6.0
#: Seconds between looks at the interface and at dnsmasq.
LOOK_SECONDS = 2.0
#: A dnsmasq that ends so often within so many seconds is not started again.
DEATHS, DEATHS_SECONDS = 3, 30.0
#: Seconds between looks for a link that leads out of what is served.
SEAL_SECONDS = 10.0


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
        self.engine = Engine(directory, orders, self.net, report)
        self.index = 0
        self.carrier = False
        self.others: set[str] = set()
        """Other DHCP servers that were heard."""
        self.deaths: list[float] = []
        self.sealed = time.monotonic()
        """When it was last seen that nothing leads out of what is served."""

    def start(self) -> None:
        """Returns when DHCP, TFTP and HTTP answer. Raises LabdError, saying what is in the way."""
        name = self.plan.interface
        self.lock = InterfaceLock(name, self.orders.who)
        self.engine.prepare()
        self.net.up(name)
        self.undo.remove(FFX_ADDRESS)
        self.undo.add(self.plan.cidr)
        try:
            self.undo.add(self.plan.ula)
            self.engine.advertise = True
        except LabdError as error:
            self.report.log(f"no IPv6 on this link, so no router advertisements: {error.message}")
        link = self.net.links()[name]
        self.index, self.carrier = link.index, link.carrier
        self._listen()
        asker = self._asker()
        try:
            self._nobody_else(asker)
            self.engine.start()
            self.engine.answers(asker)
        except BaseException:
            if asker is not None:
                asker.close()
            raise
        self._listen_on(asker)
        if self.orders.uid != os.geteuid():
            _become(self.orders.uid)

    def _listen(self) -> None:
        """Open the HTTP port, and see that TFTP's is free."""
        plan = self.plan
        try:
            self.http = FileServer((plan.host_ip, plan.http_port), plan.tftp_root, plan.cidr, plan.content_type,
                                   self._served)  # fmt: skip
        except OSError as error:
            self._taken("tcp", plan.http_port, "HTTP", error, f"{self.orders.set_words} --http-port PORT")
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            try:
                sock.bind((plan.host_ip, 69))
            except OSError as error:
                self._taken("udp", 69, "TFTP", error, None)

    def _taken(self, kind: str, port: int, what: str, error: OSError, hint: str | None) -> NoReturn:
        """Raises Busy naming who has the port."""
        holder = self.net.port_holder(kind, port)
        who = f"is held by {holder}" if holder else f"can't be had: {error.strerror}"
        raise Busy(f"port {port} ({what}) of {self.plan.host_ip} {who}", hint=hint or who_has(kind, port))

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
        self.others |= asker.servers(OTHERS_SECONDS, first=True)
        self._alone()

    def _listen_on(self, asker: Asker | None) -> None:
        """Hear in a thread who else answers later; `look` acts upon it."""

        def listen(asker: Asker) -> None:
            deadline = time.monotonic() + LATE_SECONDS
            while (left := deadline - time.monotonic()) > 0:
                server = asker.hear(left)
                if server and server != self.plan.host_ip:
                    self.others.add(server)
            asker.close()

        if asker is not None:
            threading.Thread(target=listen, args=(asker,), daemon=True).start()

    def _alone(self) -> None:
        """Raises Busy when another DHCP server is known."""
        if self.others:
            raise Busy(
                f"another DHCP server answers on {self.plan.interface}: {', '.join(sorted(self.others))}; two would "
                "fight over each board",
                hint="stop that one, or use another interface: labd netboot devices",
            )

    # --- while it runs -----------------------------------------------------------------------------------------------

    def _served(self, answer: dict[str, Any]) -> None:
        """One answer of the HTTP server."""
        text = "http: {ip} {method} /{file} {code} {bytes} bytes {ms} ms".format(**answer)
        self.report.log(f"{text}: {answer['why']}" if answer["why"] else text)
        facts = {"proto": "http", "file": answer["file"], "ip": answer["ip"]}
        if answer["code"] == 404:
            self.report(report="event", event="missing", **facts)
        elif answer["method"] == "GET" and answer["code"] in (200, 206):
            whole = answer["bytes"] == answer["of"]
            self.report(report="event", event="transfer" if whole else "failed", bytes=answer["bytes"],
                        ms=answer["ms"], **facts)  # fmt: skip

    def look(self) -> None:
        """Mend what can be mended. Raises Unreachable when dnsmasq stays dead, Busy when somebody else serves."""
        self._alone()
        self._seal()
        try:
            link = self.net.links().get(self.plan.interface)
        except LabdError as error:
            self.report.log(f"the interface can't be looked at just now: {error.message}")
            return
        if link is None:
            if self.index:
                self.report(report="event", event="lost", interface=self.plan.interface)
                self.index = 0
            return
        if link.carrier and not self.carrier:
            self._ask_again()
        self.carrier = link.carrier
        back = link.index != self.index
        lacks = back or not link.has(self.plan.host_ip)
        if lacks or self.engine.pid is None:
            with _Root(self.orders.uid):
                self._mend(link.index, back=back, lacks=lacks)

    def _seal(self) -> None:
        """Raises Refused when a link leads out of the directory by now."""
        if time.monotonic() - self.sealed >= SEAL_SECONDS:
            sealed(self.plan.tftp_root)
            self.sealed = time.monotonic()

    def _ask_again(self) -> None:
        """The link came up: somebody may be there who was not before."""
        with _Root(self.orders.uid):
            asker = self._asker()
        if asker is not None:
            asker.ask()
        self._listen_on(asker)

    def _mend(self, index: int, *, back: bool, lacks: bool) -> None:
        if lacks:
            try:
                self._bring_back(index)
            except LabdError as error:  # it may be on its way out again: the next look tells
                self.report.log(f"the address can't be set just now: {error.message}")
                return
        if back:
            self.engine.end()
        if self.engine.pid is None:
            self._again(expected=back)

    def _bring_back(self, index: int) -> None:
        self.net.up(self.plan.interface)
        self.undo.add(self.plan.cidr)
        if self.engine.advertise:
            self.undo.add(self.plan.ula)
        self.index = index
        self.report(report="event", event="mended", interface=self.plan.interface, address=self.plan.cidr)

    def _again(self, *, expected: bool) -> None:
        """Start dnsmasq again."""
        if not expected:
            now = time.monotonic()
            self.deaths = [*(death for death in self.deaths if now - death < DEATHS_SECONDS), now]
            if len(self.deaths) >= DEATHS:
                raise Unreachable(
                    f"dnsmasq ended {DEATHS} times within {DEATHS_SECONDS:.0f} s: {self.engine.last_line}"
                )
            self.report(report="event", event="restarted", why=self.engine.last_line)
        self.engine.start()

    # --- the end -----------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End what was started and put the addresses back. Raises LabdError when an address stays."""
        if self.lock is None:
            return  # the interface is another's: nothing was done
        with _Root(self.orders.uid):
            try:
                self.engine.end()  # the HTTP server ends with this process
                self.engine.sweep()
                self.undo.all()
            finally:
                self.lock.close()


def _become(uid: int) -> None:
    """Open files with the rights of whoever asked; `_Root` takes root back."""
    user = pwd.getpwuid(uid)
    os.initgroups(user.pw_name, user.pw_gid)
    os.setegid(user.pw_gid)
    os.seteuid(uid)


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


def _run(directory: str, report: Reports) -> None:
    lines = sys.stdin.buffer
    keeper = Keeper(directory, Orders.of(json.loads(lines.readline())), report)
    try:
        keeper.start()
        report(report="ready", pid=os.getpid())
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
