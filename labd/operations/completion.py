"""`labd completion`: the scripts that have a shell complete labd's words, and how to install them.

The scripts are in `labd/shell/`; what they offer comes from `labd.completing` at each Tab.
"""

from __future__ import annotations

import os

from labd.operations.model import Answer, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from labd.call import Call
    from labd.operations.model import Args

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shell")

#: Shell → the command that installs its completion, and what that takes to be in force.
INSTALL = {
    "bash": ("echo 'eval \"$(labd completion bash)\"' >> ~/.bashrc", "in new shells"),
    "zsh": ("echo 'source <(labd completion zsh)' >> ~/.zshrc", "in new shells, where ~/.zshrc calls compinit before"),
    "fish": (
        "mkdir -p ~/.config/fish/completions && labd completion fish > ~/.config/fish/completions/labd.fish",
        "at once",
    ),
}


def _completion(call: Call, args: Args) -> Answer:
    command, when = INSTALL[args.shell]
    with open(os.path.join(FOLDER, f"labd.{args.shell}"), encoding="utf-8") as file:
        script = file.read()
    if call.stdout_tty:
        call.note(f"to install it: {command} (in force {when})")
    data = {"shell": args.shell, "script": script, "install": command, "in_force": when}
    return Answer(data, text=script.rstrip("\n"))


OPERATIONS = (
    Operation(
        ("completion",),
        "the script by which bash, zsh or fish completes these words",
        effect="help",
        doc="It completes commands, flags, choices and files, and names as they are at that moment: targets, "
        "interfaces, hosts, recordings, triggers, keys, guides. At each Tab the script asks this program, which starts "
        "no daemon and asks no board; so it stays true when labd or the lab changes.",
        params=(Param("shell", "whose script", kind="choice", choices=tuple(INSTALL), required=True),),
        handler=_completion,
        examples=tuple((f"labd completion {shell}", f"install it: {command} ({when})")
                       for shell, (command, when) in INSTALL.items()),
    ),
)  # fmt: skip
