"""Secrets out of text that is shown, recorded or reported: passwords in URLs and flags, tokens, assignments.

Pure and cautious: what looks like a secret becomes `***`; the rest stays as it is. It cannot know every program's
flags, so a lab should keep secrets in the environment or in files.
"""

import re
from typing import Any

_NAMES = (
    r"[\w.-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|private[_-]?key)"
    r"|pass|pwd|auth|authorization|community|credentials?"
)
_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'&;]+)"""

_RULES = (
    # scheme://user:password@host
    (re.compile(r"(?P<keep>\b[a-zA-Z][\w+.-]*://[^\s/@:'\"]*:)[^\s/@'\"]+(?=@)"), r"\g<keep>***"),
    # Authorization: Bearer abc
    (re.compile(r"(?i)(?P<keep>\b(?:authorization|x-[\w-]*(?:token|key)):\s*(?:(?:bearer|basic|token|digest)\s+)?)"
                r"[^\s\"',;]+"), r"\g<keep>***"),
    # --password X, --token=X
    (re.compile(rf"(?i)(?P<keep>(?<![\w-])--?(?:{_NAMES})(?:\s+|=))(?!-){_VALUE}"), r"\g<keep>***"),
    # token=X, AMT_PASSWORD=X, ?api_key=X
    (re.compile(rf"(?i)(?P<keep>(?<![\w-])(?:{_NAMES})=){_VALUE}"), r"\g<keep>***"),
    # curl -u user:password
    (re.compile(r"(?P<keep>(?<!\S)(?:-u|--user)(?:\s+|=)['\"]?[^\s:'\"]+:)[^\s'\"]+"), r"\g<keep>***"),
    # ipmitool -P X, snmpset -c X
    (re.compile(rf"(?P<keep>\bipmi(?:tool|power)\b[^|;&]*?\s-[Pp]\s*){_VALUE}"), r"\g<keep>***"),
    (re.compile(rf"(?P<keep>\bsnmp\w+\b[^|;&]*?\s-[cAX]\s*){_VALUE}"), r"\g<keep>***"),
    (re.compile(rf"(?P<keep>\bsshpass\s+-p\s*){_VALUE}"), r"\g<keep>***"),
)  # fmt: skip


def redact(text: str) -> str:
    """`text` with every secret that can be recognised replaced by `***`."""
    for pattern, put in _RULES:
        text = pattern.sub(put, text)
    return text


def redacted(value: Any) -> Any:
    """Plain data with `redact` applied to every string in it."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: redacted(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redacted(item) for item in value]
    return value
