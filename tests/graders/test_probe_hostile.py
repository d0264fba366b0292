"""Words and answers of any kind: nothing of a command is lost, nothing raises, nothing takes long."""

import json
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from graders.argv_words import NUMBER, take_apart
from graders.contract import Call
from graders.probe_plan import plan
from graders.probe_read import Answer, asking, nearest
from graders.reading import Read, is_count, size, values
from graders.signs import Signs, load
from harness.scenario_fill import data_dir
from tests.graders.records import attempt, call

SOME = ["-n", "--tail", "-n5", "--tail=x", "--", "-", "log", "serial", "--where", "a==b", "-7", ""]
WORDS = st.lists(st.one_of(st.sampled_from(SOME), st.text(max_size=8)), max_size=9)
SIGNS = [load((data_dir("scenarios") / name / "signs.toml").read_text(), name) for name in ("labd", "git", "atlas")]
READS = [
    Read(json=""),
    Read(json="rows[].a|b"),
    Read(json="count", number=r"^(\d+)"),
    Read(rows="lines"),
    Read(json="a{}", rows="table", header=1),
    Read(rows="csv", pattern=r"(a)|b"),
    Read(number=r"(\d+)"),
]
PLAIN = st.recursive(
    st.integers() | st.none() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "rows", "count"]), inner),
)


@given(WORDS)
def test_taken_apart_and_put_together_a_command_is_the_same(argv: list[str]) -> None:
    words = take_apart(argv, {"-n", "--tail", "--where", NUMBER})
    assert words.instead([]) == tuple(argv)
    covered = [at for item in words.items for at in range(item.at, item.at + item.width)]
    assert len(covered) == len(set(covered)) >= len(argv) - argv.count("--")
    kept = words.instead([(item, argv[item.at : item.at + item.width]) for item in words.items])
    assert kept == tuple(argv)


@given(WORDS, st.sampled_from(["ok", "A", "B", "C", "D", "E", "F"]), st.text(max_size=60), st.sampled_from(SIGNS))
@settings(max_examples=300)
def test_any_call_can_be_planned_and_any_answer_be_read(argv: list[str], name: str, text: str, signs: Signs) -> None:
    plain = call(name)
    made = Call(
        tuple(argv), plain.exit_code, text, text, 0.1, plain.outcome, plain.blame, plain.recovery, plain.subtype
    )
    for planned in plan(attempt(made), signs).planned:
        questions = asking(planned)
        try:
            next(questions)
            for _ in range(100):
                questions.send(Answer(0, text))
            raise AssertionError("it never concludes")
        except StopIteration as end:
            assert end.value.kind == planned.kind


@given(st.one_of(st.text(max_size=80), PLAIN.map(json.dumps)))
def test_any_text_can_be_read_in_every_way(text: str) -> None:
    for read in READS:
        found, count = values(read, text), size(read, text)
        assert found is None or all(isinstance(one, str) for one in found)
        assert count is None or count >= 0 or read.json is not None
        is_count(read, text)


def test_a_number_of_thousands_of_digits_counts_nothing() -> None:
    assert size(Read(number=r"(\d+)"), "9" * 10_000) is None


def test_a_very_long_value_and_a_very_long_list_take_no_time() -> None:
    (signs,) = (one for one in SIGNS if any(sign.kind == "entity_check" for sign in one.probes))
    begun = time.process_time()
    hostile = ("a=" + " " * 100_000 + "x", "a" * 100_000, "," * 100_000, "x, " + " ," * 50_000)
    lines = [("count", "places", flag, word) for word in hostile for flag in ("--class", "--in")]
    axes = ("empty", "tool", "unguided", "c-unknown")
    record = attempt(*(Call(line, 0, "0\n", "", 0.1, *axes) for line in lines))
    assert all(one.kind in ("type_sweep", "limit_raise") for one in plan(record, signs).planned)
    nearest("src_lib/net_util.py", [f"lib/{n}/core_{n}/util_{n}.py" for n in range(20_000)])
    assert time.process_time() - begun < 2
