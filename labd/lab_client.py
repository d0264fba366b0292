"""The bench for Python programs: `with Lab() as lab: lab["pico"].console.run("true")`. Thread-safe, no trio.

Owns the connections to the daemon, which it starts when an operation needs it. Everything that acts goes to the daemon
as the operation of the same name, and so is permitted and recorded like a typed command; what was captured is read
from the journal's files. Errors are `labd.errors` types, with the exit code and the hint of the command line.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING, Any

from labd import __version__, client, paths, permission, policy
from labd.argv import operation_named
from labd.call import Call
from labd.client import Client, Reply
from labd.errors import LabdError, NotFound, Unreachable, nearest
from labd.lab_console import Console
from labd.operations.model import Args
from labd.remote_route import Place, place_of

if TYPE_CHECKING:
    import types
    from collections.abc import Iterator, Mapping

    from labd import lab as labfile

#: Notes of operations (what the command line says on stderr) go here, at INFO.
logger = logging.getLogger("labd")


class Lab:
    """A lab file and the daemon that runs it.

    `path` is the lab file (else $LABD_LAB, else lab.toml in the config directory), `env` the environment that decides
    where daemon and state are (else this process's). `timeout_s` is how long the daemon may take to answer beyond what
    the call itself waits for. Use as a context manager, or `close` it. `lab["pico"]` is a target. Any thread may use
    it.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, env: Mapping[str, str] | None = None,
        timeout_s: float = 30.0,
    ) -> None:  # fmt: skip
        self.env = dict(os.environ if env is None else env)
        self.timeout_s = timeout_s
        self.path = paths.lab_path(self.env, os.getcwd(), None if path is None else os.fspath(path))
        self._lock = threading.Lock()
        self._idle: list[Client] = []
        self._busy: set[Client] = set()
        self._targets: dict[str, Target] = {}
        self._state: str | None = None
        self._closed = False

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: types.TracebackType | None) -> None:  # fmt: skip
        self.close()

    def __repr__(self) -> str:
        return f"<Lab {self.path}>"

    def __getitem__(self, target: str) -> Target:
        """The target of this name. Raises NotFound with near matches."""
        self.config().target(target)
        with self._lock:
            return self._targets.setdefault(target, Target(self, target))

    def __iter__(self) -> Iterator[str]:
        return iter(list(self.config().targets))

    def __len__(self) -> int:
        return len(self.config().targets)

    def __contains__(self, target: object) -> bool:
        return target in self.config().targets

    @property
    def target(self) -> Target:
        """The sole target. Raises NotFound when there is none or more than one."""
        return self[self.config().resolve_target(None, self.own_call())]

    def config(self) -> labfile.Lab:
        """The lab file as it is now. Raises NotFound when there is none, LabdError when it is broken."""
        return self.own_call().lab()

    def call(self, method: str, *, timeout_s: float | None = None, **params: Any) -> Any:
        """Run any operation by its dotted name with its parameters, `lab.call("serial.show", target="pico")`.

        Returns what `--json` prints; of an operation that answers with a stream, the list of its items (such an
        operation must end by itself). Raises the operation's error. Starts the daemon when it does not run.
        """
        items: list[Any] = []
        reply = self.ask(method, params, timeout_s=timeout_s, on_item=items.append)
        return items if operation_named(method).stream else reply.result

    def ask(self, method: str, params: dict[str, Any], *, timeout_s: float | None = None,
            on_item: Any = None) -> Reply:  # fmt: skip
        """As `call`, with the exit code and the notes."""
        wanted = {name: value for name, value in params.items() if value is not None}
        connection = self._take()
        try:
            reply = connection.ask(method, wanted, lab=self.path, timeout_s=timeout_s or self.timeout_s,
                                   on_item=on_item)  # fmt: skip
        finally:
            self._give_back(connection, connection.in_step)
        for note in reply.notes:
            logger.info("%s", note)
        return reply

    def close(self) -> None:
        """Hang up; what still runs for this object is cancelled at the daemon. Capture goes on."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            targets, busy = list(self._targets.values()), list(self._busy)
        for target in targets:
            target.hang_up()
        for connection in busy:
            connection.interrupt()
        for connection in idle:
            connection.close()

    # --- for Target and Console ------------------------------------------------------------------------------------

    @property
    def used(self) -> dict[str, Target]:
        """The targets that were asked for so far, by name."""
        with self._lock:
            return dict(self._targets)

    def own_call(self) -> Call:
        """A call made in this very process: to read the lab file by the rules that all faces share."""
        call = Call(
            face="python", argv=[], cwd=os.getcwd(), env=self.env, out=_nowhere, err=_nowhere,
            caller={"pid": os.getpid(), "uid": os.getuid()},
        )  # fmt: skip
        call.lab_flag = self.path
        return call

    def permit(self, method: str, target: str) -> None:
        """Raise Refused unless the policy in force permits the operation here: for what is read without the daemon."""
        call, op = self.own_call(), operation_named(method)
        level, who, need = permission.decide(op, Args({"target": target}), call, None)
        policy.check(op, level, who, need)

    def journal_dir(self, target: str, interface: str) -> str:
        """Where the journal of an interface is: in the daemon's state directory, or ours while none runs.

        Raises Unreachable for one of another machine: operations read that, there.
        """
        place = self._place(target, interface)
        if place is not None:
            raise Unreachable(
                f"{target}.{interface} is wired to host {place.host!r}, and its journal is there; operations read it",
                hint=f'lab.call("serial.log", target="{target}", interface="{interface}")',
            )
        state = self._state
        if state is None:
            try:
                with Client(self.env, timeout_s=self.timeout_s) as asked:
                    state = self._state = str(asked.request("daemon.hello").get("state") or "") or None
            except LabdError:
                pass
        env = self.env if state is None else {**self.env, "XDG_STATE_HOME": os.path.dirname(state)}
        return paths.journal_dir(env, self.path, target, interface)

    def is_here(self, target: str, interface: str) -> bool:
        """Whether an interface is wired to this machine, so that its journal is here."""
        return self._place(target, interface) is None

    def _place(self, target: str, interface: str) -> Place | None:
        wanted = Args({"target": target, "interface": interface})
        return place_of(operation_named("serial.log"), wanted, self.own_call())

    @property
    def daemon_runs(self) -> bool:
        """Whether a daemon answers just now."""
        return client.answers(paths.socket_path(self.env))

    def start_daemon(self) -> None:
        """Make sure that the daemon runs, and is of this version. Raises Unreachable with its own words."""
        with self._lock:
            if not client.answers(paths.socket_path(self.env)):
                child = client.start(self.own_call())
                threading.Thread(target=child.wait, name="labd-daemon-end", daemon=True).start()

    def _take(self) -> Client:
        """A connection for one question, from those that are idle or a new one."""
        while True:
            with self._lock:
                if self._closed:
                    raise Unreachable("this Lab was closed")
                found = self._idle.pop() if self._idle else None
                if found is not None:
                    self._busy.add(found)
            if found is None:
                break
            if found.idle_and_alive:
                return found
            self._give_back(found, False)
        connection = self._connect()
        with self._lock:
            self._busy.add(connection)
        return connection

    def _connect(self) -> Client:
        connection, hello = self._greet()
        if hello.get("version") != __version__:
            connection.close()
            raise Unreachable(
                f"the running daemon is labd {hello.get('version')}, this client is labd {__version__}",
                hint="labd daemons restart",
            )
        self._state = hello.get("state") or self._state
        return connection

    def _greet(self) -> tuple[Client, dict[str, Any]]:
        """A new connection, and what the daemon says of itself; one that is just ending is asked for no more."""
        for again in (True, True, False):
            connection = None
            try:
                connection = Client(self.env, timeout_s=self.timeout_s)
                return connection, connection.request("daemon.hello")
            except Unreachable:
                if connection is not None:
                    connection.close()
                if not again:
                    raise
                self.start_daemon()
        raise AssertionError("unreached")

    def _give_back(self, connection: Client, good: bool) -> None:
        with self._lock:
            self._busy.discard(connection)
            if good and not self._closed:
                self._idle.append(connection)
                return
        connection.close()


class Target:
    """One board of a lab: `lab["pico"]`. Its serial interfaces are `pico["bmc"]`, the main one is `pico.console`."""

    def __init__(self, lab: Lab, name: str) -> None:
        self.lab = lab
        self.name = name
        self._lock = threading.Lock()
        self._consoles: dict[str, Console] = {}

    def __repr__(self) -> str:
        return f"<Target {self.name} of {self.lab.path}>"

    @property
    def interfaces(self) -> list[str]:
        """The names of its serial interfaces, in the order of the lab file."""
        return [str(entry["name"]) for entry in self.lab.config().serial(self.name)]

    @property
    def console(self) -> Console:
        """The interface named `console`, else the sole one. Raises NotFound when that leaves a choice, or nothing."""
        names = self.interfaces
        if "console" in names or len(names) == 1:
            return self["console" if "console" in names else names[0]]
        if not names:
            raise NotFound(
                f"target {self.name!r} has no serial interface",
                hint=f"labd serial add console -t {self.name} --device DEVICE",
            )
        raise NotFound(f"which serial interface of {self.name!r}? it has {', '.join(names)}", near=names,
                       hint=f'lab["{self.name}"]["{names[0]}"]')  # fmt: skip

    def __getitem__(self, interface: str) -> Console:
        """The serial interface of this name. Raises NotFound with near matches."""
        names = self.interfaces
        if interface not in names:
            raise NotFound(
                f"no serial interface {interface!r} on target {self.name!r} (it has {', '.join(names) or 'none'})",
                near=nearest(interface, names),
                hint=f"labd serial list {self.name}",
            )
        with self._lock:
            return self._consoles.setdefault(interface, Console(self.lab, self.name, interface))

    def watch(self) -> list[str]:
        """Open all its interfaces and capture them; the names of those that are open. Raises as `Console.watch`."""
        opened = self.lab.call("serial.watch", target=self.name)
        return [str(line["name"]) for line in opened["interfaces"]]

    def stop(self) -> list[str]:
        """Stop capturing and free the ports; the names of those that were captured."""
        return list(self.lab.call("serial.stop", target=self.name)["stopped"])

    @property
    def consoles(self) -> list[Console]:
        """The interfaces that were asked for by this object so far."""
        with self._lock:
            return list(self._consoles.values())

    def hang_up(self) -> None:
        """End what follows the consoles of this target."""
        for console in self.consoles:
            console.hang_up()


def _nowhere(data: bytes) -> None:
    """Notes about a left-out name concern nobody here."""
