"""Numbers on the command line, in ASCII digits only. Pure.

``float`` and ``int`` would also accept ``nan``, ``inf``, ``1_0``, blanks, and digits of any script.
"""

from __future__ import annotations

import re

# Not compiled here: most commands have no number.
_WHOLE = r"[+-]?[0-9]{1,18}"
_DECIMAL = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"

MAX_SECONDS = 1e9
"""About 32 years: the longest time that is accepted."""


def whole_number(text: str) -> int:
    """Parse an int. Raises ``ValueError`` with a sentence: ``'x' is not …``."""
    if re.fullmatch(_WHOLE, text) is None:
        raise ValueError(f"{text!r} is not a valid integer")
    return int(text)


def decimal(text: str) -> float:
    """Parse a finite float. Raises ``ValueError`` with a sentence, also for ``nan``."""
    # 1e400 matches the pattern and overflows a float.
    if re.fullmatch(_DECIMAL, text) is None or abs(float(text)) == float("inf"):
        raise ValueError(f"{text!r} is not a valid float: give a number such as 10 or 0.5")
    return float(text)


def seconds(text: str) -> float:
    """Parse a time in seconds, 0 or more. Raises ``ValueError`` with a sentence."""
    number = decimal(text)
    if not 0 <= number <= MAX_SECONDS:
        raise ValueError(f"{text!r} is not a time: give seconds, 0 or more")
    return number
