"""`labd adb`: which Android device is a target, and reaching it over adb."""

from __future__ import annotations

from labd.operations.channel_config import channel_operations
from labd.operations.model import TARGET, Operation, Param

LATER = "running adb arrives with a later version; adb set, rm, show and list work"

TARGET_OPTION = Param("target", "the target; may be left out when the lab has one", flags=("-t", "--target"),
                      complete="target")  # fmt: skip

OPERATIONS = (
    *channel_operations(
        "adb",
        summaries=(
            "say which Android device a target is; only the given fields change",
            "forget which Android device a target is; the target stays",
            "the Android device that a target is",
            "the targets that are Android devices, with their serial numbers",
        ),
        removed="pico is no Android device any more",
        example=("labd adb set -t tablet --serial ABC123", "the device with this adb serial number"),
        unset="serial",
        doc="Without --serial the target is the only device that adb sees. There is no verb to reboot a device over "
        'adb: make that the power hook (labd power set -t tablet --cycle-cmd "adb -s ABC123 reboot").',
    ),
    Operation(
        ("adb", "shell"),
        "an interactive shell on the device",
        effect="actuate",
        where="client",
        params=(TARGET,),
        missing=LATER,
        examples=(("labd adb shell tablet", "a shell"),),
    ),
    Operation(
        ("adb", "run"),
        "run a command on the device; its output and exit status",
        effect="actuate",
        params=(TARGET_OPTION, Param("words", "the command", kind="rest", required=True)),
        missing=LATER,
        opaque=True,
        examples=(("labd adb run -t tablet getprop ro.build.id", "one property"),),
    ),
    Operation(
        ("adb", "input"),
        "tap, swipe or type on the device",
        effect="actuate",
        params=(TARGET_OPTION, Param("words", "what Android's input command takes", kind="rest", required=True)),
        missing=LATER,
        opaque=True,
        examples=(("labd adb input -t tablet keyevent KEYCODE_HOME", "the home key"),),
    ),
    Operation(
        ("adb", "screencap"),
        "take a picture of the device's screen (PNG)",
        effect="actuate",
        params=(
            TARGET,
            Param("out", "the file to write; - is stdout", kind="path", flags=("-o", "--out"), default="-",
                  complete="file"),
        ),
        missing=LATER,
        examples=(("labd adb screencap tablet -o now.png", "its screen now"),),
    ),
    Operation(
        ("adb", "devices"),
        "the devices that adb sees",
        # Not `observe`: asking starts adb's own server.
        effect="actuate",
        params=(Param("host", "on this machine of the lab", flags=("-H", "--host"), complete="host"),),
        missing=LATER + "; labd discover lists adb devices today",
        examples=(("labd adb devices", "one line a device"),),
    ),
)  # fmt: skip
