"""Streams of the WebSocket, their frames, and the rule of credit. Pure.

A client opens a stream with some credit, in bytes, and gives more as it consumes. The server sends
nothing beyond the credit: a client that gives none receives nothing, costs a bounded state, and
delays no other client. A gap replaces everything that was left out meanwhile.

Credit: a binary message costs its bytes after the head, an item and a gap the characters of their
frame. Bytes are limited to the credit; a text frame is sent whole and may overdraw it.
"""

from __future__ import annotations

import struct
from typing import Any, ClassVar, Literal

import attrs

from aegis.errors import InvalidRequest
from aegis.protocol.command import Command, at_most_chars, between, described
from aegis.protocol.daemon import TreeNode
from aegis.protocol.requests import RequestInfo
from aegis.protocol.terminals import (
    CommandHeader,
    TerminalInfo,
)

RequestId = int | str

MAX_STREAMS = 32
"""Maximum number of open streams of one connection."""

MAX_CREDIT = 16 * 1024 * 1024
"""Maximum credit of one stream; more is ignored."""

MAX_CHUNK_BYTES = 64 * 1024
"""Bytes of output in one binary message."""

MAX_KEYS_BYTES = 64 * 1024
"""Bytes of keys in one binary message."""

_OUTPUT_HEAD = struct.Struct(">IQ")
_KEYS_HEAD = struct.Struct(">I")


# Frames from the client.


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
    """Give more credit: ``amount`` bytes, 1 to 16777216. An unknown id is ignored."""

    tag: ClassVar[str] = "credit"
    id: RequestId
    amount: int


@attrs.frozen(kw_only=True)
class Close:
    """End a stream. An unknown id is ignored: the stream may have just ended."""

    tag: ClassVar[str] = "close"
    id: RequestId


@attrs.frozen(kw_only=True)
class Claim:
    """Become the owner of the terminal's size, or stay it, and set the size of its window.

    Only the owner may resize. If another stream owns the size, ``take`` makes this one the owner;
    without it the claim is refused. Ownership ends with the stream.
    """

    tag: ClassVar[str] = "claim"
    id: RequestId
    cols: int = attrs.field(validator=between(2, 1000, "columns"))
    rows: int = attrs.field(validator=between(1, 1000, "rows"))
    take: bool = False


@attrs.frozen(kw_only=True)
class Release:
    """Give up the ownership of the terminal's size; the size stays as it is."""

    tag: ClassVar[str] = "release"
    id: RequestId


# Frames from the server.


@attrs.frozen(kw_only=True)
class Opened:
    """The stream is open. ``channel`` is the number of its binary messages; null: it has none.

    The start fields of the stream are added to these.
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
    """``dropped`` bytes of output, or items, were left out.

    ``cursor`` is where output continues; a gap of items has none.
    """

    tag: ClassVar[str] = "gap"
    id: RequestId
    dropped: int
    cursor: int | None = None


@attrs.frozen(kw_only=True)
class Ended:
    """The stream has ended; no more frames have this id.

    ``code`` is null if the client closed it, ``closed`` if its subject has ended, else the code of
    an error; ``message`` gives the reason in one sentence.
    """

    tag: ClassVar[str] = "ended"
    id: RequestId
    code: str | None
    message: str | None


CLIENT_FRAMES: tuple[type, ...] = (Open, Credit, Close, Claim, Release)
SERVER_FRAMES: tuple[type, ...] = (Opened, Item, Gap, Ended)


# The tree.


@attrs.frozen(kw_only=True)
class StreamTree(Command[Any]):
    """The supervision tree: the whole tree first, then each change. For the operator only.

    After a gap the whole tree is sent again.
    """


@attrs.frozen(kw_only=True)
class TreeChange:
    """A node of the tree is new or has changed its state.

    ``state`` is starting, running, stopping, down (it may be restarted) or stopped (final).
    ``restarts`` counts the earlier incarnations, ``mailbox`` the queued messages.
    """

    path: str
    kind: str
    state: str
    restarts: int
    mailbox: int


@attrs.frozen(kw_only=True)
class SnapshotItem:
    """The whole tree."""

    snapshot: TreeNode


@attrs.frozen(kw_only=True)
class DeltaItem:
    """One change of the tree."""

    delta: TreeChange


# An inbox.


@attrs.frozen(kw_only=True)
class StreamInbox(Command[Any]):
    """The messages of your inbox as they arrive, in order. Reading acknowledges nothing.

    Messages that were acknowledged, or folded into another one, before there was credit for them
    are a gap.
    """

    after: str | None = attrs.field(
        default=None,
        validator=at_most_chars(512),
        metadata=described("The id of the last message that you have; default: only new ones."),
    )


# Requests.


@attrs.frozen(kw_only=True)
class StreamRequests(Command[Any]):
    """Requests to people: all open ones, then changes; all open ones again if some were missed."""


@attrs.frozen(kw_only=True)
class OpenRequestsItem:
    """The ids of all open requests; no other is open. An item for each of them follows."""

    open: list[str]


@attrs.frozen(kw_only=True)
class RequestItem:
    """A request as it is now."""

    request: RequestInfo


# Events of terminals.


@attrs.frozen(kw_only=True)
class StreamEvents(Command[Any]):
    """All open terminals, then events: they open, change and close, commands start and finish.

    A client that is 1,024 events behind gets a gap, all open terminals again, and the newest
    events.
    """


@attrs.frozen(kw_only=True)
class TerminalsItem:
    """All open terminals. An event that is sent later may be older: it is followed by the newer."""

    terminals: list[TerminalInfo]


@attrs.frozen(kw_only=True)
class TerminalItem:
    """A terminal as it is now."""

    event: Literal["terminal_opened", "terminal_changed", "terminal_closed"]
    terminal: TerminalInfo


@attrs.frozen(kw_only=True)
class CommandItem:
    """A command has begun or waits for other input than before, or its record is in the ledger."""

    event: Literal["command_started", "command_changed", "command_finished"]
    command: CommandHeader


# Binary messages.


@attrs.frozen
class OutputBytes:
    """Bytes of a terminal: ``cursor`` is the offset of the first of them."""

    channel: int
    cursor: int
    data: bytes


def pack_output(output: OutputBytes) -> bytes:
    """Encode output: channel (4 bytes) and cursor (8), big endian, then the bytes."""
    return _OUTPUT_HEAD.pack(output.channel, output.cursor) + output.data


def unpack_output(message: bytes) -> OutputBytes:
    """Decode the result of ``pack_output``. Raises ``InvalidRequest`` if it is too short."""
    if len(message) < _OUTPUT_HEAD.size:
        raise InvalidRequest(f"output has a head of {_OUTPUT_HEAD.size} bytes")
    channel, cursor = _OUTPUT_HEAD.unpack_from(message)
    return OutputBytes(channel, cursor, message[_OUTPUT_HEAD.size :])


def pack_keys(channel: int, keys: bytes) -> bytes:
    """Encode keys: channel (4 bytes, big endian), then the bytes to type."""
    return _KEYS_HEAD.pack(channel) + keys


def unpack_keys(message: bytes) -> tuple[int, bytes]:
    """Decode channel and keys. Raises ``InvalidRequest`` if either is not valid."""
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
    """Return the credit increased by ``amount``, at most ``MAX_CREDIT``."""
    return min(credit + amount, MAX_CREDIT)


def chunk_size(credit: int) -> int:
    """Return how many bytes of output one message may have now; 0: wait for credit."""
    return max(0, min(credit, MAX_CHUNK_BYTES))


def may_send_text(credit: int) -> bool:
    """Return whether one text frame, of any length, may be sent now."""
    return credit > 0
