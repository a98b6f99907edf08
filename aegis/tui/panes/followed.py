"""The base of the panes that have a stream: of a terminal, a session or a list."""

from __future__ import annotations

from functools import partial

import trio

from aegis.client.client import Client
from aegis.client.errors import ClientError, CommandFailed
from aegis.tui.panes.pane import Desk, Pane


class FollowedPane(Pane):
    """A pane whose stream is open from ``follow`` to ``unfollow``, or to the end of its subject.

    The stream is opened again after a lost connection, and after a refusal that ``passes``.
    """

    passes = frozenset({"unavailable"})
    """Codes of refusals after which the stream is opened again."""

    retry_s = 0.3
    """Seconds until then."""

    def __init__(self, desk: Desk, key: str) -> None:
        super().__init__(desk, key)
        self._scope: trio.CancelScope | None = None

    async def show_stream(self, client: Client) -> None:
        """Show the stream from its beginning; return when its subject was closed."""
        raise NotImplementedError

    @property
    def is_followed(self) -> bool:  # type: ignore[override]
        """Whether the stream is open, or is opened again."""
        return self._scope is not None

    def follow(self) -> None:
        """Open the stream, unless it is open."""
        if self._scope is None:
            self._scope = trio.CancelScope()
            # Not the scope that is set when the call begins: it may be another one.
            self.desk.link.call(partial(self._follow, self._scope), what=f"{self.title}: ")

    def unfollow(self) -> None:
        """Close the stream; the pane keeps what it shows."""
        if self._scope is not None:
            self._scope.cancel()
            self._scope = None

    async def _follow(self, scope: trio.CancelScope, client: Client) -> None:
        try:
            with scope:
                while True:
                    await client.wait_connected(True)
                    if not await self.is_lost(client):
                        break
                    await trio.sleep(self.retry_s)
        finally:
            if self._scope is scope:
                self._scope = None

    async def is_lost(self, client: Client) -> bool:
        """Show the stream once; return whether it must be opened again."""
        try:
            await self.show_stream(client)
        except CommandFailed as error:
            if error.code != "not_found" and error.code not in self.passes:
                raise
            return error.code != "not_found"
        except ClientError:
            return True  # the daemon is gone; another may start
        return False
