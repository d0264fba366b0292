"""Serving again, by a new daemon, what ended with the one before. Light; runs in the process of who restarts it."""

from __future__ import annotations

from labd.errors import LabdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from labd.call import Call


def serve_again(call: Call, netboots: Iterable[dict[str, Any]]) -> list[str]:
    """Start what the old daemon listed as served; the targets that are served again. Notes say why one is not."""
    from labd.client import Client

    again = []
    for served in netboots:
        try:
            with Client(call.env) as client:
                client.request("netboot.start", {"target": served["target"]}, lab=served["lab"])
            again.append(served["target"])
        except LabdError as error:
            call.note(f"netboot of {served['target']}: {error.message}")
    return again
