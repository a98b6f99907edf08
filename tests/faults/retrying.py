"""Bounded retries of a scenario's clients after refusals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import trio

from actors import AskError, InjectedCrash, Ref, Request, StartFailed
from aegis.errors import AegisError, StartupError

T = TypeVar("T")

TRIES = 60
PAUSE_S = 1.0

REFUSALS = (AegisError, AskError, OSError, StartFailed)


async def until_done(act: Callable[[], Awaitable[T]]) -> T:
    """Return the result of ``act`` once it is not refused."""
    return await _again_after(REFUSALS, act)


async def over_lives(live: Callable[[], Awaitable[T]]) -> T:
    """Return the result of a whole incarnation, started again after a crash or a failed start."""
    return await _again_after((*REFUSALS, InjectedCrash, StartupError), live)


async def _again_after(errors: tuple[type[Exception], ...], act: Callable[[], Awaitable[T]]) -> T:
    for _ in range(TRIES):
        try:
            return await act()
        except errors as error:
            refusal = error
            await trio.sleep(PAUSE_S)
    raise AssertionError(f"refused {TRIES} times, at last: {refusal}")


async def ask_until_answered(ref: Ref[Any], request: Request[T]) -> T:
    """Return the answer of an actor that may crash or refuse meanwhile."""
    return await until_done(lambda: ref.ask(request))
