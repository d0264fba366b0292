"""An input device that writes down what it is told, for the tests of the player."""

from collections.abc import Collection, Sequence

from labd.errors import Unreachable


class FakeDevice:
    """`log` has what happened in order; `fails_at` is the call at which it is gone."""

    implementation = "fake"
    most_keys = 6
    lacks = frozenset({0x32})

    def __init__(self, fails_at: int | None = None) -> None:
        self.log: list[tuple[object, ...]] = []
        self.fails_at = fails_at

    def _note(self, *what: object) -> None:
        if self.fails_at == len(self.log):
            self.fails_at = None
            raise Unreachable("it is gone")
        self.log.append(what)

    def keys(self, held: Sequence[int], before: Sequence[int]) -> None:
        self._note("keys", *held)

    def buttons(self, held: Collection[str], before: Collection[str]) -> None:
        self._note("buttons", *sorted(held))

    def move(self, dx: int, dy: int, held: Collection[str]) -> None:
        self._note("move", dx, dy, *held)

    def point(self, x: int, y: int, held: Collection[str]) -> None:
        self._note("point", x, y, *held)

    def scroll(self, notches: int, held: Collection[str]) -> None:
        self._note("scroll", notches)

    def release_all(self) -> None:
        self._note("release all")

    def ping(self) -> None:
        self._note("ping")

    def ready(self) -> None:
        pass

    def settled(self) -> None:
        pass
