"""Times, durations and numbers as short text. Pure."""

from __future__ import annotations

from datetime import UTC, datetime


def duration(seconds: float) -> str:
    """Return a duration as people read it: ``4.20s``, ``3m05s``, ``2h10m``."""
    if seconds < 60:
        return f"{seconds:.2f}s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m"


def elapsed(seconds: float) -> str:
    """Return a time that still passes, in whole seconds: ``12s``, ``3m05s``."""
    return f"{max(0, int(seconds))}s" if seconds < 60 else duration(seconds)


def age(seconds: float) -> str:
    """Return the time since a moment in one unit: ``12s``, ``3m``, ``2h``, ``5d``."""
    whole = max(0, int(seconds))
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if whole >= length:
            return f"{whole // length}{unit}"
    return f"{whole}s"


def moment(text: str | None) -> float | None:
    """Return a time of the protocol in seconds since 1970; None: there is none, or no time."""
    if not text:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def since(text: str | None, now: float) -> str:
    """Return the age of a time of the protocol; empty without one."""
    at = moment(text)
    return "" if at is None else age(now - at)


def counted(count: int, noun: str) -> str:
    """Return a number of things: ``1 queue``, ``2 queues``."""
    return f"{count} {noun if count == 1 else f'{noun}s'}"


def clock(text: str | None) -> str:
    """Return the local time of day of a time of the protocol: ``14:03:21``."""
    at = moment(text)
    return "" if at is None else datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S")
