"""What each kind of probe proves, and all that proves nothing."""

import pytest

from graders.contract import KINDS, SUBTYPE, SUBTYPES, Probe
from graders.probe_plan import ORDER, plan
from graders.probe_read import NONSENSE, Answer, conclusion, nearest
from tests.graders.probing_play import Program, empty, only, signs, went_well
from tests.graders.test_probe_plan import LIMIT, SWAP

VOCABULARY = """
[[probe]]
kind = "vocabulary"
command = "count"
flags = ["--kind"]
ask = ["kinds"]
read = { rows = "lines" }
size = { number = '^(\\d+)' }
"""
SWEEP = """
[[probe]]
kind = "type_sweep"
command = "count"
flags = ["-t"]
ask = ["types"]
replace = ["-t", "{candidate}"]
size = { number = '^(\\d+)' }
"""
ECHO = """
[[probe]]
kind = "argv_echo"
flags = ["--class"]
size = { rows = "lines" }
"""
ENTITY = """
[[probe]]
kind = "entity_check"
command = "count"
flags = ["--in"]
value = '^(?P<name>[^,]+),\\s*(?P<qualifier>.+)$'
ask = ["where", "{value}"]
[[probe.namespaces]]
name = "region"
ask = ["regions"]
read = { rows = "lines" }
own = [{ json = "region" }, { json = "region_code" }]
[[probe.namespaces]]
name = "country"
ask = ["countries"]
read = { rows = "lines" }
own = [{ json = "country" }, { json = "country_code" }]
"""


def test_every_kind_proves_one_subtype_and_has_its_place_in_the_order() -> None:
    assert set(SUBTYPE) == set(ORDER) == set(KINDS)
    assert set(SUBTYPE.values()) | {"c-unknown"} == set(SUBTYPES)


# -- column swap


def test_all_candidates_are_tried_not_only_the_first() -> None:
    program = Program({"count --where class=a": "0\n", "count --where subtype=a": "0\n",
                       "count --where subclass=a": "86\n", f"count --where subclass={NONSENSE}": "0\n"})  # fmt: skip
    found = program.play(only(signs(SWAP), empty("count --where class=a", "0\n")))
    assert found.conclusive and found.ran == "count --where subclass=a"
    assert found.result == "0 vs 86: none with class a, 86 with subclass"
    assert "count --where subtype=a" in program.asked


def test_a_candidate_that_is_refused_does_not_end_the_search() -> None:
    program = Program({"count --where class=a": "0\n", "count --where subclass=a": "2\n"})
    found = program.play(only(signs(SWAP), empty("count --where class=a", "0\n")))
    assert found.conclusive and found.ran == "count --where subclass=a"


def test_no_candidate_that_finds_anything_is_inconclusive_and_names_them_all() -> None:
    program = Program({f"count --where {field}=a": "0\n" for field in ("class", "subtype", "subclass")})
    found = program.play(only(signs(SWAP), empty("count --where class=a", "0\n")))
    assert not found.conclusive
    assert found.result == "none with class a, nor with subtype, subclass"


def test_a_field_that_finds_as_much_for_any_value_proves_nothing() -> None:
    """A program that ignores what it does not know answers every question with everything."""
    lines = {"count --where class=a": "0\n"}
    lines |= {
        f"count --where {field}={value}": "900\n" for field in ("subtype", "subclass") for value in ("a", NONSENSE)
    }
    found = Program(lines).play(only(signs(SWAP), empty("count --where class=a", "0\n")))
    assert not found.conclusive
    assert "subtype (900 for any value)" in found.result


def test_a_call_that_is_no_longer_empty_proves_nothing_about_what_it_was() -> None:
    program = Program({"count --where class=a": "4\n", "count --where subtype=a": "9\n"})
    found = program.play(only(signs(SWAP), empty("count --where class=a", "0\n")))
    assert not found.conclusive and "its state has changed since" in found.result
    assert program.asked == ["count --where class=a"]


def test_a_call_that_hangs_now_proves_nothing() -> None:
    program = Program({"count --where class=a": Answer(None, "", trouble="no answer within 10 s")})
    found = program.play(only(signs(SWAP), empty("count --where class=a", "0\n")))
    assert not found.conclusive and "no answer within 10 s" in found.result


# -- vocabulary


def test_a_value_that_there_is_not_is_told_with_the_nearest_that_there_is() -> None:
    program = Program({"count --kind bus_stop": "0\n", "kinds": "airport\nbus_station\nmuseum\n"})
    found = program.play(only(signs(VOCABULARY), empty("count --kind bus_stop", "0\n")))
    assert found.conclusive
    assert found.result == "bus_stop is none of the 3 values that there are; nearest: bus_station"


def test_a_value_that_there_is_is_nothing_found_and_never_fine() -> None:
    program = Program({"count --kind museum": "0\n", "kinds": "airport\nmuseum\n"})
    found = program.play(only(signs(VOCABULARY), empty("count --kind museum", "0\n")))
    assert not found.conclusive and "museum is one of" in found.result


@pytest.mark.parametrize("listing", ["", Answer(1, "airport\n", "cannot read"), Answer(None, "", trouble="no answer")])
def test_a_vocabulary_that_lists_nothing_or_fails_proves_nothing(listing: str | Answer) -> None:
    program = Program({"count --kind x": "0\n", "kinds": listing})
    found = program.play(only(signs(VOCABULARY), empty("count --kind x", "0\n")))
    assert not found.conclusive and found.result.startswith("no vocabulary: ")


def test_a_value_may_be_a_part_of_an_entry_or_a_pattern_where_the_program_takes_it_so() -> None:
    answers = {"count --kind '^M.*a'": "0\n", "kinds": "Mira Voss <mira@example.com>\n"}
    for match, conclusive in (("equal", True), ("part", True), ("pattern", False)):
        text = VOCABULARY + f'match = "{match}"\n'
        assert Program(answers).play(only(signs(text), empty("count --kind '^M.*a'", "0\n"))).conclusive is conclusive


def test_a_path_is_one_that_is_there_or_a_directory_of_it_and_clears_only_so() -> None:
    text = """
[[probe]]
kind = "vocabulary"
command = "diff"
rest = true
value = '^(?P<value>[^*]+)$'
ask = ["files"]
read = { rows = "lines" }
match = "path"
clears = true
"""
    program = Program({"files": "a/prices.txt\na/b/c\n", **{f"diff -- {one}": "" for one in ("a", "b/", "price", ".")}})
    for path, found in (("a", True), ("b/", True), (".", True), ("price", False)):
        probe = program.play(only(signs(text), empty(f"diff -- {path}")))
        assert (probe.cleared, probe.conclusive) == (found, not found)
    assert not plan(empty("diff -- a '*.x'"), signs(text)).planned  # what is not looked up is not cleared


def test_nearest_prefers_what_shares_words_and_leaves_out_what_looks_like_nothing() -> None:
    assert nearest("bus_stop", ["museum", "bus_station", "bus_depot", "stop_sign"])[0] in ("bus_station", "bus_depot")
    assert nearest("qqqq", ["museum", "airport"]) == []


# -- type sweep


def test_the_same_question_under_every_type_that_the_program_lists() -> None:
    program = Program({"count -t place --x y": "0\n", "types": "place\nland\nlanduse\n", "count -t land --x y": "0\n",
                       "count -t landuse --x y": "67\n"})  # fmt: skip
    found = program.play(only(signs(SWEEP), empty("count -t place --x y", "0\n")))
    assert found.conclusive and found.result == "0 vs 67: none with place, 67 with landuse"
    assert program.asked.count("count -t place --x y") == 1


def test_the_same_question_under_other_verbs() -> None:
    text = '[[probe]]\nkind = "type_sweep"\ncommand = ["places", "land"]\ncandidates = ["places", "land", "landuse"]\n'
    program = Program({"places --class beach": "", "land --class beach": "Bondi\nCopacabana\n"})
    found = program.play(only(signs(text), empty("places --class beach")))
    assert found.conclusive and found.ran == "land --class beach"


# -- limit raise


def test_a_default_limit_that_cut_the_answer_off_is_found_though_it_was_not_empty() -> None:
    program = Program({"list": "a\nb\nc\n", "list --limit 0": "a\nb\nc\nd\ne\n"})
    found = program.play(only(signs(LIMIT), went_well("list", "a\nb\nc\n")))
    assert found.conclusive and found.result == "3 vs 5: cut off at an unspoken limit of 3"


def test_a_named_limit_is_raised_in_its_place_and_nowhere_else() -> None:
    program = Program({"list -n 2 x": "a\nb\n", "list --limit 0 x": "a\nb\nc\n"})
    found = program.play(only(signs(LIMIT), went_well("list -n 2 x", "a\nb\n")))
    assert found.conclusive and found.result == "2 vs 3: cut off at its limit of 2"


def test_a_limit_that_was_asked_for_is_told_and_is_no_fault() -> None:
    program = Program({"list -n 2": "a\nb\n", "list --limit 0": "a\nb\nc\n", "list": "a\nb\nc\n"})
    found = program.play(only(signs(LIMIT + "asked_for = true\n"), went_well("list -n 2", "a\nb\n")))
    assert not found.conclusive and found.result == "2 vs 3: cut off at its limit of 2, which was asked for"


def test_an_answer_that_just_happens_to_be_as_long_as_the_limit_proves_nothing() -> None:
    program = Program({"list": "a\nb\nc\n", "list --limit 0": "a\nb\nc\n"})
    assert not program.play(only(signs(LIMIT), went_well("list", "a\nb\nc\n"))).conclusive


@pytest.mark.parametrize(("line", "shown", "raised", "result"), [
    ("list", "a\nb\n", "a\nb\nc\n", "2 vs 3: cut off, and its limit is 3"),  # one less than its limit
    ("list --limit 5", "a\nb\nc\nd\n", "a\nb\nc\nd\ne\nf\n", "4 vs 6: cut off, and its limit is 5"),
])  # fmt: skip
def test_an_answer_shorter_than_its_limit_is_cut_if_there_is_more(
    line: str, shown: str, raised: str, result: str
) -> None:
    for limit in (LIMIT, LIMIT + "asked_for = true\n"):
        program = Program({line: shown, "list --limit 0": raised})
        found = program.play(only(signs(limit), went_well(line, shown)))
        assert found.conclusive and found.result == result


WITNESS = """
[[probe]]
kind = "limit_raise"
command = "list"
flags = ["--limit"]
default = 3
raised = ["0", "1000"]
[probe.witness]
command = "count {path}"
without = ["--limit"]
size = { number = '^(\\d+)$' }
"""


def test_an_answer_without_a_limit_is_held_against_another_limit_and_against_what_another_verb_counts() -> None:
    program = Program({"list --limit 0 -x": "a\nb\n", "list --limit 1000 -x": "a\nb\n", "count list -x": "5\n"})
    found = program.play(only(signs(WITNESS), went_well("list --limit 0 -x", "a\nb\n")))
    assert found.conclusive and (found.ran, found.result) == ("count list -x", "2 vs 5: cut off, and by no limit")
    program = Program({"list": "a\nb\n", "list --limit 0": "a\nb\n", "count list": "2\n"})
    assert not program.play(only(signs(WITNESS), went_well("list", "a\nb\n"))).conclusive


# -- a flag that is given once

ONCE = """
[[probe]]
kind = "argv_echo"
command = "count"
flags = ["--in"]
nothing = "zq"
candidates = ["Africa", "Asia"]
size = { number = '^(\\d+)$' }
"""


@pytest.mark.parametrize(("answers", "proved", "told"), [
    ({"count --in zq": "7"}, True, "a value that nothing has gives the same answer"),
    ({"count --in zq": "0"}, False, "is heeded"),
    ({"count": "9"}, False, "there is another answer"),
    ({"count": "7", "count --in Africa": "7", "count --in Asia": "7"}, True, "with Africa and with Asia"),
    ({"count": "7", "count --in Africa": "7", "count --in Asia": "0"}, False, "but Asia does"),  # all of it is there
    ({"count": "7", "count --in Africa": "7"}, False, "no two other values"),
    ({"count": "7"}, False, "no two other values"),
])  # fmt: skip
def test_a_value_is_dropped_where_nothing_depends_on_it(answers: dict[str, str], proved: bool, told: str) -> None:
    program = Program({"count --in Malta": "7", **answers})
    found = program.play(only(signs(ONCE), went_well("count --in Malta", "7")))
    assert found.conclusive is proved and told in found.result


def test_what_was_asked_is_no_answer_so_an_echo_of_it_hides_nothing() -> None:
    text = ONCE.replace("number = '^(\\d+)$'", "json = 'rows'")
    program = Program(
        {"count --in Malta": '{"in": "Malta", "rows": ["a"]}', "count --in zq": '{"in": "zq", "rows": ["a"]}'}
    )
    assert program.play(only(signs(text), went_well("count --in Malta", '{"in": "Malta", "rows": ["a"]}'))).conclusive


# -- argv echo


def test_a_value_that_has_no_part_in_the_answer_was_dropped() -> None:
    program = Program({"list --class trunk --class primary": "p\nq\n", "list --class trunk": "t\nu\n",
                       "list --class primary": "p\nq\n"})  # fmt: skip
    found = program.play(only(signs(ECHO), went_well("list --class trunk --class primary", "p\nq\n")))
    assert found.conclusive
    assert found.result == "trunk was dropped: 2 of the 2 that it finds alone are missing"


def test_values_that_all_have_their_part_are_inconclusive() -> None:
    program = Program({"list --class a --class b": "x\ny\n", "list --class a": "x\n", "list --class b": "y\n"})
    assert not program.play(only(signs(ECHO), went_well("list --class a --class b", "x\ny\n"))).conclusive


def test_flags_that_narrow_down_are_read_the_other_way_round() -> None:
    text = ECHO + 'combine = "all"\n'
    narrowed = Program({"list --class a --class b": "y\n", "list --class a": "x\ny\n", "list --class b": "y\nz\n"})
    assert not narrowed.play(only(signs(text), went_well("list --class a --class b", "y\n"))).conclusive
    dropped = Program({"list --class a --class b": "y\nz\n", "list --class a": "x\ny\n", "list --class b": "y\nz\n"})
    found = dropped.play(only(signs(text), went_well("list --class a --class b", "y\nz\n")))
    assert found.conclusive and found.result.startswith("a was dropped: 1 of 2")


def test_counts_of_values_that_exclude_each_other_add_up() -> None:
    text = ECHO.replace('rows = "lines"', "number = '^(\\d+)'") + 'combine = "sum"\n'
    program = Program({"count --class a --class b": "4\n", "count --class a": "3\n", "count --class b": "4\n"})
    found = program.play(only(signs(text), went_well("count --class a --class b", "4\n")))
    assert found.conclusive and found.result == "4 vs 7: all together 4, alone a 3, b 4"


def test_a_value_that_alone_is_refused_proves_nothing() -> None:
    program = Program({"list --class a --class b": "x\n", "list --class b": "x\n"})
    assert not program.play(only(signs(ECHO), went_well("list --class a --class b", "x\n"))).conclusive


# -- entity check

_LISTS = {"regions": "MA\nMT\nTX\nMassachusetts\nMontana\nTexas\n", "countries": "MA\nMT\nFR\nUS\nMorocco\nMalta\n"}
_US = '"country": "United States", "country_code": "US"}'


@pytest.mark.parametrize(
    ("place", "resolved"),
    [
        ("Cambridge, MA", '{"region": "Massachusetts", "region_code": "MA", ' + _US),  # no Morocco
        ("Malta, MT", '{"region": "Montana", "region_code": "MT", ' + _US),  # the state's name, too
        ("Malta, MT", '{"region": "", "region_code": "", "country": "Malta", "country_code": "MT"}'),
        ("Paris, texas", '{"region": "Texas", "region_code": "TX", ' + _US),
    ],
)
def test_a_qualifier_that_fits_in_one_set_of_names_is_not_belied_by_another(place: str, resolved: str) -> None:
    program = Program({f"where '{place}'": resolved, **_LISTS})
    found = program.play(only(signs(ENTITY), went_well(f"count --in '{place}'", "9\n")))
    assert not found.conclusive and "fits what was resolved" in found.result


def test_a_place_of_another_region_than_was_named_is_another_place() -> None:
    resolved = '{"region": "Île-de-France", "region_code": "IDF", "country": "France", "country_code": "FR"}'
    program = Program({"where 'Paris, TX'": resolved, **_LISTS})
    found = program.play(only(signs(ENTITY), went_well("count --in 'Paris, TX'", "9\n")))
    assert found.conclusive
    assert found.result == (
        "TX (region) was named, and what was resolved is of region Île-de-France, IDF; country France, FR"
    )


@pytest.mark.parametrize(
    "resolved", ["{}", "no JSON", Answer(4, "", "no such place"), '{"region": "Texas", "country": "US"}']
)
def test_what_is_not_known_to_be_a_name_or_was_not_resolved_proves_nothing(resolved: str | Answer) -> None:
    program = Program({"where 'Paris, Tejas'": resolved, **_LISTS})
    assert not program.play(only(signs(ENTITY), went_well("count --in 'Paris, Tejas'", "9\n"))).conclusive


# -- together


def test_of_several_proofs_the_one_that_explains_most_counts_and_no_proof_is_none() -> None:
    made = [Probe(kind, "x", "y", conclusive) for kind, conclusive in
            (("vocabulary", True), ("column_swap", True), ("entity_check", False))]  # fmt: skip
    found = conclusion(made)
    assert found is not None and found.kind == "column_swap"
    assert conclusion([Probe("vocabulary", "x", "y", False)]) is None
