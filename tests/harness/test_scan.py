"""The scan lane: nothing gets out, nothing of the user's gets in, only help and errors are looked at, and its record is
never one of another lane. Real programs behind real bubblewrap."""

import contextlib
import json
import os
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from graders import readiness as readiness_grader
from graders import scan as grader
from harness import cli, enclosure, scan
from labd.errors import LabdError, Refused

needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

SPY = """#!/bin/sh
# Tells what a program could find out, wherever it is called.
case "$1" in
  --help) env; ls -A "$HOME"; for place in /root /home; do ls -A $place 2>/dev/null | sed 's/^/found: /'; done
    printf 'commands:\\n  wipe      do away with all\\n  show      look\\n'; exit 0 ;;
  --version) echo spy 1.0; exit 0 ;;
  -h) echo help; exit 0 ;;
esac
echo "$@" >> "$HOME/../calls" 2>/dev/null
case "$*" in
  *--help) echo "usage: spy $1 --dry-run"; exit 0 ;;
esac
echo "spy: no such thing: $*" >&2
exit 2
"""


def scanned(tmp_path: Path, program: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(scan.scan(str(program), tmp_path / "runs").read_text())
    return found


@needs_bwrap
def test_a_scan_shows_help_and_errors_and_takes_what_is_documented_for_no_more(tmp_path, program):
    told = scanned(tmp_path, program("spy", SPY))
    found = told["findings"]
    assert {name: one["verdict"] for name, one in found["behaviour"].items()} == {
        "help-completion": "pass", "invalid-command": "pass", "invalid-flag": "pass"}  # fmt: skip
    assert found["documented"]["preview"] == ["--dry-run"]
    assert "score" not in json.dumps(told) and "overall" not in json.dumps(told)


@needs_bwrap
def test_no_credential_no_variable_and_no_file_of_the_user_is_seen(tmp_path, program, monkeypatch):
    monkeypatch.setenv("SERVICE_TOKEN", "hunter2")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/tmp/agent")
    told = scanned(tmp_path, program("spy", SPY))
    seen = next(one["stdout"] for one in told["observations"] if one["words"] == ["--help"])
    assert "hunter2" not in seen and "SSH_AUTH_SOCK" not in seen
    own = {line.partition("=")[0] for line in seen.splitlines() if "=" in line}
    assert own <= {*scan.environment(tmp_path), "PWD", "OLDPWD", "SHLVL", "_"}


@needs_bwrap
def test_every_way_out_is_tried_from_inside_and_none_is_open(tmp_path, program):
    tried = scanned(tmp_path, program("spy", SPY))["isolation"]["tried"]
    assert len(tried) == 7 and "open" not in tried.values()


CURIOUS = """#!/usr/bin/python3
import os, socket, sys
OWN, BESIDE = {own!r}, {beside!r}
def reads(path):
    try:
        open(path, "rb").close()
        return "read"
    except OSError:
        return "absent"
def reaches(path):
    try:
        os.chdir(os.path.dirname(path))
        socket.socket(socket.AF_UNIX).connect(os.path.basename(path))
        return "reached"
    except OSError:
        return "dead"
print("helper", reads(OWN + "/helper"), "beside", reads(BESIDE + "/file"), "shadow", reads("/etc/shadow"))
print("own", reaches(OWN + "/sk.sock"), "beside", reaches(BESIDE + "/sk.sock"))
print("top:", *sorted(os.listdir("/")))
print("user", __import__("pwd").getpwuid(os.getuid()).pw_name)
"""


@needs_bwrap
def test_in_a_place_that_no_name_hides_only_the_programs_own_files_are_read_and_no_socket_is_reached():
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as place, contextlib.ExitStack() as held:
        own, beside = Path(place, "own"), Path(place, "beside")
        for directory in (own, beside):
            directory.mkdir()
            one = held.enter_context(socket.socket(socket.AF_UNIX))
            opened = os.open(directory, os.O_RDONLY)
            one.bind(f"/proc/self/fd/{opened}/sk.sock")
            os.close(opened)
            one.listen()
        (own / "helper").touch()
        (beside / "file").touch()
        (own / "curious").write_text(CURIOUS.format(own=str(own), beside=str(beside)))
        (own / "curious").chmod(0o755)
        told = scanned(beside, own / "curious")
    said = next(one["stdout"] for one in told["observations"] if one["words"] == ["--help"]).splitlines()
    assert said[:2] == ["helper read beside absent shadow absent", "own dead beside dead"]
    assert said[3] == "user operator" and str(own) in told["isolation"]["readable"]
    assert not {"opt", "srv", "var", "run", "root", "mnt", "sys"} & {*said[2].split()} - {own.parts[1]}


@needs_bwrap
def test_records_in_the_programs_own_directory_are_not_seen_by_it(tmp_path, program):
    told = scanned(tmp_path / "real", program("lister", f"#!/bin/sh\nls {tmp_path}/real {tmp_path}/real/runs\n"))
    seen = next(one["stdout"] for one in told["observations"] if one["words"] == ["--help"])
    assert "lister" in seen and seen.rstrip().endswith("runs:") and "open" not in told["isolation"]["tried"].values()


@needs_bwrap
def test_a_program_of_a_virtual_environment_starts_with_its_own_installation_alone(tmp_path):
    labd = Path(sys.executable).with_name("labd")
    told = scanned(tmp_path, labd)
    assert told["program"]["version"].startswith("labd ")
    assert str(Path(__file__).resolve().parents[2]) not in told["isolation"]["readable"]


def test_a_users_collection_of_programs_is_no_installation(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.isolation.hidden", lambda: [str(tmp_path / "home")])
    home = tmp_path / "home"
    for name in ("lib", "bin", ".local/bin", ".local/lib", "app/bin", "app/lib"):
        (home / name).mkdir(parents=True)
    for name in ("bin/x", ".local/bin/x", "app/bin/x", "x"):
        (home / name).write_text("#!/bin/sh\n")
    assert enclosure.trees(str(home / "bin/x")) == [str(home / "bin")]
    assert enclosure.trees(str(home / ".local/bin/x")) == [str(home / ".local/bin")]
    assert enclosure.trees(str(home / "app/bin/x")) == [str(home / "app")]
    assert enclosure.trees(str(home / "x")) == [str(home / "x")]


@needs_bwrap
def test_only_help_and_mistakes_are_ever_run(tmp_path, program):
    for one in scanned(tmp_path, program("spy", SPY))["observations"]:
        *_, last = one["words"]
        assert last in ("--help", "-h", "--version") or "no-such-" in last, one["words"]


@pytest.mark.parametrize("way", ["missing", "open", "broken"])
def test_where_the_network_can_not_be_denied_nothing_is_scanned_and_the_way_out_is_told(
        tmp_path, program, monkeypatch, way):  # fmt: skip
    marked = program("spy", f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    fake = {"open": '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n',
            "broken": "#!/bin/sh\necho 'bwrap: no namespaces here' >&2; exit 1\n"}  # fmt: skip
    place = tmp_path / "bin"
    place.mkdir()
    if way in fake:
        (place / "bwrap").write_text(fake[way])
        (place / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(place))
    monkeypatch.setattr(scan, "environment", lambda _: {"PATH": f"{place}:/usr/bin:/bin" if way in fake else "/bin"})
    with pytest.raises(Refused, match="can't be denied" if way != "open" else "can be reached") as refused:
        scan.scan(str(marked), tmp_path / "runs")
    assert "bubblewrap" in (refused.value.hint or "")
    assert not (tmp_path / "ran").exists() and not list((tmp_path / "runs").glob("*"))


def record(**more: Any) -> dict[str, Any]:
    return {"schema": "labd-scan/1", "lane": "scan", "isolation": {"network": "denied"}, "observations": [], **more}


@pytest.mark.parametrize("mixed", [
    {"journeys": []}, {"trials": []}, {"checks": []}, {"overall": 1.0}, {"lane": "journeys"},
    {"schema": "labd-trial/1"},
    {"isolation": {"network": "open"}}, {"isolation": {}},
    {"observations": [{"role": "apply", "words": ["x"]}]}, {"observations": [{"role": "page", "state": {}}]},
])  # fmt: skip
def test_a_record_that_is_mixed_with_another_lane_is_refused(mixed):
    grader.findings(record())
    with pytest.raises(grader.NotAScan):
        grader.findings(record(**mixed))


def test_no_observation_is_unknown_never_a_pass():
    assert {one["verdict"] for one in grader.findings(record())["behaviour"].values()} == {"unknown"}


@needs_bwrap
def test_the_lanes_do_not_take_each_others_records(tmp_path, program):
    place = scan.scan(str(program("spy", SPY)), tmp_path / "runs")
    (tmp_path / "measure").mkdir()
    shutil.copy(place, tmp_path / "measure" / "manifest.json")
    with pytest.raises(readiness_grader.NotReadiness, match="labd-scan/1"):
        readiness_grader.grade(tmp_path / "measure")
    assert cli.main(["readiness", "--grade", str(tmp_path / "measure")]) == LabdError("").exit_code


def test_a_program_that_is_not_there_is_named(capsys):
    assert cli.main(["scan", "no-such-program-here"]) == 4
    assert "no-such-program-here" in capsys.readouterr().err


@needs_bwrap
def test_nothing_of_a_scan_is_left_running_or_lying_about(tmp_path, program):
    hang = program("hang", "#!/bin/sh\ncase $1 in --version) echo 1;; *) sleep 300 & sleep 300;; esac\n")
    before = set(os.listdir("/tmp"))
    scan_limit, scan.LIMIT_S = scan.LIMIT_S, 0.5
    try:
        told = scanned(tmp_path, hang)
    finally:
        scan.LIMIT_S = scan_limit
    assert told["findings"]["behaviour"]["help-completion"]["verdict"] == "unknown"
    assert not [name for name in set(os.listdir("/tmp")) - before if name.startswith("labd-scan-")]
