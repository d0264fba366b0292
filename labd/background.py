"""What runs in the background for this user, found by locks and answers, and ending it: the daemon, its capture
process, connections to other machines, and whatever is left of them without a record.

Used by `labd daemons` (`labd.operations.daemons`). Works in the caller's process, as it must when no daemon answers.
"""

from __future__ import annotations

import os

from labd import lockfile, paths
from labd.errors import Busy, LabdError, Unreachable, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call

#: Seconds that a daemon gets to stop by itself.
STOP_SECONDS = 12.0


def of(call: Call) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The daemon's own account of all that it does, and its capture process; None for what does not run."""
    account = status(call)
    return account, capture(call, account)


def status(call: Call) -> dict[str, Any] | None:
    """The daemon's own account, or None when none answers."""
    from labd.client import Client

    try:
        with Client(call.env, timeout_s=5) as client:
            status: dict[str, Any] = client.request("daemon.status")
            return status
    except Unreachable:
        return None


def stop(call: Call, status: dict[str, Any], force: bool, *, leave: bool = False) -> None:
    """End the daemon that gave this account of itself, once its hooks have ended; with `force`, end those.

    With `leave`, what it captures goes on being captured for the next one.
    """
    from labd.client import Client

    hooks = [] if force else status.get("hooks", [])
    for hook in hooks:
        call.note(f"waiting for {hook['what']} of {hook['target']}, which has been running for {hook['for_s']:.0f} s "
                  f"and may take {hook['left_s']:.0f} s more; labd daemons stop --force ends it")  # fmt: skip
    call.flush()
    running = hook_groups(call, status["pid"]) if force else []
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
    end_groups(running)
    wait_for_lock(call, status["pid"], force, STOP_SECONDS + max([0.0, *(hook["left_s"] for hook in hooks)]))


def hook_groups(call: Call, pid: int) -> list[int]:
    """The process groups of what a daemon runs for its calls: hooks. Not its capture process, boards and servers."""
    from labd import shim
    from labd.platform.processes import groups_of, own_processes

    ours = own_processes(paths.runtime_dir(call.env), lambda: shim.run_captured(["ps", "-axo", "pid=,command="], 5)[1])
    found = groups_of(pid, lambda: shim.run_captured(["ps", "-axo", "pid=,ppid=,pgid="], 5)[1])
    return [group for group in found if group not in [process["pid"] for process in ours]]


def end_groups(groups: list[int]) -> None:
    """End every process of these groups."""
    from labd import shim

    for group in groups:
        shim.end_group(group)


def capture(call: Call, status: dict[str, Any] | None) -> dict[str, Any] | None:
    """The capture process: as the daemon knows it, else by its own word."""
    from labd.capture_wire import greeting

    if status is not None and status.get("capture", {}).get("pid"):
        return {key: status["capture"][key] for key in ("pid", "version", "ports")}
    hello = greeting(paths.runtime_dir(call.env))
    if hello is None:
        return None
    boards = [hold["pid"] for hold in hello.get("holds", ()) if hold.get("pid")]
    return {"pid": hello["pid"], "version": hello["version"], "ports": len(hello["ports"]), "boards": boards}


def stop_capture(call: Call) -> list[str]:
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
        end(pid, number)
    return [f"capture (pid {pid})"]


def links(call: Call) -> list[dict[str, str]]:
    """The connections to other machines that are kept."""
    runtime = paths.runtime_dir(call.env)
    if not os.path.isdir(os.path.join(runtime, "ssh")):
        return []
    from labd.remote_link import all_links

    return all_links(runtime)


def hang_up(call: Call) -> list[str]:
    """End the connections to other machines: what runs there goes on."""
    if not links(call):
        return []
    from labd.remote_link import close_all

    return close_all(paths.runtime_dir(call.env), call.env)


def hung(call: Call, status: dict[str, Any] | None, force: bool) -> list[str]:
    """End a daemon that holds the lock and does not answer, when asked to."""
    pid = lock_holder(call)
    if status is not None or pid is None:
        return []
    running = hook_groups(call, pid)
    if not force:
        waits = "; it may be waiting for a hook to end" if running else ""
        raise Busy(f"a daemon (pid {pid}) holds the lock and does not answer{waits}", hint="labd daemons stop --force")
    wait_for_lock(call, pid, True, seconds=0.0)
    end_groups(running)
    return [f"labd (pid {pid}, by force)"]


def wait_for_lock(call: Call, pid: int, force: bool, seconds: float = STOP_SECONDS) -> None:
    """Wait until the daemon's lock is free; with `force`, kill the one that holds it."""
    import signal
    import time

    deadline = time.monotonic() + seconds
    while lock_holder(call) is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    if lock_holder(call) is None:
        return
    if not force:
        raise Busy(f"the daemon (pid {pid}) is still running after {seconds:.0f} s", hint="labd daemons stop --force")
    end(pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while lock_holder(call) is not None and time.monotonic() < deadline:
        time.sleep(0.01)


def lock_holder(call: Call) -> int | None:
    """The pid of who holds the daemon's lock; None when it is free."""
    return lockfile.holder(os.path.join(paths.runtime_dir(call.env), "daemon.lock"))


def end(pid: int, number: int = 15) -> bool:
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


def untracked(call: Call, status: dict[str, Any] | None, capture: dict[str, Any] | None) -> list[dict[str, Any]]:
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


def elsewhere(call: Call) -> list[dict[str, Any]]:
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
