"""Secrets out of text that is shown, recorded or reported: passwords in URLs and flags, tokens, assignments.

Pure and cautious: what looks like a secret becomes `***`; the rest stays as it is. It cannot know every program's
flags, so a lab should keep secrets in the environment or in files. Linear in the text, so every stretch in a pattern
has a bound.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Names that mean a secret wherever they stand in a name, and those that have to be a word of it on their own.
_SURE = (
    r"[\w.-]{0,100}(?:password|passwd|passphrase|passcode|secret|token|credential|bearer"
    r"|(?:api|private|access)[_-]?key)[\w.-]{0,100}"
)
_NAMES = rf"{_SURE}|(?:[\w.-]{{0,100}}[_.-])?(?:pass|pw|pwd|pat|key|auth|authorization|community|session|psk)"
_WORDS = ("pass", "pw", "secret", "token", "pat", "key", "auth", "community", "credential", "bearer", "session", "psk")
_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'&;]+)"""
_JSON = r"""(?:\\"(?:[^"\\]|\\[^"])*\\"|"(?:[^"\\]|\\.)*"|'[^']*'|[^\s"',}\]\\]+)"""
_HEADERS = r"(?:(?:proxy-)?authorization|x-[\w-]{0,100}(?:token|key)):\s*(?:(?:bearer|basic|token|digest)\s+)?"
_USER = r"(?P<keep>(?<!\S)(?:-u|-U|--user|--proxy-user)[\s=]*"

#: (words of which one must be there, in lower case; pattern). Most texts hold none, and then nothing is compiled.
_RULES = (
    # scheme://user:password@host, http://token@host, user:password@host; the password may hold an @
    (("://",), r"(?P<keep>\b[a-zA-Z][\w+.-]{0,30}://[^\s/@:'\"]*:)[^\s/'\"]+(?=@)"),
    (("://",), r"(?P<keep>\bhttps?://)[^\s/@:'\"]+(?=@)"),
    (("@",), r"(?P<keep>(?<![\w/:.@*+-])[\w.+-]+:)[^\s/'\":]+(?=@[\w.-])"),
    # -H 'Authorization: Bearer abc', Authorization:abc, Cookie: a=b; c=d
    (("authorization:", "x-"), rf"(?i)(?P<keep>['\"]\s*{_HEADERS})[^'\"\n]+"),
    (("authorization:", "x-"), rf"(?i)(?P<keep>\b{_HEADERS})[^\s\"',;]+"),
    (("cookie:",), r"(?i)(?P<keep>\bcookie:\s*)[^'\"\n]+"),
    # tokens that are known by their form: GitHub, GitLab, AWS, Slack, OpenAI and Anthropic, JWT (signed: three parts,
    # encrypted: five; base64url of `{"` begins the first); private keys in text
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), r"(?P<keep>\b)(?:gh[pousr]|github_pat)_\w{20,}"),
    (("glpat-", "xox", "sk-"), r"(?P<keep>\b)(?:glpat|xox[abprs]|sk)-[\w-]{16,}"),
    (("akia",), r"(?P<keep>\b)AKIA[0-9A-Z]{16}"),
    (("eyj",), r"(?P<keep>(?<![\w-]))eyJ[\w-]{8,20000}\.[\w-]{0,100000}(?:\.[\w-]{1,100000}){1,3}"),
    (("private key",), r"(?s)(?P<keep>-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----).{0,20000}?(?=-----END|\Z)"),
    # --password X, --token=X
    (_WORDS, rf"(?i)(?P<keep>(?<![\w-])--?(?:{_NAMES})(?:\s+|=))(?!-){_VALUE}"),
    # token=X, AMT_PASSWORD=X, ?api_key=X
    (_WORDS, rf"(?i)(?P<keep>(?<![\w.-])(?:{_NAMES})=){_VALUE}"),
    # {"password": "X"}, password: X
    (_WORDS, rf"(?i)(?P<keep>\\?[\"'](?:{_NAMES})\\?[\"']\s*:\s*){_JSON}"),
    (_WORDS, rf"(?i)(?P<keep>(?<![\w\".'-])(?:{_SURE}):\s+){_VALUE}"),
    # curl -u user:password, -uuser:password, -u 'user:pass word'
    (("-u", "--user", "--proxy-user"), rf"{_USER}'[^':]*:)[^']+"),
    (("-u", "--user", "--proxy-user"), rf"{_USER}\"[^\":]*:)[^\"]+"),
    (("-u", "--user", "--proxy-user"), rf"{_USER}[^\s:'\"=-][^\s:'\"]*:)(?!//)[^\s'\"]+"),
    # curl -b name=X
    (("curl",), rf"(?P<keep>\bcurl\b[^|;&]{{0,1000}}?\s(?:-b|--cookie)[\s=]*){_VALUE}"),
    # ipmitool -P X, snmpset -c X, sshpass -p X, mysql -pX
    (("ipmi",), rf"(?P<keep>\bipmi(?:tool|power)\b[^|;&]{{0,1000}}?\s-[Pp]\s*){_VALUE}"),
    (("snmp",), rf"(?P<keep>\bsnmp\w+\b[^|;&]{{0,1000}}?\s-[cAX]\s*){_VALUE}"),
    (("sshpass",), rf"(?P<keep>\bsshpass\s+-p\s*){_VALUE}"),
    (("mysql", "mariadb", "mongo"), rf"(?P<keep>\b(?:mysql|mariadb|mongo)[\w-]*\b[^|;&]{{0,1000}}?\s-p\s*){_VALUE}"),
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
