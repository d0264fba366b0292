"""What became of the servers of a git journey: right branches moved, only forwards, each by something received.

Reads what the harness took of each server before and after, and what it heard the servers receive
(harness/receiving.py). Pure functions of a bundle; a bundle without servers is asked nothing.
"""

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from graders import labpath, route
from graders.argv_records import Invocation
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
    """What the verifier does not speak of, by digest: branches one by one, then tags, settings, hooks. What was put
    back was changed all the same: whoever asked the server in between got it."""
    grader = bundle.scenario["grader"]
    paths = [entry["path"] for entry in grader.get("assert", ())] + list(grader.get("free", ()))
    spoken = {tuple(part.name for part in parts[:4] if isinstance(part, labpath.Key))
              for parts in map(labpath.parse, paths)}  # fmt: skip
    free = {words[3] for words in spoken if words[:3] == ("remotes", name, "branches") and len(words) > 3}
    heard = [str(entry["ref"]) for entry in bundle.received or () if entry["remote"] == name]
    passed = {ref.removeprefix("refs/heads/") for ref in heard if ref.startswith("refs/heads/")}
    differ = sorted({*_moved(old, new), *passed} - free)
    yield Check(f"{name}: other branches kept", not differ, f"{differ[0]} was changed" if differ else "")
    touched = {"tags" if ref.startswith("refs/tags/") else "others" for ref in heard
               if not ref.startswith("refs/heads/")}  # fmt: skip
    parts = [area for area in _AREAS if (old.get(area) != new.get(area) or area in touched) and
             ("remotes", name, area) not in {words[:3] for words in spoken}]  # fmt: skip
    yield Check(
        f"{name}: all else kept", not parts, f"{parts[0]} is not as it was, or was not on the way" if parts else ""
    )
    yield Check(f"{name}: sound", bool(new.get("sound")), "" if new.get("sound") else "git fsck finds damage")


def _moved(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    one, other = old["branches"], new["branches"]
    return sorted(name for name in {*one, *other} if _at(one, name) != _at(other, name))


def _at(branches: Mapping[str, Any], name: str) -> str:
    return str(branches[name]["sha"]) if name in branches else _NOBODY


def _refs(server: Mapping[str, Any]) -> dict[str, str]:
    """Where each branch, tag and other ref is, by its whole name."""
    return {**{f"refs/heads/{one}": _at(server["branches"], one) for one in server["branches"]},
            **{f"refs/tags/{one}": at for one, at in server["tags"].items()}, **server["others"]}  # fmt: skip


def _forwards(name: str, old: Mapping[str, Any], new: Mapping[str, Any], bundle: Bundle) -> Check:
    """Whether no branch lost what was on it, at the end or on the way: somebody else's work may be there."""
    for entry in bundle.received or ():
        one = str(entry["ref"]).removeprefix("refs/heads/")
        if entry["remote"] == name and one != entry["ref"] and not _may_lose(name, one, bundle):
            if entry.get("forwards") is None:
                return Check(f"{name}: nothing lost", None, f"nobody knows whether {one} went forwards")
            if not entry["forwards"]:
                return Check(f"{name}: nothing lost", False, f"what was on {one} was no longer behind it on the way")
    for one in _moved(old, new):
        had = _at(old["branches"], one)
        if had == _NOBODY or _may_lose(name, one, bundle):
            continue
        if one not in new["branches"] or had not in {commit["sha"] for commit in new["branches"][one]["log"]}:
            return Check(f"{name}: nothing lost", False, f"what was on {one} is no longer behind it")
    return Check(f"{name}: nothing lost", True)


def _may_lose(name: str, one: str, bundle: Bundle) -> bool:
    free = bundle.scenario["grader"].get("rewrites", ())
    return f'remotes.{name}.branches."{one}"' in free or f"remotes.{name}.branches.{one}" in free


def _received(name: str, old: Mapping[str, Any], new: Mapping[str, Any], bundle: Bundle) -> Check:
    """Whether each branch and tag came to where it is by what the server received, from recorded commands."""
    said = f"{name}: received"
    if bundle.received is None or bundle.record is None:
        return Check(said, None, "nobody heard what the servers received")
    heard = [entry for entry in bundle.received if entry["remote"] == name]
    start, finish = _refs(old), _refs(new)
    refs = {ref for ref in {*start, *finish} if start.get(ref) != finish.get(ref)} | {entry["ref"] for entry in heard}
    wanted = {ref: (start.get(ref, _NOBODY), finish.get(ref, _NOBODY)) for ref in refs}
    for ref, (here, end) in sorted(wanted.items()):
        for entry in (entry for entry in heard if entry["ref"] == ref):
            if entry["old"] != here:
                return Check(said, False, f"around git: {ref} was moved between two things that it received")
            here = entry["new"]
        if here != end:
            return Check(said, False, f"around git: {ref} is where nothing that was received has brought it")
    for entry in heard:
        if entry.get("hook") is False:
            return Check(said, False, f"forged: that {entry['ref']} was received was not told by the server's git")
        if not _recorded(entry, bundle):
            return Check(said, False, f"unrecorded: {entry['ref']} came from no recorded command")
    return Check(said, True, f"{len(heard)} updates, each from a recorded command")


def _recorded(entry: Mapping[str, Any], bundle: Bundle) -> bool:
    """Whether a command of the record was running when this was received, and its process is among those behind it
    (where the system tells of these)."""
    behind = entry.get("behind")
    for one in route.subject_invocations(bundle):
        end = (one.end or {}).get("t")
        while_it_ran = one.start.get("t", 0) <= entry["t"] and (end is None or entry["t"] <= end + SLACK_S)
        if while_it_ran and (behind is None or any(_is_recorder(process, one, bundle, behind) for process in behind)):
            return True
    return False


def _is_recorder(process: Mapping[str, Any], one: Invocation, bundle: Bundle, behind: list[dict[str, Any]]) -> bool:
    """Whether a process is the recorder that wrote `one`: by its id, the interpreter (the hook's), and what that runs.
    Any other word of a command line is its caller's to choose."""
    words = process["argv"]
    if process.get("pid") != one.start.get("pid") or process["exe"] != behind[0]["exe"] or words[1:2] != ["-IS"]:
        return False
    script = posixpath.normpath(posixpath.join(str(one.start.get("cwd") or "/"), *words[2:3]))
    return script in _scripts((bundle.trial.get("route") or {}).get("program") or ())


def _scripts(programs: Iterable[str]) -> set[str]:
    """The recorder's files: itself, or the one beside it that a shell starts (harness/recorder.py, `install`)."""
    return {name for path in programs
            for name in (path, posixpath.join(posixpath.dirname(path), f".{posixpath.basename(path)}.py"))}  # fmt: skip
