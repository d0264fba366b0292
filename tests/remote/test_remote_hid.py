"""Typing on a target that is wired to another machine: words, command files of here, and what is kept there."""

from collections.abc import Iterator

import pytest

from tests.helpers.fake_rig import FakeRig
from tests.remote.far import Far


@pytest.fixture
def rig(far: Far) -> Iterator[FakeRig]:
    """The input rig of `dut`, plugged into the other machine."""
    fake = FakeRig()
    with far.near.lab.open("a") as file:
        file.write(f'[targets.dut.hid]\ncmd = "hidrig -d {fake.path} --hold-ms 1 --gap-ms 1"\n')
    yield fake
    far.near("hid", "stop", "dut")
    fake.close()


def test_words_command_files_and_stdin_of_here_are_typed_there(far: Far, rig: FakeRig) -> None:
    assert far.near.out("hid", "send", "-t", "dut", "type", "a") == "dut: type 1 character\n"
    (far.near.root / "keys.txt").write_text("key b\n")
    assert far.near.out("hid", "send", "run", "keys.txt") == "OK (1 command)\n"
    assert far.near.out("hid", "send", "run", "-", stdin=b"key c\n") == "OK (1 command)\n"
    assert [report[10:12] for report in rig.hid[::2]] == ["04", "05", "06"]
    err = far.near("hid", "send", "run", "none.txt", check=4).stderr.decode()
    assert "none.txt" in err and "on this machine" in err
    (far.near.root / "keys.txt").write_text("key bee\n")
    assert "line 1: no key 'bee'" in far.near("hid", "send", "run", "keys.txt", check=2).stderr.decode()


def test_what_is_kept_is_kept_there(far: Far, rig: FakeRig) -> None:
    kept = far.near.json("hid", "serve", "dut")
    assert [row["pid"] for row in far.bench.json("daemons")["kept"]] == [kept["pid"]]
    far.near("hid", "send", "down", "shift")
    far.near("hid", "send", "key", "a")
    assert rig.hid[1] == "0101080200040000000000"
    assert far.near.out("hid", "show", "dut").splitlines()[-1] == f"serve\tkept, pid {kept['pid']}"
