"""`labd man`: the manual pages, to read or to install. They are made by `labd.manpages`."""

from __future__ import annotations

import os

from labd.errors import LabdError, NotFound, nearest
from labd.operations.model import Answer, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args


def _man(call: Call, args: Args) -> Any:
    from labd import manpages

    known, date = manpages.names(), manpages.date_of(call.env)
    wanted = None if args.page is None else args.page if args.page in known else f"labd-{args.page}"
    if wanted is not None and wanted not in known:
        raise NotFound(f"no page {args.page!r}", near=nearest(wanted, list(known)), hint="labd man")
    if args.dir is not None:
        return _install(call, args.dir, {name: manpages.source(name, date) for name in ([wanted] if wanted else known)})
    if wanted is None:
        return {"pages": [{"name": name, "about": what} for name, what in known.items()]}
    text = manpages.source(wanted, date)
    return Answer({"name": wanted, "date": date, "source": text}, text=text.rstrip("\n"))


def _install(call: Call, directory: str, pages: dict[str, str]) -> Answer:
    """Write them where man finds them, below a directory of the caller's: DIR/man1/NAME.1."""
    from labd import outfile, paths

    place = os.path.join(paths.expand(directory, call.env, call.cwd), "man1")
    try:
        os.makedirs(place, exist_ok=True)
    except OSError as error:
        raise LabdError(f"{place} can't be made: {error.strerror}") from None
    written = [outfile.write(call, os.path.join(place, f"{name}.1"), [source.encode()])
               for name, source in pages.items()]  # fmt: skip
    pages_ = "1 page" if len(written) == 1 else f"{len(written)} pages"
    return Answer({"written": written}, text=f"{pages_} in {place}")


def _text(data: Any, call: Call) -> str:
    from labd.render import columns

    rows: list[tuple[str, ...]] = [(f"{entry['name']}(1)", entry["about"]) for entry in data["pages"]]
    return "\n".join([columns(rows, call.columns, ""), "", "read one: labd man serial | man -l -",
                      "install all: labd man --dir ~/.local/share/man"])  # fmt: skip


OPERATIONS = (
    Operation(
        ("man",),
        "the manual pages: list them, get one, install them",
        effect="help",
        doc="They are made from the same table as the help. A page comes as man(7) source, for man -l or mandoc. The "
        "date on them is that of the version, or of $SOURCE_DATE_EPOCH.",
        params=(
            Param("page", "labd, or a command as in labd-serial(1); without it, all", complete="page"),
            Param("dir", "write them to DIR/man1 instead", flags=("--dir",), complete="file", metavar="DIR"),
        ),
        handler=_man,
        text=_text,
        examples=(
            ("labd man", "which pages there are"),
            ("labd man serial", "the source of one; to read it: labd man serial | man -l -"),
            ("labd man --dir ~/.local/share/man", "from then on: man labd-serial"),
        ),
    ),
)
