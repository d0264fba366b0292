"""`labd hid`: which command types and clicks on a target, and doing it.

Everything goes through the target's hook, with the words behind it; what the bundled helpers would refuse is refused
here, before anything is started.
"""

from __future__ import annotations

from labd.errors import Usage
from labd.operations.channel_config import channel_operations, show_channel
from labd.operations.consoles import who_of
from labd.operations.model import TARGET, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.hid.words import Step
    from labd.operations.model import Args

WORDS = (
    "Words of the bundled helpers (hidrig, ch9329, qmp, hidgadget): type TEXT · key KEY (enter, f2, ctrl-c …) · combo "
    "KEY… · down KEY · up KEY · releaseall (keys and mouse buttons) · move DX DY · moveabs X Y (0 to 32767 over the "
    "whole screen, not pixels) · click [left|right|middle] [1|2|3] · mdown [BUTTON] · mup [BUTTON] · scroll N · ping · "
    "version · delay MS · sleep S · run FILE (- is stdin; one command a line, # begins a comment). "
    "All of it is checked before anything is sent. "
)

#: The flags of the bundled helpers that make them slower, in ms a key or a command.
PACING = ("--hold-ms", "--gap-ms", "--delay-ms")


def send(call: Call, args: Args) -> dict[str, Any]:
    """Run the hook with the words behind it."""
    lab = call.lab()
    target = lab.resolve_target(args.target, call)
    command = lab.channel(target, "hid")["cmd"]
    words, stdin, steps = _checked(call, target, command, list(args.words))
    if stdin:
        _tell_script(call, target, stdin)
    ended = call.bench.hooks.run(
        call, target, "hid", words[0], command, who_of(call), extra=words, timeout_s=_limit(command, steps), stdin=stdin
    )
    for line in ended.err.decode("utf-8", "replace").splitlines():
        call.note(line.strip())
    from labd.hid.words import lines_of

    said = lines_of(steps) if steps else " ".join(words)
    return {"target": target, "did": said, "commands": len(steps) or 1, "ms": round(ended.ms, 1),
            "out": ended.out.decode("utf-8", "replace")}  # fmt: skip


def send_text(data: dict[str, Any], call: Call) -> str:
    """What the helper answered, else what it was told."""
    return data["out"].rstrip("\n") or f"{data['target']}: {data['did']}"


def _checked(call: Call, target: str, command: str, words: list[str]) -> tuple[list[str], bytes, list[Step]]:
    """The words for the hook, its stdin, and the steps that they mean: none where only the hook knows. Raises Usage."""
    if words[0] in ("serve", "stop"):
        raise Usage(
            f"{words[0]} would not type anything",
            hint=f"labd hid serve {target}" if words[0] == "serve" else f"labd hid stop {target}",
        )
    from labd import helpers
    from labd.hid import HELPERS
    from labd.hid.words import parse

    name = _program(command)
    stdin = b""
    if words[0].lower() == "run" and len(words) == 2 and (name in HELPERS or words[1] == "-"):
        stdin = _script(call, words[1])
    if name not in HELPERS:
        if helpers.has(name):
            raise Usage(
                f"{target}'s hid command is {name}, which types nothing", hint=f"labd hid set -t {target} --help"
            )
        return words, stdin, []
    if words[0].lower() in HELPERS[name]:
        if words[0].lower() == "info":
            return words, b"", []
        raise Usage(f"{name} {words[0]} is no input, and switches no power from here",
                    hint=f"labd power set -t {target} --help")  # fmt: skip
    steps = parse(words, lambda path: stdin.decode("utf-8", "replace"))
    return (["run", "-"] if words[0].lower() == "run" else words), stdin, steps


def _program(command: str) -> str:
    """The program that a hook starts in the end, behind sudo and its like; "" where that can't be told."""
    from labd import hookwords
    from labd.lab import hooks

    try:
        words = hooks.take_apart(command).words
    except ValueError:
        return ""  # running it says why
    places = hookwords.programs(words)
    return words[places[-1]] if places else ""


def _script(call: Call, name: str) -> bytes:
    """The bytes of a command file, from where the caller is."""
    if name == "-":
        return call.read_stdin()
    from labd import paths

    path = paths.expand(name, call.env, call.cwd)
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Usage(f"{name}: {error.strerror}") from None


def _limit(command: str, steps: list[Step]) -> float:
    """Seconds that the hook may take: to begin with, and for its steps at a slow pace or at the one of its flags."""
    from itertools import pairwise

    from labd.hid.device import Pace
    from labd.hid.player import seconds
    from labd.hookrun import TIMEOUT_SECONDS

    slow = Pace(hold=0.1, gap=0.1, char_hold=0.05, char_gap=0.05, further=0.05)
    words = command.split()
    said_ms = sum(int(ms) for flag, ms in pairwise(words) if flag in PACING and ms.isdigit())
    pauses = sum(1 + len(step.chords) for step in steps)
    return TIMEOUT_SECONDS + seconds(steps, slow) + pauses * said_ms / 1000


def _tell_script(call: Call, target: str, script: bytes) -> None:
    """Record the command file that comes now: the hook's own words are `run -` alone."""
    from labd.hookrun import SAID_MAX
    from labd.lab.redact import redact

    text = script[:SAID_MAX].decode("utf-8", "replace")
    call.bench.chronicle.tell(call.lab_path, target, "hid", "script", text=redact(text), bytes=len(script))


def serve(call: Call, args: Args) -> dict[str, Any]:
    """Keep the hook running."""
    lab = call.lab()
    target = lab.resolve_target(args.target, call)
    command = lab.channel(target, "hid")["cmd"]
    kept, started = call.bench.kept_hooks.start(call, target, "hid", command, who_of(call))
    if not started:
        call.note(f"{target}'s input command was being kept already")
    return {**kept, "started": started}


def serve_text(data: dict[str, Any], call: Call) -> str:
    """What is kept."""
    return f"{data['target']}: {data['command']} is kept, pid {data['pid']}; labd hid send goes through it"


def stop(call: Call, args: Args) -> dict[str, Any]:
    """End the kept hook."""
    target = call.lab().resolve_target(args.target, call)
    stopped = call.bench is not None and call.bench.kept_hooks.stop(call.lab_path, target, who_of(call))
    if not stopped:
        call.note(f"no input command of {target} was being kept")
    return {"target": target, "stopped": stopped}


def stop_text(data: dict[str, Any], call: Call) -> str | None:
    """What ended."""
    return f"{data['target']}: the kept input command has ended; nothing is held" if data["stopped"] else None


def show(call: Call, args: Args) -> dict[str, Any]:
    """The lab's words, and whether the command is kept."""
    facts = show_channel(call, args, "hid")
    kept = call.bench.kept_hooks.find(call.lab_path, facts["target"]) if call.bench is not None else None
    return {**facts, "kept": kept and {key: kept[key] for key in ("pid", "since", "command")}}


def show_text(data: dict[str, Any], call: Call) -> str:
    """`field<TAB>value`, one a line."""
    kept = f"kept, pid {data['kept']['pid']}" if data["kept"] else "not kept"
    rows = [*((key, data[key]) for key in ("target", "cmd", "host")), ("serve", kept)]
    return "\n".join(f"{key}\t{value}" for key, value in rows)


_CONFIG = channel_operations(
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
)

OPERATIONS = (
    *(op for op in _CONFIG if op.path != ("hid", "show")),
    Operation(
        ("hid", "show"),
        "the command that types and clicks on a target, and whether it is kept running",
        effect="observe",
        params=(TARGET,),
        handler=show,
        text=show_text,
        examples=(("labd hid show pico", "what the lab says of it, and what runs"),),
    ),
    Operation(
        ("hid", "send"),
        "type, press, move or click on a target",
        effect="actuate",
        where="daemon",
        params=(
            Param("target", "the target; may be left out when the lab has one", flags=("-t", "--target"),
                  complete="target"),
            Param("words", "what to do, in the words of the configured command", kind="rest", required=True,
                  ships="script"),
        ),
        handler=send,
        text=send_text,
        opaque=True,
        doc=WORDS + "Other commands get the words as they are. Exit 0 means that the device took them, not that the "
        "target obeyed: look at its screen. What down and mdown hold is held until the next labd hid send, and longer "
        "with labd hid serve. The exit code of the command is passed on.",
        examples=(
            ("labd hid send -t pico key enter", "press Enter"),
            ("labd hid send -t pico type hello", "type"),
            ("labd hid send -t pico combo ctrl alt delete", "keys together"),
            ("labd hid send -t pico moveabs 16384 16384", "the pointer to the middle of the screen"),
            ("labd hid send -t pico click left 2", "a double click"),
        ),
    ),
    Operation(
        ("hid", "serve"),
        "keep the input command running, so that keys can be held down",
        effect="actuate",
        where="daemon",
        params=(TARGET,),
        handler=serve,
        text=serve_text,
        doc="Starts the command with the word serve behind it. A command of your own then says a line that begins with "
        "serving once it is ready, ends when its stdin does, and is found by later starts of itself. It ends with "
        "labd hid stop and with the daemon, and lets go of what it holds; labd daemons restart keeps it again.",
        examples=(("labd hid serve pico", "keep it running"),),
    ),
    Operation(
        ("hid", "stop"),
        "stop the kept input command; what it holds is released",
        effect="actuate",
        params=(TARGET,),
        handler=stop,
        text=stop_text,
        examples=(("labd hid stop pico", "let go"),),
    ),
)  # fmt: skip
