"""One writer at a time: who holds a console, what others are told, and how it changes hands."""

from __future__ import annotations

import pytest

from labd.errors import Busy
from labd.lease import Leases, person

KEY = ("/lab.toml", "pico", "console")
ANN = {"face": "cli", "pid": 11, "user": "ann"}
BOB = {"face": "rpc", "pid": 22, "user": "bob"}


def test_a_second_writer_is_told_who_writes_what_for_and_until_when():
    leases = Leases()
    leases.take(KEY, ANN, "an interactive session", 60)
    for attempt in (lambda: leases.take(KEY, BOB, "a run", 60), lambda: leases.admit(KEY, BOB)):
        with pytest.raises(Busy) as caught:
            attempt()
        assert "pico.console is written to by ann (cli, pid 11): an interactive session, until" in caught.value.message
        assert "nothing was sent" in caught.value.message and "--take" in (caught.value.hint or "")


def test_the_holder_may_write_and_so_may_his_process_beside_it():
    leases = Leases()
    lease = leases.take(KEY, ANN, "a run", 60)
    leases.admit(KEY, ANN, lease)
    leases.admit(KEY, ANN)
    with pytest.raises(Busy):
        leases.take(KEY, ANN, "another run", 60)


def test_another_console_is_not_concerned():
    leases = Leases()
    leases.take(KEY, ANN, "a run", 60)
    leases.admit(("/lab.toml", "pico", "bmc"), BOB)


def test_a_lease_that_was_given_back_or_ran_out_holds_nobody_up():
    leases = Leases()
    assert leases.release(leases.take(KEY, ANN, "a run", 60))
    leases.admit(KEY, BOB)
    old = leases.take(KEY, ANN, "a run", -1)
    assert leases.holder(KEY) is None
    leases.admit(KEY, BOB)
    assert not leases.release(old)


def test_whoever_loses_it_to_a_take_over_is_told_and_writes_no_more():
    changes: list[int] = []
    leases = Leases(lambda: changes.append(1))
    lease = leases.take(KEY, ANN, "a paced send", 60)
    taken = leases.take(KEY, BOB, "a session", 60, force=True)
    for attempt in (lambda: leases.admit(KEY, ANN, lease), lambda: leases.renew(lease, 60)):
        with pytest.raises(Busy, match=r"was taken over by bob \(rpc, pid 22\): a session"):
            attempt()
    assert not leases.release(lease)
    leases.admit(KEY, BOB, taken)
    assert changes


def test_a_lease_can_be_renewed_also_when_it_has_just_run_out():
    leases = Leases()
    lease = leases.take(KEY, ANN, "a session", -1)
    assert leases.renew(lease, 60).plain()["left_s"] == 60
    with pytest.raises(Busy):
        leases.admit(KEY, BOB)


@pytest.mark.parametrize(
    ("who", "text"), [(ANN, "ann (cli, pid 11)"), ({"user": "ann"}, "ann"), ({"face": "rpc"}, "rpc"), ({}, "somebody")]
)
def test_a_person_is_named_by_what_is_known(who: dict[str, object], text: str):
    assert person(who) == text
