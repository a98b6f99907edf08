"""A run that hangs on its seed alone: no threads, no chance of the system's, no wall clock.

What would go to a thread is done on the loop, at one moment, some time after it was asked for: a
clock that jumps cannot see that a thread is at work. Secrets, ids and times of day come from the
seed and from Trio's clock. Files stay real.
"""

from __future__ import annotations

import base64
import secrets
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from random import Random
from typing import Any, TypeVar, TypeVarTuple
from unittest import mock

import trio

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

HOP_S = 0.002
"""How long it takes at most until work for a thread is done."""

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of day when a run begins."""


@contextmanager
def reproducible(chance: Random) -> Iterator[None]:
    """Draw everything from ``chance`` until the block ends. One at a time in a process."""
    with ExitStack() as patches:
        for target, name, instead in (
            (trio.to_thread, "run_sync", _inline(chance)),
            (secrets, "token_hex", lambda size: chance.randbytes(size).hex()),
            (secrets, "token_urlsafe", lambda size: _urlsafe(chance, size)),
            (uuid, "uuid4", lambda: uuid.UUID(bytes=chance.randbytes(16), version=4)),
        ):
            patches.enter_context(mock.patch.object(target, name, instead))
        patches.enter_context(mock.patch("aegis.clock.datetime", _SimulatedDay))
        yield


class _SimulatedDay(datetime):
    """The time of day by Trio's clock."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> _SimulatedDay:
        moment = BEGIN + timedelta(seconds=trio.current_time())
        return cls.fromtimestamp(moment.timestamp(), tz)


def _urlsafe(chance: Random, size: int) -> str:
    return base64.urlsafe_b64encode(chance.randbytes(size)).rstrip(b"=").decode("ascii")


def _inline(chance: Random) -> Callable[..., Any]:
    async def run_sync(
        work: Callable[[*Ts], T],
        *args: *Ts,
        abandon_on_cancel: bool = False,
        limiter: object = None,
    ) -> T:
        await trio.lowlevel.checkpoint_if_cancelled()
        with trio.CancelScope(shield=not abandon_on_cancel):
            await trio.sleep(chance.uniform(0, HOP_S))
        return work(*args)

    return run_sync
