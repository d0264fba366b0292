"""Which policy level is in force for a call, which one it needs, and whether somebody has claimed what it would act on.

`labd.policy` has the rules, which are pure; here is what they are asked about: the environment, the lab file, the
running daemon, the devices behind the words. The shim asks before it lets anything run. Light.
"""

from __future__ import annotations

from labd import policy
from labd.errors import LabdError, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args, Operation


def decide(op: Operation, args: Args, call: Call, bench: Any) -> tuple[str, str, str]:
    """(level in force, who set it, level that is needed) for this call."""
    sources = []
    if call.env.get("LABD_POLICY"):
        sources.append(("LABD_POLICY", call.env["LABD_POLICY"]))
    if bench is not None:
        sources.append(("the running daemon", bench.level))
    devices: list[str] = []
    if op.effect != "help":
        spoken, devices = _lab_speaks(op, args, call)
        sources += spoken
        if bench is not None and op.effect == "actuate" and op.path[0] == "serial":
            devices += _open_devices(args, call, bench)
    level, who = policy.in_force(sources)
    return level, who, policy.needed(op, devices, op.effect_of(args))


def _lab_speaks(op: Operation, args: Args, call: Call) -> tuple[list[tuple[str, str]], list[str]]:
    """What the lab file says: its levels for this call, and the devices that the call would act on."""
    try:
        lab = call.lab()
    except NotFound:
        return [], []
    except LabdError:
        if op.effect_of(args) in ("observe", "config"):
            return [], []  # a broken file must not keep anyone from looking at it and mending it
        raise
    sources = []
    lab_level = lab.data.get("policy", {}).get("level")
    if lab_level:
        sources.append((f"[policy] of {lab.path}", lab_level))
    target = named_target(args) or (next(iter(lab.targets)) if len(lab.targets) == 1 else None)
    if target not in lab.targets:
        return sources, []
    target_level = lab.targets[target].get("policy", {}).get("level")
    if target_level:
        sources.append((f"[targets.{target}.policy] of {lab.path}", target_level))
    wanted = getattr(args, "interface", None) if "interface" in vars(args) else None
    lines = [line for line in lab.serial(target) if wanted in (None, line["name"])]
    return sources, policy.addressed(op.path[0], lab.targets[target], lines)


def not_claimed(op: Operation, args: Args, call: Call) -> None:
    """Raise Busy if somebody else has claimed the target that the call would act on or configure.

    What acts means the lab's only target where it names none; what configures a target always names it.
    """
    effect = op.effect_of(args)
    if effect not in ("actuate", "config") or op.path[0] in ("claim", "release"):  # those two judge for themselves
        return
    from labd import claims

    target = named_target(args)
    try:
        if target is None and effect == "actuate" and len(call.lab().targets) == 1:
            target = next(iter(call.lab().targets))
    except LabdError:
        return  # no lab, or a broken one: the handler says so
    if target is not None and "/" not in target:
        claims.check(call.env, call.lab_path, target)


def _open_devices(args: Args, call: Call, bench: Any) -> list[str]:
    """The devices that the target's captured lines really have open: an edit of the lab may not be taken up yet."""
    wanted = vars(args).get("interface")
    target = named_target(args)
    if target is None and len(call.lab().targets) == 1:
        target = next(iter(call.lab().targets))
    if target is None:
        return []
    open_now = bench.captured(call.lab_path, target)
    return [device for name, device in open_now.items() if wanted in (None, name)]


def named_target(args: Args) -> str | None:
    """The target that the words name, if any."""
    value = vars(args).get("target")
    return value if isinstance(value, str) else None
