"""The rows of the ledger of the chat. Pure.

An order that is done is dropped; the newest stays, because its number says up to which update all
are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.telegram.forms import Draft
from aegis.telegram.updates import Press, TextMessage, Update

CHAT_ID = "chat"
ORDER, SESSION, REQUEST = "order/", "session/", "request/"
"""The beginnings of the ids of rows."""


@attrs.frozen(kw_only=True)
class ChatState:
    """The one row about the chat itself.

    ``secret`` seals the buttons, ``focus`` is the session that plain text goes to. ``woken`` is the
    last message of the person's inbox that was sent, None before the first start. ``problem`` is
    why the bot does not work. ``moved`` has new ids of chats, by the id in the configuration.
    """

    tag: ClassVar[str] = "chat"

    id: str = CHAT_ID
    secret: str = attrs.field(default="", repr=False)
    focus: str = ""
    woken: str | None = None
    problem: str = ""
    moved: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class ChatOrder:
    """An update that was accepted: a text or a press, None once it is done.

    ``is_begun``: it must not be repeated, and may have acted.
    """

    tag: ClassVar[str] = "order"

    id: str
    text: TextMessage | None = None
    press: Press | None = None
    is_begun: bool = False
    is_done: bool = False

    @classmethod
    def of(cls, update: Update) -> ChatOrder:
        """Return the row of an update."""
        id_ = f"{ORDER}{update.update}"
        if isinstance(update, Press):
            return cls(id=id_, press=update)
        return cls(id=id_, text=update)

    @property
    def number(self) -> int:
        """The id of the update."""
        return int(self.id.removeprefix(ORDER))

    @property
    def update(self) -> Update:
        """The update of an order that is not done."""
        update = self.text or self.press
        assert update is not None, "the order is not done"
        return update

    def done(self) -> ChatOrder:
        """Return the row once the order is carried out."""
        return attrs.evolve(self, text=None, press=None, is_done=True)


@attrs.frozen(kw_only=True)
class ChatSession:
    """A session in the chat: its ``topic``, and the entry up to which its transcript was sent.

    ``used`` is higher than that of all rows that were used before.
    """

    tag: ClassVar[str] = "session"

    id: str
    topic: int | None = None
    sent: int | None = None
    used: int = 0

    @property
    def is_followed(self) -> bool:
        """Whether the texts of its turns are sent."""
        return self.topic is not None or self.sent is not None


@attrs.frozen(kw_only=True)
class ShownRequest:
    """A request that the chat shows by the message ``message``, or has shown until it was settled.

    ``draft`` are the answers to its questions so far.
    """

    tag: ClassVar[str] = "request"

    id: str
    digest: str = ""
    message: int = 0
    draft: Draft = attrs.field(factory=Draft)
    is_settled: bool = False
    used: int = 0

    def settled(self, used: int) -> ShownRequest:
        """Return the row once the request is settled."""
        return attrs.evolve(self, is_settled=True, draft=Draft(), used=used)


ChatRow = ChatState | ChatOrder | ChatSession | ShownRequest


# Ledgers of a version before tables.


def lines_of_today(
    line: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]]:
    """Return a line that a version before tables has written as lines of today's form."""
    try:
        return [*map(_set, _changes_of(line, rows))]
    except CodecError:
        return []


Rows = Mapping[str, Mapping[str, Any]]

Change = tuple[str, str, Mapping[str, Any]]
"""The tag and the id of a row, and its changed fields."""


def _set(change: Change) -> Mapping[str, Any]:
    tag, id_, fields = change
    return {"id": id_, "set": {"type": tag, **fields}}


def _changes_of(line: Mapping[str, Any], rows: Rows) -> Iterator[Change]:
    used = line.get("seq", 0)
    match line:
        case {"kind": "head", "after": int(after), "fold": dict(fold)}:
            yield from _kept(fold, after)
        case {"kind": "accepted" | "begun" | "done"}:
            yield from _of_order(line, rows)
        case {"kind": "topic", "session": str(session), "thread": int(thread)}:
            yield "session", f"{SESSION}{session}", {"topic": thread, "used": used}
        case {"kind": "untopic", "thread": int(thread)}:
            for id_ in [key for key, row in rows.items() if row.get("topic") == thread]:
                yield "session", id_, {"topic": None}
        case {"kind": "told", "session": str(session), "entry": int(entry)}:
            yield "session", f"{SESSION}{session}", {"sent": entry, "used": used}
        case {"kind": "told", "session": str(session), "seq": int(entry)}:  # version 0.1
            yield "session", f"{SESSION}{session}", {"sent": entry}
        case {"request": str(key)}:
            yield from _of_request(line, f"{REQUEST}{key}", rows)
        case _:
            yield from _of_chat(line)


def _of_chat(line: Mapping[str, Any]) -> Iterator[Change]:
    match line:
        case {"kind": "secret", "secret": str(secret)}:
            yield "chat", CHAT_ID, {"secret": secret}
        case {"kind": "focus", "session": str(session)}:
            yield "chat", CHAT_ID, {"focus": session}
        case {"kind": "moved", "old": int(old), "new": int(new)}:
            yield "chat", CHAT_ID, {"moved": {str(old): new}}
        case {"kind": "woken", "message": str(message)}:
            yield "chat", CHAT_ID, {"woken": message}
        case {"kind": "problem", "text": str(text)}:
            yield "chat", CHAT_ID, {"problem": text}


def _of_order(line: Mapping[str, Any], rows: Rows) -> Iterator[Change]:
    id_ = f"{ORDER}{line.get('id')}"
    match line:
        case {"kind": "accepted", "press": bool(is_press), "update": dict(fields)}:
            yield _accepted(
                structure(Press, fields) if is_press else structure(TextMessage, fields)
            )
        case {"kind": "begun"} if id_ in rows:
            yield "order", id_, {"is_begun": True}
        case {"kind": "done"} if id_ in rows:
            yield "order", id_, {"text": None, "press": None, "is_done": True}


def _of_request(line: Mapping[str, Any], id_: str, rows: Rows) -> Iterator[Change]:
    used = line.get("seq", 0)
    match line:
        case {"kind": "asked", "digest": str(digest), "message": int(message)}:
            shown = {"digest": digest, "message": message, "is_settled": False, "used": used}
            yield "request", id_, shown
        case {"kind": "drafted", "draft": dict(fields)} if id_ in rows:
            yield "request", id_, {"draft": unstructure(structure(Draft, fields))}
        case {"kind": "settled"} if id_ in rows:
            draft = unstructure(Draft())
            yield "request", id_, {"is_settled": True, "draft": draft, "used": used}


def _accepted(update: Update) -> Change:
    fields = unstructure(ChatOrder.of(update))
    return "order", fields.pop("id"), fields


def _kept(fold: Mapping[str, Any], after: int) -> Iterator[Change]:
    """Yield the rows of the first line of a file, which had the state of the file before."""
    names = ("secret", "focus", "woken", "problem", "moved")
    yield "chat", CHAT_ID, {name: fold[name] for name in names if name in fold}
    newest = fold.get("next_update", 0) - 1
    if newest >= 0:
        yield "order", f"{ORDER}{newest}", {"is_done": True}
    updates: list[Update] = [structure(TextMessage, each) for each in fold.get("texts", [])]
    updates += [structure(Press, each) for each in fold.get("presses", [])]
    for each in updates:
        tag, id_, fields = _accepted(each)
        yield tag, id_, {**fields, "is_begun": each.update in fold.get("begun", [])}
    topics, sent = fold.get("topics", {}), fold.get("told", {})
    # Older than all lines after this one: the first was used the longest time ago.
    sessions = [*(topics.keys() - sent.keys()), *sent]
    for used, session in enumerate(sessions, after - len(sessions)):
        at = {"topic": topics.get(session), "sent": sent.get(session), "used": used}
        yield "session", f"{SESSION}{session}", at
    drafts, asked = fold.get("drafts", {}), fold.get("asked", {})
    for used, (key, shown) in enumerate(asked.items(), after - len(asked)):
        draft = unstructure(structure(Draft, drafts.get(key, {})))
        yield "request", f"{REQUEST}{key}", {**shown, "draft": draft, "used": used}
    closed = fold.get("closed", [])
    for used, message in enumerate(closed, after - len(closed)):
        # The id of the request is not known any more: that of its message is as unique.
        ended = {"message": message, "is_settled": True, "used": used}
        yield "request", f"{REQUEST}of message {message}", ended
