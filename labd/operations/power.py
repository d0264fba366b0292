"""`labd power`, `labd power-cycle`, `labd power-state`: the hooks that switch a target, and switching it."""

from __future__ import annotations

from labd.operations.channel_config import channel_operations
from labd.operations.model import TARGET, Operation

LATER = "running power hooks arrives with a later version; power set, rm, show and list work"

PLUG = (
    'labd power set -t pico --cycle-cmd "shellyplug -d 192.0.2.41 cycle" --state-cmd "shellyplug -d 192.0.2.41 state"'
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
        "sh -c '…'. A leading ~ is your home. A hook that exits 0 has done its work; state_cmd prints on or off. "
        "labd helper lists the bundled programs for smart plugs and hubs, which hooks call by name.",
    ),
    Operation(
        ("power", "on"),
        "switch a target on (runs on_cmd)",
        effect="actuate",
        params=(TARGET,),
        missing=LATER,
        examples=(("labd power on pico", "switch pico on"),),
    ),
    Operation(
        ("power", "off"),
        "switch a target off (runs off_cmd)",
        effect="actuate",
        params=(TARGET,),
        missing=LATER,
        examples=(("labd power off pico", "switch pico off"),),
    ),
    Operation(
        ("power-cycle",),
        "switch a target off and on again (runs cycle_cmd)",
        effect="actuate",
        params=(TARGET,),
        missing=LATER,
        aliases=(("power", "cycle"),),
        examples=(("labd power-cycle pico", "cut pico's power and restore it"),),
    ),
    Operation(
        ("power-state",),
        "tell whether a target has power, without changing it (state_cmd, or the serial sense line)",
        # Not `observe`: state_cmd is a command of the operator's and reaches the hardware.
        effect="actuate",
        params=(TARGET,),
        missing=LATER,
        aliases=(("power", "state"),),
        examples=(("labd power-state pico", "is pico on?"),),
    ),
)
