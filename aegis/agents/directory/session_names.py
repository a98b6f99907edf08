"""``SessionNames``: the addresses and the shown handles of sessions. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from aegis.protocol.naming import name_key


class SessionNames:
    """The names of all sessions of a root; the roster keeps it, the servers ask it.

    The address of a session is its first handle, which never changes: inboxes, subscriptions, keys
    and the suppression of a session's own echo use it. A handle or an alias of a session resolves
    to the address where a command arrives.
    """

    def __init__(self) -> None:
        self._addresses: dict[str, str] = {}
        self._shown: dict[str, str] = {}

    def put(self, address: str, handle: str) -> None:
        """Note that the session at ``address`` is now called ``handle``."""
        self._addresses[name_key(handle)] = address
        self._shown[name_key(address)] = handle

    def drop(self, address: str, handles: Iterable[str]) -> None:
        """Forget a session and its ``handles``."""
        self._shown.pop(name_key(address), None)
        for handle in handles:
            self._addresses.pop(name_key(handle), None)

    def replace(self, names: SessionNames) -> None:
        """Take over all of ``names`` in place of these."""
        self._addresses, self._shown = names._addresses, names._shown

    def address_of(self, handle: str) -> str:
        """Return the address of the session with this handle or alias; else ``handle`` itself."""
        return self._addresses.get(name_key(handle), handle)

    def shown(self, address: str) -> str:
        """Return the current handle of the session at ``address``; else ``address`` itself."""
        return self._shown.get(name_key(address), address)
