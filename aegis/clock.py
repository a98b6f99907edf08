"""Wall-clock time as text: UTC, ISO 8601, with ``Z``. Durations never come from here."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> str:
    """Now, with milliseconds: ``2026-05-22T14:03:25.120Z``."""
    return utc_text(datetime.now(UTC))


def utc_text(moment: datetime) -> str:
    """``moment`` (aware) in UTC with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_seconds(timestamp: str) -> str:
    """A timestamp without its fraction: ``2026-05-22T14:03:25Z``."""
    return f"{timestamp[:19]}Z" if timestamp.endswith("Z") else timestamp
