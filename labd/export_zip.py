"""A bench session as one zip file that somebody else can open anywhere: timeline, consoles, pictures, what it was.

`manifest.json` names every file with its SHA-256; `README.txt` says what they are. Nothing in it needs labd to read.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

from labd import __version__
from labd.asciicast import as_cast
from labd.export import as_jsonl, as_lines
from labd.timeline import Entry

SCHEMA = "labd-recording/1"

_README = """A recording of a bench session, made by labd {version}.

timeline.txt    everything that happened, in one order, for people
timeline.jsonl  the same for programs, one JSON object a line
consoles/       NAME.cast: each console as a terminal recording (asciicast 2; asciinema and others play it)
                NAME.raw: its exact bytes, where they were asked for
pictures/       the screen, one PNG for each picture that the timeline names
lab.json        what the lab said of the target; secrets are blanked
manifest.json   every file with its SHA-256
"""


class Bundle:
    """The zip file in the making; `bytes()` ends it."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        self.about = dict(about)
        self.files: dict[str, str] = {}
        self.buffer = io.BytesIO()
        self.zip = zipfile.ZipFile(self.buffer, "w", zipfile.ZIP_DEFLATED)
        self.when = time.localtime()[:6]

    def add(self, name: str, data: bytes) -> None:
        """Put a file in."""
        self.files[name] = hashlib.sha256(data).hexdigest()
        entry = zipfile.ZipInfo(name, self.when)
        entry.compress_type = zipfile.ZIP_STORED if name.endswith(".png") else zipfile.ZIP_DEFLATED
        entry.external_attr = 0o644 << 16
        self.zip.writestr(entry, data)

    def add_timeline(self, entries: list[Entry], encodings: Mapping[str, str]) -> None:
        """Put the timeline in, and each console as a terminal recording with the other channels as markers."""
        self.add("timeline.txt", b"".join(as_lines(entries, encodings)))
        self.add("timeline.jsonl", b"".join(as_jsonl(entries, encodings)))
        for name in encodings:
            own = [entry for entry in entries if entry.interface in ("", name)]
            if any(entry.interface for entry in own):
                title = f"{self.about['target']}.{name}"
                self.add(f"consoles/{name}.cast", b"".join(as_cast(own, encodings, title=title)))

    def add_pictures(self, entries: Iterable[Entry], directory: str) -> int:
        """Put in the pictures that entries name; how many are not kept any more."""
        missing = 0
        for name in dict.fromkeys(_pictures(entries)):
            try:
                with open(os.path.join(directory, name), "rb") as file:
                    self.add(f"pictures/{name}", file.read())
            except OSError:
                missing += 1
        return missing

    def bytes(self) -> bytes:
        """End it: README and manifest last."""
        self.add("README.txt", _README.format(version=__version__).encode())
        manifest = {"schema": SCHEMA, "labd": __version__, **self.about, "files": self.files}
        self.add("manifest.json", json.dumps(manifest, indent=2).encode() + b"\n")
        self.zip.close()
        return self.buffer.getvalue()


def _pictures(entries: Iterable[Entry]) -> Iterable[str]:
    for entry in entries:
        name = getattr(entry.item, "fields", {}).get("picture")
        if isinstance(name, str) and "/" not in name and not name.startswith("."):
            yield name
