"""`labd video`: which capture device sees a target's screen, and looking at it."""

from __future__ import annotations

from labd.errors import Unreachable
from labd.operations.channel_config import channel_operations, show_channel
from labd.operations.consoles import who_of
from labd.operations.model import TARGET, Operation, Param
from labd.operations.video_shot import VIDEO_SHOT
from labd.operations.video_text import VIDEO_TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args


def watch(call: Call, args: Args) -> dict[str, Any]:
    """Capture the screen; answers once it was seen."""
    lab = call.lab()
    target = lab.resolve_target(args.target, call)
    before = call.bench.screens.status(lab.path, target)
    state: dict[str, Any] = call.hop(call.bench.screens.watch, lab, target, call.level, restart=bool(args.restart))
    known = before is not None and before["since"] == state["since"]
    if known:
        call.note(f"{target}'s screen was being captured already; --restart starts afresh")
    else:
        call.bench.screens.tell(lab.path, target, "watch", device=state["device"], who=who_of(call))
    return {**state, "started": not known}


def state_text(data: dict[str, Any], call: Call) -> str:
    """One line: what is seen of a target's screen."""
    return f"{data['target']}: {data['device']}  {sight_text(data)}"


def sight_text(sight: dict[str, Any]) -> str:
    """The signal, and why there is none or what there is."""
    names = {"ok": "signal ok", "none": "no signal", "stale": "stale", "lost": "lost"}
    words: str = names.get(sight["signal"], sight["signal"])
    if sight.get("why"):
        words += f": {sight['why']}"
    if sight.get("width") and sight["signal"] != "lost":
        words += f"  {sight['width']}x{sight['height']}"
    return words + (f"  hash={sight['hash']}" if sight["signal"] == "ok" else "")


def stop(call: Call, args: Args) -> dict[str, Any]:
    """Stop capturing; frees the device."""
    lab = call.lab()
    target = lab.resolve_target(args.target, call)
    stopped = call.bench is not None and call.hop(call.bench.screens.stop, lab, target)
    if not stopped:
        call.note(f"{target}'s screen was not being captured")
    return {"target": target, "stopped": stopped}


def stop_text(data: dict[str, Any], call: Call) -> str | None:
    """What was stopped."""
    return f"stopped capturing {data['target']}'s screen" if data["stopped"] else None


def preview(call: Call, args: Args) -> dict[str, Any]:
    """The page's address."""
    lab = call.lab()
    target = lab.resolve_target(args.target, call)
    if call.bench is None:
        lab.channel(target, "video")
        raise Unreachable(f"{target}'s screen is not being captured", hint=f"labd video watch {target}")
    return {"target": target, "url": call.hop(call.bench.screens.preview, lab, target)}


def preview_text(data: dict[str, Any], call: Call) -> str:
    """The address alone."""
    return str(data["url"])


def show(call: Call, args: Args) -> dict[str, Any]:
    """The lab's words, and what is seen now."""
    facts = show_channel(call, args, "video")
    state = call.bench.screens.status(call.lab_path, facts["target"]) if call.bench is not None else None
    if state is None:
        call.note(f"not being captured; labd video watch {facts['target']} starts it")
    return {**facts, "state": state}


def show_text(data: dict[str, Any], call: Call) -> str:
    """`field<TAB>value`, one a line: the lab's fields, then what is seen."""
    rows: list[tuple[str, Any]] = [(key, data[key]) for key in ("target", "device", "host")]
    state = data["state"]
    if state is None:
        rows.append(("capture", "not captured"))
    else:
        restarts = f", restarted {state['restarts']} times" if state["restarts"] else ""
        rows.append(("capture", f"pid {state['pid']}{restarts}"))
        rows.append(("signal", sight_text(state)))
        if state["signal"] == "ok" and state.get("still_ms") is not None:
            rows.append(("still", f"{state['still_ms'] / 1000:.1f} s"))
    return "\n".join(f"{key}\t{value}" for key, value in rows)


def devices(call: Call, args: Args) -> list[dict[str, Any]]:
    """This machine's capture devices."""
    from labd.inventory import this_machine

    found = this_machine().facts.video_devices()
    if not found:
        none = "no capture device on this machine; labd discover tells what is plugged in"
        call.reason(none if found is not None else "this system did not tell its cameras")
    return found or []


def devices_text(rows: list[dict[str, Any]], call: Call) -> str | None:
    """`INDEX<TAB>NAME<TAB>NODE<TAB>id=ID`, one line a device; any of them can be given to video set --device."""
    lines = ["\t".join([str(row["index"]), str(row["name"]), str(row["device"]), f"id={row.get('id') or '-'}"])
             for row in rows]  # fmt: skip
    return "\n".join(lines) or None


_CONFIG = channel_operations(
    "video",
    summaries=(
        "say which capture device sees a target's screen; only the given fields change",
        "take a target's capture device out of the lab; the target stays",
        "the capture device that sees a target's screen",
        "the targets whose screens are captured, with their devices",
    ),
    removed="nothing looks at pico's screen any more",
    example=("labd video set -t pico --device /dev/video0", "the capture stick that pico is plugged into"),
    unset="host",
)

OPERATIONS = (
    *(op for op in _CONFIG if op.path != ("video", "show")),
    Operation(
        ("video", "show"),
        "which capture device sees a target's screen, and what it sees now",
        effect="observe",
        params=(TARGET,),
        handler=show,
        text=show_text,
        examples=(("labd video show pico", "the device, and whether there is a signal"),),
    ),
    Operation(
        ("video", "watch"),
        "start capturing a target's screen",
        effect="actuate",
        where="daemon",
        params=(TARGET, Param("restart", "start afresh if it runs", kind="switch", flags=("--restart",))),
        handler=watch,
        text=state_text,
        doc="Answers once the screen was seen, or says why it can't be. A process of its own captures it until video "
        "stop: it opens the device again after a loss, and is started again if the camera wedges or crashes it. Edits "
        "of the lab are taken up.",
        examples=(
            ("labd video watch pico", "capture pico's screen"),
            ("labd video watch pico --restart", "start afresh"),
        ),
    ),
    Operation(
        ("video", "stop"),
        "stop capturing a target's screen",
        effect="actuate",
        params=(TARGET,),
        handler=stop,
        text=stop_text,
        examples=(("labd video stop pico", "free the capture device"),),
    ),
    VIDEO_SHOT,
    *VIDEO_TEXT,
    Operation(
        ("video", "preview"),
        "where to watch a target's screen in a browser",
        effect="observe",
        params=(TARGET,),
        handler=preview,
        text=preview_text,
        doc="The page is served on this machine alone (127.0.0.1), to whoever has its address: it holds a secret. It "
        "lasts until video stop.",
        examples=(("labd video preview pico", "the address"),),
    ),
    Operation(
        ("video", "devices"),
        "the capture devices of this machine",
        effect="observe",
        handler=devices,
        text=devices_text,
        examples=(("labd video devices", "one line a device"),),
    ),
)  # fmt: skip
