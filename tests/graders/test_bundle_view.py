"""Reading a bundle: what is not there is None, and what is no bundle is an error."""

import json

import pytest

from graders import journal_view
from graders.bundle_view import Bundle, BundleError
from tests.graders import bundles


def test_an_empty_directory_is_no_bundle(tmp_path):
    with pytest.raises(BundleError, match="labd-trial/1"):
        Bundle(tmp_path).trial  # noqa: B018
    with pytest.raises(BundleError, match=r"scenario\.json"):
        Bundle(tmp_path).scenario  # noqa: B018


def test_what_is_not_there_is_none(tmp_path):
    bundle = Bundle(tmp_path)
    assert (bundle.record, bundle.answer, bundle.lab_before, bundle.lab_after, bundle.dut("a", "b")) == (None,) * 5
    assert bundle.calls == []
    assert bundle.journals == {}


def test_an_empty_argv_record_is_a_record_of_nothing(tmp_path):
    (tmp_path / "argv.jsonl").write_bytes(b"")
    record = Bundle(tmp_path).record
    assert record is not None
    assert record.invocations == ()


def test_another_schema_is_refused(tmp_path):
    maker = bundles.config()
    maker.trial["schema"] = "labd-trial/99"
    with pytest.raises(BundleError):
        maker.write(tmp_path).trial  # noqa: B018


def test_journals_and_boards_are_found_below_a_labs_directory_too(tmp_path):
    store = tmp_path / "journal" / "some-lab" / "dut" / "console" / "rx"
    store.mkdir(parents=True)
    (store / f"{3:020d}.raw").write_bytes(b"def")
    (store / f"{0:020d}.raw").write_bytes(b"abc")
    boards = tmp_path / "dut" / "some-lab"
    boards.mkdir(parents=True)
    (boards / "dut.console.jsonl").write_text('{"kind": "rx", "data": "\\u00ff"}\n{"kind": "tx", "da')
    bundle = Bundle(tmp_path)
    assert journal_view.received(bundle.journals["dut", "console"]) == b"abcdef"
    assert bundle.dut("dut", "console") == [{"kind": "rx", "data": "\xff"}]


def test_sent_bytes_come_out_of_the_events_exactly(tmp_path):
    store = tmp_path / "events"
    store.mkdir()
    events = [
        {"kind": "open"},
        {"kind": "tx", "data": bytes(range(256)).decode("latin-1")},
        {"kind": "tx", "data": "x"},
    ]
    text = "".join(json.dumps(event) + "\n" for event in events)
    (store / f"{0:020d}.raw").write_bytes(text.encode() + b'{"kind": "tx", "data": "torn')
    assert journal_view.sent(tmp_path) == bytes(range(256)) + b"x"
    assert [event["kind"] for event in journal_view.events(tmp_path)] == ["open", "tx", "tx"]
