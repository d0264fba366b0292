"""What is to be served, from the lab's words: addresses, files for each kind of client, dnsmasq's command and words."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from labd.errors import NotFound, Refused, Usage
from labd.netboot import dnsmasq, tree
from labd.netboot.plan import Plan, boots, lacking, plan
from labd.netboot.probe import MAC, discover, offer


def wanted(root: Path, **fields: object) -> Plan:
    return plan("dut", {"interface": "en7", "tftp_root": str(root), **fields}, {"HOME": str(root)}, str(root))


@pytest.mark.parametrize(
    ("host_ip", "first", "last"),
    [("192.168.99.1", "192.168.99.100", "192.168.99.199"), ("10.0.3.100", "10.0.3.10", "10.0.3.99"),
     ("10.0.3.254", "10.0.3.100", "10.0.3.199")],
)  # fmt: skip
def test_boards_get_addresses_of_our_network_but_not_ours(tmp_path: Path, host_ip: str, first: str, last: str) -> None:
    found = wanted(tmp_path, host_ip=host_ip)
    assert (found.first, found.last, found.cidr) == (first, last, f"{host_ip}/24")


def test_what_the_lab_leaves_out(tmp_path: Path) -> None:
    found = wanted(tmp_path)
    assert (found.host_ip, found.http_port, found.url) == ("192.168.99.1", 80, "http://192.168.99.1")
    assert Plan(**found.as_data()) == found  # as it reaches the keeper
    assert wanted(tmp_path, tftp_root="~/").tftp_root == str(tmp_path)


@pytest.mark.parametrize(
    ("host_ip", "why"),
    [("192.168.99.0", "its network"), ("192.168.99.255", "broadcast"), ("127.0.0.1", "loopback"), ("fd00::1", "IPv4"),
     ("169.254.3.4", "themselves"), ("224.0.0.1", "no address"), ("0.0.0.0", "no address")],
)  # fmt: skip
def test_an_address_that_cannot_be_ours_is_refused(tmp_path: Path, host_ip: str, why: str) -> None:
    with pytest.raises(Usage, match=why) as raised:
        wanted(tmp_path, host_ip=host_ip)
    assert raised.value.hint == "labd netboot set -t dut --host-ip 192.168.99.1"


def test_what_is_missing_is_said_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as no_root:
        plan("dut", {"interface": "en7"}, {}, "/", "--lab x ")
    assert no_root.value.hint == "labd --lab x netboot set -t dut --tftp-root DIR"
    with pytest.raises(NotFound) as gone:
        wanted(tmp_path / "a b")
    assert gone.value.hint == f"mkdir -p '{tmp_path}/a b'"


@pytest.mark.parametrize("boot_file", ["../secret", "sub/../../x", "/etc/passwd", "a,10.0.0.1", "a\nb"])
def test_a_boot_file_that_is_not_served_is_refused(tmp_path: Path, boot_file: str) -> None:
    with pytest.raises(Usage, match="boot_file") as raised:
        wanted(tmp_path, boot_file=boot_file)
    assert raised.value.hint is not None and raised.value.hint.startswith("labd netboot set -t dut --boot-file FILE")


def test_a_boot_file_within_may_be_named_in_any_way(tmp_path: Path) -> None:
    for boot_file in ("k.img", "sub/../k.img", "..k"):
        assert wanted(tmp_path, boot_file=boot_file).boots == {"": boot_file}
    assert wanted(tmp_path, boot_file=str(tmp_path / "sub/k.img")).boots == {"": "sub/k.img"}  # as boards ask for it


def test_a_directory_that_dnsmasq_cannot_be_told_of_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Usage, match=r"tftp_root .* holds a comma") as raised:
        wanted(tmp_path / "a,b")
    assert raised.value.hint == "labd netboot set -t dut --tftp-root DIR"


def test_a_link_that_leads_out_of_what_is_served_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "tftp"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "tftp2").mkdir()
    (root / "k.img").write_text("x")
    (root / "sub/in").symlink_to("../k.img")
    assert tree.sealed(str(root)) is None
    for outside in ("/etc/passwd", str(tmp_path / "tftp2"), "/nowhere/at all"):
        (root / "sub/out").symlink_to(outside)
        with pytest.raises(Refused, match=f"{root}/sub/out is a link that leads out of tftp_root, to {outside}"):
            tree.sealed(str(root))
        (root / "sub/out").unlink()
    monkeypatch.setattr(tree, "ENTRIES", 2)
    assert "too much to look through" in (tree.sealed(str(root)) or "")


def test_files_for_each_kind_of_client(tmp_path: Path) -> None:
    assert boots("", str(tmp_path)) == {} and "has none of the usual ones" in (lacking("", str(tmp_path)) or "")
    assert "there is no k.img" in (lacking("k.img", str(tmp_path)) or "")
    (tmp_path / "menu.ipxe").write_text("#!ipxe")
    assert "no iPXE that a PXE ROM could load" in (lacking("menu.ipxe", str(tmp_path)) or "")
    for name in ("undionly.kpxe", "ipxe.efi", "k.img"):
        (tmp_path / name).write_text("x")
    assert boots("menu.ipxe", str(tmp_path)) == {"bios": "undionly.kpxe", "efi64": "ipxe.efi", "ipxe": "menu.ipxe"}
    assert boots("k.img", str(tmp_path)) == {"": "k.img"}
    assert lacking("k.img", str(tmp_path)) is None and lacking("menu.ipxe", str(tmp_path)) is None


def test_ipxe_is_never_told_to_load_itself_again(tmp_path: Path) -> None:
    (tmp_path / "undionly.kpxe").write_text("x")
    words = dnsmasq.argv(wanted(tmp_path), "dnsmasq", "/run/x", "me", "us", advertise=False)
    assert [word for word in words if word.startswith("--dhcp-boot")] == [
        "--dhcp-boot=tag:bios,tag:!ipxe,tag:!pi,undionly.kpxe"
    ]
    assert not any("ra" in word.split("=")[0] for word in words if word.startswith("--enable"))


def test_the_words_of_dnsmasqs_log(tmp_path: Path) -> None:
    (tmp_path / "up to 9").write_bytes(bytes(300))
    sent = dnsmasq.event_in(f"dnsmasq-tftp[7]: sent {tmp_path}/up to 9 to 10.0.0.9", str(tmp_path))
    assert sent == {"event": "transfer", "proto": "tftp", "file": "up to 9", "ip": "10.0.0.9", "bytes": 300}
    lines = {
        "dnsmasq-tftp[7]: file /srv/t/a b.dtb not found for 10.0.0.9": ("missing", "a b.dtb"),
        "dnsmasq-tftp[7]: failed sending /srv/t/k.img to 10.0.0.9": ("failed", "k.img"),
    }
    for line, (kind, file) in lines.items():
        assert dnsmasq.event_in(line, "/srv/t") == {"event": kind, "proto": "tftp", "file": file, "ip": "10.0.0.9"}
    assert dnsmasq.event_in("dnsmasq-tftp[7]: error 8 User aborted the transfer received from 10.0.0.9", "/") is None
    assert dnsmasq.worth_keeping("dnsmasq-dhcp[1]: 7 sent size: 9 option: 67 bootfile-name  boot.ipxe")
    assert not dnsmasq.worth_keeping("dnsmasq-dhcp[1]: 7 sent size: 4 option: 1 netmask  255.255.255.0")


@pytest.mark.parametrize(
    ("words", "vendor", "line"),
    [(("add", "52:54:00:00:00:01", "10.0.0.9", "board"), "PXEClient",
      "add\t52:54:00:00:00:01\t10.0.0.9\tboard\tPXEClient\tbios va"),
     (("add", "52:54:00:00:00:01", "10.0.0.9"), "x\ntftp\t9\t1.1.1.1\tfake",
      "add\t52:54:00:00:00:01\t10.0.0.9\t\t\tbios va"),
     (("tftp", "300", "10.0.0.9", "/srv/a b"), "", None),
     (("init",), "", None)],
)  # fmt: skip
def test_the_script_tells_one_line_whatever_a_board_calls_itself(
    tmp_path: Path, words: tuple[str, ...], vendor: str, line: str | None
) -> None:
    fifo, script = tmp_path / "it's", tmp_path / "told"
    os.mkfifo(fifo)
    script.write_text(dnsmasq.script(str(fifo)))
    reader = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    env = {"PATH": os.environ["PATH"], "DNSMASQ_VENDOR_CLASS": vendor, "DNSMASQ_TAGS": "bios va"}
    subprocess.run(["sh", str(script), *words], env=env, check=True, timeout=5)
    try:
        said = os.read(reader, 4096).decode()
    except BlockingIOError:
        said = ""
    os.close(reader)
    assert said == ("" if line is None else line + "\n")


def test_the_question_to_a_link_and_the_answers_that_count() -> None:
    asked = discover(7)
    assert asked[:4] == b"\x01\x01\x06\x00" and asked[28:34] == MAC and len(asked) >= 300
    answer = b"\x02" + asked[1:240] + b"\x35\x01\x02\x00\x36\x04\x0a\x00\x00\x01\xff"
    assert offer(answer, {7}) == "10.0.0.1"
    assert offer(answer, {8}) is None and offer(asked, {7}) is None and offer(b"", {7}) is None
    assert offer(answer[:241], {7}) is None  # cut off in an option
    assert offer(answer[:-1], {7}) == "10.0.0.1"  # without an end
    assert offer(answer.replace(b"\x35\x01\x02", b"\x35\x01\x05"), {7}) is None  # an ACK
