"""Publishing changes of resources and events of terminals to the actor that serves them."""

from __future__ import annotations

from typing import Any, Literal

from actors import Ref, System
from aegis.protocol.resources import Resource, ResourceChanged
from aegis.protocol.streams import TerminalItem
from aegis.protocol.terminals import TerminalInfo


def publish_change(system: System, resource: Resource) -> None:
    """Notify the server of resources, if one runs, without waiting."""
    hub = system.registry.find("service", "resources")
    if hub is not None:
        hub.tell(ResourceChanged(key=resource.key))


def events_service(system: System) -> Ref[Any] | None:
    """Return the actor that takes events, or None while no client subscribes to events."""
    return system.registry.find("service", "events")


def publish_terminal(
    system: System,
    event: Literal["terminal_opened", "terminal_changed", "terminal_closed"],
    terminal: TerminalInfo,
) -> None:
    """Publish an event of a terminal, if a client subscribes to events."""
    hub = events_service(system)
    if hub is not None:
        hub.tell(TerminalItem(event=event, terminal=terminal))
