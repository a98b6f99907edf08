"""The process that serves one editor on its standard streams."""

from __future__ import annotations

import os
import stat

import trio

from aegis.acp.agent import EditorAgent, EditorSettings
from aegis.acp.wire import EditorWire


def run_acp(settings: EditorSettings) -> int:
    """Serve the editor until it closes standard input; return the exit code."""
    # Output of other code must not get between the frames.
    output = os.dup(1)
    os.dup2(2, 1)
    trio.run(_serve, settings, output)
    return 0


def can_serve() -> bool:
    """Return whether both standard streams can be waited for: an editor gives pipes."""
    return all(_is_waitable(os.fstat(each).st_mode) for each in (0, 1))


def _is_waitable(mode: int) -> bool:
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


async def _serve(settings: EditorSettings, output: int) -> None:
    try:
        async with trio.open_nursery() as writing:
            source, sink = trio.lowlevel.FdStream(0), trio.lowlevel.FdStream(output)
            wire = EditorWire(source, sink)
            writing.start_soon(wire.write)
            async with trio.open_nursery() as nursery:
                await EditorAgent(settings, wire, nursery).serve()
                nursery.cancel_scope.cancel()
            await wire.drain()
            writing.cancel_scope.cancel()
    except* trio.BrokenResourceError:
        pass  # the editor has ended
