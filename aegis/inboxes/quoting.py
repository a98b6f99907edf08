"""``quoted_body``: a message's body, with a mark before each line that looks like a header. Pure.

A reader takes a line ``> from SENDER`` for the begin of a message, so a body could forge messages
of others. All line ends that a terminal, a browser or ``str.splitlines`` knows are seen as such.
Invisible characters and look-alikes of ``>`` and of the letters do not hide a header. A quotation
whose first word begins with four letters of Cyrillic, Greek and the like is marked too: such
letters can look like ``from``, and a mark does no harm.
"""

from __future__ import annotations

import re

MARK = "| "
"""The beginning of a line that looks like a header."""

_BREAKS = r"\n\v\f\r\x1c-\x1e\x85\u2028\u2029"

# Spaces, controls, format and filler characters, combining marks, variation selectors.
_UNSEEN = (
    r"\x00-\x09\x0e-\x1b\x1f \x7f-\x84\x86-\xa0\xad\u0300-\u036f\u0483-\u0489\u061c\u115f\u1160"
    r"\u1680\u17b4\u17b5\u180b-\u180f\u1ab0-\u1aff\u1dc0-\u1dff\u2000-\u200f\u202a-\u202f"
    r"\u205f-\u206f\u20d0-\u20ff\u2800\u3000\u3164\ufe00-\ufe0f\ufe20-\ufe2f\ufeff\uffa0"
    r"\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)

# ``>`` and the characters that Unicode lists as confusable with it, or that look alike in most
# fonts: angle brackets, arrow heads, relations, triangles.
_ARROWS = (
    r">\xbb\u02c3\u1433\u1438\u16b2\u203a\u2023\u21a0\u226b\u2265\u2267\u2269\u2273\u2277\u227b"
    r"\u2283\u22d7\u22d9\u2329\u232a\u25b6-\u25bb\u276d\u276f\u2771\u2794-\u27be\u27e9\u27eb"
    r"\u2992\u29fd\u2a7e\u2aa2\u2af8\u2e16\u2e21\u3009\u300b\ufe3e\ufe40\ufe65\uff1e"
    r"\U00016f3f\U0001f782\U0001f846"
)

_UNIT = rf"(?:\x1b\[[0-?]*+[ -/]*+[@-~]|[{_UNSEEN}])"
"""A character that takes no place or only space, or a sequence that styles a terminal's text."""

_OTHER = rf"(?![{_UNSEEN}\u2e80-\ua63f\uac00-\ud7af])[^\x00-\x7f]"
"""A character that may look like a Latin letter: none of ASCII and of East Asian scripts."""


def _whole(name: str, pattern: str) -> str:
    """Return a pattern that matches as much as it can and gives nothing back.

    So the time stays linear in the length of a hostile body. A possessive group would be wrong
    before Python 3.11.5, where it forgets where an alternative that has failed began (gh-106052).
    """
    return rf"(?=(?P<{name}>{pattern}))(?P={name})"


def _gap(name: str) -> str:
    return _whole(name, rf"{_UNIT}*")


_ALL_ARROWS = _whole("b", rf"(?:[{_ARROWS}]{_gap('c')})+")

_HEADER = re.compile(
    rf"([{_BREAKS}])"
    rf"(?={_gap('a')}{_ALL_ARROWS}"
    rf"(?:[fF]|{_OTHER}){_gap('d')}(?:[rR]|{_OTHER}){_gap('e')}(?:[oO0]|{_OTHER}){_gap('f')}"
    rf"(?:[mM]|rn|{_OTHER}))"
)


def quoted_body(body: str) -> str:
    """Return ``body`` with ``MARK`` before each line that a reader could take for a header."""
    return _HEADER.sub(rf"\1{MARK}", "\n" + body)[1:]
