"""The stream of canvases: its arguments and items. Pure."""

from __future__ import annotations

from typing import Any

import attrs

from aegis.protocol.canvases import CanvasInfo
from aegis.protocol.command import Command


@attrs.frozen(kw_only=True)
class StreamCanvases(Command[Any]):
    """Canvases: all of them first, then each that has changed, with its newest change.

    A slow client gets the newest state of a canvas and none between; ``canvas_history`` has all.
    """


@attrs.frozen(kw_only=True)
class CanvasesItem:
    """All canvases, in the order of their names."""

    canvases: list[CanvasInfo]


@attrs.frozen(kw_only=True)
class CanvasItem:
    """A canvas as it is now."""

    canvas: CanvasInfo
