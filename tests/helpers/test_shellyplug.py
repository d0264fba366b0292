"""The helper against a real HTTP server that plays the plug's documented API, run as the program that it is."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest

from labd import helpers
from labd.helpers import _digest, _program, shellyplug
from tests.helpers.fake_shelly import FakeShelly


@pytest.fixture
def plug() -> Iterator[FakeShelly]:
    fake = FakeShelly()
    yield fake
    fake.close()


def run(*words: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """The helper in this process: exit code, stdout, stderr."""
    out: list[str] = []
    err: list[str] = []
    code = shellyplug.main(list(words), env=env or {}, out=out.append, err=err.append)
    return code, "".join(out), "".join(err)


def test_state_prints_on_or_off_and_nothing_else(plug: FakeShelly) -> None:
    done = subprocess.run(
        [*helpers.command("shellyplug"), "-d", plug.address, "state"], capture_output=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"on\n", b"")
    plug.output[0] = False
    assert run("-d", plug.address, "state") == (0, "off\n", "")


def test_on_and_off_are_read_back_from_the_plug(plug: FakeShelly) -> None:
    assert run("-d", f"http://{plug.address}", "off") == (0, "off\n", "")
    assert plug.output[0] is False
    assert any("Switch.GetStatus" in call for call in plug.calls[1:])
    assert run("-d", plug.address, "on") == (0, "on\n", "")
    assert plug.output[0] is True


def test_a_plug_that_takes_the_command_and_does_nothing_is_a_failure(
    plug: FakeShelly, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shellyplug, "SETTLE_S", 0.2)
    plug.stuck = True
    code, out, err = run("-d", plug.address, "off")
    assert (code, out) == (1, "")
    assert "still on" in err


def test_a_cycle_leaves_the_power_off_for_the_asked_time_and_then_on(plug: FakeShelly) -> None:
    code, out, err = run("-d", plug.address, "cycle", "--delay-ms", "400")
    assert (code, err) == (0, "")
    assert out.startswith("on (was off for ")
    (off_at, _, off), (on_at, _, on) = plug.changes
    assert (off, on) == (False, True)
    assert on_at - off_at >= 0.39


def test_a_cycle_works_without_the_plugs_own_timer(plug: FakeShelly, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_program, "RESTORE_PAUSE_S", 0.1)
    plug.timers = False
    assert run("-d", plug.address, "cycle", "--delay-ms", "200")[0] == 0
    assert plug.output[0] is True


def test_a_cycle_that_cannot_restore_tries_again_and_says_so(plug: FakeShelly, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_program, "RESTORE_PAUSE_S", 0.05)
    plug.timers, plug.refuse_on = False, 2
    code, out, err = run("-d", plug.address, "cycle", "--delay-ms", "200")
    assert (code, plug.output[0]) == (0, True)
    assert "try 2 of 6" in err and out.startswith("on")


def test_a_cycle_that_never_gets_the_power_back_says_that_it_may_be_off(
    plug: FakeShelly, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_program, "RESTORE_PAUSE_S", 0.05)
    plug.timers, plug.refuse_on = False, 1000
    code, out, err = run("-d", plug.address, "cycle", "--delay-ms", "200")
    assert (code, out) == (7, "")
    assert "THE POWER MAY STILL BE OFF" in err and f"-d {plug.address} on 0" in err


def test_a_cycle_that_is_killed_with_sigkill_still_ends_with_power(plug: FakeShelly) -> None:
    process = subprocess.Popen(
        [*helpers.command("shellyplug"), "-d", plug.address, "cycle", "--delay-ms", "1000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _until(lambda: plug.output[0] is False, "the plug was not switched off")
    process.send_signal(signal.SIGKILL)
    process.wait(20)
    _until(lambda: run("-d", plug.address, "state")[1] == "on\n", "the plug's own timer did not restore the power")


def test_a_cycle_that_is_told_to_end_restores_the_power_first(plug: FakeShelly) -> None:
    plug.timers = False
    process = subprocess.Popen(
        [*helpers.command("shellyplug"), "-d", plug.address, "cycle", "--delay-ms", "60000"], stderr=subprocess.PIPE
    )
    _until(lambda: plug.output[0] is False, "the plug was not switched off")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, plug.output[0]) == (130, True), err


def test_the_second_switch_is_addressed_by_its_number_and_an_unknown_one_is_exit_4() -> None:
    plug = FakeShelly(switches=2)
    try:
        assert run("-d", plug.address, "off", "1")[0] == 0
        assert plug.output == {0: True, 1: False}
        code, _, err = run("-d", plug.address, "state", "7")
        assert code == 4 and "value 7 not found" in err
    finally:
        plug.close()


def test_status_is_json_with_the_device_and_the_switch(plug: FakeShelly) -> None:
    code, out, _ = run("-d", plug.address, "status")
    data = json.loads(out)
    assert code == 0 and data["device"]["gen"] == 2 and data["switch"]["output"] is True


def test_authentication_is_answered_with_the_password_from_the_environment_or_a_file(tmp_path: object) -> None:
    plug = FakeShelly(password='pa"ss wörd')
    try:
        code, _, err = run("-d", plug.address, "state")
        assert code == 7 and "authentication is on" in err and "SHELLYPLUG_PASSWORD" in err
        assert run("-d", plug.address, "off", env={"SHELLYPLUG_PASSWORD": 'pa"ss wörd'}) == (0, "off\n", "")
        code, _, err = run("-d", plug.address, "state", env={"SHELLYPLUG_PASSWORD": "wrong"})
        assert code == 7 and "refuses the password" in err and "wrong" not in err
        secret = os.path.join(str(tmp_path), "secret")
        with open(secret, "w", encoding="utf-8") as file:
            file.write('pa"ss wörd\n')
        assert run("-d", plug.address, "state", "--password-file", secret) == (0, "off\n", "")
    finally:
        plug.close()


def test_the_digest_is_the_one_of_the_rfc() -> None:
    for algorithm, response in (
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
    ):
        fields = _digest.challenge(
            f'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm={algorithm}, '
            'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe"'
        )
        assert fields is not None
        told = _digest.authorization(
            fields, user="Mufasa", password="Circle of Life", method="GET", uri="/dir/index.html",
            cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
        )  # fmt: skip
        assert told is not None and f'response="{response}"' in told


def test_what_the_digest_cannot_answer_is_refused_not_guessed() -> None:
    assert _digest.challenge('Basic realm="x"') is None
    for unknown in ("algorithm=SHA-512-256", 'qop="auth-int"'):
        fields = _digest.challenge(f'Digest realm="r", nonce="n", {unknown}')
        assert fields is not None
        told = _digest.authorization(fields, user="a", password="b", method="GET", uri="/", cnonce="c")
        assert told is None


def test_nobody_there_is_exit_7_and_no_answer_in_time_is_exit_5(plug: FakeShelly) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        code, _, err = run("-d", f"127.0.0.1:{free.getsockname()[1]}", "state")
    assert code == 7 and "refused" in err
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        code, _, err = run("-d", f"127.0.0.1:{mute.getsockname()[1]}", "state", "--timeout-ms", "100")
    assert code == 5 and "did not answer within 0.1 s" in err
    plug.silent = True
    assert run("-d", plug.address, "state")[0] == 7


def test_a_first_generation_plug_is_recognised(plug: FakeShelly) -> None:
    plug.gen1 = True
    code, _, err = run("-d", plug.address, "state")
    assert code == 7 and "first-generation" in err


@pytest.mark.parametrize(
    "words",
    [(), ("-d", "192.0.2.1"), ("-d", "192.0.2.1", "toggle"), ("-d", "192.0.2.1", "cycle", "--delay-ms", "1"),
     ("-d", "https://192.0.2.1", "state"), ("-d", "a:b:c", "state"), ("-d", "192.0.2.1", "state", "--pass", "x")],
)  # fmt: skip
def test_bad_words_are_exit_2_and_touch_no_network(words: tuple[str, ...]) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "") and err.startswith("shellyplug: ")


def test_help_has_examples_and_exit_codes() -> None:
    code, out, _ = run("--help")
    assert code == 0
    for part in ("labd helper shellyplug -d 192.0.2.41 cycle", "Exit codes:", "--cycle-cmd"):
        assert part in out


def _until(condition: object, missing: str) -> None:
    end = time.monotonic() + 30
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, missing
        time.sleep(0.02)
