"""The streams that there are: what each asks for, what its frames become, where it goes on. Pure.

A kind remembers how far its stream came. After a lost connection the next one opens it from there.
"""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Literal, TypeVar, cast

import attrs

from actors.codec import structure
from actors.errors import CodecError
from aegis.client.errors import ProtocolMismatch
from aegis.protocol import streams
from aegis.protocol.daemon import TreeNode
from aegis.protocol.inboxes import Message
from aegis.protocol.streams import (
    CommandItem,
    DeltaItem,
    KeysRefusedItem,
    OutputBytes,
    OutputStart,
    Redraw,
    Refused,
    ResizedItem,
    ScreenItem,
    SnapshotItem,
    StateItem,
    TerminalItem,
    TreeChange,
    WindowSize,
)

GapReason = Literal["slow", "reconnected"]


@attrs.frozen(kw_only=True)
class Chunk:
    """Bytes that a terminal printed; ``cursor`` is the offset of the first of them."""

    cursor: int
    data: bytes

    @property
    def next_cursor(self) -> int:
        """Where the next chunk begins, if nothing is missing."""
        return self.cursor + len(self.data)


@attrs.frozen(kw_only=True)
class Gap:
    """Something is missing here.

    ``dropped`` is how much: bytes of output, else items; null: nobody knows. ``cursor`` is where
    output goes on, null for items. ``reason``: the reader was too ``slow``, or the connection was
    lost meanwhile and came again (``reconnected``).
    """

    dropped: int | None
    cursor: int | None
    reason: GapReason


T = TypeVar("T")
C = TypeVar("C")

OutputValue = Chunk | Gap | Redraw | WindowSize | StateItem | Refused
"""``Refused``: keys that were typed here were not taken."""

TreeValue = TreeNode | TreeChange | Gap
InboxValue = Message | Gap
EventValue = TerminalItem | CommandItem | Gap

RECONNECTED = Gap(dropped=None, cursor=None, reason="reconnected")


class Kind(Generic[T]):
    """What one stream is about. ``handle``: whose it is, where the daemon does not know that."""

    stream: ClassVar[str]

    def __init__(self, handle: str | None) -> None:
        self._who: dict[str, object] = {} if handle is None else {"from_handle": handle}
        self._was_open = False

    def arguments(self) -> dict[str, object]:
        """What to open it with, now."""
        return dict(self._who)

    def opened(self, start: dict[str, Any]) -> list[T]:
        """It is open, or open again; gives what is to be told of that."""
        del start
        again, self._was_open = self._was_open, True
        return [cast("T", RECONNECTED)] if again else []

    def item(self, document: dict[str, Any]) -> T:
        """What an item is. Raises ``ProtocolMismatch``."""
        raise NotImplementedError

    def gap(self, frame: streams.Gap) -> Gap:
        """What a gap is."""
        return Gap(dropped=frame.dropped, cursor=frame.cursor, reason="slow")

    def is_restarted(self, code: str) -> bool:
        """Whether, refused with ``code``, it is opened once more from where it may begin."""
        del code
        return False


class OutputKind(Kind[OutputValue]):
    """Output of the terminal ``name``, from ``cursor`` on, or from its ``screen`` on."""

    stream = "terminal_output"

    def __init__(self, handle: str | None, name: str, *, cursor: int | None, screen: bool) -> None:
        super().__init__(handle)
        self._name = name
        self._cursor = cursor
        self._screen = screen
        self._is_cut = False
        self.start: OutputStart | None = None

    def arguments(self) -> dict[str, object]:
        """From the byte behind the last one that came."""
        asked: dict[str, object] = {"name": self._name, **super().arguments()}
        if self.start is None and self._screen:
            return {**asked, "screen": True}
        return asked if self._cursor is None else {**asked, "cursor": self._cursor}

    def opened(self, start: dict[str, Any]) -> list[OutputValue]:
        """Bytes begin where the daemon says; a gap is told by itself."""
        begun = structured(OutputStart, start)
        self._cursor = begun.cursor if self._cursor is None else self._cursor
        self.start = self.start or begun
        cut, self._is_cut = self._is_cut, False
        return [Gap(dropped=None, cursor=begun.cursor, reason="reconnected")] if cut else []

    def chunk(self, output: OutputBytes) -> Chunk:
        """Bytes as they came."""
        chunk = Chunk(cursor=output.cursor, data=output.data)
        self._cursor = chunk.next_cursor
        return chunk

    def item(self, document: dict[str, Any]) -> OutputValue:
        """The screen, the window's size, the state, or why keys were not typed."""
        match document:
            case {"screen": _}:
                return structured(ScreenItem, document).screen
            case {"resized": _}:
                return structured(ResizedItem, document).resized
            case {"keys_refused": _}:
                return structured(KeysRefusedItem, document).keys_refused
            case _:
                return structured(StateItem, document)

    def gap(self, frame: streams.Gap) -> Gap:
        """Bytes that are kept no more."""
        if frame.cursor is not None:
            self._cursor = frame.cursor
        return super().gap(frame)

    def is_restarted(self, code: str) -> bool:
        """A daemon that was killed may have kept less than it had sent: then it begins anew."""
        if self.start is None or self._cursor is None or code != "invalid_request":
            return False
        self._cursor, self._is_cut = None, True
        return True


class TreeKind(Kind[TreeValue]):
    """The live supervision tree: the whole of it, then changes."""

    stream = "tree"

    def item(self, document: dict[str, Any]) -> TreeValue:
        """The whole tree, or one change."""
        if "snapshot" in document:
            return structured(SnapshotItem, document).snapshot
        return structured(DeltaItem, document).delta


class InboxKind(Kind[InboxValue]):
    """Messages of an inbox behind the one whose id is ``after``."""

    stream = "inbox"

    def __init__(self, handle: str | None, after: str | None) -> None:
        super().__init__(handle)
        self.after = after

    def arguments(self) -> dict[str, object]:
        """Behind the last message that came."""
        asked = super().arguments()
        return asked if self.after is None else {**asked, "after": self.after}

    def opened(self, start: dict[str, Any]) -> list[InboxValue]:
        """Nothing is missing: it goes on behind the last message."""
        del start
        return []

    def item(self, document: dict[str, Any]) -> Message:
        """A message."""
        message = structured(Message, document)
        self.after = message.id
        return message


class EventKind(Kind[EventValue]):
    """What happens on terminals."""

    stream = "events"

    def item(self, document: dict[str, Any]) -> EventValue:
        """A terminal or a command, as it is now."""
        if "terminal" in document:
            return structured(TerminalItem, document)
        return structured(CommandItem, document)


def structured(form: type[C], document: dict[str, Any]) -> C:
    """``document`` as an object of ``form``. Raises ``ProtocolMismatch``."""
    try:
        return structure(form, document)
    except CodecError as error:
        raise ProtocolMismatch(
            f"an item of a stream does not fit ({error}): the daemon is of another version"
        ) from None
