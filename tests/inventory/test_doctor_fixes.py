"""Whatever a lab says, the doctor has an answer, and its fixes are commands that are understood as printed."""

import re
import shlex
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labd import doctor, doctor_machine
from labd.argv import parse
from labd.doctor import PROBLEMS, STATUSES
from labd.lab.model import Lab
from labd.lab.validate import problems
from tests.inventory.machine import FakeMachine

DEVICES = ("/dev/null", "/dev/ttyNOPE", "/etc/passwd", "loopback:uboot", "loopback:ubot", "loopback:./x.toml",
           "board:uboot-x86", "board:nosuch", "rfc2217://h:1", "socket://h:1", "/dev/a b")  # fmt: skip
HOOKS = ("true", "nosuch", "sudo nosuch", "sh -c 'cd /x && ./y'", "sh -c 'if x; then y; fi'", "a | b", "'", "",
         "~/x.sh", "/etc/passwd", "qmp cycle", "usbhub -l 1-1 cycle 2", "amt -d h cycle", "pdu -m apc -d @/x on 1",
         "shellyplug off", "hidgadget", "hidrig -d /dev/ttyNOPE", "env A=1 timeout 3 true", "relay /dev/null",
         "ch9329", "usbhub --uhubctl", "amt --password-file", "sudo", "env", "exec", "sh -c ''")  # fmt: skip
SCREENS = ("0", "USB Video", "auto", "/dev/video9", "http://u:p@h/x", "board:uboot-x86", "board:x", "./a.png", "~")
TEXTS = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), min_size=1, max_size=12)


def table(**fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


hook = st.sampled_from(HOOKS) | TEXTS
serial = st.fixed_dictionaries(
    {"name": st.sampled_from(("console", "bmc")), "device": st.sampled_from(DEVICES)},
    optional={"power_button": st.booleans(), "assert_dtr": st.booleans()},
)
targets = table(
    serial=st.lists(serial, max_size=2, unique_by=lambda line: line["name"]),
    power=table(cycle_cmd=hook, on_cmd=hook, state_cmd=hook, serial_interface=st.sampled_from(("console", "x"))),
    hid=table(cmd=hook),
    video=table(device=st.sampled_from(SCREENS) | TEXTS),
    netboot=table(
        interface=st.sampled_from(("enx1", "eth0", "enx9", "a b")),
        tftp_root=st.sampled_from(("~", "/nosuch", "/", "x y")),
        boot_file=st.sampled_from(("x", "etc/passwd", "a b")),
        host_ip=st.sampled_from(("192.168.99.1", "10.0.0.1")),
        http_port=st.sampled_from((80, 8080)),
    ),
    adb=table(serial=st.sampled_from(("A", "a b")), adb=st.sampled_from(("adb", "~/adb", "/x y/adb"))),
)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> FakeMachine:
    fake = FakeMachine(tmp_path_factory.mktemp("machine"))
    fake.adapter("/dev/null", vid="0403", serial=None, twins=("/dev/zero",), latency_ms=16)
    fake.autosuspend()
    fake.nic("enx1", carrier="0")
    fake.nic("eth0", usb=False, default=True)
    fake.camera(0, "USB Video: A")
    fake.camera(2, "USB Video: B")
    fake.usb("1-1", bDeviceClass="09", bmAttributes="a0", bMaxPower="100mA")
    fake.listens("udp", 67, 4711, "dhcpd")
    fake.runs("ModemManager", 41)
    return fake


def commands_in(fix: str) -> list[str]:
    """The commands of labd in a fix, each to its end, a comment or the next semicolon."""
    parts = [re.search(r"(?<![\w./-])labd .*", part) for part in re.split(r"; ", fix)]
    return [found[0] for found in parts if found]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(target=targets)
def test_every_lab_gets_rows_with_fixes_that_can_be_typed(machine: FakeMachine, target: dict[str, Any]) -> None:
    data = {"targets": {"pico": target}}
    broken = problems(data)
    if broken:
        return  # such a lab is refused before the doctor sees it
    bench = doctor.Bench(machine.machine, data, "/", {"HOME": "/nosuch-home", "PATH": "/bin:/usr/bin"})
    lab = Lab("/lab.toml", data, "")
    rows = doctor.examine(bench, "pico", lab.serial("pico")) + doctor_machine.check(bench, lab, None, None)
    configured = [channel for channel in target if target[channel] or channel != "serial"]
    assert {row["channel"] for row in rows if row["target"] == "pico"} == set(configured or "-")
    for row in rows:
        assert row["status"] in STATUSES and row["detail"] and "\n" not in row["detail"]
        assert row["fix"] or row["status"] not in (*PROBLEMS, "warning"), row
        for command in commands_in(row["fix"] or ""):
            words = shlex.split(command, comments=True)[1:]
            parsed = parse(words)
            assert parsed.operation is not None or parsed.wants_help, command
