"""The verb ``mcp``: MCP over standard input and output."""

from __future__ import annotations

from pathlib import Path

import click

from aegis.cli.grammar.click_options import here, root_before, root_option
from aegis.client.bridge import carry
from aegis.state.root import find_root


@click.command()
@root_option
@click.option("--handle", required=True, metavar="HANDLE", help="Handle of the client.")
def mcp(root: Path | None, handle: str) -> None:
    """Serve MCP on standard input and output.

    For MCP clients that are configured with a command. Messages are forwarded between the client,
    which acts under HANDLE, and the daemon.
    """
    carry(find_root(root or root_before() or here()), handle)
