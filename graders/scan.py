"""What a credential-free scan of a program shows: how its help and its errors behave, and what its help documents.

A pure function of one record (`labd-scan/1`). Documented is all that help can establish: nothing here is ever a
check of readiness or a journey, there is no number, and a record that holds anything else is refused.
"""

import re
from collections.abc import Mapping
from typing import Any

from graders.readiness_evidence import Evidence, Step
from graders.readiness_rules import RULES

SCHEMA, LANE = "labd-scan/1", "scan"

#: All that a record may hold. What a journey or a measurement with state would leave has no place in it.
KEYS = frozenset(
    {"schema", "lane", "program", "scanned", "isolation", "versions", "hashes", "observations", "findings"}
)
OBSERVED = frozenset({"role", "words", "ended_by", "code", "signal", "cut", "stdout", "stderr", "duration_s"})

#: What help may document, and how it is spelt.
DOCUMENTED = {
    "machine output": r"--(json|output|format|porcelain)\b",
    "preview": r"--(dry-run|preview|plan|check|diff|what-if)\b",
    "pages": r"--(limit|page|page-size|per-page|cursor|skip|max-count|since)\b",
    "credentials": r"--(token|api-key|password|credentials|identity|profile)\b|^ {2,6}(login|logout)\b",
    "no questions": r"--(yes|no-input|non-interactive|batch|force|quiet)\b",
}


class NotAScan(ValueError):
    """The record is none of a scan, or has what none may have."""


def findings(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the observations come to. Raises NotAScan."""
    check(record)
    steps = [_step(one) for one in record["observations"]]
    errors = {name: [one for one in steps if one.role == name] for name in ("invalid-command", "invalid-flag")}
    pages = [one for one in steps if one.role == "page" and one.known]
    told = "\n".join(one.said for one in pages)
    found = {"help-completion": RULES["help-completion"].judge(Evidence("help-completion", tuple(
        _as(one, "discover") for one in steps if one.role == "page")))}  # fmt: skip
    for name, tried in errors.items():
        found[name] = RULES[name].judge(Evidence(name, tuple(_as(one, "mistake") for one in tried)))
    return {
        "behaviour": {name: {"verdict": one.verdict, "reason": one.reason} for name, one in found.items()},
        "documented": {name: sorted({hit[0].strip() for hit in re.finditer(pattern, told, re.MULTILINE)})
                       for name, pattern in DOCUMENTED.items()},
        "pages": len([one for one in pages if one.said.strip()]),
    }  # fmt: skip


def check(record: Mapping[str, Any]) -> None:
    """Raises NotAScan for a record of another lane, or one that was mixed with another's."""
    if record.get("schema") != SCHEMA or record.get("lane") != LANE:
        raise NotAScan(f"no {SCHEMA} but {record.get('schema')!r}")
    strange = sorted(set(record) - KEYS)
    if strange:
        raise NotAScan(f"a scan has no {strange[0]!r}")
    if record.get("isolation", {}).get("network") != "denied":
        raise NotAScan("the network was not denied")
    for one in record["observations"]:
        if set(one) - OBSERVED:
            raise NotAScan(f"an observation of a scan has no {sorted(set(one) - OBSERVED)[0]!r}")
        if one["role"] not in ("page", "invalid-command", "invalid-flag"):
            raise NotAScan(f"a scan looks at help and errors, not at {one['role']!r}")


def _step(one: Mapping[str, Any]) -> Step:
    return Step(one["role"], " ".join(one["words"]), {}, one["ended_by"], one["code"], one.get("signal"), one["cut"],
                one["stdout"], one["stderr"])  # fmt: skip


def _as(step: Step, role: str) -> Step:
    return Step(role, step.run, {}, step.ended_by, step.code, step.signal, step.cut, step.stdout, step.stderr)
