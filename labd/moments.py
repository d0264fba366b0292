"""Moments in a bench's history as people and programs write them: a line's number, a time, or how long ago. Pure.

`1840` (or `#1840`) is a line of the console, `10m` ten minutes ago (ms, s, m, h, d), `10:15:00` a time of today and
`2026-11-29T10:15:00Z` any time (RFC 3339; without a zone it is local).
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from labd.errors import Usage

_UNITS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
_AGO = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(ms|s|m|h|d)", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?", re.ASCII)


def parse(text: str, flag: str, now_ns: int) -> tuple[int | None, int]:
    """(line number, 0) or (None, nanoseconds since 1970) that `text`, the value of `flag`, means.

    Raises Usage for what is neither.
    """
    number = text.removeprefix("#").removesuffix("*")
    if number.isascii() and number.isdigit() and len(number) < 19:
        return int(number), 0
    ago = _AGO.fullmatch(text)
    if ago:
        return None, now_ns - int(float(ago[1]) * _UNITS[ago[2]])
    clock = _CLOCK.fullmatch(text)
    try:
        if clock:
            return None, _of_today(clock, now_ns)
        return None, _ns(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise Usage(
            f"{flag} takes a line's number (1840), how long ago (10m), or a time (10:15:00, 2026-11-29T10:15:00Z), "
            f"not {text!r}",
            hint="labd timeline --help",
        ) from None


def _of_today(clock: re.Match[str], now_ns: int) -> int:
    """A time of day of today; of yesterday where today's has not come yet."""
    now = datetime.fromtimestamp(now_ns / 10**9)
    hour, minute, second, part = clock.groups()
    micro = int((part or "0").ljust(6, "0"))
    then = now.replace(hour=int(hour), minute=int(minute), second=int(second or 0), microsecond=micro)
    return _ns(then if then <= now else then - timedelta(days=1))


def _ns(moment: datetime) -> int:
    return int(moment.timestamp() * 10**6) * 1000
