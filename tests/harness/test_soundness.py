"""The exam checks itself before it is run: also what says how a subject's answers look."""

from pathlib import Path

import pytest

from harness import scenario, soundness, subject


def test_a_wrong_file_of_signs_is_named_where_the_program_is_not_even_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chosen = scenario.load_all("git")[:1]
    (tmp_path / "signs.toml").write_text("[hints]\n[[environment]]\nexit = 7\n")
    moved = subject.load("git")
    monkeypatch.setattr(soundness.subjects, "load", lambda name: _at(moved, tmp_path))
    monkeypatch.setenv("PATH", "")
    assert soundness.live(chosen) == []
    told = soundness.live(chosen, whole=True)
    assert [line.removeprefix(str(tmp_path / "signs.toml")) for line in told] == [
        ": hints: unknown key; did you mean hint?",
        ": environment[0].exit: expected an array, found 7",
    ]


def _at(moved: subject.Subject, place: Path) -> subject.Subject:
    from dataclasses import replace

    return replace(moved, path=place / subject.FILE)
