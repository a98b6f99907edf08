"""The subscriptions of a terminal: handles, filters, and progress. Pure.

The content of ``subscribers.json``, as the fields of a note:

    {"life": "5f3a…", "subscribers": [
      {"handle": "pm", "confirmed": 41, "pattern": "pytest", "only_failures": true}]}

``confirmed`` is the highest ``seq`` such that the inbox of ``handle`` has confirmed this record and
all before it that its filter lets pass. Without ``pattern`` and ``only_failures`` every record
passes. If the filter was changed while older records were still owed, ``earlier`` lists the former
filters, the oldest first; ``[{"until": 40}]``: all records up to 40. Further keys of an entry are
ignored.

``life`` is the life id of the terminal, which is part of the ids of its wakes. If ``meta.json`` is
lost the id is taken from here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from aegis.errors import AegisError, Unavailable
from aegis.protocol.naming import is_name, name_key
from aegis.terminals.output.patterns import Pattern

NO_LIFE = "lost"
"""The life id where the real one was lost: that of no terminal."""

_LIFE = re.compile(r"[0-9A-Za-z]{1,64}")

MAX_SUBSCRIBERS = 256
"""Limit of subscribers of one terminal."""

MAX_EARLIER = 3
"""Limit of former filters that are kept for records still owed."""


@attrs.frozen(kw_only=True)
class Filter:
    """The condition for a record to wake a subscriber; without arguments every record does.

    ``pattern`` is searched for in ``cmd``. A command passes if its text is unknown, or too long to
    be searched. ``only_failures``: all exits but 0; an unknown exit is a failure.
    """

    pattern: Pattern | None = None
    only_failures: bool = False

    def stored(self) -> dict[str, object]:
        """Return the fields of a note; none for ``EVERYTHING``."""
        if self == EVERYTHING:
            return {}
        source = None if self.pattern is None else self.pattern.source
        return {"pattern": source, "only_failures": self.only_failures}


EVERYTHING = Filter()


@attrs.frozen(kw_only=True)
class Earlier:
    """The former filter of a subscriber, for its records up to ``until``."""

    until: int
    filter: Filter


@attrs.frozen(kw_only=True)
class Subscription:
    """One subscriber. ``handle`` has the case of its first use; comparisons ignore case."""

    handle: str
    confirmed: int
    filter: Filter = EVERYTHING
    earlier: tuple[Earlier, ...] = ()

    def filter_of(self, seq: int) -> Filter:
        """Return the filter that applied when the record ``seq`` was finished."""
        return next((each.filter for each in self.earlier if seq <= each.until), self.filter)

    def changed(self, wanted: Filter, last_seq: int) -> Subscription:
        """Return a copy with another filter after ``last_seq``. Raises ``Unavailable``."""
        if wanted == self.filter:
            return self
        owed = self.reached(self.confirmed).earlier
        if max([self.confirmed, *(each.until for each in owed)]) < last_seq:
            owed = (*owed, Earlier(until=last_seq, filter=self.filter))
        if len(owed) > MAX_EARLIER:
            raise Unavailable(
                f"aegis_term_subscribe: the filter of {self.handle!r} was changed {MAX_EARLIER} "
                "times while its inbox did not take what finished; try again when it does"
            )
        return attrs.evolve(self, filter=wanted, earlier=owed)

    def reached(self, seq: int) -> Subscription:
        """Return a copy with progress up to ``seq``, if that is further."""
        confirmed = max(self.confirmed, seq)
        earlier = tuple(each for each in self.earlier if each.until > confirmed)
        return attrs.evolve(self, confirmed=confirmed, earlier=earlier)

    def stored(self) -> dict[str, object]:
        """Return the entry of the note."""
        fields = {"handle": self.handle, "confirmed": self.confirmed, **self.filter.stored()}
        if self.earlier:
            fields["earlier"] = [
                {"until": each.until, **each.filter.stored()} for each in self.earlier
            ]
        return fields


@attrs.frozen
class Subscriptions:
    """All subscribers of one terminal, by the key of their handle; immutable.

    ``life`` is the terminal's; empty where an earlier version did not store it.
    """

    by_key: Mapping[str, Subscription] = attrs.field(factory=dict)
    life: str = ""

    def __contains__(self, handle: str) -> bool:
        return name_key(handle) in self.by_key

    def __len__(self) -> int:
        return len(self.by_key)

    @property
    def handles(self) -> list[str]:
        """The handles, sorted ignoring case."""
        return sorted((each.handle for each in self.by_key.values()), key=name_key)

    @property
    def highest(self) -> int:
        """The highest record that any subscriber was notified of; -1 without one."""
        return max((each.confirmed for each in self.by_key.values()), default=-1)

    def subscribed(self, handle: str, last_seq: int, wanted: Filter = EVERYTHING) -> Subscriptions:
        """Return a copy with ``handle``, from the record after ``last_seq`` on.

        A second call changes only the filter. Raises ``Unavailable`` if there are too many.
        """
        key = name_key(handle)
        before = self.by_key.get(key)
        if before is not None:
            return self._with({**self.by_key, key: before.changed(wanted, last_seq)})
        if len(self) >= MAX_SUBSCRIBERS:
            raise Unavailable(
                f"aegis_term_subscribe: {MAX_SUBSCRIBERS} handles subscribe to this terminal "
                "already; one of them must aegis_term_unsubscribe first"
            )
        new = Subscription(handle=handle, confirmed=last_seq, filter=wanted)
        return self._with({**self.by_key, key: new})

    def unsubscribed(self, handle: str) -> Subscriptions:
        """Return a copy without ``handle``."""
        key = name_key(handle)
        return self._with({each: who for each, who in self.by_key.items() if each != key})

    def confirmed(self, seqs: Mapping[str, int]) -> Subscriptions:
        """Return a copy with this progress, by key, where it is further."""
        return self._with({key: who.reached(seqs.get(key, -1)) for key, who in self.by_key.items()})

    def in_life(self, life: str, last_seq: int) -> Subscriptions:
        """Return the subscriptions of the terminal's life ``life``, whose newest record is known.

        Subscriptions of another life are owed none of its records: they would be sent again, under
        other ids.
        """
        is_same = self.life in ("", life)
        now = self if is_same else self.confirmed(dict.fromkeys(self.by_key, last_seq))
        return attrs.evolve(now, life=life)

    def stored(self) -> dict[str, object]:
        """Return the fields of the note."""
        return {"life": self.life, "subscribers": [each.stored() for each in self.by_key.values()]}

    def _with(self, by_key: Mapping[str, Subscription]) -> Subscriptions:
        return Subscriptions(by_key, self.life)


def restored(fields: Mapping[str, object] | None) -> tuple[Subscriptions, int]:
    """Return the subscriptions of a note, and the number of damaged entries.

    An entry with a damaged filter lets everything pass: too many wakes are better than too few.
    """
    entries = [] if fields is None else fields.get("subscribers")
    if not isinstance(entries, list):
        return Subscriptions(), 1
    found = [_subscription(entry) for entry in entries[:MAX_SUBSCRIBERS]]
    good = [each for each, _ in filter(None, found)]
    sound = sum(is_sound for _, is_sound in filter(None, found))
    by_key = {name_key(each.handle): each for each in good}
    return Subscriptions(by_key, stored_life(fields) or ""), len(entries) - sound


def stored_life(fields: Mapping[str, object] | None) -> str | None:
    """Return the terminal's life in which the note was written; None if it is missing."""
    life = None if fields is None else fields.get("life")
    return life if isinstance(life, str) and _LIFE.fullmatch(life) else None


def _subscription(entry: Any) -> tuple[Subscription, bool] | None:
    """Return the subscriber, and whether its filters could be read."""
    match entry:
        case {"handle": str(handle), "confirmed": int(confirmed)} if is_name(handle):
            wanted, earlier = _filter(entry), _earlier(entry.get("earlier", []))
            subscription = Subscription(
                handle=handle,
                confirmed=confirmed,
                filter=wanted or EVERYTHING,
                earlier=earlier or (),
            )
            return subscription, wanted is not None and earlier is not None
        case _:
            return None


def _filter(fields: Mapping[str, object]) -> Filter | None:
    source, only_failures = fields.get("pattern"), fields.get("only_failures", False)
    if not isinstance(source, str | None) or not isinstance(only_failures, bool):
        return None
    try:
        pattern = None if source is None else Pattern(source)
    except AegisError:
        return None
    return Filter(pattern=pattern, only_failures=only_failures)


def _earlier(entries: Any) -> tuple[Earlier, ...] | None:
    if not isinstance(entries, list):
        return None
    found = []
    for entry in entries[-MAX_EARLIER:]:
        match entry:
            case {"until": int(until)} if (wanted := _filter(entry)) is not None:
                found.append(Earlier(until=until, filter=wanted))
            case _:
                return None
    return tuple(found)
