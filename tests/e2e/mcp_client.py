"""The official MCP client, on Trio, for a daemon of the harness: by its URL and by a command."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp import Client, StdioServerParameters

from tests.chaos.real.sessions import connect_mcp
from tests.e2e.harness import DaemonProcess

connect_mcp_to = connect_mcp


def command_of(daemon: DaemonProcess, handle: str) -> StdioServerParameters:
    """What a client that starts its servers is configured with."""
    words = [*daemon.program, "mcp", "--handle", handle, "--root", str(daemon.root)]
    return StdioServerParameters(command=words[0], args=words[1:], env=daemon.environment)


@asynccontextmanager
async def connect_command(daemon: DaemonProcess, mode: str, handle: str) -> AsyncIterator[Client]:
    """A client of the era ``mode`` that starts ``aegis-actors mcp`` and speaks to it."""
    async with Client(command_of(daemon, handle), mode=mode) as client:
        yield client


CONNECTIONS = {"url": connect_mcp_to, "command": connect_command}
"""The ways in which an agent is connected."""
