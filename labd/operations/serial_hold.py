"""`labd serial hold`: be a console's only writer for as long as the call lives. Light: `serial log` loads it too."""

from __future__ import annotations

from labd.operations.consoles import TARGET_EITHER, WRITER_PARAMS, Held, console
from labd.operations.model import INTERFACE, TARGET, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args

#: How long a lease outlives a caller that vanished without a hang-up, and how often it is renewed (seconds).
TTL_S = 10.0
RENEW_S = 1.0


def hold(call: Call, args: Args) -> Iterator[dict[str, Any]]:
    """Hold the console's lease and renew it until the caller hangs up, or the lease is taken over."""
    lab, target, line = console(call, args)
    with Held(call, args, lab, target, line["name"], what=args.why or "a hold", ttl_s=TTL_S) as lease:
        yield {"target": target, "interface": line["name"], "held": lease.plain()}
        while call.wait_data(f"hold {lease.id}", RENEW_S):  # nothing grows there: it sleeps, and notices a hang-up
            lease = call.bench.writers.leases.renew(lease, TTL_S)


def hold_text(data: dict[str, Any], call: Call) -> str:
    """What is held."""
    return f"{data['target']}.{data['interface']}: nobody else writes to it until this ends"


SERIAL_HOLD = Operation(
    ("serial", "hold"),
    "keep everybody else from writing to the console",
    effect="actuate",
    where="daemon",
    stream=True,
    params=(
        TARGET,
        TARGET_EITHER,
        INTERFACE,
        Param("why", "what for; others are told", flags=("--why",), metavar="TEXT"),
        *WRITER_PARAMS,
    ),
    handler=hold,
    text=hold_text,
    doc="Goes on until it is interrupted. Reading is never limited, and serial log, expect and show go on as before; "
    "sends, runs and sessions of others exit 6 and say who holds the console. Programs hold it through the Python "
    "client, and serial connect does so by itself.",
    examples=(("labd serial hold pico --why 'flashing by hand'", "until Ctrl-C"),),
)
