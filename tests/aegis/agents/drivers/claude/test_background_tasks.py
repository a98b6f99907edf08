"""The background tasks of Claude Code are known with the calls that began them."""

from __future__ import annotations

from typing import Any

from aegis.agents.drivers.harness import Emit
from aegis.protocol.agent_events import BackgroundTask, TasksChanged
from tests.aegis.agents.drivers.claude.wire import ready


def system(subtype: str, **fields: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype, **fields}


def test_a_task_has_the_call_that_began_it() -> None:
    machine = ready()

    def lists(frame: dict[str, Any]) -> list[list[BackgroundTask]]:
        events = [each.event for each in machine.receive(frame) if isinstance(each, Emit)]
        return [each.running for each in events if isinstance(each, TasksChanged)]

    listed = {"task_id": "b", "task_type": "local_bash", "description": "x"}
    started = {"task_id": "b", "tool_use_id": "t1", "description": "x", "is_backgrounded": True}
    placed = BackgroundTask(id="b", title="x", call="t1")
    changed = system("background_tasks_changed", tasks=[listed])
    assert lists(changed) == [[BackgroundTask(id="b", title="x")]]
    assert lists(system("task_started", **started)) == [[placed]]
    assert lists(system("task_started", **started)) == []
    # One in the foreground is no background task, until the list has it.
    front = {"task_id": "f", "tool_use_id": "t2", "description": "y", "is_backgrounded": False}
    assert lists(system("task_started", **front)) == []
    both = system("background_tasks_changed", tasks=[listed, {"task_id": "f", "description": "y"}])
    assert lists(both) == [[placed, BackgroundTask(id="f", title="y", call="t2")]]
    assert lists(system("background_tasks_changed", tasks=[])) == [[]]
    for odd in ({}, {"task_id": 5, "tool_use_id": "t"}, {"task_id": "b", "tool_use_id": None}):
        assert lists(system("task_started", **odd)) == []
