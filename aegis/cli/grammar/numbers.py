"""Numbers of a command line: ASCII digits, and nothing else that Python would take for one.

``float`` and ``int`` also read ``nan``, ``inf``, ``1_0``, blanks around, and the digits of every
script. Pure.
"""

from __future__ import annotations

import re

# Not compiled here: most commands have no number.
_WHOLE = r"[+-]?[0-9]{1,18}"
_DECIMAL = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"

MAX_SECONDS = 1e9
"""About 32 years. A longer time is a mistake, and far from where a float becomes infinite."""


def whole_number(text: str) -> int:
    """``text`` as an int. Raises ``ValueError`` with what is wrong: ``'x' is not …``."""
    if re.fullmatch(_WHOLE, text) is None:
        raise ValueError(f"{text!r} is not a valid integer")
    return int(text)


def decimal(text: str) -> float:
    """``text`` as a float. Raises ``ValueError`` with what is wrong, also for ``nan``."""
    # 1e400 is written as a number, and is none that a float can hold.
    if re.fullmatch(_DECIMAL, text) is None or abs(float(text)) == float("inf"):
        raise ValueError(f"{text!r} is not a valid float: give a number such as 10 or 0.5")
    return float(text)


def seconds(text: str) -> float:
    """``text`` as a time in seconds, 0 or more. Raises ``ValueError`` with what is wrong."""
    number = decimal(text)
    if not 0 <= number <= MAX_SECONDS:
        raise ValueError(f"{text!r} is not a time: give seconds, 0 or more")
    return number
