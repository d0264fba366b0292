"""The scenarios that ship: they load, they are said in a user's words, and their parts fit together."""

import re
import tomllib

import pytest

from graders import labpath
from harness import journeys
from harness.scenario import CONTROL_NAMES, fixtures_dir, lint, load_all
from loopback.dutfile import load as load_dut

ALL = load_all()
VALUES = {"nonce": "0a1b2c3d4e", "lab": "/sand/lab.toml", "home": "/sand/home", "device": "/dev/ttyUSB0",
          "device2": "/dev/ttyUSB1"}  # fmt: skip
RUN = [one for one in ALL if one.lane != "stated"]
LOOPBACK = [one for one in ALL if one.lane == "loopback"]
#: Executed twins of scenarios whose commands are said.
LIVE = {f"R{n}-LIVE" for n in (3, 4, 5, 6, 7, 8, 10)}


def by_id(one):
    return one.id


TASKS = ["T-ASYNC", "T-DROP", "T-PRE", "T-SCROLL", "T-TIMER"]


CORE = ["C1", "C3", "C7", "M2", "R1", "R2", "R3", "R4", "S11"]


def test_the_whole_catalogue_is_there_and_the_core_set_comes_first():
    counts = {"C": 10, "M": 5, "R": 10, "S": 11}
    known = {f"{kind}{n}" for kind, count in counts.items() for n in range(1, count + 1)} | set(TASKS) | LIVE
    assert {one.id for one in ALL} == known
    assert [one.id for one in ALL if one.core] == CORE == [one.id for one in ALL][: len(CORE)]


def test_what_runs_where():
    lanes = {one.id: one.lane for one in ALL}
    config, loopback, virtual = (
        {name for name in lanes if lanes[name] == lane} for lane in ("config", "loopback", "virtual")
    )
    assert config == {*(f"C{n}" for n in range(1, 11)), "S1"}
    assert loopback == {*(f"S{n}" for n in range(2, 12)), *TASKS, "R7-LIVE", "R8-LIVE"}
    assert virtual == LIVE - {"R7-LIVE", "R8-LIVE"}
    assert [one.id for one in ALL if one.task is not None] == TASKS


@pytest.mark.parametrize("one", ALL, ids=by_id)
def test_the_goal_is_in_a_users_words(one):
    assert lint(one) == []


@pytest.mark.parametrize("one", ALL, ids=by_id)
def test_every_control_has_something_to_do(one):
    for name in CONTROL_NAMES:
        silent = ("noop", "printed-success", "hand-edit" if one.lane == "stated" else "invented")
        assert (name in silent) == (one.control(name) == ())
    assert one.controls is not None
    assert one.controls.printed_success.strip()


# A question about a state has no fact of a trial: what R8-LIVE asks is answered by on or off.
@pytest.mark.parametrize("one", [one for one in RUN if one.id != "R8-LIVE"], ids=by_id)
def test_no_canned_answer_knows_the_facts_of_a_trial(one):
    """The nonce is in the seed or on the board, and a control that prints a success does not have it."""
    placed = (one.seed_text({}) or "") + "".join(one.files({}).values()) + one.goal + repr(one.outside)
    placed += repr(one.loopback.prepared if one.loopback else "")
    assert "{nonce" in placed
    assert "{nonce" not in (one.controls.printed_success if one.controls else "")


@pytest.mark.parametrize("one", [one for one in ALL if one.seed], ids=by_id)
def test_every_seed_is_a_lab_and_no_placeholder_is_left_in_it(one):
    text = one.seed_text(VALUES)
    assert text is not None
    assert "{nonce" not in text
    assert tomllib.loads(text.removeprefix("\ufeff"))["targets"]


@pytest.mark.parametrize("one", [one for one in ALL if one.grader.get("assert")], ids=by_id)
def test_the_seed_does_not_already_hold_what_is_asserted(one):
    seed = tomllib.loads((one.seed_text(VALUES) or "").removeprefix("\ufeff"))
    frozen = one.frozen(VALUES)["grader"]["assert"]
    from graders.t1_config import assertion

    assert not all(assertion(entry, seed).ok for entry in frozen)
    assert [labpath.parse(entry["path"]) for entry in frozen]


@pytest.mark.parametrize("one", LOOPBACK, ids=by_id)
def test_every_board_is_a_right_dut_file_and_is_in_the_lab(one, tmp_path):
    seed = one.seed_text(VALUES) or ""
    for name, text in one.files(VALUES).items():
        (tmp_path / name).write_text(text)
        load_dut(str(tmp_path / name))
        assert f"loopback:{name}" in seed
    assert set(re.findall(r"loopback:([\w.-]+)", seed)) == set(one.files(VALUES))


def test_every_fixture_is_used():
    jobs = journeys.load("labd")
    used = {one.seed for one in [*ALL, *jobs]} | {one.journey.fault.seed for one in jobs if one.journey.fault}
    boards = [one.loopback for one in [*ALL, *jobs] if one.lane == "loopback"]
    used |= {name for one in boards for name in one.files.values()}
    used |= {one.outside.file for one in boards if one.outside}
    there = {str(path.relative_to(fixtures_dir())) for kind in ("labs", "duts")
             for path in fixtures_dir().glob(f"{kind}/*.toml")}  # fmt: skip
    assert there - used == set()


def test_the_seeds_are_of_the_kind_that_editors_damage():
    texts = {one.seed: one.seed_text({}) or "" for one in ALL if one.seed}
    whole = "".join(texts.values())
    for oddity in ("\ufeff", "\r\n", "   =   ", "115_200", "\t[", " = { ", "# this is no comment", "= '", "\t# ", "="):
        assert oddity in whole, oddity
    assert any(not text.endswith("\n") for text in texts.values())
