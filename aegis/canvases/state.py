"""``CanvasState``: the state of one canvas, as the lines of its ledger result in it. Pure.

    {"kind": "intent", "intent": {"change": {…}, "section_text": …, "before": …, "after": …}}
    {"kind": "done", "rev": …}          {"kind": "dropped", "rev": …}
    {"kind": "outside", "changes": [{…}], "before": …, "after": …}
    {"kind": "displaced", "changes": [{…}], "digest": …}
    {"kind": "subscribed", "handle": …, "sections": [names]|null, "rev": …}
    {"kind": "unsubscribed", "handle": …}
    {"kind": "confirmed", "revs": {handle: rev}}
    {"kind": "head", "after": …, "state": {…}}

``before`` and ``after`` are the SHA-256 of the file. An intent is written before the file is
exchanged. If its ``done`` is missing, the next line with the digest of a file says whether it was
carried out; without such a line the file does (``rules``). Each line has its number in ``seq``. A
``head`` begins a new file of the ledger (``aegis.journal.rotation``). Lines of other kinds, of a
later version, are skipped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import attrs

from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.canvases.document import BODY, PREAMBLE
from aegis.canvases.wake_text import excerpt
from aegis.journal.file_content import NO_FILE
from aegis.protocol.canvases import CanvasChange
from aegis.protocol.naming import name_key

Line = dict[str, object]

AFTER = "after"
"""The field of a head line with the number of the newest line before it."""

MAX_BESIDE = 6
"""Digests of files that an exchange may have left: those of two intents, and displaced ones."""

MAX_OWED = 1_000
"""Changes that are kept for subscribers whose inbox does not confirm them."""


HUMAN = "human"


@attrs.frozen(kw_only=True)
class Bound:
    """The settings of a canvas, which never change; ``life`` is a part of the ids of its wakes."""

    name: str
    file: str
    created_at: str
    life: str


def writer_of(handle: str | None) -> str:
    """Return the writer's tag of a handle; None is the operator."""
    return HUMAN if handle is None or name_key(handle) == HUMAN else f"agent:{handle}"


@attrs.frozen(kw_only=True)
class SectionState:
    """The last change of a section, and its text then."""

    rev: int
    writer: str
    text: str


@attrs.frozen(kw_only=True)
class Former:
    """The sections that a subscriber wanted of the changes up to ``until``."""

    sections: tuple[str, ...] | None
    until: int


@attrs.frozen(kw_only=True)
class Subscriber:
    """A subscriber by its immutable handle; ``confirmed`` is the last change that its inbox has.

    ``former`` are earlier subscriptions, the oldest first, that unconfirmed changes belong to.
    """

    handle: str
    sections: tuple[str, ...] | None
    confirmed: int
    former: tuple[Former, ...] = ()

    def wants(self, change: CanvasChange) -> bool:
        """Return whether the change wakes the subscriber: its own does not."""
        if name_key(change.writer) == name_key(writer_of(self.handle)):
            return False
        sections = self._sections_at(change.rev)
        names = {change.section, BODY} if change.section == PREAMBLE else {change.section}
        return sections is None or not names.isdisjoint(sections)

    def _sections_at(self, rev: int) -> tuple[str, ...] | None:
        for each in self.former:
            if rev <= each.until:
                return each.sections
        return self.sections

    def again(self, sections: tuple[str, ...] | None, rev: int) -> Subscriber:
        """Return it with other sections for the changes after ``rev``."""
        former = [each for each in self.former if each.until > self.confirmed]
        if rev > max(self.confirmed, *(each.until for each in former), 0):
            former.append(Former(sections=self.sections, until=rev))
        # Of more changes none is kept either, so older sections have nothing to wake for.
        return attrs.evolve(self, sections=sections, former=tuple(former[-MAX_OWED:]))


@attrs.frozen(kw_only=True)
class Intent:
    """A change that may be in the file: the file's digest ``before`` and ``after`` it."""

    change: CanvasChange
    section_text: str
    before: str
    after: str


@attrs.frozen(kw_only=True)
class Stored:
    """The state in the head of a ledger."""

    rev: int
    recorded: int
    digest: str
    previous: str
    sections: dict[str, SectionState]
    subscribers: list[Subscriber]
    owed: list[CanvasChange]
    beside: list[str] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class CanvasState:
    """The state; ``digest`` is that of the file after the last known change.

    ``previous`` is the digest before that. ``rev`` is the newest number of a change, ``recorded``
    that of the newest one that happened, ``seq`` the number of the newest line. ``owed`` are
    changes that a subscriber may not have. ``beside`` are digests of files of the newest intents,
    and of displaced files that are in the history: a kill or a power loss may leave one of them
    beside the file, even after later changes. ``subscribing`` are the keys of handles whose
    subscriptions are not durable yet, with the changes after which they begin: until then they are
    not woken, so that they get all wakes in order, also after a kill.
    """

    rev: int = 0
    recorded: int = 0
    seq: int = 0
    digest: str = NO_FILE
    previous: str = NO_FILE
    sections: dict[str, SectionState] = attrs.field(factory=dict)
    subscribers: dict[str, Subscriber] = attrs.field(factory=dict)
    owed: deque[CanvasChange] = attrs.field(factory=lambda: deque(maxlen=MAX_OWED))
    intent: Intent | None = None
    beside: tuple[str, ...] = ()
    subscribing: list[tuple[str, int]] = attrs.field(factory=list)
    last: CanvasChange | None = None
    skipped: int = 0

    @property
    def texts(self) -> dict[str, str]:
        """The last known text of each section."""
        return {name: each.text for name, each in self.sections.items()}

    def apply(self, line: Mapping[str, Any]) -> None:
        """Apply the next line."""
        seq = line.get("seq", line.get(AFTER))
        self.seq = seq if isinstance(seq, int) else self.seq
        try:
            self._apply(line)
        except CodecError:
            self.skipped += 1

    def _apply(self, line: Mapping[str, Any]) -> None:
        match line:
            case {"kind": "intent", "intent": fields}:
                intent = structure(Intent, fields)
                self._settle(intent.before)
                self.intent = intent
                self._remember(intent.before, intent.after)
                self.rev = max(self.rev, intent.change.rev)
            case {"kind": "done"}:
                self.finish()
            case {"kind": "dropped"}:
                self.intent = None
            case {"kind": "outside", "before": str(before), "after": str(after)}:
                self._settle(before)
                self._outside(changes_of(line), after)
            case {"kind": "displaced"}:
                self.record(changes_of(line))
                self._remember(str(line.get("digest")))
            case {"kind": "head", "state": state}:
                self._restore(structure(Stored, state))
            case {"kind": "subscribed" | "unsubscribed" | "confirmed"}:
                self._subscribe(line)

    def _subscribe(self, line: Mapping[str, Any]) -> None:
        match line:
            case {"kind": "subscribed", "handle": str(handle), "rev": int(rev)}:
                names = line.get("sections")
                sections = tuple(names) if isinstance(names, list) else None
                key = name_key(handle)
                new = Subscriber(handle=handle, sections=sections, confirmed=rev)
                known = self.subscribers.get(key)
                self.subscribers[key] = new if known is None else known.again(sections, rev)
            case {"kind": "unsubscribed", "handle": str(handle)}:
                self.subscribers.pop(name_key(handle), None)
            case {"kind": "confirmed", "revs": dict(revs)}:
                for handle, rev in revs.items():
                    self.confirm(handle, rev)

    def begin_subscribing(self, handle: str) -> int:
        """Keep what a new subscription is owed from now on; return the newest change."""
        self.subscribing.append((name_key(handle), self.recorded))
        return self.recorded

    def is_subscribing(self, key: str) -> bool:
        """Return whether a subscription of the handle with this key is not durable yet."""
        return any(each == key for each, _ in self.subscribing)

    def confirm(self, handle: str, rev: int) -> None:
        """Note that a subscriber has all changes up to ``rev``."""
        known = self.subscribers.get(name_key(handle))
        if known is not None and rev > known.confirmed:
            self.subscribers[name_key(handle)] = attrs.evolve(known, confirmed=rev)
        self._forget()

    def finish(self) -> CanvasChange | None:
        """Apply the intent: it is in the file. Return its change."""
        intent, self.intent = self.intent, None
        if intent is None:
            return None
        change = intent.change
        self.sections[change.section] = SectionState(
            rev=change.rev, writer=change.writer, text=intent.section_text
        )
        preamble = self.sections.get(PREAMBLE)
        if preamble is not None and not preamble.text and len(self.sections) > 1:
            del self.sections[PREAMBLE]
        self.previous, self.digest = intent.before, intent.after
        self.record([change])
        return change

    def stored(self) -> Stored:
        """Return the state for a head; there must be no intent."""
        return Stored(
            rev=self.rev,
            recorded=self.recorded,
            digest=self.digest,
            previous=self.previous,
            sections=self.sections,
            subscribers=[*self.subscribers.values()],
            owed=[*self.owed],
            beside=[*self.beside],
        )

    def _restore(self, stored: Stored) -> None:
        self.rev, self.recorded = stored.rev, stored.recorded
        self.digest, self.previous = stored.digest, stored.previous
        self.sections = dict(stored.sections)
        self.subscribers = {name_key(each.handle): each for each in stored.subscribers}
        self.owed = deque(stored.owed, maxlen=MAX_OWED)
        self.intent, self.beside = None, tuple(stored.beside)

    def _remember(self, *digests: str) -> None:
        known = dict.fromkeys((*digests, *self.beside))
        self.beside = tuple(known)[:MAX_BESIDE]

    def _settle(self, digest: str) -> None:
        """Judge an intent without an outcome by the digest that the next line found."""
        if self.intent is not None and self.intent.after == digest:
            self.finish()
        self.intent = None

    def _outside(self, changes: list[CanvasChange], digest: str) -> None:
        for change in changes:
            if change.text is None:
                self.sections.pop(change.section, None)
            else:
                self.sections[change.section] = SectionState(
                    rev=change.rev, writer=change.writer, text=change.text
                )
        self.previous, self.digest = self.digest, digest
        self.record(changes)

    def record(self, changes: list[CanvasChange]) -> None:
        """Note changes that happened."""
        for change in changes:
            self.rev = max(self.rev, change.rev)
            self.recorded = max(self.recorded, change.rev)
            self.last = attrs.evolve(change, text=excerpt(change.text))
            if self.subscribers or self.subscribing:
                self.owed.append(self.last)

    def _forget(self) -> None:
        """Forget the changes that all subscribers have."""
        revs = [each.confirmed for each in self.subscribers.values()]
        lowest = min((*revs, *(rev for _, rev in self.subscribing)), default=self.rev)
        while self.owed and self.owed[0].rev <= lowest:
            self.owed.popleft()


def changes_of(line: Mapping[str, Any]) -> list[CanvasChange]:
    """Return the changes in a line. Raises ``CodecError``."""
    changes = line.get("changes")
    return [structure(CanvasChange, each) for each in changes] if isinstance(changes, list) else []


# Lines.


def head_line(state: CanvasState) -> Line:
    """Return the first line of a new file, which has the state so far; there is no intent."""
    return {"kind": "head", AFTER: state.seq, "state": unstructure(state.stored())}


def intent_line(intent: Intent) -> Line:
    """Return the line that the file will now be exchanged."""
    return {"kind": "intent", "intent": unstructure(intent)}


def done_line(change: CanvasChange) -> Line:
    """Return the line that a change is in the file."""
    return {"kind": "done", "rev": change.rev}


def dropped_line(change: CanvasChange) -> Line:
    """Return the line that a change is not in the file and will not be."""
    return {"kind": "dropped", "rev": change.rev}


def outside_line(changes: list[CanvasChange], before: str, after: str) -> Line:
    """Return the line that another program has changed the file."""
    return {
        "kind": "outside",
        "changes": [*map(unstructure, changes)],
        "before": before,
        "after": after,
    }


def displaced_line(changes: list[CanvasChange], digest: str) -> Line:
    """Return the line with the texts of a file that an exchange displaced."""
    return {"kind": "displaced", "changes": [*map(unstructure, changes)], "digest": digest}


def subscribed_line(handle: str, sections: list[str] | None, rev: int) -> Line:
    """Return the line that a handle is woken by the changes after ``rev``."""
    return {"kind": "subscribed", "handle": handle, "sections": sections, "rev": rev}


def unsubscribed_line(handle: str) -> Line:
    """Return the line that a handle is woken no more."""
    return {"kind": "unsubscribed", "handle": handle}


def confirmed_line(revs: Mapping[str, int]) -> Line:
    """Return the line that inboxes have the changes up to these."""
    return {"kind": "confirmed", "revs": dict(revs)}
