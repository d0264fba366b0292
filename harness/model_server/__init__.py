"""A model that plays from a script, over the wire formats of four providers, on loopback: real agent programs run
against it without any provider.

It proves the harness – adapters, limits, parsers, graders – and never a model's skill: whatever shows a result of it
says so (`NOTE`). `script` is what it plays, `play` decides what comes next from a request alone, `tools` puts calls
into each product's own tools, one module an API speaks the wire, `server` listens. Nothing here grades or starts
anything.
"""

from harness.model_server.reference import from_scenario
from harness.model_server.script import Script, ScriptError, load
from harness.model_server.server import ModelServer
from harness.model_server.trial import REFERENCE, playing

#: To be shown wherever results of a scripted model are.
NOTE = "scripted model: proves the harness, never a model's skill"

__all__ = ["NOTE", "REFERENCE", "ModelServer", "Script", "ScriptError", "from_scenario", "load", "playing"]
