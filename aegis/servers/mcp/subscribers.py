"""Who watches which resource, and of which changes it was not told yet.

A change says "read it again": however many come before somebody is told, it is told once. So a
client that reads slowly, or never, costs one entry for each address that it watches.
"""

from __future__ import annotations

from collections.abc import Iterable

import trio

from aegis.protocol.resources import Resource, resource_at


class Subscriber:
    """What one client watches, by addresses as it spelled them."""

    def __init__(self) -> None:
        self._uris: dict[str, dict[str, None]] = {}
        self._changed: dict[str, None] = {}
        self._news = trio.Event()

    def __len__(self) -> int:
        """How many addresses it watches."""
        return sum(map(len, self._uris.values()))

    @property
    def keys(self) -> Iterable[str]:
        """The resources that it watches."""
        return list(self._uris)

    def add(self, resource: Resource, uri: str) -> None:
        """Subscriber ``resource``, written as ``uri``."""
        self._uris.setdefault(resource.key, {})[uri] = None

    def remove(self, uri: str) -> None:
        """Unsubscribe from ``uri``. Raises ``NotFound`` for an invalid address."""
        key = resource_at(uri).key
        spelled = self._uris.get(key, {})
        spelled.pop(uri, None)
        self._changed.pop(uri, None)
        if not spelled:
            self._uris.pop(key, None)

    def changed(self, key: str) -> None:
        """The resource of this key has changed."""
        self._changed |= self._uris.get(key, {})
        if self._changed:
            self._news.set()

    def changed_all(self) -> None:
        """Whatever it was told may have been lost on the way."""
        for key in self.keys:
            self.changed(key)

    async def wait(self) -> None:
        """Wait until something changed of which nobody was told."""
        while not self._changed:
            self._news = trio.Event()
            await self._news.wait()

    def take(self) -> list[str]:
        """What has changed, by its addresses, in the order of the first changes."""
        changed, self._changed = list(self._changed), {}
        return changed


class Subscribers:
    """All watches, by what they watch."""

    def __init__(self) -> None:
        self._by_key: dict[str, dict[Subscriber, None]] = {}

    def __len__(self) -> int:
        """How many resources are watched."""
        return len(self._by_key)

    def add(self, watch: Subscriber, resource: Resource, uri: str) -> None:
        """``watch`` hears of the changes of ``resource`` from now on."""
        watch.add(resource, uri)
        self._by_key.setdefault(resource.key, {})[watch] = None

    def remove(self, watch: Subscriber, uri: str) -> None:
        """``watch`` hears of ``uri`` no more. Raises ``NotFound`` for what is no address."""
        key = resource_at(uri).key
        watch.remove(uri)
        if key not in watch.keys:
            self._drop(watch, key)

    def forget(self, watch: Subscriber) -> None:
        """``watch`` hears of nothing any more."""
        for key in watch.keys:
            self._drop(watch, key)

    def changed(self, key: str) -> None:
        """The resource of this key has changed: whoever watches it will be told."""
        for watch in self._by_key.get(key, {}):
            watch.changed(key)

    def _drop(self, watch: Subscriber, key: str) -> None:
        watching = self._by_key.get(key, {})
        watching.pop(watch, None)
        if not watching:
            self._by_key.pop(key, None)
