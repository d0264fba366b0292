"""The capture process of one screen: `python -m labd.video.worker RUNTIME NAME`, started and ended by the daemon.

It owns the camera library and is made to be lost: whatever wedges or crashes in there ends with it, and the daemon
starts another one. The main thread listens and gives a sign of life each second; the eye reads the source; each
request has a thread. It ends when its stdin does. The device's name comes by stdin, as it may hold a password.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import time
from importlib import import_module
from typing import Any

# Before OpenCV is loaded: no threads of its own on a bench that captures consoles, no chatter.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OPENCV_FFMPEG_LOGLEVEL": "-8",
               "OPENCV_LOG_LEVEL": "OFF", "OPENCV_VIDEOIO_DEBUG": "0"}  # fmt: skip

import cv2
import numpy as np

from labd.errors import LabdError, Usage
from labd.video import frame as pictures
from labd.video import names, waiting, wire
from labd.video.eye import Eye
from labd.video.sources import Source, open_source

#: Seconds between signs of life.
ALIVE_S = 1.0
#: A source that has not come back from a call for this long is wedged, seconds.
WEDGED_S = 15.0
#: Requests that may wait at once.
REQUESTS_MOST = 32


class Worker:
    """Answers the daemon. `out` is the descriptor that answers go to."""

    def __init__(self, out: int) -> None:
        self._out = out
        self._writing = threading.Lock()
        self._reading = threading.Lock()
        self._waiting: dict[int, threading.Event] = {}
        self._preview: Any = None
        self.device = ""
        self.eye = Eye(self._source, self._hear)

    def run(self) -> None:
        """Until stdin ends, or the camera wedges."""
        unpacker = wire.Unpacker()
        self._send({"news": "ready", "pid": os.getpid()})
        next_sign = time.monotonic()
        while True:
            if select.select([0], [], [], max(0.0, next_sign - time.monotonic()))[0]:
                data = os.read(0, 1 << 16)
                if not data:
                    return
                for message, body in unpacker.feed(data):
                    self._begin(message, body)
            if time.monotonic() < next_sign:
                continue
            next_sign = time.monotonic() + ALIVE_S
            if self.eye.blocked_s > WEDGED_S:
                self._send({"news": "wedged", "why": f"the camera has not answered for {self.eye.blocked_s:.0f} s"})
                return
            if self.device and not self.eye.is_alive():
                return  # its traceback is in the log
            self._send({"news": "alive", "state": self.eye.state()})

    def _begin(self, message: dict[str, Any], body: bytes) -> None:
        if "drop" in message:
            if (waiting_for := self._waiting.get(message["drop"])) is not None:
                waiting_for.set()
        elif message["do"] == "open":
            self.device = str(message["device"])
            self.eye.start()
        else:
            self._waiting[message["id"]] = threading.Event()
            threading.Thread(target=self._answer, args=(message, body), daemon=True).start()

    def _answer(self, message: dict[str, Any], body: bytes) -> None:
        number = message["id"]
        try:
            if len(self._waiting) > REQUESTS_MOST:
                raise LabdError(f"{REQUESTS_MOST} requests wait for this screen already")
            answer, data = self._do(message, body, self._waiting[number].is_set)
            self._send({"id": number, "ok": answer}, data)
        except LabdError as error:
            said = {"kind": error.name, "message": error.message, "hint": error.hint, "near": error.near}
            self._send({"id": number, "error": said})
        except Exception as error:
            self._send({"id": number, "error": {"kind": "failed", "message": f"the capture process failed: {error!r}"}})
            raise
        finally:
            self._waiting.pop(number, None)

    def _do(self, message: dict[str, Any], body: bytes, cancelled: Any) -> tuple[dict[str, Any], bytes]:
        what = message["do"]
        if what == "state":
            return self.eye.state(), b""
        if what == "know":
            self._know(message["hash"], body)
            return {}, b""
        if what == "preview":
            return self._open_preview(message), b""
        if what not in ("grab", "text"):
            raise Usage(f"a capture process can't {what}")
        wish = waiting.Wish.of(message)
        frame = waiting.wait(self.eye, wish, cancelled)
        self.eye.give_out(frame)
        if what == "text":
            return self._text(frame, message), b""
        part = frame.picture if wish.region is None else wish.region.of(frame.picture)
        encode = pictures.jpeg if message.get("format") == "jpeg" else pictures.png
        return {"frame": frame.facts()}, encode(part)

    def _text(self, frame: pictures.Frame, options: dict[str, Any]) -> dict[str, Any]:
        """What the picture says. One at a time: reading is work, and its hints are those of the last picture."""
        reading = import_module("labd.video.reading")  # only for who asks for it: its engines are large
        with self._reading:
            found: dict[str, Any] = reading.read(frame.picture, options, frame.hash)
        return {"frame": frame.facts(), **found}

    def _know(self, name: str, body: bytes) -> None:
        """Take up a picture that an earlier process of this screen gave out."""
        picture = cv2.imdecode(np.frombuffer(body, np.uint8), cv2.IMREAD_COLOR)
        if picture is not None:
            self.eye.give_out(pictures.Frame(0, 0, 0, 0, np.asarray(picture, np.uint8), name, "ok", ""))

    def _open_preview(self, message: dict[str, Any]) -> dict[str, Any]:
        from labd.video.preview import Preview

        if self._preview is None:
            self._preview = Preview(self.eye, message["title"], message["token"], message.get("port", 0))
        return {"port": self._preview.port}

    def _source(self) -> Source:
        from labd.inventory import this_machine

        listed = [] if "://" in self.device or self.device.startswith("qmp:") else this_machine().facts.video_devices()
        return open_source(names.look_up(self.device, listed or []))

    def _hear(self, kind: str, facts: dict[str, Any]) -> None:
        self._send({"news": kind, **facts})

    def _send(self, message: dict[str, Any], body: bytes = b"") -> None:
        data = memoryview(wire.pack(message, body))
        with self._writing:
            while data:
                data = data[os.write(self._out, data) :]


def main() -> None:
    """Serve until the daemon hangs up; never waits for a camera's thread."""
    out = os.dup(1)
    os.dup2(2, 1)  # a camera library's words must not come between ours
    cv2.setNumThreads(1)
    code = 0
    try:
        Worker(out).run()
    except (BrokenPipeError, json.JSONDecodeError) as error:
        print(f"the capture process ends: {error!r}", file=sys.stderr)  # noqa: T201 - its stderr is the daemon's log
        code = 1
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
