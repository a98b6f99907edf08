"""A rule: a promise, and a function that finds where it was broken. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from tests.chaos.checking.case import Case

TERMINALS = "terminals"
"""The guarantee of rules for terminals that is not one of G1 to G14."""

Find = Callable[[Case], Iterator[str]]


@attrs.frozen
class Rule:
    """A promise, and ``find``, which yields a sentence for each place where it was broken."""

    guarantee: str
    find: Find
