"""`labd hid`: which command types and clicks on a target, and doing it."""

from __future__ import annotations

from labd.operations.channel_config import channel_operations
from labd.operations.model import TARGET, Operation, Param

LATER = "emulated input arrives with a later version; hid set, rm, show and list work"

OPERATIONS = (
    *channel_operations(
        "hid",
        summaries=(
            "say which command types and clicks on a target; only the given fields change",
            "take a target's input command out of the lab; the target stays",
            "the command that types and clicks on a target",
            "the targets that have an input command, with their commands",
        ),
        removed="nothing types on pico any more",
        example=('labd hid set -t pico --cmd "hidrig -d /dev/ttyACM1"', "an input rig; what to do is appended"),
        unset="host",
        doc="The command runs without a shell, with the words of labd hid send appended to it.",
    ),
    Operation(
        ("hid", "send"),
        "type, press, move or click on a target",
        effect="actuate",
        params=(
            Param("target", "the target; may be left out when the lab has one", flags=("-t", "--target"),
                  complete="target"),
            Param("words", "what to do, in the words of the configured command", kind="rest", required=True),
        ),
        missing=LATER,
        opaque=True,
        examples=(("labd hid send -t pico key enter", "press Enter"), ("labd hid send -t pico type hello", "type")),
    ),
    Operation(
        ("hid", "serve"),
        "keep the input command running, so that keys can be held down",
        effect="actuate",
        params=(TARGET,),
        missing=LATER,
        examples=(("labd hid serve pico", "keep it running"),),
    ),
    Operation(
        ("hid", "stop"),
        "stop the kept input command",
        effect="actuate",
        params=(TARGET,),
        missing=LATER,
        examples=(("labd hid stop pico", "let go"),),
    ),
)  # fmt: skip
