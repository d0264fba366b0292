"""What the daemon tells a keeper at its start, and the words in which the keeper reports: JSON lines on two pipes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import IO, TYPE_CHECKING, Any, Protocol

from labd import errors
from labd.netboot.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Mapping


class Process(Protocol):
    """As much of a subprocess.Popen as is needed of one that the shim has started."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None

    def poll(self) -> int | None:
        """Its exit code, None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, when it has ended. Raises subprocess.TimeoutExpired."""

    def terminate(self) -> None:
        """SIGTERM."""

    def kill(self) -> None:
        """SIGKILL."""


@dataclass(frozen=True)
class Orders:
    """`uid` is the user that serves the files; `who` is told to whoever finds the interface taken; `set_words` is the
    command that changes the target's network boot, for hints."""

    plan: Plan
    dnsmasq: str
    uid: int
    who: str
    set_words: str

    def as_data(self) -> dict[str, Any]:
        """For the wire."""
        return asdict(self)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Orders:
        """From the wire."""
        return cls(**{**data, "plan": Plan(**data["plan"])})


def failure(error: errors.LabdError) -> dict[str, Any]:
    """An error as a report."""
    return {"report": "failed", "type": type(error).__name__, "message": error.message, "hint": error.hint}


def raised(report: Mapping[str, Any]) -> errors.LabdError:
    """The error that a report of failure means."""
    kind = getattr(errors, str(report.get("type")), errors.LabdError)
    found: errors.LabdError = kind(str(report.get("message")), hint=report.get("hint"))
    return found
