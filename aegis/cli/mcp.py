"""``mcp``: MCP over standard input and output, for clients that are configured with a command."""

from __future__ import annotations

from pathlib import Path

import click

from aegis.cli.grammar.click_options import here, root_before, root_option
from aegis.client.bridge import carry
from aegis.state.root import find_root


@click.command()
@root_option
@click.option(
    "--handle", required=True, metavar="HANDLE", help="Under which handle the client acts."
)
def mcp(root: Path | None, handle: str) -> None:
    """Speak MCP on standard input and output, as the handle HANDLE.

    For MCP clients that start a command; it carries what they say to the daemon and back.
    """
    carry(find_root(root or root_before() or here()), handle)
