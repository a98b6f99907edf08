r"""Plain text from raw bytes of a PTY, starting at any cursor, without state between calls. Pure.

A command's output is cleaned with state (``aegis.processes.text``). For clients that read by cursor
the result of a call must not depend on earlier calls. So each rule looks only at the bytes from the
cursor on, at most ``LOOKAHEAD_BYTES`` of them:

- Escape sequences and control characters except TAB and LF are removed, and CRs before an LF.
- Any other CR begins a line, so each state of a redrawn line is a line of its own. The CR with
  which the line editor leaves paste mode is removed.
- Text on the alternate screen is kept, in the order in which it was drawn.
- A string (OSC, DCS, …) longer than ``MAX_STRING_BYTES`` is text.
- Invalid UTF-8 is replaced by U+FFFD.

An incomplete end of the bytes (a sequence, a character, a CR) is left for the next call. Therefore
the joined texts of consecutive calls equal the text of one call for all.
"""

from __future__ import annotations

import codecs
import re

import attrs

MAX_STRING_BYTES = 65_536
_MAX_RETURNS = 64
_MAX_PARAMETERS = 128

LOOKAHEAD_BYTES = MAX_STRING_BYTES + 4
"""Bytes behind the last taken one that can affect its meaning."""

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
"""A token of more bytes than this that ends before the end of the bytes is complete."""

_C1 = re.compile("[\x80-\x9f]")


@attrs.frozen
class PlainText:
    """The ``text`` of the first ``size`` bytes."""

    text: str
    size: int


def take_plain(
    data: bytes, limit: int, *, whole: bool = False, max_chars: int | None = None
) -> PlainText:
    """Return the plain text of the first ``limit`` bytes of ``data`` (4 or more), or of a few less.

    A sequence that begins before the limit is taken to its end. ``whole``: no bytes follow
    ``data``, so an incomplete end is taken too. ``max_chars`` limits the text.
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
        elif not whole and _is_incomplete(data, found):
            break
        else:
            taken = PlainText("" if found.lastgroup == "dropped" else "\n", len(found.group()))
        texts.append(taken.text)
        chars += len(taken.text)
        position += taken.size
        if not taken.size:
            break
    return PlainText("".join(texts), position)


_PROMPT_END = re.compile(rb"\x1b\]133;B[^\x07\x1b]*(?:\x07|\x1b\\\\)")


def words_after_prompt(data: bytes) -> tuple[int, str]:
    """Return the text after the last prompt in ``data``, and the offset at which it begins.

    Without the mark of a prompt: the text of the last line.
    """
    prompts = list(_PROMPT_END.finditer(data))
    start = prompts[-1].end() if prompts else data.rstrip(b"\r\n").rfind(b"\n") + 1
    text = take_plain(data[start:], len(data), whole=True).text
    return start, "".join(f"{line.strip()}\n" for line in text.splitlines() if line.strip())


def take_raw(data: bytes, limit: int, *, whole: bool = False) -> PlainText:
    """Decode the first ``limit`` bytes of ``data`` (4 or more), without an incomplete character."""
    text, size = _decoded(data[:limit], is_last=not whole or limit < len(data))
    return PlainText(text, size)


def _is_incomplete(data: bytes, found: re.Match[bytes]) -> bool:
    """Return whether further bytes could change this token."""
    ends_early = found.end() < len(data)
    if ends_early and len(found.group()) > _SHORTEST_SAFE:
        return False
    return _CUT_OFF.match(data, found.start()) is not None


def _take_text(data: bytes, *, is_last: bool, max_chars: int) -> PlainText:
    text, size = _decoded(data, is_last=is_last)
    text = _without_controls(text)
    if len(text) <= max_chars:
        return PlainText(text, size)
    return _first_chars(data, max_chars)


def _first_chars(data: bytes, chars: int) -> PlainText:
    """Return the smallest prefix of ``data`` that holds this many characters."""
    low, high = chars, len(data)
    while low < high:
        middle = (low + high) // 2
        if len(_without_controls(_decoded(data[:middle], is_last=True)[0])) >= chars:
            high = middle
        else:
            low = middle + 1
    text, size = _decoded(data[:low], is_last=True)
    return PlainText(_without_controls(text), size)


def _without_controls(text: str) -> str:
    return text if text.isascii() else _C1.sub("", text)


def _decoded(data: bytes, *, is_last: bool) -> tuple[str, int]:
    """Decode ``data``; return text and size. ``is_last``: leave an incomplete character."""
    if not is_last:
        return data.decode("utf-8", "replace"), len(data)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    return text, len(data) - len(decoder.getstate()[0])
