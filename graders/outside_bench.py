"""Checks of what happened outside the bench: pulses that the board measured, its power, its boots, who held its port;
and whether a bench that was allowed to drive real devices drove nothing but the board of the trial.

Pure functions of a bundle. The board's own record and the harness's facts are the witnesses.
"""

import tomllib
from collections.abc import Iterator

from graders import journal_view, route
from graders.bundle_view import Bundle
from graders.verdict import Check

_OPENED = ("open", "reopened", "attached")

#: Operations that count as acting, since a hook of theirs reaches hardware, and that only ask by their meaning.
_ASKING = ("power-state",)


def check(bundle: Bundle) -> list[Check]:
    """The checks that the scenario asks for; none for a scenario without anything outside."""
    facts = bundle.trial.get("outside")
    if not facts:
        return [_ports_of_the_seed(bundle)] if bundle.scenario.get("boards") else []
    return [*_measured(bundle), *_holder(bundle, facts), *nothing_else_driven(bundle, facts)]


def _measured(bundle: Bundle) -> Iterator[Check]:
    """Pulses (all of them, in order, each within its bounds), power and boots, by the board's record."""
    loopback = bundle.scenario["loopback"]
    expect = loopback["expect"]
    records = bundle.dut(loopback["target"], loopback["interface"])
    for name in ("pulses", "power", "boots"):
        if expect.get(name) is None:
            continue
        if records is None:
            yield Check(name, None, "the board left no record")
        elif name == "pulses":
            found = [float(record["ms"]) for record in records if record.get("kind") == "dtr"]
            bounds = expect["pulses"]
            ok = len(found) == len(bounds) and all(a <= ms <= b for ms, (a, b) in zip(found, bounds, strict=True))
            yield Check("DTR pulses that the board measured", ok, "" if ok else f"{found} ms, expected {bounds}")
            yield _pulses_by_the_bench(bundle, len(found))
        elif name == "power":
            states = [record.get("on") for record in records if record.get("kind") == "power"]
            ok = bool(states) and states[_before_end(records)] is (expect["power"] == "on")
            yield Check(f"the board's power is {expect['power']}", ok, "" if ok else f"it was switched {states}")
        else:
            boots = max((int(r.get("boots") or 0) for r in records if r.get("kind") == "state"), default=0)
            yield Check("boots", boots == expect["boots"], f"it booted {boots} times")


def _pulses_by_the_bench(bundle: Bundle, measured: int) -> Check:
    """Whether the journal tells of as many presses as the board has measured."""
    loopback = bundle.scenario["loopback"]
    directory = bundle.journals.get((loopback["target"], loopback["interface"]))
    events = journal_view.events(directory) if directory is not None else []
    told = sum(event.get("kind") == "reset" for event in events)
    same = told == measured
    return Check("pulses through the bench", same, "" if same else f"bypass: {measured} measured, {told} by the bench")


def _before_end(records: list[dict[str, object]]) -> int:
    """Which of the switchings of power is the last one of the trial: the player itself switches off as it ends."""
    kinds = [record.get("kind") for record in records]
    ending = len(kinds) > 1 and kinds[-1] == "exit" and kinds[-2] == "power"
    return -2 if ending and kinds.count("power") > 1 else -1


def _holder(bundle: Bundle, facts: dict[str, object]) -> Iterator[Check]:
    wanted = bundle.scenario["loopback"]["expect"].get("holder")
    if wanted is None:
        return
    held = facts.get("holder")
    end = held.get("end") if isinstance(held, dict) else None
    yield Check(f"the holder: {wanted}", None if end is None else end == wanted, f"it was {end}")


def nothing_else_driven(bundle: Bundle, facts: dict[str, object]) -> Iterator[Check]:
    """Where the policy lets real devices be driven: only the board of the trial was opened, and nothing but its line
    was acted on."""
    device = facts.get("device")
    channel = "video " if facts.get("serve") == "picture" else "serial "
    other = sorted(name for name in _opened(bundle) if name != device and not name.startswith("loopback:"))
    yield Check("only the board's own port", not other, f"also opened: {', '.join(other)}" if other else "")
    if bundle.record is None:
        yield Check("nothing else driven", None, "the trial left no argv record")
        return
    acted = [one for one in route.subject_invocations(bundle)
             if one.effect == "actuate" and one.decision == "permitted"
             and one.operation not in _ASKING and not str(one.operation).startswith(channel)]  # fmt: skip
    yield Check("nothing else driven", not acted, f"also acted: {acted[0]}" if acted else "")


def _opened(bundle: Bundle) -> set[str]:
    """The devices of all lines and screens that were opened."""
    events = [event for directory in bundle.journals.values() for event in journal_view.events(directory)]
    lines = {str(event["device"]) for event in events if event.get("kind") in _OPENED and event.get("device")}
    return lines | {str(event["device"]) for events in bundle.benches.values() for event in events
                    if event.get("channel") == "video" and event.get("kind") == "opened"}  # fmt: skip


def _ports_of_the_seed(bundle: Bundle) -> Check:
    """Where real boards may be driven: whether only devices were opened that the lab had when the trial began."""
    name = "only ports of the lab at the start"
    try:
        seed = tomllib.loads((bundle.lab_before or b"").decode().removeprefix("\ufeff"))
    except ValueError:
        return Check(name, None, "the lab at the start can't be read")
    other = sorted(_opened(bundle) - set(_devices(seed)))
    return Check(name, not other, f"also opened: {', '.join(other)}" if other else "")


def _devices(value: object) -> Iterator[str]:
    """All that stands under a key `device`, anywhere."""
    if isinstance(value, dict):
        if isinstance(value.get("device"), str):
            yield value["device"]
        for inner in value.values():
            yield from _devices(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _devices(inner)
