"""The list of Claude Code, from the frames of its tools (2.1.330)."""

from __future__ import annotations

from typing import Any

from aegis.agents.drivers.claude.machine import Claude
from aegis.agents.drivers.harness import Emit
from aegis.protocol.agent_events import Plan, PlanStep
from tests.aegis.agents.drivers.claude.wire import Json, assistant, init, ready


class Todo:
    """A machine whose agent calls the tools of its list."""

    def __init__(self, machine: Claude) -> None:
        self._machine = machine
        self._calls = 0
        machine.receive(init())

    def call(self, tool: str, given: Json, result: Any, *, fails: bool = False) -> list[Plan]:
        """The plans that a call and its result give."""
        self._calls += 1
        id_ = f"toolu_{self._calls}"
        use = {"type": "tool_use", "id": id_, "name": tool, "input": given}
        block = {"type": "tool_result", "tool_use_id": id_, "content": "x", "is_error": fails}
        answer = {"type": "user", "message": {"role": "user", "content": [block]}}
        frames = assistant(use), {**answer, "tool_use_result": result}
        outputs = [output for each in frames for output in self._machine.receive(each)]
        events = [each.event for each in outputs if isinstance(each, Emit)]
        return [each for each in events if isinstance(each, Plan)]

    def create(self, id_: str, subject: str) -> list[Plan]:
        task = {"id": id_, "subject": subject, "description": "d"}
        return self.call("TaskCreate", {"subject": subject, "description": "d"}, {"task": task})

    def update(self, id_: str, **changed: str) -> list[Plan]:
        fields = {"updatedFields": [*changed], "success": True, "taskId": id_}
        return self.call("TaskUpdate", {"taskId": id_, **changed}, fields)


def test_the_list_is_a_plan_that_each_change_replaces() -> None:
    todo = Todo(ready())
    assert todo.create("1", "Write code") == [Plan(steps=[PlanStep(id="1", text="Write code")])]
    todo.create("2", "Test")
    [begun] = todo.update("1", status="in_progress")
    assert [each.status for each in begun.steps] == ["in_progress", "pending"]
    [renamed] = todo.update("2", subject="Test it", owner="me")
    assert renamed.steps[1] == PlanStep(id="2", text="Test it")
    [done] = todo.update("1", status="completed")
    assert [each.status for each in done.steps] == ["completed", "pending"]
    [left] = todo.update("1", status="deleted")
    assert [each.id for each in left.steps] == ["2"]


def test_nothing_new_is_no_plan() -> None:
    todo = Todo(ready())
    todo.create("1", "Write code")
    assert todo.update("1", owner="me") == []
    assert todo.update("7", status="completed") == []
    assert todo.call("TaskCreate", {"subject": "x"}, {"task": {"id": "2"}}, fails=True) == []
    assert todo.call("Bash", {"command": "x"}, {"task": {"id": "9", "subject": "not ours"}}) == []
    strange: tuple[Any, ...] = (None, 5, "text", {"task": []}, {"task": {"id": {}}})
    for odd in strange:
        assert todo.call("TaskCreate", {}, odd) == []


def test_a_whole_list_replaces_what_is_known() -> None:
    todo = Todo(ready())
    todo.create("1", "Write code")
    tasks = [{"id": "2", "subject": "Test", "status": "completed"}, "odd", {"subject": "no id"}]
    [plan] = todo.call("TaskList", {}, {"tasks": tasks})
    assert plan.steps == [PlanStep(id="2", text="Test", status="completed")]


def test_a_resumed_conversation_continues_its_list_and_a_new_one_has_none() -> None:
    machine = ready(plan=(PlanStep(id="1", text="Write code", status="in_progress"),))
    todo = Todo(machine)
    [done] = todo.update("1", status="completed")
    assert done.steps == [PlanStep(id="1", text="Write code", status="completed")]
    machine.receive({"type": "system", "subtype": "status", "session_id": "another"})
    assert todo.update("1", status="pending") == []


def test_the_tool_of_older_versions_has_the_whole_list_in_its_call() -> None:
    todos = [
        {"content": "Write code", "status": "completed", "activeForm": "Writing"},
        {"content": "Test", "status": "odd"},
    ]
    [plan] = Todo(ready()).call("TodoWrite", {"todos": todos}, {})
    assert plan.steps == [
        PlanStep(text="Write code", status="completed"),
        PlanStep(text="Test"),
    ]
