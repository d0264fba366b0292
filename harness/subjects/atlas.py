"""The kind `atlas`: a program that is a folder, answers from the tables in it, and has no state that an agent could
change. What it said is in the record and in the answer; the folder is its build."""

from pathlib import Path

from harness import files
from harness.subjects._kind import Kind


class Atlas(Kind):
    """Questions and answers."""

    def build(self, program: str) -> str:
        """One digest of the program, its modules and its tables."""
        return files.tree_digest(Path(program).resolve().parent)


KIND = Atlas
