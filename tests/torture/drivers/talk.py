"""The driver's side of `tests/torture/driven.py`: JSON lines in, JSON lines out. Stands alone, runs in any venv."""

from __future__ import annotations

import json
import sys
from typing import Any


class NotThere(Exception):
    """The library has no such function."""


def serve(subject: Any, version: str) -> None:
    """Answer until stdin ends. What the subject raises is its failure, and its driver goes on."""
    out = sys.stdout
    sys.stdout = sys.stderr
    print(json.dumps({"ready": version}), file=out, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        method = getattr(subject, asked.pop("op"), None)
        try:
            if method is None:
                raise NotThere("has no such thing")
            answer = {"ok": method(**asked)}
        except NotThere as error:
            answer = {"not_there": str(error)}
        except Exception as error:
            words = " ".join(str(error).split()).partition(" <")[0][:100]
            answer = {"wrong": f"{type(error).__name__}: {words}"}
        print(json.dumps(answer), file=out, flush=True)
