"""Taking up what an earlier daemon left with the capture process: ports that are still captured, boards that play on.

Called once by the bench, before anybody is served. What can't be taken up is let go of, and said in the log.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from labd.channels.adopting import Adopted, why_ended
from labd.channels.adopting import adopt as adopt_port
from labd.errors import LabdError

if TYPE_CHECKING:
    from labd.bench import Bench
    from labd.channels.portmodel import Port


async def adopt(bench: Bench) -> None:
    """Boards first: a port may be the end of one's cable."""
    link = bench.capture
    for key, found in list(link.found_holds.items()):
        try:
            if "machine" in found["meta"]:
                bench.machines.adopt(found)
                await link.drop(key)  # from now on it ends with this daemon, however that ends
                continue
            bench.boards.adopt(found)
            link.keep(key, found)
        except (KeyError, TypeError, ValueError, OSError) as error:
            bench.log(f"the board {key} can't be taken up again ({error!r}); ending it")
            await link.drop(key)
    for found in list(link.found):
        try:
            await _adopt_port(bench, found)
        except (LabdError, KeyError, TypeError, ValueError, OSError) as error:
            bench.log(f"{found['key']}: its port can't be taken up again ({error}); letting it go")
            await link.forget(found)


async def _adopt_port(bench: Bench, found: dict[str, Any]) -> None:
    meta = found["meta"]
    real, target, config = meta["lab"], meta["target"], meta["config"]
    if os.path.dirname(found["key"]) != bench.journal_root(real, target):
        raise ValueError("this daemon keeps its journals elsewhere")
    port = await _take_up(bench, found, f"{target}.{config['name']} of {real}") if found["live"] else None
    ended = dict(found.get("ended") or {})
    if not ended.get("recorded"):
        ended["why"] = why_ended(str(config["device"]), str(ended.get("why", "no daemon was there to hold it")))
    terminal = tuple(meta["terminal"]) if meta.get("terminal") else None
    adopted = Adopted(port, int(meta["opens"]), None if port else ended, terminal)
    entry = await bench.enter(real, target, meta["settings"], None)
    entry.channel.whole = bool(meta["whole"])
    entry.channel.known = dict(meta["known"])
    entry.level = str(meta["known"].get("level", "simulated"))
    await entry.channel.adopt(config, adopted)
    lost = "lost before" if ended.get("recorded") else "lost meanwhile"
    state = "captured all the while" if port else f"{lost} ({ended['why']})"
    bench.log(f"{target}.{config['name']}: taken up again; it was {state}")


async def _take_up(bench: Bench, found: dict[str, Any], owner: str) -> Port | None:
    """The port that is still captured; None, and nobody captures it any more, where it has to be opened anew."""
    known = found["meta"]["port"]
    if known is not None:  # None: its protocol was spoken by the daemon that is gone
        (fd,) = found["fds"]
        try:
            port = adopt_port(fd, known, owner=owner)
        except (KeyError, TypeError, ValueError, OSError) as error:
            bench.log(f"{found['key']}: its port has to be opened anew ({error})")
        else:
            found["fds"], found["taken"] = [], True
            return port
    await bench.capture.let_go(found)
    return None
