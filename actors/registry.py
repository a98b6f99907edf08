"""Names: where to find an actor by what it is, not by where it sits."""

from __future__ import annotations

from typing import Any, Protocol

from actors.errors import MisuseError
from actors.ref import Ref


class RegistryListener(Protocol):
    """Who wants to know of every name."""

    def registered(self, group: str, name: str, ref: Ref[Any]) -> None:
        """``ref`` has this name from now on."""

    def unregistered(self, group: str, name: str, ref: Ref[Any]) -> None:
        """``ref`` has it no more."""


class Registry:
    """Addresses by group and name. An entry lasts until its actor stops for good."""

    def __init__(self) -> None:
        self.listeners: list[RegistryListener] = []
        self._groups: dict[str, dict[str, Ref[Any]]] = {}
        self._entries: dict[Ref[Any], set[tuple[str, str]]] = {}

    def add(self, group: str, name: str, ref: Ref[Any]) -> None:
        """Register ``ref``; again by the same address changes nothing.

        Raises ``MisuseError`` if another live actor has the name.
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
        """The address registered as ``name``, or None."""
        return self._groups.get(group, {}).get(name)

    def names(self, group: str) -> list[str]:
        """All names of a group, sorted."""
        return sorted(self._groups.get(group, {}))

    def entries(self) -> list[tuple[str, str, Ref[Any]]]:
        """Every group, name and address."""
        return [
            (group, name, ref)
            for group, names in self._groups.items()
            for name, ref in names.items()
        ]

    def remove(self, ref: Ref[Any]) -> None:
        """Forget every name of ``ref``."""
        for group, name in self._entries.pop(ref, ()):
            names = self._groups[group]
            if names.get(name) == ref:
                del names[name]
            if not names:
                del self._groups[group]
            for listener in self.listeners:
                listener.unregistered(group, name, ref)
