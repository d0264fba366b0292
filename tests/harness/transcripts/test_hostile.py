"""Whatever bytes come: a transcript or a TranscriptError, in bounded memory, and what was whole before is kept."""

import json
import random
import tracemalloc

import pytest

from harness.transcripts import PRODUCTS, Transcript, TranscriptError, format_of, parse, to_atif
from harness.transcripts.lines import MOST_LINE, MOST_TEXT
from tests.harness.transcripts.samples import ALL, claude, data, jsonl, result, speak, told, use


def tried(product: str, raw: bytes) -> Transcript | None:
    try:
        made = parse(product, {"stdout": raw})
    except TranscriptError as error:
        assert error.line >= 1 and str(error)
        return None
    made.dumps()
    return made


def product_of(name: str) -> str:
    return name.removeprefix("handmade/").partition("-")[0]


@pytest.mark.parametrize("name", ALL)
def test_cut_anywhere(name: str) -> None:
    """Calls and messages never become fewer, and a cut within a line is told."""
    raw, seen = data(name), 0
    ends = [at for at, byte in enumerate(raw) if byte == 10] + [len(raw)]
    near = {at for end in ends for at in range(end - 6, end + 6)} | set(range(len(raw) - 200, len(raw)))
    for size in range(len(raw)):
        if size not in near and size % 29:
            continue  # within a line one byte is like another; all of them were tried once
        made = tried(product_of(name), raw[:size])
        if made is None:
            continue
        count = len(made.calls)
        assert count >= seen, size
        seen = count
        whole = raw[:size].endswith(b"\n") or raw[size : size + 1] == b"\n"
        assert made.truncated is (not whole), size
    assert seen <= len(told(name).calls)


@pytest.mark.parametrize("name", ALL)
def test_flipped_bits(name: str) -> None:
    raw, chance = bytearray(data(name)), random.Random(name)
    for _ in range(120):
        bent = bytearray(raw)
        for _ in range(chance.choice((1, 1, 5, 200))):
            bent[chance.randrange(len(bent))] ^= 1 << chance.randrange(8)
        tried(product_of(name), bytes(bent))


WRONG = (None, 7, -1, 1e308, True, "x", [], {}, [[]], [{}], {"a": {"a": []}}, "\ud800", ["\x00"])


@pytest.mark.parametrize("name", ALL)
def test_values_of_another_type(name: str) -> None:
    """Each value in turn becomes something else: nobody promised types."""
    chance = random.Random(name)
    try:
        records = [json.loads(line) for line in data(name).split(b"\n") if line.strip()]
    except ValueError:
        records = [json.loads(data(name))]
    for holder in [holder for record in records for holder in _holders(record)]:
        for key in list(holder):
            kept = holder[key]
            for holder[key] in chance.sample(WRONG, 1):
                made = tried(product_of(name), jsonl(*records))
                if made is not None:
                    to_atif(made)
            holder[key] = kept


def _holders(told):
    if isinstance(told, dict):
        yield told
    for inner in told.values() if isinstance(told, dict) else told if isinstance(told, list) else ():
        yield from _holders(inner)


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\r", "\x00"])
def test_separators_that_are_none(odd: str) -> None:
    """Raw in the file where JSON lets them be, escaped else: one line all the same."""
    raw = jsonl({"type": "system", "subtype": "init", "session_id": "s", "uuid": "u"}, speak(f"a{odd}b"))
    if ord(odd) >= 0x80:
        raw = raw.replace(b"\\u%04x" % ord(odd), odd.encode())
    made = parse("claude", {"stdout": raw})
    assert made.answer == f"a{odd}b" and not made.problems


def test_bytes_that_are_no_utf8() -> None:
    raw = jsonl({"type": "system", "subtype": "init", "session_id": "s", "uuid": "u"}, speak("abc")).replace(
        b"abc", b"a\xffc"
    )
    assert parse("claude", {"stdout": raw}).answer == "a\ufffdc"


def test_bad_line_in_the_middle_is_a_note() -> None:
    raw = data("claude-maxturns.jsonl").split(b"\n")
    raw[2] = b'{"type": "user", '
    made = parse("claude", {"stdout": b"\n".join(raw)})
    assert ([one.line for one in made.problems], made.truncated, made.ended.how) == ([3], False, "max_turns")
    assert [one.state for one in made.calls] == ["pending", "done", "done"]


@pytest.mark.parametrize("product", [name for name in PRODUCTS if name not in ("text", "scripted")])
def test_nesting_without_end(product: str) -> None:
    sample = next(name for name in ALL if product_of(name) == product)
    for deep in (b'{"a":' * 200_000, b"[" * 200_000, b'{"a":' * 900 + b"1" + b"}" * 900, b"[" * 9000 + b"]" * 9000):
        tried(product, deep)
        made = tried(product, data(sample).split(b"\n")[0] + b"\n" + deep + b"\n" + data(sample))
        assert made is not None or product == "atif"


def test_nested_values_that_can_be_read_can_be_written() -> None:
    deep: dict = {}
    for _ in range(300):
        deep = {"a": deep}
    block = {"type": "tool_use", "id": "a", "name": "Bash", "input": deep}
    made = claude({"type": "assistant", "message": {"id": "m", "content": [block]}})
    assert made.dumps() and to_atif(made)


def test_giant_lines_cost_bounded_memory() -> None:
    giant = jsonl(use("a", "x"), result("a", "y" * (8 << 20)))
    raw = data("claude-maxturns.jsonl") + giant
    tracemalloc.start()
    made = parse("claude", {"stdout": raw})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    output = made.calls[-1].output or ""
    assert len(output) < MOST_TEXT + 100 and output.endswith("characters …]")
    assert peak < 6 * len(giant)


def test_line_beyond_all_measure_is_a_note() -> None:
    first, _, rest = data("claude-maxturns.jsonl").partition(b"\n")
    made = parse("claude", {"stdout": first + b"\n" + b"x" * (MOST_LINE + 1) + b"\n" + rest})
    assert "longer than" in made.problems[0].what and made.ended.how == "max_turns"


def test_numbers_that_are_none() -> None:
    raw = jsonl({"type": "system", "subtype": "init", "session_id": "s", "uuid": "u"})
    raw += b'{"type":"result","subtype":"success","num_turns":1e999,"total_cost_usd":NaN,'
    raw += b'"usage":{"input_tokens":-Infinity,'
    raw += b'"output_tokens":' + b"9" * 3000 + b"}}\n" + jsonl(use("a", "x"))
    made = parse("claude", {"stdout": raw})
    assert (made.usage.turns, made.usage.cost_usd, made.usage.input, made.usage.output) == (None,) * 4
    assert b"NaN" not in made.dumps() and b"Infinity" not in made.dumps()


def test_many_bad_lines_are_counted() -> None:
    made = parse("claude", {"stdout": data("claude-401.jsonl") + b"nonsense\n" * 5000})
    assert len(made.problems) == 101 and made.problems[-1].what == "4900 more bad lines"


def test_many_types_are_bounded() -> None:
    assert len(claude(*({"type": f"t{n}"} for n in range(5000))).unknown_events) == 200


def test_format_is_looked_for_only_so_far() -> None:
    assert format_of(jsonl({"a": 1}) * 60 + data("codex-401.jsonl")) is None
