"""What goes over a link: a byte that says what it is, and its contents. Pure."""

from __future__ import annotations

import enum
import struct

import attrs

from actors.errors import LinkLost

TEXT_LIMIT = 16_384
"""How much is told of a crash, in bytes: the end of it, where the error is."""


class OutcomeKind(enum.Enum):
    """How the function of a worker ended."""

    DONE = 0
    STOPPED = 1
    CRASHED = 2


@attrs.frozen
class Message:
    """What one side sends to the other."""

    data: bytes


@attrs.frozen
class Taken:
    """So many messages, of so many bytes together, were taken since the last of these."""

    messages: int = 0
    size: int = 0


@attrs.frozen
class BeatFrame:
    """A sign of life."""


@attrs.frozen
class StopFrame:
    """The worker is to end in order."""


@attrs.frozen
class Outcome:
    """The last that a worker says: how its function ended, and for a crash its traceback."""

    kind: OutcomeKind
    text: str = ""


Frame = Message | Taken | BeatFrame | StopFrame | Outcome

_TAKEN = struct.Struct("!II")
_MESSAGE, _TAKEN_TAG, _BEAT, _STOP, _OUTCOME = range(5)


def encode(frame: Frame) -> bytes:
    """Return ``frame`` as bytes."""
    match frame:
        case Message(data):
            return bytes([_MESSAGE]) + data
        case Taken(messages, size):
            return bytes([_TAKEN_TAG]) + _TAKEN.pack(messages, size)
        case BeatFrame():
            return bytes([_BEAT])
        case StopFrame():
            return bytes([_STOP])
        case Outcome(kind, text):
            return bytes([_OUTCOME, kind.value]) + text.encode("utf-8", "replace")[-TEXT_LIMIT:]


def decode(data: bytes) -> Frame:
    """Return the frame in ``data``; ``LinkLost`` for what is none."""
    tag, body = data[:1], data[1:]
    if tag == bytes([_MESSAGE]):
        return Message(body)
    if tag == bytes([_TAKEN_TAG]) and len(body) == _TAKEN.size:
        return Taken(*_TAKEN.unpack(body))
    if tag == bytes([_BEAT]) and not body:
        return BeatFrame()
    if tag == bytes([_STOP]) and not body:
        return StopFrame()
    if tag == bytes([_OUTCOME]) and body and body[0] <= OutcomeKind.CRASHED.value:
        text = body[1 : 1 + TEXT_LIMIT].decode("utf-8", "replace")
        return Outcome(OutcomeKind(body[0]), text)
    raise LinkLost("The other side sent what is no frame.")
