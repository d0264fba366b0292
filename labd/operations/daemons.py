"""`labd daemon` and `labd daemons`: what runs in the background for this user, and ending it."""

from __future__ import annotations

from labd import background, paths
from labd.errors import LabdError, NotFound, nearest
from labd.operations.model import Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from labd.call import Call
    from labd.operations.model import Args


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
    status = background.status(call)
    capture = background.capture(call, status)
    untracked = background.untracked(call, status, capture)
    links = background.links(call)
    elsewhere = background.elsewhere(call)
    if status is None:
        call.note(f"no daemon runs for {paths.runtime_dir(call.env)}; the first runtime verb starts one")
        return {"daemon": None, "capture": capture, "channels": [], "screens": [], "kept": [], "netboots": [],
                "boards": [], "links": links, "untracked": untracked, "elsewhere": elsewhere}  # fmt: skip
    daemon = {key: status[key] for key in ("pid", "version", "level", "started")}
    return {"daemon": daemon, "capture": capture, "channels": status["channels"],
            "screens": status["screens"], "kept": status["kept"], "netboots": status["netboots"],
            "boards": status["boards"], "links": links, "untracked": untracked, "elsewhere": elsewhere}  # fmt: skip


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
        gone = " (gone)" if served.get("interface_gone") else ""
        words = f"pid {served['pid']}  serves {served['interface']}{gone}  lab {served['lab']}"
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

    status = background.status(call)
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
                    ended = client.request("daemon.stop_board", {"name": name}).get("ended")
                    if ended:
                        call.note(f"what captured {name} ended with it: {', '.join(ended)}")
        if "labd" not in args.names:
            return {"stopped": args.names}
    stopped = list(args.names)
    if status is not None:
        background.stop(call, status, args.force)
        stopped.append(f"labd (pid {status['pid']})")
    stopped += background.hung(call, status, args.force)
    stopped += background.stop_capture(call)
    stopped += background.hang_up(call)
    forget(paths.runtime_dir(call.env))
    kept.forget(paths.runtime_dir(call.env))
    if args.all:
        stopped += [
            f"pid {stray['pid']}" for stray in background.untracked(call, None, None) if background.end(stray["pid"])
        ]
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

    status = background.status(call)
    if status is not None:
        background.stop(call, status, args.force, leave=True)
    background.hung(call, status, args.force)
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


HOST = Param("host", "on this machine of the lab", flags=("-H", "--host"), complete="host")
FORCE = Param(
    "force", "end hooks that run, and kill a daemon that does not stop by itself", kind="switch", flags=("--force",)
)

OPERATIONS = (
    Operation(
        ("daemon",),
        "run the daemon in the foreground",
        effect="admin",
        where="client",
        terminal=True,
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
        "labd serial log. A hook that runs is waited for, and named; --force ends it. Connections to other machines "
        "end too, and what runs on those goes on: --host ends that.",
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
