"""Runs that depend on their seed alone: no threads, no system randomness, no wall clock.

Work for a thread is done on the loop, at one moment, some time after it was requested: a clock that
jumps cannot see that a thread is busy. Secrets, ids and times of day come from the seed and from
Trio's clock. Files stay real.
"""

from __future__ import annotations

import base64
import random
import secrets
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from random import Random
from typing import Any, TypeVar, TypeVarTuple
from unittest import mock

import trio
import ulid
from trio.lowlevel import in_trio_run

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

HOP_S = 0.002
"""The longest delay, in seconds, of work for a thread."""

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of day at the start of a run."""


@contextmanager
def reproducible(chance: Random) -> Iterator[None]:
    """Draw all randomness from ``chance`` inside the block. One block at a time per process."""
    with ExitStack() as patches:
        for target, name, instead in (
            (trio.to_thread, "run_sync", _inline(chance)),
            (secrets, "token_hex", lambda size: chance.randbytes(size).hex()),
            (secrets, "token_urlsafe", lambda size: _urlsafe(chance, size)),
            (uuid, "uuid4", lambda: uuid.UUID(bytes=chance.randbytes(16), version=4)),
            (random, "SystemRandom", lambda: chance),
            (time, "time", _simulated_time),
        ):
            patches.enter_context(mock.patch.object(target, name, instead))
        patches.enter_context(mock.patch("aegis.clock.datetime", _SimulatedDay))
        ulids = ulid.ULIDGenerator(
            clock=lambda: round(1000 * _simulated_time()),
            randomness=lambda _: chance.randbytes(10),
        )
        patches.enter_context(mock.patch.object(ulid, "default_generator", ulids))
        yield


def _simulated_time() -> float:
    return BEGIN.timestamp() + (trio.current_time() if in_trio_run() else 0.0)


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
