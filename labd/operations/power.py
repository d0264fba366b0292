"""`labd power`, `labd power-cycle`, `labd power-state`: the hooks that switch a target, switching it, and its state.

The work is `labd.power`'s and `labd.power_verify`'s; here it gets its words, and what came of it becomes an answer.
"""

from __future__ import annotations

from labd.errors import Usage
from labd.operations.channel_config import channel_operations
from labd.operations.consoles import who_of
from labd.operations.model import INTERFACE, TARGET, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.errors import LabdError
    from labd.operations.model import Args
    from labd.power import Supply

PLUG = (
    'labd power set -t pico --cycle-cmd "shellyplug -d 192.0.2.41 cycle" --state-cmd "shellyplug -d 192.0.2.41 state"'
)

#: What was done, in words.
DONE = {"on": "switched on", "off": "switched off", "cycle": "power cycled"}


def _switching(action: str) -> Any:
    def switch(call: Call, args: Args) -> dict[str, Any]:
        """Run the hook, look whether it had its effect, tell both."""
        from labd.power_verify import Watch

        supply = _supply(call, args)
        hook = supply.hook(action)
        wanted = vars(args)
        watch = Watch(
            supply,
            action,
            state={"state": True, "none": False}.get(args.verify),
            patterns=_patterns(args),
            interface=wanted.get("interface"),
            within=args.within,
        )
        ended = supply.switch(action)
        seen = watch.look()
        if seen.error is not None:
            supply.name_others(seen.error)
        data = {
            "target": supply.target,
            "action": action,
            "hook": {"name": hook.name, "ms": round(ended.ms, 1), "said": _last_line(ended.out)},
            "verified": seen.verified,
            "unverified": seen.unverified,
            "console": [console.data() for console in watch.consoles],
        }
        outcome = "contradicted" if seen.error else "seen" if seen.verified else "unseen"
        supply.tell("verify", action=action, outcome=outcome, verified=seen.verified, unverified=seen.unverified,
                    **({"error": seen.error.message} if seen.error else {}))  # fmt: skip
        if seen.error is not None:
            _told_first(call, data, seen.error)
            raise seen.error
        return data

    return switch


def _patterns(args: Args) -> list[str]:
    """What the console has to say for this call; empty: nothing. Raises Usage before anything is done."""
    expected = vars(args).get("expect") or []
    if args.verify == "none" and expected:
        raise Usage("--verify none and --expect contradict each other", hint="leave one out")
    if args.verify != "boot" and not expected:
        return []
    from labd.power_verify import patterns_of

    return patterns_of(expected)


def switched_text(data: dict[str, Any], call: Call) -> str:
    """What was done, what was seen of it, and what nobody has looked at."""
    target, hook = data["target"], data["hook"]
    said = f": {hook['said']}" if hook["said"] else ""
    lines = [f"{target}: {DONE[data['action']]} ({hook['name']} ended well after {hook['ms'] / 1000:.1f} s{said})"]
    lines += [f"{target}: verified: {_seen_words(item)}" for item in data["verified"]]
    lines += [f"{target}: not verified: {what}" for what in data["unverified"]]
    for console in data["console"]:
        call.note(f"what {console['interface']} says from there: labd serial log {target} -i {console['interface']} "
                  f"--since {console['since']}")  # fmt: skip
    return "\n".join(lines)


def _seen_words(item: dict[str, Any]) -> str:
    if item["what"] == "boot":
        return f"{item['by']} said #{item['seq']} {item['says']!r}, {item['ms'] / 1000:.1f} s after the hook"
    return (
        f"power {item['power']} ({item['says']})" if item["what"] == "state" else f"the power was cut ({item['says']})"
    )


def _told_first(call: Call, data: dict[str, Any], error: LabdError) -> None:
    """Under --json, the data before the error; else what was seen before it went wrong, as notes."""
    if call.json and call.face != "rpc":
        from labd.call import encode
        from labd.jsonlight import pretty

        call.out(encode(pretty({**data, "ended": error.name}) + "\n"))
        return
    for item in data["verified"]:
        call.note(f"{data['target']}: verified: {_seen_words(item)}")


def state(call: Call, args: Args) -> dict[str, Any]:
    """Whether the target has power."""
    supply = _supply(call, args)
    found = supply.state()
    supply.tell("state", power=found.data()["power"], by=found.by)
    return {"target": supply.target, **found.data()}


def state_text(data: dict[str, Any], call: Call) -> str:
    """One line."""
    return f"{data['target']}: power {data['power']} ({data['says']})"


def _supply(call: Call, args: Args) -> Supply:
    from labd.power import Supply

    lab = call.lab()
    return Supply(call, lab, lab.resolve_target(args.target, call), who_of(call))


def _last_line(data: bytes) -> str:
    from labd.lab.redact import redact

    lines = data.decode("utf-8", "replace").split("\n")
    return redact(next((line.strip() for line in reversed(lines) if line.strip()), "")[:200])


def _verify(*levels: str) -> Param:
    return Param("verify", "what to look at afterwards; by default the state, where it can be known", kind="choice",
                 flags=("--verify",), choices=levels)  # fmt: skip


WITHIN = Param("within", "how long each thing may take to be seen; default: 10 s for the state, 60 s for a boot",
               kind="float", flags=("--within",), unit="s", minimum=0.1, maximum=86400)  # fmt: skip
BOOTING = (
    _verify("state", "boot", "none"),
    Param("expect", "a pattern that the console has to say since the act began; one of several will do",
          flags=("--expect",), repeat=True, metavar="REGEX"),
    WITHIN,
    INTERFACE,
)  # fmt: skip

VERIFIES = (
    "Exit 0 says that the hook ended well and that nothing that was looked at contradicts it; the answer says what was "
    "looked at and what was not. --json: target, action, hook (name, ms, said), verified (what, by, says …), "
    "unverified, console (interface, since, offset: where to read on). "
)
BOOTS = (
    "The state is read back by state_cmd, or from the sense line of a captured console, which also shows whether the "
    "power was cut. --verify state insists on that. --expect REGEX, or --verify boot for what boots begin with, waits "
    "for the console, from what it said when the act began; it has to be captured. Exit 1: the state is wrong; 5: no "
    "boot line in time; 8: the board died booting."
)


def _operation(path: tuple[str, ...], action: str, summary: str, doc: str, params: tuple[Param, ...],
               *examples: tuple[str, str], aliases: tuple[tuple[str, ...], ...] = ()) -> Operation:  # fmt: skip
    return Operation(
        path,
        summary,
        effect="actuate",
        where="daemon",
        params=(TARGET, *params),
        handler=_switching(action),
        text=switched_text,
        doc=VERIFIES + doc,
        examples=examples,
        aliases=aliases,
    )


OPERATIONS = (
    *channel_operations(
        "power",
        summaries=(
            "say which commands switch a target's power; only the given fields change",
            "take a target's power commands out of the lab; the target stays",
            "the commands that switch a target's power",
            "the targets whose power can be switched, with their commands",
        ),
        removed="labd can't switch pico any more",
        example=(PLUG, "a smart plug, through a bundled helper (labd helper lists them)"),
        unset="off_cmd",
        doc="Hooks are commands of yours. They run without a shell; one that needs pipes, variables or && says so: "
        "sh -c '…'. A leading ~ is your home. A hook that exits 0 has done its work; state_cmd prints on or off. One "
        "that takes longer than timeout_s (60) is ended with its process group (asked first, killed 5 s later), exit "
        "5; one at a time runs for a target. labd helper lists the bundled programs for smart plugs, hubs and PDUs, "
        "which hooks and their shells call by name.",
    ),
    _operation(
        ("power", "on"), "on", "switch a target on (runs on_cmd)", BOOTS, BOOTING,
        ("labd power on pico", "switch pico on"),
        ("labd power on pico --expect 'login:' --within 90", "… and wait until it has booted"),
    ),
    _operation(
        ("power", "off"), "off", "switch a target off (runs off_cmd)",
        "The state is read back by state_cmd or from the sense line of a captured console; --verify state insists on "
        "that. Exit 1: it is still on.",
        (_verify("state", "none"), WITHIN),
        ("labd power off pico", "switch pico off"),
    ),
    _operation(
        ("power-cycle",), "cycle", "switch a target off and on again (runs cycle_cmd)",
        BOOTS + " Without a cycle_cmd, off_cmd and on_cmd are run, 3 s apart; the power comes back also when off_cmd "
        "fails or labd is killed meanwhile.",
        BOOTING,
        ("labd power-cycle pico", "cut pico's power and restore it"),
        ("labd power-cycle pico --expect 'login:' --within 90", "… and wait until it has booted"),
        ("labd power-cycle pico --verify boot", "… until its firmware or kernel says something"),
        aliases=(("power", "cycle"),),
    ),
    Operation(
        ("power-state",),
        "tell whether a target has power, without changing it (state_cmd, or the serial sense line)",
        # Not `observe`: state_cmd is a command of the operator's and reaches the hardware.
        effect="actuate",
        where="daemon",
        params=(TARGET,),
        handler=state,
        text=state_text,
        doc="Exit 0 whether it is on or off; --json has it as power. A sense line is read at this moment, from a "
        "console that is being captured.",
        aliases=(("power", "state"),),
        examples=(("labd power-state pico", "is pico on?"),),
    ),
)  # fmt: skip
