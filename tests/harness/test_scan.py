"""The scan lane: nothing gets out, nothing of the user's gets in, only help and errors are looked at, and its record is
never one of another lane. Real programs behind real bubblewrap."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from graders import readiness as readiness_grader
from graders import scan as grader
from harness import cli, scan
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
    assert len(tried) == 4 and "open" not in tried.values()


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
