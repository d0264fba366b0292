"""The pytest plugin: fixtures for a labd bench, and what the consoles said during a test that failed, in its report.

Loaded by pytest wherever labd is installed (entry point `pytest11`), so it must be nobody's burden: it imports nothing
of labd until a test asks for one of its fixtures, skips nothing, changes no setting, and every name begins with
`labd_` or `--labd-`.

Fixtures: `labd_lab` (a `Lab`, for the session), `labd_target` (the one of `--labd-target`, else the sole one), and
`labd_console` (that target's console, being captured).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from labd.lab_client import Lab, Target
    from labd.lab_console import Console

#: Lines of one interface that a report shows, and bytes that are looked through for them.
REPORT_LINES = 200
REPORT_BYTES = 1 << 20

_KEY = pytest.StashKey["_Bench"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("labd", "labd, a hardware lab bench")
    group.addoption("--labd-lab", metavar="PATH", help="the lab file (else $LABD_LAB, else labd's default)")
    group.addoption("--labd-target", metavar="NAME", help="the target of labd_target and labd_console")


class _Bench:
    """The session's lab and how far each journal had grown when the running test began."""

    def __init__(self, lab: Lab, target: str | None) -> None:
        self.lab = lab
        self.target_name = target
        self.marks: dict[Console, int] = {}
        self.began = 0.0
        self.began_ns = 0

    def consoles(self) -> list[Console]:
        """Every interface that any test asked for so far."""
        return [console for name in self.lab.used for console in self.lab.used[name].consoles]

    def test_begins(self) -> None:
        """Note where each journal is."""
        import time

        self.began, self.began_ns = time.monotonic(), time.time_ns()
        self.marks = {}
        for console in self.consoles():
            self.marks[console] = console.end

    def sections(self, uses: bool) -> Iterator[tuple[str, str]]:
        """(title, text) of each interface: of all if the test `uses` a fixture, else of those that were touched."""
        for console in self.consoles():
            if uses or console.touched >= self.began:
                yield f"labd {console.name}", _slice(console, self.marks.get(console, console.born), self.began_ns)


def _slice(console: Console, start: int, since_ns: int) -> str:
    """What the console said from the offset `start` on, and what was done to it since, as `serial log` shows it."""
    from labd.errors import LabdError
    from labd.logtext import as_text

    try:
        reader = console.reader()
        end = reader.end_offset
        first = reader.seq_at(max(start, end - REPORT_BYTES))
        first = max(first, reader.last_seq - REPORT_LINES + 1)
        offset = reader.locate(first)[1]
        items: list[Any] = [*reader.lines(first)] if end > start else []
        items += [event for event in reader.events(max(start, min(offset, end))) if event.wall_ns >= since_ns]
    except (LabdError, OSError) as error:
        return f"the journal can't be read: {error}"
    items.sort(key=lambda item: item.mono_ns)
    lines = [as_text(item) for item in items]
    if offset > start:
        lines.insert(0, f"… {offset - start} bytes before: labd serial log {console.target} -i {console.interface} "
                     f"--from {reader.seq_at(start)} --to {first}")  # fmt: skip
    return "\n".join(lines) or "nothing was said, nothing was sent"


@pytest.fixture(scope="session")
def labd_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """The lab of `--labd-lab`, else `$LABD_LAB`, else labd's default. Its daemon is started when a test needs it."""
    from labd.lab_client import Lab

    with Lab(request.config.getoption("--labd-lab")) as lab:
        request.config.stash[_KEY] = bench = _Bench(lab, request.config.getoption("--labd-target"))
        bench.test_begins()
        yield lab
        del request.config.stash[_KEY]


@pytest.fixture
def labd_target(request: pytest.FixtureRequest, labd_lab: Lab) -> Target:
    """The target of `--labd-target`, else the lab's sole one."""
    name = request.config.getoption("--labd-target")
    return labd_lab.target if name is None else labd_lab[name]


@pytest.fixture
def labd_console(labd_target: Target) -> Console:
    """The target's console, being captured. The capture goes on after the test."""
    console = labd_target.console
    console.watch()
    return console


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test's slice begins before its fixtures do."""
    bench = item.config.stash.get(_KEY, None)
    if bench is not None:
        bench.test_begins()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the slices into the report of a failure."""
    report = yield
    bench = item.config.stash.get(_KEY, None)
    if report.failed and bench is not None:
        uses = any(name.startswith("labd_") for name in getattr(item, "fixturenames", ()))
        report.sections.extend(bench.sections(uses))
    return report
