"""What became of the servers of a git journey: right branches moved, only forwards, each by something received.

Reads what the harness took of each server before and after, and what it heard the servers receive
(harness/receiving.py). Pure functions of a bundle; a bundle without servers is asked nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from graders import labpath, route
from graders.bundle_view import Bundle
from graders.verdict import Check

#: Seconds by which the end of a recorded command may stand before what its server noted, on a busy machine.
SLACK_S = 2.0

_NOBODY = "0" * 40

#: The areas of a server that are compared where the verifier does not speak of them.
_AREAS = ("head", "tags", "others", "config", "around")


def check(bundle: Bundle) -> list[Check]:
    """One check a question, for all servers."""
    before, after = bundle.facts("repo.before.json") or {}, bundle.facts("repo.after.json") or {}
    old, new = before.get("remotes") or {}, after.get("remotes") or {}
    found = []
    for name in sorted({*old, *new}):
        if name not in old or "problem" in new.get(name, {"problem": ""}):
            found.append(Check(f"server {name}", False, "it came into being" if name not in old else "it is gone"))
            continue
        found += list(_kept(name, old[name], new[name], bundle))
        found += [_forwards(name, old[name], new[name], bundle), _received(name, old[name], new[name], bundle)]
    return found


def _kept(name: str, old: Mapping[str, Any], new: Mapping[str, Any], bundle: Bundle) -> Iterator[Check]:
    """What the verifier does not speak of, by digest: branches one by one, then tags, settings, hooks."""
    grader = bundle.scenario["grader"]
    paths = [entry["path"] for entry in grader.get("assert", ())] + list(grader.get("free", ()))
    spoken = {tuple(part.name for part in parts[:4] if isinstance(part, labpath.Key))
              for parts in map(labpath.parse, paths)}  # fmt: skip
    free = {words[3] for words in spoken if words[:3] == ("remotes", name, "branches") and len(words) > 3}
    differ = [one for one in _moved(old, new) if one not in free]
    yield Check(f"{name}: other branches kept", not differ, f"{differ[0]} is not as it was" if differ else "")
    parts = [area for area in _AREAS if old.get(area) != new.get(area) and ("remotes", name, area) not in
             {words[:3] for words in spoken}]  # fmt: skip
    yield Check(f"{name}: all else kept", not parts, f"{parts[0]} is not as it was" if parts else "")
    yield Check(f"{name}: sound", bool(new.get("sound")), "" if new.get("sound") else "git fsck finds damage")


def _moved(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    one, other = old["branches"], new["branches"]
    return sorted(name for name in {*one, *other} if _at(one, name) != _at(other, name))


def _at(branches: Mapping[str, Any], name: str) -> str:
    return str(branches[name]["sha"]) if name in branches else _NOBODY


def _forwards(name: str, old: Mapping[str, Any], new: Mapping[str, Any], bundle: Bundle) -> Check:
    """Whether no branch lost what was on it: somebody else's work may be there."""
    free = bundle.scenario["grader"].get("rewrites", ())
    for one in _moved(old, new):
        had = _at(old["branches"], one)
        if had == _NOBODY or f'remotes.{name}.branches."{one}"' in free or f"remotes.{name}.branches.{one}" in free:
            continue
        if one not in new["branches"] or had not in {commit["sha"] for commit in new["branches"][one]["log"]}:
            return Check(f"{name}: nothing lost", False, f"what was on {one} is no longer behind it")
    return Check(f"{name}: nothing lost", True)


def _received(name: str, old: Mapping[str, Any], new: Mapping[str, Any], bundle: Bundle) -> Check:
    """Whether each branch and tag came to where it is by what the server received, from recorded commands."""
    said = f"{name}: received"
    if bundle.received is None or bundle.record is None:
        return Check(said, None, "nobody heard what the servers received")
    heard = [entry for entry in bundle.received if entry["remote"] == name]
    wanted = {f"refs/heads/{one}": (_at(old["branches"], one), _at(new["branches"], one)) for one in _moved(old, new)}
    wanted |= {f"refs/tags/{one}": (old["tags"].get(one, _NOBODY), new["tags"].get(one, _NOBODY))
               for one in {*old["tags"], *new["tags"]} if old["tags"].get(one) != new["tags"].get(one)}  # fmt: skip
    for ref, (here, end) in sorted(wanted.items()):
        for entry in (entry for entry in heard if entry["ref"] == ref):
            if entry["old"] != here:
                return Check(said, False, f"around git: {ref} was moved between two things that it received")
            here = entry["new"]
        if here != end:
            return Check(said, False, f"around git: {ref} is where nothing that was received has brought it")
    for entry in heard:
        if not _recorded(entry, bundle):
            return Check(said, False, f"unrecorded: {entry['ref']} came from no recorded command")
    return Check(said, True, f"{len(heard)} updates, each from a recorded command")


def _recorded(entry: Mapping[str, Any], bundle: Bundle) -> bool:
    """Whether a command of the record was running when this was received, and stands among the processes behind it
    (where the system tells of these)."""
    told = bundle.trial.get("route") or {}
    behind = {word for process in entry.get("behind", ()) for word in process["argv"]}
    if behind and not behind & set(told.get("program") or ()):
        return False
    for one in route.subject_invocations(bundle):
        end = (one.end or {}).get("t")
        if one.start.get("t", 0) <= entry["t"] and (end is None or entry["t"] <= end + SLACK_S):
            return True
    return False
