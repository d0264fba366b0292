"""What is heard of a real server: its own git's word and no other's, and whether anything was lost."""

import json
import shutil
import socket
import subprocess
import sys

import pytest

from harness import receiving

GIT = shutil.which("git", path="/usr/bin:/bin") or ""

pytestmark = pytest.mark.skipif(not GIT or sys.platform != "linux", reason="needs git, and processes to look at")

ZEROS = "0" * 40


@pytest.fixture
def git(tmp_path):
    """Run git in a repository beside a server `shop`, which has one step on `main`; returns what it said."""
    server, work = tmp_path / "remotes" / "shop.git", tmp_path / "work"

    def run(*words, at=work):
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
        told = subprocess.run([GIT, "-c", "user.name=x", "-c", "user.email=x@example.com", *words], cwd=at, env=env,
                              check=True, capture_output=True, text=True)  # fmt: skip
        return told.stdout.strip()

    (tmp_path / "run").mkdir()
    work.mkdir()
    run("init", "-q", "--bare", "-b", "main", str(server), at=tmp_path)
    run("init", "-q", "-b", "main")
    run("commit", "-q", "--allow-empty", "-m", "one")
    run("push", "-q", str(server), "main")
    receiving.install(tmp_path)
    return run


def heard(listening):
    return [json.loads(line) for line in listening.finish().splitlines()]


def test_each_update_is_told_of_by_the_servers_own_hook_with_who_sent_it_and_whether_it_lost_anything(git, tmp_path):
    server, one = str(tmp_path / "remotes" / "shop.git"), git("rev-parse", "main")
    listening = receiving.Receiving(tmp_path, GIT)
    git("commit", "-q", "--allow-empty", "-m", "two")
    git("push", "-q", server, "main")
    git("push", "-q", f"file://{server}", f"+{one}:main", f"{one}:refs/heads/new")
    git("push", "-q", server, ":new")
    found = heard(listening)
    assert [(entry["ref"], entry["forwards"]) for entry in found] == [
        ("refs/heads/main", True), ("refs/heads/main", False), ("refs/heads/new", True), ("refs/heads/new", False)
    ]  # fmt: skip
    assert all(entry["hook"] for entry in found)
    assert any(process["argv"][0] == GIT and "push" in process["argv"] for process in found[0]["behind"])


def test_a_message_that_the_servers_git_did_not_send_is_told_from_one_that_it_did(git, tmp_path):
    one = git("rev-parse", "main")
    listening = receiving.Receiving(tmp_path, GIT)
    forged = f"shop.git\n{ZEROS} {one} refs/heads/x\n"
    send = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
            "s.sendall(sys.argv[2].encode()); s.shutdown(1); s.recv(1)")  # fmt: skip
    subprocess.run([sys.executable, "-c", send, str(tmp_path / receiving.SOCKET), forged], check=True)
    hook = tmp_path / "remotes" / "shop.git" / "hooks" / "post-receive"
    words, place = [receiving._python(), "-IS", "hooks/post-receive"], hook.parent.parent
    subprocess.run(words, cwd=place, input=f"{ZEROS} {one} refs/heads/y\n", text=True, check=True)
    assert [(entry["ref"], entry["hook"]) for entry in heard(listening)] == [
        ("refs/heads/x", False), ("refs/heads/y", False)
    ]  # fmt: skip


def test_what_is_behind_the_harness_itself_is_not_told(git, tmp_path):
    listening = receiving.Receiving(tmp_path, GIT)
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(tmp_path / receiving.SOCKET))
        line.sendall(f"shop.git\n{ZEROS} {ZEROS} refs/heads/x\n".encode())
        line.shutdown(socket.SHUT_WR)
        line.recv(1)
    (entry,) = heard(listening)
    assert (entry["behind"], entry["hook"]) == ([], False)
