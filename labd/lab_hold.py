"""Being a console's only writer from Python: a connection on which `serial hold` runs for as long as it is open.

For `Console.hold`, which asks before each send whether it is still held: a console that somebody took over, or whose
daemon went away, is held by nobody, and whoever believes otherwise would type into another's work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labd.client import reply_of
from labd.errors import Busy, LabdError, Unreachable

if TYPE_CHECKING:
    from labd.client import Client


class Grip:
    """The console `name`, held by `client`."""

    def __init__(self, name: str, client: Client) -> None:
        self.name = name
        self.client = client
        self._lost: LabdError | None = None

    def check(self) -> None:
        """Raise Busy once somebody took the console over, Unreachable once the daemon that knew of it went away."""
        if self._lost is None and self.client.own:  # a forked process leaves its parent's answers alone
            self._lost = self._look()
        if self._lost is not None:
            raise type(self._lost)(self._lost.message, hint=self._lost.hint)

    def close(self) -> None:
        """Let go."""
        self.client.close()

    def _look(self) -> LabdError | None:
        try:
            for answer in self.client.arrived():
                if "method" not in answer:
                    reply_of(answer)
                    return Busy(f"{self.name} is held no more")
        except Unreachable as error:
            return Unreachable(
                f"{self.name} is held no more: {error.message}, so others may have typed", hint="hold it again"
            )
        except LabdError as error:
            return error
        return None
