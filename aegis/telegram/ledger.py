"""The lines of the ledger of Telegram, and the state that they result in. Pure.

    {"kind": "secret", "secret": …}               seals the buttons
    {"kind": "accepted", "update": {…}}           an update is durable; it is done once
    {"kind": "begun", "id": …}                    an order that must not be repeated has begun
    {"kind": "done", "id": …}
    {"kind": "topic", "session": …, "thread": …}
    {"kind": "untopic", "thread": …}              the topic was deleted or closed
    {"kind": "focus", "session": …}
    {"kind": "moved", "old": …, "new": …}         the group became a supergroup with this id
    {"kind": "asked", "request": …, "digest": …, "message": …}
    {"kind": "drafted", "request": …, "draft": {…}}    the answers to its questions so far
    {"kind": "settled", "request": …}
    {"kind": "woken", "message": …}               the person's messages up to this one were sent
    {"kind": "told", "session": …, "entry": …}    a transcript was sent up to this entry
    {"kind": "problem", "text": …}                why the bot does not work; empty: it does
    {"kind": "head", "after": …, "fold": {…}}     the state before a new file of the ledger

Each line has its number in ``seq``; a ``head`` begins a new file (``aegis.journal.rotation``).
Lines of other kinds, of a later version, are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.telegram.forms import Draft
from aegis.telegram.updates import Press, Text, Update

V = TypeVar("V")

Line = dict[str, object]

MAX_ASKED = 1_000
"""Requests whose messages are remembered, so that they can be edited."""

MAX_CLOSED = 1_000
"""Messages of settled requests that are remembered: a late reply to one is no message to a session.
"""

MAX_SESSIONS = 5_000
"""Sessions whose topic and place in the transcript are remembered: those used last."""


@attrs.frozen
class Asked:
    """A request that is shown in the chat, by the message ``message``."""

    digest: str
    message: int


@attrs.frozen(kw_only=True)
class Kept:
    """The state of a ``Fold``, as the head of a file has it."""

    secret: str
    next_update: int
    texts: list[Text]
    presses: list[Press]
    begun: list[int]
    topics: dict[str, int]
    focus: str
    asked: dict[str, Asked]
    drafts: dict[str, Draft]
    closed: list[int]
    woken: str | None
    told: dict[str, int]
    problem: str
    moved: dict[str, int] = attrs.field(factory=dict)


def accepted_line(update: Update) -> Line:
    """Return the line of an accepted update."""
    return {"kind": "accepted", "press": isinstance(update, Press), "update": unstructure(update)}


def line(kind: str, **fields: object) -> Line:
    """Return a line."""
    return {"kind": kind, **fields}


class Fold:
    """The state that the lines so far result in."""

    def __init__(self) -> None:
        self.secret = ""
        self.next_update = 0
        """The lowest id of an update that is not accepted."""
        self.pending: dict[int, Update] = {}
        self.begun: set[int] = set()
        self.topics: dict[str, int] = {}
        self.focus = ""
        self.asked: dict[str, Asked] = {}
        self.drafts: dict[str, Draft] = {}
        self.closed: list[int] = []
        self.woken: str | None = None
        self.told: dict[str, int] = {}
        self.problem = ""
        self.moved: dict[str, int] = {}
        """New ids of chats, by the id that the configuration has."""
        self.seq = 0
        """The number of the newest line."""
        self.skipped = 0
        """The number of lines that could not be understood."""

    def chat_of(self, chat_id: int) -> int:
        """Return the id that the chat of the configuration has now."""
        return self.moved.get(str(chat_id), chat_id)

    def session_of(self, thread: int | None) -> str:
        """Return the session of a topic, or the one that is talked to; empty: none."""
        if thread is None:
            return self.focus
        return next((each for each, topic in self.topics.items() if topic == thread), "")

    def request_of(self, message: int | None) -> str:
        """Return the open request that a message of the chat shows; empty: none."""
        return next((key for key, each in self.asked.items() if each.message == message), "")

    def apply(self, line: Mapping[str, Any]) -> None:
        """Apply the next line."""
        number = line.get("seq")
        self.seq = max(self.seq, number) if isinstance(number, int) else self.seq + 1
        try:
            self._apply(line)
        except CodecError:
            self.skipped += 1

    def _apply(self, line: Mapping[str, Any]) -> None:
        match line:
            case {"kind": "secret", "secret": str(secret)}:
                self.secret = secret
            case {"kind": "head", "after": int(after), "fold": dict(fields)}:
                self.seq = after
                self._restore(structure(Kept, fields))
            case {"kind": "accepted", "press": bool(is_press), "update": dict(fields)}:
                form: type[Update] = Press if is_press else Text
                update = structure(form, fields)
                self.pending[update.update] = update
                self.next_update = max(self.next_update, update.update + 1)
            case {"kind": "begun", "id": int(number)}:
                self.begun.add(number)
            case {"kind": "done", "id": int(number)}:
                self.pending.pop(number, None)
                self.begun.discard(number)
            case _:
                self._apply_chat(line)

    def _apply_chat(self, line: Mapping[str, Any]) -> None:
        match line:
            case {"kind": "topic", "session": str(session), "thread": int(thread)}:
                _renew(self.topics, session, thread, MAX_SESSIONS)
            case {"kind": "untopic", "thread": int(thread)}:
                self.topics = {key: at for key, at in self.topics.items() if at != thread}
            case {"kind": "focus", "session": str(session)}:
                self.focus = session
            case {"kind": "moved", "old": int(old), "new": int(new)}:
                self.moved = {str(old): new}
            case {"kind": "woken", "message": str(message)}:
                self.woken = message
            case {"kind": "told", "session": str(session), "entry": int(entry)}:
                _renew(self.told, session, entry, MAX_SESSIONS)
            case {"kind": "told", "session": str(session), "seq": int(entry)}:  # version 0.1
                _renew(self.told, session, entry, MAX_SESSIONS)
            case {"kind": "problem", "text": str(text)}:
                self.problem = text
            case _:
                self._apply_request(line)

    def _apply_request(self, line: Mapping[str, Any]) -> None:
        match line:
            case {"kind": "asked", "request": str(key), "digest": str(digest), "message": int(at)}:
                _renew(self.asked, key, Asked(digest, at), MAX_ASKED)
                for gone in self.drafts.keys() - self.asked.keys():
                    del self.drafts[gone]
            case {"kind": "drafted", "request": str(key), "draft": dict(fields)}:
                if key in self.asked:
                    self.drafts[key] = structure(Draft, fields)
            case {"kind": "settled", "request": str(key)}:
                self._settle(key)

    def _settle(self, request: str) -> None:
        self.drafts.pop(request, None)
        asked = self.asked.pop(request, None)
        if asked is not None:
            self.closed = [*self.closed, asked.message][-MAX_CLOSED:]

    # The head of a new file.

    def head(self) -> Line:
        """Return the line that results in this state."""
        kept = Kept(
            secret=self.secret,
            next_update=self.next_update,
            texts=[each for each in self.pending.values() if isinstance(each, Text)],
            presses=[each for each in self.pending.values() if isinstance(each, Press)],
            begun=sorted(self.begun),
            topics=self.topics,
            focus=self.focus,
            asked=self.asked,
            drafts=self.drafts,
            closed=self.closed,
            woken=self.woken,
            told=self.told,
            problem=self.problem,
            moved=self.moved,
        )
        return line("head", after=self.seq, fold=unstructure(kept))

    def _restore(self, kept: Kept) -> None:
        self.secret, self.next_update = kept.secret, kept.next_update
        updates: tuple[Update, ...] = (*kept.texts, *kept.presses)
        self.pending = {each.update: each for each in updates}
        self.begun = set(kept.begun)
        self.topics, self.focus, self.told = kept.topics, kept.focus, kept.told
        self.asked, self.drafts, self.closed = kept.asked, kept.drafts, kept.closed
        self.woken, self.problem, self.moved = kept.woken, kept.problem, kept.moved


def _renew(found: dict[str, V], key: str, value: V, most: int) -> None:
    """Set the value of a key as the newest of at most ``most``."""
    found.pop(key, None)
    found[key] = value
    while len(found) > most:
        del found[next(iter(found))]
