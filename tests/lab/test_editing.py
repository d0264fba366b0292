"""The lab file on disk: whole at every moment, one writer at a time, links and modes kept, refused edits leave it."""

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import subprocess
import sys
import tomllib

import pytest

from labd.errors import Busy, LabdError, NotFound
from labd.lab import edit, editing, reading, storage
from labd.lab.change import Add, Append, Set, Unset

LAB = '# top\n[journal]\nkeep_mb = 1  # counted\n\n[targets.pico]\ndescription = "Pi"\n'

COUNTING = """
import os, sys
from labd.lab import edit
from labd.lab.change import Set
def up(data): return [Set(("journal", "keep_mb"), data["journal"]["keep_mb"] + 1)]
for _ in range(int(sys.argv[2])):
    edit(sys.argv[1], up, dict(os.environ))
    print("done", flush=True)
"""


@pytest.fixture
def env(tmp_path):
    return {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}


@pytest.fixture
def lab(tmp_path):
    path = tmp_path / "lab.toml"
    path.write_text(LAB)
    return path


def up(data):
    return [Set(("journal", "keep_mb"), data["journal"]["keep_mb"] + 1)]


def leftovers(directory):
    return [name for name in os.listdir(directory) if name.endswith(".tmp")]


def test_an_edit_changes_its_line_and_tells_both_digests(lab, env):
    done = edit(str(lab), up, env)
    assert lab.read_text() == LAB.replace("keep_mb = 1 ", "keep_mb = 2 ")
    assert done.changed and not done.created
    assert done.before == reading.digest(LAB.encode()) and done.after == reading.digest(lab.read_bytes())
    assert leftovers(lab.parent) == []


def test_an_edit_that_changes_nothing_does_not_write(lab, env):
    was = os.stat(lab)
    done = edit(str(lab), lambda data: [Set(("journal", "keep_mb"), 1)], env)
    assert not done.changed and done.before == done.after
    assert os.stat(lab).st_ino == was.st_ino


def test_a_missing_lab_is_made_in_our_own_directory_and_nowhere_else(tmp_path, env):
    path = tmp_path / ".config/labd/lab.toml"
    done = edit(str(path), lambda data: [Add(("targets", "pico"), {})], env)
    assert done.created and done.before is None
    assert path.read_text() == editing.HEADING + "\n[targets.pico]\n"
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(LabdError, match="no directory"):
        edit(str(tmp_path / "no/where/lab.toml"), lambda data: [Add(("targets", "pico"), {})], env)


def test_a_change_that_is_refused_makes_no_file(tmp_path, env):
    def refuse(data):
        raise NotFound("no such target")

    with pytest.raises(NotFound):
        edit(str(tmp_path / ".config/labd/lab.toml"), refuse, env)
    assert not (tmp_path / ".config").exists()


def test_a_link_stays_a_link_and_a_mode_stays_a_mode(tmp_path, lab, env):
    real = tmp_path / "real"
    real.mkdir()
    lab.rename(real / "lab.toml")
    (real / "lab.toml").chmod(0o640)
    lab.symlink_to("real/lab.toml")
    edit(str(lab), up, env)
    assert lab.is_symlink() and os.readlink(lab) == "real/lab.toml"
    assert (real / "lab.toml").stat().st_mode & 0o777 == 0o640
    assert "keep_mb = 2" in lab.read_text()
    assert not leftovers(tmp_path)


def test_a_byte_order_mark_stays(lab, env):
    lab.write_bytes(b"\xef\xbb\xbf" + LAB.replace("\n", "\r\n").encode())
    edit(str(lab), up, env)
    assert (
        lab.read_bytes() == b"\xef\xbb\xbf" + LAB.replace("keep_mb = 1 ", "keep_mb = 2 ").replace("\n", "\r\n").encode()
    )


@pytest.mark.parametrize("text", ["[targets.pico\n", "[targts]\n", "[policy]\nlevel = 3\n", "a = \xff\n"])
def test_a_lab_that_does_not_parse_or_validate_is_never_rewritten(lab, env, text):
    lab.write_bytes(text.encode("latin-1"))
    was = os.stat(lab)
    with pytest.raises(LabdError):
        edit(str(lab), lambda data: [Add(("targets", "x"), {})], env)
    assert lab.read_bytes() == text.encode("latin-1") and os.stat(lab).st_ino == was.st_ino


def test_an_edit_that_would_make_an_invalid_lab_is_refused(lab, env):
    for change in (
        Set(("journal", "keep_mb"), 0),
        Set(("journal", "keep_gb"), 1),
        Append(("targets", "pico", "serial"), {"name": "x"}),
        Set(("targets", "pico", "host"), "nowhere"),
    ):
        with pytest.raises(LabdError, match="is as it was"):
            edit(str(lab), lambda data, change=change: [change], env)
    assert lab.read_text() == LAB


def test_two_writers_at_once_lose_nothing(lab, env):
    argv = [sys.executable, "-c", COUNTING, str(lab), "12"]
    writers = [subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    assert lab.read_text() == LAB.replace("keep_mb = 1 ", "keep_mb = 37 ")


def test_kill_9_leaves_an_intact_file_and_the_next_edit_sweeps_up(lab, env):
    argv = [sys.executable, "-c", COUNTING, str(lab), "100000"]
    for count in range(6):
        writer = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE)
        for _ in range(1 + count * 3):
            writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        writer.wait(timeout=10)
        writer.stdout.close()
        kept = tomllib.loads(lab.read_text())["journal"]["keep_mb"]
        assert lab.read_text() == LAB.replace("keep_mb = 1 ", f"keep_mb = {kept} ")
    (lab.parent / ".lab.toml.new.1.2.tmp").write_text("left by a killed writer")
    edit(str(lab), up, env)
    assert leftovers(lab.parent) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
def test_a_disk_that_fails_leaves_the_file_as_it_was(lab, env, monkeypatch, number, call):
    def fail(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(storage.os, call, fail)
    if call == "fsync":
        monkeypatch.setattr(storage, "sync", fail)
    with pytest.raises(LabdError, match="as it was") as caught:
        edit(str(lab), up, env)
    monkeypatch.undo()
    assert ("no space left" in caught.value.message) == (number != errno.EIO)
    assert lab.read_text() == LAB and leftovers(lab.parent) == []


@contextlib.contextmanager
def tiny_disk(path):
    """A file system of 64 KiB at `path`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", os.fsencode(path), b"tmpfs", 0, b"size=64k") != 0:
        pytest.skip(f"may not mount a tmpfs: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        libc.umount2(os.fsencode(path), 2)


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="mounting a full disk needs root on Linux")
def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, env):
    disk = tmp_path / "disk"
    disk.mkdir()
    with tiny_disk(disk):
        lab = disk / "lab.toml"
        lab.write_text(LAB)
        edit(str(lab), up, env)
        whole = lab.read_text()
        with contextlib.suppress(OSError), open(disk / "filler", "wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 4096)
        with pytest.raises(LabdError, match="no space left"):
            edit(str(lab), up, env)
        assert lab.read_text() == whole and leftovers(disk) == []
        (disk / "filler").unlink()
        edit(str(lab), up, env)
        assert "keep_mb = 3 " in lab.read_text()


def test_a_writer_that_keeps_the_lock_is_named(lab, env, monkeypatch):
    monkeypatch.setattr(storage.locked.__wrapped__, "__defaults__", (0.2,))
    with open(lab.parent / ".lab.toml.lock", "w") as holder:
        holder.write("4321\n")
        holder.flush()
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(Busy, match="process 4321 has been editing"):
            edit(str(lab), up, env)
    assert lab.read_text() == LAB


def test_an_editor_that_saves_meanwhile_loses_nothing(lab, env):
    times = []

    def while_an_editor_saves(data):
        times.append(1)
        if len(times) == 1:
            lab.write_text(LAB + "# typed by hand\n")
            os.utime(lab, ns=(1, 1))
        return up(data)

    edit(str(lab), while_an_editor_saves, env)
    assert len(times) == 2
    assert lab.read_text() == LAB.replace("keep_mb = 1 ", "keep_mb = 2 ") + "# typed by hand\n"


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written_is_named(lab, env):
    lab.parent.chmod(0o555)
    try:
        with pytest.raises(LabdError, match="may not write in"):
            edit(str(lab), up, env)
    finally:
        lab.parent.chmod(0o755)


def test_several_changes_are_one_edit(lab, env):
    def change(data):
        return [Unset(("targets", "pico", "description")), Add(("targets", "pico", "hid"), {"cmd": "x"}),
                Append(("targets", "pico", "serial"), {"name": "c", "device": "/dev/x"})]  # fmt: skip

    edit(str(lab), change, env)
    data = tomllib.loads(lab.read_text())
    assert data["targets"]["pico"] == {"hid": {"cmd": "x"}, "serial": [{"name": "c", "device": "/dev/x"}]}
    assert lab.read_text().startswith("# top\n[journal]\nkeep_mb = 1  # counted\n\n[targets.pico]\n")
