"""Streams: what a client of the WebSocket may be sent as it happens, and by what rule. Pure.

A client opens a stream with some credit, in bytes, and gives credit back as it consumes. Nothing is
sent beyond it: who gives none gets nothing, costs a bounded state, and nobody else waits. What is
left out meanwhile is told as a gap.

Credit: a binary message costs its bytes behind the head, an item and a gap the characters of their
frame. Bytes are cut to the credit; a frame of text is sent whole, so it may overdraw by itself.
"""

from __future__ import annotations

import struct
from typing import Any, ClassVar, Literal

import attrs

from aegis.errors import InvalidRequest
from aegis.protocol.command import Command, at_most_chars, between, described
from aegis.protocol.daemon import TreeNode
from aegis.protocol.inboxes import Message
from aegis.protocol.output import MAX_CURSOR
from aegis.protocol.terminals import OnTerminal, State, TerminalInfo

RequestId = int | str
StreamName = Literal["terminal_output", "tree", "inbox", "events"]

MAX_STREAMS = 32
"""Streams that one connection may have open."""

MAX_CREDIT = 16 * 1024 * 1024
"""Credit that one stream may have; what is given beyond it is void."""

MAX_CHUNK_BYTES = 64 * 1024
"""Bytes of output in one binary message."""

MAX_KEYS_BYTES = 64 * 1024
"""Bytes of keys in one binary message."""

MAX_EVENT_CMD_CHARS = 4096
"""What an event tells of a command's text at most."""

_OUTPUT_HEAD = struct.Struct(">IQ")
_KEYS_HEAD = struct.Struct(">I")


# What a client sends.


@attrs.frozen(kw_only=True)
class Open:
    """Open a stream. ``arguments`` are those of the stream; ``credit`` may be 0."""

    tag: ClassVar[str] = "open"
    id: RequestId
    stream: str
    arguments: dict[str, Any] = attrs.field(factory=dict)
    credit: int = 0


@attrs.frozen(kw_only=True)
class Credit:
    """More may be sent: ``amount`` bytes, 1 to 16777216. An unknown id does nothing."""

    tag: ClassVar[str] = "credit"
    id: RequestId
    amount: int


@attrs.frozen(kw_only=True)
class Close:
    """End a stream. An unknown id does nothing: it ended a moment ago."""

    tag: ClassVar[str] = "close"
    id: RequestId


# What the server sends.


@attrs.frozen(kw_only=True)
class Opened:
    """The stream is open. ``channel`` is the number of its binary messages; null: it has none.

    What the stream says of its start stands beside these.
    """

    tag: ClassVar[str] = "opened"
    id: RequestId
    channel: int | None


@attrs.frozen(kw_only=True)
class Item:
    """One item of the stream."""

    tag: ClassVar[str] = "item"
    id: RequestId
    item: dict[str, Any]


@attrs.frozen(kw_only=True)
class Gap:
    """``dropped`` was left out: bytes of output, else items.

    ``cursor`` is where output goes on; a gap of items has none.
    """

    tag: ClassVar[str] = "gap"
    id: RequestId
    dropped: int
    cursor: int | None


@attrs.frozen(kw_only=True)
class Ended:
    """Nothing of this id comes any more.

    ``code`` is null if the client closed it, ``closed`` if what it told of is over, else that of an
    error; ``message`` says in one sentence why.
    """

    tag: ClassVar[str] = "ended"
    id: RequestId
    code: str | None
    message: str | None


CLIENT_FRAMES: tuple[type, ...] = (Open, Credit, Close)
SERVER_FRAMES: tuple[type, ...] = (Opened, Item, Gap, Ended)


# Output of a terminal.


@attrs.frozen(kw_only=True)
class StreamOutput(OnTerminal[Any]):
    """What is printed on a terminal, as bytes, and what is typed there.

    Bytes come as binary messages; beside them items tell of its size and state. Bytes that are no
    longer kept when there is credit for them are a gap, behind which the newest output follows. A
    restart of the shell does not end it; it ends with ``closed``, after the last byte, when the
    terminal closes.
    """

    cursor: int | None = attrs.field(
        default=None,
        validator=between(0, MAX_CURSOR, "(a cursor)"),
        metadata=described("Where to begin; default: now. What is gone is a gap.", minimum=0),
    )
    screen: bool = attrs.field(
        default=False,
        metadata=described(
            "First an item that draws the screen as it is; bytes follow from exactly there. Not "
            "together with cursor."
        ),
    )

    def __attrs_post_init__(self) -> None:
        if self.screen and self.cursor is not None:
            raise ValueError("give cursor or screen, not both")


@attrs.frozen(kw_only=True)
class OutputStart:
    """Where the bytes begin, the window's size, the terminal's state, and which screen shows."""

    cursor: int
    cols: int
    rows: int
    state: State
    alternate: bool


@attrs.frozen(kw_only=True)
class Redraw:
    """``redraw`` is text with escape sequences that draws the screen as it is at ``cursor``.

    It begins with a reset. Characters are drawn without colours. The cursor, the title, the
    alternate screen, and the modes of keys, paste and mouse are as the program set them. With
    ``partial`` lines from before a flood of output may be missing.
    """

    redraw: str
    cursor: int
    partial: bool


@attrs.frozen(kw_only=True)
class ScreenItem:
    """The screen, as the first item, if it was asked for."""

    screen: Redraw


@attrs.frozen(kw_only=True)
class WindowSize:
    """Columns and rows of a window."""

    cols: int
    rows: int


@attrs.frozen(kw_only=True)
class ResizedItem:
    """The window has this size now."""

    resized: WindowSize


@attrs.frozen(kw_only=True)
class StateItem:
    """The terminal is in this state now."""

    state: State


@attrs.frozen(kw_only=True)
class Refused:
    """Why something was not done: a stable code and one sentence."""

    code: str
    message: str


@attrs.frozen(kw_only=True)
class KeysRefusedItem:
    """Keys of one binary message were not typed."""

    keys_refused: Refused


# The tree.


@attrs.frozen(kw_only=True)
class StreamTree(Command[Any]):
    """The live supervision tree: the whole of it first, then each change; the operator's only.

    After a gap comes the whole tree again.
    """


@attrs.frozen(kw_only=True)
class TreeChange:
    """A place of the tree is new, or in another state.

    ``state`` is starting, running, stopping, down (a life may follow) or stopped, which is the last
    of a place. ``restarts`` counts the lives before the present one, ``mailbox`` what waited.
    """

    path: str
    kind: str
    state: str
    restarts: int
    mailbox: int


@attrs.frozen(kw_only=True)
class SnapshotItem:
    """The whole tree as it is now."""

    snapshot: TreeNode


@attrs.frozen(kw_only=True)
class DeltaItem:
    """One change of it."""

    delta: TreeChange


# An inbox.


@attrs.frozen(kw_only=True)
class StreamInbox(Command[Any]):
    """The messages of your inbox as they come, in order. Reading here acknowledges nothing.

    What was acknowledged or folded into another message before there was credit for it is a gap.
    """

    after: str | None = attrs.field(
        default=None,
        validator=at_most_chars(512),
        metadata=described("The id of the last message that you know; default: only new ones."),
    )


# What happens on terminals.


@attrs.frozen(kw_only=True)
class StreamEvents(Command[Any]):
    """What happens on all terminals: they open, change and close, commands start and finish.

    Who falls behind by 1,024 events gets a gap, and then the newest ones.
    """


@attrs.frozen(kw_only=True)
class TerminalItem:
    """A terminal as it is now."""

    event: Literal["terminal_opened", "terminal_changed", "terminal_closed"]
    terminal: TerminalInfo


@attrs.frozen(kw_only=True)
class CommandHeader:
    """The head of a record; ``cmd`` is cut after 4,096 characters. The output is in the record.

    ``exit`` and ``duration_s`` (seconds) are null while it runs.
    """

    name: str
    seq: int
    cmd: str | None
    writer: str
    exit: int | None
    duration_s: float | None


@attrs.frozen(kw_only=True)
class CommandItem:
    """A command has begun, or its record is in the ledger."""

    event: Literal["command_started", "command_finished"]
    command: CommandHeader


@attrs.frozen(kw_only=True)
class StreamEntry:
    """One stream: its ``arguments``, what ``opened`` tells of its start, and its items.

    ``has_channel``: it has binary messages, both ways. ``operator``: for the operator only.
    """

    name: StreamName
    arguments: type[Command[Any]]
    items: tuple[type, ...]
    start: type | None = None
    has_channel: bool = False
    operator: bool = False


STREAMS: tuple[StreamEntry, ...] = (
    StreamEntry(
        name="terminal_output",
        arguments=StreamOutput,
        start=OutputStart,
        items=(ScreenItem, ResizedItem, StateItem, KeysRefusedItem),
        has_channel=True,
    ),
    StreamEntry(name="tree", arguments=StreamTree, items=(SnapshotItem, DeltaItem), operator=True),
    StreamEntry(name="inbox", arguments=StreamInbox, items=(Message,)),
    StreamEntry(name="events", arguments=StreamEvents, items=(TerminalItem, CommandItem)),
)

BY_STREAM: dict[str, StreamEntry] = {entry.name: entry for entry in STREAMS}


# Binary messages.


@attrs.frozen
class OutputBytes:
    """Bytes of a terminal: ``cursor`` is the offset of the first of them."""

    channel: int
    cursor: int
    data: bytes


def pack_output(output: OutputBytes) -> bytes:
    """As it travels: channel (4 bytes) and cursor (8), big endian, and the bytes."""
    return _OUTPUT_HEAD.pack(output.channel, output.cursor) + output.data


def unpack_output(message: bytes) -> OutputBytes:
    """What ``pack_output`` made. Raises ``InvalidRequest`` if it is too short."""
    if len(message) < _OUTPUT_HEAD.size:
        raise InvalidRequest(f"output has a head of {_OUTPUT_HEAD.size} bytes")
    channel, cursor = _OUTPUT_HEAD.unpack_from(message)
    return OutputBytes(channel, cursor, message[_OUTPUT_HEAD.size :])


def pack_keys(channel: int, keys: bytes) -> bytes:
    """Keys as they travel: channel (4 bytes, big endian) and the bytes to type."""
    return _KEYS_HEAD.pack(channel) + keys


def unpack_keys(message: bytes) -> tuple[int, bytes]:
    """Channel and keys. Raises ``InvalidRequest`` if there is no channel, or too many keys."""
    if len(message) < _KEYS_HEAD.size:
        raise InvalidRequest(f"a binary message begins with a channel of {_KEYS_HEAD.size} bytes")
    keys = message[_KEYS_HEAD.size :]
    if len(keys) > MAX_KEYS_BYTES:
        raise InvalidRequest(
            f"{len(keys)} bytes of keys are too many for one message; send at most {MAX_KEYS_BYTES}"
        )
    (channel,) = _KEYS_HEAD.unpack_from(message)
    return channel, keys


# The rule of credit.


def with_more(credit: int, amount: int) -> int:
    """The credit once ``amount`` more was given, at most ``MAX_CREDIT``."""
    return min(credit + amount, MAX_CREDIT)


def chunk_size(credit: int) -> int:
    """How many bytes of output may be sent as one message now; 0: wait for credit."""
    return max(0, min(credit, MAX_CHUNK_BYTES))


def may_send_text(credit: int) -> bool:
    """Whether one frame of text may be sent now, however long it is."""
    return credit > 0
