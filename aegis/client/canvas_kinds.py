"""The kind of the stream of canvases. Pure."""

from __future__ import annotations

from typing import Any

from aegis.client.stream_kinds import Gap, Kind, structured
from aegis.protocol.canvas_streams import CanvasesItem, CanvasItem

CanvasesValue = CanvasesItem | CanvasItem | Gap


class CanvasesKind(Kind[CanvasesValue]):
    """The states of canvases: all of them, then changes."""

    stream = "canvases"

    def item(self, document: dict[str, Any]) -> CanvasesValue:
        """Return all canvases, or one."""
        if "canvases" in document:
            return structured(CanvasesItem, document)
        return structured(CanvasItem, document)
