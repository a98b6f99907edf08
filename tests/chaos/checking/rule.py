"""A rule: a promise, and a function that finds where it was broken. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from tests.chaos.checking.case import Case

TERMINALS = "terminals"
"""The guarantee of rules for what the contract of terminals says beyond G1 to G14."""

Find = Callable[[Case], Iterator[str]]


@attrs.frozen
class Rule:
    """``find`` tells in one plain sentence each where ``guarantee`` ("G1") was broken."""

    guarantee: str
    find: Find
