"""``HOST:PORT`` as an argument of the command line."""

from __future__ import annotations

import click

from aegis.settings import NodesAddress, nodes_address


def listen_address(
    _: click.Context, param: click.Parameter, text: str | None
) -> NodesAddress | None:
    """The address that was given, if one was; anything else is a usage error."""
    return None if text is None else _address(param, text)


def join_address(_: click.Context, param: click.Parameter, text: str) -> NodesAddress:
    """The address that was given; anything else is a usage error, and so is port 0."""
    address = _address(param, text)
    if not address.port:
        raise click.BadParameter("port 0 is no port to connect to", param=param)
    return address


def _address(param: click.Parameter, text: str) -> NodesAddress:
    try:
        return nodes_address(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r}: it {error}", param=param) from None
