"""Which name of a serial port to write into a lab: one that leads to the same adapter after the next replug.

by-id is preferred: it goes with the adapter. Two adapters without serial numbers of their own share one by-id name,
which then leads to whichever was plugged in last; there by-path is right, which goes with the socket. Reads only.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def advice(device: str, ports: Sequence[dict[str, Any]] | None = None) -> str | None:
    """What is wrong with `device` as a name, and the better one; None when it is as good as can be.

    `ports` are the machine's (`Platform.serial_ports`); looked at now if left out.
    """
    if ports is None:
        from labd.platform import current

        ports = current().serial_ports()
    node = os.path.realpath(device)
    port = next((port for port in ports if port["node"] == node), None)
    if port is None:
        return None
    if port["twins"]:
        if device == port["by_path"]:
            return None
        others = ", ".join(port["twins"])
        better = f"name it by its socket: {port['by_path']}" if port["by_path"] else "no by-path name is there to take"
        return (
            f"{others} has the same USB ids and no serial number of its own, so {device} can lead to either; {better}"
        )
    if device == node and port["by_id"]:
        return f"{node} is a number that changes when adapters are plugged in again; the lasting name: {port['by_id']}"
    return None
