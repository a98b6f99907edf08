"""Output without what a terminal would answer. Pure.

The daemon answers the questions that programs ask their terminal. The terminal of somebody who is
attached must not answer them once more: its answers would come as keys. So they are left out of
what it is shown, and so is what makes its keyboard speak another protocol, which the daemon tells
programs is never on. ``docs/explanation/what-the-terminal-answers.md`` has the list.
"""

from __future__ import annotations

import re

MAX_STRING_BYTES = 8192
"""The longest OSC or DCS that is looked into."""

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
    rb"|(?:1[134568]|19|2[01])(?:;[0-9]*+)*+t"  # the window
    rb"|[0-9;]*+\*y|[0-9;]*+x|\?[0-9;]*+S|#R|[0-9;]*+'\|"
    rb")"
)
_OSC = (
    rb"\](?!(?:[012789]|133|777);)[0-9]{1,5};"
    rb"(?:(?:[^\x07\x18\x1a\x1b;]{0,1024}+;){0,16}?\?|Report|Request)%b{0,%d}+%b"
    % (_TEXT, MAX_STRING_BYTES, _END)
)
_DCS = rb"P[+$]q%b{0,%d}+\x1b\\" % (_TEXT, MAX_STRING_BYTES)

# An APC of kitty's graphics is answered too; with another letter it is one that nobody knows.
_QUESTION = re.compile(rb"\x05|\x1b(?:Z|%b|%b|%b)|\xc2[\x90\x9a\x9b\x9d\x9f]" % (_CSI, _OSC, _DCS))
_GRAPHICS = b"\x1b_G"
_UNKNOWN = b"\x1b_X"

_CUT_OFF = re.compile(
    rb"(?:\x1b(?:\[[<=>?]?[0-9;:]{0,64}[#$'*]?|\][0-9]{0,5}(?:;%b{0,%d}\x1b?)?"
    rb"|P(?:[+$](?:q%b{0,%d}\x1b?)?)?|_)?|\xc2)\Z"
    % (_TEXT, MAX_STRING_BYTES, _TEXT, MAX_STRING_BYTES)
)
_LONGEST = MAX_STRING_BYTES + 16


class QueryFilter:
    """Follows one output, cut anywhere. What it gives is never cut within a sequence it knows."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What of ``data``, and of what was held back before, may be shown now."""
        data = self._held + data
        cut = _CUT_OFF.search(data, max(0, len(data) - _LONGEST))
        self._held = b"" if cut is None else cut.group()
        whole = data[: len(data) - len(self._held)]
        if b"\x1b" not in whole and b"\x05" not in whole and b"\xc2" not in whole:
            return whole
        return _QUESTION.sub(b"", whole).replace(_GRAPHICS, _UNKNOWN)

    def reset(self) -> None:
        """The output goes on elsewhere: what was held back is void."""
        self._held = b""
