"""Callbacks of click that parse ``HOST:PORT``, and names of hosts."""

from __future__ import annotations

import click

from aegis.settings import NodesAddress, host_names, nodes_address


def listen_address(
    _: click.Context, param: click.Parameter, text: str | None
) -> NodesAddress | None:
    """Parse the address to listen on; None if not given. Raises ``click.BadParameter``."""
    return None if text is None else _address(param, text)


def join_address(_: click.Context, param: click.Parameter, text: str) -> NodesAddress:
    """Parse the address to join, with a port other than 0. Raises ``click.BadParameter``."""
    address = _address(param, text)
    if not address.port:
        raise click.BadParameter("port 0 cannot be connected to", param=param)
    return address


def page_names(_: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Parse further names of the daemon. Raises ``click.BadParameter``."""
    try:
        return host_names(texts)
    except ValueError as error:
        raise click.BadParameter(str(error), param=param) from None


def _address(param: click.Parameter, text: str) -> NodesAddress:
    try:
        return nodes_address(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r}: it {error}", param=param) from None
