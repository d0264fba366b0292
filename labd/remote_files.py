"""The files of a call that runs on another machine: read here and sent along, written there and brought back.

Which parameters are files, and which way they go, the table of operations says (`Param.ships`). There the call works
in a directory of its own, so what it says of its files is turned back into what the caller wrote.
"""

from __future__ import annotations

import os

from labd import paths
from labd.errors import LabdError, NotFound, Usage
from labd.jsonlight import dumps
from labd.lab.model import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args, Operation, Param

#: Bytes of a file that are held in memory at once.
PIECE = 1 << 18


class Shipment:
    """What one call takes along and brings back. Raises Usage, NotFound or LabdError for files that can't be."""

    def __init__(self, op: Operation, args: Args, call: Call) -> None:
        self.call = call
        self.args = args
        self.sent: dict[str, str] = {}
        """Name there → path here of each file that goes there."""
        self.wanted: dict[str, str] = {}
        """Name there → path here of each file that the call was told to write."""
        self.words: dict[str, str] = {}
        """What the caller wrote → the name there."""
        self.params = [param for param in op.params if param.ships]
        for param in self.params:
            for word in _files(param, args):
                self._take(word, way_of(param, args))

    @property
    def any(self) -> bool:
        """Whether the call has to do with files at all, and so needs a directory there."""
        return bool(self.params)

    def _take(self, word: str, way: str) -> None:
        if word == "-" or word in self.words:
            return  # stdin or stdout
        path = paths.expand(word, self.call.env, self.call.cwd)
        name = self._free(os.path.basename(path))
        self.words[word] = name
        if way == "in":
            self.sent[name] = path
            _readable(word, path)
        else:
            self.wanted[name] = path
            _writable(word, path, fresh=way == "into")

    def _free(self, name: str) -> str:
        """`name` in the directory there; two files of one name can't both be."""
        if name in self.words.values():
            raise Usage(f"two files are called {name}; they go to another machine, where they need different names")
        return name

    def listing(self) -> list[dict[str, Any]]:
        """Name and size of each file to send, as they are announced."""
        return [{"name": name, "size": os.path.getsize(path)} for name, path in self.sent.items()]

    def pieces(self, size_of: dict[str, int]) -> Iterator[bytes]:
        """The bytes of the files to send, in that order. Raises LabdError when one is not as long as it was."""
        for name, path in self.sent.items():
            left = size_of[name]
            with open(path, "rb") as file:
                while left:
                    piece = file.read(min(PIECE, left))
                    if not piece:
                        raise LabdError(f"{path} became shorter while it was sent; nothing ran")
                    left -= len(piece)
                    yield piece

    def there(self, work: str) -> dict[str, Any]:
        """The values of the call's parameters as they are there, files by their path in the directory `work`."""
        moved = {word: os.path.join(work, name) for word, name in self.words.items()}
        values = dict(vars(self.args))
        for param in self.params:
            value = values.get(param.name)
            values[param.name] = (
                [moved.get(w, w) for w in value] if isinstance(value, list) else moved.get(str(value), value)
            )
        return values

    def said(self, work: str, lab: str) -> Callable[[bytes], bytes]:
        """What turns words about files there, and about the slice, into words about files here."""
        home = self.call.cwd.rstrip("/") or "/"
        pairs = [(os.path.join(work, name), path) for name, path in {**self.sent, **self.wanted}.items()]
        pairs += [(work, home), (lab, self.call.lab_path)] if work else [(lab, self.call.lab_path)]
        found = [(there.encode(), _as_said(here, self.call.json)) for there, here in pairs]

        def back(data: bytes) -> bytes:
            for there, here in found:
                data = data.replace(there, here)
            return data

        return back

    def arrive(self, name: str, pieces: Iterator[bytes]) -> None:
        """Put a file that came back where it belongs. Raises LabdError when it can't be written."""
        from labd import outfile

        path = self.wanted.get(name)
        if path is not None:
            outfile.write(self.call, path, pieces)
            return
        path = _unused(os.path.join(self.call.cwd, name))
        if os.path.dirname(name):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        outfile.write(self.call, path, pieces)
        if os.path.basename(path) != os.path.basename(name):
            self.call.note(f"{name} was there already, so what came is {os.path.basename(path)}")


def way_of(param: Param, args: Args) -> str:
    """Where a parameter's files go: `in` to the other machine, `out` from it, `into` from it beside what is here."""
    if param.ships == "script":
        return "in"
    if param.ships == "direction":
        return "in" if args.direction == "send" else "into"
    return param.ships


def _files(param: Param, args: Args) -> list[str]:
    """The words of a parameter that are files."""
    words = _words(vars(args).get(param.name))
    if param.ships == "script":
        return words[1:2] if len(words) == 2 and words[0].lower() == "run" else []
    return words


def _words(value: Any) -> list[str]:
    return [word for word in value if word] if isinstance(value, list) else [value] if value else []


def _readable(word: str, path: str) -> None:
    if not os.path.exists(path):
        raise NotFound(f"no file {word} on this machine; nothing was sent", hint=f"ls {quoted(os.path.dirname(path))}")
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        raise Usage(f"{word} is not a file that can be read", hint=f"ls -ld {quoted(path)}")


def _writable(word: str, path: str, *, fresh: bool) -> None:
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise NotFound(f"no directory {folder} on this machine; nothing was done", hint=f"mkdir -p {quoted(folder)}")
    if fresh and os.path.lexists(path):
        raise LabdError(f"{word} is there already; nothing was received", hint="name a new file, or remove it")
    if os.path.isdir(path) or not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise LabdError(f"{word} can't be written; nothing was done", hint=f"ls -ld {quoted(folder)}")


def _unused(path: str) -> str:
    number, free = 0, path
    while os.path.lexists(free):
        number += 1
        free = f"{path}.{number}"
    return free


def _as_said(text: str, as_json: bool) -> bytes:
    return dumps(text)[1:-1].encode() if as_json else text.encode("utf-8", "surrogateescape")
