"""The worker's side: run one function, with a link to the parent."""

from __future__ import annotations

import importlib
import os
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from actors.errors import LinkLost
from actors.nodes.compat.subactor import TractorStream, takes_context
from actors.nodes.links.heartbeat import Beat
from actors.nodes.links.link import Link
from actors.nodes.links.wire import TEXT_LIMIT, OutcomeFrame, OutcomeKind

EXIT_ORPHANED = 70
"""The exit code of a worker that has lost its parent (``EX_SOFTWARE``)."""

Entry = Callable[[Link, bytes], Awaitable[None]]


@takes_context
async def converse(
    ctx: Any, entry: str, argument: bytes, every_s: float, lost_after_s: float, stop_within_s: float
) -> None:
    """Run ``entry`` (``module:function``) until it returns or is stopped.

    Called by the parent, which first gets an empty text, or the reason why ``entry`` is unusable.
    """
    try:
        function = _function(entry)
    except Exception as error:
        await ctx.started(f"{entry} cannot be run: {type(error).__name__}: {error}"[:TEXT_LIMIT])
        return
    await ctx.started("")
    async with ctx.open_stream() as stream:
        link = Link(TractorStream(stream), Beat(every_s, lost_after_s))
        await serve(link, function, argument, stop_within_s)


async def serve(link: Link, function: Entry, argument: bytes, stop_within_s: float) -> None:
    """Run ``function`` with ``link`` and send its outcome.

    If the parent is lost, the function is cancelled as for a stop, and the process ends.
    """
    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_carry, link, scope, stop_within_s)
        nursery.start_soon(_cancel_when_asked, link, scope)
        outcome = await _outcome(function, link, argument, scope)
        await link.finish(outcome)
        nursery.cancel_scope.cancel()
    if link.is_lost:
        os._exit(EXIT_ORPHANED)  # there is no parent to end this process


def _function(entry: str) -> Entry:
    module, _, name = entry.partition(":")
    function: Entry = getattr(importlib.import_module(module), name)
    return function


async def _outcome(
    function: Entry, link: Link, argument: bytes, scope: trio.CancelScope
) -> OutcomeFrame:
    try:
        with scope:
            await function(link, argument)
    except Exception:
        return OutcomeFrame(OutcomeKind.CRASHED, traceback.format_exc()[-TEXT_LIMIT:])
    return OutcomeFrame(OutcomeKind.STOPPED if scope.cancelled_caught else OutcomeKind.DONE)


async def _cancel_when_asked(link: Link, scope: trio.CancelScope) -> None:
    await link.stop_asked.wait()
    scope.cancel()


async def _carry(link: Link, scope: trio.CancelScope, stop_within_s: float) -> None:
    try:
        await link.run()
    except LinkLost:
        scope.cancel()
        await trio.sleep(stop_within_s)
        os._exit(EXIT_ORPHANED)
