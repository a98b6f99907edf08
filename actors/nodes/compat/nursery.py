"""The stand-in for ``trio.open_nursery``: raises a lone exception bare, several as ``MultiError``.

tractor catches what its tasks raise by class. Only nurseries that tractor opens are so: one that is
opened by code running under tractor is Trio's own, with strict exception groups.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType

import outcome
import trio

from actors.nodes.compat.error_groups import MultiError


class LooseNursery(AbstractAsyncContextManager[trio.Nursery, bool]):
    """The nursery that tractor enters."""

    def __init__(self) -> None:
        self._manager = trio.open_nursery()

    async def __aenter__(self) -> trio.Nursery:
        return await self._manager.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        left = await outcome.acapture(self._manager.__aexit__, kind, error, traceback)
        if isinstance(left, outcome.Error) and isinstance(left.error, BaseExceptionGroup):
            return _raise_again(unwrapped(left.error), error)
        return bool(left.unwrap())


def unwrapped(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the only exception in ``group``, or all of them as the group that tractor knows."""
    held = group.exceptions
    return held[0] if len(held) == 1 else MultiError(group.message, held)


def _raise_again(raised: BaseException, within: BaseException | None) -> bool:
    """Let ``raised`` leave a block that ``within`` leaves, with the context that it has."""
    if raised is within:
        return False
    context = raised.__context__
    try:
        raise raised
    finally:
        raised.__context__ = context
