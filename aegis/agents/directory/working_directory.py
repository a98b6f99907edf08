"""The working directory of a new session."""

from __future__ import annotations

from actors import System
from aegis.errors import NotFound, Unavailable
from aegis.protocol.naming import name_key
from aegis.protocol.workspaces import ListWorkspaces


async def directory_of(workspace: str | None, system: System) -> str | None:
    """Return the directory of a workspace; None without one. Raises ``NotFound``."""
    if workspace is None:
        return None
    service = system.registry.find("service", "workspaces")
    if service is None:
        raise Unavailable("aegis_spawn: workspaces are not available now; try again")
    listed = (await service.ask(ListWorkspaces())).result
    for each in listed:
        if name_key(each.workspace_id) == name_key(workspace):
            directory: str = each.directory
            return directory
    raise NotFound(f"there is no workspace {workspace!r}; workspace_create makes one")
