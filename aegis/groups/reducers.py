"""The reducers: the replies of several members as one text. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs

from aegis.protocol.groups import Reducer


@attrs.frozen
class Reply:
    """The reply of the member ``handle``."""

    handle: str
    text: str


def reduced(reducer: Reducer, replies: Sequence[Reply]) -> str | None:
    """Return one text made from the replies, which are in their order; None without any."""
    if not replies:
        return None
    match reducer:
        case "concat":
            return "\n\n".join(each.text for each in replies)
        case "join_by_handle":
            ordered = sorted(replies, key=lambda each: each.handle.lower())
            return "\n\n".join(f"{each.handle}:\n{each.text}" for each in ordered)
        case "last_wins":
            return replies[-1].text
        case "majority_vote":
            return _most_frequent(replies)


def _most_frequent(replies: Sequence[Reply]) -> str:
    """Return the most frequent reply; of equally frequent ones the one that came first.

    It is returned as its first sender wrote it.
    """
    votes = Counter(_vote(each.text) for each in replies)
    most = max(votes.values())
    return next(each.text for each in replies if votes[_vote(each.text)] == most)


def _vote(text: str) -> str:
    """Return the text by which equal replies are found: without case and extra white space."""
    return " ".join(text.split()).casefold()
