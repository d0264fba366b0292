"""Run all benchmarks one after another: `python -m tests.bench [--quick] [NAME …]`.

A single one may have options of its own: `python -m tests.bench soak --minutes 60`.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys

import tests.bench


def main() -> int:
    """Run those named (all by default); the exit code says only whether they ran, never how fast."""
    names = [m.name for m in pkgutil.iter_modules(tests.bench.__path__) if m.name.startswith("bench_")]
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=tests.bench.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(n[6:] for n in names)}")
    parser.add_argument("--quick", action="store_true", help="less data and fewer rounds")
    asked, own = parser.parse_known_args()
    unknown = [name for name in asked.names if f"bench_{name}" not in names]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}")
    if own and len(asked.names) != 1:
        parser.error(f"{own[0]} belongs to a single benchmark: name it")
    for name in names:
        if asked.names and name[6:] not in asked.names:
            continue
        print(f"\n== {name[6:]}", flush=True)
        sys.argv = [name, *(["--quick"] if asked.quick else []), *own]
        importlib.import_module(f"tests.bench.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
