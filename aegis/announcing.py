"""Telling whoever serves resources that one of them has changed."""

from __future__ import annotations

from actors import System
from aegis.protocol.resources import Resource, ResourceChanged


def announce(system: System, resource: Resource) -> None:
    """Say it without waiting; where nothing serves resources, nobody watches them."""
    hub = system.registry.find("service", "resources")
    if hub is not None:
        hub.tell(ResourceChanged(key=resource.key))
