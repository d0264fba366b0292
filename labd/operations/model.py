"""The form of one entry of the table of operations. No rules, no hardware; light, as every start pays for it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from labd.call import Call

#: What an operation does to the world (design section 2). The shim maps effects to policy levels.
EFFECTS = ("help", "observe", "config", "actuate", "admin")

#: Where a handler runs. `here`: in the caller's process, or in a worker thread of the daemon when one is up.
#: `daemon`: in a worker thread of the daemon, which is started if need be; `call.bench` is there, and
#: `call.hop(function, …)` runs the bench's async functions. `client`: in the caller's own process, since it needs its
#: terminal, its editor, or the daemon's absence.
PLACES = ("here", "daemon", "client")

#: What a parameter holds. `switch` is a flag with an optional true or false. `rest` takes every word that follows.
KINDS = ("str", "int", "float", "path", "choice", "switch", "rest")


#: First word of a verb → the channel of a target that it is about; `*` is all of them.
CHANNEL_OF = {"serial": "serial", "power": "power", "power-cycle": "power", "power-state": "power", "video": "video",
              "hid": "hid", "netboot": "netboot", "netif": "netboot", "adb": "adb", "console": "video",
              "timeline": "*", "record": "*"}  # fmt: skip

#: Which way a file goes when the call runs on another machine: `in` to it, `out` from it to where the caller said,
#: `into` from it, never over what is there, `direction` as the call's parameter of that name says,
#: `script` to it, where the first word is `run` and the second the file.
WAYS = ("", "in", "out", "into", "direction", "script")


class Param:
    """One parameter: a positional if `flags` is empty, else an option.

    `unless` names parameters one of which makes a required one unneeded (`--key` in place of a text).
    `unit` is printed behind the help (`ms`, `baud`). `minimum` and `maximum` bound numbers. `repeat` makes the
    value a list; any other option given twice is an error. `complete` names what the values are, for shell completion:
    `file`, `command` (the words of one of ours), or a kind of `labd.completing_names` (`target`, `host`, `key` …).
    `ships` says which way the file goes where the call runs on another machine (`WAYS`).
    """

    __slots__ = ("choices", "complete", "default", "flags", "help", "kind", "maximum", "metavar", "minimum",
                 "name", "repeat", "required", "ships", "unit", "unless")  # fmt: skip

    def __init__(
        self,
        name: str,
        help: str,  # noqa: A002 - the field's own word
        *,
        kind: str = "str",
        flags: tuple[str, ...] = (),
        required: bool = False,
        unless: tuple[str, ...] = (),
        default: Any = None,
        choices: tuple[str, ...] = (),
        unit: str = "",
        metavar: str = "",
        minimum: float | None = None,
        maximum: float | None = None,
        repeat: bool = False,
        complete: str = "",
        ships: str = "",
    ) -> None:
        assert kind in KINDS, kind
        assert ships in WAYS, ships
        self.name = name
        self.help = help
        self.kind = kind
        self.flags = flags
        self.required = required
        self.unless = unless
        self.default = default
        self.choices = choices
        self.unit = unit
        self.metavar = metavar or name.upper().replace("_", "-")
        self.minimum = minimum
        self.maximum = maximum
        self.repeat = repeat
        self.complete = complete
        self.ships = ships

    @property
    def positional(self) -> bool:
        """Whether it is given by place, not by flag."""
        return not self.flags


class Args:
    """The values of one call, one attribute a parameter (its name), set by the parser or by RPC."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"this operation has no parameter {name!r}")

    def given(self, *names: str) -> dict[str, Any]:
        """Those of `names` that were given (are not None), by name."""
        return {name: self.__dict__[name] for name in names if self.__dict__.get(name) is not None}


class Answer:
    """What a handler returns when plain data is not enough: `data` for --json, an exit code, a text of its own."""

    __slots__ = ("code", "data", "text")

    def __init__(self, data: Any, *, code: int = 0, text: str | None = None) -> None:
        self.data = data
        self.code = code
        self.text = text


class Operation:
    """One verb of the bench: everything that any face needs to know about it.

    `path` is its words (`("serial", "send")`), `aliases` other spellings. `handler(call, args)` returns JSON-able
    data or an Answer; with `stream=True` it returns an iterator of items, each a dict (one JSON line), bytes
    (written as they are) or, last, an int (the exit code). `text(data_or_item, call)` turns it into what a person
    reads, without a final newline; None prints nothing. `examples` are (command line, what it does) pairs that
    must parse. `opaque` says that the trailing words belong to another program and are not checked.
    `missing` says what is not there yet: the words, the help and the checks work, running it is exit 7.
    `acting` names parameters that make an operation, which only looks without them, an `actuate` when they are given
    (an `admin` stays one); `terminal` says that it is for a person at a terminal, or never ends;
    `looking` names switches that make one which acts an `observe`. `stays` says that it runs here wherever the
    hardware is wired to: it reads the lab file and no more.
    """

    __slots__ = ("acting", "aliases", "doc", "effect", "examples", "handler", "looking", "missing", "opaque", "params",
                 "path", "stays", "stream", "summary", "terminal", "text", "where")  # fmt: skip

    def __init__(
        self,
        path: tuple[str, ...],
        summary: str,
        *,
        effect: str,
        where: str = "here",
        params: tuple[Param, ...] = (),
        handler: Callable[[Call, Args], Any] | None = None,
        text: Callable[[Any, Call], str | None] | None = None,
        stream: bool = False,
        doc: str = "",
        examples: tuple[tuple[str, str], ...] = (),
        aliases: tuple[tuple[str, ...], ...] = (),
        opaque: bool = False,
        missing: str = "",
        acting: tuple[str, ...] = (),
        looking: tuple[str, ...] = (),
        stays: bool = False,
        terminal: bool = False,
    ) -> None:
        assert effect in EFFECTS, effect
        assert where in PLACES, where
        assert handler is not None or missing, path
        self.path = path
        self.summary = summary
        self.effect = effect
        self.where = where
        self.params = params
        self.handler = handler
        self.text = text
        self.stream = stream
        self.doc = doc
        self.examples = examples
        self.aliases = aliases
        self.opaque = opaque
        self.missing = missing
        self.acting = acting
        self.looking = looking
        self.stays = stays
        self.terminal = terminal

    @property
    def channel(self) -> str:
        """The channel of a target that it is about, and so whose host it runs on; "" for what runs here."""
        return "" if self.stays else CHANNEL_OF.get(self.path[0], "")

    def effect_of(self, args: Args) -> str:
        """What this very call does to the world."""
        if self.looking and any(args.given(*self.looking).values()):
            return "observe"
        given = args.given(*self.acting)
        if self.acting and self.effect == "admin":
            return "admin" if any(given.values()) else "observe"
        return "actuate" if given else self.effect

    @property
    def name(self) -> str:
        """Its words with spaces: `serial send`."""
        return " ".join(self.path)


#: The parameters that many operations share.
TARGET = Param("target", "the target; may be left out when the lab has one", complete="target")
TARGET_FLAG = Param("target", "the target", flags=("-t", "--target"), required=True, complete="target")
INTERFACE = Param("interface", "the serial interface; may be left out when there is one", flags=("-i", "--interface"),
                  complete="interface")  # fmt: skip
