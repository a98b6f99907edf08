"""The working directory of a new session."""

from __future__ import annotations

import os

from actors import System
from aegis.agents.directory.project_files import leads_out
from aegis.errors import InvalidRequest, NotFound, Unavailable
from aegis.limits import in_thread_or_here
from aegis.path_text import path_of_text, text_of_path
from aegis.protocol.naming import name_key
from aegis.protocol.workspaces import ListWorkspaces


async def place_of(workspace: str | None, directory: str | None, system: System, root: str) -> str:
    """Return where a session works: in a workspace, in a directory of the root, or in the root.

    ``directory`` may be relative to the root. Raises ``AegisError``.
    """
    if directory is None:
        return await directory_of(workspace, system) or root
    path = await in_thread_or_here(_inside, directory, root)
    if workspace is not None:
        raise InvalidRequest("agent launch: give a workspace or a directory, not both")
    return path


def _inside(directory: str, root: str) -> str:
    top = path_of_text(root)
    try:
        path = os.path.normpath(os.path.join(top, path_of_text(directory)))  # noqa: PTH118
        is_outside = leads_out(top, path)
        is_directory = os.path.isdir(path)  # noqa: PTH112
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"agent launch: {directory!r} cannot be used: {error}") from None
    if is_outside:
        raise InvalidRequest(
            f"agent launch: {directory!r} is not below the root {root}; make a workspace of it "
            "with workspace_create"
        )
    if not is_directory:
        raise NotFound(f"agent launch: {directory!r} is no directory")
    return text_of_path(path)


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
