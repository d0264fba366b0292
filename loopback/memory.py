"""What a simulated board remembers, and so what the fields of its texts stand for.

Variables (`set`) and environment (`setenv`) last until the next boot; `saveenv` carries the environment over it.
Pure but for the clock it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .dutmodel import Dut, Respond
from .flood import Flood
from .template import Lookup

#: What texts can say of the last file transfer, before there was one.
TRANSFER: dict[str, object] = {"file_bytes": 0, "file_sha256": "", "retries": 0, "result": "none"}


class Memory:
    """The memory of one board. `flood` is the generator of the current state, if it has one."""

    def __init__(self, dut: Dut, clock: Callable[[], float]) -> None:
        self._dut = dut
        self._clock = clock
        self._saved = dict(dut.env)
        self._born = clock()
        self.env = dict(dut.env)
        self.variables = dict(dut.variables)
        self.boots = 0
        self.line = ""
        self.status = 0
        self.flood: Flood | None = None
        self.transfer: dict[str, object] = {}

    def boot(self) -> None:
        """Count the boot, forget what was not saved."""
        self.boots += 1
        self._born = self._clock()
        self.variables = dict(self._dut.variables)
        self.env = dict(self._saved)
        self.line, self.status = "", 0

    @property
    def uptime(self) -> float:
        """Seconds since the last boot."""
        return self._clock() - self._born

    def look(self, name: str, arg: str) -> object:
        """The value of the field {name:arg}; the DUT file was checked, so there is one."""
        if name in self.variables:
            return self.variables[name]
        if name == "text":
            return self._dut.texts[arg].render(self.look)
        if name == "env":
            return self.env.get(arg, "") if arg else "\n".join(f"{k}={v}" for k, v in sorted(self.env.items()))
        flood = self.flood
        values: dict[str, object] = {
            "line": self.line,
            "word": (self.line.split() or [""])[0],
            "boots": self.boots,
            "uptime": f"{self.uptime:.2f}",
            "kernel_time": f"{self.uptime:12.6f}",
            "status": self.status,
            "sent": flood.sent if flood else 0,
            **TRANSFER,
            **self.transfer,
            "rate_now": (flood.rate or "full speed") if flood else 0,
        }
        return values[name]

    def look_with(self, extra: Mapping[str, object]) -> Lookup:
        """`look` with `extra` names before all others: the groups of a match, a counter."""

        def look(name: str, arg: str) -> object:
            if name == "env" and arg in extra:
                return self.env.get(str(extra[arg]), "")
            if name not in extra:
                return self.look(name, arg)
            value = extra[name]
            return format(value, arg) if arg and isinstance(value, int) else value

        return look

    def parameter(self, name: str) -> str:
        """What a shell puts in the place of $name."""
        return str(self.status) if name == "?" else self.env.get(name, "")

    def store(self, spec: Respond, look: Lookup) -> None:
        """What an answer changes in memory."""
        for name, value in spec.set:
            self.variables[name] = value.render(look)
        for key, value in spec.setenv:
            self.env[key.render(look)] = value.render(look)
        if spec.unsetenv:
            self.env.pop(spec.unsetenv.render(look), None)
        if spec.saveenv:
            self._saved = dict(self.env)
