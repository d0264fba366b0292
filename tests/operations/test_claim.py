"""Claims of whole boards, as people and agents meet them."""

from __future__ import annotations

import time

import pytest

from labd import claims
from labd.errors import Busy
from tests.conftest import BenchInAFolder, until

ANN, BOB = {"LABD_AS": "ann"}, {"LABD_AS": "bob"}


def test_a_claimed_board_can_be_looked_at_by_all_and_acted_on_by_one(board: BenchInAFolder):
    board("claim", "dut", "--for", "2h", "--why", "bisecting a boot hang", env=ANN)
    refused = board("serial", "watch", "dut", check=6, env=BOB).stderr.decode()
    assert "dut is claimed by ann until" in refused and "(bisecting a boot hang); nothing was done" in refused
    board("serial", "watch", "dut", env=ANN)
    assert "claimed by ann until" in board.out("serial", "show", "dut", env=BOB)
    acts = (
        "lines dut --rts on",
        "send dut x",
        "run dut x",
        "reset dut",
        "stop dut",
        "trigger add dut a b",
        "break dut",
    )
    for act in acts:
        assert b"claimed by ann" in board("serial", *act.split(), check=6, env=BOB).stderr
    for look in (("serial", "log", "dut"), ("claim", "list"), ("serial", "show", "dut"), ("target", "show", "dut"),
                 ("serial", "expect", "dut", "login:", "--since", "0")):  # fmt: skip
        board(*look, env=BOB)
    assert board("release", "dut", check=6, env=BOB).stdout == b""
    assert board.out("release", "dut", env=ANN) == "dut is released; ann had it\n"
    board("serial", "stop", "dut", env=BOB)


def test_the_configuration_of_a_claimed_board_is_changed_by_one_and_its_claim_goes_with_it(board: BenchInAFolder):
    board("target", "add", "other")
    board("claim", "dut", env=ANN)
    lab = board.lab.read_bytes()
    for edit in (("target", "rm", "dut"), ("target", "set", "dut", "--description", "x"),
                 ("serial", "rm", "console", "-t", "dut"), ("serial", "set", "console", "-t", "dut", "--baud", "9600"),
                 ("serial", "add", "bmc", "-t", "dut", "-d", "loopback:uboot"),
                 ("power", "set", "-t", "dut", "--cycle-cmd", "true")):  # fmt: skip
        refused = board(*edit, check=6, env=BOB).stderr.decode()
        assert "dut is claimed by ann until" in refused and "labd claim dut --take" in refused
        start, end = board.records()[-2:]
        assert (start["rec"], start["effect"], start["decision"]) == ("start", "config", "refused")
        assert (end["code"], end["lab_after"]) == (6, None)
    assert board.lab.read_bytes() == lab
    board("target", "set", "other", "--description", "x", env=BOB)
    board("serial", "watch", "dut", env=ANN)
    assert len(board.json("daemons")["boards"]) == 1
    board("target", "rm", "dut", env=ANN)
    assert board.json("claim", "list") == []
    until("its simulated board ends", lambda: not board.json("daemons")["boards"])


def test_a_claim_can_be_taken_over_prolonged_and_ends_by_itself(board: BenchInAFolder):
    first = board.json("claim", "dut", "--for", "30m", "--why", "x", env=ANN)
    again = board.json("claim", "dut", "--for", "3h", env=ANN)
    assert (again["since"], again["why"]) == (first["since"], "x") and again["until"] > first["until"]
    board("claim", "dut", check=6, env=BOB)
    assert board.json("claim", "dut", "--take", "--for", "2s", env=BOB)["taken_from"] == "ann"
    assert [row["by"] for row in board.json("claim", "list")] == ["bob"]
    time.sleep(2.0)  # the claim's own time
    assert board.out("claim", "list") == ""
    board("serial", "stop", "dut", env=ANN)


def test_a_refusal_is_recorded_as_one(board: BenchInAFolder):
    board("claim", "dut", env=ANN)
    board("serial", "send", "dut", "x", check=6, env=BOB)
    assert board.records()[-2]["decision"] == "refused"
    board("release", "dut", "--force", env=BOB)


@pytest.mark.parametrize("time", ["soon", "0", "-1h", "5y", "1e99d", ""])
def test_a_time_that_is_none_is_refused(board: BenchInAFolder, time: str):
    assert board("claim", "dut", f"--for={time}", check=2).stdout == b""


def test_an_unknown_board_cannot_be_claimed_nor_released(board: BenchInAFolder):
    board("claim", "dtu", check=4)
    board("release", "dtu", check=4)
    board("release", "../x", check=4)


def test_a_damaged_claim_is_none(tmp_path):
    env = {"XDG_STATE_HOME": str(tmp_path), "LABD_AS": "ann"}
    lab = str(tmp_path / "lab.toml")
    claims.claim(env, lab, "pico", seconds=60)
    with pytest.raises(Busy):
        claims.check({**env, "LABD_AS": "bob"}, lab, "pico")
    [file] = tmp_path.rglob("pico.json")
    for damage in ("", "{", "[]", '{"until": "x"}'):
        file.write_text(damage)
        claims.check({**env, "LABD_AS": "bob"}, lab, "pico")
        assert list(claims.all_claims(env)) == []
