"""The frames of a link as bytes: one byte for the kind, then the contents. Pure."""

from __future__ import annotations

import enum
import struct

import attrs

from actors.errors import LinkLost

TEXT_LIMIT = 16_384
"""The largest part of a traceback that is sent, in bytes: its end, which has the error."""


class OutcomeKind(enum.Enum):
    """How the function of a worker ended."""

    DONE = 0
    STOPPED = 1
    CRASHED = 2


@attrs.frozen
class MessageFrame:
    """A message of the link's user."""

    data: bytes


@attrs.frozen
class AckFrame:
    """An acknowledgement: ``messages`` of ``size`` bytes together were taken since the last one."""

    messages: int = 0
    size: int = 0


@attrs.frozen
class BeatFrame:
    """A heartbeat."""


@attrs.frozen
class StopFrame:
    """A request to the worker to end in order."""


@attrs.frozen
class OutcomeFrame:
    """The last frame of a worker: how its function ended, and the traceback of a crash."""

    kind: OutcomeKind
    text: str = ""


Frame = MessageFrame | AckFrame | BeatFrame | StopFrame | OutcomeFrame

_TAKEN = struct.Struct("!II")
_MESSAGE, _TAKEN_TAG, _BEAT, _STOP, _OUTCOME = range(5)


def encode(frame: Frame) -> bytes:
    """Return ``frame`` as bytes."""
    match frame:
        case MessageFrame(data):
            return bytes([_MESSAGE]) + data
        case AckFrame(messages, size):
            return bytes([_TAKEN_TAG]) + _TAKEN.pack(messages, size)
        case BeatFrame():
            return bytes([_BEAT])
        case StopFrame():
            return bytes([_STOP])
        case OutcomeFrame(kind, text):
            return bytes([_OUTCOME, kind.value]) + text.encode("utf-8", "replace")[-TEXT_LIMIT:]


def decode(data: bytes) -> Frame:
    """Return the frame in ``data``. Raises ``LinkLost`` if it is malformed."""
    tag, body = data[:1], data[1:]
    if tag == bytes([_MESSAGE]):
        return MessageFrame(body)
    if tag == bytes([_TAKEN_TAG]) and len(body) == _TAKEN.size:
        return AckFrame(*_TAKEN.unpack(body))
    if tag == bytes([_BEAT]) and not body:
        return BeatFrame()
    if tag == bytes([_STOP]) and not body:
        return StopFrame()
    if tag == bytes([_OUTCOME]) and body and body[0] <= OutcomeKind.CRASHED.value:
        text = body[1 : 1 + TEXT_LIMIT].decode("utf-8", "replace")
        return OutcomeFrame(OutcomeKind(body[0]), text)
    raise LinkLost("The other side sent what is no frame.")
