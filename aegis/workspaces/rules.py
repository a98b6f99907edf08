"""Which workspaces there are, and which terminals are their shells. Pure.

What ``workspaces.json`` holds, as the fields of a note:

    {"next": 3, "workspaces": [{"name": "demo", "place": "demo", "shells": ["demo.1"]}]}

``place`` is its directory, relative to the root if it is below it; an older version wrote the
absolute ``directory`` instead.

``next`` numbers shells that were given no name: over all workspaces, and never twice, so that a
new shell is never taken for one that was closed.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from aegis.errors import AlreadyExists, NotFound, Unavailable
from aegis.names import did_you_mean
from aegis.path_text import path_after_moves, path_of_stored, stored_path, text_of_path
from aegis.protocol.naming import is_name, name_key
from aegis.protocol.workspaces import shell_id

MAX_WORKSPACES = 256
MAX_SHELLS = 64
"""Shells of one workspace."""


@attrs.frozen(kw_only=True)
class Workspace:
    """A named directory; ``shells`` are the names of terminals, in the order of their opening."""

    name: str
    directory: str
    shells: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class WorkspacesByName:
    """All workspaces of a root, by the key of their name; never changed in place."""

    next: int = 1
    by_key: Mapping[str, Workspace] = attrs.field(factory=dict)

    def find(self, name: str) -> Workspace:
        """Return the workspace with this name, ignoring case. Raises ``NotFound``."""
        found = self.by_key.get(name_key(name))
        if found is None:
            known = [each.name for each in self.by_key.values()]
            there = f"there are: {', '.join(sorted(known)[:20]) or 'none'};"
            hint = did_you_mean(name, known, there)
            raise NotFound(f"there is no workspace {name!r}; {hint} workspace_create makes one")
        return found

    def of_shell(self, shell: str) -> Workspace:
        """The workspace whose shell this is. Raises ``NotFound``."""
        for workspace in self.by_key.values():
            if any(name_key(each) == name_key(shell) for each in workspace.shells):
                return workspace
        raise NotFound(
            f"there is no shell {shell!r} in any workspace; shell_open opens one, and "
            "workspace_list names them"
        )

    def created(self, name: str, directory: str) -> WorkspacesByName:
        """With one more. Raises ``AlreadyExists``, or ``Unavailable`` when there are too many."""
        if name_key(name) in self.by_key:
            raise AlreadyExists(f"there is a workspace {self.find(name).name!r} already; use it")
        if len(self.by_key) >= MAX_WORKSPACES:
            raise Unavailable(f"there are {MAX_WORKSPACES} workspaces; workspace_delete one first")
        return self._with(Workspace(name=name, directory=directory))

    def deleted(self, name: str) -> WorkspacesByName:
        """Without this one."""
        kept = {key: each for key, each in self.by_key.items() if key != name_key(name)}
        return attrs.evolve(self, by_key=kept)

    def opening(self, workspace: str, name: str | None) -> tuple[WorkspacesByName, str]:
        """With a shell more in ``workspace``, and its id; without a name it gets a number.

        Raises ``NotFound``, or ``Unavailable`` when there are too many.
        """
        found = self.find(workspace)
        shell = shell_id(found.name, str(self.next) if name is None else name)
        others = tuple(each for each in found.shells if name_key(each) != name_key(shell))
        if len(others) >= MAX_SHELLS:
            raise Unavailable(
                f"workspace {found.name!r} has {MAX_SHELLS} shells; shell_close one first"
            )
        grown = self._with(attrs.evolve(found, shells=(*others, shell)))
        return attrs.evolve(grown, next=self.next + (name is None)), shell

    def closed(self, shell: str) -> WorkspacesByName:
        """Without this shell."""
        found = self.of_shell(shell)
        kept = tuple(each for each in found.shells if name_key(each) != name_key(shell))
        return self._with(attrs.evolve(found, shells=kept))

    def _with(self, workspace: Workspace) -> WorkspacesByName:
        return attrs.evolve(self, by_key={**self.by_key, name_key(workspace.name): workspace})

    def stored(self, root: str = "") -> dict[str, object]:
        """The fields of the note."""
        return {
            "next": self.next,
            "workspaces": [
                {
                    "name": each.name,
                    "place": stored_path(each.directory, root),
                    "shells": list(each.shells),
                }
                for each in self.by_key.values()
            ],
        }


def restored(
    fields: Mapping[str, object] | None, root: str = "", earlier: tuple[str, ...] = ()
) -> tuple[WorkspacesByName, int]:
    """Return the workspaces in a note of ``root``, and the number of its invalid entries.

    ``earlier`` are the earlier paths of the root.
    """
    if fields is None:
        return WorkspacesByName(), 0
    number, entries = fields.get("next"), fields.get("workspaces")
    if type(number) is not int or number < 1 or not isinstance(entries, list):
        return WorkspacesByName(), 1
    found = [_workspace(entry, root, earlier) for entry in entries]
    good = {name_key(each.name): each for each in found if each is not None}
    return WorkspacesByName(next=number, by_key=good), len(entries) - len(good)


def _workspace(entry: object, root: str, earlier: tuple[str, ...]) -> Workspace | None:
    match entry:
        case {"place": str(place)}:
            directory = path_of_stored(place, root)
        case {"directory": str(older)}:
            directory = path_after_moves(text_of_path(older), root, earlier)
        case _:
            return None
    match entry:
        case {"name": str(name), "shells": list(shells)} if is_name(name) and all(
            isinstance(each, str) and is_name(each) for each in shells
        ):
            return Workspace(name=name, directory=directory, shells=tuple(shells))
        case _:
            return None
