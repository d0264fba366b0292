"""One command of a program as a shell's text has it: its words, and what the text tells of whether it runs. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

#: `always`: runs when the text runs. `on_success`: has run if the text ended with 0. `maybe`: nobody knows.
Reach = Literal["always", "on_success", "maybe"]


@dataclass(frozen=True)
class Found:
    """One command of the program in a text.

    words: as the program gets them, its name first; those whose index is in `holes` become something that the text
    does not tell. certain: it runs exactly once, whatever else happens. negated: its success is turned round (`!`).
    start, end: where it stands (characters; of the outermost word where a shell is in a shell). repeats: it may run
    more than once. decides: the text's exit code is this command's, if it ran. needed: where the text ended with 0,
    this command ran and ended with 0. whole: the text is nothing else, so that the output is this command's too.
    """

    words: tuple[str, ...]
    certain: bool
    negated: bool = False
    start: int = 0
    end: int = 0
    reach: Reach = "maybe"
    repeats: bool = False
    decides: bool = False
    needed: bool = False
    whole: bool = False
    holes: frozenset[int] = frozenset()

    def matches(self, argv: Sequence[str]) -> bool:
        """Whether words that a recorder saw can be this command; the program's own path is not compared."""
        here: set[int] = {1}  # how many of our words may be used up, after each of theirs
        for word in argv[1:]:
            here = {at + step for at in self._skip(here) if at < len(self.words)
                    for step in ((0, 1) if at in self.holes else (1,))
                    if at in self.holes or self.words[at] == word}  # fmt: skip
        return len(self.words) in self._skip(here)

    def _skip(self, places: set[int]) -> set[int]:
        """`places`, and those behind words that may become no word at all."""
        reached = set(places)
        for at in range(len(self.words)):
            if at in reached and at in self.holes:
                reached.add(at + 1)
        return reached
