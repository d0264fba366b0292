"""A release against the log beside it: its manifest, which one is current; what is told where there is no log."""

import json

import pytest

from harness import cli, files
from harness.release import check, store


@pytest.fixture
def logged(tmp_path, monkeypatch):
    """Two releases with nothing in them but a manifest, a log that tells of both, and `current` at the second."""
    monkeypatch.setattr(check, "_faces", lambda *_: ())
    monkeypatch.setattr(check, "_numbers", lambda *_: ())
    monkeypatch.setattr(check, "missing", lambda _: ())
    monkeypatch.setattr(check.projection, "project", lambda *_: {})
    for name in ("first", "second"):
        about = dict.fromkeys(check.KEYS) | {"name": name, "published": "2026-11-30", "files": {}, "hashes": {}}
        (tmp_path / name).mkdir()
        files.write_json(tmp_path / name / "release.json", about)
        digest = files.digest((tmp_path / name / "release.json").read_bytes())
        with (tmp_path / "log.jsonl").open("a") as log:
            log.write(json.dumps({"event": "published", "name": name, "sha256": digest}) + '\n{"event": "fai\n')
    (tmp_path / "current").symlink_to("second")
    return tmp_path


def _manifest(change):
    return lambda home: change(home / "first" / "release.json")


@pytest.mark.parametrize(("touch", "told"), [
    (_manifest(lambda path: path.write_text(path.read_text() + " ")), ["not the one that the log", "not in the form"]),
    (_manifest(lambda path: files.write_json(path, files.read_json(path) | {"a": 1})), ["not the one", "keys", ": a"]),
    (_manifest(lambda path: files.write_json(path, files.read_json(path) | {"painter": "x"})), ["not the one that"]),
    (lambda home: (home / "first" / "runs").mkdir(), ["runs/: it was not published"]),
    (lambda home: (home / "log.jsonl").write_text(""), ["the log of releases knows no release of this name"]),
    (lambda home: (home / "current").unlink(), ["../current: it leads to nothing; made current last was second"]),
    (lambda home: store._point(home, "first"), ["../current: it leads to first; made current last was second"]),
])  # fmt: skip
def test_a_touched_manifest_an_empty_directory_and_another_current_are_told(logged, touch, told, capsys):
    assert cli.main(["verify", str(logged / "first")]) == 0 and "there is no log" not in capsys.readouterr().err
    touch(logged)
    assert cli.main(["verify", str(logged / "first")]) == 1
    out = capsys.readouterr().out
    assert all(one in out for one in told)


def test_without_a_log_that_is_said_and_what_shows_in_the_manifest_is_still_told(logged, capsys):
    (logged / "log.jsonl").unlink()
    assert cli.main(["verify", str(logged / "first")]) == 0
    assert "there is no log.jsonl beside it" in capsys.readouterr().err
    assert cli.main(["verify", str(logged / "first"), "--json", "-q"]) == 0
    assert "there is no log.jsonl beside it" in capsys.readouterr().out
    path = logged / "first" / "release.json"
    path.write_text(path.read_text() + " ")
    assert cli.main(["verify", str(logged / "first")]) == 1
    assert "not in the form in which it was written" in capsys.readouterr().out
