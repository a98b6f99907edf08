"""The longest replies over MCP: the official client takes them, in both eras."""

from __future__ import annotations

import pytest
import trio

from tests.e2e.conftest import Connect, NewTerminal
from tests.e2e.harness import GUARD_S, DaemonProcess

pytestmark = [
    pytest.mark.real,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

QUOTES = r"""head -c 60000 /dev/zero | tr '\0' '"' | fold -w 2"""
"""What grows most when JSON is put into JSON: quotes and line ends."""


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_longest_reply_is_read_by_the_official_client(
    daemon: DaemonProcess, new_terminal: NewTerminal, connect_mcp: Connect, mode: str
) -> None:
    terminal = new_terminal()
    for _ in range(8):
        assert terminal.run(QUOTES)["exit"] == 0
    with trio.fail_after(GUARD_S):
        async with connect_mcp(daemon, mode) as client:
            arguments = {"name": terminal.name, "since_seq": -1}
            read = (await client.call_tool("aegis_term_read", arguments)).structured_content
            assert read is not None
            assert read["more"]
            assert len(read["result"]) >= 2
            arguments = {"name": terminal.name, "cursor": 0, "max_bytes": 1_048_576}
            output = (await client.call_tool("aegis_term_output", arguments)).structured_content
            assert output is not None
            assert len(output["text"]) > 100_000
