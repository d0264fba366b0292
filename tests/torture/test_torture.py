"""Every torture case against labd itself, through its daemon; and against the bad loggers that must fail it.

The published table, with peers and larger sizes, is `make bench-peers` (docs/torture.md). Cases that mostly wait are
played ahead, a few at a time, so that the whole takes less than a minute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from pathlib import Path

import pytest

from tests.conftest import BenchInAFolder, a_bench
from tests.torture.cases import ABSENT, CASES
from tests.torture.driven import bad
from tests.torture.labd_subject import Labd
from tests.torture.stage import Case, Stage
from tests.torture.subject import Subject, Wrong

#: Those that measure come last, when nothing else is being played any more.
ORDERED = sorted(CASES, key=lambda case: case.measures)
BAD = [(case, name) for case in ORDERED for name in case.bad]


class Players:
    """Plays a case with a subject, ahead of its turn where that is harmless."""

    def __init__(self, bench: BenchInAFolder, folder: Path) -> None:
        self._bench = bench
        self._folder = folder
        self._kept: dict[str, Subject] = {}
        self._ahead: dict[tuple[str, str], Future[str | None]] = {}
        self._pool = ThreadPoolExecutor(4)

    def begin(self, case: Case, name: str) -> None:
        """Play it now, in another thread and with a subject of its own."""
        if case.waits:
            self._ahead[case.number, name] = self._pool.submit(self._alone, case, name)

    def play(self, case: Case, name: str) -> str | None:
        """What the case's check returns or raises."""
        begun = self._ahead.get((case.number, name))
        if begun is not None:
            return begun.result(120)
        if case.measures:
            wait_for(self._ahead.values(), timeout=120)
        if case.measures and name != "labd":  # what it freed after an earlier case would hide by how much it grows
            return self._alone(case, name)
        if name not in self._kept:
            self._kept[name] = self._subject(name)
        return self._on_stage(case, self._kept[name])

    def close(self) -> None:
        """End all that was started."""
        self._pool.shutdown(cancel_futures=True)
        for subject in self._kept.values():
            subject.quit()

    def _subject(self, name: str) -> Subject:
        return Labd(self._bench) if name == "labd" else bad(name)

    def _alone(self, case: Case, name: str) -> str | None:
        subject = self._subject(name)
        try:
            return self._on_stage(case, subject)
        finally:
            if name != "labd":
                subject.quit()

    def _on_stage(self, case: Case, subject: Subject) -> str | None:
        stage = Stage(subject, self._folder / f"{case.number}-{subject.name}")
        try:
            return case.check(stage)
        finally:
            stage.close()


@pytest.fixture(scope="module")
def players(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Players]:
    """One daemon for all cases; each has a target of its own."""
    with a_bench(tmp_path_factory.mktemp("bench")) as bench:
        bench.lab.touch()
        made = Players(bench, tmp_path_factory.mktemp("stage"))
        try:
            for item in request.session.items:
                called = getattr(item, "callspec", None)
                if called is not None and "players" in getattr(item, "fixturenames", ()):
                    made.begin(called.params["case"], called.params.get("name", "labd"))
            yield made
        finally:
            made.close()


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.number} {case.title}") for case in ORDERED])
def test_labd_does_the_right_thing(case: Case, players: Players):
    players.play(case, "labd")


@pytest.mark.parametrize(("case", "name"), [pytest.param(*each, id=f"{each[0].number} {each[1]}") for each in BAD])
def test_a_bad_logger_fails_for_the_reason_that_the_case_is_about(case: Case, name: str, players: Players):
    with pytest.raises(Wrong) as wrong:
        players.play(case, name)
    assert re.search(case.bad[name], str(wrong.value)), f"failed for another reason: {wrong.value}"


def test_every_number_is_there_once_and_every_absence_has_its_reason():
    numbers = [case.number for case in CASES] + [absent.number for absent in ABSENT]
    assert len(numbers) == len(set(numbers))
    tabled = {int(number) for number in numbers if number.isdigit() and int(number) <= 36}
    assert tabled == set(range(1, 37)) - {10, 13, 17, 23, 25, 33}, "the list has no 10, 13, 17, 23, 25, 33"
    assert all(absent.why for absent in ABSENT)


def test_every_case_is_failed_by_somebody_who_does_it_wrong():
    #: What the bad loggers do about 2b is right; labgrid fails it, see docs/torture.md.
    assert [case.number for case in CASES if not case.bad] == ["2b"]
