"""Serving as a user who is not root: sudo for what needs it, the user's own rights for the files, clear refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from labd.errors import Unreachable
from labd.netboot import link
from labd.netboot.orders import Orders
from labd.netboot.plan import plan
from labd.platform import net
from tests.netboot.conftest import NetBench, needs_namespaces

NOBODY = 65534


@needs_namespaces
def test_files_are_opened_with_the_rights_of_whoever_asked(net: NetBench) -> None:
    """The keeper as sudo would start it for the user `nobody`."""
    root, directory = net.runtime / "tftp", net.runtime / "nobody"
    for folder in (net.runtime, root, directory):  # not pytest's, which nobody but root may enter
        folder.mkdir(exist_ok=True)
        os.chmod(folder, 0o755)
    (root / "public").write_text("public")
    (root / "private").write_text("root's alone")
    os.chmod(root / "private", 0o600)
    wanted = plan("dut", {"interface": "va", "host_ip": "10.77.0.1", "tftp_root": str(root), "http_port": 8077},
                  {}, "/")  # fmt: skip
    orders = Orders(wanted, "/usr/sbin/dnsmasq", NOBODY, "dut", "labd netboot set -t dut")
    argv = ["ip", "netns", "exec", net.cable.here, sys.executable, "-m", "labd.netboot.keeper", str(directory)]
    keeper = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=net.env)
    assert keeper.stdin is not None and keeper.stdout is not None
    keeper.stdin.write(json.dumps(orders.as_data()).encode() + b"\n")
    keeper.stdin.flush()
    try:
        reports = [json.loads(keeper.stdout.readline())]
        while reports[-1]["report"] not in ("ready", "failed"):
            reports.append(json.loads(keeper.stdout.readline()))
        assert reports[-1]["report"] == "ready", reports
        net.cable.board("ip", "addr", "replace", "10.77.0.50/24", "dev", "vb")
        fetch = "import sys, urllib.request as u; print(u.urlopen('http://10.77.0.1:8077/' + sys.argv[1]).read())"
        assert b"public" in net.cable.board(sys.executable, "-c", fetch, "public").stdout
        refused = net.cable.board(sys.executable, "-c", fetch, "private", check=False)
        assert b"403" in refused.stderr and b"alone" not in refused.stdout
        tftp = ("busybox", "tftp", "-g", "-l", "/dev/null", "10.77.0.1", "-r")
        net.cable.board(*tftp, "public")
        assert net.cable.board(*tftp, "private", check=False).returncode
    finally:
        keeper.stdin.close()
        last = [json.loads(line) for line in keeper.stdout][-1]
        keeper.wait(10)
        keeper.stdout.close()
        net.cable.board("ip", "addr", "flush", "dev", "vb")
    assert last == {"report": "ended", "why": ""}
    assert net.cable.addresses() == []


@pytest.fixture
def a_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """We are no root, and PATH is one folder; `sudo` may be put there."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(
        net, "find_program", lambda name, path: str(tmp_path / name) if (tmp_path / name).exists() else None
    )
    return tmp_path


def test_without_sudo_it_says_so_and_how_to_permit_it(a_user: Path) -> None:
    with pytest.raises(Unreachable, match="need root, and there is no sudo; nothing was done") as raised:
        link.root_words()
    assert f"{sys.executable} -m labd.netboot.keeper *" in (raised.value.hint or "")


def test_sudo_that_would_ask_is_an_error_not_a_wait(a_user: Path) -> None:
    sudo = a_user / "sudo"
    sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    sudo.chmod(0o755)
    assert link.root_words() == [str(sudo), "-n", "--"]
    with pytest.raises(Unreachable, match="sudo asks for a password; nothing was done"):
        link.tool_run([str(sudo), "-n", "--", "ip", "link", "set", "va", "up"])
