"""`labd claim` and `labd release`: whole boards for one person or agent at a time."""

from __future__ import annotations

from labd.errors import NotFound, Usage
from labd.operations.consoles import TARGET_EITHER
from labd.operations.model import TARGET, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_MOST_S = 30 * 86400


def take(call: Call, args: Args) -> dict[str, Any]:
    """Claim a target."""
    from labd import claims

    seconds = duration(getattr(args, "for"))
    target = call.lab().resolve_target(args.target, call)
    made = claims.claim(call.env, call.lab_path, target, seconds=seconds, why=args.why or "", take=args.take)
    if claims.NAME_VARIABLE not in call.env:
        call.note(f"claimed as {made['by']}, like everything else of this account; {claims.NAME_VARIABLE}=NAME tells "
                  "agents of one account apart")  # fmt: skip
    return made


def take_text(data: dict[str, Any], call: Call) -> str:
    """Who has it until when."""
    from labd.claims import when

    why = f" ({data['why']})" if data["why"] else ""
    was = f"; taken over from {data['taken_from']}" if data["taken_from"] else ""
    return f"{data['target']} is claimed by {data['by']} until {when(data['until'])}{why}{was}"


def duration(text: str) -> float:
    """`90s`, `30m`, `2h`, `1d` in seconds. Raises Usage."""
    number = text.rstrip("smhdin")
    unit = text[len(number) :] or "m"
    try:
        seconds = float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        raise Usage(f"--for is a time like 30m, 2h or 1d, not {text!r}") from None
    if not 1 <= seconds <= _MOST_S:
        raise Usage(f"--for is between 1s and {_MOST_S // 86400}d, not {text}")
    return seconds


def give_back(call: Call, args: Args) -> dict[str, Any]:
    """Release a target. It need not be in the lab any more."""
    from labd import claims

    target = args.target if args.target is not None else call.lab().resolve_target(None, call)
    if "/" in target:
        raise NotFound(f"no target {target!r}", hint="labd claim list")
    was = claims.release(call.env, call.lab_path, target, force=args.force)
    if was is None:
        call.lab().resolve_target(target, call)
        call.note(f"nobody had claimed {target}")
    return {"target": target, "released": was}


def give_back_text(data: dict[str, Any], call: Call) -> str | None:
    """What was released."""
    return f"{data['target']} is released; {data['released']['by']} had it" if data["released"] else None


def listed(call: Call, args: Args) -> list[dict[str, Any]]:
    """Every claim in force."""
    from labd import claims

    found = list(claims.all_claims(call.env))
    if not found:
        call.reason(f"nothing is claimed; labd {call.lab_words()}claim TARGET claims a board")
    return found


def listed_text(rows: list[dict[str, Any]], call: Call) -> str | None:
    """One line a claim; the lab is named where it is another one than this call's."""
    import os

    from labd.claims import when
    from labd.render import columns

    if not rows:
        return None
    here = os.path.realpath(call.lab_path)
    table = [
        (row["target"], row["by"], f"until {when(row['until'])}",
         row["why"] + ("" if row["lab"] == here else f" (lab {row['lab']})"))
        for row in rows
    ]  # fmt: skip
    return columns(table, call.columns, indent="")


OPERATIONS = (
    Operation(
        ("claim",),
        "claim a board: others may look, not act",
        effect="config",
        params=(
            TARGET,
            TARGET_EITHER,
            Param("for", "for how long: 90s, 30m, 2h, 1d", flags=("--for",), default="1h", metavar="TIME"),
            Param("why", "what for; others see it", flags=("--why",), metavar="TEXT"),
            Param("take", "take it over from whoever has it", kind="switch", flags=("--take",), default=False),
        ),
        handler=take,
        text=take_text,
        doc="While a claim holds, everything that acts on the board (typing, watching, pulses, power) or changes "
        "its configuration exits 6 for everybody else and says who has it, until when and why. Reading is never "
        "limited. You go by the name in LABD_AS, else by your account's; claiming again prolongs. Claims "
        "outlive the daemon.",
        examples=(
            ("labd claim pico --for 2h --why 'bisecting a boot hang'", "two hours of pico"),
            ("labd claim pico --take", "from somebody who forgot to release it"),
        ),
    ),
    Operation(
        ("claim", "list"),
        "who has claimed what",
        effect="observe",
        handler=listed,
        text=listed_text,
        examples=(("labd claim list", "all claims in force"),),
    ),
    Operation(
        ("release",),
        "give a claimed board back",
        effect="config",
        params=(
            TARGET,
            TARGET_EITHER,
            Param("force", "also if somebody else has it", kind="switch", flags=("--force",), default=False),
        ),
        handler=give_back,
        text=give_back_text,
        examples=(("labd release pico", "let others act on it again"),),
    ),
)
