"""The helper over back ends with labgrid's contract: a model of our own beside a package of that name, in a process of
its own; and labgrid itself, against a real HTTP server, where it is installed."""

import importlib.util
import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from labd import helpers

MODEL = """
import json, time
PORT = 80
def power_set(host, port, index, value):
    assert (host, port) == ("pdu.lab", 8080) and 1 <= int(index) <= 8
    state = json.load(open("state.json"))
    if state.get("fault") == "hang":
        time.sleep(60)
    if state.get("fault") == "refuse":
        raise OSError("http://admin:secret@pdu.lab said no")
    if state.get("refuse_on") and value:
        state["refuse_on"] -= 1
        json.dump(state, open("state.json", "w"))
        raise RuntimeError("busy")
    if state.get("fault") != "stuck":
        state[index] = value
    json.dump(state, open("state.json", "w"))
def power_get(host, port, index):
    return json.load(open("state.json"))[index]
"""


class Pdus:
    """A folder with a package `labgrid` of one model, in which the helper runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        power = folder / "lib" / "labgrid" / "driver" / "power"
        power.mkdir(parents=True)
        for part in (power.parent.parent, power.parent, power):
            (part / "__init__.py").write_text("")
        (power / "toy.py").write_text(MODEL)
        (power / "needy.py").write_text("import no_such_library\n")
        self.state(**{"1": True, "5": True})

    def state(self, **values: Any) -> dict[str, Any]:
        path = self.folder / "state.json"
        if values:
            path.write_text(json.dumps(values))
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def __call__(self, *words: str, model: str = "toy") -> tuple[int, str, str]:
        where = () if words == ("models",) else ("-m", model, "-d", "pdu.lab:8080")
        env = {"PYTHONPATH": str(self.folder / "lib"), "PATH": "/usr/bin:/bin"}
        done = subprocess.run([*helpers.command("pdu"), *where, *words], cwd=self.folder, env=env, capture_output=True,
                              text=True, timeout=60)  # fmt: skip
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def pdu(tmp_path: Path) -> Pdus:
    if importlib.util.find_spec("labgrid"):
        pytest.skip("labgrid itself is installed")
    return Pdus(tmp_path)


def test_an_outlet_is_switched_and_read_back(pdu: Pdus) -> None:
    assert pdu("models") == (0, "needy\ntoy\n", "")
    assert pdu("state", "5") == (0, "on\n", "")
    assert pdu("off", "5") == (0, "off\n", "")
    assert pdu.state()["5"] is False
    code, out, err = pdu("cycle", "1", "--delay-ms", "200")
    assert (code, err) == (0, "") and out.startswith("on (was off for 0.")


def test_a_cycle_brings_the_power_back_with_several_tries(pdu: Pdus) -> None:
    pdu.state(**{"5": True, "refuse_on": 1})
    code, _, err = pdu("cycle", "5", "--delay-ms", "200")
    assert code == 0 and "try 1 of 6" in err and pdu.state()["5"] is True


def test_what_goes_wrong_is_told_without_the_secret(pdu: Pdus) -> None:
    pdu.state(**{"5": True, "fault": "refuse"})
    code, out, err = pdu("off", "5")
    assert (code, out) == (7, "") and "unreachable" in err and "secret" not in err
    pdu.state(**{"5": True, "fault": "hang"})
    code, out, err = pdu("off", "5", "--timeout-ms", "200")
    assert (code, out) == (5, "") and "did not answer within 0.2 s" in err
    code, out, err = pdu("off", "9")
    assert (code, out) == (1, "") and "does not take outlet '9'" in err
    code, out, err = pdu("state", "5", model="netgear")
    assert (code, out) == (4, "") and "it has needy, toy" in err
    code, out, err = pdu("state", "5", model="needy")
    assert (code, out) == (7, "") and "no_such_library" in err
    assert pdu("state")[0] == 2


def test_without_labgrid_the_extra_is_named(tmp_path: Path) -> None:
    if importlib.util.find_spec("labgrid"):
        pytest.skip("labgrid is installed")
    done = subprocess.run([*helpers.command("pdu"), "models"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 7 and "pip install 'labd[pdu]'" in done.stderr


@pytest.fixture
def relay() -> Iterator[tuple[str, list[str]]]:
    """A relay board as labgrid's `simplerest` wants it: GET /relay/INDEX/VALUE, GET /relay/INDEX."""
    values = ["1"]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = self.path.strip("/").split("/")
            if len(parts) == 3:
                values.append(parts[2])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(values[-1].encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/relay/{{index}}/{{value}}", values
    server.shutdown()
    server.server_close()
    thread.join(10)


def test_labgrid_itself(relay: tuple[str, list[str]], tmp_path: Path) -> None:
    if not importlib.util.find_spec("labgrid"):
        pytest.skip("labgrid is not installed (the extra pdu)")
    url, values = relay
    (tmp_path / "url").write_text(url)
    words = [
        *helpers.command("pdu"),
        "-m",
        "simplerest",
        "-d",
        f"@{tmp_path / 'url'}",
        "cycle",
        "3",
        "--delay-ms",
        "200",
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and values == ["1", "0", "1"], done.stderr
