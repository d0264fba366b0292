"""Play all cases with labd, the peers and the bad loggers, and write the table: `python -m tests.torture --write`."""

from __future__ import annotations

import argparse
import datetime
import platform
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.conftest import a_bench
from tests.torture.cases import CASES
from tests.torture.install import install
from tests.torture.labd_subject import Labd
from tests.torture.peers import FINDERS
from tests.torture.stage import Case, Stage
from tests.torture.subject import NotThere, Subject, Wrong, alive
from tests.torture.table import Result, Run, document

DOC = Path(__file__).parents[2] / "docs" / "torture.md"


def main() -> int:
    """1 when labd fails a case, or a case itself is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument(
        "--install", action="store_true", help="first install the peers that are missing, where allowed"
    )
    parser.add_argument("--write", action="store_true", help=f"write {DOC.name}")
    parser.add_argument("--quick", action="store_true", help="the sizes of the tests instead of the published ones")
    parser.add_argument("--subject", action="append", choices=["labd", *FINDERS], help="only these")
    parser.add_argument("--case", action="append", help="only these, by number")
    asked = parser.parse_args()
    if asked.install:
        install()
    run = Run(date=f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}", machine=_machine())
    cases = [case for case in CASES if asked.case is None or case.number in asked.case]
    with tempfile.TemporaryDirectory() as folder, a_bench(Path(folder)) as bench:
        bench.lab.touch()
        for name in ["labd", *FINDERS]:
            if asked.subject and name not in asked.subject:
                continue
            try:
                subject = Labd(bench) if name == "labd" else FINDERS[name]()
            except NotThere as error:
                run.missing[name] = str(error)
                print(f"-- {name}: {error}", flush=True)
                continue
            run.results[name] = play_all(subject, cases, Path(folder) / "stage" / name, full=not asked.quick)
            run.versions[name] = subject.version  # a driver tells it when it has been started
    if asked.write:
        DOC.parent.mkdir(exist_ok=True)
        DOC.write_text(document(run))
        print(f"wrote {DOC}")
    broken = [r for results in run.results.values() for r in results.values() if r.verdict == "broken"]
    failed = [r for r in run.results.get("labd", {}).values() if r.verdict == "fail"]
    return 1 if broken or failed else 0


def play_all(subject: Subject, cases: list[Case], folder: Path, *, full: bool) -> dict[str, Result]:
    """Every case, one after another; the subject's processes are gone afterwards."""
    results, pids = {}, set()
    print(f"== {subject.name} {subject.version}", flush=True)
    try:
        for case in cases:
            began = time.monotonic()
            stage = Stage(subject, folder / case.number, full=full)
            try:
                result = play(case, stage)
                pids |= set(subject.pids())
            finally:
                stage.close()
            results[case.number] = result
            print(f"{case.number:>4} {result.verdict:<6} {time.monotonic() - began:5.1f} s  {result.why}", flush=True)
    finally:
        subject.quit()
    left = [pid for pid in pids if alive(pid)]
    assert not left, f"{subject.name} left processes behind: {left}"
    return results


def play(case: Case, stage: Stage) -> Result:
    """The verdict on one case."""
    try:
        return Result("pass", case.check(stage) or "")
    except Wrong as error:
        return Result("fail", " ".join(str(error).split())[:200])
    except NotThere as error:
        return Result("n/a", str(error))
    except Exception:
        traceback.print_exc()
        return Result("broken", "the case itself failed")


def _machine() -> str:
    """What matters for the table: the system's kind, since consoles differ by it."""
    return f"{platform.system()}, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
