"""Was an answer enough: known answers for every bucket and rule, and whatever bytes a log may hold."""

import json
import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graders.shell_lex import Unclear
from graders.sufficiency import BUCKETS, Found, Judged, measure
from graders.sufficiency_acts import Thing
from graders.sufficiency_arms import A_VOTE, NOT_CORRECT, UNSEEN, Arm, cautions, compare, permuted
from graders.sufficiency_returned import Answer, telling
from graders.sufficiency_shell import accesses
from harness import transcripts
from harness.sufficiency_made import FORMATS, Turn, Use, written
from harness.sufficiency_selftest import CASES, PROGRAM, TOOL, wrong


@pytest.mark.parametrize(("case", "form"), [(case, form) for case in CASES for form in case.forms],
                         ids=lambda one: one if isinstance(one, str) else one.rule)  # fmt: skip
def test_known_answers(case, form) -> None:
    assert wrong(case, form) == []


def test_the_self_test_sees_what_is_wrong() -> None:
    """Every case fails when its answer is another one: none is true of anything."""
    for case in CASES:
        bent = replace(case, expected=[*case.expected, ("search", "")]) if case.expected else replace(case, failed=9)
        assert wrong(bent, case.forms[0]), case.rule


def test_every_bucket_is_known() -> None:
    assert {bucket for case in CASES for bucket, _ in case.expected} - {None} == set(BUCKETS)


# -- the shell -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("line", "kinds", "paths"), [
    ("cat a b", "read", "a b"),
    ("nl -ba f | sed -n 1,5p", "read other", "f"),
    ("head -n 5 f; tail -50 g", "read read", "f g"),
    ("awk -F: '{print $1}' f", "read", "f"),
    ("awk '{print}' < f", "read", "f"),
    ("sed -e s/a/b/ f", "read", "f"),
    ("sed -i s/a/b/ f", "write", "f"),
    ("grep -e a -e b f g", "search", "f g"),
    ("x | grep a", "other other", ""),
    ("x | rg a", "other other", ""),
    ("x | grep -r a", "other search", ""),
    ("find . | xargs grep a", "search search", "."),
    ("sudo find / -name x", "search", "/"),
    ("git grep x; git show HEAD:a/b.c; git commit -m x", "search read other", "a/b.c"),
    ("grep x f 2>/dev/null", "search", "f"),
    ("cat f > /dev/null", "read", "f"),
    ("echo a >> b", "write", "b"),
    ("tee f < g", "write", "f g"),
    ("cd a/b && cat ../c", "other read", "a/b/../c"),
    ("if [ -f x ]; then cat x; fi", "other read", "x"),
    ("case $x in a|b) cat q;; esac", "read", "q"),
    ("f() { cat g; }; f", "read other", "g"),
    ("diff <(cat a) b", "read other", "a"),
    ("cat <<EOF | tee z\n$(cat y)\nEOF", "read other write", "y z"),
    ("sh -c 'cat z' <<< cat", "read", "z"),
    ("env A=1 timeout 5 cat q", "read", "q"),
    ("less -r f; less -R -x 4 g; bat -r 1:9 h", "read read read", "f g h"),
    ("od -c f; od -t x1 -N 9 g; hexdump -C h; xxd -l 9 i", "read read read read", "f g h i"),
    ("strings -n 8 f; head -q -n 3 g; tail -c 9 h", "read read read", "f g h"),
    ("jq --arg a b --argjson c 1 .x f", "read", "f"),
    ("awk -v a=b -f p f; sed -E -n p g", "read read", "f g"),
    ("rg -r y x f; grep -d skip x g", "search search", "f g"),
    ("ln -s f g; touch -d now h; patch -p1 -i i", "write write write", "f g h"),
    ('grep x <<< "$y"; grep x <<< y; rg x <<E\n$y\nE', "other other other", ""),
])  # fmt: skip
def test_what_a_shells_text_does_with_files(line: str, kinds: str, paths: str) -> None:
    found = accesses(line)
    assert " ".join(one.kind for one in found) == kinds
    assert " ".join(path for one in found for path in one.paths) == paths


@given(st.text(alphabet=st.sampled_from("catgrep \t\n;&|()<>'\"`$\\{}[]*?!#=-./xf"), max_size=60))
def test_any_text_is_read_or_unclear(line: str) -> None:
    try:
        accesses(line)
    except Unclear:
        pass


# -- what was returned ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "shipped"), [
    ("**`lib/a.js`** — 2 symbols\n", ("lib/a.js",)),
    ("### lib/a.js (lines 1-9)\n```\nx\n```", ("lib/a.js",)),
    ("==> a.txt <==\nx", ("a.txt",)),
    ("--- a/src/x.c\n+++ b/src/x.c\n", ("src/x.c",)),
    ('<file path="a/b.py">\nx\n</file>', ("a/b.py",)),
    ("src/a.py:\n    def f(): pass\n", ("src/a.py",)),
    ("src/a.py\nsrc/b.py\n", ()),
    ("- **`src/a.py`** calls it", ()),
    ("src/a.py:12: found", ()),
    ('{"files": [{"path": "a/b.c", "content": "int x;"}, {"path": "c.h"}]}', ("a/b.c",)),
])  # fmt: skip
def test_a_section_ships_a_file_and_a_name_does_not(text: str, shipped: tuple[str, ...]) -> None:
    assert Answer(text).shipped == shipped


def test_a_file_is_the_same_by_the_end_of_its_path() -> None:
    shelf = Answer("**`lib/response.js`**\nx\n").shelf
    assert shelf.ships("/tmp/t/lib/response.js") and shelf.ships("response.js") and shelf.ships("lib/*.js")
    assert not shelf.ships("lib/xresponse.js") and not shelf.ships("test/response.js")


def test_a_name_is_whole() -> None:
    shelf = Answer("see StaticCanvas.tsx, src/lib/utils.js:20 and docs/Makefile.").shelf
    assert shelf.names("/a/StaticCanvas.tsx") and shelf.names("utils.js") and shelf.names("docs/Makefile")
    assert not shelf.names("Canvas.tsx") and not shelf.names("src/Makefile") and not shelf.names("/w/other/utils.js")


def test_lines_that_were_shown_are_returned() -> None:
    shelf = Answer("lyon 500000\nparis 2100000\nmarseille 870000\nlille 230000").shelf
    for text, here in (
        ("     1→paris 2100000\n     2→lyon 500000\n     3→lille 230000\n     4→nantes 320000", True),
        ("paris 2100000\n", True), ("paris 2100000\nnantes 320000\n", False), ("", False), ("}\n", False),
    ):  # fmt: skip
        assert shelf.shows(telling(text)) is here


@pytest.mark.parametrize("text", ["a/" * 500_000, "-" * 1_000_000, ("a." * 240 + "\n") * 2000,
                                  ("= " * 240 + "\n") * 2000,
                                  '[' * 100_000, ("<file " + "a path=" * 60 + "\n") * 2000])  # fmt: skip
def test_no_text_takes_long(text: str) -> None:
    import time

    began = time.process_time()
    shelf = Answer(text).shelf
    shelf.ships("q.y", telling(text))
    shelf.names("q.y")
    assert time.process_time() - began < 3


# -- whatever a log holds ------------------------------------------------------------------------------------------

LONG = (Turn((Use("ask", "x\u2028y\x85z", "**`a.js`**\nline with \u2028 in it\n"),)), Turn((Use("read", "a.js"),)),
        Turn((Use("shell", "atlas city list"),)), Turn((Use("search", "n"),)), Turn(("Done.",)))  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
def test_cut_anywhere(form: str) -> None:
    """What was judged before the cut stays, but for the last, and a cut log never gives a final answer."""
    (name, whole), *_ = written(form, LONG).items()
    product = form.partition("-")[0]
    for size in range(0, len(whole), 17):
        try:
            told = transcripts.parse(product, {name: whole[:size]}).as_dict()
        except transcripts.TranscriptError:
            continue
        for thing in (TOOL, PROGRAM):
            found = measure(told, thing)
            assert not told["truncated"] or all("final" not in one.next for one in found.judged), size
    assert measure(told, TOOL).judged[0].bucket == "read_returned"


def test_two_results_and_text_between_are_one_log() -> None:
    first, second = (written("claude", turns)["stdout"] for turns in (LONG, [Turn(("And more.",))]))
    told = transcripts.parse("claude", {"stdout": first + second}).as_dict()
    assert [one.bucket for one in measure(told, TOOL).judged] == ["read_returned"]


WRONG = (None, 7, True, "x", [], {}, [[]], [None], {"a": {"a": []}}, "\ud800", 1e300, -1)


def test_values_of_another_type() -> None:
    """A normal form of which any part is something else is judged or left alone; nothing raises."""
    chance = random.Random(3)
    told = transcripts.parse("claude", written("claude", LONG)).as_dict()
    for _ in range(600):
        bent = json.loads(json.dumps(told))
        for _ in range(chance.choice((1, 1, 4))):
            holder = chance.choice([bent, *bent["calls"], *bent["messages"], *bent["threads"]]) \
                if all(isinstance(bent[key], list) for key in ("calls", "messages", "threads")) else bent  # fmt: skip
            if isinstance(holder, dict) and holder:
                holder[chance.choice(list(holder))] = chance.choice(WRONG)
        for thing in (TOOL, PROGRAM):
            measure(bent, thing).data()


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8),
                    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(
                        ("calls", "messages", "threads", "ended", "n", "tool", "kind", "input", "output", "thread",
                         "command", "argv", "message_id", "state", "exit_code", "path", "role")), inner, max_size=6),
                    max_leaves=30))  # fmt: skip
def test_no_record_raises(record) -> None:
    told = record if isinstance(record, dict) else {"calls": record}
    for thing in (TOOL, PROGRAM):
        measure(told, thing).data()


def test_an_endless_output_and_endless_nesting() -> None:
    deep = "[" * 50_000 + "]" * 50_000
    turns = (Turn((Use("ask", "x", "y" * (5 << 20)),)), Turn((Use("ask", "x", deep),)), Turn(("Done.",)))
    told = transcripts.parse("claude", written("claude", turns)).as_dict()
    assert [one.bucket for one in measure(told, TOOL).judged] == ["again", "moved_on"]


def test_a_bare_name_finds_the_tool_whoever_serves_it() -> None:
    for form, name in (
        ("claude", "explore"),
        ("codex", "explore"),
        ("claude", "mcp__atlas__*"),
        ("codex", "atlas.explore"),
    ):
        told = transcripts.parse(form, written(form, (Turn((Use("ask", "x"),)), Turn(("Done.",))))).as_dict()
        assert len(measure(told, Thing(tool=name)).judged) == 1, (form, name)
        assert not measure(told, Thing(tool="xplore")).judged


# -- arms ----------------------------------------------------------------------------------------------------------


def _pass(*buckets: str) -> Found:
    judged = tuple(Judged(n, "main", "q", bucket, "", "") for n, bucket in enumerate(buckets))
    return Found(TOOL, judged, (), (), "messages")


def test_one_pass_is_never_compared() -> None:
    told = compare(Arm("with", (_pass("moved_on"),)), Arm("without", (_pass("again"), _pass("again"))))
    assert told.p is None and "two passes" in told.sentence
    nothing = compare(Arm("with", (_pass("moved_on"),)), Arm("without", ()))
    assert nothing.difference is None and "not measured" in nothing.sentence


def test_so_few_passes_cannot_show_a_difference() -> None:
    told = compare(Arm("a", (_pass("again"),) * 2), Arm("b", (_pass("moved_on"),) * 2))
    assert told.p is None and told.least == pytest.approx(1 / 3) and "can't show" in told.sentence
    assert "+100 points" in told.sentence


def test_enough_passes_show_a_difference() -> None:
    told = compare(Arm("a", (_pass("again"),) * 4), Arm("b", (_pass("moved_on"),) * 4))
    assert told.p == pytest.approx(2 / 70) and "better" in told.sentence
    same = compare(Arm("a", (_pass("again"), _pass("moved_on")) * 2), Arm("b", (_pass("again"), _pass("moved_on")) * 2))
    assert same.p == 1.0 and "no difference shown" in same.sentence


def test_too_many_passes_are_not_tried_one_by_one() -> None:
    assert permuted([0.0] * 40, [1.0] * 40) is None


def test_what_has_to_be_said_is_said() -> None:
    told = cautions([Arm("a", (_pass("again", "moved_on"),)), Arm("b", ())])
    assert "b: no answered call" in told[0]
    assert "(a 2 in 1): one call is up to 50 points" in told[1] and told[2:] == [A_VOTE, UNSEEN, NOT_CORRECT]
    assert cautions([Arm("a", (_pass(*["again"] * 20),) * 2)]) == [A_VOTE, UNSEEN, NOT_CORRECT]
