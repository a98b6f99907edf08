"""Who subscribes to a terminal, and up to which record each was told. Pure.

What ``subscribers.json`` holds, as the fields of a note:

    {"subscribers": [{"handle": "pm", "confirmed": 41}]}

``confirmed`` is the highest ``seq`` such that the inbox of ``handle`` has confirmed this record and
all before it, as far as they concern it. Further keys of an entry are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from aegis.errors import Unavailable
from aegis.protocol.naming import is_name, name_key

MAX_SUBSCRIBERS = 256
"""Handles that may subscribe to one terminal."""


@attrs.frozen(kw_only=True)
class Subscription:
    """One subscriber. ``handle`` is as it was first written; case makes no difference."""

    handle: str
    confirmed: int


@attrs.frozen
class Subscriptions:
    """All subscribers of one terminal, by the key of their handle; never changed in place."""

    by_key: Mapping[str, Subscription] = attrs.field(factory=dict)

    def __contains__(self, handle: str) -> bool:
        return name_key(handle) in self.by_key

    def __len__(self) -> int:
        return len(self.by_key)

    @property
    def handles(self) -> list[str]:
        """The handles, sorted without regard to case."""
        return sorted((each.handle for each in self.by_key.values()), key=name_key)

    @property
    def highest(self) -> int:
        """The highest record that anybody was told of; -1 if there is none."""
        return max((each.confirmed for each in self.by_key.values()), default=-1)

    def subscribed(self, handle: str, last_seq: int) -> Subscriptions:
        """With ``handle``, who is told of what comes after ``last_seq``; again changes nothing.

        Raises ``Unavailable`` when there are too many.
        """
        if handle in self:
            return self
        if len(self) >= MAX_SUBSCRIBERS:
            raise Unavailable(
                f"aegis_term_subscribe: {MAX_SUBSCRIBERS} handles subscribe to this terminal "
                "already; one of them must aegis_term_unsubscribe first"
            )
        new = Subscription(handle=handle, confirmed=last_seq)
        return Subscriptions({**self.by_key, name_key(handle): new})

    def unsubscribed(self, handle: str) -> Subscriptions:
        """Without ``handle``."""
        key = name_key(handle)
        return Subscriptions({each: who for each, who in self.by_key.items() if each != key})

    def confirmed(self, seqs: Mapping[str, int]) -> Subscriptions:
        """With what each was told by now, by key; it never goes back."""
        return Subscriptions(
            {
                key: attrs.evolve(who, confirmed=max(who.confirmed, seqs.get(key, -1)))
                for key, who in self.by_key.items()
            }
        )

    def stored(self) -> dict[str, object]:
        """The fields of the note."""
        return {"subscribers": [attrs.asdict(each) for each in self.by_key.values()]}


def restored(fields: Mapping[str, object] | None) -> tuple[Subscriptions, int]:
    """The subscriptions that a note tells of, and how many entries make no sense."""
    entries = [] if fields is None else fields.get("subscribers")
    if not isinstance(entries, list):
        return Subscriptions(), 1
    found = [_subscription(entry) for entry in entries[:MAX_SUBSCRIBERS]]
    good = [each for each in found if each is not None]
    return Subscriptions({name_key(each.handle): each for each in good}), len(entries) - len(good)


def _subscription(entry: object) -> Subscription | None:
    match entry:
        case {"handle": str(handle), "confirmed": int(confirmed)} if is_name(handle):
            return Subscription(handle=handle, confirmed=confirmed)
        case _:
            return None
