"""Messages between the actors of canvases. Pure."""

from __future__ import annotations

import attrs

from actors.messages import Request
from aegis.journal.file_content import FilePlace
from aegis.protocol.canvases import CanvasInfo


@attrs.frozen(kw_only=True)
class CanvasReport:
    """The state of a canvas, for lists and streams."""

    info: CanvasInfo


@attrs.frozen(kw_only=True)
class SendReport:
    """Ask a canvas for its report, and for a look at its file."""


@attrs.frozen(kw_only=True)
class LookNow:
    """The file of a canvas may have changed. ``is_lost``: its directory is not watched any more."""

    is_lost: bool = False


@attrs.frozen(kw_only=True)
class WatchFile(Request[str]):
    """Report changes of its file to the canvas ``name``. Answered with a problem, empty if none."""

    name: str
    place: FilePlace
