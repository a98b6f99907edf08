"""Values of fields that an agent wrote: each is of the wanted type, or an empty value. Pure."""

from __future__ import annotations

import math
from typing import Any

MAX_NAME = 500
"""Characters of an id or a name; a longer one counts as missing."""

MAX_COUNT = 2**53
"""The largest count; a larger one counts as missing."""


def text(value: object) -> str:
    """Return a string, or ``""``."""
    return value if isinstance(value, str) else ""


def name(value: object) -> str:
    """Return an id or a name, or ``""``."""
    return value if isinstance(value, str) and len(value) <= MAX_NAME else ""


def mapping(value: object) -> dict[str, Any]:
    """Return an object, or ``{}``."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """Return an array, or ``[]``."""
    return value if isinstance(value, list) else []


def count(value: object) -> int | None:
    """Return a whole number from 0, or None."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MAX_COUNT else None


def number(value: object) -> float | None:
    """Return a finite number from 0, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int) and value > MAX_COUNT:
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None
