"""`labd serial expect`: wait until a console says something. `await_patterns` is for others that wait: send, run.

The waiting is `labd.expect`; here it gets its words, and its result becomes an answer: exit 0, 5, 7 or 8.
"""

from __future__ import annotations

from labd.errors import Died, TimedOut, Unreachable, Usage
from labd.operations.consoles import console
from labd.operations.model import INTERFACE, TARGET, Answer, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from labd.call import Call
    from labd.expect import Result
    from labd.operations.model import Args

#: How many lines before the match a person is shown; --json has all that are told.
SHOWN_BEFORE = 40
#: How many characters of a line are shown where nothing matched; --json has all that are told.
SHOWN_OF_LINE = 200
_LIVE_S = 0.25

TIMEOUT = Param("timeout", "give up after this long; 0 looks only at what is there", kind="float",
                flags=("--timeout",), default=30.0, unit="s", minimum=0, maximum=604800)  # fmt: skip

#: How to look, for every verb that waits; `--timeout` and the pattern itself are the verb's own.
HOW_PARAMS = (
    Param("any", "another pattern that will do; may be repeated", flags=("--any",), repeat=True, metavar="PATTERN"),
    Param("literal", "take patterns as they are written, not as regular expressions", kind="switch",
          flags=("--literal",), default=False),
    Param("ignore_case", "match without regard to case", kind="switch", flags=("-I", "--ignore-case"), default=False),
    Param("raw", "match the exact bytes, colours and carriage returns included, one character each", kind="switch",
          flags=("--raw",), default=False),
    Param("settle", "how long nothing must follow for a match that could still grow", kind="float",
          flags=("--settle",), default=300.0, unit="ms", minimum=0, maximum=60000),
    Param("death", "a pattern that ends the wait with exit 8; may be repeated", flags=("--death",), repeat=True,
          metavar="PATTERN"),
    Param("no_death", "wait on over kernel panics and the like", kind="switch", flags=("--no-death",), default=False),
)  # fmt: skip


def expect(call: Call, args: Args) -> Any:
    """Wait for a pattern from the cursor on."""
    from labd.expect import cursor_since, live_end

    patterns = checked(args.pattern, args)
    if args.since is not None and args.from_offset is not None:
        raise Usage("--since and --from-offset both say where to begin", hint="leave one out")
    _, target, line = console(call, args)
    directory = call.journal_dir(target, line["name"])
    if args.since is not None:
        cursor = cursor_since(directory, args.since)
    else:
        cursor = live_end(directory) if args.from_offset is None else args.from_offset
    _tell_beyond(call, directory, args)
    return await_patterns(call, target, line, patterns, args, cursor=cursor, timeout_s=args.timeout)


def _tell_beyond(call: Call, directory: str, args: Args) -> None:
    """Say at once that a wait begins behind all that there is: then the number is of another board or mistyped."""
    from labd.journal_read import Reader
    from labd.logquery import parse_since

    try:
        reader = Reader(directory)
    except OSError:
        return  # the wait says so
    if args.since is not None and parse_since(args.since)[0] > reader.last_seq:
        last = f"the last line, #{reader.last_seq}" if reader.captured else "all that there is: no line came yet"
        call.note(f"--since {args.since} is beyond {last}; only what comes from now on is looked at")
    elif args.from_offset is not None and args.from_offset > reader.end_offset:
        more = args.from_offset - reader.end_offset
        call.note(f"--from-offset {args.from_offset} is beyond the last byte that came, which ends at "
                  f"{reader.end_offset}; nothing is looked at until {more} more have come")  # fmt: skip


def checked(pattern: str, args: Args) -> list[str]:
    """The patterns of a call that has HOW_PARAMS, once all of them compile: to be called before anything is sent."""
    from labd.match import compile_all

    patterns = [pattern, *args.any]
    compile_all(patterns, literal=args.literal, ignore_case=args.ignore_case, raw=args.raw)
    compile_all(args.death, raw=args.raw, as_written="")
    if args.no_death and args.death:
        raise Usage("--no-death and --death contradict each other", hint="leave one out")
    return patterns


def await_patterns(
    call: Call,
    target: str,
    line: dict[str, Any],
    patterns: list[str],
    args: Args,
    *,
    cursor: int,
    timeout_s: float,
    more: dict[str, Any] | None = None,
) -> Any:
    """Wait on the journal of interface `line` of `target`, and answer as `serial expect` does.

    `args` has HOW_PARAMS; `cursor` is an offset (of a send: its `rx`); `more` are further fields for --json. Raises
    TimedOut, Died or Unreachable where a person asked; for --json the data is told first, for RPC it is the answer.
    """
    from labd.expect import expect as wait_for
    from labd.match import DEATHS

    name = line["name"]
    result = wait_for(
        call.journal_dir(target, name),
        patterns,
        cursor=cursor,
        timeout_s=timeout_s,
        wait=call.wait_data,
        literal=args.literal,
        ignore_case=args.ignore_case,
        raw=args.raw,
        encoding=line["encoding"],
        deaths=() if args.no_death else DEATHS,
        death_patterns=args.death,
        settle_ms=args.settle,
        live=_live(call, target, name),
        progress=call.note,
    )
    data = {"target": target, "interface": name, **(more or {}), **as_data(result)}
    error = _error(call, target, line, result)
    if error is None:
        return Answer(data)
    if call.face == "rpc":
        return Answer(data, code=error.exit_code)
    if call.json:
        from labd.call import encode
        from labd.jsonlight import pretty

        call.out(encode(pretty(data) + "\n"))
    else:
        _tell(call, data)
    raise error


def as_data(result: Result) -> dict[str, Any]:
    """A result as JSON: offsets are of the exact bytes, `echo` are pairs of them."""
    data = dict(vars(result))  # not asdict: its deep copies cost more than the wait
    data["groups"] = list(result.groups)
    for name in ("echo", "nearest", "last_lines"):
        data[name] = [list(item) if isinstance(item, tuple) else item for item in data[name]]
    return data


def expect_text(data: dict[str, Any], call: Call) -> str:
    """What was said up to the match and with it; where it was goes to stderr."""
    seq = f"#{data['seq']}" if data["seq"] == data["seq_end"] else f"#{data['seq']} to #{data['seq_end']}"
    call.note(
        f"{data['pattern']!r} matched in {seq} after {data['waited_s']:.1f} s: {data['why']}; "
        f"on from there: --from-offset {data['cursor']}"
    )
    lines = (data["before"] + _visible(data["text"])).split("\n")
    if more := max(0, len(lines) - SHOWN_BEFORE):
        call.note(
            f"{more} {'line' if more == 1 else 'lines'} before these: "
            f"labd serial log {data['target']} -i {data['interface']}"
        )
    return "\n".join(lines[-SHOWN_BEFORE:])


def _tell(call: Call, data: dict[str, Any]) -> None:
    """What helps to see why it did not come, on stderr."""
    lines = data["last_lines"]
    if lines:
        call.note("the last lines:")
        call.err(_encode("".join(f"  #{line['seq']}  {_clipped(line['text'])}\n" for line in lines)))
    for miss in data["nearest"]:
        text = _clipped(repr(miss["text"]))
        call.note(f"nearest to {miss['pattern']!r}: #{miss['seq']} {text}; {miss['differs']}")


def _clipped(text: str) -> str:
    """The begin of a long line, and how much more there is."""
    more = len(text) - SHOWN_OF_LINE
    return text if more <= 0 else f"{text[:SHOWN_OF_LINE]}… ({more} more characters)"


def _error(call: Call, target: str, line: dict[str, Any], result: Result) -> Died | TimedOut | Unreachable | None:
    if result.ended == "matched":
        return None
    name = f"{target}.{line['name']}"
    if result.ended == "died":
        return Died(
            f"{name}: {result.pattern!r} came in #{result.seq}, so the wait was ended",
            hint=f"labd serial log {target} -i {line['name']} --since {max(0, (result.seq or 1) - 20)}",
        )
    if result.ended == "timed_out":
        row = _row(call, target, line["name"]) or {}
        down = f"; the port is {row['state']} ({row.get('why')})" if row.get("state") in ("lost", "closed") else ""
        return TimedOut(f"{name}: {result.why}{down}", hint=f"labd serial log {target} -i {line['name']} --tail 50")
    if result.ended == "gone":
        return Unreachable(f"{name} is not being captured, so nothing can come", hint=f"labd serial watch {target}")
    return TimedOut(f"{name}: {result.why}")


def _row(call: Call, target: str, name: str) -> dict[str, Any] | None:
    rows = call.bench.status(call.lab_path, target) if call.bench is not None else []
    return next((row for row in rows if row["name"] == name), None)


def _live(call: Call, target: str, name: str) -> Callable[[], bool]:
    """Whether the interface is being captured, asked for at most a few times a second."""
    import time

    known = [0.0, False]

    def live() -> bool:
        now = time.monotonic()
        if not known[1] or now - known[0] > _LIVE_S:
            known[:] = [now, _row(call, target, name) is not None]
        return bool(known[1])

    return live


def _visible(text: str) -> str:
    """A match of exact bytes as a person can read it."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


SERIAL_EXPECT = Operation(
    ("serial", "expect"),
    "wait until the console says something",
    effect="observe",
    params=(
        TARGET,
        Param("pattern", "a regular expression, or text where it has no special character", required=True),
        Param("target", "the target, as a flag", flags=("-t", "--target"), complete="target"),
        INTERFACE,
        TIMEOUT,
        Param("since", "begin after line N, the last that you saw (N* if it was unfinished: with all of it; N+BYTES: "
              "behind so many bytes of it)", flags=("--since",), metavar="N"),
        Param("from_offset", "begin at this byte of all that the target ever sent", kind="int",
              flags=("--from-offset",), minimum=0),
        *HOW_PARAMS,
    ),
    handler=expect,
    text=expect_text,
    doc="Looks at what comes from now on, or from --since or --from-offset on: nothing that came in between is "
    "missed. Text is matched without colours and redrawn as a terminal would; ^ and $ are the begin and end of each "
    "line; what was typed is not matched when it is echoed. A match that could still grow (rc=\\d+) counts when its "
    "line has ended, or when nothing follows for --settle; text and patterns of one length count at once. Exit 5: not "
    "in time, with the nearest miss and the last lines. Exit 8: the board died ('Kernel panic', 'Oops: ', 'Unable to "
    "handle kernel', 'kernel BUG at', 'Guru Meditation Error', 'ZEPHYR FATAL ERROR', U-Boot's 'Please RESET the "
    "board' or a --death pattern came first). A death text that is part of an awaited pattern is none.",
    examples=(
        ("labd serial expect pico 'login:' --timeout 30", "wait for the login prompt"),
        ("labd serial expect pico 'login:' --since 1840", "… which may have come since line 1840"),
        (r"labd serial expect pico 'rc=(\d+)' --any 'not found' --json", "whichever comes first, and its groups"),
        ("labd serial expect pico '=> $' --settle 1000", "a prompt, once nothing followed it for a second"),
    ),
)  # fmt: skip
