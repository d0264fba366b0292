"""What others saw of a trial against what its record says: each contradiction is found, missing evidence stays open."""

import json

import pytest

from graders import witness
from graders.t1_config import grade
from tests.graders import bundles

SEEN = [{"kind": "lab", "what": "renamed into place"}]


@pytest.fixture
def checks(tmp_path):
    """The checks of a right trial, bent: `own` and `seen` replace what the others saw (None: it is gone)."""

    def ask(maker=None, own="same", seen=SEEN):
        maker = maker or right()
        maker.trial["evidence"] = ["own", "witness"]
        bundle = maker.write(tmp_path)
        for name, entries in (("own", maker.records if own == "same" else own), ("witness", seen)):
            if entries is not None:
                text = "".join(json.dumps(entry) + "\n" for entry in entries)
                (bundle.directory / f"{name}.jsonl").write_text(text)
        found = {check.name: check.ok for check in witness.check(bundle)}
        return {name: ok for name, ok in found.items() if ok is not True}, grade(bundle).verdict

    return ask


def right():
    maker = bundles.config()
    for record in maker.records:
        record |= {"id": "77-1f-1", "t": 1000.5}
    maker.records[0] |= {"pid": 77, "mono_ns": 500_000_000, "cwd": "/sand/work"}
    return maker


def process(*words, exe="/usr/bin/python3", stdout="pipe:[1]"):
    return {"kind": "process", "id": "77-1f-1", "argv": list(words), "exe": exe, "stdout": stdout}


def test_a_right_trial_agrees_with_all(checks):
    run = process("python3", "-s", bundles.PROGRAM, "serial", "add")
    assert checks(seen=[run, *SEEN]) == ({}, "pass")


def test_bundles_without_that_evidence_are_not_asked_for_it(tmp_path):
    assert witness.check(bundles.config().write(tmp_path)) == []


@pytest.mark.parametrize(
    "change", [{"pid": 78}, {"mono_ns": 9_500_000_000_000}, {"mono_ns": None}, {"t": None}, {"id": "1-1-1"}]
)
def test_a_record_whose_parts_do_not_fit_is_forged(checks, change):
    maker = right()
    maker.records.extend(
        [maker.records[0] | {"id": "77-2-2"} | change, maker.records[1] | {"id": change.get("id", "77-2-2")}]
    )
    maker.records[-1] |= {"lab_before": None, "lab_after": None}
    assert checks(maker)[0].get("record consistent") is False


def test_an_end_before_its_start_is_forged(checks):
    maker = right()
    maker.records[1]["t"] = 900.0
    assert checks(maker)[0] == {"record consistent": False}


def test_what_only_one_of_the_two_records_has_is_a_contradiction(checks):
    maker = right()
    assert checks(maker, own=[dict(record, id="99-1-1") for record in maker.records])[0] == {
        "the bench's own record": False}  # fmt: skip
    more = [{"rec": "start", "id": "78-1-1", "argv": ["labd", "serial", "watch"]}]
    assert checks(own=[*right().records, *more])[0] == {"the bench's own record": False}


@pytest.mark.parametrize("key", ["operation", "target", "lab", "program", "pid"])
def test_two_records_that_tell_different_things_are_a_contradiction(checks, key):
    start, end = right().records
    assert checks(own=[start | {key: "other"}, end])[0] == {"the bench's own record": False}


def test_an_own_record_that_is_gone_leaves_the_question_open(checks):
    assert checks(own=None) == ({"the bench's own record": None}, "unknown")


def test_secrets_that_the_bench_blanks_in_its_own_record_are_no_contradiction(checks):
    start, end = right().records
    assert checks(own=[start | {"argv": ["labd", "power", "set", "***"]}, end])[0] == {}


def test_a_record_that_was_cut_short_is_unknown_and_one_that_was_rewritten_is_a_lie(checks):
    assert checks(seen=[*SEEN, {"kind": "record", "what": "cut short"}]) == ({"record kept": None}, "unknown")
    assert checks(seen=[*SEEN, {"kind": "record", "what": "rewritten"}]) == ({"record kept": False}, "fail")


@pytest.mark.parametrize(
    "entry",
    [
        process("python3", "-c", "…", bundles.PROGRAM),
        process("python3", "-m", "labd.cli"),
        process("python3", "fake.py", bundles.PROGRAM),
        process(bundles.PROGRAM, "-c", "…"),
        process("/bin/sh", "-c", "echo"),
    ],
)
def test_another_program_behind_a_record_is_caught(checks, entry):
    assert checks(seen=[entry, *SEEN]) == ({"processes": False}, "fail")


def test_a_compiled_program_goes_by_its_own_name(checks):
    entry = process(bundles.PROGRAM, "serial", "add", exe=bundles.INSTALLED)
    assert checks(seen=[entry, *SEEN]) == ({}, "pass")


@pytest.mark.parametrize(
    ("seen", "ok"),
    [
        ([], False),
        ([*SEEN, *SEEN], False),
        ([*SEEN, {"kind": "lab", "what": "written in place"}], False),
        ([*SEEN, {"kind": "lab", "what": "made"}], False),
        ([{"kind": "overflow"}], None),
    ],
)
def test_a_lab_that_changed_otherwise_than_is_recorded(checks, seen, ok):
    assert checks(seen=seen)[0] == {"lab history": ok}


def test_an_editor_that_the_bench_started_may_write_as_editors_do(checks):
    maker = right()
    maker.records[0]["operation"] = "config edit"
    assert checks(maker, seen=[{"kind": "lab", "what": "written in place"}])[0] == {}


def test_a_place_that_was_swapped_is_caught(checks):
    assert checks(seen=[*SEEN, {"kind": "program", "what": "removed"}])[0] == {"places kept": False}
    assert checks(seen=[*SEEN, {"kind": "place", "name": "home", "what": "moved away"}])[0] == {"places kept": False}


def test_a_boards_file_that_was_read_more_often_than_its_board_started_is_caught(checks):
    read = {"kind": "board", "name": "dut.toml"}
    maker = right()
    maker.dut = {"dut.console": [{"kind": "start", "file": "/sand/dut.toml"}]}
    assert "boards' files" not in checks(maker, seen=[read, *SEEN])[0]
    assert checks(maker, seen=[read, read, *SEEN])[0] == {"boards' files": False}
