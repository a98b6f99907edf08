"""The steps of a simulated client on canvases, edits by another program, and their end."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import trio

from actors import ActorError
from aegis.canvases.messages import LookNow
from aegis.errors import Busy
from aegis.protocol import canvases as api
from tests.chaos.checking.canvas_evidence import (
    CanvasFound,
    CanvasSeen,
    CanvasSubscribing,
    CanvasWrite,
    OutsideEdit,
)
from tests.chaos.histories import script as s
from tests.chaos.histories.asking import Answered, Asker
from tests.chaos.histories.tree import STATE
from tests.chaos.machine.disk_model import DiskModel
from tests.chaos.machine.outside_editor import OutsideEditor, repaired, with_line
from tests.chaos.notebook import Notebook

BESIDE = ".aegis-canvas-"
MOST_CHANGES = 1000

Revisions = dict[tuple[str, str], int]
"""The revisions that a client knows, by canvas and section."""


def file_of(canvas: str) -> str:
    """Return the name of the file of a canvas, below the root."""
    return f"{canvas}.md"


def editor_of(model: DiskModel, canvas: str, *, syncs: bool = True) -> OutsideEditor:
    """Return the program that edits the file of a canvas."""
    return OutsideEditor(model, f"{STATE.root}/{file_of(canvas)}", syncs)


def edit_at_once(
    model: DiskModel, book: Notebook, step: s.OutsideEditStep | s.OutsideEditFault, token: str
) -> None:
    """Replace the file of a canvas by one with a line more."""
    editor = editor_of(model, step.canvas, syncs=step.syncs)
    made = _edit(book, step, token)
    editor.replace(with_line(repaired(editor.text()), step.section, token))
    book.canvases.edits.append(made)


def _edit(book: Notebook, step: s.OutsideEditStep | s.OutsideEditFault, token: str) -> OutsideEdit:
    return OutsideEdit(canvas=step.canvas, token=token, is_synced=step.syncs, span=book.point())


class CanvasSteps:
    """The steps on canvases of the client behind ``asker``; ``model`` returns the disk now."""

    def __init__(
        self, asker: Asker, book: Notebook, revisions: Revisions, model: Callable[[], DiskModel]
    ) -> None:
        self._asker = asker
        self._ask = asker.ask
        self._book, self._notes = book, book.canvases
        self._revisions = revisions
        self._model = model

    async def do(self, step: s.Step) -> None:
        """Do one step."""
        await DOERS[type(step)](self, step)

    async def write(self, step: s.WriteCanvasStep) -> None:
        if step.how == "read":
            await self._read(step.canvas)
        await self._open(step.canvas)
        if_rev = self._revisions.get((step.canvas, step.section))
        write = CanvasWrite(
            canvas=step.canvas,
            section=step.section,
            token=f"@canvas.{step.number}@",
            is_bound=step.how != "force",
            if_rev=if_rev,
        )
        request = api.WriteSection(
            name=step.canvas,
            section=step.section,
            content=write.token,
            if_rev=None if step.how == "force" else if_rev,
            force=step.how == "force",
            from_handle=self._asker.handle,
        )
        await self._ask(request, partial(self._wrote, write))

    async def append(self, step: s.AppendCanvasStep) -> None:
        await self._open(step.canvas)
        token = f"@canvas.{step.number}@"
        write = CanvasWrite(canvas=step.canvas, section=step.section, token=token, is_append=True)
        request = api.AppendToSection(
            name=step.canvas, section=step.section, text=token, from_handle=self._asker.handle
        )
        await self._ask(request, partial(self._wrote, write))

    def _wrote(self, write: CanvasWrite, answered: Answered) -> None:
        is_refused = isinstance(answered.error, Busy) or answered.is_done is False
        rev = None if answered.value is None else answered.value.rev
        done = True if rev is not None else False if is_refused else None
        self._notes.writes.append(
            CanvasWrite(
                canvas=write.canvas,
                section=write.section,
                token=write.token,
                is_append=write.is_append,
                is_bound=write.is_bound,
                if_rev=write.if_rev,
                done=done,
                rev=rev,
                span=answered.span,
            )
        )
        if rev is not None:
            self._revisions[write.canvas, write.section] = rev

    async def read(self, step: s.ReadCanvasStep) -> None:
        await self._open(step.canvas)
        await self._read(step.canvas)
        await self._ask(api.GetCanvasHistory(name=step.canvas))
        await self._ask(api.ListCanvases())

    async def _open(self, canvas: str) -> None:
        await self._ask(api.OpenCanvas(name=canvas, file=file_of(canvas)))

    async def _read(self, canvas: str) -> tuple[CanvasSeen, ...] | None:
        answered = await self._ask(api.ReadCanvas(name=canvas))
        if answered.value is None:
            return None
        seen = tuple(
            CanvasSeen(
                canvas=canvas,
                section=each.section,
                rev=each.rev,
                text=each.text,
                span=answered.span,
            )
            for each in answered.value.sections
        )
        self._notes.seen += seen
        for key in [*self._revisions]:
            if key[0] == canvas:
                del self._revisions[key]
        self._revisions.update({(canvas, each.section): each.rev for each in seen if each.rev})
        return seen

    async def subscribe(self, step: s.SubscribeCanvasStep) -> None:
        by, note = self._asker.handle, partial(self._subscribed, step)
        if step.on:
            sections = None if step.section is None else [step.section]
            request = api.SubscribeCanvas(name=step.canvas, sections=sections, from_handle=by)
            await self._ask(request, note)
        else:
            await self._ask(api.UnsubscribeCanvas(name=step.canvas, from_handle=by), note)

    def _subscribed(self, step: s.SubscribeCanvasStep, answered: Answered) -> None:
        self._notes.subscribed.append(
            CanvasSubscribing(
                canvas=step.canvas,
                handle=self._asker.handle,
                on=step.on,
                done=answered.is_done,
                section=step.section,
                span=answered.span,
            )
        )

    async def edit(self, step: s.OutsideEditStep) -> None:
        """Edit the file as another program."""
        token, model = f"@edit.{step.number}@", self._model()
        editor = editor_of(model, step.canvas, syncs=step.syncs)
        text = editor.text()
        if text is None or not step.open_s:
            edit_at_once(model, self._book, step, token)
        else:
            await editor.write_slowly(
                partial(self._with_line, editor, step.section, token),
                step.open_s,
                lambda: self._notes.edits.append(_edit(self._book, step, token)),
            )
        await trio.sleep(step.noticed_s)
        found = self._asker.system.registry.find("canvas", step.canvas)
        if found is not None:
            with contextlib.suppress(ActorError):
                found.tell(LookNow())

    @staticmethod
    def _with_line(editor: OutsideEditor, section: str, token: str) -> str:
        return with_line(repaired(editor.text()), section, token)

    # The end.

    async def finish(self, canvas: str) -> None:
        """Read everything of a canvas, if it was opened."""
        listed = await self._ask(api.ListCanvases())
        if listed.value is None:
            self._notes.stuck.append("the canvases are not listed")
            return
        if canvas not in [each.name for each in listed.value.result]:
            return
        self._repair(canvas)
        seen = await self._read(canvas)
        history = await self._ask(api.GetCanvasHistory(name=canvas, limit=MOST_CHANGES))
        if seen is None or history.value is None:
            self._notes.stuck.append(f"the canvas {canvas} cannot be read")
            return
        model = self._model()
        self._notes.found.append(
            CanvasFound(
                canvas=canvas,
                changes=tuple(reversed(history.value.result)),
                sections=seen,
                file=editor_of(model, canvas).text() or "",
                beside=_beside(model),
            )
        )

    def _repair(self, canvas: str) -> None:
        """Remove zeros that a loss of power left in a file which no program had synced."""
        editor = editor_of(self._model(), canvas)
        text = editor.text()
        if text is not None and text != repaired(text):
            editor.replace(repaired(text) or "")


def _beside(model: DiskModel) -> tuple[str, ...]:
    return tuple(each for each in model.list_directory(str(STATE.root)) if each.startswith(BESIDE))


DOERS: dict[type[s.Step], Callable[[CanvasSteps, Any], Awaitable[None]]] = {
    s.WriteCanvasStep: CanvasSteps.write,
    s.AppendCanvasStep: CanvasSteps.append,
    s.ReadCanvasStep: CanvasSteps.read,
    s.SubscribeCanvasStep: CanvasSteps.subscribe,
    s.OutsideEditStep: CanvasSteps.edit,
}
