"""`labd adb`: which Android device is a target, and reaching it over adb. The running of adb is `labd.adb`."""

from __future__ import annotations

from labd.errors import LabdError, Usage
from labd.operations.channel_config import channel_operations, show_channel
from labd.operations.channel_config import show_text as fields_text
from labd.operations.consoles import who_of
from labd.operations.model import TARGET, Answer, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.adb import Device
    from labd.call import Call
    from labd.lab import Lab
    from labd.operations.model import Args

TARGET_OPTION = Param("target", "the target; may be left out when the lab has one", flags=("-t", "--target"),
                      complete="target")  # fmt: skip
TIMEOUT = Param("timeout", "give up after this long; default: never", kind="float", flags=("--timeout",), unit="s",
                minimum=0.1, maximum=604800)  # fmt: skip

#: Seconds that a short question to adb, and a picture, may take: a cold server takes a few to start.
ASK_SECONDS, PICTURE_SECONDS = 20.0, 60.0


def show(call: Call, args: Args) -> dict[str, Any]:
    """What the lab says, the program that would be run, and the device's state as a running server has it."""
    from labd import adb

    facts = show_channel(call, args, "adb")
    table = call.lab().channel(facts["target"], "adb")
    devices = adb.server_devices(adb.server_address(adb.environment(call)))
    try:
        facts["adb"] = adb.program(call.env, call.lab().directory, table.get("adb", "adb"))
    except LabdError as error:
        call.note(f"{error.message}; try: {error.hint}")
    return {"serial": None, **facts, "state": _state(devices, table.get("serial"))}


def _state(devices: list[dict[str, str]] | None, serial: str | None) -> str:
    """The live state in words: adb's own (device, offline, unauthorized …), or why there is none."""
    if devices is None:
        return "unknown: no adb server runs (labd adb devices starts it)"
    seen = [row for row in devices if serial in (None, row["serial"])]
    if not seen:
        return "not seen"
    return seen[0]["state"] if len(seen) == 1 else f"{len(seen)} devices, and no serial number says which"


def show_text(data: dict[str, Any], call: Call) -> str:
    """`field<TAB>value`, one a line."""
    said = {**data, "serial": data["serial"] or "the only device"}
    return f"{fields_text({key: said[key] for key in said if key != 'state'}, call)}\nstate\t{data['state']}"


def shell(call: Call, args: Args) -> Answer:
    """A shell on the caller's own terminal."""
    from labd import shim

    _, target, device = _device(call, args)
    if not call.stdin_tty:
        raise Usage("an interactive shell needs a terminal", hint=f"labd adb run -t {target} COMMAND")
    call.flush()
    return Answer(None, code=shim.run_attached(device.argv("shell"), call), text="")


def run(call: Call, args: Args) -> Answer:
    """Run a command on the device, as adb does: its words joined, read by the device's shell."""
    return _run(call, args, "run", " ".join(args.words), args.timeout)


def input_(call: Call, args: Args) -> Answer:
    """Run Android's input with exactly these words."""
    import shlex

    return _run(call, args, "input", shlex.join(["input", *args.words]), ASK_SECONDS)


def _run(call: Call, args: Args, kind: str, command: str, timeout_s: float | None) -> Answer:
    import time

    from labd import adb

    _, target, device = _device(call, args)
    out: list[bytes] = []
    err: list[bytes] = []
    size = 0

    def stdout(data: bytes) -> None:
        nonlocal size
        size += len(data)
        if call.json:
            out.append(data)
        else:
            call.out(data)
            call.flush()

    begun, code, told = time.monotonic(), None, {}
    try:
        code = adb.run(call, device.argv("shell", command), stdout, err.append if call.json else call.err, timeout_s)
    except LabdError as error:
        told = {"error": error.message}
        raise
    finally:
        ms = round((time.monotonic() - begun) * 1000, 1)
        _tell(call, target, kind, command=command, code=code, ms=ms, bytes=size, **told)
    data = {"target": target, "command": command, "code": code, "output": _text(out), "errors": _text(err), "ms": ms}
    return Answer(data, code=code, text="")


def _text(pieces: list[bytes]) -> str:
    return b"".join(pieces).decode("utf-8", "replace")


def screencap(call: Call, args: Args) -> Answer:
    """Take a picture and write it where the caller is."""
    import hashlib

    from labd import adb, outfile

    if args.out == "-" and (call.json or call.stdout_tty):
        raise Usage(f"a picture does not go into {'JSON' if call.json else 'a terminal'}",
                    hint=" ".join(["labd adb screencap", *filter(None, [args.target]), "-o now.png"]))  # fmt: skip
    _, target, device = _device(call, args)
    pieces: list[bytes] = []
    said: list[bytes] = []
    code = adb.run(call, device.argv("exec-out", "screencap", "-p"), pieces.append, said.append, PICTURE_SECONDS)
    try:
        png, width, height = adb.picture_of(b"".join(pieces))
    except LabdError as error:
        more = _text(said).strip()
        raise LabdError(f"{target}: {error.message}{f': {more[:200]}' if more else ''} (exit code {code})",
                        hint="labd adb devices") from None  # fmt: skip
    digest = hashlib.sha256(png).hexdigest()
    data = {"target": target, "file": args.out, "bytes": len(png), "width": width, "height": height, "sha256": digest}
    if args.out == "-":
        call.out(png)
    else:
        data["file"] = outfile.write(call, args.out, [png])
    picture = f"{digest[:16]}.png"
    call.bench.chronicle.keep_picture(call.lab_path, target, picture, png)
    _tell(call, target, "screencap", picture=picture, width=width, height=height, file=data["file"])
    return Answer(data, text="" if args.out == "-" else None)


def screencap_text(data: dict[str, Any], call: Call) -> str:
    """Where the picture is, and how large."""
    return f"{data['file']}: {data['width']}x{data['height']}, {data['bytes']} bytes"


def devices(call: Call, args: Args) -> list[dict[str, str]]:
    """The devices that adb sees; its server is started if need be."""
    from labd import adb

    out: list[bytes] = []
    err: list[bytes] = []
    code = adb.run(call, [adb.program(call.env, call.cwd), "devices", "-l"], out.append, err.append, ASK_SECONDS)
    if code:
        raise LabdError(f"adb devices failed (exit code {code}): {_text(err).strip()[-300:]}", hint="adb kill-server")
    found = adb.listed(_text(out))
    if not found:
        call.reason("adb sees no device; is USB debugging on, and the cable one for data?")
    return found


def devices_text(rows: list[dict[str, str]], call: Call) -> str | None:
    """`SERIAL<TAB>STATE<TAB>MODEL`, one line a device."""
    return "\n".join("\t".join((row["serial"], row["state"], row.get("model", ""))).rstrip() for row in rows) or None


def _device(call: Call, args: Args) -> tuple[Lab, str, Device]:
    """(lab, target, its device). The sole target with an adb channel may be left out."""
    from labd import adb

    lab = call.lab()
    target = args.target
    holders = [name for name, table in lab.targets.items() if "adb" in table]
    if target is None and len(holders) == 1:
        target = holders[0]
        call.note(f"target {target}")
    target = lab.resolve_target(target, call)
    return lab, target, adb.device_of(call, lab, target)


def _tell(call: Call, target: str, kind: str, **fields: Any) -> None:
    from labd.lab.redact import redacted

    call.bench.chronicle.tell(call.lab_path, target, "adb", kind, who=who_of(call), **redacted(fields))


_CONFIG = channel_operations(
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
)

OPERATIONS = (
    *(op for op in _CONFIG if op.path != ("adb", "show")),
    Operation(
        ("adb", "show"),
        "the Android device that a target is, and its state now",
        effect="observe",
        params=(TARGET,),
        handler=show,
        text=show_text,
        doc="The state is what a running adb server says of the device (device, offline, unauthorized); none is "
        "started for that.",
        examples=(("labd adb show tablet", "what the lab says of it, and whether adb sees it"),),
    ),
    Operation(
        ("adb", "shell"),
        "an interactive shell on the device",
        effect="actuate",
        where="client",
        terminal=True,
        params=(TARGET,),
        handler=shell,
        examples=(("labd adb shell tablet", "a shell"),),
    ),
    Operation(
        ("adb", "run"),
        "run a command on the device; its output and exit status",
        effect="actuate",
        where="daemon",
        params=(TARGET_OPTION, TIMEOUT, Param("words", "the command", kind="rest", required=True)),
        handler=run,
        doc="The words are joined by spaces and read by the device's shell, as adb does. stdout, stderr and exit code "
        "are the command's, as they come; its stdin is empty. Exit 7: adb can't reach the device; 5: --timeout was "
        "over, the command may still run there. Options stand before the command.",
        opaque=True,
        examples=(
            ("labd adb run -t tablet getprop ro.build.id", "one property"),
            ("labd adb run -t tablet 'dumpsys battery | grep level'", "a pipe on the device"),
        ),
    ),
    Operation(
        ("adb", "input"),
        "tap, swipe or type on the device",
        effect="actuate",
        where="daemon",
        params=(TARGET_OPTION, Param("words", "what Android's input command takes", kind="rest", required=True)),
        handler=input_,
        doc="text, keyevent, tap, swipe and what else Android's input knows; each word arrives as it is, spaces and "
        "all. What input prints, and its exit code, are passed on.",
        opaque=True,
        examples=(
            ("labd adb input -t tablet keyevent KEYCODE_HOME", "the home key"),
            ("labd adb input -t tablet text 'hello world'", "type into what has the focus"),
        ),
    ),
    Operation(
        ("adb", "screencap"),
        "take a picture of the device's screen (PNG)",
        effect="actuate",
        where="daemon",
        params=(
            TARGET,
            Param("out", "the file to write, where you are; - is stdout", kind="path", flags=("-o", "--out"),
                  default="-", complete="file", ships="out"),
        ),
        handler=screencap,
        text=screencap_text,
        doc="The file is written whole or not at all. Exit 1, with what the device said, when it sent no picture.",
        examples=(("labd adb screencap tablet -o now.png", "its screen now"),),
    ),
    Operation(
        ("adb", "devices"),
        "the devices that adb sees",
        # Not `observe`: asking starts adb's own server.
        effect="actuate",
        params=(Param("host", "on this machine of the lab", flags=("-H", "--host"), complete="host"),),
        handler=devices,
        text=devices_text,
        examples=(("labd adb devices", "one line a device"),),
    ),
)  # fmt: skip
