"""``TodoList``: what Claude Code has noted to do, as its tools report it. Pure.

A call has the change alone: the number of a new task and the state of a changed one are in the
result, which the program adds to the frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from aegis.agents.drivers.claude.frames import items, mapping, name, text
from aegis.agents.drivers.harness import Frame
from aegis.protocol.agent_events import AgentEvent, Plan, PlanStep, ToolResult, ToolUse

TOOLS = ("TaskCreate", "TaskUpdate", "TaskList")

MAX_STEPS = 200
"""Tasks that are followed."""

MAX_CALLS = 64
"""Calls without a result that are remembered."""

MAX_STEP_CHARS = 500


class TodoList:
    """The list, which began with ``steps``; those without an id are not from these tools."""

    def __init__(self, steps: Sequence[PlanStep] = ()) -> None:
        self._steps = {each.id: each for each in steps if each.id}
        self._calls: dict[str, ToolUse] = {}

    def take(self, event: AgentEvent, frame: Frame) -> list[AgentEvent]:
        """Return the list if an event, which is of this frame, has changed it."""
        match event:
            case ToolUse(name="TodoWrite", input={"todos": list(todos)}):  # of older versions
                steps = [mapping(each) for each in todos[:MAX_STEPS]]
                return [Plan(steps=[_step("", each, "content") for each in steps])]
            case ToolUse(name=tool) if tool in TOOLS:
                self._calls[event.id] = event
                if len(self._calls) > MAX_CALLS:
                    del self._calls[next(iter(self._calls))]
            case ToolResult(id=id_) if id_ in self._calls:
                call, before = self._calls.pop(id_), self._steps
                if not event.is_error:
                    self._steps = self._after(call, mapping(frame.get("tool_use_result")))
                if self._steps != before:
                    return [Plan(steps=[*self._steps.values()])]
        return []

    def _after(self, call: ToolUse, result: dict[str, Any]) -> dict[str, PlanStep]:
        match call.name:
            case "TaskList":
                tasks = [mapping(each) for each in items(result.get("tasks"))]
            case "TaskCreate":
                tasks = [*map(_fields, self._steps.values()), mapping(result.get("task"))]
            case _:
                tasks = [*map(_fields, self._steps.values())]
                changed = {**call.input, "id": name(result.get("taskId"))}
                tasks = [
                    {**each, **changed} if each["id"] == changed["id"] else each for each in tasks
                ]
        found = {name(each.get("id")): each for each in tasks[:MAX_STEPS]}
        return {
            id_: _step(id_, each, "subject")
            for id_, each in found.items()
            if id_ and name(each.get("status")) != "deleted"
        }


def _fields(step: PlanStep) -> dict[str, Any]:
    return {"id": step.id, "subject": step.text, "status": step.status}


def _step(id_: str, fields: dict[str, Any], of_text: str) -> PlanStep:
    shown = text(fields.get(of_text))[:MAX_STEP_CHARS]
    step = PlanStep(id=id_, text=shown)
    match fields.get("status"):
        case "in_progress" | "completed" as status:
            return attrs.evolve(step, status=status)
    return step
