"""The packets that two processes exchange about their actors, in MessagePack. Pure.

The strict codec reads every packet, and the document of every message in it.
"""

from __future__ import annotations

from typing import Any, ClassVar, cast

import attrs
import msgspec

from actors.cell import Down
from actors.codec import structure, unstructure
from actors.errors import CodecError, LinkLost, MisuseError
from actors.tree import Change, Node

PACKET_LIMIT = 16_777_216
"""The largest packet, in bytes."""


@attrs.frozen
class Body:
    """A message or an answer: the name of its class and its document.

    An answer that is not an object (None, text, a number) has the class ``""``.
    """

    kind: str
    document: Any


@attrs.frozen
class Tell:
    """A message without a reply."""

    tag: ClassVar[str] = "tell"
    path: str
    body: Body


@attrs.frozen
class Ask:
    """A request. ``number`` is new for each; ``askers`` are the paths of the waiting handlers."""

    tag: ClassVar[str] = "ask"
    number: int
    path: str
    body: Body
    askers: list[str]


@attrs.frozen
class AskAnswer:
    """The answer to request ``number``."""

    tag: ClassVar[str] = "answer"
    number: int
    body: Body


@attrs.frozen
class AskFailure:
    """The error of request ``number``: its class, its text, and the path of the actor."""

    tag: ClassVar[str] = "fail"
    number: int
    kind: str
    text: str
    path: str


@attrs.frozen
class Abandoned:
    """The end of the wait for the answer to request ``number``."""

    tag: ClassVar[str] = "abandon"
    number: int


@attrs.frozen
class Monitored:
    """A subscription to the ends of incarnations at ``path``."""

    tag: ClassVar[str] = "monitor"
    path: str


@attrs.frozen
class Unmonitored:
    """The end of the subscription to ``path``."""

    tag: ClassVar[str] = "unmonitor"
    path: str


@attrs.frozen
class Fell:
    """The end of a monitored incarnation."""

    tag: ClassVar[str] = "down"
    down: Down


@attrs.frozen
class Stopped:
    """A request to stop the actor at ``path`` for good."""

    tag: ClassVar[str] = "stop"
    path: str


@attrs.frozen
class ActorGone:
    """The actor at ``path``, which the other side may know, has stopped for good."""

    tag: ClassVar[str] = "gone"
    path: str


@attrs.frozen
class Registered:
    """The registration of the actor at ``path`` as ``name`` in ``group``."""

    tag: ClassVar[str] = "register"
    group: str
    name: str
    path: str


@attrs.frozen
class TreeShown:
    """The whole tree of this process."""

    tag: ClassVar[str] = "tree"
    tree: Node


@attrs.frozen
class TreeChanged:
    """A change of one place in the tree of this process."""

    tag: ClassVar[str] = "change"
    change: Change


@attrs.frozen
class DepthsWanted:
    """A request for the depths of all mailboxes."""

    tag: ClassVar[str] = "depths?"


@attrs.frozen
class DepthsShown:
    """The number of queued messages at each path of this process."""

    tag: ClassVar[str] = "depths"
    depths: dict[str, int]


@attrs.frozen
class NamesSent:
    """The end of the first list of registrations."""

    tag: ClassVar[str] = "ready"


Packet = (
    Tell
    | Ask
    | AskAnswer
    | AskFailure
    | Abandoned
    | Monitored
    | Unmonitored
    | Fell
    | Stopped
    | ActorGone
    | Registered
    | TreeShown
    | TreeChanged
    | DepthsWanted
    | DepthsShown
    | NamesSent
)


def encode(packet: Packet) -> bytes:
    """Return ``packet`` as bytes. Raises ``MisuseError`` for invalid text or size."""
    try:
        data = msgspec.msgpack.encode(unstructure(packet))
    except (TypeError, ValueError, OverflowError) as error:  # text that UTF-8 cannot carry
        raise MisuseError(f"a message cannot go to another process: {error}") from None
    if len(data) > PACKET_LIMIT:
        raise MisuseError(
            f"a message of {len(data)} bytes cannot go to another process: at most {PACKET_LIMIT}"
        )
    return data


def decode(data: bytes) -> Packet:
    """Return the packet in ``data``. Raises ``LinkLost`` if it is malformed.

    Only the exact bytes that ``encode`` produces are accepted, so no map has a key twice.
    """
    try:
        document = msgspec.msgpack.decode(data)
        if msgspec.msgpack.encode(document) != data:
            raise LinkLost("The other side sent a packet in a form that none of ours has")
        return cast("Packet", structure(cast("Any", Packet), document))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, CodecError) as error:
        raise LinkLost(f"The other side sent what is no packet: {error}") from None
