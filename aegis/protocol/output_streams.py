"""The stream of a terminal's output: its arguments and items. Pure."""

from __future__ import annotations

from typing import Any

import attrs

from aegis.protocol.command import between, described
from aegis.protocol.output import MAX_CURSOR
from aegis.protocol.terminals import NeedsInput, OnTerminal, State, Typing

MAX_SCROLLBACK = 10_000
"""Lines above the screen that a client may ask for."""


@attrs.frozen(kw_only=True)
class StreamOutput(OnTerminal[Any]):
    """Output of a terminal as bytes, and keys to type there.

    Bytes are sent as binary messages; items report its size and state. Bytes that are no longer
    kept when there is credit for them become a gap, after which the newest output follows. A
    restart of the shell does not end the stream; it ends with ``closed``, after the last byte, when
    the terminal closes, or when the output has reached ``end``.
    """

    cursor: int | None = attrs.field(
        default=None,
        validator=between(0, MAX_CURSOR, "(a cursor)"),
        metadata=described(
            "Where to begin; default: now. Bytes no longer kept are a gap.", minimum=0
        ),
    )
    end: int | None = attrs.field(
        default=None,
        validator=between(0, MAX_CURSOR, "(a cursor)"),
        metadata=described(
            "Where to end: to replay a part of the output, such as that of one command. Default: "
            "never.",
            minimum=0,
        ),
    )
    screen: bool = attrs.field(
        default=False,
        metadata=described(
            "Begin with an item that draws the current screen; the bytes continue from there. Not "
            "together with cursor."
        ),
    )

    scrollback: int = attrs.field(
        default=0,
        validator=between(0, MAX_SCROLLBACK, "lines"),
        metadata=described(
            "With screen: draw so many lines above the screen first, so that they scroll away. "
            "They are taken from the newest 256 KiB of the main screen's output.",
            minimum=0,
            maximum=MAX_SCROLLBACK,
        ),
    )

    def __attrs_post_init__(self) -> None:
        if self.scrollback and not self.screen:
            raise ValueError("give screen with scrollback")
        if self.screen and self.cursor is not None:
            raise ValueError("give cursor or screen, not both")
        if self.end is not None and self.cursor is None:
            raise ValueError("give cursor with end: where to begin")
        if self.end is not None and self.cursor is not None and self.end < self.cursor:
            raise ValueError("end must not be before cursor")


@attrs.frozen(kw_only=True)
class SizeOwner:
    """The client that owns the terminal's size, and the time of its claim.

    ``yours``: it is the client of this stream.
    """

    writer: str
    since: str
    yours: bool


@attrs.frozen(kw_only=True)
class OutputStart:
    """The cursor of the first byte, the window's size there, and the terminal as it is now.

    ``alternate``: a full-screen program shows its own screen. The other fields are those of the
    items.
    """

    cursor: int
    cols: int
    rows: int
    state: State
    alternate: bool
    needs_input: NeedsInput | None = None
    title: str = ""
    bells: int = 0
    typing: Typing | None = None
    size_owner: SizeOwner | None = None


@attrs.frozen(kw_only=True)
class DrawnMark:
    """A place in a drawing behind a mark ``OSC 133;C``: the output of a command may begin there.

    ``at`` counts the bytes of ``redraw`` in UTF-8, ``cursor`` those of the output. A program can
    print such a mark: only the ``raw_start`` of a command's record makes it a beginning.
    """

    at: int
    cursor: int


@attrs.frozen(kw_only=True)
class Redraw:
    """``redraw`` is text with escape sequences that draws the screen as of ``cursor``.

    It begins with a reset, draws the main screen, and over it the alternate one if that is shown.
    The cursor, the title, and the modes of keys, paste and mouse are as the program set them. A
    screen has no colours, and no lines above it, if it was drawn more than 256 KiB of output ago
    or at another size: a signal WINCH makes most programs draw again. ``partial``: lines from
    before a flood of output may be missing. ``marks``, in order, are at most 1,000, the newest;
    none if the screen has no colours.
    """

    redraw: str
    cursor: int
    partial: bool
    marks: list[DrawnMark] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class ScreenItem:
    """The screen; the first item, if it was requested."""

    screen: Redraw


@attrs.frozen(kw_only=True)
class WindowSize:
    """Columns and rows of a window."""

    cols: int
    rows: int


@attrs.frozen(kw_only=True)
class ResizedItem:
    """The size of the window from the byte ``cursor`` on.

    The sizes are known since the shell's actor started; earlier output has the first known size.
    """

    resized: WindowSize
    cursor: int


@attrs.frozen(kw_only=True)
class SizeOwnerItem:
    """The new owner of the terminal's size; null: nobody owns it, and anybody may resize."""

    size_owner: SizeOwner | None


@attrs.frozen(kw_only=True)
class StateItem:
    """The new state of the terminal, and the input for which its command waits."""

    state: State
    needs_input: NeedsInput | None = None


@attrs.frozen(kw_only=True)
class TitleItem:
    """The new title of the window, as a program set it: text without control characters."""

    title: str


@attrs.frozen(kw_only=True)
class BellItem:
    """The bell rang; ``bells`` counts how often since the shell's actor started."""

    bells: int


@attrs.frozen(kw_only=True)
class TypingItem:
    """The writer who types: an unfinished line at the prompt, or keys for a program just now.

    null: nobody types.
    """

    typing: Typing | None


@attrs.frozen(kw_only=True)
class Refused:
    """The reason of a refusal: a stable code and one sentence."""

    code: str
    message: str


@attrs.frozen(kw_only=True)
class KeysRefusedItem:
    """Keys of one binary message were not typed."""

    keys_refused: Refused


@attrs.frozen(kw_only=True)
class SizeRefusedItem:
    """A claim was refused: the size and its owner stay as they are."""

    size_refused: Refused
