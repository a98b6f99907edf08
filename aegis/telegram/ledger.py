"""The lines of the ledger of Telegram, and the state that they result in. Pure.

    {"kind": "secret", "secret": …}               seals the buttons
    {"kind": "accepted", "update": {…}}           an update is durable; it is done once
    {"kind": "begun", "id": …}                    an order that must not be repeated has begun
    {"kind": "done", "id": …}
    {"kind": "topic", "session": …, "thread": …}
    {"kind": "focus", "session": …}
    {"kind": "asked", "request": …, "digest": …, "message": …}
    {"kind": "settled", "request": …}
    {"kind": "woken", "message": …}               the person's messages up to this one were sent
    {"kind": "told", "session": …, "seq": …}      a transcript was sent up to this entry
    {"kind": "problem", "text": …}                why the bot does not work; empty: it does

Lines of other kinds, of a later version, are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.telegram.updates import Press, Text, Update

Line = dict[str, object]

MAX_ASKED = 1_000
"""Requests whose messages are remembered, so that they can be edited."""


@attrs.frozen
class Asked:
    """A request that is shown in the chat, by the message ``message``."""

    digest: str
    message: int


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
        self.woken: str | None = None
        self.told: dict[str, int] = {}
        self.problem = ""
        self.skipped = 0
        """The number of lines that could not be understood."""

    def session_of(self, thread: int | None) -> str:
        """Return the session of a topic, or the one that is talked to; empty: none."""
        if thread is None:
            return self.focus
        return next((each for each, topic in self.topics.items() if topic == thread), "")

    def apply(self, line: Mapping[str, Any]) -> None:
        """Apply the next line."""
        try:
            self._apply(line)
        except CodecError:
            self.skipped += 1

    def _apply(self, line: Mapping[str, Any]) -> None:
        match line:
            case {"kind": "secret", "secret": str(secret)}:
                self.secret = secret
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
                self.topics[session] = thread
            case {"kind": "focus", "session": str(session)}:
                self.focus = session
            case {"kind": "asked", "request": str(key), "digest": str(digest), "message": int(at)}:
                self.asked[key] = Asked(digest, at)
                while len(self.asked) > MAX_ASKED:
                    del self.asked[next(iter(self.asked))]
            case {"kind": "settled", "request": str(key)}:
                self.asked.pop(key, None)
            case {"kind": "woken", "message": str(message)}:
                self.woken = message
            case {"kind": "told", "session": str(session), "seq": int(seq)}:
                self.told[session] = seq
            case {"kind": "problem", "text": str(text)}:
                self.problem = text
