"""The flow control of a link: a window of messages and bytes for each direction. Pure.

A message is in flight from its sending until the receiver has taken it. Neither side ever stores
more of the other's messages than the window, and no message blocks later ones in the transport.
"""

from __future__ import annotations

import attrs

from actors.errors import LinkLost
from actors.nodes.links.wire import AckFrame

MOST_MESSAGES = 64
MOST_BYTES = 4_194_304
MESSAGE_LIMIT = 1_048_576
"""The largest message in bytes."""


@attrs.define
class SendWindow:
    """The messages of this side that are in flight."""

    messages: int = 0
    size: int = 0

    def has_room(self, size: int) -> bool:
        """Return whether a message of ``size`` bytes may be sent now."""
        return self.messages < MOST_MESSAGES and self.size + size <= MOST_BYTES

    def sent(self, size: int) -> None:
        """Note a message of ``size`` bytes."""
        self.messages += 1
        self.size += size

    def taken(self, taken: AckFrame) -> None:
        """Note an acknowledgement. Raises ``LinkLost`` if it exceeds the messages in flight."""
        self.messages -= taken.messages
        self.size -= taken.size
        if self.messages < 0 or self.size < 0:
            raise LinkLost("The other side took more than it was sent.")


@attrs.define
class ReceiveWindow:
    """The messages of the other side in flight, and those taken but not yet acknowledged."""

    messages: int = 0
    size: int = 0
    _unsent: AckFrame = attrs.field(factory=AckFrame)

    def received(self, size: int) -> None:
        """Note a message. Raises ``LinkLost`` if it exceeds the window."""
        self.messages += 1
        self.size += size
        if self.messages > MOST_MESSAGES or self.size > MOST_BYTES:
            raise LinkLost("The other side sent more than may be under way.")

    def took(self, size: int) -> bool:
        """Note that a message was taken; return whether an acknowledgement is due."""
        self._unsent = AckFrame(self._unsent.messages + 1, self._unsent.size + size)
        return self._unsent.messages * 2 >= MOST_MESSAGES or self._unsent.size * 2 >= MOST_BYTES

    def acknowledge(self) -> AckFrame:
        """Return the acknowledgement of all messages taken since the last one."""
        ack, self._unsent = self._unsent, AckFrame()
        self.messages -= ack.messages
        self.size -= ack.size
        return ack
