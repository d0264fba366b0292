"""`labd setup`: put labd, and what it needs of the system, on this machine or on a host of the lab."""

from __future__ import annotations

from labd.operations.model import Operation, Param

LATER = "setup arrives with a later version; until then, install the package on that machine with its own pip or uv"

OPERATIONS = (
    Operation(
        ("setup",),
        "install labd and what it needs, here or on a host of the lab",
        effect="admin",
        stays=True,
        params=(
            Param("host", "a machine of the lab, over ssh; a target is no host", flags=("-H", "--host"),
                  complete="host"),
            Param("user_only", "only labd itself, its helpers and its skills: leave out what needs root",
                  kind="switch", flags=("--user-only",), default=False),
        ),
        missing=LATER,
        doc="Builds from the clone that it is run in, so that a change of the code gets there too. Besides labd it "
        "sees to the groups that may open serial ports and video devices, to OCR and to network boot; these need root, "
        "and --user-only leaves them as they are.",
        examples=(
            ("labd setup", "this machine, all of it"),
            ("labd setup --user-only --host bench1", "bring a change of labd's code to bench1, without root"),
        ),
    ),
)  # fmt: skip
