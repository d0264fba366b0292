"""Classify and plan the probes of 1,000 records: at most 10 s, beside a bare JSON parse of the same files.

The records are of labd and of atlas, twelve calls each, with answers of the kinds that their signs tell apart.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from dataclasses import replace

from graders import contract, probe_plan, taxonomy
from graders.contract import Answer, Call, Record
from graders.taxonomy import Facts
from harness import classifying

TARGET_S = 10.0
CALLS = 12

_LOG = "".join(f"[2026-11-30T04:00:17.{n:03}Z] #{n} systemd[1]: Started unit number {n}\n" for n in range(1, 9))
_IN = "atlas: in: London, England, United Kingdom (city)\n"
_ROWS = "name  category\n" + "".join(f"Place number {n}  museum\n" for n in range(1, 21))

#: A subject → words, exit code, stdout, stderr, as they come from it (and from it with a defect).
POOL: dict[str, tuple[tuple[str, int, str, str], ...]] = {
    "labd": (
        ("target list --json", 0, '{"targets": [{"name": "dut", "hosts": ["local"], "channels": []}]}\n', ""),
        ("target list --json", 0, '{"targets": []}\n', ""),
        ("serial log dut --tail 8", 0, _LOG, "labd: interface console\n"),
        ("serial log dut --grep panic", 0, "", "labd: interface console\n"),
        ("serial show pico", 4, "", "labd: no target 'pico' in /l.toml; try: labd target list\n"),
        ("serial lgo dut", 2, "", "labd: labd serial has no verb 'lgo'; did you mean 'serial log'?\n"),
        ("serial expect dut login: --timeout 5", 6, "", "labd: nothing matched within 5 s\n"),
        ("config show", 0, "[targets.dut]\n" + "key = 1\n" * 40, ""),
        ("--help", 0, "usage: labd NOUN VERB\n  use --json for programs\n" * 8, ""),
    ),
    "atlas": (
        ("count places --category bus_stop --in Leeds,England", 0, "0\n", _IN),
        ("count landuse --class recreation --in Germany", 0, "0\n", _IN),
        ("count places --category museum --category library --in France", 0, "4\n", _IN),
        ("places --category museum --in London,England", 0, _ROWS, _IN),
        ("places --in London,England --limit 20", 0, _ROWS, _IN + "atlas: showing 20 of 38; --limit 0 for all\n"),
        ("cities --country France", 2, "", "atlas: no option --country\n  try: atlas cities --help\n"),
        ("values --search bus --json", 0, '{"rows": [{"table": "places", "value": "bus_station", "rows": 15}]}\n', ""),
        ("where Malta", 1, "", "Traceback (most recent call last):\nKeyError: 'Malta'\n"),
    ),
}  # fmt: skip


def record(number: int, subject: str) -> Record:
    """An attempt that nobody has classified yet."""
    calls, pool = [], POOL[subject]
    for at in range(CALLS):
        words, code, out, err = pool[(number * 7 + at * 3) % len(pool)]
        axes = ("ok", "tool", "n/a") if code == 0 else ("error", "tool", "unguided")
        calls.append(Call(tuple(words.split()), code, out[:512], err[:512], 0.05, *axes))
    return Record(f"B{number % 40}", 1 + number // 40, tuple(calls), (), {"Bash": CALLS}, CALLS, Answer("It is up."),
                  {"name": subject}, "cold", trial=f"B{number}", agent="bench")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    count = 100 if parser.parse_args().quick else 1000
    stored = [contract.write(record(number, name)) for number in range(count // 2) for name in POOL]
    signs = {name: classifying.signs_of(name) for name in POOL}
    began = time.perf_counter()
    for data in stored:
        json.loads(data)
    bare, began, own = time.perf_counter() - began, time.perf_counter(), time.process_time()
    classes: Counter[str] = Counter()
    planned = skipped = 0
    for data in stored:
        told = contract.load(data)
        known = signs[told.subject["name"]]
        facts = (Facts(one.argv, one.exit_code, one.stdout_head, one.stderr_head) for one in told.calls)
        found = taxonomy.classified(replace(told, calls=tuple(taxonomy.classify(one, known) for one in facts)), known)
        plan = probe_plan.plan(found, known)
        classes.update(call.cls or "ok" for call in found.calls)
        planned, skipped = planned + len(plan.planned), skipped + len(plan.skipped)
    ours, own = time.perf_counter() - began, time.process_time() - own
    spread = ", ".join(f"{name} {n}" for name, n in sorted(classes.items()))
    print(f"{count} records, {count * CALLS} calls, {sum(map(len, stored)) / 1e6:.1f} MB: {spread}; "
          f"{planned} probes planned, {skipped} left out")  # fmt: skip
    print(f"  read, classified, probes planned {ours:8.3f} s ({own:.3f} s of a processor)  target {TARGET_S:g} s")
    print(f"  bare JSON parse of the same      {bare:8.3f} s")


if __name__ == "__main__":
    main()
