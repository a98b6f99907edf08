"""The pane of canvases: each with its sections, as they are written."""

from __future__ import annotations

from aegis.agents.render import StyledSegment
from aegis.client.client import Client
from aegis.client.errors import CommandFailed
from aegis.client.stream_kinds import Gap
from aegis.protocol.canvas_streams import CanvasesItem
from aegis.protocol.canvases import CanvasInfo, CanvasSection, CanvasText
from aegis.shown_text import escape_line, escape_text
from aegis.tui.model.times import since
from aegis.tui.panes.lists import ListPane
from aegis.tui.widgets.parts_view import Passage

MAX_SHOWN = 20
"""Canvases whose text is read and shown; of others only the head."""


class CanvasesPane(ListPane):
    """The canvases and their texts."""

    name_ = "canvases"
    hint = "click copies a section"

    async def show_stream(self, client: Client) -> None:
        async with client.canvases.follow() as canvases:
            infos: dict[str, CanvasInfo] = {}
            texts: dict[str, CanvasText | None] = {}
            async for value in canvases:
                match value:
                    case Gap():
                        continue  # all of them are sent again
                    case CanvasesItem():
                        infos = {each.name: each for each in value.canvases}
                        changed = [*infos]
                    case _:
                        infos[value.canvas.name] = value.canvas
                        changed = [value.canvas.name]
                for name in changed[:MAX_SHOWN]:
                    texts[name] = await _text_of(client, name)
                self._draw(infos, texts)

    def _draw(self, infos: dict[str, CanvasInfo], texts: dict[str, CanvasText | None]) -> None:
        passages = []
        for name in sorted(infos):
            passages.append(_head(infos[name], self.desk.now()))
            text = texts.get(name)
            passages += [] if text is None else map(_section, text.sections)
        if not infos:
            note = "no canvas: an agent opens one with aegis_canvas_open"
            passages.append(Passage([StyledSegment(note, "dim")]))
        self.show(passages)
        self.set_status("1 canvas" if len(infos) == 1 else f"{len(infos)} canvases")


def _section(section: CanvasSection) -> Passage:
    return Passage(
        [StyledSegment(escape_text(section.text))],
        edge=("▎ ", "cyan"),
        heading=((escape_line(section.section), "bold cyan"),),
        right=escape_line(section.writer),
        copied=section.text,
    )


async def _text_of(client: Client, name: str) -> CanvasText | None:
    try:
        return await client.canvases.read(name)
    except CommandFailed:
        return None  # its file cannot be used: the head says why


def _head(info: CanvasInfo, now: float) -> Passage:
    words = [escape_line(info.file), f"rev {info.rev}"]
    if info.last is not None:
        words.append(f"{escape_line(info.last.writer)} {since(info.last.timestamp, now)} ago")
    problem = [StyledSegment(escape_line(info.problem), "red")] if info.problem else []
    heading = [("▣ ", "cyan"), (escape_line(info.name), "bold"), ("  ", "")]
    heading.append((" · ".join(words), "dim"))
    return Passage(problem, edge=(" ", ""), heading=heading, gap=0)
