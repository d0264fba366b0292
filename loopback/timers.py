"""The timers of one state: what comes by itself after a time without input, or since the state was entered. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .dutmodel import After


class Timers:
    """Counts from `now`, the moment the state was entered; all times are in seconds on the board's clock."""

    def __init__(self, specs: Sequence[After], now: float) -> None:
        self._specs = specs
        self._base = [now + spec.ms / 1000 for spec in specs]
        self._fired = [0] * len(specs)

    def _due(self, number: int, touched: float) -> float | None:
        spec = self._specs[number]
        if self._fired[number] and not spec.repeat:
            return None
        return self._base[number] if spec.since == "enter" else max(self._base[number], touched + spec.ms / 1000)

    def soonest(self, touched: float) -> float | None:
        """When the next one is due if no more input comes after `touched`; None if none is left."""
        due = [self._due(number, touched) for number in range(len(self._specs))]
        return min((when for when in due if when is not None), default=None)

    def fire(self, now: float, touched: float) -> Iterator[tuple[After, int]]:
        """Those that are due, each with how often it has fired by now."""
        for number, spec in enumerate(self._specs):
            due = self._due(number, touched)
            if due is not None and due <= now:
                self._fired[number] += 1
                self._base[number] = now + spec.ms / 1000
                yield spec, self._fired[number]
