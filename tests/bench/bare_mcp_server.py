"""An MCP server of the SDK alone, as its documentation shows one: a tool that does nothing.

What a call costs here is what the SDK and its own HTTP server cost. It prints its port, and serves
until it is killed.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

TOOL = "empty"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}


def serve() -> None:
    """Serve on a free port."""
    import mcp_types as types
    import uvicorn
    from mcp.server.lowlevel.server import Server

    async def list_tools(*_: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name=TOOL, input_schema=SCHEMA)])

    async def call_tool(*_: object) -> types.CallToolResult:
        content = [types.TextContent(type="text", text='{"ok":true}')]
        return types.CallToolResult(content=[*content], structured_content={"ok": True})

    server: Server[Any] = Server("bare", on_list_tools=list_tools, on_call_tool=call_tool)
    config = uvicorn.Config(server.streamable_http_app(), log_level="error")
    # With its protocol named, asyncio sets TCP_NODELAY on what it accepts, as for its own sockets.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    uvicorn.Server(config).run([listening])


@contextmanager
def bare_server() -> Iterator[str]:
    """The address of such a server in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.bare_mcp_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


if __name__ == "__main__":
    serve()
