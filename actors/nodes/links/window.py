"""How much may be under way in one direction: so many messages, so many bytes. Pure.

Under way is what was sent and not yet taken by who receives it, wherever it waits. So neither side
holds more of the other than the window, and no message makes those behind it wait in the transport.
"""

from __future__ import annotations

import attrs

from actors.errors import LinkLost
from actors.nodes.links.wire import Taken

MOST_MESSAGES = 64
MOST_BYTES = 4_194_304
MESSAGE_LIMIT = 1_048_576
"""The largest message in bytes."""


@attrs.define
class SendWindow:
    """What this side has under way."""

    messages: int = 0
    size: int = 0

    def has_room(self, size: int) -> bool:
        """Whether a message of ``size`` bytes may be sent now."""
        return self.messages < MOST_MESSAGES and self.size + size <= MOST_BYTES

    def sent(self, size: int) -> None:
        """Note a message of ``size`` bytes."""
        self.messages += 1
        self.size += size

    def taken(self, taken: Taken) -> None:
        """Note what the other side has taken; ``LinkLost`` if it is more than there was."""
        self.messages -= taken.messages
        self.size -= taken.size
        if self.messages < 0 or self.size < 0:
            raise LinkLost("The other side took more than it was sent.")


@attrs.define
class ReceiveWindow:
    """What the other side has under way, and what of it was taken but not told."""

    messages: int = 0
    size: int = 0
    _untold: Taken = attrs.field(factory=Taken)

    def came(self, size: int) -> None:
        """Note a message; ``LinkLost`` if the other side had no room for it."""
        self.messages += 1
        self.size += size
        if self.messages > MOST_MESSAGES or self.size > MOST_BYTES:
            raise LinkLost("The other side sent more than may be under way.")

    def took(self, size: int) -> bool:
        """Note that a message was taken; whether that should be told now."""
        self._untold = Taken(self._untold.messages + 1, self._untold.size + size)
        return self._untold.messages * 2 >= MOST_MESSAGES or self._untold.size * 2 >= MOST_BYTES

    def tell(self) -> Taken:
        """Return what was taken and not told yet: now it is."""
        told, self._untold = self._untold, Taken()
        self.messages -= told.messages
        self.size -= told.size
        return told
