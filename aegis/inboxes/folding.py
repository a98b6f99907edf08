"""One message in the place of the older wakes of a terminal. Pure.

An inbox that nobody reads must not fill with the wakes of a busy terminal, and none of them may be
lost. So the oldest fold into one message, which says where to read on in the terminal's ledger. It
has the place and the id of the newest wake in it: to acknowledge it means what it meant before.
"""

from __future__ import annotations

import attrs

from aegis.inboxes.rules import render_text
from aegis.protocol.inboxes import Message
from aegis.protocol.wakes import WakeId

FoldKey = tuple[str, str]
"""What folds together: the wakes of one terminal's name and life."""


@attrs.frozen(kw_only=True)
class Wake:
    """An unread wake: the place ``at`` which it came in, and what its id says."""

    at: int
    message_id: str
    about: WakeId

    @property
    def key(self) -> FoldKey:
        """What it folds with."""
        return (self.about.terminal, self.about.life)


@attrs.frozen(kw_only=True)
class Fold:
    """The folded wakes of one terminal, by the numbers of the records that they told of.

    ``newest`` gives it its place and its id. All of its records are after ``since_seq`` and none
    is after ``last_seq``. ``began`` is where the first of its wakes came in. ``late_seq`` is the
    lowest record whose wake came after that of a later record: a wake that was sent again.
    """

    newest: Wake
    since_seq: int
    last_seq: int
    began: int
    late_seq: int | None = None

    @classmethod
    def of(cls, wake: Wake) -> Fold:
        """The fold of one wake."""
        seq = wake.about.seq
        return cls(newest=wake, since_seq=seq - 1, last_seq=seq, began=wake.at)

    def grown(self, wake: Wake) -> Fold:
        """The fold with one more wake, which came in after all that are in it."""
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
        """The fold when its wake about ``seq`` and those that came in before it are read."""
        known = seq if self.late_seq is None else min(seq, self.late_seq - 1)
        return attrs.evolve(self, since_seq=max(self.since_seq, known))

    def message(self, newest: Message) -> Message:
        """What a reader sees in the place of ``newest``, the message of its newest wake."""
        body = self.body()
        return Message(
            id=newest.id,
            sender=newest.sender,
            body=body,
            text=render_text(newest.sender, newest.timestamp, body),
            timestamp=newest.timestamp,
        )

    def body(self) -> str:
        """Name the records that are folded, and the call that reads them."""
        name = self.newest.about.terminal
        return (
            f"older messages of this terminal are folded into this one, up to seq {self.last_seq}\n"
            f'read them: aegis_term_read(name="{name}", since_seq={self.since_seq})'
        )
