"""The panes of queues, workflows and groups by Textual's Pilot."""

from __future__ import annotations

import pytest

from aegis.protocol.group_streams import GroupItem, GroupsItem
from aegis.protocol.groups import BroadcastInfo
from aegis.protocol.workflow_streams import WorkflowItem, WorkflowsItem
from aegis.protocol.workflows import (
    ParameterInfo,
    PluginProblem,
    WorkflowDefinition,
    WorkflowList,
)
from aegis.tui.panes.subjects import CONFIRM_S
from tests.aegis.tui.examples import NOON, group, queue, task, workflow
from tests.aegis.tui.fake_daemon import FakeDaemon, until
from tests.aegis.tui.test_app import Stage, plain_world, play

__all__ = ["plain_world"]

pytestmark = pytest.mark.usefixtures("plain_world")


def test_a_queue_is_paused_and_its_selected_task_cancelled_at_the_second_press() -> None:
    daemon = FakeDaemon()
    daemon.queues = [queue()]
    failed = task("01B", status="failed", error="no", failed_with=["01C"])
    daemon.tasks = [task("01A", payload="first one"), failed]
    daemon.tasks.append(
        task("01D", status="waiting", waits="for 01B and until 2026-05-22T14:00:00Z")
    )

    async def work(stage: Stage) -> None:
        await stage.press("ctrl+d")
        await stage.shows("▣ review", "first one", "failed", "1 queue · 1 running")
        await stage.shows("waits for 01B and until 2026-05-22T14:00:00Z")
        await stage.press("p")
        await stage.press("down", "x")
        assert stage.app.remark == "press it again to cancel task 01A"
        await until(lambda: daemon.called == [("pause", "review")], "it is paused")
        await stage.press("x")
        await until(lambda: daemon.called[1:] == [("cancel", "01A")], "it is cancelled")
        await stage.press("down", "r")
        await until(lambda: daemon.called[2:] == [("retry", "01B")], "it is retried")
        await until(
            lambda: stage.app.remark == "failed with it, and not retried: 01C", "it says so"
        )
        # A press that comes late, or for another task, is a first one.
        await stage.press("x")
        stage.app.moved_s = CONFIRM_S + 1
        await stage.press("x", "up", "x")
        assert len(daemon.called) == 3

    play(work, daemon)


def test_workflows_show_what_they_do_and_are_cancelled_and_continued() -> None:
    daemon = FakeDaemon()
    old = workflow("01A", status="failed", error="it broke\nbadly", ended=NOON)
    parameter = ParameterInfo(name="tag", type="str", required=True)
    ready = WorkflowDefinition(
        name="release", file="plugins/release.py", line=7, doc="Release it.", parameters=[parameter]
    )
    broken = PluginProblem(file="plugins/old.py", problem="not trusted")
    daemon.runs = WorkflowList(result=[old], workflows=[ready], problems=[broken])

    async def work(stage: Stage) -> None:
        await stage.press("f6")
        await stage.shows("🔴 failed", "it broke", "▣ release(tag: str)", "Release it.")
        await stage.shows("plugins/release.py:7", "plugins/old.py", "not trusted")
        run = workflow("01B", current=["agent.ask"], checkpoint="tagged", kwargs='{"tag": "1"}')
        daemon.workflows.put(WorkflowsItem(workflows=[run]))
        await stage.shows('🟢 running    release {"tag": "1"}', "… agent.ask", "at tagged")
        await stage.shows("1 workflow · 1 running")
        assert stage.text().index("running    release") < stage.text().index("failed     release")
        await stage.press("up", "x", "x")
        await until(lambda: daemon.called == [("cancel", "01B")], "it is cancelled")
        await stage.press("down", "r")
        await until(lambda: daemon.called[1:] == [("resume", "01A")], "it is continued")
        done = workflow("01B", status="completed", result='"1.2 is out"', ended=NOON)
        daemon.workflows.put(WorkflowItem(workflow=done))
        await stage.shows("✅ completed", "1.2 is out", "0 running")

    play(work, daemon)


def test_groups_show_their_members_and_replies_and_a_member_is_opened() -> None:
    daemon = FakeDaemon()
    daemon.set_agent("ann", state="working")

    async def work(stage: Stage) -> None:
        await stage.press("f7")
        daemon.groups.put(GroupsItem(groups=[group()]))
        await stage.shows("▣ panel  2 members", "🟢 ann", "✅ bob", "closed", "1 group · 2 members")
        asked = BroadcastInfo(
            broadcast_id="b",
            sender="human",
            at=NOON,
            objective="Which one?\nThink.",
            is_over=False,
            replies={"ann": "pending", "bob": "replied"},
        )
        daemon.groups.put(GroupItem(group=group(broadcast=asked)))
        await stage.shows("❓ Which one? · by human · 1 of 2 replied", "… pending", "✓ replied")
        await stage.press("down", "enter")
        await stage.shows_tab("agent:id-ann")
        await stage.press("f7")
        await stage.press("x", "x")
        await until(lambda: daemon.called == [("dissolve", "panel")], "it is dissolved")
        daemon.groups.put(GroupItem(group=group(state="dissolved")))
        await stage.shows("no group")

    play(work, daemon)


def test_a_selection_moves_through_a_list_longer_than_the_window() -> None:
    daemon = FakeDaemon()
    daemon.queues = [queue()]
    daemon.tasks = [task(f"01{number:03}", payload=f"task {number}.") for number in range(60)]

    async def work(stage: Stage) -> None:
        await stage.press("ctrl+d")
        await stage.shows("task 0.")
        await stage.press(*["down"] * 60)
        await stage.shows("task 59.")
        assert "task 0." not in stage.text()
        await stage.press(*["up"] * 60)
        await stage.shows("task 0.")

    play(work, daemon)
