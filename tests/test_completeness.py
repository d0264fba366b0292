"""When a capture is complete and when it isn't, judged from events."""

from typing import Any

import pytest

from labd.completeness import Verdict, judge
from labd.journal_read import Event

UART = {"port_kind": "tty", "settings": {"baud": 115200}}


def verdict(*told: tuple[str, int, dict[str, Any]]) -> Verdict:
    """Of events given oldest first, a second apart: (kind, rx, fields)."""
    events = [Event(n, kind, rx, n * 10**9, n * 10**9, fields) for n, (kind, rx, fields) in enumerate(told, 1)]
    found = judge(iter(events[::-1]))
    assert found is not None
    return found


def test_what_was_never_captured_has_no_verdict() -> None:
    assert judge(iter([])) is None


def test_an_open_port_that_nothing_happened_to_is_complete() -> None:
    found = verdict(("open", 100, UART))
    assert (found.complete, found.rx) == (True, 100)


def test_settings_that_changed_begin_no_new_session() -> None:
    found = verdict(("open", 5, UART), ("open", 900, {**UART, "why": "settings changed"}))
    assert (found.complete, found.rx) == (True, 5)


def test_an_unplugged_port_is_a_loss_with_its_cause_and_duration() -> None:
    found = verdict(("open", 0, UART), ("lost", 50, {"why": "hang-up"}),
                    ("reopened", 50, {**UART, "gap_ms": 2100, "cause": "hang-up"}))  # fmt: skip
    [loss] = found.losses
    assert (loss.rx, loss.why) == (50, "hang-up: nothing for 2.1 s")


def test_a_port_that_is_still_gone_is_a_loss_too() -> None:
    [loss] = verdict(("open", 0, UART), ("lost", 50, {"why": "hang-up"})).losses
    assert loss.why == "hang-up; it has not come back"


@pytest.mark.parametrize(
    ("kind", "fields", "says"),
    [
        ("overrun", {"where": "uart", "count": 3, "since_rx": 40}, "overflowed 3 times"),
        ("overrun", {"count": 17, "cause": "No space left on device"}, "17 bytes could not be stored (No space"),
        ("suspect", {"pid": 9, "command": "cat", "since_rx": 40}, "cat (pid 9) had the port open, too"),
        ("gap", {"cause": "the capture process died", "gap_ms": 300}, "the capture process died: nothing for 300 ms"),
        ("error", {"what": "settings", "message": "another program set IXON"}, "another program set IXON"),
    ],
)
def test_each_kind_of_loss_is_named(kind: str, fields: dict[str, Any], says: str) -> None:
    [loss] = verdict(("open", 0, UART), (kind, 60, fields)).losses
    assert says in loss.why
    assert loss.rx == fields.get("since_rx", 60)


@pytest.mark.parametrize(
    ("setup", "kind", "fields"),
    [
        (UART, "stall", {"max_ms": 5000.0}),  # of the daemon, which does not read the ports
        (UART, "suspect", {"pid": 9, "command": "cat", "ended": True}),
        (UART, "overrun", {"events": 4, "cause": "disk full"}),
        (UART, "error", {"what": "open", "message": "no"}),
    ],
)
def test_what_can_not_have_lost_a_byte_is_no_loss(setup: dict[str, Any], kind: str, fields: dict[str, Any]) -> None:
    assert verdict(("open", 0, setup), (kind, 60, fields)).complete


def test_a_stopped_capture_is_judged_by_itself_and_an_earlier_one_does_not_matter() -> None:
    found = verdict(("open", 0, UART), ("lost", 5, {}), ("closed", 5, {}), ("open", 9, UART), ("closed", 70, {}))
    assert (found.complete, found.rx) == (True, 9)


def test_a_session_that_labd_did_not_close_goes_on_with_a_gap() -> None:
    found = verdict(("closed", 0, {}), ("open", 3, UART), ("open", 80, UART))
    [loss] = found.losses
    assert (found.rx, loss.rx) == (3, 80)
    assert loss.why == "labd ended without closing: nothing for up to 1.0 s"


@pytest.mark.parametrize(
    ("told", "sign_s", "says"),
    [
        ([], 1.75, "250 ms"),  # a byte, or an event of another kind, that came after the last one kept
        ([], 0, "1.0 s"),
        ([("error", 80, {"what": "open", "message": "busy"})], 0, "2.0 s"),  # told by the one that opens
        ([("lost", 80, {"why": "hang-up"})], 1.75, "1.0 s"),  # it was gone already
    ],
)
def test_how_long_labd_was_away_is_counted_from_its_last_sign(told: list[Any], sign_s: float, says: str) -> None:
    session = [("open", 3, UART), *(told or [("suspect", 5, {"ended": True})]), ("open", 80, UART)]
    events = [Event(n, kind, rx, n * 10**9, n * 10**9, fields) for n, (kind, rx, fields) in enumerate(session)]
    found = judge(iter(events[::-1]), lambda opened: int(sign_s * 1e9))
    assert found is not None
    assert found.losses[-1].why == f"labd ended without closing: nothing for up to {says}"


def test_losses_come_in_order_of_place() -> None:
    found = verdict(("open", 0, UART), ("error", 50, {"what": "settings", "message": "x"}),
                    ("overrun", 70, {"where": "uart", "count": 1, "since_rx": 20}))  # fmt: skip
    assert [loss.rx for loss in found.losses] == [20, 50]
