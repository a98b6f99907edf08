"""Canvases by MCP, the WebSocket and both Python clients; renamed sessions and their rights."""

from __future__ import annotations

import json
from functools import partial

import pytest
import trio

import aegis
from aegis.client.errors import CommandFailed
from aegis.protocol.canvas_streams import CanvasesItem, CanvasItem
from tests.e2e.canvas_tools import PLAN, Canvases, rename_over
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.test_agents import Team
from tests.e2e.watchers import watching
from tests.resources.waiting import until

pytestmark = [
    pytest.mark.real,
    # The client's event streams are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator '.*:ResourceWarning"),
    # That era has it, whatever the client says of the next one.
    pytest.mark.filterwarnings("ignore:resources/(un)?subscribe is removed"),
]

URI = "aegis://canvases/plan"


@pytest.fixture
def canvases(own_daemon: DaemonProcess) -> Canvases:
    return Canvases(own_daemon)


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_canvas_is_a_resource_that_notifies(canvases: Canvases, era: str) -> None:
    async with watching(canvases.daemon, era, [URI], "ada") as watcher:
        read = await watcher.read(URI)
        assert [each["section"] for each in read["sections"]] == ["_preamble", "Goals", "Log"]
        listed = (await watcher.client.list_resources()).resources
        assert URI in {each.uri for each in listed}
        done = await watcher.client.call_tool(
            "aegis_canvas_append_to_section", {"name": "plan", "section": "Log", "text": "by MCP"}
        )
        assert not done.is_error
        assert await watcher.next() == URI
        assert (await watcher.read(URI))["sections"][2]["text"] == "begun\nby MCP"
        [content] = done.content
        assert json.loads(getattr(content, "text"))["writer"] == "agent:ada"  # noqa: B009
        await trio.to_thread.run_sync(rename_over, canvases.file, PLAN)
        assert await watcher.next() == URI


async def test_the_stream_has_all_canvases_and_then_each_change(canvases: Canvases) -> None:
    async with (
        aegis.connect(canvases.daemon.root, handle="ada") as client,
        client.canvases.follow() as stream,
    ):
        with trio.fail_after(GUARD_S):
            first = await anext(stream)
            assert isinstance(first, CanvasesItem)
            assert [each.name for each in first.canvases] == ["plan"]
            await client.canvases.append("plan", "Log", "more")
            item = await anext(stream)
            while isinstance(item, CanvasItem) and item.canvas.last is not None:
                if item.canvas.last.op == "appended":
                    break
                item = await anext(stream)
            assert isinstance(item, CanvasItem)
            assert item.canvas.last is not None
            assert (item.canvas.last.section, item.canvas.last.writer) == ("Log", "agent:ada")


async def test_every_method_of_the_client(canvases: Canvases) -> None:
    async with aegis.connect(canvases.daemon.root, handle="ada") as client:
        mine = client.canvases
        info = await mine.open("notes", file="notes.md")
        assert (info.file, info.sections) == ("notes.md", ["body"])
        written = await mine.write("notes", "A", "text")
        read = await mine.read("notes", section="A")
        assert (read.sections[0].text, read.sections[0].rev) == ("text", written.rev)
        with pytest.raises(CommandFailed, match="pass if_rev"):
            await mine.write("notes", "A", "other")
        await mine.write("notes", "A", "other", if_rev=written.rev)
        assert (await mine.append("notes", "A", "more")).added == 1
        assert (await mine.subscribe("notes", sections=["A"])).sections == ["A"]
        assert not (await mine.unsubscribe("notes")).subscribed
        history = await mine.history("notes", section="A", limit=2)
        assert [each.op for each in history.result] == ["appended", "written"]
        assert history.more
        assert [each.name for each in (await mine.list()).result] == ["notes", "plan"]


def test_every_method_of_the_blocking_client(canvases: Canvases) -> None:
    with aegis.connect_sync(canvases.daemon.root, handle="bob") as client:
        mine = client.canvases
        assert mine.open("plan").file == "plan.md"
        assert mine.append("plan", "Log", "more").writer == "agent:bob"
        goals = mine.read("plan", section="Goals").sections[0]
        assert mine.write("plan", "Goals", "new", if_rev=goals.rev).op == "written"
        assert mine.subscribe("plan").subscribed
        assert mine.list().result[0].subscribers == ["bob"]
        assert not mine.unsubscribe("plan").subscribed
        assert len(mine.history("plan", limit=2).result) == 2


def test_a_renamed_session_keeps_its_subscription_and_is_not_woken_by_itself(
    own_daemon: DaemonProcess,
) -> None:
    team = Team(own_daemon)
    team.spawn(handle="ann")
    team.call("canvas_open", name="plan", file="plan.md")
    team.call("canvas_subscribe", name="plan", from_handle="ann")
    team.call("rename", old_handle="ann", new_handle="zoe")
    append = partial(team.call, "canvas_append_to_section", name="plan", section="A")
    append(text="by herself", from_handle="zoe")
    append(text="by pm", from_handle="pm")
    until(lambda: bool(team.entries("zoe", "turn_opened")), "she is woken")
    [opened] = team.entries("zoe", "turn_opened")
    assert "by pm" in opened["text"]
    assert "by herself" not in opened["text"]
    assert team.call("canvas_list")["result"][0]["subscribers"] == ["ann"]
    team.call("canvas_unsubscribe", name="plan", from_handle="zoe")
    assert team.call("canvas_list")["result"][0]["subscribers"] == []
    own_daemon.stop()


def test_a_hostile_text_is_shown_escaped(canvases: Canvases) -> None:
    evil = "\x1b]0;title\x07\u202e red \x9b31m"
    canvases.write("E\u202evil", evil, from_handle="eve")
    for verb in (("read", "plan"), ("history", "plan", "--text"), ("list",), ("open", "plan")):
        done = canvases.daemon.cli("canvas", *verb)
        shown = done.stdout + done.stderr
        assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(shown), verb
    assert "\\x1b]0;title" in canvases.daemon.cli("canvas", "read", "plan").stdout
    canvases.call("subscribe", from_handle="ada")
    canvases.append("Log", evil, from_handle="eve")
    [message] = canvases.gets("ada", 1)
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(message["body"])
