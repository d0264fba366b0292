"""Placeholders of scenarios, and where the exam's data lies: what both scenarios and subjects need. Pure look-ups."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

HOLE = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def fill(text: str, values: Mapping[str, str], *, pattern: bool = False) -> str:
    """`text` with `{name}` replaced for the names in `values`; other braces stay as they are.

    `{nonce2}` to `{nonce9}` are made from `nonce`: facts that are as hard to guess as the first. With `pattern`
    the values are escaped for use in a regular expression.
    """

    def one(match: re.Match[str]) -> str:
        name = match[1]
        if name in values:
            value = values[name]
        elif re.fullmatch(r"nonce[2-9]", name) and "nonce" in values:
            value = hashlib.sha256(f"{name}:{values['nonce']}".encode()).hexdigest()[: len(values["nonce"])]
        else:
            return match[0]
        return re.escape(value) if pattern else value

    return HOLE.sub(one, text)


def data_dir(name: str) -> Path:
    """The checkout's folder `name`, else the installed copy."""
    here = Path(__file__).resolve().parent
    checkout = here.parent / name
    return checkout if checkout.is_dir() else here / "data" / name
