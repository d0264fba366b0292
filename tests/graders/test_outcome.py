"""The loopback grader: a right trial passes, and each of its checks can be shown to fire."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders import outcome
from graders.bundle_view import Bundle
from graders.outcome import grade, not_pieces, not_within
from tests.graders import bundles


def graded(maker, tmp_path):
    return grade(maker.write(tmp_path))


def failed(verdict):
    return [check.name for check in verdict.checks if check.ok is False]


def test_a_right_trial_passes_and_every_check_was_asked(tmp_path):
    verdict = graded(bundles.loopback(), tmp_path)
    assert verdict.verdict == "pass"
    assert [check.name for check in verdict.checks] == [
        "ran: in order",
        "received [0] of dut.console matches",
        "journal [0] of dut.console matches",
        "journal [1] of dut.console matches",
        "journal [2] of dut.console matches",
        "printed [0]",
        "answer [0] contains",
        "nothing else sent: dut.console",
        "sent through the bench: dut.console",
        "journal true: dut.console",
        "record whole", "program", "lab route", "lab unchanged", "ended in time", "exit codes",
    ]  # fmt: skip


def test_the_same_bundle_gives_the_same_bytes(tmp_path):
    bundle = bundles.loopback().write(tmp_path)
    assert grade(bundle).dumps() == grade(type(bundle)(bundle.directory)).dumps()


def test_a_board_that_received_nothing_fails(tmp_path):
    maker = bundles.loopback()
    maker.dut["dut.console"] = [entry for entry in maker.dut["dut.console"] if entry["kind"] != "rx"]
    assert failed(graded(maker, tmp_path)) == ["received [0] of dut.console matches"]


def test_a_board_that_nobody_started_fails(tmp_path):
    maker = bundles.loopback()
    maker.dut, maker.journal = {}, {}
    assert "received [0] of dut.console matches" in failed(graded(maker, tmp_path))
    assert "journal [0] of dut.console matches" in failed(graded(maker, tmp_path))


def test_a_journal_without_the_fact_fails(tmp_path):
    maker = bundles.loopback()
    maker.journal["dut.console"] = (b"", maker.journal["dut.console"][1])
    assert failed(graded(maker, tmp_path)) == ["journal [0] of dut.console matches"]


def test_bytes_that_reached_the_board_past_the_bench_are_caught(tmp_path):
    maker = bundles.loopback()
    maker.journal["dut.console"] = (maker.journal["dut.console"][0], [{"kind": "open"}])
    verdict = graded(maker, tmp_path)
    assert "sent through the bench: dut.console" in failed(verdict)
    assert "bypass" in next(check.detail for check in verdict.checks if check.name.startswith("sent through"))


def test_a_bypass_on_another_line_is_caught_too(tmp_path):
    maker = bundles.loopback()
    maker.journal["spare.console"] = (b"", [])
    maker.dut["spare.console"] = [{"kind": "rx", "data": "x"}]
    wanted = ["nothing else sent: spare.console", "sent through the bench: spare.console"]
    assert failed(graded(maker, tmp_path)) == wanted


def test_a_forged_journal_is_caught(tmp_path):
    maker = bundles.loopback()
    maker.dut["dut.console"] = [{"kind": "tx", "data": "something else"}, {"kind": "rx", "data": "cat x\r"}]
    assert failed(graded(maker, tmp_path)) == ["journal true: dut.console"]


def test_without_the_boards_own_record_the_journal_is_not_taken_for_true(tmp_path):
    maker = bundles.loopback()
    maker.scenario["loopback"]["expect"] |= {"received": [], "free_sends": True}
    maker.dut = {}
    assert graded(maker, tmp_path).verdict == "unknown"


def test_a_board_that_floods_keeps_no_copy_and_is_believed(tmp_path):
    maker = bundles.loopback()
    maker.dut["dut.console"] = [{"kind": "flood"}, {"kind": "rx", "data": "cat x\r"}]
    assert graded(maker, tmp_path).verdict == "pass"


def test_log_before_watch_fails(tmp_path):
    maker = bundles.loopback()
    maker.records = maker.records[4:] + maker.records[:4]
    assert failed(graded(maker, tmp_path)) == ["ran: in order"]


def test_an_answer_without_the_fact_fails(tmp_path):
    maker = bundles.loopback()
    maker.answer = "Linux version 6.12"
    assert failed(graded(maker, tmp_path)) == ["answer [0] contains"]


def test_what_was_printed_is_taken_from_the_programs_own_output(tmp_path):
    maker = bundles.loopback()
    maker.calls = [{"argv": ["sh", "-c", "echo fact-99"], "stdout": "fact-99"}, {"argv": ["labd"], "stdout": "nothing"}]
    assert failed(graded(maker, tmp_path)) == ["printed [0]"]
    maker.calls.append({"argv": ["labd"], "stdout": "fact-99"})
    assert graded(maker, tmp_path).verdict == "pass"


@pytest.mark.parametrize(("head", "verdict"), [("short", "fail"), ("x" * 512, "unknown")])
def test_a_head_of_output_that_is_full_leaves_open_what_came_behind_it(tmp_path, head, verdict):
    maker = bundles.loopback()
    for record in maker.records:
        record["stdout_head"] = head
    assert graded(maker, tmp_path).verdict == verdict


def test_expectations_may_be_about_another_line_and_about_absence(tmp_path):
    maker = bundles.loopback()
    maker.scenario["loopback"]["expect"]["received"] = [{"lacks": "reboot"}, {"target": "spare", "matches": "x"}]
    maker.scenario["loopback"]["expect"]["free_sends"] = True
    assert failed(graded(maker, tmp_path)) == ["received [1] of spare.console matches"]
    maker.dut["dut.console"].append({"kind": "rx", "data": "reboot"})
    assert "received [0] of dut.console lacks" in failed(graded(maker, tmp_path))


def test_a_changed_lab_fails_even_if_only_its_text_changed(tmp_path):
    maker = bundles.loopback()
    maker.after = maker.before + b"# x\n"
    assert failed(graded(maker, tmp_path)) == ["lab route", "lab unchanged"]


def test_a_copied_binary_fails(tmp_path):
    maker = bundles.loopback()
    maker.records[0]["program"] = "/tmp/labd"
    assert failed(graded(maker, tmp_path)) == ["program"]


def test_nothing_at_all_fails(tmp_path):
    maker = bundles.loopback()
    maker.records, maker.answer, maker.journal, maker.dut = [], "", {}, {}
    assert graded(maker, tmp_path).verdict == "fail"


def test_a_missing_exit_code_is_unknown(tmp_path):
    maker = bundles.loopback()
    maker.run("serial log dut", ended=False)
    assert graded(maker, tmp_path).verdict == "unknown"


# -- containment --------------------------------------------------------------------------------------------------


@given(st.binary(max_size=40), st.data())
def test_what_a_wire_lost_is_contained_and_what_was_added_is_not(whole, data):
    kept = data.draw(st.lists(st.booleans(), min_size=len(whole), max_size=len(whole)))
    part = bytes(byte for byte, keep in zip(whole, kept, strict=True) if keep)
    assert not_within(part, whole) is None
    assert not_within(whole + b"x", whole) is not None


@given(st.binary(max_size=200), st.integers(0, 200), st.integers(0, 200))
def test_a_journal_with_one_gap_is_made_of_what_was_said(whole, one, two):
    low, high = sorted((one, two))
    assert not_pieces(whole, whole) is None
    assert not_pieces(whole[:low], whole) is None
    assert not_pieces(whole[high:], whole) is None


def test_a_made_up_line_is_not_made_of_what_was_said_though_all_its_letters_are():
    said = b"the quick brown fox jumps over the lazy dog\n" * 50
    assert not_pieces(said[44:440] + said[600:800], said) is None
    assert not_within(b"fox lazy quick dog brown\n", said) is None
    assert not_pieces(b"fox lazy quick dog brown\n", said) == 0


CYCLE = {"kind": "hook", "channel": "power", "action": "cycle", "code": 0}


def with_bench(tmp_path: Path, events: dict[str, list[dict[str, object]]], **expect: object) -> Bundle:
    """A right trial with journals of channels beside the serial lines."""
    maker = bundles.loopback()
    maker.scenario["loopback"]["expect"] |= expect
    tmp_path.mkdir(exist_ok=True)
    bundle = maker.write(tmp_path)
    for target, told in events.items():
        store = bundle.directory / "journal" / target / "@bench" / "events"
        store.mkdir(parents=True)
        (store / "00000000000000000000.raw").write_text("".join(json.dumps(event) + "\n" for event in told))
    return Bundle(bundle.directory)


def test_what_the_bench_tells_of_a_channel_is_asked_event_by_event(tmp_path: Path) -> None:
    wanted = {"bench": ['"action": "cycle".*"code": 0.*"kind": "hook"'], "drives": ["^power cycle$"]}
    assert all(check.ok for check in outcome.told_of(with_bench(tmp_path / "a", {"dut": [CYCLE]}, **wanted)))
    (failed,) = outcome.told_of(with_bench(tmp_path / "b", {"dut": [{**CYCLE, "code": 1}]}, **wanted))
    assert failed.ok is False
    (silent,) = outcome.told_of(with_bench(tmp_path / "c", {}, **wanted))
    assert silent.ok is False


def test_hooks_run_only_as_the_scenario_says_and_never_for_another_board(tmp_path: Path) -> None:
    typed = {**CYCLE, "channel": "hid", "action": "type"}
    asked = {**CYCLE, "action": "state"}
    one = with_bench(tmp_path, {"dut": [CYCLE, typed, asked], "spare": [CYCLE], "third": [asked]}, drives=["^power "])
    assert {check.name: check.ok for check in outcome.driven(one)} == {
        "nothing else driven: dut": False,
        "nothing else driven: spare": False,
        "nothing else driven: third": True,
    }
