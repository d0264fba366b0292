"""Secrets out of text that is shown, recorded or reported: passwords in URLs and flags, tokens, assignments.

Pure and cautious: what looks like a secret becomes `***`; the rest stays as it is. It cannot know every program's
flags, so a lab should keep secrets in the environment or in files.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NAMES = (
    r"[\w.-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|private[_-]?key)"
    r"|pass|pwd|auth|authorization|community|credentials?"
)
_WORDS = ("pass", "pwd", "secret", "token", "key", "auth", "community", "credential")
_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'&;]+)"""

_HEADER = (
    r"(?i)(?P<keep>\b(?:authorization|x-[\w-]*(?:token|key)):\s*(?:(?:bearer|basic|token|digest)\s+)?)"
    r"[^\s\"',;]+"
)

#: (words of which one must be there, in lower case; pattern). Most texts hold none, and then nothing is compiled.
_RULES = (
    # scheme://user:password@host
    (("://",), r"(?P<keep>\b[a-zA-Z][\w+.-]*://[^\s/@:'\"]*:)[^\s/@'\"]+(?=@)"),
    # Authorization: Bearer abc
    (("authorization:", "x-"), _HEADER),
    # --password X, --token=X
    (_WORDS, rf"(?i)(?P<keep>(?<![\w-])--?(?:{_NAMES})(?:\s+|=))(?!-){_VALUE}"),
    # token=X, AMT_PASSWORD=X, ?api_key=X
    (_WORDS, rf"(?i)(?P<keep>(?<![\w-])(?:{_NAMES})=){_VALUE}"),
    # curl -u user:password
    (("-u", "--user"), r"(?P<keep>(?<!\S)(?:-u|--user)(?:\s+|=)['\"]?[^\s:'\"]+:)[^\s'\"]+"),
    # ipmitool -P X, snmpset -c X, sshpass -p X
    (("ipmi",), rf"(?P<keep>\bipmi(?:tool|power)\b[^|;&]*?\s-[Pp]\s*){_VALUE}"),
    (("snmp",), rf"(?P<keep>\bsnmp\w+\b[^|;&]*?\s-[cAX]\s*){_VALUE}"),
    (("sshpass",), rf"(?P<keep>\bsshpass\s+-p\s*){_VALUE}"),
)  # fmt: skip


def redact(text: str) -> str:
    """`text` with every secret that can be recognised replaced by `***`."""
    lowered = text.lower()
    for words, pattern in _RULES:
        if any(word in lowered for word in words):
            import re

            text = re.sub(pattern, r"\g<keep>***", text)
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
