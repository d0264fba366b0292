"""What was changed at an interface, so that it can be changed back; in a file, for who comes after a killed one."""

from __future__ import annotations

import json
import os
from ipaddress import ip_interface
from typing import TYPE_CHECKING

from labd.errors import LabdError

if TYPE_CHECKING:
    from labd.platform.net import Link, Net


class Undo:
    """The addresses that were added to and removed from `name`; noted in `path` before it is done."""

    def __init__(self, net: Net, name: str, path: str) -> None:
        self.net = net
        self.name = name
        self.path = path
        try:
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
        except (OSError, ValueError):
            data = {}
        self.added: list[str] = data.get("added", [])
        self.removed: list[str] = data.get("removed", [])

    def add(self, cidr: str) -> None:
        """Give the interface an address that it lacks."""
        if not self.net.links()[self.name].has(cidr):
            self._note(self.added, cidr)
            self.net.add(self.name, cidr)

    def remove(self, cidr: str) -> None:
        """Take an address away that is in the way."""
        if self.net.links()[self.name].has(cidr):
            self._note(self.removed, cidr)
            self.net.remove(self.name, cidr)

    def all(self) -> None:
        """Put everything back, as far as the interface is still there. Raises the first failure, having tried all."""
        link = self.net.links().get(self.name)
        todo = []
        if link is not None:
            todo += [(self.net.remove, cidr) for cidr in self._of_ours(link)]
            todo += [(self.net.add, cidr) for cidr in self.removed if not link.has(cidr)]
        failed: LabdError | None = None
        for act, cidr in todo:
            try:
                act(self.name, cidr)
            except LabdError as error:
                failed = failed or error
        self.added, self.removed = [], []
        if os.path.exists(self.path):
            os.unlink(self.path)
        if failed is not None:
            raise failed

    def _note(self, where: list[str], cidr: str) -> None:
        if cidr not in where:
            where.append(cidr)
        with open(self.path, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o644)  # a user who puts it back by sudo must read it
            json.dump({"added": self.added, "removed": self.removed}, file)

    def _of_ours(self, link: Link) -> list[str]:
        """What was added, and what the system gave itself when it heard our own router advertisements."""
        six = [ip_interface(cidr).network for cidr in self.added if ":" in cidr]
        made = [cidr for cidr in link.inet6 if ip_interface(cidr).network in six]
        return [*(found for cidr in self.added for found in link.cidrs(cidr) if found not in made), *made]
