"""Releases from real runs: published, refreshed with a failure, verified, touched, verified again; secrets out."""

import contextlib
import copy
import json
import resource
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from harness import agents, cli, files, grading, run
from harness.release import card, check, faces, redaction, requirements, store
from harness.report.rows import read_all

SECRET = "hunter2-of-the-lab"
NOTE = b'"note": "see https://anna:%s@shop.example/repo", "answer"' % SECRET.encode()

REVIEW = {"schema": "labd-review/1", "findings": "2026-11-30: all logs read", "questions": 5}


def review_file(path, readers=5, right=5):
    lines = [f"{key} = {json.dumps(value)}" for key, value in REVIEW.items()]
    for number in range(readers):
        lines.append(
            f'[[reader]]\nwho = "{"ABCDEFG"[number]}"\nrole = "engineer"\ndate = "2026-11-30"\nright = {right}'
        )
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of one job of git (three scenarios, three trials each), its controls before it, and readiness."""
    place = tmp_path_factory.mktemp("publish")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABD_EVAL_CACHE", str(place / "cache"))
        out = str(place / "runs")
        with (place / "controls.json").open("w") as told, contextlib.redirect_stdout(told):
            assert cli.main(["journey", "controls", "git", "--job", "publish", "-o", out, "-q", "--json"]) == 0
        words = ["--agent", "loop", "--scripted-model", "reference", "--model-seed", "5", "-o", out, "-q"]
        with (place / "shown.txt").open("w") as told, contextlib.redirect_stdout(told):
            assert cli.main(["journey", "run", "git", "--job", "publish", *words]) == 0
        assert cli.main(["readiness", "git", "-o", out, "-q"]) == 0
    (run,) = (place / "runs").glob("*-loop-*")
    (ready,) = (place / "runs").glob("readiness-git-*")
    review_file(place / "review.toml")
    return place, run, ready


@pytest.fixture
def one_job(monkeypatch):
    """git as if it had the one job that was run."""
    whole = store.catalog
    monkeypatch.setattr(store, "catalog", lambda name: {"publish": whole(name)["publish"]})


def words(made, home, name, *more, review=True):
    place, run, ready = made
    told = ["publish", str(run), "--readiness", str(ready), "--name", name, "--to", str(home), "-q", *more]
    return [*told, "--review", str(place / "review.toml")] if review else told


@pytest.fixture(scope="module")
def released(made, tmp_path_factory):
    """A release that is there; tests copy it before they touch it."""
    home = tmp_path_factory.mktemp("released")
    whole = store.catalog
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "catalog", lambda name: {"publish": whole(name)["publish"]})
        assert cli.main(words(made, home / "rel", "first")) == 0
    return home / "rel"


@pytest.fixture
def copied(released, tmp_path):
    """A copy of the releases that may be touched."""
    shutil.copytree(released, tmp_path / "rel", symlinks=True)
    return tmp_path / "rel"


def said(capsys):
    both = capsys.readouterr()
    return both.out + both.err


# -- the journeys that are published -------------------------------------------------------------------------------


@pytest.mark.slow
def test_controls_then_three_trials_each_with_its_limits_and_its_own_n(made):
    place, directory, _ = made
    table = json.loads((place / "controls.json").read_text())
    assert table["ok"]
    for row in table["controls"].values():
        assert {name: cell["verdict"] for name, cell in row.items()} == {
            "reference": "pass", **dict.fromkeys(agents.JOURNEY[1:], "fail")}  # fmt: skip
    assert (place / "shown.txt").read_text().count("3/3") >= 3
    manifest = run.load(directory)
    assert list(manifest["journeys"]["controls"]) == ["publish"]
    rows = read_all(directory, manifest)
    assert len(rows) == 9 and {row["agent"] for row in rows} == {"loop"}, "controls are in no agent's number"
    trials = [files.read_json(directory / row["bundle"] / "trial.json") for row in rows]
    assert (
        len({trial["values"]["nonce"] for trial in trials})
        == len({trial["values"]["remotes"] for trial in trials})
        == 9
    )
    for trial in trials:
        limits = trial["limits"]
        assert (limits["turns"], limits["tokens"], limits["time_s"]) == (40, 500_000, 900)
        assert (limits["temperature"], limits["seed"], limits["sampling"]) == (0.6, 5, "as asked")
        assert trial["package"]["version"].startswith("git version") and len(trial["build"]) == 64
        assert {"harness", "graders"} <= set(trial["hashes"]) and "python" in trial["versions"]


# -- publishing -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_release_says_what_was_measured_and_bears_itself_out(released, capsys):
    place = released / "current"
    data = files.read_json(place / "data.json")
    (subject,) = data["subjects"]
    assert [one["result"] for one in subject["jobs"][0]["scenarios"]] == ["3/3"] * 3
    assert subject["readiness"]["overall"] == 1.0 and subject["readiness"]["rubric"]["version"] == "4.0.0"
    assert data["labels"] and data["spending"] == {"usd": None, "cap_usd": 20.0, "told": 0, "of": 9}
    assert (place / "report.json").read_bytes() == (place / "data.json").read_bytes()
    for name in ("report.md", "report.html", "card.svg"):
        assert "scripted model" in (place / name).read_text() and "3/3" in (place / name).read_text()
    assert "not told, under a cap of 20" in (place / "report.md").read_text(), "what nobody tells is no zero"
    assert cli.main(["verify", str(place)]) == 0
    assert "every number computed once more" in capsys.readouterr().out


@pytest.mark.slow
def test_everything_that_is_missing_is_listed_at_once_and_nothing_is_written(made, tmp_path, capsys):
    _, run, _ = made
    home = tmp_path / "rel"
    assert cli.main(["publish", str(run), "--name", "try", "--to", str(home), "-q", "--json"]) == 3
    found = {one["what"]: one["mend"] for one in json.loads(capsys.readouterr().out)["missing"]}
    assert not home.exists()
    assert found["git: its readiness was not measured"] == "labd-eval readiness git"
    assert "J-BACKOUT-NORMAL: not measured" in found and "J-JOIN-RECOVERY: not measured" in found
    assert not any("J-PUBLISH" in what for what in found) and "there is no review" in found
    assert cli.main(["publish", str(run), "--name", "try", "--to", str(home), "-q"]) == 3
    told = capsys.readouterr().err
    assert all(what in told and mend in told for what, mend in found.items())


@pytest.mark.slow
def test_a_refresh_that_fails_leaves_the_last_release_its_date_and_a_line(made, copied, one_job, capsys):
    before = files.read_json(copied / "current" / "release.json")
    assert cli.main(words(made, copied, "second", review=False)) == 3
    assert store.current(copied) == "first" and not (copied / "second").exists()
    assert files.read_json(copied / "current" / "release.json") == before
    line = json.loads((copied / "log.jsonl").read_text().splitlines()[-1])
    assert (line["event"], line["name"], line["current"]) == ("failed", "second", "first")
    assert line["missing"] == ["there is no review"]
    assert cli.main(words(made, copied, "second")) == 0
    assert store.current(copied) == "second"
    assert files.read_json(copied / "second" / "data.json")["previous"] == "first"
    capsys.readouterr()
    assert cli.main(words(made, copied, "first")) == 3
    assert "what is published stays as it is" in said(capsys)
    assert cli.main(["verify", str(copied / "first")]) == cli.main(["verify", str(copied / "second")]) == 0


@pytest.mark.slow
def test_a_disk_that_takes_no_more_leaves_the_last_release(made, copied, one_job, capsys):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        assert cli.main(words(made, copied, "second")) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "nothing was published, current is as it was" in said(capsys)
    assert store.current(copied) == "first" and not list(copied.glob(f"{store.STAGING}*"))


@pytest.mark.slow
def test_killed_while_it_gathers_it_leaves_the_last_release_and_the_next_one_clears_up(made, copied, one_job):
    command = [sys.executable, "-m", "harness.cli", *words(made, copied, "second")]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL) as killed:
        deadline = time.monotonic() + 60
        while not list(copied.glob(f"{store.STAGING}*/runs/*/trials/*/*")) and time.monotonic() < deadline:
            time.sleep(0.02)
        killed.send_signal(signal.SIGKILL)
    assert killed.returncode == -signal.SIGKILL
    assert list(copied.glob(f"{store.STAGING}*")) and store.current(copied) == "first"
    assert check.problems(copied / "first") == []
    assert cli.main(words(made, copied, "second")) == 0
    assert not list(copied.glob(f"{store.STAGING}*")) and store.current(copied) == "second"


@pytest.mark.parametrize("name", ["current", "../x", "UP", ".hidden", "log.jsonl", "", "a/b"])
def test_a_name_that_can_be_none_is_refused(tmp_path, name):
    with pytest.raises(store.Usage):
        store.publish(name, [], [], None, tmp_path / "rel")
    assert not (tmp_path / "rel").exists()


# -- verifying --------------------------------------------------------------------------------------------------------


def _first(place, pattern):
    return sorted(place.glob(pattern))[0]


def _number(path):
    path.write_text(path.read_text().replace('"passed": 3', '"passed": 2', 1))


def _verdict(path):
    path.write_text(path.read_text().replace('"verdict": "pass"', '"verdict": "fail"', 1))


@pytest.mark.slow
@pytest.mark.parametrize(("pattern", "touch", "told"), [
    ("data.json", _number, "passed is 2; from what is stored it is 3"),
    ("runs/*/trials/*/grades/journey.json", _verdict, "graded again it is pass"),
    ("runs/*/trials/*/repo.after.json", lambda path: path.write_text("{}"), "graded again it is harness_error"),
    ("readiness/*/checks/help.json", lambda path: path.unlink(), "it is missing"),
    ("readiness/*/result.json", lambda path: path.write_text("{}"), "comes to something else"),
    ("card.png", lambda path: path.write_bytes(path.read_bytes() + b"x"), "it has changed"),
    ("report.html", lambda path: path.write_text("<p>10/3</p>"), "rendered again, it is another one"),
    ("release.json", lambda path: path.write_text(path.read_text() + " "), "not the one that the log"),
    ("catalog.json", lambda path: path.write_text("[]"), "it has changed"),
    ("runs", lambda path: (path / "more.txt").write_text("x"), "it was not published"),
    ("readiness", lambda path: (path / "more").mkdir(), "more/: it was not published"),
])  # fmt: skip
def test_what_was_touched_is_named(copied, pattern, touch, told, capsys):
    path = _first(copied / "first", pattern)
    touch(path)
    assert cli.main(["verify", str(copied / "current")]) == 1
    out = capsys.readouterr().out
    assert path.relative_to(copied / "first").as_posix() in out and told in out


@pytest.mark.slow
def test_a_number_that_was_changed_with_all_its_hashes_is_still_found(copied):
    place = copied / "first"
    data = files.read_json(place / "data.json")
    data["subjects"][0]["readiness"]["overall"] = 0.5
    faces.write(place, data)
    manifest = files.read_json(place / "release.json")
    files.write_json(place / "release.json", manifest | {"files": check.hashes(place)})
    (copied / "log.jsonl").unlink()
    found = [str(one) for one in check.problems(place)]
    assert any("subjects[0].readiness.overall is 0.5; from what is stored it is 1.0" in one for one in found)
    assert any(one.startswith("card.svg: rendered again") for one in found)


def test_what_is_no_release_is_said_to_be_none(tmp_path, capsys):
    assert cli.main(["verify", str(tmp_path)]) == 4
    assert "is no release" in said(capsys)
    (tmp_path / "release.json").write_text("[]")
    assert cli.main(["verify", str(tmp_path)]) == 1


# -- secrets ----------------------------------------------------------------------------------------------------------


def plant(run, target, name, change):
    """A copy of the run in which one file of one trial holds something more, sealed as the harness would have."""
    shutil.copytree(run, target)
    trial = _first(target, "trials/J-PUBLISH-NORMAL*")
    path = trial / name
    path.write_bytes(change(path.read_bytes() if path.exists() else b""))
    record = files.read_json(trial / "trial.json")
    record["files"][name] = files.digest(path.read_bytes())
    files.write_json(trial / "trial.json", record)
    line = {"event": "sealed", "id": trial.name, "sha256": files.digest((trial / "trial.json").read_bytes())}
    with (target / "log.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    assert grading.judge(trial).verdict == "pass"
    return trial


@pytest.mark.slow
@pytest.mark.parametrize(("name", "change"), [
    ("transcript.json", lambda raw: raw.replace(b'"answer"', NOTE, 1)),
    ("answer.txt", lambda raw: raw + f"\nI used --password {SECRET}\n".encode()),
    ("stderr.txt", lambda raw: raw + f"AMT_PASSWORD={SECRET}\n".encode()),
])  # fmt: skip
def test_secrets_are_taken_out_and_the_copy_comes_to_the_same(made, tmp_path, one_job, name, change):
    place, run, ready = made
    trial = plant(run, tmp_path / run.name, name, change)
    assert SECRET.encode() in (trial / name).read_bytes()
    release = store.publish("x", [tmp_path / run.name], [ready], place / "review.toml", tmp_path / "rel")
    held = [path for path in release.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert held == []
    (copy_,) = release.glob(f"runs/*/trials/{trial.name}")
    record = files.read_json(copy_ / "trial.json")
    assert record["redacted"] == [name] and b"***" in (copy_ / name).read_bytes()
    assert record["original"] == files.digest((trial / "trial.json").read_bytes())
    assert grading.damage(copy_) == "" and grading.judge(copy_).verdict == "pass"
    assert check.problems(release) == []


@pytest.mark.slow
def test_a_secret_that_the_verdict_needs_is_refused_with_the_trials_name(made, tmp_path, one_job, capsys, monkeypatch):
    place, run, ready = made
    clean = redaction.text
    spoilt = b'{"worktree": {}}'
    monkeypatch.setattr(redaction, "text", lambda raw, name: spoilt if name == "repo.after.json" else clean(raw, name))
    told = ["publish", str(run), "--readiness", str(ready), "--review", str(place / "review.toml")]
    assert cli.main([*told, "--name", "x", "--to", str(tmp_path / "rel"), "-q"]) == 3
    text = said(capsys)
    assert "J-PUBLISH-NORMAL.cold.loop.1: without its secrets (repo.after.json) it comes to something else" in text
    assert "9 things are missing" in text, "a trial each, and nothing that follows from them"
    assert not (tmp_path / "rel").exists()


@pytest.mark.parametrize(("name", "raw", "wanted"), [
    ("argv.jsonl", b'{"argv": ["labd", "--token", "abc"]}\n', b'{"argv": ["labd", "--token", "***"]}\n'),
    ("a.jsonl", b'{"api_token": "abc", "tokens": 500000}\n', b'{"api_token": "***", "tokens": 500000}\n'),
    ("a.jsonl", b'{"arguments": "{\\"password\\": \\"abc\\"}"}\n', b'{"arguments": "{\\"password\\": \\"***\\"}"}\n'),
    ("a.jsonl", b'{"torn": "https://u:pw@h', b'{"torn": "https://u:***@h'),
    ("x.txt", b"login with https://u:pw@h/x", b"login with https://u:***@h/x"),
    ("x.tar.gz", b"\x1f\x8b\xff\x00", None),
    ("journal/rx/0.raw", b"token=abc", None),
    ("journal/rx/0.raw", b"login: \xff", b"login: \xff"),
])  # fmt: skip
def test_texts_are_redacted_as_what_they_are(name, raw, wanted):
    assert redaction.text(raw, name) == wanted


def test_what_holds_no_secret_stays_byte_by_byte():
    raw = b'{"b": 1,   "a": [1.0, "x"]}\n\n'
    assert redaction.text(raw, "x.jsonl") is raw and redaction.text(raw, "x.json") is raw


def test_bytes_in_base64_are_read_too():
    import base64

    raw = base64.b64encode(b"\xff https://u:pw@h").decode()
    assert b"***" in base64.b64decode(redaction.value({"stdout_b64": raw})["stdout_b64"])


# -- what is missing --------------------------------------------------------------------------------------------------


@pytest.fixture
def data(released):
    return copy.deepcopy(files.read_json(released / "first" / "data.json"))


def _set(path, value):
    def change(data):
        *most, last = path
        for key in most:
            data = data[key]
        data[last] = value

    return change


JOB, RUN, READY = ("subjects", 0, "jobs", 0), ("runs", 0), ("subjects", 0, "readiness")
CELL = (*JOB, "scenarios", 0, "cells", 0)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "value", "told"), [
    (READY, None, "its readiness was not measured"),
    ((*READY, "missing"), ["preview"], "readiness without evidence: preview"),
    ((*READY, "build"), "of another", "readiness was measured of another build"),
    (("subjects", 0, "measurements"), ["a", "b"], "2 measurements of its readiness"),
    (("subjects", 0, "jobs"), [], "it has no journeys"),
    ((*JOB, "reviewed"), "", "its pack is not reviewed"),
    ((*JOB, "stale"), ["J-PUBLISH-NORMAL"], "the pack is another one than was run"),
    ((*JOB, "controls"), [], "its controls were not played before it was run"),
    ((*JOB, "controls", 0, "same_build"), False, "controls were played on another build"),
    ((*JOB, "controls", 0, "ok"), False, "controls that do not hold"),
    ((*JOB, "controls", 0, "cells", "J-PUBLISH-NORMAL", "noop"), "pass", "J-PUBLISH-NORMAL noop: pass"),
    ((*CELL, "valid"), 2, "2 valid trials of 3 by loop"),
    ((*CELL, "planned"), 4, "1 trials by loop that nothing took the place of"),
    ((*JOB, "scenarios", 0, "cells"), [], "J-PUBLISH-NORMAL: not measured"),
    ((*RUN, "spent", "cap_usd"), None, "no cap on what it may cost"),
    ((*RUN, "spent", "usd"), 20.5, "it cost 20.5 of 20 US dollars"),
    ((*RUN, "scripted"), False, "of 9 trials nobody tells what they cost"),
    ((*RUN, "limits", 0, "turns"), None, "a trial without a limit"),
    ((*RUN, "identity", "hashes", "harness"), "", "it does not say what ran it (harness)"),
    ((*RUN, "identity", "builds"), ["a", "b"], "2 builds of the program in one run"),
    ((*RUN, "identity", "without"), 1, "1 trials do not say which program they ran"),
    ((*RUN, "cleanup", "left"), ["J-X"], "processes that could not be ended: J-X"),
    ((*RUN, "cleanup", "looked"), 8, "1 trials without evidence that nothing was left running"),
    ((*RUN, "watched", "finished"), False, "its log does not tell of it to its end"),
    ((*RUN, "journeys"), False, "no run of journeys"),
    (("runs",), [], "there is no run"),
    (("review",), None, "there is no review"),
    (("review", "schema"), "x", "review: of schema 'x'"),
    (("review", "findings"), " ", "the findings are not reviewed"),
    (("review", "questions"), 0, "how many questions"),
    (("review", "reader", 0, "right"), 3, "4 of 5 readers got 80% right"),
    (("review", "reader", 0, "right"), 6, "4 of 5 readers got 80% right"),
    (("review", "reader", 0, "who"), "B", "4 of 5 readers got 80% right"),
    (("review", "reader", 0, "role"), "", "4 of 5 readers got 80% right"),
])  # fmt: skip
def test_each_thing_that_is_missing_is_told_with_what_mends_it(data, path, value, told):
    assert requirements.missing(data) == []
    _set(path, value)(data)
    found = requirements.missing(data)
    assert any(told in one.what for one in found) and all(one.mend for one in found)


# -- faces ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_was_not_measured_is_said_so_in_every_face_and_is_no_zero(data):
    for scenario in data["subjects"][0]["jobs"][0]["scenarios"]:
        scenario["cells"], scenario["result"] = [], "Not measured"
    data["subjects"][0]["readiness"] = None
    for face in (faces.markdown, faces.html, card.svg):
        text = face(data).decode()
        assert "ot measured" in text and "0/3" not in text and "0 %" not in text


@pytest.mark.slow
def test_the_card_is_a_picture_of_its_size_that_is_told_in_words_too(data):
    data["name"] = data["subjects"][0]["jobs"][0]["title"] = "<x> & " * 40
    root = ET.fromstring(card.svg(data))
    names = {child.tag.rpartition("}")[2]: child.text for child in root}
    assert names["title"].startswith("Release <x>") and "git publish normal: 3/3" in names["desc"]
    assert (root.get("width"), root.get("height"), root.get("role")) == ("1200", "630", "img")
    assert "href" not in card.svg(data).decode() and "url(" not in card.svg(data).decode()
    picture = card.png(data)
    assert picture.startswith(b"\x89PNG") and picture == card.png(data)
    assert (int.from_bytes(picture[16:20]), int.from_bytes(picture[20:24])) == (1200, 630)


@pytest.mark.slow
def test_no_text_gets_out_of_its_place(data):
    data["name"] = "<script>alert(1)</script>"
    data["subjects"][0]["readiness"]["checks"][0]["reason"] = "a | b <img src=x> \x1b[31m"
    page, text = faces.html(data).decode(), faces.markdown(data).decode()
    assert "<script" not in page and "<img" not in page and "\x1b" not in page + text
    assert r"a \| b &lt;img" in text
