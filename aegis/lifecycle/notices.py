"""Statements of programs by OSC: notifications, progress and titles. Pure.

Notifications are OSC 9, 99 and 777, and the bell; progress is OSC 9;4, a title OSC 0 or 2. Of a
title, only the glyph or the words at its beginning count, because the rest is the name of a task.
"""

from __future__ import annotations

import base64
import re
from typing import Literal

import attrs

from aegis.lifecycle.states import MAX_TEXT_CHARS, MAX_TITLE_CHARS, clean

MAX_NOTICE_BYTES = 4096
"""Bytes of a notification that are read."""

# ConEmu gave OSC 9 some twenty meanings, each a number; any other text is a notification (iTerm2).
_CONEMU = re.compile(rb"[0-9]{1,2}(?:;|\Z)")
_PROGRESS = re.compile(rb"4;([0-4])(?:;([0-9]{0,3}))?(?:;.*)?", re.DOTALL)
_IN_PROGRESS = (b"1", b"3")  # with a percentage, and without; 2 is an error, 4 a pause


@attrs.frozen
class Notice:
    """The program wants the user's attention; ``text`` is empty for a bell."""

    text: str = ""


@attrs.frozen(kw_only=True)
class ProgressNotice:
    """The program reports its progress, or removes it (``in_progress`` is False)."""

    in_progress: bool
    percent: int | None = None


def read_notice(number: int, content: bytes) -> Notice | ProgressNotice | None:
    """Return the meaning of an OSC ``number``; None if it is no notification and no progress."""
    content = content[:MAX_NOTICE_BYTES]
    match number:
        case 9 if content.startswith(b"4;"):
            return _progress(content)
        case 9 if not _CONEMU.match(content):
            return Notice(_clean(content))
        case 99:
            return _kitty(content)
        case 777 if content.startswith(b"notify;"):
            title, _, body = content[len(b"notify;") :].partition(b";")
            return Notice(_clean(body) or _clean(title))
        case _:
            return None


def _progress(content: bytes) -> ProgressNotice | None:
    found = _PROGRESS.fullmatch(content)
    if found is None:
        return None
    state, percent = found[1], found[2]
    is_known = state in (b"1", b"2", b"4") and percent
    return ProgressNotice(
        in_progress=state in _IN_PROGRESS,
        percent=min(int(percent), 100) if is_known else None,
    )


def _kitty(content: bytes) -> Notice | None:
    """Return the notification that kitty's OSC 99 completes, with the text of its last part."""
    metadata, _, payload = content.partition(b";")
    values = dict(each.partition(b"=")[::2] for each in metadata.split(b":"))
    # Other payloads are queries, icons, buttons and the closing of a notification.
    if values.get(b"p", b"title") not in (b"title", b"body") or values.get(b"d") == b"0":
        return None
    if values.get(b"e") == b"1":
        try:
            payload = base64.b64decode(payload + b"=" * (-len(payload) % 4), validate=True)
        except ValueError:
            return None
    return Notice(_clean(payload))


def _clean(text: bytes) -> str:
    return clean(text.decode(errors="replace"), MAX_TEXT_CHARS)


MAX_TITLE_BYTES = 4096
"""Bytes of a title that are read."""

TitleClass = Literal["working", "ready", "blocked"]

# Of titles: Claude Code and Codex turn a spinner of braille dots or half circles. Gemini shows the
# other four.
_CLASSES: tuple[tuple[TitleClass, re.Pattern[str]], ...] = (
    ("working", re.compile("[\u2801-\u28ff\u25d0-\u25d3\u2726]\ufe0f?\\s*")),
    ("ready", re.compile("[\u2733\u25c7]\ufe0f?\\s*")),
    ("blocked", re.compile("\u270b\ufe0f?\\s*|(?:\\[ [!.] \\] )?(?=Action Required)")),
)


@attrs.frozen(kw_only=True)
class TitleChanged:
    """The window has a new title. ``text`` is the rest of it, which does not turn or blink."""

    text: str
    kind: TitleClass | None = None


def read_title(content: bytes) -> TitleChanged:
    """Return the title in an OSC 0 or 2 with this content."""
    text = content[:MAX_TITLE_BYTES].decode(errors="replace").strip()
    for kind, glyph in _CLASSES:
        if found := glyph.match(text):
            return TitleChanged(text=clean(text[found.end() :], MAX_TITLE_CHARS), kind=kind)
    return TitleChanged(text=clean(text, MAX_TITLE_CHARS))
