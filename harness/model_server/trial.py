"""The scripted model of one trial: made from what `--scripted-model` says, alive as long as the agent's program is.

Each trial has a server of its own, so that trials side by side can't mix, and its log is proof of what reached the
model: it lies outside the sandbox while the trial runs.
"""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.model_server.reference import from_scenario
from harness.model_server.script import Script, load
from harness.model_server.server import ModelServer
from harness.scenario import Scenario

#: The word for the reference answer of whatever scenario is run.
REFERENCE = "reference"


def script_of(word: str, scenario: Scenario, values: Mapping[str, str]) -> Script:
    """What `--scripted-model` says: `reference`, or a script's file. Raises ScriptError."""
    return from_scenario(scenario, values) if word == REFERENCE else load(Path(word), values)


@dataclass(frozen=True)
class Playing:
    """A scripted model that listens at `url`; its log goes with it."""

    url: str
    log: Path

    def requests(self) -> bytes:
        """What has reached it so far: one JSON object a request, keys blanked."""
        return self.log.read_bytes()


@contextlib.contextmanager
def playing(word: str, scenario: Scenario, values: Mapping[str, str]) -> Iterator[Playing]:
    """Have it play for this trial. Raises ScriptError, and OSError where it can't listen."""
    script = script_of(word, scenario, values)
    with tempfile.TemporaryDirectory(prefix="model-") as place:
        log = Path(place) / "requests.jsonl"
        with ModelServer(script, log) as model:
            yield Playing(model.url, log)
