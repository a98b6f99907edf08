"""Canvases."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from aegis.client.nouns.noun import Noun
from aegis.client.stream_kinds import Gap, StatesKind
from aegis.client.streams import Stream
from aegis.protocol.canvas_streams import CanvasesItem, CanvasItem
from aegis.protocol.canvases import (
    AppendToSection,
    CanvasHistory,
    CanvasInfo,
    CanvasList,
    CanvasSubscription,
    CanvasText,
    CanvasWritten,
    GetCanvasHistory,
    ListCanvases,
    OpenCanvas,
    ReadCanvas,
    SubscribeCanvas,
    UnsubscribeCanvas,
    WriteSection,
)

SectionNames = list[str]


CanvasesValue = CanvasesItem | CanvasItem | Gap


class Canvases(Noun):
    """Markdown files that several write, section by section."""

    async def open(self, name: str, *, file: str | None = None) -> CanvasInfo:
        """Open a canvas; the first call names its ``file``, relative to the root."""
        return await self._call(OpenCanvas, name=name, file=file)

    async def read(self, name: str, *, section: str | None = None) -> CanvasText:
        """Return the sections of a canvas, or one, with their revs."""
        return await self._call(ReadCanvas, name=name, section=section)

    async def write(
        self,
        name: str,
        section: str,
        content: str,
        *,
        if_rev: int | None = None,
        force: bool = False,
    ) -> CanvasWritten:
        """Write a section; durable on return. Replacing one needs the ``if_rev`` that was read.

        ``force`` replaces it, whichever revision it has.
        """
        return await self._call(
            WriteSection, name=name, section=section, content=content, if_rev=if_rev, force=force
        )

    async def append(self, name: str, section: str, text: str) -> CanvasWritten:
        """Append lines to a section; durable on return."""
        return await self._call(AppendToSection, name=name, section=section, text=text)

    async def subscribe(
        self, name: str, *, sections: SectionNames | None = None
    ) -> CanvasSubscription:
        """Have the inbox of the handle woken by changes of others, of ``sections`` or of all."""
        return await self._call(SubscribeCanvas, name=name, sections=sections)

    async def unsubscribe(self, name: str) -> CanvasSubscription:
        """End the subscription of the handle."""
        return await self._call(UnsubscribeCanvas, name=name)

    async def history(
        self,
        name: str,
        *,
        section: str | None = None,
        limit: int = 20,
        before: int | None = None,
    ) -> CanvasHistory:
        """Return the newest changes of a canvas, or of one section, the newest first."""
        return await self._call(
            GetCanvasHistory, name=name, section=section, limit=limit, before=before
        )

    async def list(self) -> CanvasList:
        """List the canvases with their files and sections."""
        return await self._call(ListCanvases)

    def follow(self) -> AbstractAsyncContextManager[Stream[CanvasesValue]]:
        """Open the stream of canvases, with ``async with``: all of them, then changes."""
        session = self._session
        kind = StatesKind[CanvasesValue](session.handle, "canvases", CanvasesItem, CanvasItem)
        return session.watch(Stream(session, kind))
