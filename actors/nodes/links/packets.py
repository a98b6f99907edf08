"""What two processes tell each other about their actors, as bytes in MessagePack. Pure.

The strict codec reads every packet, and the document of every message in one.
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
"""The longest packet in bytes."""


@attrs.frozen
class Body:
    """A message or an answer: the name of its class and its document.

    An answer that is no object (None, text, a number) has the class ``""``.
    """

    kind: str
    document: Any


@attrs.frozen
class Told:
    """A message that nobody waits for."""

    tag: ClassVar[str] = "tell"
    path: str
    body: Body


@attrs.frozen
class Asked:
    """A request. ``number`` is new for each; ``askers`` are the paths of who waits for it."""

    tag: ClassVar[str] = "ask"
    number: int
    path: str
    body: Body
    askers: list[str]


@attrs.frozen
class Answered:
    """The answer to request ``number``."""

    tag: ClassVar[str] = "answer"
    number: int
    body: Body


@attrs.frozen
class Failed:
    """Why request ``number`` has no answer: the class of an error, its text, who gave none."""

    tag: ClassVar[str] = "fail"
    number: int
    kind: str
    text: str
    path: str


@attrs.frozen
class Abandoned:
    """Nobody waits for the answer to request ``number`` any more."""

    tag: ClassVar[str] = "abandon"
    number: int


@attrs.frozen
class Monitored:
    """Somebody wants to hear of the ends of lives at ``path``."""

    tag: ClassVar[str] = "monitor"
    path: str


@attrs.frozen
class Unmonitored:
    """Nobody does any more."""

    tag: ClassVar[str] = "unmonitor"
    path: str


@attrs.frozen
class Fell:
    """A monitored life ended."""

    tag: ClassVar[str] = "down"
    down: Down


@attrs.frozen
class Stopped:
    """End the actor at ``path`` in order and for good."""

    tag: ClassVar[str] = "stop"
    path: str


@attrs.frozen
class Gone:
    """Nobody will be at ``path`` again: an address that the other side may know."""

    tag: ClassVar[str] = "gone"
    path: str


@attrs.frozen
class Registered:
    """The actor at ``path`` is known as ``name`` in ``group``."""

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
    """A place of it is new or in another state."""

    tag: ClassVar[str] = "change"
    change: Change


@attrs.frozen
class DepthsWanted:
    """How full are the mailboxes now?"""

    tag: ClassVar[str] = "depths?"


@attrs.frozen
class DepthsShown:
    """How many messages wait at each path of this process."""

    tag: ClassVar[str] = "depths"
    depths: dict[str, int]


@attrs.frozen
class Ready:
    """All that was registered before has been told."""

    tag: ClassVar[str] = "ready"


Packet = (
    Told
    | Asked
    | Answered
    | Failed
    | Abandoned
    | Monitored
    | Unmonitored
    | Fell
    | Stopped
    | Gone
    | Registered
    | TreeShown
    | TreeChanged
    | DepthsWanted
    | DepthsShown
    | Ready
)


def encode(packet: Packet) -> bytes:
    """Return ``packet`` as bytes; ``MisuseError`` if it cannot be sent."""
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
    """Return the packet in ``data``; ``LinkLost`` for what is none.

    Only the one form is accepted that ``encode`` gives a packet: so no map has a key twice.
    """
    try:
        document = msgspec.msgpack.decode(data)
        if msgspec.msgpack.encode(document) != data:
            raise LinkLost("The other side sent a packet in a form that none of ours has")
        return cast("Packet", structure(cast("Any", Packet), document))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, CodecError) as error:
        raise LinkLost(f"The other side sent what is no packet: {error}") from None
