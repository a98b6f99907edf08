"""The messages of an inbox: their texts and their rows. Pure.

A message is a row of the inbox's table, whose content stays on disk. One row says up to which
message all are read. What was read moves to the archive, so the ledger does not grow for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, cast

import attrs

from actors.codec import structure
from actors.errors import CodecError
from aegis.clock import moment_of, to_seconds
from aegis.hidden_urls import hide_session_urls
from aegis.inboxes.quoting import quoted_body
from aegis.journal.table import StoredDocument
from aegis.protocol.inboxes import Deliver, Message
from aegis.protocol.wakes import WakeId

# Texts.


def render_header(
    sender: str,
    timestamp: str,
    task_id: str | None = None,
    status: Literal["ok", "error"] | None = None,
) -> str:
    """Return the first line of a message as a reader sees it."""
    task = [f"task#{task_id}"] if task_id is not None else []
    outcome = [status] if status is not None else []
    return " · ".join([f"> from {sender}", *task, *outcome, to_seconds(timestamp)])


def with_text(message: Message) -> Message:
    """Return a message with its ``text``: header line and body. No line of it forges a header.

    It is what a reader of an inbox gets, and the turn of a driven agent.
    """
    return _with_text(
        message.id,
        sender=message.sender,
        body=message.body,
        timestamp=message.timestamp,
        task_id=message.task_id,
        status=message.status,
    )


def _with_text(
    id_: str,
    *,
    sender: str,
    body: str,
    timestamp: str,
    task_id: str | None = None,
    status: Literal["ok", "error"] | None = None,
) -> Message:
    header = render_header(sender, timestamp, task_id, status)
    return Message(
        id=id_,
        sender=sender,
        body=body,
        text=f"{header}\n{quoted_body(body)}",
        timestamp=timestamp,
        task_id=task_id,
        status=status,
    )


# Rows.


@attrs.frozen(kw_only=True, weakref_slot=False)
class WakeFold:
    """The folded wakes of one terminal, by the numbers of their records.

    It is a field of its newest wake. All records are after ``since_seq`` and none is after
    ``last_seq``. ``first`` is the number of the oldest wake. ``late_seq`` is the lowest record
    whose wake came after that of a later record: a wake that was sent again.
    """

    first: int
    since_seq: int
    last_seq: int
    late_seq: int | None = None

    @classmethod
    def of(cls, number: int, seq: int) -> WakeFold:
        """Return the fold of one wake."""
        return cls(first=number, since_seq=seq - 1, last_seq=seq)

    def grown(self, seq: int) -> WakeFold:
        """Return the fold with one more wake, which is newer than the others."""
        late = self.late_seq
        if seq < self.last_seq:
            late = seq if late is None else min(late, seq)
        return WakeFold(
            first=self.first,
            since_seq=min(self.since_seq, seq - 1),
            last_seq=max(self.last_seq, seq),
            late_seq=late,
        )

    def read_up_to(self, seq: int) -> WakeFold:
        """Return the fold without its wake about ``seq`` and the wakes before it."""
        known = seq if self.late_seq is None else min(seq, self.late_seq - 1)
        return attrs.evolve(self, since_seq=max(self.since_seq, known))

    def body(self, terminal: str) -> str:
        """Return the text that names the folded records, and the call that reads them."""
        return (
            f"older messages of this terminal are folded into this one, up to seq {self.last_seq}\n"
            f'read them: aegis_term_read(name="{terminal}", since_seq={self.since_seq})'
        )


@attrs.frozen(kw_only=True, weakref_slot=False)
class InboxMessage:
    """A message; ``number`` rises with each, and ``chars`` is the length of its body.

    ``at`` is when it came, in seconds since 1970; 0 in ledgers of versions before the archive. With
    a ``fold`` it is in the place of all wakes of its terminal up to it. ``highest`` is the highest
    record of which a wake of its terminal had come before, if this one is about an earlier record.
    """

    tag: ClassVar[str] = "message"

    id: str
    chars: int
    message: StoredDocument
    number: int
    at: int = 0
    fold: WakeFold | None = None
    highest: int | None = None


@attrs.frozen(kw_only=True)
class ReadMark:
    """All messages up to the ``number`` are read; the last of them was acknowledged as ``up_to``.

    There is one in an inbox, with the id ``MARK``.
    """

    tag: ClassVar[str] = "mark"

    id: str
    up_to: str
    number: int


@attrs.frozen(kw_only=True)
class Acknowledgement:
    """All messages up to ``up_to`` are read: one of many rows, of a version before ``ReadMark``."""

    tag: ClassVar[str] = "read"

    id: str
    up_to: str
    begin: int = 0
    number: int = 0


InboxRow = InboxMessage | ReadMark | Acknowledgement

MARK = "mark"

KIND = "messages"
"""The name of the archive of all inboxes."""


def row_of(
    delivery: Deliver, number: int, *, at: int = 0, highest: int | None = None
) -> InboxMessage:
    """Return the row of a new message.

    The secrets of session URLs are hidden: a message would pass on the rights of a session.
    """
    content = {"sender": delivery.sender, "body": hide_session_urls(delivery.body)}
    for name in ("timestamp", "task_id", "status"):
        if (value := getattr(delivery, name)) is not None:
            content[name] = value
    return InboxMessage(
        id=delivery.id,
        chars=len(delivery.body),
        message=StoredDocument.of(content),
        number=number,
        at=at,
        highest=highest,
    )


def message_in(line: Mapping[str, Any]) -> Message | None:
    """Return the message in a line of either form; None for another line."""
    content = line["set"].get("message") if "set" in line else None
    if isinstance(content, dict):
        fields = {"text": "", **content, "id": line.get("id")}
    elif line.get("kind") == "message":
        fields = {"text": "", **line}
    else:
        return None
    fields.pop("kind", None)  # of version 1, as a compaction has copied it
    try:
        return with_text(structure(Message, fields))
    except CodecError:
        return None


def message_of(row: InboxMessage) -> Message:
    """Return the message of a row that is not written yet."""
    assert row.message.whole is not None
    return _with_text(row.id, **row.message.whole)


def upgraded(line: Mapping[str, Any], rows: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return a line of a ledger of version 1 as lines of today's; none to skip it.

    Its messages had no numbers; those of the lines after them are higher than their count.
    """
    newest = next(reversed(cast("dict[str, Any]", rows).values()), {"number": 0})
    last = newest.get("number")
    if last is None:  # an acknowledgement of a later version is before it
        last = max(each.get("number", 0) for each in rows.values())
    match line:
        case {"kind": "message"} if (message := message_in(line)) is not None:
            content: dict[str, Any] = {}
            row = {"type": "message", "chars": len(message.body), "message": content}
            row |= {"number": last + 1, "at": _seconds(message.timestamp)}
            # An id that was forgotten had come again: it is a new message.
            return [{"id": message.id, "drop": True}, {"id": message.id, "set": row}]
        case {"kind": "read", "up_to": str(up_to)}:
            read = {"type": "read", "up_to": up_to, "number": last}
            return [{"id": f"read/{len(rows)}/{up_to}", "set": read}]
    return []


def _seconds(timestamp: str) -> int:
    try:
        return int(moment_of(timestamp).timestamp())
    except ValueError:
        return 0


# The archive.


def archived_id(handle: str, message_id: str) -> str:
    """Return the id of a message among those of all inboxes."""
    return f"{handle}/{message_id}"


def archived_wakes(handle: str, wake: WakeId) -> str:
    """Return the name in the index of what is known of all wakes of a terminal."""
    return archived_id(handle, f"term:{wake.terminal}/{wake.life}")


def archived_newest(handle: str) -> str:
    """Return the name in the index of the highest number of an inbox from which rows have left."""
    return archived_id(handle, "")


def archived_row(line: Mapping[str, Any]) -> tuple[str, Message | None]:
    """Return the handle of a line of the archive, and its message; None if it is no message."""
    handle, _, message_id = str(line["id"]).partition("/")
    return handle, message_in({**line, "id": message_id})
