"""Asking an actor that may crash with the question: its next life is asked then."""

from __future__ import annotations

from typing import Any, TypeVar

import trio

from actors import ActorCrashed, Ref, Request

T = TypeVar("T")


async def ask_again(ref: Ref[Any], request: Request[T], *, timeout: float) -> T:
    """The answer of this life or of one that follows, within ``timeout`` seconds.

    For requests that do no harm when they are carried out twice. Raises what ``Ref.ask`` raises,
    but never ``ActorCrashed``: where no life follows it is ``ActorStopped``.
    """
    deadline = trio.current_time() + timeout
    while True:
        try:
            return await ref.ask(request, timeout=max(0.0, deadline - trio.current_time()))
        except ActorCrashed:
            continue
