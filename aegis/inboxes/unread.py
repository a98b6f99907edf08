"""The unread messages of an inbox: acknowledging, folding, and the room that is left. Pure.

A message whose id is known is dropped, so a sender that is unsure may deliver again. Acknowledging
a message acknowledges every message up to its place, even if it was a wake that has been folded
since.

Wakes are folded: an unread inbox must not fill with the wakes of a busy terminal, and no wake may
be lost. So the oldest wakes of a terminal become one message that names the records to read in the
terminal's ledger. It has the place and the id of its newest wake, so acknowledging that wake still
has the same effect. A fold that is not durable yet follows from its wakes again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice, takewhile

import attrs

from aegis.errors import Unavailable
from aegis.inboxes.rows import (
    Acknowledgement,
    InboxMessage,
    InboxRow,
    ReadMark,
    WakeFold,
    with_text,
)
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


def key_of(wake: WakeId) -> FoldKey:
    """Return the key of the fold of wakes like this one."""
    return (wake.terminal, wake.life)


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

    ``folded`` is called with a message that is part of a fold now, and with that fold; ``left``
    with a message that is read, or part of a durable fold. ``is_old`` if some rows have the form of
    a version before today's.
    """

    def __init__(
        self,
        rows: Iterable[InboxRow],
        *,
        folded: Callable[[InboxMessage, InboxMessage], None],
        left: Callable[[InboxMessage], None],
    ) -> None:
        self._folded, self._left = folded, left
        self._unread: dict[str, InboxMessage] = {}
        self._chars = 0
        self._wakes: deque[InboxMessage] = deque()
        self._folds: dict[FoldKey, InboxMessage] = {}
        self._highest: dict[FoldKey, int] = {}
        known = [*rows]
        self.is_old = any(isinstance(each, Acknowledgement) for each in known)
        if not self.is_old:
            # The row of an archived message comes last if the disk has refused its drop.
            known.sort(key=lambda each: each.number)
        self.read = max((each.number for each in known if isinstance(each, ReadMark)), default=0)
        """The number up to which all messages are read."""
        self.newest = self.read
        """The number of the newest message, which may be in the archive; 0 if there was none."""
        self._derive(known)

    def _derive(self, rows: list[InboxRow]) -> None:
        messages = [each for each in rows if isinstance(each, InboxMessage)]
        folded: dict[FoldKey, int] = {}  # the places of the newest folds
        numbers: dict[str, int] = {}
        for each in messages:
            if each.fold is not None and (about := parse_wake_id(each.id)) is not None:
                folded[key_of(about)] = each.number
        for row in rows:
            if isinstance(row, Acknowledgement):
                if row.up_to in numbers:
                    self.acknowledge(row.up_to, numbers[row.up_to])
            elif isinstance(row, InboxMessage):
                numbers[row.id] = row.number
                about = parse_wake_id(row.id)
                if about is not None:
                    self.note(about, row.highest)
                is_folded = about is not None and row.number < folded.get(key_of(about), 0)
                if row.number <= self.read or is_folded:
                    self.newest = max(self.newest, row.number)
                    self._left(row)
                else:
                    self.add(row, about)

    def __len__(self) -> int:
        """Return the number of unacknowledged messages."""
        return len(self._unread)

    def __contains__(self, message_id: object) -> bool:
        """Return whether a message is unread."""
        return message_id in self._unread

    def add(self, row: InboxMessage, about: WakeId | None) -> None:
        """Count a durable row, at a place after all others; ``about`` if it is a wake."""
        self.newest = row.number
        self._unread[row.id] = row
        self._chars += _chars_shown(row)
        if about is not None and row.fold is not None:
            self._folds[key_of(about)] = row
        elif about is not None:
            self._wakes.append(row)
            if len(self._wakes) > MAX_WAKES:
                self._fold(self._wakes.popleft())

    def first(self, limit: int) -> list[InboxMessage]:
        """Return the oldest ``limit`` unacknowledged messages, oldest first."""
        return [*islice(self._unread.values(), limit)]

    def behind(self, number: int, limit: int) -> list[InboxMessage]:
        """Return the oldest ``limit`` unacknowledged messages after a place, oldest first."""
        newest_first = reversed(self._unread.values())
        newer = [*takewhile(lambda each: each.number > number, newest_first)]
        return newer[: -limit - 1 : -1]

    def has_all_among(self, shown: Iterable[int]) -> bool:
        """Return whether each unread message up to the newest of these places is at one of them."""
        places = {*shown}
        newest = max(places, default=0)
        for each in self._unread.values():
            # A fold is in the place of all its wakes; some of them may have been read.
            first = each.number if each.fold is None else max(each.fold.first, self.read + 1)
            if first <= newest and not {first, min(each.number, newest)} <= places:
                return False
        return True

    # The records of wakes.

    def note(self, wake: WakeId, highest: int | None) -> None:
        """Note the record of a wake that is written, and the ``highest`` of its row."""
        key = key_of(wake)
        self._highest[key] = max(wake.seq, highest or 0, self._highest.get(key, 0))

    def highest(self, wake: WakeId) -> int | None:
        """Return the highest record of this terminal that had a wake; None if it is not known.

        A wake about a later record is new.
        """
        return self._highest.get(key_of(wake))

    # Room.

    def check_room(self, handle: str, delivery: Deliver, arriving: Arriving) -> None:
        """Raise ``Unavailable`` if there is no room for ``delivery`` beside those ``arriving``.

        A wake may use the room of the wakes that are folded because of it.
        """
        messages = len(self._unread) + arriving.messages
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
            before, after = _with_fold(folds, row)
            chars += row.chars - _chars_shown(after)
            if before is not None:
                messages += 1
                chars += _chars_shown(before)
        return messages, chars

    # Acknowledging.

    def reaches(self, number: int) -> bool:
        """Return whether a message up to this place is unread."""
        oldest = next(iter(self._unread.values()), None)
        return oldest is not None and oldest.number <= number

    def folds(self) -> list[InboxMessage]:
        """Return all folds."""
        return [*self._folds.values()]

    def across(self, number: int) -> list[InboxMessage]:
        """Return the folds that begin up to this place and end after it."""
        found = [each for each in self.folds() if each.number > number]
        return [each for each in found if each.fold is not None and each.fold.first <= number]

    def acknowledge(self, up_to: str, number: int) -> InboxMessage | None:
        """Remove what a durable acknowledgement reaches; return a fold that is smaller now."""
        self.read = max(self.read, number)
        for each in [*takewhile(lambda each: each.number <= number, self._unread.values())]:
            self._drop(each)
        while self._wakes and self._wakes[0].number <= number:
            self._wakes.popleft()
        shrunk = self.shrunk_by(up_to, number)
        if shrunk is not None:
            self._show(shrunk)
            self._folds[fold_of(shrunk)] = shrunk
        return shrunk

    def shrunk_by(self, up_to: str, number: int) -> InboxMessage | None:
        """Return the fold that has ``up_to`` as an older wake, without it; None if unchanged."""
        about = parse_wake_id(up_to) if self._folds else None
        row = None if about is None else self._folds.get(key_of(about))
        if row is None or row.fold is None or about is None:
            return None
        if not row.fold.first <= number < row.number:
            return None
        shrunk = row.fold.read_up_to(about.seq)
        return None if shrunk == row.fold else attrs.evolve(row, fold=shrunk)

    def _drop(self, row: InboxMessage) -> None:
        self._remove(row)
        if row.fold is not None:
            del self._folds[fold_of(row)]
        self._left(row)

    def _remove(self, row: InboxMessage) -> None:
        del self._unread[row.id]
        self._chars -= _chars_shown(row)

    # Folding.

    def _fold(self, row: InboxMessage) -> None:
        """Add the oldest wake to its terminal's fold, which takes the wake's place."""
        before, after = _with_fold(self._folds, row)
        self._show(after)
        if before is not None:
            self._remove(before)
            self._folded(before, after)

    def _show(self, row: InboxMessage) -> None:
        self._chars += _chars_shown(row) - _chars_shown(self._unread[row.id])
        self._unread[row.id] = row


def fold_of(row: InboxMessage) -> FoldKey:
    """Return the key of the fold that a wake belongs to."""
    return key_of(_wake(row))


def shown(row: InboxMessage, stored: Message) -> Message:
    """Return the message for the reader; ``stored`` is the message in the line."""
    body = _folded_body(row)
    if body is None:
        return stored
    return with_text(attrs.evolve(stored, body=body, task_id=None, status=None))


def _wake(row: InboxMessage) -> WakeId:
    about = parse_wake_id(row.id)
    assert about is not None, "only wakes fold"
    return about


def _with_fold(
    folds: dict[FoldKey, InboxMessage], row: InboxMessage
) -> tuple[InboxMessage | None, InboxMessage]:
    """Add a wake to the ``folds``; return the fold that there was, and the one in its place."""
    about = _wake(row)
    before = folds.get(key_of(about))
    if before is None or before.fold is None:
        fold = WakeFold.of(row.number, about.seq)
    else:
        fold = before.fold.grown(about.seq)
    folds[key_of(about)] = after = attrs.evolve(row, fold=fold)
    return before, after


def _folded_body(row: InboxMessage) -> str | None:
    return None if row.fold is None else row.fold.body(_wake(row).terminal)


def _chars_shown(row: InboxMessage) -> int:
    body = _folded_body(row)
    return row.chars if body is None else len(body)
