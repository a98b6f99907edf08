"""The live supervision tree, as it changes."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from aegis.client.kinds import TreeKind, TreeValue
from aegis.client.nouns.noun import Noun
from aegis.client.streams import Stream


class Tree(Noun):
    """The live supervision tree; for the operator."""

    def watch(self) -> AbstractAsyncContextManager[Stream[TreeValue]]:
        """``async with`` it: the whole tree, then each change; behind a ``Gap`` the whole again."""
        session = self._session
        return session.watch(Stream(session, TreeKind(session.handle)))
