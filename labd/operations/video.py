"""`labd video`: which capture device sees a target's screen, and looking at it."""

from __future__ import annotations

from labd.operations.channel_config import channel_operations
from labd.operations.model import TARGET, Operation, Param

LATER = "screen capture arrives with a later version; video set, rm, show and list work"

TIMEOUT = Param("timeout", "how long to wait", kind="int", flags=("--timeout",), default=2000, unit="ms", minimum=0,
                metavar="MS")  # fmt: skip
STABLE = Param("stable", "wait until the picture has settled", kind="switch", flags=("--stable",))

OPERATIONS = (
    *channel_operations(
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
    ),
    Operation(
        ("video", "watch"),
        "start capturing a target's screen",
        effect="actuate",
        params=(TARGET, Param("restart", "start afresh if it runs", kind="switch", flags=("--restart",))),
        missing=LATER,
        examples=(("labd video watch pico", "capture pico's screen"),),
    ),
    Operation(
        ("video", "stop"),
        "stop capturing a target's screen",
        effect="actuate",
        params=(TARGET,),
        missing=LATER,
        examples=(("labd video stop pico", "free the capture device"),),
    ),
    Operation(
        ("video", "shot"),
        "take a picture of a target's screen (PNG)",
        effect="actuate",
        params=(
            TARGET,
            STABLE,
            Param("changed_since", "wait until the screen differs from the shot with this hash",
                  flags=("--changed-since",), metavar="HASH"),
            TIMEOUT,
            Param("out", "the file to write; - is stdout", kind="path", flags=("-o", "--out"), default="-",
                  complete="file"),
        ),
        missing=LATER,
        examples=(("labd video shot pico --stable -o boot.png", "the boot screen, once it has settled"),),
    ),
    Operation(
        ("video", "read"),
        "read the text on a target's screen (OCR)",
        effect="actuate",
        params=(TARGET, STABLE, TIMEOUT),
        missing=LATER,
        examples=(("labd video read pico --stable", "what the screen says"),),
    ),
    Operation(
        ("video", "preview"),
        "where to watch a target's screen in a browser",
        effect="observe",
        params=(TARGET,),
        missing=LATER,
        examples=(("labd video preview pico", "the address"),),
    ),
    Operation(
        ("video", "devices"),
        "the capture devices of this machine",
        effect="observe",
        missing=LATER + "; labd discover lists capture devices today",
        examples=(("labd video devices", "one line a device"),),
    ),
)  # fmt: skip
