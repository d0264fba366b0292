"""`labd serial show`: each interface as configured, what is captured from it, and whether that is complete. Light."""

from __future__ import annotations

from labd.errors import NotFound
from labd.operations.model import TARGET, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.journal_read import Event
    from labd.operations.model import Args

#: How many of the losses are given in --json, the newest.
LOSSES_MOST = 20
#: How many events before an unexpected open are looked through for the last that the capture before it told.
SIGNS_WITHIN = 32
#: The state of an interface that a capture process captures while no daemon runs.
ALONE = "captured"


def show(call: Call, args: Args) -> list[dict[str, Any]]:
    """Each interface as configured, and what the daemon makes of it."""
    from labd import claims
    from labd.journal_read import Reader
    from labd.lab.hosts import is_here
    from labd.lab.redact import redact

    lab = call.lab()
    targets = [lab.resolve_target(args.target, call)] if args.target or len(lab.targets) == 1 else list(lab.targets)
    if not targets:
        raise NotFound(f"no targets in {lab.path}", hint="labd target add NAME")
    rows = []
    alone = _captured_alone(call) if call.bench is None else {}
    for target in targets:
        live = {line["name"]: line for line in call.bench.status(lab.path, target)} if call.bench is not None else {}
        for line in lab.serial(target):
            if not is_here(line["host"], lab.hosts.get(line["host"], {})):  # only among all: one target is asked there
                asks = f"wired to {line['host']}: labd {call.lab_words()}serial show {target} asks there"
                rows.append({"target": target, **line, "state": asks, "capture": None, "claim": None})
                continue
            row = {"target": target, **line, "state": "not captured", **live.get(line["name"], {}),
                   **alone.get(call.journal_dir(target, line["name"]), {})}  # fmt: skip
            if call.bench is not None and line["name"] not in live:
                row |= call.bench.suspended.row(lab.path, target, line["name"])
            claim = claims.read(call.env, lab.path, target)
            end = Reader(call.journal_dir(target, line["name"])).end_offset
            capture = _losing(completeness(call, target, line["name"]), row)
            rows.append({**row, "device": redact(row["device"]), "capture": capture, "end": end, "claim": claim})
    if not rows:
        adds = f"labd serial add console -t {targets[0]} --device DEVICE"
        call.reason(f"{', '.join(targets)}: no serial interface; {adds}")
    elif any(row["state"] == ALONE for row in rows):
        call.note("no daemon runs, but the capture goes on without one; the next runtime verb takes it up")
    elif call.bench is None:
        call.note("no daemon runs, so nothing is being captured; labd serial watch starts it")
    return rows


def _captured_alone(call: Call) -> dict[str, dict[str, Any]]:
    """What a capture process captures while no daemon runs: fields for `show`, by journal directory."""
    import os

    from labd import paths

    runtime = paths.runtime_dir(call.env)
    if not os.path.exists(os.path.join(runtime, "capture.sock")):
        return {}  # the usual case, which need not pay for a socket
    from labd.capture_wire import greeting

    hello = greeting(runtime) or {}
    words = f"no daemon runs; the capture process, pid {hello.get('pid')}, goes on by itself"
    live = [port["key"] for port in hello.get("ports", ()) if port.get("live", True)]
    return {key: {"state": ALONE, "note": words} for key in live}


def completeness(call: Call, target: str, interface: str) -> dict[str, Any] | None:
    """`{complete, since_seq, text, count, losses}` of the last capture session; None if there never was one.

    `since_seq` is the session's first line when it is complete, else the first line that may be damaged; `losses` are
    `{seq, wall_ns, why}`.
    """
    from labd.completeness import KINDS, SIGNS, judge
    from labd.journal_read import Reader

    def last_sign(opened: Event) -> int:
        record = reader.record_at(opened.rx - 1) if opened.rx > reader.first_offset else None
        recent = reader.events(after=max(0, opened.number - SIGNS_WITHIN))
        signs = [event.wall_ns for event in recent if event.number < opened.number and event.kind in SIGNS]
        return max([record.wall_ns if record is not None else 0, *signs])

    reader = Reader(call.journal_dir(target, interface))
    verdict = judge(reader.events_backwards(KINDS), last_sign) if reader.exists else None
    if verdict is None:
        return None
    if verdict.complete:
        seq = reader.seq_at(verdict.rx)
        return {"complete": True, "since_seq": seq, "text": f"complete since #{seq}", "count": 0, "losses": []}
    losses = [
        {"seq": reader.seq_at(loss.rx), "wall_ns": loss.wall_ns, "why": loss.why}
        for loss in (verdict.losses[0], *verdict.losses[1:][-LOSSES_MOST + 1 :])
    ]
    text = f"incomplete since #{losses[0]['seq']}, because {losses[0]['why']}"
    if len(verdict.losses) > 1:
        text += f" (and {len(verdict.losses) - 1} more; the last at #{losses[-1]['seq']}: {losses[-1]['why']})"
    return {"complete": False, "since_seq": losses[0]["seq"], "text": text, "count": len(verdict.losses),
            "losses": losses}  # fmt: skip


def _losing(capture: dict[str, Any] | None, row: dict[str, Any]) -> dict[str, Any] | None:
    """The verdict, also on what is being lost just now: the journal tells that only once it can be written again."""
    import time

    from labd.journal_format import NOT_STORED

    failing = row.get("failing") or ""
    if capture is None or not capture["complete"] or NOT_STORED not in failing:
        return capture
    seq = row["seq"] + 1
    loss = {"seq": seq, "wall_ns": time.time_ns(), "why": failing}
    return {"complete": False, "since_seq": seq, "text": f"incomplete since #{seq}, because {failing}", "count": 1,
            "losses": [loss]}  # fmt: skip


def show_text(rows: list[dict[str, Any]], call: Call) -> str:
    """A short paragraph an interface."""
    return "\n".join("\n    ".join(_paragraph(row)) for row in rows)


def _paragraph(row: dict[str, Any]) -> list[str]:
    text = [f"{row['target']}.{row['name']}: {state_text(row)}"]
    if row["capture"] is not None:
        text.append(row["capture"]["text"])
    if row.get("writer"):
        from labd.claims import when
        from labd.lease import person

        held = row["writer"]
        text.append(f"written to by {person(held['who'])}: {held['what']}, until {when(held['until'])} at the latest")
    if row.get("claim"):
        from labd.claims import when

        why = f" ({row['claim']['why']})" if row["claim"]["why"] else ""
        text.append(f"claimed by {row['claim']['by']} until {when(row['claim']['until'])}{why}")
    sensed = row.get("sense")
    if sensed:
        level = "asserted" if sensed["level"] else "not asserted"
        text.append(f"power {'on' if sensed['power_on'] else 'off'} ({sensed['signal'].upper()} is {level})")
    elif row.get("power_sense_signal"):
        text.append(f"sense {row['power_sense_signal']}")
    if row.get("power_button"):
        text.append("DTR is a power button")
    if (row.get("latency_ms") or 0) > 1:
        text.append(f"the adapter may hold bytes back for {row['latency_ms']} ms; labd doctor says what helps")
    return text


def state_text(line: dict[str, Any]) -> str:
    """One interface's state, for `show` and `watch`."""
    node = line.get("node")
    where = line["device"] if node in (None, line["device"]) else f"{line['device']} → {node}"
    text = f"{line['state']}  {where}  {line.get('baud', 115200)} baud"
    if line["state"] in ("lost", "closed", "suspended"):
        text += f"  ({line.get('why')})"
    return text + (f"  ({line['note']})" if line.get("note") else "")


SERIAL_SHOW = Operation(
    ("serial", "show"),
    "what is configured and what is being captured, and whether it is complete",
    effect="observe",
    params=(TARGET,),
    handler=show,
    text=show_text,
    doc="Of each interface that was captured it says `complete since #N` or `incomplete since #N, because …`: from the "
    "line N on something may be missing or altered, since the port was unplugged, overflowed, was read by another "
    "program too, or labd was held up. This is about the last capture, from serial watch on.",
    examples=(("labd serial show pico", "pico's consoles"), ("labd serial show", "those of every target")),
)
