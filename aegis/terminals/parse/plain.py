r"""From raw bytes of a PTY, cut at any cursor, to text that reads on where the one before ended.

A cleaner with a memory (``text.py``) is right for the output of a command. A client that reads by
cursors has none here: what its next call gives must not depend on what the last one gave. So every
rule looks at the bytes from the cursor on only, at most ``LOOKAHEAD_BYTES`` of them:

- Escape sequences and other control characters go, but for TAB and LF; CRs before an LF go with it.
- Any other CR begins a line, so each state of a line that is redrawn is a line of its own. The one
  with which the line editor leaves its paste mode goes.
- What is drawn on the alternate screen is text too, in the order in which it was drawn.
- A string (OSC, DCS, …) longer than ``MAX_STRING_BYTES`` is text.
- Invalid UTF-8 is replaced by U+FFFD.

What the end of the bytes cuts off (a sequence, a character, a CR) is left for the next call.
Therefore the texts of any calls in a row, put together, are the text of one call for all. Pure.
"""

from __future__ import annotations

import codecs
import re

import attrs

MAX_STRING_BYTES = 65_536
_MAX_RETURNS = 64
_MAX_PARAMETERS = 128

LOOKAHEAD_BYTES = MAX_STRING_BYTES + 4
"""So far behind the last byte that is taken lies what decides how it reads."""

_PARAMETERS = rb"[ -?]{0,%d}" % _MAX_PARAMETERS
_RETURNS = rb"\r{1,%d}" % _MAX_RETURNS
_OSC = rb"\x1b\][^\x07\x18\x1a\x1b]{0,%d}" % MAX_STRING_BYTES
_STRING = rb"\x1b[PX^_][^\x18\x1a\x1b]{0,%d}" % MAX_STRING_BYTES

_TOKEN = re.compile(
    rb"(?P<text>[^\x00-\x08\x0a-\x1f\x7f]+)"
    rb"|(?P<line_end>(?:" + _RETURNS + rb")?\n)"
    rb"|(?P<redraw>" + _RETURNS + rb")"
    rb"|(?P<dropped>"
    rb"\x1b\[\?2004l(?:" + _RETURNS + rb"(?![\r\n]))?"
    rb"|" + _OSC + rb"(?:[\x07\x18\x1a]|(?=\x1b))"
    rb"|" + _STRING + rb"(?:[\x18\x1a]|(?=\x1b))"
    rb"|\x1b(?:\[" + _PARAMETERS + rb"[@-~]?|[ -/]{1,2}[0-~]?|[0-~])?"
    rb"|[\x00-\x1f\x7f])"
)
_CUT_OFF = re.compile(
    rb"(?:" + _RETURNS + rb"|\x1b\[\?2004l(?:" + _RETURNS + rb")?|" + _OSC + rb"|" + _STRING + rb""
    rb"|\x1b(?:\[" + _PARAMETERS + rb"|[ -/]{0,2})?)\Z"
)
_SHORTEST_SAFE = 3
"""A token of more bytes than this that ends before the end of the bytes is whole."""

_C1 = re.compile("[\x80-\x9f]")


@attrs.frozen
class Taken:
    """``text`` is what the first ``size`` bytes say."""

    text: str
    size: int


def take_plain(
    data: bytes, limit: int, *, whole: bool = False, max_chars: int | None = None
) -> Taken:
    """The plain text of the first ``limit`` bytes of ``data`` (4 or more), or a little less.

    A sequence that begins before the limit is taken to its end. ``whole``: nothing follows that
    ``data`` could be continued with, so what its end cuts off is taken too. ``max_chars``: stop as
    soon as there are as many characters.
    """
    texts: list[str] = []
    chars, position = 0, 0
    room = len(data) if max_chars is None else max_chars
    while position < min(limit, len(data)) and chars < room:
        found = _TOKEN.match(data, position)
        assert found is not None
        if found.lastgroup == "text":
            stop = min(found.end(), limit)
            is_last = stop < found.end() or (stop == len(data) and not whole)
            taken = _take_text(data[position:stop], is_last=is_last, max_chars=room - chars)
        elif not whole and _is_cut_off(data, found):
            break
        else:
            taken = Taken("" if found.lastgroup == "dropped" else "\n", len(found.group()))
        texts.append(taken.text)
        chars += len(taken.text)
        position += taken.size
        if not taken.size:
            break
    return Taken("".join(texts), position)


def take_raw(data: bytes, limit: int, *, whole: bool = False) -> Taken:
    """The first ``limit`` bytes of ``data`` (4 or more) as text, without a torn character."""
    text, size = _decoded(data[:limit], is_last=not whole or limit < len(data))
    return Taken(text, size)


def _is_cut_off(data: bytes, found: re.Match[bytes]) -> bool:
    """Whether further bytes could make another token of this one."""
    ends_early = found.end() < len(data)
    if ends_early and len(found.group()) > _SHORTEST_SAFE:
        return False
    return _CUT_OFF.match(data, found.start()) is not None


def _take_text(data: bytes, *, is_last: bool, max_chars: int) -> Taken:
    text, size = _decoded(data, is_last=is_last)
    text = _without_controls(text)
    if len(text) <= max_chars:
        return Taken(text, size)
    return _first_chars(data, max_chars)


def _first_chars(data: bytes, chars: int) -> Taken:
    """The fewest bytes of ``data`` that hold so many characters."""
    low, high = chars, len(data)
    while low < high:
        middle = (low + high) // 2
        if len(_without_controls(_decoded(data[:middle], is_last=True)[0])) >= chars:
            high = middle
        else:
            low = middle + 1
    text, size = _decoded(data[:low], is_last=True)
    return Taken(_without_controls(text), size)


def _without_controls(text: str) -> str:
    return text if text.isascii() else _C1.sub("", text)


def _decoded(data: bytes, *, is_last: bool) -> tuple[str, int]:
    """``data`` as text, and how many bytes of it that is; ``is_last``: leave a torn character."""
    if not is_last:
        return data.decode("utf-8", "replace"), len(data)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    return text, len(data) - len(decoder.getstate()[0])
