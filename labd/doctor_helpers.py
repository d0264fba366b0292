"""A bundled helper in a hook: the programs and modules that it needs, its password, its files, and its verb.

What is known of each helper is in one table here; what it does with its words is its own affair. Nothing is run.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from shlex import quote

from labd.doctor import Bench, access_denied, install
from labd.lab.redact import redact

#: (status, what is wrong, what mends it); None where the fix is to give the hook another command.
Finding = tuple[str, str, str | None]

#: Helper → (the program that it needs, its package; the option that names another program).
PROGRAMS = {"usbhub": ("uhubctl", "uhubctl", "--uhubctl")}

#: Helper → (the Python module that it needs, what installs it).
MODULES = {"pdu": ("labgrid", "pip install 'labd[pdu]'")}

#: Helper → the variable that its password is taken from where no file is named, which it can't do without.
PASSWORDS = {"amt": "AMT_PASSWORD"}

#: Helpers that are nothing without a device or an address.
ADDRESSED = ("amt", "ch9329", "hidrig", "pdu", "shellyplug")

#: Options whose value is a file that has to be there, `any` being a word of its own.
FILES = ("--password-file", "--trust")

#: Hook → the word that a helper's words must have: another one leaves the board in another state than was asked for.
VERBS = {"cycle_cmd": "cycle", "on_cmd": "on", "off_cmd": "off", "state_cmd": "state"}


def findings(bench: Bench, target: str, key: str, words: Sequence[str], by_sudo: bool) -> Iterator[Finding]:
    """What keeps the helper `words[0]`, called with the rest of `words` by the hook `key`, from doing its work."""
    name, rest = words[0], list(words[1:])
    yield from _needs(bench, name, rest, by_sudo)
    yield from _files(bench, rest)
    if name in PASSWORDS and "--password-file" not in rest and not _variable(bench, PASSWORDS[name]):
        file = "~/.config/labd/password"
        yield (
            "incomplete",
            f"the helper {name} has no password: {PASSWORDS[name]} is not set, and no file is named",
            (f"umask 077; cat > {file}  # then --password-file {file} in the hook"),
        )
    if name in ADDRESSED and "-d" not in rest:
        yield "incomplete", f"the helper {name} is not told which device (-d)", f"labd helper {name} --help"
    if name == "qmp" and "--socket" not in rest and not _has_board(bench, target):
        fix = f"labd serial add console -t {target} --device board:NAME  # labd discover lists them"
        yield "incomplete", f"the helper qmp drives a virtual board, and {target} has none", fix
    if name == "hidgadget" and "-k" not in rest and not by_sudo:
        yield from _gadget(bench)
    if key in VERBS and VERBS[key] not in rest:
        said = redact(" ".join(rest)) or "nothing"
        yield "warning", f"{key} does not say {VERBS[key]!r} to the helper {name}: {said}", None


def _gadget(bench: Bench) -> Iterator[Finding]:
    nodes = bench.machine.facts.hid_gadgets()
    if not nodes:
        fix = "sudo labd helper hidgadget setup"
        yield "missing", "this machine is no USB keyboard yet: there is no /dev/hidg0", fix
    elif not os.access(nodes[0], os.R_OK | os.W_OK):
        why, fix = access_denied(bench, nodes[0])
        yield "denied", f"{nodes[0]}: {why}", fix


def _needs(bench: Bench, name: str, rest: Sequence[str], by_sudo: bool) -> Iterator[Finding]:
    program, package, option = PROGRAMS.get(name, ("", "", ""))
    if program:
        program = rest[rest.index(option) + 1] if option in rest[:-1] else program
        if bench.on_path(program) is None:
            yield "missing", f"the helper {name} needs {program}, which is not on PATH", install(bench, package)
        shut = [node for node in bench.machine.facts.usb_hubs() if not os.access(node, os.W_OK)]
        if shut and not by_sudo:
            detail = f"this user may not open the USB hub {shut[0]}, so its ports can't be switched"
            yield "denied", detail, "labd setup --only udev --yes  # or call the helper by sudo -n"
        where = rest[rest.index("-l") + 1] if "-l" in rest[:-1] else None
        known = bench.machine.facts.hub_locations()
        if where and known is not None and where not in known:
            detail = f"there is no USB hub {where}; there is {', '.join(known) or 'none'}"
            yield "missing", detail, f"labd helper {name} list  # those whose ports can be switched"
    module, how = MODULES.get(name, ("", ""))
    if module and not importable(module):
        yield "missing", f"the helper {name} needs the Python package {module}", how


def _files(bench: Bench, rest: Sequence[str]) -> Iterator[Finding]:
    named = [value for option, value in pairwise(rest) if option in FILES and value != "any"]
    secret = [value for option, value in pairwise(rest) if option == "--password-file"]
    named += [word[1:] for word in rest if word.startswith("@")]
    for word in named:
        path = bench.path(word)
        if not os.path.isfile(path):
            yield "missing", f"the hook reads {path}, which is not there", f"ls -l {quote(path)}"
        elif not os.access(path, os.R_OK):
            yield "denied", f"the hook reads {path}, which this user may not", f"ls -l {quote(path)}"
        elif word in secret and os.stat(path).st_mode & 0o077:
            yield "warning", f"others may read the password in {path}", f"chmod 600 {quote(path)}"


def _variable(bench: Bench, name: str) -> bool:
    """Whether a hook would see this variable: the daemon's own environment counts, and the caller's."""
    return bool(bench.env.get(name) or os.environ.get(name))


def _has_board(bench: Bench, target: str) -> bool:
    from labd.lab.model import virtual_board

    return virtual_board(bench.data["targets"][target]) is not None


def importable(module: str) -> bool:
    """Whether a Python module is installed."""
    from importlib.util import find_spec

    return find_spec(module) is not None
