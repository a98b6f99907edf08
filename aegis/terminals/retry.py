"""Requests that are repeated when the actor crashes while it handles them."""

from __future__ import annotations

from typing import Any, TypeVar

import trio

from actors import ActorCrashed, Ref, Request

T = TypeVar("T")


async def ask_across_restarts(ref: Ref[Any], request: Request[T], *, timeout: float) -> T:
    """Return the answer of this incarnation or of a later one, within ``timeout`` seconds.

    For idempotent requests only. Raises what ``Ref.ask`` raises, but never ``ActorCrashed``: an
    actor that is not restarted raises ``ActorStopped``.
    """
    deadline = trio.current_time() + timeout
    while True:
        try:
            return await ref.ask(request, timeout=max(0.0, deadline - trio.current_time()))
        except ActorCrashed:
            continue
