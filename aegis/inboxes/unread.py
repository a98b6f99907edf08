"""The unread messages of an inbox: acknowledging, folding, and the room that is left. Pure.

A message whose id is known is dropped, so a sender that is unsure may deliver again. Acknowledging
a message acknowledges every message up to its place, even if it was a wake that has been folded
since.

Wakes are folded: an unread inbox must not fill with the wakes of a busy terminal, and no wake may
be lost. So the oldest wakes of a terminal become one message that names the records to read in the
terminal's ledger. It has the place and the id of its newest wake, so acknowledging that wake still
has the same effect. Folds are not stored: the lines of a ledger result in them.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from itertools import islice, takewhile
from typing import Protocol

import attrs

from aegis.errors import InvalidRequest, Unavailable
from aegis.inboxes.reading import MAX_KNOWN_IDS
from aegis.inboxes.rows import Acknowledgement, InboxMessage, InboxRow, with_text
from aegis.names import shorten
from aegis.protocol.inboxes import Deliver, Message
from aegis.protocol.wakes import WakeId, parse_wake_id

MAX_UNREAD = 10_000
"""The largest number of unacknowledged messages in one inbox."""

MAX_UNREAD_CHARS = 32 * 1024 * 1024
"""The largest size of the unacknowledged text in one inbox, in characters."""

MAX_WAKES = 1_000
"""The number of unacknowledged wakes that are kept one by one; older ones are folded."""

FoldKey = tuple[str, str]
"""The name of a terminal and the incarnation of its ledger: wakes with equal keys are folded."""


class Rows(Protocol):
    """The rows of a table."""

    rows: dict[str, InboxRow]

    def shown(self, row_id: str) -> InboxRow | None:
        """Return the durable version of a row; None if there is none."""
        ...

    def all_shown(self) -> Iterator[InboxRow]:
        """Yield the durable versions of all rows, in the order of their first lines."""
        ...

    def is_at_rest(self, row_id: str) -> bool:
        """Return whether a row is durable, and nothing more is being written about it."""
        ...

    def forget(self, row_id: str) -> None:
        """Remove a row from memory."""
        ...


@attrs.frozen(kw_only=True)
class Wake:
    """An unread wake: its place, the offset of its line, and the parts of its id."""

    place: int
    start: int
    about: WakeId

    @classmethod
    def of(cls, row: InboxMessage) -> Wake:
        """Return the wake that a row is."""
        about = parse_wake_id(row.id)
        assert about is not None, "only wakes fold"
        return cls(place=row.place, start=row.message.start, about=about)

    @property
    def key(self) -> FoldKey:
        """The key of the fold that this wake belongs to."""
        return (self.about.terminal, self.about.life)


@attrs.frozen(kw_only=True)
class WakeFold:
    """The folded wakes of one terminal, by the numbers of their records.

    It takes the place of its newest wake, at ``place``. All records are after ``since_seq`` and
    none is after ``last_seq``. ``first`` is the oldest wake. ``late_seq`` is the lowest record
    whose wake came after that of a later record: a wake that was sent again.
    """

    first: Wake
    place: int
    since_seq: int
    last_seq: int
    late_seq: int | None = None

    @classmethod
    def of(cls, wake: Wake) -> WakeFold:
        """Return the fold of one wake."""
        seq = wake.about.seq
        return cls(first=wake, place=wake.place, since_seq=seq - 1, last_seq=seq)

    def grown(self, wake: Wake) -> WakeFold:
        """Return the fold with one more wake, which is newer than the others."""
        seq, late = wake.about.seq, self.late_seq
        if seq < self.last_seq:
            late = seq if late is None else min(late, seq)
        return WakeFold(
            first=self.first,
            place=wake.place,
            since_seq=min(self.since_seq, seq - 1),
            last_seq=max(self.last_seq, seq),
            late_seq=late,
        )

    def read_up_to(self, seq: int) -> WakeFold:
        """Return the fold without its wake about ``seq`` and the wakes before it."""
        known = seq if self.late_seq is None else min(seq, self.late_seq - 1)
        return attrs.evolve(self, since_seq=max(self.since_seq, known))

    def body(self) -> str:
        """Return the text that names the folded records, and the call that reads them."""
        name = self.first.about.terminal
        return (
            f"older messages of this terminal are folded into this one, up to seq {self.last_seq}\n"
            f'read them: aegis_term_read(name="{name}", since_seq={self.since_seq})'
        )


@attrs.define
class Arriving:
    """The numbers of messages, body characters and wakes that are written and not yet synced."""

    messages: int = 0
    chars: int = 0
    wakes: int = 0

    def count(self, row: InboxMessage, *, is_wake: bool, sign: int) -> None:
        """Add a message, or take one away."""
        self.messages += sign
        self.chars += sign * row.chars
        self.wakes += sign * is_wake


class UnreadMessages:
    """The durable messages among ``rows``, apart from those that are acknowledged or folded away.

    ``known`` are the places of messages that were read long ago, by their ids.
    """

    def __init__(self, rows: Rows, known: dict[str, int]) -> None:
        self._rows = rows
        self._known = OrderedDict(known)
        self._count = 0
        self._chars = 0
        self._wakes: deque[InboxMessage] = deque()
        self._folds: dict[FoldKey, WakeFold] = {}
        self._folded: dict[str, WakeFold] = {}  # by the ids of their newest wakes
        self._numbers: dict[str, int] = {}  # of messages of version 1
        self._begin = 0
        self.newest_place = max(known.values(), default=-1)
        """The place of the newest message; lower than every place if there was none."""
        for row in [*rows.rows.values()]:
            if isinstance(row, Acknowledgement):
                self.acknowledge(row)
            else:
                self.add(row)
        old = [each.id for each in self._durable() if not each.number]
        first = self.newest_place - self._count + 1
        self._numbers = {each: first + number for number, each in enumerate(old)}

    def __len__(self) -> int:
        """Return the number of unacknowledged messages."""
        return self._count

    def knows(self, message_id: str) -> bool:
        """Return whether a durable message of this id was delivered before."""
        return message_id in self._known or self._rows.shown(message_id) is not None

    def add(self, row: InboxMessage) -> None:
        """Count a row that is durable now, at a place after all others."""
        self.newest_place = row.place
        self._count += 1
        self._chars += row.chars
        if parse_wake_id(row.id) is not None:
            self._wakes.append(row)
            if len(self._wakes) > MAX_WAKES:
                self._fold(self._wakes.popleft())

    def first(self, limit: int) -> list[InboxMessage]:
        """Return the oldest ``limit`` unacknowledged messages, oldest first."""
        return [*islice(self._durable(), limit)]

    def behind(self, place: int, limit: int) -> list[InboxMessage]:
        """Return the oldest ``limit`` unacknowledged messages after a place, oldest first."""
        newer = [*takewhile(lambda each: each.place > place, self._newest_first())]
        return newer[: -limit - 1 : -1]

    def number(self, row: InboxMessage) -> int:
        """Return the number of a message: numbers of later ones count on."""
        return row.number or self._numbers.get(row.id, row.place)

    def place_of(self, message_id: str) -> int:
        """Return the place of a message. Raises ``InvalidRequest`` for an unknown id."""
        place = self._place(message_id)
        if place is None:
            raise InvalidRequest(f"no message {shorten(message_id)!r} was ever in this inbox")
        return place

    def shown(self, row: InboxMessage, stored: Message) -> Message:
        """Return the message for the reader; ``stored`` is the message in the line."""
        fold = self._folded.get(row.id)
        if fold is None:
            return stored
        return with_text(attrs.evolve(stored, body=fold.body(), task_id=None, status=None))

    def _durable(self) -> Iterator[InboxMessage]:
        for row in self._rows.all_shown():
            if isinstance(row, InboxMessage):
                yield row

    def _newest_first(self) -> Iterator[InboxMessage]:
        for row in reversed(self._rows.rows.values()):
            if isinstance(row, InboxMessage) and self._rows.shown(row.id) is not None:
                yield row

    def _place(self, message_id: str) -> int | None:
        row = self._rows.shown(message_id)
        return row.place if isinstance(row, InboxMessage) else self._known.get(message_id)

    # Room.

    def check_room(self, handle: str, delivery: Deliver, arriving: Arriving) -> None:
        """Raise ``Unavailable`` if there is no room for ``delivery`` beside those ``arriving``.

        A wake may use the room of the wakes that are folded because of it.
        """
        messages = self._count + arriving.messages
        chars = self._chars + arriving.chars
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
        for row in islice(self._wakes, max(0, excess)):
            wake = Wake.of(row)
            before = folds.get(wake.key)
            folds[wake.key] = after = WakeFold.of(wake) if before is None else before.grown(wake)
            chars += row.chars - len(after.body())
            if before is not None:
                messages += 1
                chars += len(before.body())
        return messages, chars

    # Acknowledging.

    def check_cursor(self, after: str) -> bool:
        """Return whether acknowledging up to ``after`` would change anything.

        Raises ``InvalidRequest`` if the inbox never had such a message.
        """
        place = self._place(after)
        if place is None:
            raise InvalidRequest(
                f"after {shorten(after)!r} is not the 'next' of an earlier reply of this inbox"
            )
        oldest = next(self._durable(), None)
        if oldest is not None and oldest.place <= place:
            return True
        return self._shrunk_by(after, place) is not None

    def acknowledgement(self, up_to: str) -> Acknowledgement:
        """Return the row that acknowledges the messages up to ``up_to``, which was checked."""
        row = self._rows.shown(up_to)
        if isinstance(row, InboxMessage):
            place, begin = row.place, row.message.start
        else:
            place, begin = self._known[up_to], self._begin
        for each in self._folds.values():
            if each.place > place:  # it may begin before that message and end after it
                begin = min(begin, each.first.start)
        # Two rows of one id would be one, at the place of the first.
        return Acknowledgement(id=f"read/{self.newest_place}/{up_to}", up_to=up_to, begin=begin)

    def acknowledge(self, row: Acknowledgement) -> None:
        """Forget what a durable acknowledgement reaches, and the acknowledgement."""
        if self._rows.is_at_rest(row.id):  # not if another reader's is written under the same id
            self._rows.forget(row.id)
        self._begin = row.begin
        place = self._place(row.up_to)
        if place is None:
            return
        for each in [*takewhile(lambda each: each.place <= place, self._durable())]:
            self._drop(each)
        while self._wakes and self._wakes[0].place <= place:
            self._wakes.popleft()
        shrunk = self._shrunk_by(row.up_to, place)
        if shrunk is not None:
            self._show(shrunk, self._newest_of(shrunk))

    def _drop(self, row: InboxMessage) -> None:
        fold = self._folded.pop(row.id, None)
        if fold is not None:
            del self._folds[fold.first.key]
        self._count -= 1
        self._chars -= row.chars if fold is None else len(fold.body())
        self._rows.forget(row.id)
        self._known[row.id] = row.place
        if len(self._known) > MAX_KNOWN_IDS:
            self._known.popitem(last=False)

    # Folding.

    def _fold(self, row: InboxMessage) -> None:
        """Add the oldest wake to its terminal's fold, which takes the wake's place."""
        wake = Wake.of(row)
        fold = self._folds.get(wake.key)
        if fold is None:
            self._show(WakeFold.of(wake), row)
        else:
            self._drop(self._newest_of(fold))
            self._show(fold.grown(wake), row)

    def _newest_of(self, fold: WakeFold) -> InboxMessage:
        newest = next(each for each, known in self._folded.items() if known.place == fold.place)
        row = self._rows.shown(newest)
        assert isinstance(row, InboxMessage)
        return row

    def _show(self, fold: WakeFold, row: InboxMessage) -> None:
        before = self._folded.get(row.id)
        self._chars += len(fold.body()) - (row.chars if before is None else len(before.body()))
        self._folded[row.id] = self._folds[fold.first.key] = fold

    def _shrunk_by(self, up_to: str, place: int) -> WakeFold | None:
        """Return the fold that contains ``up_to`` as an older wake, reduced; None if unchanged."""
        about = parse_wake_id(up_to) if self._folds else None
        if about is None:
            return None
        fold = self._folds.get((about.terminal, about.life))
        if fold is None or not fold.first.place <= place < fold.place:
            return None
        shrunk = fold.read_up_to(about.seq)
        return None if shrunk == fold else shrunk
