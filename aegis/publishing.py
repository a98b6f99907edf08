"""Telling whoever serves resources and events that something has changed."""

from __future__ import annotations

from typing import Any, Literal

from actors import Ref, System
from aegis.protocol.resources import Resource, ResourceChanged
from aegis.protocol.streams import TerminalItem
from aegis.protocol.terminals import TerminalInfo


def publish_change(system: System, resource: Resource) -> None:
    """Say it without waiting; where nothing serves resources, nobody watches them."""
    hub = system.registry.find("service", "resources")
    if hub is not None:
        hub.tell(ResourceChanged(key=resource.key))


def events_service(system: System) -> Ref[Any] | None:
    """Who is to be told of events, while there is any client that wants to know; else None."""
    return system.registry.find("service", "events")


def publish_terminal(
    system: System,
    event: Literal["terminal_opened", "terminal_changed", "terminal_closed"],
    terminal: TerminalInfo,
) -> None:
    """Say what became of a terminal, if anybody wants to know."""
    hub = events_service(system)
    if hub is not None:
        hub.tell(TerminalItem(event=event, terminal=terminal))
