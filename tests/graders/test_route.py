"""The route check: each way around the bench's door, and that verdicts say which."""

import pytest

from graders import route
from graders.t1_config import grade
from tests.graders import bundles

SEED = bundles.SEED.encode()
ONE, TWO, THREE = SEED + b"# 1\n", SEED + b"# 2\n", SEED + b"# 3\n"


def checks(maker, tmp_path):
    return {check.name: check for check in route.check(maker.write(tmp_path))}


def test_the_right_way_passes(tmp_path):
    assert all(check.ok for check in checks(bundles.config(), tmp_path).values())


def test_a_hand_edit_after_all_commands_is_caught(tmp_path):
    maker = bundles.config()
    maker.after += b"# by hand\n"
    check = checks(maker, tmp_path)["lab route"]
    assert check.ok is False
    assert "hand edit" in check.detail


def test_a_hand_edit_between_two_commands_is_caught(tmp_path):
    maker = bundles.config()
    maker.records = []
    maker.edit("x 1", SEED, ONE)
    maker.edit("x 2", TWO, THREE)
    maker.after = THREE
    check = checks(maker, tmp_path)["lab route"]
    assert check.ok is False
    assert "labd x 2 met a lab that no recorded command had left" in check.detail


def test_a_lab_written_by_an_unrecorded_run_is_a_hand_edit(tmp_path):
    maker = bundles.config()
    maker.records = []
    assert "hand edit" in checks(maker, tmp_path)["lab route"].detail


def test_a_lab_that_was_not_there_and_is_made_by_a_command_is_right(tmp_path):
    maker = bundles.config()
    maker.before = None
    maker.records = []
    maker.edit("init", None, ONE)
    maker.edit("x 1", ONE, maker.after)
    assert checks(maker, tmp_path)["lab route"].ok is True


def test_a_removed_lab_is_a_hand_edit(tmp_path):
    maker = bundles.config()
    maker.after = None
    assert checks(maker, tmp_path)["lab route"].ok is False


def test_two_commands_at_once_may_have_written_their_ends_in_the_other_order(tmp_path):
    maker = bundles.config()
    maker.records = []
    maker.edit("x 2", ONE, TWO)
    maker.edit("x 1", SEED, ONE)
    maker.after = TWO
    assert checks(maker, tmp_path)["lab route"].ok is True


def test_going_there_and_back_is_right(tmp_path):
    maker = bundles.config()
    maker.records = []
    for before, after in ((SEED, ONE), (ONE, SEED), (SEED, ONE)):
        maker.edit("x 1", before, after)
    maker.after = ONE
    assert checks(maker, tmp_path)["lab route"].ok is True


def test_edits_of_another_lab_are_no_links_of_the_chain(tmp_path):
    maker = bundles.config()
    maker.edit("x 1", TWO, THREE, lab="/elsewhere.toml")
    assert checks(maker, tmp_path)["lab route"].ok is True


@pytest.mark.parametrize(
    ("program", "says"),
    [(bundles.INSTALLED, "absolute path"), ("/sand/work/mylab", "copied binary"), (None, "copied binary")],
)
def test_another_program_is_caught_and_named(tmp_path, program, says):
    maker = bundles.config()
    maker.records[0]["program"] = program
    verdict = grade(maker.write(tmp_path))
    assert verdict.verdict == "fail"
    assert verdict.reason.startswith(f"program: {says}")


def test_other_programs_that_the_recorder_saw_are_none_of_this(tmp_path):
    maker = bundles.config()
    maker.run("", argv=["adb", "devices"], program="/sand/bin/adb", face="recorder", effect=None, operation=None)
    assert checks(maker, tmp_path)["program"].ok is True


def test_without_a_record_nobody_knows(tmp_path):
    maker = bundles.config()
    maker.records = None
    assert {check.ok for check in checks(maker, tmp_path).values()} == {None}


def test_without_the_sandboxs_program_nobody_knows(tmp_path):
    maker = bundles.config()
    del maker.trial["route"]
    assert checks(maker, tmp_path)["program"].ok is None


def test_a_record_that_was_tampered_with_is_not_whole(tmp_path):
    maker = bundles.config()
    maker.records.append(dict(maker.records[0]))
    assert checks(maker, tmp_path)["record whole"].ok is None
    assert grade(maker.write(tmp_path)).verdict == "unknown"
