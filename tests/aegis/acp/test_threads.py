"""Threads of an editor whose connection to the daemon is lost at a bad moment."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from aegis.acp import agent
from aegis.acp.agent import EditorAgent, EditorSettings
from aegis.acp.wire import EditorWire
from aegis.client.agent_kinds import SessionEvent
from aegis.client.errors import CommandFailed, ConnectionLost
from aegis.protocol import agent_events as ev
from aegis.protocol.agents import AgentDetails
from aegis.protocol.requests import Choice, RequestInfo
from tests.aegis.acp.test_choices import INFO
from tests.aegis.acp.test_updates import request

LOST = ConnectionLost("the connection was lost")


class Daemon:
    """A client whose daemon fails as it is wanted: ``failures`` by call, the next one first."""

    def __init__(self) -> None:
        self.failures: dict[str, list[Exception]] = {}
        self.interrupted: list[str] = []
        self.entries: list[SessionEvent] = []
        self.asked: list[RequestInfo] = []
        self.is_connected = True
        self.changed = trio.Event()
        self.sent = 0
        self.agents = self.inboxes = self.requests = self

    def say(self, text: str) -> None:
        self.add(ev.AssistantText(text=text))

    def ask(self, asked: RequestInfo) -> None:
        self.asked.append(asked)
        self._change()

    def add(self, event: ev.AgentEvent) -> None:
        self._enter("event", {}, event)

    def enter(self, kind: str, **fields: Any) -> None:
        self._enter(kind, fields, None)

    def _enter(self, kind: str, fields: dict[str, Any], event: ev.AgentEvent | None) -> None:
        seq = len(self.entries) + 1
        entry = SessionEvent(seq=seq, kind=kind, at="", fields=fields, event=event)
        self.entries.append(entry)
        self._change()

    def connect(self, is_connected: bool) -> None:
        self.is_connected = is_connected
        self._change()

    def _change(self) -> None:
        self.changed.set()
        self.changed = trio.Event()

    def _fail(self, call: str) -> None:
        if not self.is_connected:
            raise LOST
        if failures := self.failures.get(call):
            raise failures.pop(0)

    async def wait_connected(self, wanted: bool) -> None:
        while self.is_connected is not wanted:
            await self.changed.wait()

    async def profiles(self) -> Any:
        return SimpleNamespace(result=[])

    async def spawn(self, **_: object) -> Any:
        return INFO

    async def show(self, handle: str) -> Any:
        self._fail("show")
        return AgentDetails(**attrs.asdict(INFO, recurse=False))

    async def read(self, handle: str, **_: object) -> Any:
        self._fail("read")
        return SimpleNamespace(result=self.entries[-1:])

    async def handoff(self, *_: object, **__: object) -> Any:
        self._fail("handoff")
        self.sent += 1
        return SimpleNamespace(id=f"m{self.sent}", notice="")

    async def interrupt(self, handle: str, *, message: str) -> None:
        self._fail("interrupt")
        self.interrupted.append(message)

    @asynccontextmanager
    async def events(self, handle: str, since: int) -> AsyncIterator[AsyncIterator[SessionEvent]]:
        async with aclosing(self._events(since)) as entries:
            yield entries

    async def _events(self, since: int) -> AsyncGenerator[SessionEvent]:
        while True:
            for each in self.entries[since:]:
                since = each.seq
                yield each
            await self.changed.wait()

    @asynccontextmanager
    async def follow(self) -> AsyncIterator[Any]:
        yield await trio.sleep_forever()

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[Any]]:
        async with aclosing(self._requests()) as requests:
            yield requests

    async def _requests(self) -> AsyncGenerator[Any]:
        while True:
            for each in self.asked:
                yield SimpleNamespace(request=each)
            await self.changed.wait()


class Editing:
    """An editor at a ``Daemon``, and all that it was sent."""

    def __init__(self, source: trio.testing.MemorySendStream) -> None:
        self.source = source
        self.frames: list[dict[str, Any]] = []
        self.calls = 0

    async def send_all(self, data: bytes) -> None:
        self.frames += map(json.loads, data.splitlines())

    async def start(self, method: str, **params: Any) -> int:
        self.calls += 1
        frame = {"id": self.calls, "method": method, "params": params}
        await self.source.send_all(json.dumps(frame).encode() + b"\n")
        return self.calls

    async def notify(self, method: str, **params: Any) -> None:
        frame = {"method": method, "params": params}
        await self.source.send_all(json.dumps(frame).encode() + b"\n")

    async def until(self, holds: Callable[[], bool]) -> None:
        with trio.fail_after(600):
            while not holds():  # noqa: ASYNC110 - the clock jumps
                await trio.sleep(0.1)

    async def answer(self, call: int) -> dict[str, Any]:
        await self.until(lambda: bool(self._answers(call)))
        [found] = self._answers(call)
        return found

    def _answers(self, call: int) -> list[dict[str, Any]]:
        return [each for each in self.frames if each.get("id") == call]

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        return await self.answer(await self.start(method, **params))

    async def prompt(self, text: str) -> int:
        block = {"type": "text", "text": text}
        return await self.start("session/prompt", sessionId="s1", prompt=[block])

    def texts(self) -> list[str]:
        updates = [each["params"]["update"] for each in self.frames if "method" in each]
        chunks = ("agent_message_chunk", "agent_thought_chunk")
        found = [each for each in updates if each["sessionUpdate"] in chunks]
        return [each["content"]["text"].strip() for each in found]


@pytest.fixture
def daemon() -> Daemon:
    return Daemon()


@pytest.fixture
async def editor(
    daemon: Daemon, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Editing]:
    @asynccontextmanager
    async def connect(*_: object, **__: object) -> AsyncIterator[Daemon]:
        yield daemon

    monkeypatch.setattr(agent, "connect", connect)
    ours, theirs = trio.testing.memory_stream_one_way_pair()
    editing = Editing(ours)
    wire = EditorWire(theirs, editing)  # type: ignore[arg-type]
    settings = EditorSettings(root="/w", handle=None, profile=None, wording=str)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wire.write)
        nursery.start_soon(EditorAgent(settings, wire, nursery).serve)
        await editing.call("initialize", protocolVersion=1)
        yield editing
        nursery.cancel_scope.cancel()


async def test_a_session_that_has_just_begun_is_followed_though_the_connection_is_lost(
    daemon: Daemon, editor: Editing, autojump_clock: MockClock
) -> None:
    busy = CommandFailed("unavailable", "it is being started")
    daemon.failures = {"read": [LOST, busy], "show": [LOST, busy]}
    call = await editor.start("session/new", cwd="/w", mcpServers=[])
    assert (await editor.answer(call))["result"]["sessionId"] == "s1"
    daemon.say("hello")
    await editor.until(lambda: "hello" in editor.texts())
    await editor.until(lambda: not any(daemon.failures.values()))
    assert editor.texts() == ["hello"]


async def test_a_thread_whose_load_fails_is_followed_as_before(
    daemon: Daemon, editor: Editing, autojump_clock: MockClock
) -> None:
    await editor.call("session/new", cwd="/w", mcpServers=[])
    daemon.say("one")
    await editor.until(lambda: editor.texts() == ["one"])
    daemon.failures = {"read": [LOST]}
    assert "lost" in (await editor.call("session/load", sessionId="s1"))["error"]["message"]
    daemon.say("two")
    await editor.until(lambda: editor.texts() == ["one", "two"])
    # Two at once: each replays, and one of them is followed.
    calls = [await editor.start("session/load", sessionId="s1") for _ in range(2)]
    for each in calls:
        assert "result" in await editor.answer(each)
    daemon.say("three")
    await editor.until(lambda: "three" in editor.texts())
    await trio.sleep(60)
    assert editor.texts().count("three") == 1


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize("gone_s", [1.0, 100.0])
async def test_cancels_that_were_not_delivered_are_after_any_time(
    daemon: Daemon,
    editor: Editing,
    gone_s: float,
    is_closed: bool,
    autojump_clock: MockClock,
) -> None:
    await editor.call("session/new", cwd="/w", mcpServers=[])
    calls = [await editor.prompt(text) for text in ("a", "b", "c")]
    await editor.until(lambda: daemon.sent == 3)
    daemon.connect(False)
    if is_closed:
        await editor.call("session/close", sessionId="s1")
    else:
        await editor.notify("session/cancel", sessionId="s1")
    for each in calls:
        assert (await editor.answer(each))["result"] == {"stopReason": "cancelled"}
    await trio.sleep(gone_s)
    assert daemon.interrupted == []
    busy, gone = CommandFailed("busy", "it is being started"), CommandFailed("not_found", "no m1")
    daemon.failures = {"interrupt": [busy, gone]}
    daemon.connect(True)
    await editor.until(lambda: daemon.interrupted == ["m2", "m3"])
    assert "no m1" in editor.texts()


async def test_an_entry_a_request_or_a_prompt_that_fails_by_a_defect_ends_nothing(
    daemon: Daemon, editor: Editing, autojump_clock: MockClock
) -> None:
    await editor.call("session/new", cwd="/w", mcpServers=[])
    steps: Any = [None]
    daemon.add(ev.Plan(steps=steps))
    daemon.say("behind it")
    await editor.until(lambda: "behind it" in editor.texts())
    kind: Any = "of a later version"
    options = [Choice(id="yes", name="Yes", kind=kind)]
    fields: dict[str, Any] = {"session": "s1", "turn": None}
    daemon.ask(request(**fields, id="odd", options=options))
    notice = "A question cannot be shown here: aegis-actors request show odd"
    await editor.until(lambda: notice in editor.texts())
    daemon.ask(request(**fields, id="plain"))
    asked = "session/request_permission"
    await editor.until(lambda: asked in [each.get("method") for each in editor.frames])
    daemon.failures = {"handoff": [ValueError("odd")]}
    assert "by a defect" in (await editor.answer(await editor.prompt("a")))["error"]["message"]
    await editor.prompt("b")
    await editor.until(lambda: daemon.sent == 1)


async def test_a_prompt_whose_images_cannot_be_written_is_refused(
    daemon: Daemon,
    editor: Editing,
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await editor.call("session/new", cwd="/w", mcpServers=[])
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    blocks = [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]
    refused = await editor.call("session/prompt", sessionId="s1", prompt=blocks)
    assert refused["error"]["message"] == (
        "the session did not get the prompt: its images cannot be written (No such file or "
        "directory): make room in the directory for temporary files, or name another one in TMPDIR"
    )
    # A turn begins once all prompts before it are sent or refused.
    prompt = await editor.prompt("a")
    await editor.until(lambda: daemon.sent == 1)
    messages = [{"id": "m1", "sender": "human"}]
    daemon.enter("turn_opened", turn=1, messages=messages, text="a")
    daemon.enter("turn_ended", turn=1, outcome="completed")
    assert (await editor.answer(prompt))["result"] == {"stopReason": "end_turn"}


async def test_a_cancelled_prompt_is_answered_as_such_when_the_daemon_is_gone(
    daemon: Daemon, editor: Editing, autojump_clock: MockClock
) -> None:
    await editor.call("session/new", cwd="/w", mcpServers=[])
    cancelled = await editor.prompt("a")
    await editor.until(lambda: daemon.sent == 1)
    messages = [{"id": "m1", "sender": "human"}]
    daemon.enter("turn_opened", turn=1, messages=messages, text="a")
    daemon.say("begun")
    await editor.until(lambda: "begun" in editor.texts())
    other = await editor.prompt("b")
    await editor.until(lambda: daemon.sent == 2)
    daemon.connect(False)
    await editor.notify("$/cancel_request", requestId=cancelled)
    assert (await editor.answer(cancelled))["result"] == {"stopReason": "cancelled"}
    assert "aegis-actors up" in (await editor.answer(other))["error"]["message"]
    daemon.connect(True)
    await editor.until(lambda: daemon.interrupted == ["m1"])
