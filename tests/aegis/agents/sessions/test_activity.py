"""The running calls of an agent as a tree: those of subagents behind the call that began them."""

from __future__ import annotations

import attrs
import pytest

from aegis.agents.sessions.activity import MAX_CALLS, Activity
from aegis.cli.printing.agents import _calls
from aegis.protocol.agent_events import BackgroundTask, TasksChanged, ToolResult, ToolUse
from aegis.protocol.agent_states import AgentCall


@pytest.fixture
def activity() -> Activity:
    made = Activity(0.0)
    about = {"description": "explore"}
    made.take(ToolUse(id="a", name="Agent", input=about), 1.0)
    made.take(ToolUse(id="b", name="Grep", parent="a"), 1.0)
    made.take(ToolUse(id="c", name="Read"), 1.0)
    made.take(ToolUse(id="d", name="Bash", parent="a"), 1.0)
    return made


def shown(activity: Activity) -> list[object]:
    calls = [attrs.asdict(each) for each in activity.calls]
    return [text for _, text in _calls({"calls": calls, "tools": []})]


def test_a_call_of_a_subagent_is_below_the_call_that_began_it(activity: Activity) -> None:
    assert shown(activity) == ["Agent: explore", "  Grep", "  Bash", "Read"]
    activity.take(ToolResult(id="b", text=""), 2.0)
    assert shown(activity) == ["Agent: explore", "  Bash", "Read"]


def test_a_call_of_a_subagent_in_the_background_outlives_the_turn(activity: Activity) -> None:
    activity.take(TasksChanged(tasks=["explore"]), 2.0)
    activity.take(ToolResult(id="a", text="launched"), 2.0)
    activity.end_turn()
    assert shown(activity) == ["Agent: explore", "  Grep", "  Bash"]
    activity.take(TasksChanged(tasks=[]), 3.0)
    assert activity.calls == []
    assert activity.tools == {}


def test_a_background_task_is_below_the_call_that_began_it_after_its_end(
    activity: Activity,
) -> None:
    activity.end_turn()
    activity.take(ToolUse(id="e", name="Bash", title="Bash"), 2.0)
    build = BackgroundTask(id="t1", title="build", call="e")
    look = BackgroundTask(id="t2", title="look", call="d")
    other = BackgroundTask(id="t3", title="other")
    activity.take(TasksChanged(tasks=["build", "look", "other"], running=[build, look, other]), 2.0)
    activity.take(ToolResult(id="e", text="started"), 2.0)
    activity.end_turn()
    assert shown(activity) == [
        *("Bash", "  build, in the background"),
        *("Agent: explore", "  Bash", "    look, in the background"),
        "other, in the background",
    ]
    activity.take(TasksChanged(tasks=["other"], running=[other]), 3.0)
    assert shown(activity) == ["other, in the background"]
    activity.end_process()
    assert activity.calls == []


def test_the_end_of_a_turn_without_tasks_ends_all_calls(activity: Activity) -> None:
    activity.end_turn()
    assert activity.tools == {}
    activity.end_process()
    assert activity.calls == []


def test_calls_in_a_circle_and_too_many_of_them_are_limited() -> None:
    activity = Activity(0.0)
    activity.take(ToolUse(id="a", name="A", parent="b"), 1.0)
    activity.take(ToolUse(id="b", name="B", parent="a"), 1.0)
    assert {each.id for each in activity.calls} == {"a", "b"}
    assert len(shown(activity)) == 2
    for number in range(1_000):
        activity.take(ToolUse(id=f"t{number}", name="x" * 1_000, parent=f"t{number - 1}"), 1.0)
    assert len(activity.calls) == MAX_CALLS
    assert max(len(each.title) for each in activity.calls) == 200
    assert isinstance(activity.calls[0], AgentCall)
