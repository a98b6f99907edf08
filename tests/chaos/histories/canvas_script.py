"""The steps of a script on canvases. Pure."""

from __future__ import annotations

from typing import Literal

import attrs

from tests.chaos.histories.script_steps import Step


@attrs.frozen(kw_only=True)
class CanvasStep(Step):
    """A step on the canvas ``canvas``, which is opened with the first one."""

    canvas: str


@attrs.frozen(kw_only=True)
class WriteCanvasStep(CanvasStep):
    """Write a section: with the revision ``read`` just now, one that is ``known``, or by force."""

    section: str
    how: Literal["read", "known", "force"]


@attrs.frozen(kw_only=True)
class AppendCanvasStep(CanvasStep):
    """Append a line to a section."""

    section: str


@attrs.frozen(kw_only=True)
class ReadCanvasStep(CanvasStep):
    """Read all sections and the newest changes, and the list of canvases."""


@attrs.frozen(kw_only=True)
class SubscribeCanvasStep(CanvasStep):
    """Subscribe to the canvas, or to one section of it, or unsubscribe."""

    on: bool
    section: str | None = None


@attrs.frozen(kw_only=True)
class OutsideEditStep(CanvasStep):
    """Another program adds a line to a section.

    It has the file open for ``open_s`` seconds, or replaces it if that is 0. It syncs the file, or
    not. The daemon notices the edit ``noticed_s`` seconds later.
    """

    section: str
    syncs: bool = True
    open_s: float
    noticed_s: float
