"""A small reader of a copied journal: raw bytes and events, straight from the segment files.

It reads the stored form by itself, so that a fault of the bench's own reader can't hide a fault of its writer.
`DIR/rx` and `DIR/events` hold segments `%020d.raw` named by their first byte's offset. Pure functions of a directory.
"""

from pathlib import Path
from typing import Any

from graders import parsed


def interfaces(root: Path) -> dict[tuple[str, str], Path]:
    """(target, interface) → its journal directory, wherever under `root` it lies."""
    found = sorted(path.parent for path in root.rglob("rx") if path.is_dir())
    return {(path.parent.name, path.name): path for path in found}


def benches(root: Path) -> dict[str, Path]:
    """target → the journal of what was done to it and seen of it on channels other than serial lines."""
    return {path.parent.name: path for path in sorted(root.rglob("@bench")) if path.is_dir()}


def raw(store: Path) -> bytes:
    """The bytes of a store, in order. Empty if there is none."""
    segments = sorted(store.glob("*.raw"), key=lambda path: path.name)
    return b"".join(path.read_bytes() for path in segments)


def received(directory: Path) -> bytes:
    """All that the target said on this interface."""
    return raw(directory / "rx")


def events(directory: Path, size: int | None = None) -> list[dict[str, Any]]:
    """What happened on this interface, oldest first; a torn last line is left out. `size`: only its first bytes."""
    found: list[dict[str, Any]] = []
    for line in raw(directory / "events")[:size].split(b"\n"):
        try:
            event = parsed.from_json(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            found.append(event)
    return found


def sent(directory: Path) -> bytes:
    """All that was sent to the target through the bench, by the journal's own record."""
    texts = [str(event.get("data", "")) for event in events(directory) if event.get("kind") == "tx"]
    return "".join(texts).encode("latin-1", "replace")
