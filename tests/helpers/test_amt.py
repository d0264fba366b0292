"""The helper against a real HTTP server that plays AMT's power service, digest and XML checked at that end."""

import json
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from labd import helpers
from labd.helpers import _program, amt
from tests.helpers.fake_amt import FakeAmt
from tests.helpers.run import run

SECRET = {"AMT_PASSWORD": "P@ssw0rd"}


@pytest.fixture
def pc() -> Iterator[FakeAmt]:
    fake = FakeAmt()
    yield fake
    fake.close()


def test_state_prints_on_or_off_and_nothing_else(pc: FakeAmt) -> None:
    words = [*helpers.command("amt"), "-d", pc.address, "state"]
    done = subprocess.run(words, capture_output=True, timeout=60, env={"PATH": "/usr/bin:/bin", **SECRET})
    assert (done.returncode, done.stdout, done.stderr) == (0, b"on\n", b"")
    pc.power = 8
    assert run(amt, "-d", pc.address, "state", env=SECRET) == (0, "off\n", "")
    pc.power = 4
    code, out, err = run(amt, "-d", pc.address, "state", env=SECRET)
    assert (code, out) == (0, "off\n") and "asleep" in err
    assert json.loads(run(amt, "-d", pc.address, "status", env=SECRET)[1]) == {"PowerState": "4"}


def test_switching_is_read_back_until_it_shows(pc: FakeAmt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amt, "ASK_S", 0.01)
    pc.lag, pc.returns = 3, "4096"
    assert run(amt, "-d", pc.address, "off", env=SECRET) == (0, "off\n", "")
    assert (pc.requests, pc.power) == ([8], 8)
    assert run(amt, "-d", pc.address, "off", env=SECRET) == (0, "off\n", "")
    assert pc.requests == [8], "what is off is not switched off again"
    assert run(amt, "-d", pc.address, "on", env=SECRET) == (0, "on\n", "")
    assert pc.requests == [8, 2]


def test_what_amt_refuses_or_does_not_do_is_a_failure(pc: FakeAmt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amt, "SETTLE_S", 0.05)
    monkeypatch.setattr(amt, "ASK_S", 0.01)
    pc.returns = "1"
    code, out, err = run(amt, "-d", pc.address, "off", env=SECRET)
    assert (code, out) == (1, "") and "refused to switch off (it returned 1)" in err
    pc.returns, pc.lag = "0", 1000
    code, out, err = run(amt, "-d", pc.address, "off", env=SECRET)
    assert (code, out) == (1, "") and "the power is still on" in err


def test_a_cycle_brings_the_power_back_with_several_tries(pc: FakeAmt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_program, "RESTORE_PAUSE_S", 0.02)
    pc.refuse_on = 2
    code, out, err = run(amt, "-d", pc.address, "cycle", "--delay-ms", "200", env=SECRET)
    assert code == 0 and out.startswith("on (was off for ") and "try 2 of 6" in err
    assert (pc.requests, pc.power) == ([8, 2, 2, 2], 2)
    pc.refuse_on = 1000
    code, out, err = run(amt, "-d", pc.address, "cycle", "--delay-ms", "200", env=SECRET)
    assert (code, out) == (1, "") and "THE POWER MAY STILL BE OFF" in err and f"amt -d {pc.address} on" in err


def test_the_password_is_asked_for_refused_and_taken_from_a_file(pc: FakeAmt, tmp_path: Path) -> None:
    code, _, err = run(amt, "-d", pc.address, "state")
    assert code == 7 and "AMT_PASSWORD" in err and pc.challenges == 0
    code, _, err = run(amt, "-d", pc.address, "state", env={"AMT_PASSWORD": "wrong"})
    assert code == 7 and "refuses the user 'admin' or the password" in err and "wrong" not in err
    (tmp_path / "secret").write_text("P@ssw0rd\n")
    assert run(amt, "-d", pc.address, "state", "--password-file", str(tmp_path / "secret")) == (0, "on\n", "")


def test_a_nonce_is_used_again_and_replaced_when_it_has_grown_old(pc: FakeAmt) -> None:
    run(amt, "-d", pc.address, "off", env=SECRET)
    assert pc.challenges == 1
    pc.uses = 2
    assert run(amt, "-d", pc.address, "on", env=SECRET)[0] == 0
    assert pc.challenges > 2


def test_what_is_no_amt_and_who_is_not_there(pc: FakeAmt) -> None:
    for body in (b"<html>hello</html>", b"hello", b"<!DOCTYPE x [<!ENTITY a 'b'>]><Envelope/>"):
        pc.body = body
        code, out, err = run(amt, "-d", pc.address, "state", env=SECRET)
        assert (code, out) == (7, "") and "not as AMT" in err
    pc.body = pc._envelope("<a:Fault><a:Reason><a:Text>go away</a:Text></a:Reason></a:Fault>")
    assert run(amt, "-d", pc.address, "state", env=SECRET)[::2] == (1, f"amt: {pc.address} refuses: go away\n")
    pc.body, pc.power = None, 99
    assert "'99', which is neither on nor off" in run(amt, "-d", pc.address, "state", env=SECRET)[2]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        code, _, err = run(amt, "-d", f"127.0.0.1:{free.getsockname()[1]}", "state", env=SECRET)
    assert code == 7 and "refused" in err
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        where = f"127.0.0.1:{mute.getsockname()[1]}"
        code, _, err = run(amt, "-d", where, "state", "--timeout-ms", "100", env=SECRET)
    assert code == 5 and "did not answer within 0.1 s" in err


@pytest.mark.parametrize(
    "words",
    [(), ("-d", "192.0.2.1"), ("-d", "192.0.2.1", "reset"), ("-d", "a:b:c", "state"), ("-d", "h/x", "state"),
     ("-d", "192.0.2.1", "state", "--trust", "any"), ("-d", "192.0.2.1", "state", "--password-file", "/none")],
)  # fmt: skip
def test_bad_words_are_exit_2(words: tuple[str, ...]) -> None:
    code, out, err = run(amt, *words, env=SECRET)
    assert (code, out) == (2, "") and err.startswith("amt: ")


def test_tls_is_checked_unless_that_is_given_up(pc: FakeAmt, tmp_path: Path) -> None:
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
         "-subj", "/CN=pc", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=tmp_path, capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("openssl makes no certificate here")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    pc._server.socket = context.wrap_socket(pc._server.socket, server_side=True)
    code, _, err = run(amt, "-d", pc.address, "state", "--tls", env=SECRET)
    assert code == 7 and "certificate" in err.lower()
    for trust in ("any", str(tmp_path / "cert.pem")):
        assert run(amt, "-d", pc.address, "state", "--tls", "--trust", trust, env=SECRET) == (0, "on\n", "")
