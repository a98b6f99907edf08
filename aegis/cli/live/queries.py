"""A filter that removes terminal queries from output. Pure.

The daemon answers the queries that programs send to their terminal. The terminal of an attached
user must not answer them again: its answers would arrive as keystrokes. So queries are removed, and
so are the sequences that switch the keyboard to another protocol, which the daemon reports to
programs as off. ``docs/explanation/what-the-terminal-answers.md`` has the list.
"""

from __future__ import annotations

import re

MAX_STRING_BYTES = 8192
"""The longest OSC or DCS that is recognised."""

_TEXT = rb"[^\x07\x18\x1a\x1b]"
_END = rb"(?:\x07|\x1b\\)"

_CSI = (
    rb"\[(?:"
    rb"[>=]?[0-9;]*+c"  # device attributes
    rb"|[?>]?[0-9;]*+n"  # status, cursor
    rb"|>[0-9;]*+q"  # name and version
    rb"|[?>=<][0-9;:]*+u"  # the keyboard of kitty: its flags, and switching them
    rb"|[?>][0-9;:]*+m"  # the keyboard of xterm
    rb"|\??[0-9;]*+\$p|[0-9]*+\$[wu]"  # modes and other state
    rb"|(?:1[134568]|19|2[01])(?:;[0-9]*+)*t"  # the window
    rb"|[0-9;]*+\*y|[0-9;]*+x|\?[0-9;]*+S|#R|[0-9;]*+'\|"
    rb")"
)
_OSC = (
    rb"\](?!(?:[012789]|133|777);)[0-9]{1,5};"
    rb"(?:(?:[^\x07\x18\x1a\x1b;]{0,1024}+;){0,16}?\?|Report|Request)%b{0,%d}+%b"
    % (_TEXT, MAX_STRING_BYTES, _END)
)
_DCS = rb"P[+$]q%b{0,%d}+\x1b\\" % (_TEXT, MAX_STRING_BYTES)

# A kitty graphics APC is answered too; with another letter it is unknown and ignored.
_QUERY = re.compile(rb"\x05|\x1b(?:Z|%b|%b|%b)|\xc2[\x90\x9a\x9b\x9d\x9f]" % (_CSI, _OSC, _DCS))
_GRAPHICS = b"\x1b_G"
_UNKNOWN = b"\x1b_X"

_UNFINISHED = re.compile(
    rb"(?:\x1b(?:\[[<=>?]?[0-9;:]{0,64}[#$'*]?|\][0-9]{0,5}(?:;%b{0,%d}\x1b?)?"
    rb"|P(?:[+$](?:q%b{0,%d}\x1b?)?)?|_)?|\xc2)\Z"
    % (_TEXT, MAX_STRING_BYTES, _TEXT, MAX_STRING_BYTES)
)
_LONGEST = MAX_STRING_BYTES + 16


class QueryFilter:
    """A filter for one output, fed in pieces; it never returns part of a sequence it knows."""

    def __init__(self) -> None:
        self._withheld = b""

    def feed(self, data: bytes) -> bytes:
        """Return the output to show now; an unfinished sequence at the end is withheld."""
        data = self._withheld + data
        cut = _UNFINISHED.search(data, max(0, len(data) - _LONGEST))
        self._withheld = b"" if cut is None else cut.group()
        whole = data[: len(data) - len(self._withheld)]
        if b"\x1b" not in whole and b"\x05" not in whole and b"\xc2" not in whole:
            return whole
        return _QUERY.sub(b"", whole).replace(_GRAPHICS, _UNKNOWN)

    def reset(self) -> None:
        """Drop the withheld bytes, since the output continues at another place."""
        self._withheld = b""
