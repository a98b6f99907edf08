"""The subscribers of MCP resources, and the changes that each was not notified of yet.

A notification says "read the resource again", so several changes before it is sent are one. A
client that reads slowly, or never, costs one entry for each URI that it subscribed to.
"""

from __future__ import annotations

from collections.abc import Iterable

import trio

from aegis.protocol.resources import Resource, resource_at


class ResourceSubscriptions:
    """The subscriptions of one client, by URI as the client spelled it."""

    def __init__(self) -> None:
        self._uris: dict[str, dict[str, None]] = {}
        self._changed: dict[str, None] = {}
        self._news = trio.Event()

    def __len__(self) -> int:
        """The number of subscribed URIs."""
        return sum(map(len, self._uris.values()))

    @property
    def keys(self) -> Iterable[str]:
        """The keys of the subscribed resources."""
        return list(self._uris)

    def add(self, resource: Resource, uri: str) -> None:
        """Subscribe to ``resource``, spelled ``uri``."""
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
        """Note a change of the resource with this key."""
        self._changed |= self._uris.get(key, {})
        if self._changed:
            self._news.set()

    def changed_all(self) -> None:
        """Note a change of each resource: earlier notifications may have been lost."""
        for key in self.keys:
            self.changed(key)

    async def wait(self) -> None:
        """Wait until there is a change without a notification."""
        while not self._changed:
            self._news = trio.Event()
            await self._news.wait()

    def take(self) -> list[str]:
        """Return and clear the URIs of changed resources, in the order of the first changes."""
        changed, self._changed = list(self._changed), {}
        return changed


class Subscribers:
    """All subscribers, by the key of the resource."""

    def __init__(self) -> None:
        self._by_key: dict[str, dict[ResourceSubscriptions, None]] = {}

    def __len__(self) -> int:
        """The number of resources with a subscriber."""
        return len(self._by_key)

    def add(self, watch: ResourceSubscriptions, resource: Resource, uri: str) -> None:
        """Subscribe ``watch`` to ``resource``, spelled ``uri``."""
        watch.add(resource, uri)
        self._by_key.setdefault(resource.key, {})[watch] = None

    def remove(self, watch: ResourceSubscriptions, uri: str) -> None:
        """Unsubscribe ``watch`` from ``uri``. Raises ``NotFound`` for an invalid address."""
        key = resource_at(uri).key
        watch.remove(uri)
        if key not in watch.keys:
            self._drop(watch, key)

    def remove_all(self, watch: ResourceSubscriptions) -> None:
        """Remove all subscriptions of ``watch``."""
        for key in watch.keys:
            self._drop(watch, key)

    def changed(self, key: str) -> None:
        """Note a change of the resource with this key, for each of its subscribers."""
        for watch in self._by_key.get(key, {}):
            watch.changed(key)

    def _drop(self, watch: ResourceSubscriptions, key: str) -> None:
        watching = self._by_key.get(key, {})
        watching.pop(watch, None)
        if not watching:
            self._by_key.pop(key, None)
