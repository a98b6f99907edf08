"""Wall-clock time as text: UTC, ISO 8601, with ``Z``. Durations never come from here."""

from __future__ import annotations

import re
from datetime import UTC, datetime


def utc_now() -> str:
    """Now, with milliseconds: ``2026-05-22T14:03:25.120Z``."""
    return utc_text(datetime.now(UTC))


def utc_text(moment: datetime) -> str:
    """``moment`` (aware) in UTC with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment_text(moment: float) -> str:
    """Seconds since 1970 in UTC with milliseconds."""
    return utc_text(datetime.fromtimestamp(moment, UTC))


def to_seconds(timestamp: str) -> str:
    """A timestamp without its fraction: ``2026-05-22T14:03:25Z``."""
    return f"{timestamp[:19]}Z" if timestamp.endswith("Z") else timestamp


def local_text(moment: float) -> str:
    """Seconds since 1970 in this machine's zone, with its offset: ``2026-05-22T16:03:25+02:00``."""
    return datetime.fromtimestamp(moment).astimezone().isoformat(timespec="seconds")


_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(?P<zone> ?([Zz]|[+-]\d\d(:?\d\d)?))?"
)


def moment_of(text: str) -> datetime:
    """Return the moment that a person has written; without a zone it is this machine's local time.

    Raises ``ValueError`` with a sentence: for another form, such as a date alone or a week date,
    and for a local time that there is twice or not at all because the clocks change.
    """
    found = _TIME.fullmatch(text.strip())
    written = "" if found is None else found[0].upper().replace(" ", "T", 1).replace(" ", "")
    try:
        moment = datetime.fromisoformat(written)
        if found is not None and found["zone"]:
            moment.timestamp()
            return moment
        first, second = (moment.replace(fold=fold).astimezone() for fold in (0, 1))
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{text!r} is no date with a time of day: write it as 2026-05-22T14:00 (local time of "
            "this machine), 2026-05-22T14:00+02:00 or 2026-05-22T12:00Z"
        ) from None
    if first.utcoffset() == second.utcoffset():
        return first
    one, other = (each.strftime("%z") for each in (first, second))
    if first.replace(tzinfo=None) == moment:
        raise ValueError(
            f"{text!r} is there twice, as the clocks of this machine are set back then: write the "
            f"zone as well, {one[:3]}:{one[3:]} or {other[:3]}:{other[3:]}"
        )
    raise ValueError(
        f"{text!r} is not there, as the clocks of this machine are set forward then: write another "
        "time, or one with its zone"
    )
