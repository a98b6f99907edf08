"""The kinds of streams: the arguments that open one, and the values made of its frames. Pure.

A kind records how far its stream was received. After a lost connection the stream is opened again
from that position.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar, cast

import attrs

from actors.codec import structure
from actors.errors import CodecError
from aegis.client.errors import ProtocolMismatch
from aegis.protocol import streams
from aegis.protocol.daemon import TreeNode
from aegis.protocol.inboxes import Message
from aegis.protocol.output_streams import (
    BellItem,
    KeysRefusedItem,
    OutputStart,
    Redraw,
    Refused,
    ResizedItem,
    ScreenItem,
    SizeOwnerItem,
    SizeRefusedItem,
    StateItem,
    TitleItem,
    TypingItem,
    WindowSize,
)
from aegis.protocol.streams import (
    CommandItem,
    DeltaItem,
    OpenRequestsItem,
    OutputBytes,
    RequestItem,
    SnapshotItem,
    TerminalItem,
    TerminalsItem,
    TreeChange,
)

GapReason = Literal["slow", "reconnected"]


@attrs.frozen(kw_only=True)
class Chunk:
    """Bytes that a terminal printed; ``cursor`` is the offset of the first of them."""

    cursor: int
    data: bytes

    @property
    def next_cursor(self) -> int:
        """The offset of the next chunk if nothing is missing."""
        return self.cursor + len(self.data)


@attrs.frozen(kw_only=True)
class Gap:
    """A gap in a stream.

    ``dropped`` is the number of missing bytes (output) or items; None if unknown. ``cursor`` is the
    offset where output continues, None for items. ``reason``: the reader was too ``slow``, or the
    connection was lost and replaced (``reconnected``).
    """

    dropped: int | None
    cursor: int | None
    reason: GapReason


T = TypeVar("T")
C = TypeVar("C")

OutputValue = (
    Chunk
    | Gap
    | Redraw
    | WindowSize
    | StateItem
    | TitleItem
    | BellItem
    | TypingItem
    | SizeOwnerItem
    | Refused
)
"""``Refused``: the terminal did not accept keys, or a claim, sent through this stream."""

TreeValue = TreeNode | TreeChange | Gap
InboxValue = Message | Gap
RequestValue = OpenRequestsItem | RequestItem | Gap
EventValue = TerminalsItem | TerminalItem | CommandItem | Gap

RECONNECTED = Gap(dropped=None, cursor=None, reason="reconnected")


_ITEMS: dict[str, type[StateItem | TitleItem | BellItem | TypingItem | SizeOwnerItem]] = {
    "title": TitleItem,
    "bells": BellItem,
    "typing": TypingItem,
    "size_owner": SizeOwnerItem,
}


class Kind(Generic[T]):
    """The base class of kinds. ``handle``: the handle to open it under, if the client has one."""

    stream: str

    def __init__(self, handle: str | None) -> None:
        self._who: dict[str, object] = {} if handle is None else {"from_handle": handle}
        self._was_open = False

    def arguments(self) -> dict[str, object]:
        """Return the arguments that open the stream at its present position."""
        return dict(self._who)

    def opened(self, start: dict[str, Any]) -> list[T]:
        """Handle that the stream was opened; return the values to report, such as a ``Gap``."""
        del start
        again, self._was_open = self._was_open, True
        return [cast("T", RECONNECTED)] if again else []

    def item(self, document: dict[str, Any]) -> T:
        """Convert an item to a value. Raises ``ProtocolMismatch``."""
        raise NotImplementedError

    def items(self, document: dict[str, Any]) -> list[T]:
        """Convert an item to its values. Raises ``ProtocolMismatch``."""
        return [self.item(document)]

    def gap(self, frame: streams.Gap) -> Gap:
        """Convert a gap frame to a value."""
        return Gap(dropped=frame.dropped, cursor=frame.cursor, reason="slow")

    def is_restarted(self, code: str) -> bool:
        """Return whether a stream refused with ``code`` is opened again from the start."""
        del code
        return False


class OutputKind(Kind[OutputValue]):
    """Output of the terminal ``name``, from ``cursor`` on, or from its ``screen`` on."""

    stream = "terminal_output"

    def __init__(
        self,
        handle: str | None,
        name: str,
        *,
        cursor: int | None,
        screen: bool,
        scrollback: int = 0,
        end: int | None = None,
    ) -> None:
        super().__init__(handle)
        self._name = name
        self._cursor = cursor
        self._end = end
        self._screen = screen
        self._scrollback = scrollback
        self._was_restarted = False
        self.start: OutputStart | None = None

    def arguments(self) -> dict[str, object]:
        """Return the arguments; the cursor follows the last byte received."""
        asked: dict[str, object] = {"name": self._name, **super().arguments()}
        if self.start is None and self._screen:
            lines = {"scrollback": self._scrollback} if self._scrollback else {}
            return {**asked, "screen": True, **lines}
        if self._cursor is None:
            return asked
        end = {} if self._end is None else {"end": self._end}
        return {**asked, "cursor": self._cursor, **end}

    def opened(self, start: dict[str, Any]) -> list[OutputValue]:
        """Take the start from the daemon.

        If the stream was open before, return the state now, which no other item reports. After a
        restart from the start, a gap is before that.
        """
        begun = structured(OutputStart, start)
        self._cursor = begun.cursor if self._cursor is None else self._cursor
        restarted, self._was_restarted = self._was_restarted, False
        if self.start is None:
            self.start = begun
            return []
        gap = Gap(dropped=None, cursor=begun.cursor, reason="reconnected")
        return [
            *([gap] if restarted else []),
            StateItem(state=begun.state, needs_input=begun.needs_input),
            TypingItem(typing=begun.typing),
            SizeOwnerItem(size_owner=begun.size_owner),
        ]

    def chunk(self, output: OutputBytes) -> Chunk:
        """Convert output bytes to a chunk."""
        chunk = Chunk(cursor=output.cursor, data=output.data)
        self._cursor = chunk.next_cursor
        return chunk

    def item(self, document: dict[str, Any]) -> OutputValue:
        """Return the value of an item."""
        match document:
            case {"screen": _}:
                return structured(ScreenItem, document).screen
            case {"resized": _}:
                return structured(ResizedItem, document).resized
            case {"keys_refused": _}:
                return structured(KeysRefusedItem, document).keys_refused
            case {"size_refused": _}:
                return structured(SizeRefusedItem, document).size_refused
            case _:
                form = next((form for name, form in _ITEMS.items() if name in document), StateItem)
                return structured(form, document)

    def gap(self, frame: streams.Gap) -> Gap:
        """Convert a gap of bytes that are no longer stored."""
        if frame.cursor is not None:
            self._cursor = frame.cursor
        return super().gap(frame)

    def is_restarted(self, code: str) -> bool:
        """Return True once if the cursor is refused."""
        # A killed daemon may have stored less output than it had sent.
        if self.start is None or self._cursor is None or code != "invalid_request":
            return False
        self._cursor, self._was_restarted = None, True
        return True


class TreeKind(Kind[TreeValue]):
    """The supervision tree: a snapshot, then changes."""

    stream = "tree"

    def item(self, document: dict[str, Any]) -> TreeValue:
        """Return the whole tree or one change."""
        if "snapshot" in document:
            return structured(SnapshotItem, document).snapshot
        return structured(DeltaItem, document).delta


class InboxKind(Kind[InboxValue]):
    """Messages of an inbox after the one with the id ``after``."""

    stream = "inbox"

    def __init__(self, handle: str | None, after: str | None) -> None:
        super().__init__(handle)
        self.after = after

    def arguments(self) -> dict[str, object]:
        """Return the arguments; ``after`` is the last message received."""
        asked = super().arguments()
        return asked if self.after is None else {**asked, "after": self.after}

    def opened(self, start: dict[str, Any]) -> list[InboxValue]:
        """Report nothing: no message is missing."""
        del start
        return []

    def item(self, document: dict[str, Any]) -> Message:
        """Return a message."""
        message = structured(Message, document)
        self.after = message.id
        return message


class RequestsKind(Kind[RequestValue]):
    """Requests to people: the open ones, then changes."""

    stream = "requests"

    def item(self, document: dict[str, Any]) -> RequestValue:
        """Return the ids of the open requests, or one request."""
        if "open" in document:
            return structured(OpenRequestsItem, document)
        return structured(RequestItem, document)


class StatesKind(Kind[T]):
    """The states of everything of one kind, such as queues: all of them, then changes.

    ``every`` is the class of the item with all, in a field named as the ``stream``; ``each`` is
    that of an item with one.
    """

    def __init__(self, handle: str | None, stream: str, every: type, each: type) -> None:
        super().__init__(handle)
        self.stream, self._every, self._each = stream, every, each

    def item(self, document: dict[str, Any]) -> T:
        """Return all, or one."""
        form = self._every if self.stream in document else self._each
        return cast("T", structured(form, document))


class EventKind(Kind[EventValue]):
    """Events of terminals and commands."""

    stream = "events"

    def item(self, document: dict[str, Any]) -> EventValue:
        """Return all open terminals, or the present state of a terminal or a command."""
        if "terminals" in document:
            return structured(TerminalsItem, document)
        if "terminal" in document:
            return structured(TerminalItem, document)
        return structured(CommandItem, document)


def structured(form: type[C], document: dict[str, Any]) -> C:
    """Convert ``document`` to the class ``form``. Raises ``ProtocolMismatch``."""
    try:
        return structure(form, document)
    except CodecError as error:
        raise ProtocolMismatch(
            f"an item of a stream does not fit ({error}): the daemon is of another version"
        ) from None
