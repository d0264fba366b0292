"""Reading a lab: what is wrong is named with file, line and column; a warm cache needs no parser and is never wrong."""

import os
import subprocess
import sys

import pytest

from labd.errors import LabdError, NotFound
from labd.lab import cache, load

GOOD = '[targets.pico]\ndescription = "Pi"\n[[targets.pico.serial]]\nname = "console"\ndevice = "/dev/ttyUSB0"\n'


@pytest.fixture
def env(tmp_path):
    return {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}


def lab_file(tmp_path, raw, age_s=60):
    path = tmp_path / "lab.toml"
    path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    return str(path)


def settle(monkeypatch):
    """Let every file count as old: the cache then trusts its times."""
    monkeypatch.setattr(cache, "settled", lambda found, now: True)


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("[targets.pico\nx = 1\n", ":1:14:", "]"),
        ("a = 1\nb 2\n", ":2:3:", "`=`"),
        ("a = 1\nb =\n", ":2:4:", "a value"),
        ("a = nope\n", ":1:5:", "a value"),
        ('[journal]\nkeep_mb = "1\n', ":2:13:", "quote|printable"),
        ("a = 1\na = 2\n", ":2:6:", "has no value yet"),
        ("[a]\n[a]\n", ":2:3:", "not declared yet"),
        ("= 1\n", ":1:1:", "key"),
        ("a = [1,\n", ":2:1:", "]|value"),
        ("a = {x = 1\n", ":1:11:", "}"),
        ("a = 1 2\n", ":1:7:", "nothing more on this line"),
        ('a = "\\q"\n', ":1:8:", "backslash"),
        ("a = 1\r\n\r\nb =\r\n", ":3:4:", "a value"),
    ],
)
def test_a_lab_that_does_not_parse_names_file_line_column_and_what_was_expected(tmp_path, env, text, place, expected):
    import re

    path = lab_file(tmp_path, text)
    with pytest.raises(LabdError) as caught:
        load(path, env)
    assert caught.value.exit_code == 1
    assert path + place in caught.value.message
    assert re.search(expected, caught.value.message)
    assert "expected" in caught.value.message


def test_bytes_that_are_not_utf8_are_named_with_their_place(tmp_path, env):
    path = lab_file(tmp_path, b'a = "x"\nb = "\xff"\n')
    with pytest.raises(LabdError, match=r":2:6: expected UTF-8 text, found byte 0xff"):
        load(path, env)


def test_nesting_too_deep_and_numbers_too_long_are_errors_not_tracebacks(tmp_path, env):
    for text in ("a = " + "[" * 100_000, "a = " + "9" * 6000):
        with pytest.raises(LabdError):
            load(lab_file(tmp_path, text), env)


def test_a_missing_lab_says_what_makes_one(tmp_path, env):
    with pytest.raises(NotFound) as caught:
        load(str(tmp_path / "none.toml"), env)
    assert caught.value.exit_code == 4
    assert caught.value.hint == f"labd init --path {tmp_path}/none.toml"
    with pytest.raises(NotFound) as caught:
        load(str(tmp_path / ".config/labd/lab.toml"), env)
    assert caught.value.hint == "labd init"


def test_a_dangling_link_and_a_directory_are_told_apart(tmp_path, env):
    (tmp_path / "link.toml").symlink_to("gone.toml")
    with pytest.raises(NotFound, match=r"a link to gone\.toml"):
        load(str(tmp_path / "link.toml"), env)
    with pytest.raises(LabdError, match="not a regular file"):
        load(str(tmp_path), env)
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(LabdError, match="not a regular file"):
        load(str(tmp_path / "pipe.toml"), env)


@pytest.mark.parametrize(
    ("text", "message", "near"),
    [
        ('[target.pico]\nhost = "x"\n', ":1:2: unknown key 'target' in the lab", ["targets"]),
        (GOOD + "bawd = 9600\n", ":6:1: unknown key 'bawd' in targets.pico.serial[0]", ["baud"]),
        (GOOD + 'baud = "9600"\n', ":6:1: targets.pico.serial[0].baud: must be a whole number, without quotes", []),
        (GOOD + "baud = 0\n", ":6:1: targets.pico.serial[0].baud: must be from 50 to 20000000 baud, not 0", []),
        (GOOD + 'parity = "evn"\n', ":6:1:", ["even"]),
        (GOOD + "baud = true\n", ":6:1:", []),
        ('[targets."a b"]\n', ":1:2: 'a b' cannot be a name", []),
        ('[targets."../x"]\n', ":1:2:", []),
        ('[[targets.pico.serial]]\ndevice = "/dev/x"\n', ":1:3: targets.pico.serial[0]: name is missing", []),
        ('[[targets.p.serial]]\nname = "c"\ndevice = "ttyUSB0"\n', ":3:1:", []),
        ('[[targets.p.serial]]\nname = "c"\ndevice = "lopback:uboot"\n', "did you mean loopback:?", []),
        (GOOD + GOOD.split("\n", 2)[2], ":7:1: targets.pico.serial: there are two interfaces named 'console'", []),
        ('[targets.p]\nhost = "bensh1"\n[hosts.bench1]\nssh = "x"\n', ":2:1: targets.p.host: no host", ["bench1"]),
        ('[hosts.local]\nssh = "x"\n', ":1:2: hosts.local", []),
        ('[policy]\nlevel = "benhc"\n', ":2:1:", ["bench"]),
        ("targets = 3\n", ":1:1: targets must be a table", []),
        ('[targets.p]\nserial = "x"\n', ":2:1:", []),
        ('[targets.p.netboot]\nhttp_port = "80"\n', "whole number, without quotes", []),
        ('[targets.p.netboot]\nhost_ip = "192.0.2"\n', "IP address", []),
        ('targets = { p = { power = { cycl_cmd = "x" } } }\n', ":1:29: unknown key 'cycl_cmd'", ["cycle_cmd"]),
        ("[journal]\nkeep_mb = 0\n", ":2:1:", []),
        ("a = 1\n[x]\n", "(and 1 more)", []),
    ],
)
def test_what_the_schema_does_not_allow_is_named_with_its_place_and_the_nearest_key(tmp_path, env, text, message, near):
    path = lab_file(tmp_path, text)
    with pytest.raises(LabdError) as caught:
        load(path, env)
    assert message in caught.value.message
    assert path in caught.value.message
    if near:
        assert caught.value.near[0] == near[0]


def test_a_byte_order_mark_and_crlf_are_read(tmp_path, env):
    lab = load(lab_file(tmp_path, b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()), env)
    assert lab.serial("pico")[0]["device"] == "/dev/ttyUSB0"


def test_defaults_are_filled_in_and_a_power_button_is_not_pressed_by_opening(tmp_path, env):
    lab = load(lab_file(tmp_path, GOOD + 'eol = "crlf"\npower_button = true\n'), env)
    line = lab.serial("pico")[0]
    assert (line["baud"], line["bytesize"], line["parity"], line["stopbits"]) == (115200, 8, "none", 1)
    assert line["eol"] == "\r\n" and line["assert_dtr"] is False and line["host"] == "local"
    assert lab.journal == {"keep_mb": 512, "keep_days": 90}


def test_the_second_reading_needs_no_parser(tmp_path, env, monkeypatch):
    settle(monkeypatch)
    path = lab_file(tmp_path, GOOD)
    first = load(path, env)
    program = (
        "import sys, os; from labd.lab import load; lab = load(sys.argv[1], dict(os.environ)); "
        "heavy = {'tomllib', 'tomlkit', 're', 'json', 'typing', 'hashlib', 'dataclasses', 'enum', 'pathlib'}; "
        "print(sorted(heavy & set(sys.modules)), lab.digest, lab.serial('pico')[0]['device'])"
    )
    ran = subprocess.run([sys.executable, "-c", program, path], env=env, capture_output=True, text=True, timeout=30)
    assert ran.stdout == f"[] {first.digest} /dev/ttyUSB0\n", ran.stderr


def test_any_change_of_the_file_is_seen(tmp_path, env, monkeypatch):
    settle(monkeypatch)
    path = lab_file(tmp_path, GOOD)
    load(path, env)
    (tmp_path / "new").write_text(GOOD.replace("USB0", "USB9"))
    was = os.stat(path)
    os.utime(tmp_path / "new", ns=(was.st_atime_ns, was.st_mtime_ns))
    os.replace(tmp_path / "new", path)
    assert load(path, env).serial("pico")[0]["device"] == "/dev/ttyUSB9"
    with open(path, "r+") as file:
        file.write(GOOD.replace("USB0", "USB7"))
    assert load(path, env).serial("pico")[0]["device"] == "/dev/ttyUSB7"


def test_a_file_that_changed_a_moment_ago_is_not_cached():
    found = os.stat_result(
        (0o100644, 1, 1, 1, 0, 0, 10, 0, 0, 0), {"st_mtime_ns": 10**18 + 7, "st_ctime_ns": 10**18 + 7}
    )
    assert not cache.settled(found, 10**18 + 20_000_000)
    assert cache.settled(found, 10**18 + 200_000_000)
    coarse = os.stat_result((0o100644, 1, 1, 1, 0, 0, 10, 0, 0, 0), {"st_mtime_ns": 10**18, "st_ctime_ns": 10**18})
    assert not cache.settled(coarse, 10**18 + 1_500_000_000)


def test_a_broken_or_foreign_cache_file_is_a_miss(tmp_path, env, monkeypatch):
    settle(monkeypatch)
    path = lab_file(tmp_path, GOOD)
    load(path, env)
    [kept] = (tmp_path / ".local/state/labd/labcache").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    raw = kept.read_bytes()
    for bad in (b"", raw[:-1], raw[:4] + b"x" + raw[5:], b"\0" * 40):
        kept.write_bytes(bad)
        assert load(path, env).serial("pico")[0]["device"] == "/dev/ttyUSB0"
    kept.write_bytes(raw)
    kept.chmod(0o666)
    assert cache.recall(path, cache.key_of(path), env) is None


def test_an_invalid_lab_is_never_cached(tmp_path, env, monkeypatch):
    settle(monkeypatch)
    path = lab_file(tmp_path, "[policy]\nlevel = 3\n")
    for _ in range(2):
        with pytest.raises(LabdError):
            load(path, env)


def test_a_state_directory_that_cannot_be_written_is_no_error(tmp_path, env, monkeypatch):
    settle(monkeypatch)
    (tmp_path / ".local").write_text("in the way")
    assert load(lab_file(tmp_path, GOOD), env).targets["pico"]["description"] == "Pi"
