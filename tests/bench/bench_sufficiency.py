"""What judging a long log costs: 50 MB in at most 5 s and 200 MB, beside a bare json.loads of each of its lines.

Each is a process of its own, so that what it holds at most (the kernel's count) is its own. The logs are made to be
hard: every second call is one of the thing's, a tool or a program, answered with 60 lines under a file's heading; after
it the agent reads what was returned, or what was not, searches, edits. One log is a message of thousands of calls with
thousands of bookkeeping calls behind it.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from itertools import chain
from pathlib import Path

TARGET_S, TARGET_MB, SIZE_MB = 5.0, 200, 50

_BARE = "import json, sys\nfor line in open(sys.argv[1], 'rb'): json.loads(line)"
_OURS = "from harness.cli import main\nassert main() == 0"
#: What a process held at most: getrusage would count what it was before it became this program.
_HELD = """
import time
print(time.process_time(), *[line.split()[1] for line in open("/proc/self/status") if "VmHWM" in line], file=sys.stderr)
"""


def make(place: Path, form: str, size: int, wide: bool) -> None:
    """A log of that many bytes. wide: with characters outside the first plane, which cost four bytes each."""
    from harness.sufficiency_made import Turn, Use, written

    chance = random.Random(7)
    words = [f"value_{n}" for n in range(400)]
    sign = "🚀 " if wide else ""

    def code(lines: int) -> str:
        return "\n".join(f"{n:6}\t    {sign}{chance.choice(words)} = call({chance.choice(words)}, {n})"
                         for n in range(1, lines))  # fmt: skip

    def section(name: str) -> str:
        return f"**`{name}`**\n```python\n{code(60)}\n```\nsee also src/{chance.choice(words)}.py:12\n"

    def turns(number: int) -> list[Turn]:
        name, other = (f"src/{chance.choice(words)}.py" for _ in range(2))
        answer = section(name)
        asked = chance.choice((Use("ask", f"how does {name} work", answer),
                               Use("shell", f"atlas -q city list --near {number} | head -99", answer)))  # fmt: skip
        after = chance.choice((
            Use("read", name, code(60)), Use("read", other, code(60)), Use("read", f"/w/new{number}.py", answer),
            Use("shell", f"cd src && sed -n 1,99p {other} | head -50", code(50)), Use("search", other, code(30)),
            Use("shell", "make -j4 2>&1 | tail", code(10)), Use("edit", name, "done"),
        ))  # fmt: skip
        return [Turn((asked,)), Turn((after,))]

    sample = 200
    each = sum(map(len, written(form, [*chain.from_iterable(map(turns, range(sample)))]).values())) / sample
    files = written(form, [*chain.from_iterable(map(turns, range(int(size / each))))])
    place.write_bytes(next(iter(files.values())))


def crowd(place: Path, count: int) -> None:
    """A message of that many calls, and as many calls behind it that mean nothing."""
    from harness.sufficiency_made import Turn, Use, written

    asked = tuple(Use("ask", f"q{number}", "x") for number in range(count))
    aside = tuple(Turn((Use("todo", "x"),)) for _ in range(count))
    place.write_bytes(written("claude", (Turn(asked), *aside, Turn(("Done.",))))["stdout"])


def measure(code: str, words: list[str]) -> tuple[float, float, float, bytes]:
    """(seconds, of them the processor's, MB held at most, answer) of a process."""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", f"import sys\n{code}{_HELD}", *words], capture_output=True, check=True)
    processor, held = done.stderr.split()[-2:]
    return time.perf_counter() - began, float(processor), int(held) / 1024, done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    size = (5 if quick else SIZE_MB) << 20
    heads = "".join(f"{head:>8}" for head in ("calls", "s", "cpu s", "MB", "bare s", "cpu s", "MB"))
    print(f"{f'a log of {size >> 20} MB':34}{heads}  target {TARGET_S:.0f} s, {TARGET_MB} MB")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "log.jsonl"
        for form, wide, judged in (
            ("claude", False, ["--tool", "explore"]), ("claude", False, ["--subject", "atlas"]),
            ("claude", True, ["--tool", "explore"]), ("claude-session", False, ["--tool", "explore"]),
            ("codex", False, ["--tool", "explore"]), ("gemini", False, ["--tool", "*explore"]),
            ("opencode", False, ["--tool", "*explore"]),
        ):  # fmt: skip
            make(place, form, size, wide)
            _row(place, form + (", wide characters" if wide else ""), judged)
        crowd(place, 200 if quick else 20_000)
        _row(place, "a message of many calls", ["--tool", "explore"])


def _row(place: Path, title: str, judged: list[str]) -> None:
    bare, ours = measure(_BARE, [str(place)]), measure(_OURS, ["sufficiency", str(place), *judged, "--json"])
    calls = len(json.loads(ours[3])["logs"][0]["calls"])
    figures = "".join(f"{one[0]:8.2f}{one[1]:8.2f}{one[2]:8.0f}" for one in (ours, bare))
    print(f"{f'{title} {judged[0]}':34}{calls:8}{figures}", flush=True)


if __name__ == "__main__":
    main()
