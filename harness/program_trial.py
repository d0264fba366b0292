"""Plays an agent that is a program: prepares it, starts it in the sandbox, and tells from outside how it ended.

What it printed and logged is kept as it was (secrets apart) and read by harness/transcripts. A transcript may say that
the provider failed or that the product stopped at its own limit; whether the agent did its task, nobody asks it.
"""

import contextlib
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import agents, conditions, execute, isolation, limits, transcripts
from harness.agents._program import Command, Options, Program
from harness.bench import Bench
from harness.causes import policy_of
from harness.model_server import NOTE
from harness.model_server.trial import playing
from harness.played import Played
from harness.scenario import fill

#: What reached a scripted model.
REQUESTS = "requests.jsonl"

#: The most that is kept of what a program logged about itself (bytes, all files together).
SESSION_BYTES = 64 << 20

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)

#: Shorter values are no secrets, and would blank half the transcript.
_SECRET_LENGTH = 8


def play(bench: Bench, program: Program, options: Options) -> Played:
    """Its part of the trial. Raises Interrupted, SandboxError, ScriptError and OSError."""
    version = agents.version_of(program)
    if version is None:
        return _missing(program, f"{program.needs.program} is no program that can be run")
    place = bench.sandbox
    isolation.check(place, options.isolation)
    guides = conditions.guides_for(options.condition, bench.scenario.subject)
    made = conditions.realise(program.ways, place, options.condition, guides)
    options = replace(options, server=made.server)
    with contextlib.ExitStack() as until_then:
        model = None
        if options.script is not None:
            model = until_then.enter_context(playing(options.script, bench.scenario, place.values))
            options = replace(options, base_url=model.url)
        until_then.enter_context(isolation.door(place, options.isolation, options.base_url))
        ours = program.prepare(place, options)
        conditions.before_start(made, place, ours)
        goal = fill(bench.scenario.goal, place.values).strip()
        more, said = conditions.told(options, goal, made)
        command = _with_env(program.command(said, place, more), options)
        argv = isolation.enclosed(command.argv, place, options.isolation, options.base_url)
        watch = limits.Limits(options, limits.by_transcript(program.product, lambda: _logs(program, bench)))
        bench.limit(min(time for time in (options.time_s, program.time_s, bench.limit_s) if time is not None))
        ended = bench.program(argv, command.env, command.stdin, watch)
        requests = {REQUESTS: model.requests()} if model is not None else {}
    if ended.ended_by == "not_started":
        return _missing(program, str(ended.error))
    left = _left(program, bench, ended) | requests
    raw = {name: _blanked(data, command, options) for name, data in left.items()}
    told, problem = _read(program, raw, ended)
    cause, detail = _cause(ended, told, problem, options, began=_began(bench))
    if told is not None and policy_of(cause).verdict is None and (late := watch.passed([told])):
        cause, detail = late, "found when it had ended"
    answer = told.answer if told is not None else raw["stdout"].decode("utf-8", "replace")
    facts = {
        "product": program.product, "version": version, "argv": _words(argv, command, options), "code": ended.code,
        "signal": ended.signal, "ended_by": ended.ended_by, "cut": ended.cut, "duration_s": ended.duration_s,
        "needs": program.needs.program, "scripted_model": NOTE if options.script else None,
    }  # fmt: skip
    condition = conditions.record(made, program.ways, told, raw.get(REQUESTS), goal, guides, place)
    if (broken := conditions.broken(condition)) and policy_of(cause).valid:
        cause, detail = "condition_broken", broken
    return Played(cause, detail, answer, bench.calls, raw=raw, facts=facts, condition=condition,
                  transcript=told.dumps() if told is not None else None)  # fmt: skip


def _with_env(command: Command, options: Options) -> Command:
    """The command with the variables of ours that the run gives it."""
    return replace(command, env={**command.env, **{name: os.environ[name] for name in options.env
                                                   if name in os.environ}})  # fmt: skip


def _missing(program: Program, why: str) -> Played:
    return Played("agent_missing", f"{why}; install it: {program.needs.install}", "", [])


def _left(program: Program, bench: Bench, ended: execute.Ended) -> dict[str, bytes]:
    """What it printed, and the logs that it wrote."""
    return {"stdout": ended.stdout, "stderr": ended.stderr} | _logs(program, bench)


def _logs(program: Program, bench: Bench) -> dict[str, bytes]:
    """The logs that it wrote: plain files only, up to SESSION_BYTES."""
    found: dict[str, bytes] = {}
    room = SESSION_BYTES
    for name, path in sorted(program.collect(bench.sandbox).items()):
        data = _plain(path, room)
        if data is not None and name.startswith("session/") and ".." not in Path(name).parts:
            found[name] = data
            room -= len(data)
    return found


def _began(bench: Bench) -> bool:
    """Whether a recorded command ran: the record is the agent's to remove, and then it had begun."""
    try:
        return bench.sandbox.argv_log.stat().st_size > 0
    except OSError:
        return True


def _plain(path: Path, room: int) -> bytes | None:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > room:
            return None
        return path.read_bytes()
    except OSError:
        return None


def _blanked(data: bytes, command: Command, options: Options) -> bytes:
    for name, value in _secrets(command, options).items():
        data = data.replace(value.encode(), f"[{name}]".encode())
    return data


def _words(argv: tuple[str, ...], command: Command, options: Options) -> list[str]:
    secrets = _secrets(command, options)
    found = []
    for word in argv:
        for name, value in secrets.items():
            word = word.replace(value, f"[{name}]")
        found.append(word)
    return found


def _secrets(command: Command, options: Options) -> Mapping[str, str]:
    return {name: value for name, value in command.env.items()
            if (name in options.env or _SECRET.search(name)) and len(value) >= _SECRET_LENGTH}  # fmt: skip


_HOW: Mapping[str, transcripts.model.How] = {"exit": "completed", "turn_limit": "max_turns",
                                             "money_limit": "max_budget"}  # fmt: skip


def _read(
    program: Program, raw: Mapping[str, bytes], ended: execute.Ended
) -> tuple[transcripts.Transcript | None, str]:
    """The transcript; or None, and what in it made no sense."""
    how = transcripts.Ended(_HOW.get(ended.ended_by, "interrupted"), None, ended.ended_by)
    try:
        return transcripts.parse(program.product, raw, ended=how), ""
    except transcripts.TranscriptError as error:
        return None, str(error)


def _cause(ended: execute.Ended, told: transcripts.Transcript | None, problem: str, options: Options, *,
           began: bool) -> tuple[str, str]:  # fmt: skip
    """What ended it: what we did to it first, then how its process ended, then what the product says of its own end."""
    if ended.ended_by == "time_limit" and told and told.ended.how == "provider_error" and not _model_spoke(told):
        # A product that asks a dead provider again and again until its time is up is no agent that failed.
        why = f"the model had said nothing after {ended.duration_s:.1f} s: {told.ended.detail}"
        return "provider_failed", why[:300]
    if ended.ended_by != "exit":
        return ended.ended_by, f"after {ended.duration_s:.1f} s"
    how = f"exit {ended.code}" if ended.signal is None else f"ended by {ended.signal}"
    last = ended.stderr.decode("utf-8", "replace").strip()[-300:]
    if not ended.ok and not ended.stdout.strip() and not began:
        return "agent_failed_to_start", f"{how}: {last}"
    if told is None:
        return "transcript_unreadable", problem
    if told.ended.how == "provider_error":
        status = f"{told.ended.status} " if told.ended.status else ""
        return "provider_failed", f"{status}{told.ended.detail}"[:300]
    if told.ended.how == "max_turns" and options.turns is not None:
        return "turn_limit", told.ended.detail[:300]
    if told.ended.how == "max_budget" and options.money_usd is not None:
        return "money_limit", told.ended.detail[:300]
    return ("completed", "") if ended.ok else ("agent_exit", f"{how}: {last}")


def _model_spoke(told: transcripts.Transcript) -> bool:
    """Whether the model said or did a single thing."""
    return bool(told.calls) or any(message.role != "user" and message.role != "system" for message in told.messages)


def options_of(told: Mapping[str, Any], condition: str) -> Options:
    """The options as a run's manifest keeps them."""
    return Options(**{**told, "extra": tuple(told.get("extra", ())), "env": tuple(told.get("env", ())),
                      "condition": condition})  # fmt: skip
