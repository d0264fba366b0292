"""HTTP digest access authentication (RFC 7616), the part that switches in a rack ask for. Pure functions.

SHA-256 and MD5, `qop=auth`, no sessions (`-sess`), no `auth-int`. Nothing here talks to a network.
"""

import hashlib
import re

_FIELD = re.compile(r'([A-Za-z][A-Za-z0-9_-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_HASHES = {"SHA-256": hashlib.sha256, "MD5": hashlib.md5}


def challenge(header: str) -> dict[str, str] | None:
    """The fields of a `WWW-Authenticate: Digest …` header, names in lower case; None for any other scheme."""
    scheme, _, rest = header.strip().partition(" ")
    if scheme.lower() != "digest":
        return None
    fields: dict[str, str] = {}
    for name, quoted, plain in _FIELD.findall(rest):
        fields[name.lower()] = re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
    return fields


def authorization(
    fields: dict[str, str], *, user: str, password: str, method: str, uri: str, cnonce: str, count: int = 1
) -> str | None:
    """The value of the `Authorization` header that answers a challenge, or None if it asks for what we cannot do.

    `cnonce` is the caller's random text; `count` is how often this server nonce was used, from 1.
    """
    algorithm = fields.get("algorithm", "MD5").upper()
    offered = [word.strip().lower() for word in fields.get("qop", "").split(",") if word.strip()]
    if algorithm not in _HASHES or "nonce" not in fields or (offered and "auth" not in offered):
        return None

    def digest(text: str) -> str:
        return _HASHES[algorithm](text.encode("utf-8"), usedforsecurity=False).hexdigest()

    realm, nonce = fields.get("realm", ""), fields["nonce"]
    secret, request = digest(f"{user}:{realm}:{password}"), digest(f"{method}:{uri}")
    parts = [f'username="{_quote(user)}"', f'realm="{_quote(realm)}"', f'nonce="{_quote(nonce)}"', f'uri="{uri}"']
    if offered:
        response = digest(f"{secret}:{nonce}:{count:08x}:{cnonce}:auth:{request}")
        parts += ["qop=auth", f"nc={count:08x}", f'cnonce="{_quote(cnonce)}"']
    else:
        response = digest(f"{secret}:{nonce}:{request}")
    parts += [f'response="{response}"', f"algorithm={algorithm}"]
    if "opaque" in fields:
        parts.append(f'opaque="{_quote(fields["opaque"])}"')
    return "Digest " + ", ".join(parts)


def _quote(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
