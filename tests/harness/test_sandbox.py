"""A sandbox is fresh, shares nothing with its user, and takes all that was started in it along when it goes."""

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harness import execute, sandbox
from harness.bench import Bench
from harness.sandbox import Sandbox
from harness.scenario import Step
from tests.harness.conftest import ADD_PICO, alive, make_scenario, wait_until


def run(place: Sandbox, *argv: str) -> execute.Ended:
    ended = execute.run(argv, env=place.env, cwd=place.work, limit_s=20)
    place.sessions.add(ended.session)
    return ended


def test_a_command_in_it_sees_nothing_of_the_users_environment(place: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_USER", "1")
    seen = json.loads(run(place, "labd", "environment").stdout)
    assert "SECRET_OF_THE_USER" not in seen
    inside = {name for name, value in seen.items() if value.startswith(str(place.root))}
    assert {"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMPDIR", "LABD_LAB"} <= inside
    assert seen["PATH"] == f"{place.root}/bin:/usr/bin:/bin"
    # LC_CTYPE may be added by the interpreter of the program that was asked.
    assert set(seen) - {"LC_CTYPE"} == set(place.env)


def test_nothing_in_it_says_that_somebody_is_examined(place: Sandbox) -> None:
    words = " ".join([*place.env, *place.env.values(), *(str(path) for path in place.root.rglob("*"))]).lower()
    assert not any(word in words for word in ("eval", "exam", "harness", "trial", "sandbox", "grader"))


def test_a_socket_fits_into_it(place: Sandbox) -> None:
    assert len(place.env["XDG_RUNTIME_DIR"] + "/labd/daemon.sock") <= 100


@pytest.mark.parametrize(("lane", "level"), [("config", "config"), ("loopback", "simulated")])
def test_the_lane_decides_what_is_permitted(place: Sandbox, lane: str, level: str) -> None:
    assert sandbox.environment(place.root, lane)["LABD_POLICY"] == level


def test_every_sandbox_has_its_own_nonce_in_its_seed(subject: Path) -> None:
    scenario = make_scenario(ADD_PICO, identity="C2", seed="labs/neighbour.toml")
    places = [sandbox.create(scenario, str(subject)) for _ in range(2)]
    try:
        nonces = [place.values["nonce"] for place in places]
        assert nonces[0] != nonces[1]
        for place in places:
            assert place.lab.read_bytes() == place.seed
            assert b"{nonce}" not in (place.seed or b"")
    finally:
        for place in places:
            place.close()


def test_without_a_seed_there_is_no_lab(place: Sandbox) -> None:
    assert place.seed is None
    assert place.lab_bytes() is None
    assert place.argv_log.read_bytes() == b""


def test_other_programs_are_recorded_under_their_own_names(subject: Path) -> None:
    place = sandbox.create(make_scenario(ADD_PICO), str(subject), programs={"cat": "/bin/cat"})
    try:
        ended = execute.run(["cat"], env=place.env, cwd=place.work, limit_s=20, stdin=b"\xff\n")
        assert ended.stdout == b"\xff\n"
        start = json.loads(place.argv_log.read_text().splitlines()[0])
        assert (start["argv"], start["program"]) == (["cat"], str(place.bin / "cat"))
    finally:
        place.close()


def test_a_sandbox_that_cannot_be_furnished_leaves_nothing(subject: Path) -> None:
    before = set(Path("/tmp").glob(f"{sandbox.PREFIX}*"))
    with pytest.raises(sandbox.SandboxError):
        sandbox.create(make_scenario(ADD_PICO), str(subject), programs={"x": "/nowhere/x"})
    assert set(Path("/tmp").glob(f"{sandbox.PREFIX}*")) <= before


def test_what_was_started_in_it_ends_with_it_also_in_a_session_of_its_own(place: Sandbox) -> None:
    pid = int(run(place, "labd", "fork").stdout)
    assert alive(pid)
    left, still = place.stop()
    assert [process.pid for process in left] == [pid]
    assert still == []
    wait_until("the end of what was left behind", lambda: not alive(pid))


def test_a_process_that_ignores_sigterm_is_killed(place: Sandbox) -> None:
    script = "trap '' TERM; echo $$ > pid; while :; do sleep 600; done"
    pid_file = place.work / "pid"
    run(
        place, "/bin/sh", "-c", f'setsid /bin/sh -c "{script.replace("$", chr(92) + "$")}" >/dev/null 2>&1 </dev/null &'
    )
    wait_until("its pid", lambda: pid_file.exists() and pid_file.read_text().strip())
    pid = int(pid_file.read_text())
    place.stop()
    assert not alive(pid)


def test_a_process_that_dropped_its_environment_is_found_by_its_session(place: Sandbox) -> None:
    out = run(place, "/bin/sh", "-c", "env -i /bin/sleep 600 >/dev/null 2>&1 </dev/null & echo $!").stdout
    assert alive(int(out))
    place.stop()
    assert not alive(int(out))


def test_nobody_else_is_touched_not_even_who_stands_in_its_directory_or_names_it(place: Sandbox) -> None:
    bystander = subprocess.Popen(["/bin/sh", "-c", "sleep 600; :", str(place.root) + "/"], cwd=place.work)
    try:
        run(place, "labd", "fork")
        place.stop()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_it_can_be_removed_when_an_agent_took_all_permissions_away(subject: Path) -> None:
    place = sandbox.create(make_scenario(ADD_PICO), str(subject))
    run(place, "/bin/sh", "-c", "mkdir -p a/b && touch a/b/c && chmod 000 a/b a")
    place.close()
    assert not place.root.exists()


def test_what_a_killed_harness_left_is_reaped_and_what_a_living_one_holds_is_not(
    place: Sandbox, tmp_path: Path
) -> None:
    script = (
        "import sys\nfrom harness import sandbox, execute\nfrom tests.harness.conftest import *\n"
        "p = sandbox.create(make_scenario(ADD_PICO), sys.argv[1])\n"
        "e = execute.run(['labd', 'fork'], env=p.env, cwd=p.work, limit_s=20)\n"
        "print(p.root, e.stdout.decode().strip(), flush=True)\nsys.stdin.read()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, place.subject],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    with other:
        assert other.stdout is not None
        root, pid = other.stdout.readline().decode().split()
        other.send_signal(signal.SIGKILL)
    assert alive(int(pid))

    reaped = sandbox.reap_abandoned()

    assert Path(root) in reaped
    assert not Path(root).exists()
    assert not alive(int(pid))
    assert place.root.exists()
    assert os.path.exists(place.program)


# -- the bench that an agent gets ---------------------------------------------------------------------------------


def test_a_step_that_waits_is_run_again_until_its_words_come(place: Sandbox) -> None:
    bench = Bench(make_scenario(ADD_PICO), place)
    ended = bench.run(Step("labd count", until="count 3"))
    assert ended.stdout == b"count 3\n"
    assert [(call.step, call.tries) for call in bench.calls] == [("labd count", 3)]


def test_removing_a_tree_never_changes_the_directory_it_stands_in(tmp_path: Path):
    tmp_path.chmod(0o755)
    sandbox.remove(tmp_path / "not-there")
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_directory_that_only_looks_like_a_sandbox_is_left_alone() -> None:
    root = Path(tempfile.mkdtemp(prefix=sandbox.PREFIX, dir="/tmp"))
    try:
        (root / "rec").mkdir()
        (root / "rec" / "lock").write_text("somebody's own\n")
        assert root not in sandbox.reap_abandoned()
        assert root.exists()
    finally:
        sandbox.remove(root)
