"""`labd daemon` and `labd daemons`: what runs in the background for this user, and ending it."""

from __future__ import annotations

import os

from labd import paths
from labd.errors import Busy, LabdError, NotFound, Unreachable, Usage, nearest
from labd.operations.model import Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from labd.call import Call
    from labd.operations.model import Args

#: Seconds that a daemon gets to stop by itself.
STOP_SECONDS = 12.0


def run_daemon(call: Call, args: Args) -> NoReturn:
    """This very process becomes the daemon, so that a service manager's signals and pid are the daemon's."""
    from labd import shim

    shim.become_daemon(call.env, paths.runtime_dir(call.env))


def start_daemon(call: Call, args: Args) -> dict[str, Any]:
    """Make sure that the daemon runs; which it is, and where it listens."""
    from labd import __version__, build
    from labd.client import Client, answers, start

    path = paths.socket_path(call.env)
    began = not answers(path)
    if began:
        start(call)
    with Client(call.env) as client:
        hello = client.request("daemon.hello")
    return {"pid": hello["pid"], "version": hello["version"], "level": hello["level"], "socket": path,
            "program": __version__, "build": build.digest(), "started": began}  # fmt: skip


def start_text(data: dict[str, Any], call: Call) -> str:
    """Which daemon runs, and whether it did before."""
    runs = "runs now" if data["started"] else "runs already"
    return f"labd {data['version']} {runs} as pid {data['pid']}, policy level {data['level']}; {data['socket']}"


def list_daemons(call: Call, args: Args) -> dict[str, Any]:
    """The daemon, the boards it plays, the ports it captures, and what runs without a record."""
    status = _status(call)
    capture = _capture(call, status)
    untracked = _untracked(call, status, capture)
    links = _links(call)
    elsewhere = _elsewhere(call)
    if status is None:
        call.note(f"no daemon runs for {paths.runtime_dir(call.env)}; the first runtime verb starts one")
        return {"daemon": None, "capture": capture, "channels": [], "screens": [], "kept": [], "netboots": [],
                "boards": [], "links": links, "untracked": untracked, "elsewhere": elsewhere}  # fmt: skip
    daemon = {key: status[key] for key in ("pid", "version", "level", "started")}
    return {"daemon": daemon, "capture": capture, "channels": status["channels"],
            "screens": status["screens"], "kept": status["kept"], "netboots": status["netboots"],
            "boards": status["boards"], "links": links, "untracked": untracked, "elsewhere": elsewhere}  # fmt: skip


def background(call: Call) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The daemon's own account of all that it does, and its capture process; None for what does not run."""
    status = _status(call)
    return status, _capture(call, status)


def list_text(data: dict[str, Any], call: Call) -> str:
    """One line a process."""
    from labd.render import columns

    rows: list[tuple[str, ...]] = []
    if data["daemon"]:
        daemon = data["daemon"]
        rows.append(("labd", f"pid {daemon['pid']}", f"version {daemon['version']}, policy level {daemon['level']}"))
    if data["capture"]:
        capture = data["capture"]
        alone = "" if data["daemon"] else "; the next daemon takes them up again"
        words = f"version {capture['version']}, ports {capture['ports']}{alone}"
        rows.append(("capture", f"pid {capture['pid']}", words))
    for line in data["channels"]:
        where = f"{line['target']}.{line['name']}"
        rows.append(("serial", where, f"{line['state']}  {line.get('device', '')}  lab {line['lab']}"))
    for screen in data["screens"]:
        words = f"{screen['signal']}  {screen['device']}  lab {screen['lab']}"
        rows.append(("video", screen["target"], f"pid {screen['pid']}  {words}"))
    for kept in data["kept"]:
        words = f"{kept['command']} serve  lab {kept['lab']}"
        rows.append((kept["channel"], kept["target"], f"pid {kept['pid']}  {words}"))
    for served in data["netboots"]:
        words = f"pid {served['pid']}  serves {served['interface']}  lab {served['lab']}"
        rows.append(("netboot", served["target"], words))
    for board in data["boards"]:
        rows.append(("board", board["name"], f"pid {board['pid']}  {board['device']}  restarts {board['restarts']}"))
    rows += [("ssh", link["host"], f"{link['ssh']}  {link['socket']}") for link in data["links"]]
    for stray in data["untracked"]:
        rows.append(("untracked", f"pid {stray['pid']}", f"{stray['command']}  (labd daemons stop --all ends it)"))
    for other in data["elsewhere"]:
        pids = " ".join(str(pid) for pid in other["pids"])
        rows.append(("elsewhere", f"pid {pids}", f"serves {other['runtime']}  ({other['end']} ends it)"))
    return columns(rows, call.columns, indent="") if rows else "no daemon, no untracked process"


def stop_daemons(call: Call, args: Args) -> dict[str, Any]:
    """Stop the daemon, or the simulated boards named."""
    from labd.client import Client
    from labd.trigger_store import forget
    from labd.video import kept

    status = _status(call)
    if args.names:
        if status is None:
            raise NotFound("no daemon runs, so no board of it does", hint="labd daemons")
        known = [board["name"] for board in status["boards"]]
        for name in args.names:
            if name not in known and name != "labd":
                raise NotFound(f"nothing called {name!r} runs", near=nearest(name, known), hint="labd daemons")
        with Client(call.env) as client:
            for name in args.names:
                if name != "labd":
                    client.request("daemon.stop_board", {"name": name})
        if "labd" not in args.names:
            return {"stopped": args.names}
    stopped = list(args.names)
    if status is not None:
        _stop(call, status["pid"], args.force)
        stopped.append(f"labd (pid {status['pid']})")
    stopped += _hung(call, status, args.force)
    stopped += _stop_capture(call)
    stopped += _hang_up(call)
    forget(paths.runtime_dir(call.env))
    kept.forget(paths.runtime_dir(call.env))
    if args.all:
        stopped += [f"pid {stray['pid']}" for stray in _untracked(call, None, None) if _end(stray["pid"])]
    if not stopped:
        call.note("nothing was running")
    return {"stopped": stopped}


def stop_text(data: dict[str, Any], call: Call) -> str | None:
    """What was stopped."""
    return "stopped " + ", ".join(data["stopped"]) if data["stopped"] else None


def restart_daemons(call: Call, args: Args) -> dict[str, Any]:
    """Stop the daemon and start it again; what it captured is captured all the while, and the rest is opened again."""
    from labd.client import Client, start
    from labd.netboot.again import serve_again

    status = _status(call)
    if status is not None:
        _stop(call, status["pid"], args.force, leave=True)
    _hung(call, status, args.force)
    start(call)
    again = []
    for lab, target in sorted({(line["lab"], line["target"]) for line in (status or {}).get("channels", ())}):
        names = [line["name"] for line in (status or {})["channels"]
                 if (line["lab"], line["target"]) == (lab, target) and line["state"] != "stopped"]  # fmt: skip
        with Client(call.env) as client:
            for name in names:
                try:
                    client.request("serial.watch", {"target": target, "interface": name}, lab=lab)
                    again.append(f"{target}.{name}")
                except LabdError as error:
                    call.note(f"{target}.{name}: {error.message}")
    served = serve_again(call, (status or {}).get("netboots", []))
    _keep_again(call, (status or {}).get("kept", []))
    with Client(call.env) as client:
        hello = client.request("daemon.hello")
    return {"pid": hello["pid"], "version": hello["version"], "captured_again": again, "served_again": served}


def _keep_again(call: Call, kept: list[dict[str, Any]]) -> None:
    """Have the new daemon keep the input commands that the old one kept."""
    from labd.client import Client

    with Client(call.env) as client:
        for row in kept:
            try:
                client.request("hid.serve", {"target": row["target"]}, lab=row["lab"])
                call.note(f"{row['target']}'s input command is kept again; what it held was released")
            except LabdError as error:
                call.note(f"{row['target']}'s input command is not kept any more: {error.message}")


def restart_text(data: dict[str, Any], call: Call) -> str:
    """The new daemon and what it captures."""
    again = ", ".join(data["captured_again"]) or "nothing"
    served = f"; serves {', '.join(data['served_again'])}" if data["served_again"] else ""
    return f"labd {data['version']} runs as pid {data['pid']}; captures {again}{served}"


def _status(call: Call) -> dict[str, Any] | None:
    """The daemon's own account, or None when none answers."""
    from labd.client import Client

    try:
        with Client(call.env, timeout_s=5) as client:
            status: dict[str, Any] = client.request("daemon.status")
            return status
    except Unreachable:
        return None


def _stop(call: Call, pid: int, force: bool, *, leave: bool = False) -> None:
    """End the daemon; with `leave`, what it captures goes on being captured for the next one."""
    from labd.client import Client

    try:
        with Client(call.env, timeout_s=5) as client:
            try:
                client.request("daemon.stop", {"leave": True} if leave else {})
            except Usage:  # a daemon of before there was a choice
                client.request("daemon.stop")
    except Unreachable:
        pass  # it went before it had answered: the lock tells
    except LabdError:
        if not force:
            raise
    _wait_for_lock(call, pid, force)


def _capture(call: Call, status: dict[str, Any] | None) -> dict[str, Any] | None:
    """The capture process: as the daemon knows it, else by its own word."""
    from labd.capture_wire import greeting

    if status is not None and status.get("capture", {}).get("pid"):
        return {key: status["capture"][key] for key in ("pid", "version", "ports")}
    hello = greeting(paths.runtime_dir(call.env))
    if hello is None:
        return None
    boards = [hold["pid"] for hold in hello.get("holds", ()) if hold.get("pid")]
    return {"pid": hello["pid"], "version": hello["version"], "ports": len(hello["ports"]), "boards": boards}


def _stop_capture(call: Call) -> list[str]:
    """End a capture process that the daemon did not end, or that has none."""
    import time

    from labd.capture_wire import greeting, holder

    runtime = paths.runtime_dir(call.env)
    pid = holder(runtime)
    if pid is None:
        return []
    greeting(runtime, then={"do": "quit"})
    for number in (15, 9, 0):
        deadline = time.monotonic() + 5
        while holder(runtime) is not None and time.monotonic() < deadline:
            time.sleep(0.01)
        if holder(runtime) is None or not number:
            break
        _end(pid, number)
    return [f"capture (pid {pid})"]


def _links(call: Call) -> list[dict[str, str]]:
    """The connections to other machines that are kept."""
    runtime = paths.runtime_dir(call.env)
    if not os.path.isdir(os.path.join(runtime, "ssh")):
        return []
    from labd.remote_link import all_links

    return all_links(runtime)


def _hang_up(call: Call) -> list[str]:
    """End the connections to other machines: what runs there goes on."""
    if not _links(call):
        return []
    from labd.remote_link import close_all

    return close_all(paths.runtime_dir(call.env), call.env)


def _hung(call: Call, status: dict[str, Any] | None, force: bool) -> list[str]:
    """End a daemon that holds the lock and does not answer, when asked to."""
    pid = _lock_holder(call)
    if status is not None or pid is None:
        return []
    if not force:
        raise Busy(f"a daemon (pid {pid}) holds the lock and does not answer", hint="labd daemons stop --force")
    _wait_for_lock(call, pid, True, seconds=0.0)
    return [f"labd (pid {pid}, by force)"]


def _wait_for_lock(call: Call, pid: int, force: bool, seconds: float = STOP_SECONDS) -> None:
    """Wait until the daemon's lock is free; with `force`, kill the one that holds it."""
    import signal
    import time

    deadline = time.monotonic() + seconds
    while _lock_holder(call) is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    if _lock_holder(call) is None:
        return
    if not force:
        raise Busy(f"the daemon (pid {pid}) is still running after {seconds:.0f} s", hint="labd daemons stop --force")
    _end(pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while _lock_holder(call) is not None and time.monotonic() < deadline:
        time.sleep(0.01)


def _lock_holder(call: Call) -> int | None:
    """The pid of who holds the daemon's lock; None when it is free."""
    import fcntl

    try:
        fd = os.open(os.path.join(paths.runtime_dir(call.env), "daemon.lock"), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        text = os.read(fd, 32).strip()
        return int(text) if text.isdigit() else None
    finally:
        os.close(fd)
    return None


def _end(pid: int, number: int = 15) -> bool:
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


def _untracked(call: Call, status: dict[str, Any] | None, capture: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Processes of this runtime directory that nobody answers for; without a daemon, boards hang on the capture."""
    from labd import shim
    from labd.platform.processes import own_processes

    mine = paths.runtime_dir(call.env)
    tracked = {status["pid"], *(each["pid"] for each in (*status["boards"], *status["screens"]))} if status else set()
    serving = [served["directory"] for served in status["netboots"]] if status else []
    tracked |= {capture["pid"], *capture.get("boards", ())} if capture else set()
    return [
        {"pid": process["pid"], "command": process["command"]}
        for process in own_processes(mine, lambda: shim.run_captured(["ps", "-axo", "pid=,command="], 5)[1])
        if process["pid"] not in tracked
        and process["pid"] != os.getpid()
        and not any(directory in process["command"] for directory in serving)
    ]


def _elsewhere(call: Call) -> list[dict[str, Any]]:
    """This user's daemons of other runtime directories: they may hold a port, and nothing here ends them."""
    from labd import shim
    from labd.lab.model import quoted
    from labd.platform.processes import elsewhere

    mine = paths.runtime_dir(call.env)
    found = elsewhere(mine, lambda: shim.run_captured(["ps", "-axo", "pid=,command="], 5)[1])
    for other in found:
        base, name = os.path.split(other["runtime"])
        variable = f"XDG_RUNTIME_DIR={quoted(base)}" if name == "labd" else "-u XDG_RUNTIME_DIR"
        other["end"] = f"env {variable} labd daemons stop"
    return found


HOST = Param("host", "on this machine of the lab", flags=("-H", "--host"), complete="host")
FORCE = Param("force", "kill a daemon that does not stop by itself", kind="switch", flags=("--force",))

OPERATIONS = (
    Operation(
        ("daemon",),
        "run the daemon in the foreground",
        effect="admin",
        where="client",
        handler=run_daemon,
        doc="For systemd and launchd; everybody else needs nothing, since the first runtime verb starts the daemon. "
        "Its policy level is LABD_POLICY's at its start (default bench) and stays that.",
        examples=(("labd daemon", "serve until SIGTERM"),),
    ),
    Operation(
        ("daemons", "start"),
        "make sure that the daemon runs, and say where it listens",
        effect="admin",
        where="client",
        handler=start_daemon,
        text=start_text,
        doc="Not needed by hand: the first runtime verb starts the daemon. This is how labd on another machine asks "
        "for it, over ssh.",
        examples=(("labd daemons start", "which daemon runs here, and its socket"),),
    ),
    Operation(
        ("daemons", "list"),
        "list the daemon, its capture process, channels, boards and connections, and untracked processes",
        doc="Listed too: daemons of this user that serve another runtime directory (elsewhere), with what ends each; "
        "one that was left over may hold a port.",
        effect="observe",
        params=(HOST,),
        handler=list_daemons,
        text=list_text,
        aliases=(("daemons",),),
        examples=(
            ("labd daemons", "what runs"),
            ("labd daemons --json", "the same for a program"),
            ("labd daemons --host bench1", "what runs on another machine of the lab; starts nothing there"),
        ),
    ),
    Operation(
        ("daemons", "stop"),
        "stop the daemon, or boards by name",
        effect="admin",
        where="client",
        params=(
            Param("names", "`labd` or a board's name; the daemon and all it runs when left out", repeat=True),
            Param("all", "also end untracked processes of ours", kind="switch", flags=("--all",)),
            FORCE,
            HOST,
        ),
        handler=stop_daemons,
        text=stop_text,
        doc="Ports are closed and boards end; the capture process ends last. Captured text stays readable with "
        "labd serial log. Connections to other machines end too, and what runs on those goes on: --host ends that.",
        examples=(
            ("labd daemons stop", "stop the daemon and the boards it plays"),
            ("labd daemons stop --host bench1", "the same on another machine of the lab"),
            ("labd daemons stop --all", "also end processes that no daemon answers for"),
        ),
    ),
    Operation(
        ("daemons", "restart"),
        "restart the daemon; capture goes on meanwhile",
        effect="admin",
        where="client",
        params=(FORCE, HOST),
        handler=restart_daemons,
        text=restart_text,
        examples=(
            ("labd daemons restart", "after an upgrade, or a change of LABD_POLICY"),
            ("labd daemons restart --host bench1", "on another machine of the lab"),
        ),
    ),
)
