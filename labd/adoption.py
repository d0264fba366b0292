"""Taking up what an earlier daemon left with the capture process: ports that are still captured, boards that play on.

Called once by the bench, before anybody is served. What can't be taken up is let go of, and said in the log.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from labd.channels.adopting import Adopted
from labd.channels.adopting import adopt as adopt_port
from labd.errors import LabdError

if TYPE_CHECKING:
    from labd.bench import Bench


async def adopt(bench: Bench) -> None:
    """Boards first: a port may be the end of one's cable."""
    link = bench.capture
    for key, found in list(link.found_holds.items()):
        try:
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
    adopted = Adopted(None, int(meta["opens"]), found.get("ended"))
    if found["live"]:
        (fd,) = found["fds"]
        port = adopt_port(fd, meta["port"], owner=f"{target}.{config['name']} of {real}")
        found["fds"], found["taken"] = [], True
        adopted = Adopted(port, adopted.opens)
    entry = await bench.enter(real, target, meta["settings"], None)
    entry.channel.whole = bool(meta["whole"])
    entry.channel.known = dict(meta["known"])
    entry.level = str(meta["known"].get("level", "simulated"))
    await entry.channel.adopt(config, adopted)
    state = "captured all the while" if found["live"] else "lost meanwhile"
    bench.log(f"{target}.{config['name']}: taken up again; it was {state}")
