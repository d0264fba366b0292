"""Trials as an eval log of Inspect (version 2, as its `read_eval_log` takes it), one agent under one condition each.

A scenario is a sample, a trial an epoch. Pure: values in, values out; the same run gives the same log.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness import files, transcripts
from harness.export_trial import Exported
from harness.report.model import rates
from harness.run import subject_of
from harness.stats import Overall
from harness.transcripts.model import MAIN, Transcript, Usage

Log = dict[str, Any]

#: The one scorer of these logs: what our grader of the scenario found.
SCORER = "verdict"

#: What Inspect takes for a correct and an incorrect answer. No other verdict is a score: its "N" would count as wrong.
VALUES = {"pass": "C", "fail": "I"}

#: Cause → Inspect's word for the limit, and where a trial tells how much that was.
_LIMITS = {
    "time_limit": ("time", ("options", "time_s"), ("limits", "time_s")),
    "turn_limit": ("turn", ("options", "turns")),
    "token_limit": ("token", ("options", "tokens")),
    "money_limit": ("cost", ("options", "money_usd")),
    "output_limit": ("custom", ("limits", "output_bytes")),
}


def name_of(manifest: Mapping[str, Any], agent: str, condition: str) -> str:
    """The log's file, named so that Inspect lists it: the time, the task, an identity."""
    stamp = str(manifest["created"]).replace(":", "-").replace("Z", "+00-00")
    task = re.sub(r"[^A-Za-z0-9]+", "-", f"{subject_of(manifest)}-{agent}-{condition}").strip("-")[:80]
    return f"{stamp}_{task}_{_identity(manifest['id'], agent, condition)}.json"


def _identity(*parts: str) -> str:
    return files.digest("\0".join(parts).encode())[:22]


def log(manifest: Mapping[str, Any], trials: Sequence[Exported]) -> Log:
    """The log of one agent under one condition; `trials` are all that were planned."""
    agent, condition = trials[0].row["agent"], trials[0].row["condition"]
    model = _model(trials)
    samples = [_sample(one, model) for one in trials if one.row["bundle"]]
    whole = len(samples) == len(trials)
    made: Log = {
        "version": 2,
        "status": "success" if whole else "cancelled",
        "eval": _spec(manifest, trials, model),
        "plan": {"name": "plan", "steps": [{"solver": agent, "params": {"condition": condition}}], "config": {}},
        "results": _results(trials, samples),
        "stats": _stats(manifest, trials, samples),
        "samples": samples,
    }
    return made


def _model(trials: Sequence[Exported]) -> str:
    """The one model that all trials tell; Inspect's own word for none, for agents that are no program."""
    if any(one.row["scripted_model"] for one in trials):
        return "scripted/none"
    if any(one.trial is not None and "program" not in one.trial for one in trials):
        return "none/none"
    named = {one.model for one in trials if one.trial is not None} - {None}
    return str(named.pop()) if len(named) == 1 else "unknown"


def _spec(manifest: Mapping[str, Any], trials: Sequence[Exported], model: str) -> Log:
    agent, condition = trials[0].row["agent"], trials[0].row["condition"]
    scenarios = sorted({one.row["scenario"] for one in trials})
    asked = manifest.get("options") or {}
    config = {"epochs": manifest.get("trials"), "time_limit": _whole(asked.get("time_s")),
              "token_limit": asked.get("tokens"), "turn_limit": asked.get("turns"),
              "cost_limit": asked.get("money_usd"), "fail_on_error": False}  # fmt: skip
    subject = subject_of(manifest)
    return {
        "eval_id": _identity(manifest["id"], agent, condition),
        "run_id": str(manifest["id"]),
        "created": manifest["created"],
        "task": f"labd-eval/{subject}",
        "task_id": _identity(subject, *(manifest["scenarios"][name]["sha256"] for name in scenarios)),
        "task_version": 0,
        "task_attribs": {},
        "task_args": {"agent": agent, "condition": condition},
        "solver": agent,
        "tags": ["scripted model"] if model.startswith("scripted/") else None,
        "dataset": {"name": subject, "samples": len(scenarios), "sample_ids": scenarios, "shuffled": False},
        "model": model,
        "model_args": {},
        "config": {name: value for name, value in config.items() if value is not None},
        "packages": {"labd": manifest["versions"].get("labd", "unknown")},
        "metadata": {"expected": manifest["agents"][agent]["expected"], "seed": manifest.get("seed"),
                     "hashes": manifest["hashes"], "versions": manifest["versions"],
                     "isolation": asked.get("isolation"),
                     "scenarios": {name: manifest["scenarios"][name]["title"] for name in scenarios}},
    }  # fmt: skip


def _whole(seconds: float | None) -> int | None:
    """Inspect's limits are whole seconds; a part of one is not rounded away."""
    return int(seconds) if seconds is not None and seconds == int(seconds) else None


def _results(trials: Sequence[Exported], samples: Sequence[Log]) -> Log:
    """Counts, and the pass rate over scenarios, which is none where no trial is valid."""
    scored = sum(bool(sample["scores"]) for sample in samples)
    overall = Overall(tuple(rates(dict(one.row) for one in trials).values())).data()
    metrics = {} if overall["mean"] is None else {
        "pass_rate": {"name": "pass_rate", "value": overall["mean"], "metadata": overall}}  # fmt: skip
    return {
        "total_samples": len(trials),
        "completed_samples": sum(sample["error"] is None for sample in samples),
        "scores": [{"name": SCORER, "scorer": SCORER, "scored_samples": scored,
                    "unscored_samples": len(samples) - scored, "params": {}, "metrics": metrics}],
    }  # fmt: skip


def _stats(manifest: Mapping[str, Any], trials: Sequence[Exported], samples: Sequence[Log]) -> Log:
    """Begin and end; usage only where every sample tells it, so that no sum is of a part."""
    ends = [str(one.trial["ended"]) for one in trials if one.trial is not None]
    made: Log = {"started_at": manifest["created"], "completed_at": max(ends, default=""), "model_usage": {}}
    told = [sample["model_usage"] for sample in samples]
    if told and all(told):
        (name,) = {name for usage in told for name in usage}
        keys = set.intersection(*(set(usage[name]) for usage in told))
        made["model_usage"] = {name: {key: sum(usage[name][key] for usage in told) for key in sorted(keys)}}
    return made


def _sample(one: Exported, model: str) -> Log:
    """A trial. A lost one is an error and has no score; an unknown verdict is neither."""
    trial, told = one.trial or {}, one.transcript
    counts = one.lost is None and bool(one.row["valid"]) and one.verdict is not None
    sample: Log = {
        "id": one.row["scenario"],
        "epoch": one.row["number"],
        "uuid": _identity(one.manifest["id"], one.row["id"]),
        "input": one.goal,
        "target": "",
        "messages": messages(told) if told is not None else [],
        "output": _output(told, model),
        "scores": {SCORER: _score(one)} if counts else None,
        "metadata": {**one.facts(), "threads_left_out": _threads(told)},
        "store": {},
        "events": [],
        "attachments": {},
        "model_usage": _usage(told.usage, model) if told is not None else {},
        "started_at": trial.get("started"),
        "completed_at": trial.get("ended"),
        "total_time": trial.get("duration_s"),
        "working_time": trial.get("agent_s"),
        "turn_count": told.usage.turns if told is not None else None,
        "error": {"message": one.lost, "traceback": "", "traceback_ansi": ""} if one.lost is not None else None,
        "limit": _limit(trial),
    }
    return sample


def _score(one: Exported) -> Log:
    verdict = one.verdict
    assert verdict is not None
    return {"value": VALUES[verdict.verdict], "answer": one.transcript.answer if one.transcript else None,
            "explanation": verdict.reason, "metadata": {"grader": verdict.grader}}  # fmt: skip


def _limit(trial: Mapping[str, Any]) -> Log | None:
    """The limit that ended it, as far as the trial tells how much that was."""
    found = _LIMITS.get(str(trial.get("ended_by")))
    if found is None:
        return None
    kind, *places = found
    known = [value for place, key in places if (value := (trial.get(place) or {}).get(key)) is not None]
    return {"type": kind, "limit": min(known), "reason": trial["ended_by"]} if known else None


def _threads(told: Transcript | None) -> int:
    """Other agents that the agent started: a sample has one conversation, so theirs are in the ATIF form alone."""
    return sum(thread.id != MAIN for thread in told.threads) if told is not None else 0


def _usage(usage: Usage, model: str) -> Log:
    """Tokens by model, only of whole counts: Inspect takes what is missing for 0."""
    if not usage.complete or usage.input is None or usage.output is None or usage.total is None:
        return {}
    more = {"input_tokens_cache_write": usage.cache_write, "input_tokens_cache_read": usage.cache_read,
            "reasoning_tokens": usage.reasoning, "total_cost": usage.cost_usd}  # fmt: skip
    return {model: {"input_tokens": usage.input, "output_tokens": usage.output, "total_tokens": usage.total,
                    **{key: value for key, value in more.items() if value is not None}}}  # fmt: skip


def _output(told: Transcript | None, model: str) -> Log:
    """The stated answer; no choice where there is none."""
    if told is None or not told.answer:
        return {"model": model, "choices": []}
    message = {"role": "assistant", "content": told.answer, "source": "generate"}
    return {"model": model, "choices": [{"message": message, "stop_reason": "unknown"}]}


def messages(told: Transcript) -> list[Log]:
    """The conversation of the agent that was asked, by the steps of its trajectory."""
    found: list[Log] = []
    for step in transcripts.to_atif(told)["steps"]:
        if step["source"] == "agent":
            found.append(_assistant(step))
        elif step["message"]:
            found.append({"role": step["source"], "content": step["message"]})
        names = {call["tool_call_id"]: call["function_name"] for call in step.get("tool_calls", ())}
        found += [_tool(result, names) for result in (step.get("observation") or {}).get("results", ())]
    return found


def _assistant(step: Log) -> Log:
    content: Any = step["message"]
    if step.get("reasoning_content"):
        said = [{"type": "text", "text": step["message"]}] if step["message"] else []
        content = [{"type": "reasoning", "reasoning": step["reasoning_content"]}, *said]
    made: Log = {"role": "assistant", "content": content, "source": "generate"}
    if step.get("tool_calls"):
        made["tool_calls"] = [{"id": call["tool_call_id"], "function": call["function_name"],
                               "arguments": call["arguments"], "type": "function"}
                              for call in step["tool_calls"]]  # fmt: skip
    return made


def _tool(result: Log, names: Mapping[str, str]) -> Log:
    """What a call gave. An exit code is data, not an error of the tool; one that was denied never ran."""
    identity, extra = result["source_call_id"], result["extra"]
    told = {key: extra[key] for key in ("exit_code", "exit_code_source", "state", "is_error")}
    made: Log = {"role": "tool", "content": result["content"], "tool_call_id": identity,
                 "function": names.get(identity), "metadata": told}  # fmt: skip
    if extra["state"] == "denied":
        made["error"] = {"type": "permission", "message": result["content"]}
    return made
