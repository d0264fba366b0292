"""`labd init` and `labd config`: the lab file as a whole."""

from __future__ import annotations

from labd.operations.labshow import lab_text, target_facts
from labd.operations.model import Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args


def init(call: Call, args: Args) -> dict[str, Any]:
    """Make an empty lab file; refused if there is a file."""
    import shlex

    from labd import paths
    from labd.lab import editing

    path = paths.expand(args.path, call.env, call.cwd) if args.path else call.lab_path
    done = editing.create(path, call.env)
    call.record["lab_before"], call.record["lab_after"] = done.before, done.after
    if path != call.lab_path:
        call.note(f"this is not the lab in force ({call.lab_path}); use --lab {shlex.quote(path)}, or LABD_LAB")
    words = call.lab_words() if path == call.lab_path else f"--lab {shlex.quote(path)} "
    call.note(f"next: labd {words}target add NAME, then labd {words}serial add console -t NAME --device DEVICE")
    return {"path": path, "created": True}


def show(call: Call, args: Args) -> dict[str, Any]:
    """Everything that the lab says, secrets out."""
    from labd.lab.redact import redacted

    lab = call.lab()
    if not lab.targets:
        call.reason(f"no target in {lab.path} yet; labd {call.lab_words()}target add NAME makes one")
    rest = {key: lab.data[key] for key in ("policy", "journal") if lab.data.get(key)}
    data: dict[str, Any] = redacted({"path": lab.path, **rest, "hosts": lab.hosts})
    return {**data, "targets": {name: target_facts(lab, name) for name in lab.targets}}


def path(call: Call, args: Args) -> dict[str, Any]:
    """The lab file in force, whether or not it exists."""
    import os

    found = os.path.exists(call.lab_path)
    if not found:
        call.note(f"there is no such file yet; labd {call.lab_words()}init makes it")
    return {"path": call.lab_path, "exists": found}


def edit(call: Call, args: Args) -> Any:
    """Open the lab in an editor, and check it afterwards."""
    from labd import lab, shim
    from labd.errors import LabdError, PassedOn, Usage
    from labd.lab import hooks, reading
    from labd.operations.model import Answer

    before = reading.read_source(call.lab_path, call.env).digest
    named = [call.env.get(name, "").strip() for name in ("VISUAL", "EDITOR")]  # an empty one names none
    editor = next(filter(None, named), "")
    if not editor and not (call.stdin_tty and call.stdout_tty):
        raise Usage("config edit opens an editor and needs a terminal; the set and --unset verbs need none",
                    hint="labd commands --search set")  # fmt: skip
    try:
        words = hooks.take_apart(editor or "vi").words
    except ValueError as error:
        raise Usage(f"VISUAL or EDITOR cannot be run: {error}") from None
    code = shim.run_attached([*words, call.lab_path], call)
    after = reading.read_source(call.lab_path, call.env).digest
    call.record["lab_before"], call.record["lab_after"] = before, after
    if code:
        raise PassedOn(f"the editor {words[0]} ended with exit code {code}", code)
    try:
        lab.load(call.lab_path, call.env)
    except LabdError as error:
        raise LabdError(f"saved, but it is no valid lab now: {error.message}", near=error.near,
                        hint=f"labd {call.lab_words()}config edit") from None  # fmt: skip
    changed = before != after
    return Answer({"path": call.lab_path, "changed": changed},
                  text=f"{call.lab_path}: {'changed, and valid' if changed else 'unchanged'}")  # fmt: skip


OPERATIONS = (
    Operation(
        ("init",),
        "make an empty lab file",
        effect="config",
        params=(
            Param("path", "where; default: the lab file in force", kind="path", flags=("--path",), complete="file"),
        ),
        handler=init,
        text=lambda data, call: f"Created lab: {data['path']}",
        doc="Not needed before labd target add or labd host add: they make the file if it is missing.",
        examples=(("labd init", "at the default place"), ("labd init --path ./lab.toml", "somewhere else")),
    ),
    Operation(
        ("config", "show"),
        "everything that the lab says: hosts, targets, channels",
        effect="observe",
        handler=show,
        text=lambda data, call: lab_text(data),
        doc="Shows what is configured, not what is plugged in (labd doctor compares the two). Passwords and tokens in "
        "commands and URLs are shown as ***.",
        examples=(
            ("labd config show", "the lab as a tree"),
            ("labd config show --json", "as data, defaults filled in"),
        ),
    ),
    Operation(
        ("config", "path"),
        "the path of the lab file in force",
        effect="observe",
        handler=path,
        text=lambda data, call: str(data["path"]),
        examples=(("labd config path", "the path alone, for $(…)"),),
    ),
    Operation(
        ("config", "edit"),
        "open the lab file in an editor, and check it afterwards",
        effect="config",
        where="client",
        terminal=True,
        handler=edit,
        doc="Opens $VISUAL, else $EDITOR, else vi. What you save is kept even if it is no valid lab; then the place of "
        "the mistake is named and the exit code is 1.",
        examples=(("labd config edit", "edit the lab by hand"),),
    ),
)
