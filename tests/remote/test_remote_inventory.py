"""Discover, doctor and configure over machines, over a real sshd."""

import tomllib

from tests.remote.far import Far


def test_the_doctor_asks_the_machine_that_a_channel_is_wired_to(far: Far):
    far.lab(extra='[targets.dut.power]\nhost = "local"\ncycle_cmd = "nosuch"\n')
    found = far.near.json("doctor", "dut", check=1)
    by = {(row["host"], row["target"], row["channel"]): row for row in found["rows"]}
    assert by[(None, "dut", "power")]["status"] == "missing" and by[("far", "dut", "serial")]["status"] == "ok"
    assert (None, "-", "machine") in by and ("far", "-", "machine") in by, "both machines are looked at"
    text = far.near("doctor", check=1).stdout.decode()
    assert "dut, on host far" in text and "\nhost far\n" in text and "this machine (" in text
    alone = far.near.json("doctor", "--host", "far")
    assert {row["channel"] for row in alone["rows"]} == {"serial", "machine"}


def test_configure_proposes_what_another_machine_has_in_the_lab_of_this_one(far: Far):
    proposal = far.near.json("configure", "new", "--host", "far")
    assert tomllib.loads(proposal["block"])["targets"]["new"]["host"] == "far"
    assert proposal["commands"][0] == "labd target add new --host far"
    far.lab(extra="[targets.here]\n")
    again = far.near.json("configure", "here", "--host", "far")
    block = tomllib.loads(again["block"])["targets"]["here"]
    assert "host" not in block and block["serial"][0]["host"] == "far"
    assert all(command.endswith(" --host far") for command in again["commands"])
    assert "serial" in far.near.json("discover", "--host", "far")
    assert b"no host 'fra'" in far.near("configure", "new", "--host", "fra", check=4).stderr
