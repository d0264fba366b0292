"""Readiness of a program, by the rubric: a measurement's directory → verdict a check, share a domain, mean of domains.

A pure function of files: the manifest, the rubric and the plan as they were at the time, and the evidence a check.
No number without evidence for every applicable check, no letter, no rank. What workflows came to is never read.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graders import parsed, readiness_evidence
from graders.readiness_rules import RULES, Found
from graders.verdict import RATED

#: What a measurement and its result are called, and the rubric that the rules here are for.
EVIDENCE, RESULT, VERSION = "labd-readiness-evidence/1", "labd-readiness/1", "4.0.0"


class NotReadiness(ValueError):
    """The directory is no measurement of readiness, or one by rules that are not ours."""


def grade(directory: Path) -> dict[str, Any]:
    """What a measurement shows. Raises NotReadiness, naming the file that is wrong."""
    manifest = _json(directory / "manifest.json")
    if manifest.get("schema") != EVIDENCE:
        raise NotReadiness(f"{directory / 'manifest.json'}: no {EVIDENCE} but {manifest.get('schema')!r}")
    rubric, plan = _toml(directory / "rubric.toml"), _toml(directory / "plan.toml")
    if rubric.get("version") != VERSION:
        raise NotReadiness(f"rubric {rubric.get('version')} needs its own rules; these are for {VERSION}")
    reviewed = plan.get("not_applicable", {})
    checks = []
    for one in rubric["check"]:
        found, told = _check(one, directory / "checks" / f"{one['id']}.json", reviewed.get(one["id"]))
        checks.append(
            {"id": one["id"], "domain": one["domain"], "verdict": found.verdict, "reason": found.reason, **told}
        )
    kept = ("subject", "program", "version", "build", "measured", "hashes", "versions")
    told = {name: manifest.get(name) for name in kept}
    return {"schema": RESULT, "rubric": {"version": rubric["version"], "sha256": manifest["rubric_sha256"]}, **told,
            "checks": checks, **score(rubric["domain"], checks)}  # fmt: skip


def _check(rubric: Mapping[str, Any], path: Path, reviewed: Mapping[str, Any] | None) -> tuple[Found, dict[str, Any]]:
    """What one check came to, and what is told beside."""
    if reviewed is not None:
        return _excepted(rubric, reviewed), {}
    if not path.is_file():
        return Found("not_run", "it was not exercised"), {}
    try:
        evidence = readiness_evidence.from_dict(_json(path))
    except (KeyError, TypeError) as error:
        raise NotReadiness(f"{path}: not the evidence of a check: {error}") from error
    documented = any(step.known and not step.lacking for step in evidence.of("document"))
    told = {"evidence": f"checks/{path.name}"} | ({"documented": True} if documented else {})
    if evidence.broken:
        return Found("harness_error", evidence.broken), told
    if evidence.blocked:
        return Found("blocked", evidence.blocked), told
    return RULES[rubric["id"]].judge(evidence), told


def _excepted(rubric: Mapping[str, Any], reviewed: Mapping[str, Any]) -> Found:
    """Not applicable, if somebody has reviewed the reason, and if that check may be left out at all."""
    reason = str(reviewed.get("reason") or "").strip()
    if rubric.get("always"):
        return Found("unknown", "it applies to every program")
    if not reason or not reviewed.get("reviewed"):
        return Found("unknown", f"said to be not applicable, and not reviewed: {reason or 'no reason is given'}")
    return Found("not_applicable", f"{reason} (reviewed {reviewed['reviewed']})")


def score(domains: list[dict[str, Any]], checks: list[dict[str, Any]]) -> dict[str, Any]:
    """The domains, and the whole where there is one; `missing` has the checks that stand in its way."""
    told, missing = [], []
    for domain in domains:
        own = [one for one in checks if one["domain"] == domain["name"] and one["verdict"] != "not_applicable"]
        dark = [one["id"] for one in own if one["verdict"] not in RATED]
        passed = sum(one["verdict"] == "pass" for one in own)
        missing += dark
        told.append({"name": domain["name"], "title": domain["title"], "applicable": len(own), "passed": passed,
                     "evidenced": len(own) - len(dark),
                     "score": round(passed / len(own), 4) if own and not dark else None})  # fmt: skip
    shares = [one["passed"] / one["applicable"] for one in told if one["applicable"]]
    overall = round(sum(shares) / len(shares), 4) if shares and not missing else None
    return {"domains": told, "overall": overall, "missing": missing}


def _json(path: Path) -> dict[str, Any]:
    try:
        found = parsed.from_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise NotReadiness(f"{path}: {error}") from error
    if not isinstance(found, dict):
        raise NotReadiness(f"{path}: no object")
    return found


def _toml(path: Path) -> dict[str, Any]:
    try:
        return parsed.from_toml(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise NotReadiness(f"{path}: {error}") from error
