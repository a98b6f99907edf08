"""``Registry``: addresses of actors by group and name, independent of their place in the tree."""

from __future__ import annotations

from typing import Any, Protocol

from actors.errors import MisuseError
from actors.ref import Ref


class RegistryListener(Protocol):
    """A receiver of changes of the registry."""

    def registered(self, group: str, name: str, ref: Ref[Any]) -> None:
        """Note that ``ref`` was registered."""

    def unregistered(self, group: str, name: str, ref: Ref[Any]) -> None:
        """Note that ``ref`` was removed."""


class Registry:
    """The addresses of a system's actors by group and name.

    An entry lasts until its actor stops for good.
    """

    def __init__(self) -> None:
        self.listeners: list[RegistryListener] = []
        self._groups: dict[str, dict[str, Ref[Any]]] = {}
        self._entries: dict[Ref[Any], set[tuple[str, str]]] = {}

    def add(self, group: str, name: str, ref: Ref[Any]) -> None:
        """Register ``ref``. Idempotent.

        Raises ``MisuseError`` if another actor, which is not stopped for good, has the name.
        """
        names = self._groups.setdefault(group, {})
        known = names.get(name)
        if known is not None and known != ref and not known.is_stopped:
            raise MisuseError(f"{group} {name!r} is {known.path}; {ref.path} cannot be it too")
        names[name] = ref
        self._entries.setdefault(ref, set()).add((group, name))
        for listener in self.listeners:
            listener.registered(group, name, ref)

    def find(self, group: str, name: str) -> Ref[Any] | None:
        """Return the address registered as ``name``, or None."""
        return self._groups.get(group, {}).get(name)

    def names(self, group: str) -> list[str]:
        """Return all names of a group, sorted."""
        return sorted(self._groups.get(group, {}))

    def entries(self) -> list[tuple[str, str, Ref[Any]]]:
        """Return every entry: group, name and address."""
        return [
            (group, name, ref)
            for group, names in self._groups.items()
            for name, ref in names.items()
        ]

    def remove(self, ref: Ref[Any]) -> None:
        """Remove every name of ``ref``."""
        for group, name in self._entries.pop(ref, ()):
            names = self._groups[group]
            if names.get(name) == ref:
                del names[name]
            if not names:
                del self._groups[group]
            for listener in self.listeners:
                listener.unregistered(group, name, ref)
