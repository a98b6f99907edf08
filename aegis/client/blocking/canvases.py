"""Canvases, for the blocking client."""

from __future__ import annotations

from aegis.client.blocking.noun import BlockingNoun
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


class Canvases(BlockingNoun):
    """Markdown files that several write, section by section."""

    def open(self, name: str, *, file: str | None = None) -> CanvasInfo:
        """Open a canvas; the first call names its ``file``, relative to the root."""
        return self._call(OpenCanvas, name=name, file=file)

    def read(self, name: str, *, section: str | None = None) -> CanvasText:
        """Return the sections of a canvas, or one, with their revs."""
        return self._call(ReadCanvas, name=name, section=section)

    def write(
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
        return self._call(
            WriteSection, name=name, section=section, content=content, if_rev=if_rev, force=force
        )

    def append(self, name: str, section: str, text: str) -> CanvasWritten:
        """Append lines to a section; durable on return."""
        return self._call(AppendToSection, name=name, section=section, text=text)

    def subscribe(self, name: str, *, sections: SectionNames | None = None) -> CanvasSubscription:
        """Have the inbox of the handle woken by changes of others, of ``sections`` or of all."""
        return self._call(SubscribeCanvas, name=name, sections=sections)

    def unsubscribe(self, name: str) -> CanvasSubscription:
        """End the subscription of the handle."""
        return self._call(UnsubscribeCanvas, name=name)

    def history(
        self,
        name: str,
        *,
        section: str | None = None,
        limit: int = 20,
        before: int | None = None,
    ) -> CanvasHistory:
        """Return the newest changes of a canvas, or of one section, the newest first."""
        return self._call(GetCanvasHistory, name=name, section=section, limit=limit, before=before)

    def list(self) -> CanvasList:
        """List the canvases with their files and sections."""
        return self._call(ListCanvases)
