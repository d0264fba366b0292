"""`labd setup`: put labd, and what it needs of the system, on this machine or on a host of the lab.

Shows what it would do; does it when told to by --yes, on the caller's own terminal, so that sudo can ask.
"""

from __future__ import annotations

import os

from labd.errors import LabdError, NotFound, nearest
from labd.operations.model import Answer, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args
    from labd.setup_plan import Command, Step


def setup(call: Call, args: Args) -> Answer:
    """The steps, done where that was asked for; exit 1 when a step that was to be done is not."""
    if _away(call, args):
        from labd import remote_setup

        data, code = remote_setup.setup(call, args)
        text = _text(data).replace("labd setup --yes", f"labd setup --host {args.host} --yes")
        return Answer(data, code=code, text=text)
    steps = _steps(call, args)
    wanted = [step for step in steps if step.commands and (step.name in args.only if args.only else
              step.state == "needed")]  # fmt: skip
    failed: dict[str, str] = {}
    if args.yes:
        for step in wanted:
            call.note(f"{step.name}: {step.detail}")
            failed[step.name] = _do(call, step)
        steps = _steps(call, args)
        failed = {step.name: failed[step.name] or "its commands ended well, and it is still not done"
                  for step in steps if step.name in failed and step.state in ("needed", "optional")}  # fmt: skip
    rows = [_row(call, step, failed.get(step.name)) for step in steps]
    data = {
        "steps": rows,
        "done": args.yes,
        "after": [step.after for step in _behind(args, wanted, steps) if step.after],
    }
    return Answer(data, code=1 if failed else 0, text=_text(data))


def _steps(call: Call, args: Args) -> list[Step]:
    from labd import inventory, setup_plan

    steps = setup_plan.plan(inventory.this_machine(), call.env, clone=_clone(call.cwd), user_only=args.user_only)
    names = [step.name for step in steps]
    for name in args.only or ():
        if name not in names:
            raise NotFound(
                f"no step {name!r}; there is {', '.join(names)}", near=nearest(name, names), hint="labd setup"
            )
    return [step for step in steps if not args.only or step.name in args.only]


def _behind(args: Args, wanted: list[Step], steps: list[Step]) -> list[Step]:
    """The steps of which a person still has something to do."""
    return wanted if args.yes else [step for step in steps if step.state in ("yours", "needed")]


def _away(call: Call, args: Args) -> bool:
    """Whether it is another machine that is to be set up. Raises NotFound for one that the lab does not know."""
    from labd.lab.hosts import is_here

    if args.host in (None, "local"):
        return False
    return not is_here(args.host, call.lab().host(args.host))


def _clone(cwd: str) -> str | None:
    """The checkout of labd that the caller stands in, if any."""
    import tomllib

    try:
        with open(os.path.join(cwd, "pyproject.toml"), "rb") as file:
            name = tomllib.load(file).get("project", {}).get("name")
    except (OSError, tomllib.TOMLDecodeError):
        return None
    return cwd if name == "labd" and os.path.isdir(os.path.join(cwd, "labd")) else None


def _do(call: Call, step: Step) -> str:
    """Run a step's commands; what failed. One that fails ends the step, but for packages, which are independent."""
    from labd import shim

    failures = []
    for command in step.commands:
        argv = _argv(call, step, command)
        try:
            code = shim.run_attached(argv, call, stdin=command.stdin, stdout=2)
            failure = f"{' '.join(argv)} ended with exit code {code}" if code else ""
        except LabdError as error:
            failure = error.message
        if failure:
            failures.append(failure)
            call.note(failure)
        if failure and step.name != "packages":
            break
    return "; ".join(failures)


def _argv(call: Call, step: Step, command: Command) -> list[str]:
    """A command as it is run: by sudo where it needs root and we are not; sudo can ask on a terminal only."""
    from labd.platform.inventory import this_account

    if not step.root or this_account().root:
        return command.argv
    return ["sudo", *([] if call.stdin_tty else ["-n"]), *command.argv]


def _row(call: Call, step: Step, failed: str | None) -> dict[str, Any]:
    return {
        "name": step.name,
        "state": "failed" if failed else step.state,
        "detail": f"{failed}; {step.detail}" if failed else step.detail,
        "root": step.root,
        "commands": [{"argv": _argv(call, step, command), "stdin": command.stdin} for command in step.commands],
        "after": step.after,
    }


def _text(data: dict[str, Any]) -> str:
    import shlex

    lines = []
    for row in data["steps"]:
        lines.append(f"{row['state']:<9} {row['name']:<9} {row['detail']}")
        for command in row["commands"]:
            lines.append(f"{'':<19} {shlex.join(command['argv'])}{' < what follows' if command['stdin'] else ''}")
            lines += [f"{'':<19} | {line}".rstrip() for line in (command["stdin"] or "").splitlines()]
    lines += [f"then: {after}" for after in data["after"]]
    open_steps = any(row["state"] == "needed" for row in data["steps"])
    if not data["done"]:
        lines.append("nothing was done; labd setup --yes does what is needed, --only NAME --yes one step" if open_steps
                     else "nothing is needed, and nothing was done")  # fmt: skip
    return "\n".join(lines)


OPERATIONS = (
    Operation(
        ("setup",),
        "install labd and what it needs, here or on a host of the lab",
        effect="admin",
        acting=("yes",),
        where="client",
        stays=True,
        params=(
            Param("yes", "do it; without this, only show what would be done", kind="switch", flags=("--yes",),
                  default=False),
            Param("only", "this step alone; may be repeated", flags=("--only",), repeat=True, metavar="STEP"),
            Param("host", "a machine of the lab, over ssh; a target is no host", flags=("-H", "--host"),
                  complete="host"),
            Param("user_only", "only labd itself, its helpers and its skills: leave out what needs root",
                  kind="switch", flags=("--user-only",), default=False),
        ),
        handler=setup,
        doc="Shows each step with its commands, and does what is needed when --yes is given; doing it twice does it "
        "once. Builds from the clone that it is run in, so that a change of the code gets there too. Besides labd it "
        "sees to packages, to the groups that may open serial ports and video devices, and to udev rules; these need "
        "root, and --user-only leaves them as they are. Optional steps are done where --only names them.",
        examples=(
            ("labd setup", "what this machine lacks, and the commands that would mend it"),
            ("labd setup --yes", "this machine, all of it"),
            ("labd setup --only boards --yes", "what plays virtual boards, which is large"),
            ("labd setup --user-only --host bench1 --yes", "bring a change of labd's code to bench1, without root"),
        ),
    ),
)  # fmt: skip
