"""The styles of a finished command, by a replay of its part of the raw output."""

from __future__ import annotations

import trio.lowlevel

from aegis.client.client import Client
from aegis.client.errors import CommandFailed
from aegis.client.stream_kinds import Chunk, Gap
from aegis.protocol.output_streams import WindowSize
from aegis.tui.model.blocks import CommandBlock, Runs
from aegis.tui.widgets.styles import Replay


async def styles_of(client: Client, terminal: str, block: CommandBlock) -> dict[int, Runs]:
    """Return the styles of the lines of a block; none if its raw output is no longer stored.

    Raises ``ClientError``.
    """
    begin, end = block.raw
    try:
        async with client.terminals.watch(terminal, cursor=begin, end=end) as output:
            replay = Replay(output.start.cols, output.start.rows)
            async for value in output:
                match value:
                    case Chunk():
                        replay.feed(value.data)
                        await trio.lowlevel.checkpoint()
                    case WindowSize():
                        replay.resize(value.cols, value.rows)
                    case Gap():
                        return {}  # a part of it is no longer stored
    except CommandFailed:
        return {}  # none of it is
    return replay.runs(block.output)
