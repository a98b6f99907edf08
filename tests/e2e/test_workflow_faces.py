"""Workflows over every face: the stream, both Python clients, MCP and the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import pytest
import trio

import aegis
from aegis.protocol.workflow_streams import WorkflowItem, WorkflowsItem
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.test_agents import open_request
from tests.e2e.test_workflows import Working
from tests.resources.waiting import until

pytestmark = pytest.mark.real


@pytest.fixture
def working(own_daemon: DaemonProcess) -> Iterator[Working]:
    yield Working(own_daemon)
    own_daemon.stop()


async def test_the_stream_has_those_that_run_and_then_each_change(working: Working) -> None:
    waiting = await trio.to_thread.run_sync(partial(working.run, "waits", as_="ada"))
    async with (
        aegis.connect(working.daemon.root, handle="ada") as client,
        client.workflows.follow() as stream,
    ):
        with trio.fail_after(GUARD_S):
            first = await anext(stream)
            assert isinstance(first, WorkflowsItem)
            assert [each.workflow_id for each in first.workflows] == [waiting]
            started = await client.workflows.run("hello", {"name": "ada"})
            seen: list[str] = []
            async for item in stream:
                assert isinstance(item, WorkflowItem)
                if item.workflow.workflow_id == started.workflow_id:
                    seen.append(item.workflow.status)
                if "completed" in seen:
                    break
            assert seen[0] == "running"
            info = await client.workflows.status(started.workflow_id)
            assert (info.result, info.sender) == ('"hello ada"', "agent:ada")
            cancelled = await client.workflows.cancel(waiting)
            assert cancelled.status == "cancelled"


def test_the_blocking_client_runs_and_lists(working: Working) -> None:
    with aegis.connect_sync(working.daemon.root) as client:
        started = client.workflows.run("steps", {"count": 2}, key="k")
        # It may have ended meanwhile, and its status with it.
        again = client.workflows.run("steps", {"count": 2}, key="k")
        assert again.workflow_id == started.workflow_id
        working.ends(started.workflow_id)
        listed = client.workflows.list()
        assert [each.workflow_id for each in listed.result] == [started.workflow_id]
        hello = next(each for each in listed.workflows if each.name == "hello")
        assert [(each.name, each.type, each.required) for each in hello.parameters] == [
            ("name", "str", False),
            ("times", "int", False),
        ]
        assert hello.doc == "Greet somebody.\n\nSeveral times."
        assert client.workflows.trust().files == [".aegis/plugins/tests.py"]
        with pytest.raises(aegis.CommandFailed, match="is completed"):
            client.workflows.retry(started.workflow_id)


def test_the_command_line_runs_shows_cancels_and_continues(working: Working) -> None:
    cli = working.daemon.cli
    shown = cli("workflow", "list").stdout
    assert "hello(name: str = …, times: int = …)  Greet somebody." in shown
    id_ = cli("workflow", "run", "hello", "name=you", "times:=2").stdout.strip()
    working.ends(id_)
    shown = cli("workflow", "status", id_.lower()).stdout
    assert 'result:\n"hello you hello you"\n' in shown
    waiting = cli("workflow", "run", "waits").stdout.strip()
    open_request(working)
    assert "ask_human('Release?'" in cli("workflow", "list").stdout
    assert "cancelled" in cli("workflow", "cancel", waiting).stdout
    until(lambda: "running" in cli("workflow", "resume", waiting).stdout, "it continues")
    open_request(working)
    assert cli("workflow", "cancel", waiting).returncode == 0
    until(lambda: "running" in cli("workflow", "retry", waiting).stdout, "it begins anew")
    for words, sentence in (
        (["run", "hello", "name"], "'name' is no argument: write NAME=TEXT, or NAME:=JSON"),
        (["run", "hello", "times:=x"], "the value is not JSON"),
        (["run", "hello", "times=2"], "must be a whole number, not '2'"),
        (["status", "0" * 26], "there is no workflow"),
    ):
        refused = cli("workflow", *words)
        assert refused.returncode != 0
        assert sentence in refused.stderr


def test_hostile_texts_are_shown_escaped(working: Working) -> None:
    id_ = working.run("hello", name="\x1b]0;evil\x07 \u202e")
    working.ends(id_)
    for words in (["list"], ["status", id_], ["status", id_, "--json"]):
        shown = working.daemon.cli("workflow", *words).stdout
        assert not {"\x1b", "\x07", "\u202e"} & set(shown), words
    assert json.loads(working.status(id_)["result"]).startswith("hello \x1b]0;")
