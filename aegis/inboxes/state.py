"""The state of an inbox, computed from the lines of its ledger in their order. Pure.

A message whose id is known is dropped, so a sender that is unsure may deliver again. The place of a
message is the offset of its line. Unread messages are ordered by place; acknowledging a message
acknowledges every place up to its own, even if the message was a wake that has been folded since.

Wakes are folded: an unread inbox must not fill with the wakes of a busy terminal, and no wake may
be lost. So the oldest wakes of a terminal become one message that names the records to read in the
terminal's ledger. It has the place and the id of its newest wake, so acknowledging that wake still
has the same effect.

Bodies stay in the ledger: an unread message takes a few hundred bytes of memory, independent of its
length. ``bodies.py`` reads the bodies.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from itertools import islice, takewhile
from typing import Any, NamedTuple

import attrs

from aegis.errors import InvalidRequest, Unavailable
from aegis.inboxes.rules import message_in, read_up_to, render_text
from aegis.names import shorten
from aegis.protocol.inboxes import Deliver, Message
from aegis.protocol.wakes import WakeId, parse_wake_id

FoldKey = tuple[str, str]
"""The name of a terminal and the incarnation of its ledger: wakes with equal keys are folded."""


@attrs.frozen(kw_only=True)
class Wake:
    """An unread wake: its place ``at``, and the parts of its id."""

    at: int
    message_id: str
    about: WakeId

    @property
    def key(self) -> FoldKey:
        """The key of the fold that this wake belongs to."""
        return (self.about.terminal, self.about.life)


@attrs.frozen(kw_only=True)
class Fold:
    """The folded wakes of one terminal, by the numbers of their records.

    The place and the id are those of ``newest``. All records are after ``since_seq`` and none is
    after ``last_seq``. ``began`` is the place of the first wake. ``late_seq`` is the lowest record
    whose wake came after that of a later record: a wake that was sent again.
    """

    newest: Wake
    since_seq: int
    last_seq: int
    began: int
    late_seq: int | None = None

    @classmethod
    def of(cls, wake: Wake) -> Fold:
        """Return the fold of one wake."""
        seq = wake.about.seq
        return cls(newest=wake, since_seq=seq - 1, last_seq=seq, began=wake.at)

    def grown(self, wake: Wake) -> Fold:
        """Return the fold with one more wake, which is newer than the others."""
        seq = wake.about.seq
        late = self.late_seq
        if seq < self.last_seq:
            late = seq if late is None else min(late, seq)
        return Fold(
            newest=wake,
            since_seq=min(self.since_seq, seq - 1),
            last_seq=max(self.last_seq, seq),
            began=self.began,
            late_seq=late,
        )

    def read_up_to(self, seq: int) -> Fold:
        """Return the fold without its wake about ``seq`` and the wakes before it."""
        known = seq if self.late_seq is None else min(seq, self.late_seq - 1)
        return attrs.evolve(self, since_seq=max(self.since_seq, known))

    def message(self, newest: Message) -> Message:
        """Return the message shown instead of ``newest``, the message of its newest wake."""
        body = self.body()
        return Message(
            id=newest.id,
            sender=newest.sender,
            body=body,
            text=render_text(newest.sender, newest.timestamp, body),
            timestamp=newest.timestamp,
        )

    def body(self) -> str:
        """Return the text that names the folded records, and the call that reads them."""
        name = self.newest.about.terminal
        return (
            f"older messages of this terminal are folded into this one, up to seq {self.last_seq}\n"
            f'read them: aegis_term_read(name="{name}", since_seq={self.since_seq})'
        )


MAX_UNREAD = 10_000
"""The largest number of unacknowledged messages in one inbox."""

MAX_UNREAD_CHARS = 32 * 1024 * 1024
"""The largest size of the unacknowledged text in one inbox, in characters."""

MAX_WAKES = 1_000
"""The number of unacknowledged wakes that are kept one by one; older ones are folded."""

MAX_KNOWN_IDS = 100_000
"""The number of ids kept to recognise a second delivery; the oldest are dropped first."""


class Unread(NamedTuple):
    """An unread message: the place ``at`` of its line and the line's ``size`` in bytes.

    ``chars`` is the length of the body that a reader gets, ``number`` counts the messages that this
    incarnation of the inbox received. ``fold`` replaces the body by that of the folded wakes.
    """

    at: int
    size: int
    id: str
    chars: int
    number: int
    fold: Fold | None = None

    def shown(self, stored: Message) -> Message:
        """Return the message for the reader; ``stored`` is the message in the line."""
        return stored if self.fold is None else self.fold.message(stored)


@attrs.define
class Arriving:
    """The numbers of messages, body characters and wakes that are written and not yet synced."""

    messages: int = 0
    chars: int = 0
    wakes: int = 0


class InboxState:
    """The messages of one inbox, and which of them are acknowledged."""

    def __init__(self) -> None:
        self._unread: dict[str, Unread] = {}
        self._unread_chars = 0
        self._wakes: deque[Unread] = deque()
        self._folds: dict[FoldKey, Fold] = {}
        self._known: OrderedDict[str, int] = OrderedDict()
        self.newest_at = -1
        """The place of the newest message; lower than every place if there was none."""
        self.count = 0
        """The number of messages received."""

    def __len__(self) -> int:
        """Return the number of unacknowledged messages."""
        return len(self._unread)

    def apply(self, line: Mapping[str, Any], at: int, size: int) -> None:
        """Apply the line of ``size`` bytes that begins ``at``. Other kinds are skipped."""
        if (message := message_in(line)) is not None:
            self.add(message.id, len(message.body), at=at, size=size)
        elif (up_to := read_up_to(line)) is not None:
            self.acknowledge(up_to)

    def knows(self, message_id: str) -> bool:
        """Return whether a message of this id was delivered before."""
        return message_id in self._known or message_id in self._unread

    def remember(self, message_id: str, at: int) -> None:
        """Add the id of a message that was read long ago."""
        self._known[message_id] = at
        if len(self._known) > MAX_KNOWN_IDS:
            self._known.popitem(last=False)

    def add(self, message_id: str, chars: int, *, at: int, size: int) -> None:
        """Add a durable message with a body of ``chars``, at a place after all others."""
        self.remember(message_id, at)
        self.newest_at = at
        self.count += 1
        unread = Unread(at, size, message_id, chars, self.count)
        self._unread[message_id] = unread
        self._unread_chars += chars
        if parse_wake_id(message_id) is not None:
            self._wakes.append(unread)
            if len(self._wakes) > MAX_WAKES:
                self._fold(_wake(self._wakes.popleft()))

    def unread(self, limit: int) -> list[Unread]:
        """Return the oldest ``limit`` unacknowledged messages, oldest first."""
        return list(islice(self._unread.values(), limit))

    def unread_behind(self, at: int, limit: int) -> list[Unread]:
        """Return the oldest ``limit`` unacknowledged messages after place ``at``, oldest first."""
        newer = list(takewhile(lambda each: each.at > at, reversed(self._unread.values())))
        return newer[: -limit - 1 : -1]

    def place_of(self, message_id: str) -> int:
        """Return the place of a message. Raises ``InvalidRequest`` for an unknown id."""
        at = self._place(message_id)
        if at is None:
            raise InvalidRequest(f"no message {shorten(message_id)!r} was ever in this inbox")
        return at

    # Room.

    def check_room(self, handle: str, delivery: Deliver, arriving: Arriving) -> None:
        """Raise ``Unavailable`` if there is no room for ``delivery`` beside those ``arriving``.

        A wake may use the room of the wakes that are folded because of it.
        """
        messages = len(self._unread) + arriving.messages
        chars = self._unread_chars + arriving.chars
        if messages < MAX_UNREAD and chars < MAX_UNREAD_CHARS:
            return
        wakes = arriving.wakes + (parse_wake_id(delivery.id) is not None)
        freed_messages, freed_chars = self._freed_by(wakes)
        if messages - freed_messages >= MAX_UNREAD or chars - freed_chars >= MAX_UNREAD_CHARS:
            raise Unavailable(
                f"the inbox of {handle!r} is full: {messages} messages wait to be read "
                "and acknowledged with aegis_inbox_read"
            )

    def _freed_by(self, wakes: int) -> tuple[int, int]:
        """Return the number of messages and characters freed if ``wakes`` more make others fold."""
        folds = dict(self._folds)
        messages = chars = 0
        excess = len(self._wakes) + wakes - MAX_WAKES
        for unread in islice(self._wakes, max(0, excess)):
            wake = _wake(unread)
            before = folds.get(wake.key)
            folds[wake.key] = after = Fold.of(wake) if before is None else before.grown(wake)
            chars += unread.chars - len(after.body())
            if before is not None:
                messages += 1
                chars += len(before.body())
        return messages, chars

    # Acknowledging.

    def check_cursor(self, after: str) -> bool:
        """Return whether acknowledging up to ``after`` would change anything.

        Raises ``InvalidRequest`` if the inbox never had such a message.
        """
        at = self._place(after)
        if at is None:
            raise InvalidRequest(
                f"after {shorten(after)!r} is not the 'next' of an earlier reply of this inbox"
            )
        oldest = next(iter(self._unread.values()), None)
        if oldest is not None and oldest.at <= at:
            return True
        return self._shrunk_by(after) is not None

    def needed_from(self, up_to: str) -> int:
        """Return the first place whose line is needed after acknowledging up to ``up_to``.

        A fold may begin before that message and end after it.
        """
        at = self._place(up_to)
        assert at is not None, "the cursor was checked"
        return min([at, *(fold.began for fold in self._folds.values() if fold.newest.at > at)])

    def acknowledge(self, up_to: str) -> None:
        """Mark the message ``up_to`` and all older ones as read."""
        at = self._place(up_to)
        if at is not None:
            read = list(takewhile(lambda each: each.at <= at, self._unread.values()))
            for unread in read:
                self._drop(unread.id)
            while self._wakes and self._wakes[0].at <= at:
                self._wakes.popleft()
        shrunk = self._shrunk_by(up_to)
        if shrunk is not None:
            self._show(shrunk)

    def _place(self, message_id: str) -> int | None:
        unread = self._unread.get(message_id)
        return self._known.get(message_id) if unread is None else unread.at

    def _drop(self, message_id: str) -> None:
        dropped = self._unread.pop(message_id)
        self._unread_chars -= dropped.chars
        if dropped.fold is not None:
            del self._folds[dropped.fold.newest.key]

    # Folding.

    def _fold(self, wake: Wake) -> None:
        """Add the oldest wake to its terminal's fold, which takes the wake's place."""
        fold = self._folds.get(wake.key)
        if fold is None:
            self._show(Fold.of(wake))
        else:
            self._drop(fold.newest.message_id)
            self._show(fold.grown(wake))

    def _show(self, fold: Fold) -> None:
        newest = fold.newest
        before = self._unread[newest.message_id]
        after = before._replace(chars=len(fold.body()), fold=fold)
        self._unread_chars += after.chars - before.chars
        self._unread[newest.message_id] = after
        self._folds[newest.key] = fold

    def _shrunk_by(self, up_to: str) -> Fold | None:
        """Return the fold that contains ``up_to`` as an older wake, reduced; None if unchanged."""
        at = self._place(up_to)
        about = parse_wake_id(up_to)
        if at is None or about is None:
            return None
        fold = self._folds.get((about.terminal, about.life))
        if fold is None or not fold.began <= at < fold.newest.at:
            return None
        shrunk = fold.read_up_to(about.seq)
        return None if shrunk == fold else shrunk


def _wake(unread: Unread) -> Wake:
    about = parse_wake_id(unread.id)
    assert about is not None, "only wakes fold"
    return Wake(at=unread.at, message_id=unread.id, about=about)
