"""The smallest agent there is: a goal, one shell, and any model that speaks Chat Completions. Standard library only.

    loop.py --model NAME [--turns N] [--log FILE] < goal

Asks at $OPENAI_BASE_URL (with $OPENAI_API_KEY, which no command that it runs gets to see), runs what the model says
with sh, one command at a time, until the model says something without a command: that is printed as the answer. After
each step the whole conversation is in --log, as ATIF, so that nothing is lost when somebody ends it.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

SYSTEM = """\
You work on a machine by its shell. Do what you are asked to, with as many commands as it takes, one at a time, then \
answer in a few words. Your last message, the one without a command, is your answer.\
"""
TOOL = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a command line with sh. You get what it printed, and its exit code where that is not 0.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}

#: Seconds that a command may take, and that an answer of the model may take.
COMMAND_S, ANSWER_S = 120, 300

#: The most that is told of a command's output (characters); what is left out is said.
SHOWN = 30_000

#: How often an answer is asked for again that failed for the provider's reasons.
TRIES = 4


class ProviderError(Exception):
    """The model can't be reached, or answers with an error. `status` is the HTTP status, where there was one."""

    def __init__(self, status: int | None, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def ask(model: str, messages: list[dict], sampling: dict) -> dict:
    """The model's answer to the conversation so far. Raises ProviderError."""
    told = {"model": model, "messages": messages, "tools": [TOOL], "stream": False, **sampling}
    body = json.dumps(told).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}"}
    request = urllib.request.Request(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", body, headers)
    for attempt in range(1, TRIES + 1):
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_S) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            failed = ProviderError(error.code, error.read(500).decode("utf-8", "replace"))
            pause = float(error.headers.get("retry-after") or 2**attempt)
            if error.code not in (408, 409, 429) and error.code < 500:
                raise failed from error
        except (OSError, ValueError) as error:
            failed, pause = ProviderError(None, str(error)), 2.0**attempt
        if attempt < TRIES:
            time.sleep(min(pause, 60))
    raise failed


def run(command: str) -> tuple[str, int | None]:
    """What a command printed, stdout first, and its exit code; None where it had to be ended."""
    hidden = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    done = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=hidden, start_new_session=True)  # fmt: skip
    try:
        output, code = b"".join(done.communicate(timeout=COMMAND_S)), done.returncode
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(done.pid, 9)
        output, code = b"".join(done.communicate()), None
    text = output.decode("utf-8", "replace")
    lost = len(text) - SHOWN
    return text if lost <= 0 else f"{text[:SHOWN]}\n[{lost} more characters were left out]", code


class Conversation:
    """What was said and done, for the model and for the log."""

    def __init__(self, goal: str, model: str, log: Path | None, sampling: dict | None = None) -> None:
        self.sampling = {name: value for name, value in (sampling or {}).items() if value is not None}
        self.messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": goal}]
        self.model, self.log = model, log
        self.steps: list[dict] = []
        self.spent = {"total_prompt_tokens": 0, "total_completion_tokens": 0}
        self._step("system", SYSTEM)
        self._step("user", goal)

    def _step(self, source: str, message: str) -> dict:
        step = {"step_id": len(self.steps) + 1, "timestamp": datetime.now(UTC).isoformat(), "source": source,
                "message": message}  # fmt: skip
        self.steps.append(step)
        return step

    def turn(self) -> str | None:
        """One answer of the model, and its commands run; the answer's text where it has none. Raises ProviderError."""
        told = ask(self.model, self.messages, self.sampling)
        try:
            said = told["choices"][0]["message"]
            calls = [(call["id"], json.loads(call["function"]["arguments"]).get("command"), call)
                     for call in said.get("tool_calls") or []]  # fmt: skip
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise ProviderError(None, f"no chat completion: {json.dumps(told)[:300]}") from error
        usage = told.get("usage") or {}
        self.spent["total_prompt_tokens"] += usage.get("prompt_tokens") or 0
        self.spent["total_completion_tokens"] += usage.get("completion_tokens") or 0
        self.messages.append({key: said[key] for key in ("role", "content", "tool_calls") if said.get(key)})
        step = self._step("agent", said.get("content") or "")
        for identity, command, call in calls:
            self._call(step, identity, command, call["function"]["name"])
        return None if calls else step["message"]

    def _call(self, step: dict, identity: str, command: str | None, tool: str) -> None:
        known = tool == "bash" and isinstance(command, str)
        output, code = run(str(command)) if known else (f"there is no tool {tool!r} like that", None)
        how = f"\n[exit code {code}]" if code is not None else f"\n[ended after {COMMAND_S} s]" if known else ""
        said = output if code == 0 else output + how
        self.messages.append({"role": "tool", "tool_call_id": identity, "content": said})
        step.setdefault("tool_calls", []).append(
            {"tool_call_id": identity, "function_name": tool, "arguments": {"command": command}})  # fmt: skip
        extra = {"exit_code": code, "state": "failed" if code != 0 else "done"}
        step.setdefault("observation", {"results": []})["results"].append(
            {"source_call_id": identity, "content": output, "extra": extra})  # fmt: skip

    def keep(self, how: str = "cut", status: int | None = None, detail: str = "") -> None:
        """Write the log as it is now, whole or not at all."""
        if self.log is None:
            return
        told = {
            "schema_version": "ATIF-v1.8", "trajectory_id": "main",
            "agent": {"name": "loop", "version": "1", "model_name": self.model, "tool_definitions": [{"name": "bash"}]},
            "steps": self.steps, "final_metrics": self.spent,
            "extra": {"ended": {"how": how, "status": status, "detail": detail}},
        }  # fmt: skip
        self.log.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.log.with_suffix(".new")
        fresh.write_text(json.dumps(told))
        fresh.rename(self.log)


def main() -> int:
    """Exit 0 with an answer on stdout; 1 where the model failed, 3 where the turns were used up."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--model", default="default")
    words.add_argument("--turns", type=int, default=50)
    words.add_argument("--log", type=Path)
    words.add_argument("--temperature", type=float)
    words.add_argument("--seed", type=int)
    given = words.parse_args()
    if not os.environ.get("OPENAI_BASE_URL"):
        words.error("OPENAI_BASE_URL is not set: where does the model listen?")
    sampling = {"temperature": given.temperature, "seed": given.seed}
    talk = Conversation(sys.stdin.read(), given.model, given.log, sampling)
    for _ in range(given.turns):
        try:
            answer = talk.turn()
        except ProviderError as error:
            talk.keep("provider_error", error.status, str(error))
            sys.stderr.write(f"loop: {error.status or ''} {error}\n")
            return 1
        talk.keep("cut" if answer is None else "completed")
        if answer is not None:
            sys.stdout.write(answer + "\n")
            return 0
    talk.keep("max_turns", None, f"{given.turns} turns")
    sys.stderr.write(f"loop: {given.turns} turns were not enough\n")
    return 3


if __name__ == "__main__":
    raise SystemExit(main())
