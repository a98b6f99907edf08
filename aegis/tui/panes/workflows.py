"""The pane of workflows: those that can be run, and the runs with what each does now."""

from __future__ import annotations

from typing import ClassVar

import trio
from textual.binding import Binding, BindingType

from aegis.agents.render import StyledSegment
from aegis.client.client import Client
from aegis.client.stream_kinds import Gap
from aegis.protocol.workflow_streams import WorkflowsItem
from aegis.protocol.workflows import PluginProblem, WorkflowDefinition, WorkflowInfo
from aegis.shown_text import escape_line, escape_text
from aegis.tui.model.times import counted, since
from aegis.tui.panes.pane import Desk
from aegis.tui.panes.subjects import SubjectsPane
from aegis.tui.widgets.parts_view import Passage

MAX_RUNS = 100
SHOWN_LINES = 3
"""Lines of a result, of an error, and of what a run does now."""

RUN_DOTS = {"running": "🟢", "completed": "✅", "failed": "🔴", "cancelled": "⚪"}


class WorkflowsPane(SubjectsPane):
    """The workflows; keys act on the selected run."""

    name_ = "workflows"
    hint = "↑↓ x cancel · r resume · t run again"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "cancel", "cancel the run", show=False),
        Binding("r", "resume", "continue the run", show=False),
        Binding("t", "retry", "run it again from its beginning", show=False),
    ]

    def __init__(self, desk: Desk, key: str) -> None:
        super().__init__(desk, key)
        self._runs: dict[str, WorkflowInfo] = {}
        self._definitions: list[WorkflowDefinition] = []
        self._problems: list[PluginProblem] = []

    async def show_stream(self, client: Client) -> None:
        async with client.workflows.follow() as changes:
            await self._read(client)
            async for value in changes:
                match value:
                    case Gap():
                        continue  # all that run are sent again
                    case WorkflowsItem():
                        self._runs |= {each.workflow_id: each for each in value.workflows}
                    case _:
                        self._runs[value.workflow.workflow_id] = value.workflow
                if not changes.unread:
                    self._draw()
                await trio.lowlevel.checkpoint()

    async def _read(self, client: Client) -> None:
        """Read what can be run, and the runs that have ended."""
        found = await client.workflows.list(limit=MAX_RUNS)
        self._definitions, self._problems = found.workflows, found.problems
        self._runs = {each.workflow_id: each for each in found.result}
        self._draw()

    def ticked(self) -> None:
        self._draw()

    def _draw(self) -> None:
        now = self.desk.now()
        # The newest first: an id begins with the time.
        runs = sorted(self._runs.values(), key=lambda each: each.workflow_id, reverse=True)
        passages = [_run_passage(each, now) for each in runs[:MAX_RUNS]]
        passages += [_definition_passage(each) for each in self._definitions]
        passages += [_problem_passage(each) for each in self._problems]
        if not passages:
            note = "no workflow: a plugin defines one, see aegis-actors workflow --help"
            passages.append(Passage([StyledSegment(note, "dim")]))
        self.show(passages)
        running = sum(each.status == "running" for each in runs)
        self.set_status(f"{counted(len(self._definitions), 'workflow')} · {running} running")

    def _selected_run(self) -> WorkflowInfo | None:
        found = self._runs.get(self.selected)
        if found is None:
            self.desk.show_remark("select a run")
        return found

    def action_cancel(self) -> None:
        run = self._selected_run()
        if run is None:
            return
        number = run.workflow_id

        async def cancel(client: Client) -> None:
            await client.workflows.cancel(number)

        self.act(f"{run.name} {number[-6:]}", cancel, confirms="cancel")

    def action_resume(self) -> None:
        run = self._selected_run()
        if run is None:
            return
        number = run.workflow_id

        async def resume(client: Client) -> None:
            await client.workflows.resume(number)

        self.act(f"{run.name} {number[-6:]}", resume)

    def action_retry(self) -> None:
        run = self._selected_run()
        if run is None:
            return
        number = run.workflow_id

        async def retry(client: Client) -> None:
            await client.workflows.retry(number)

        self.act(f"{run.name} {number[-6:]}", retry, confirms="run again")


def _run_passage(run: WorkflowInfo, now: float) -> Passage:
    words = [counted(run.calls, "call")]
    words += [f"run {run.runs}"] if run.runs > 1 else []
    words += [f"at {escape_line(run.checkpoint)}"] if run.checkpoint else []
    heading = [
        (f"{RUN_DOTS[run.status]} ", ""),
        (f"{run.status:<10} ", "bold"),
        (escape_line(run.name), "bold cyan"),
        (f" {escape_line(run.kwargs[:60])}" if run.kwargs not in ("", "{}") else "", ""),
        (f"  {run.workflow_id[-6:]} · {' · '.join(words)} · by {escape_line(run.sender)}", "dim"),
    ]
    segments = []
    for text, style in (
        ("\n".join(f"… {escape_line(each)}" for each in run.current), "cyan"),
        (run.problem, "yellow"),
        (run.error or "", "red"),
        (run.result or "", "dim"),
    ):
        lines = escape_text(text).strip().split("\n")
        shown = "\n".join(lines[:SHOWN_LINES])
        if shown:
            segments.append(StyledSegment(f"{shown}\n", style))  # type: ignore[arg-type]
    return Passage(
        segments,
        edge=(" ", ""),
        heading=heading,
        right=since(run.ended or run.started, now),
        copied=run.result or run.error or "",
        gap=0,
        key=run.workflow_id,
    )


def _definition_passage(definition: WorkflowDefinition) -> Passage:
    parameters = ", ".join(
        f"{each.name}: {each.type}{'' if each.required else ' (optional)'}"
        for each in definition.parameters
    )
    heading = [("▣ ", "cyan"), (escape_line(definition.name), "bold")]
    heading.append((f"({escape_line(parameters)})", ""))
    heading.append((f"  {escape_line(definition.file)}:{definition.line}", "dim"))
    doc = escape_line(definition.doc.strip().split("\n")[0])
    command = f"aegis-actors workflow run {definition.name}"
    return Passage(
        [StyledSegment(doc, "dim")], edge=(" ", ""), heading=heading, copied=command, gap=0
    )


def _problem_passage(problem: PluginProblem) -> Passage:
    heading = [("🔴 ", ""), (escape_line(problem.file), "bold")]
    text = StyledSegment(escape_text(problem.problem), "red")
    return Passage([text], edge=(" ", ""), heading=heading, gap=0)
