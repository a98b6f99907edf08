"""A crash injected into each actor class in turn, in the midst of a daemon at work.

Callers in flight get what the specification says, siblings notice nothing, the tree shows it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

import aegis
from actors import Actor
from actors.faults import Crash
from aegis.client.line import CommandFailed
from aegis.servers.mcp import post_answer
from tests.e2e.busy import NAMES, Busy, busy_daemon, callers, crashing, endpoint_of, nodes
from tests.e2e.callers import Lost, Pending
from tests.e2e.harness import GUARD_S, Gate
from tests.e2e.watchers import watching_at

pytestmark = [
    pytest.mark.real,
    pytest.mark.usefixtures("tidied"),
    # The official client leaves these behind when it goes, or when its connection is lost.
    pytest.mark.filterwarnings("ignore:Async generator '.*' was garbage collected:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


NewGate = Callable[[], Gate]
Test = Callable[..., Any]

COVERED: set[str] = set()
"""The actor classes that a test of this file makes crash."""

OF_NODES = {"HostLink", "NodeKeeper", "NodeLink", "TerminalHost"}
"""Those that are there only where nodes are wanted."""


OF_AGENTS = {"AgentSession", "CommandTerminal", "Driver", "TerminalAgent"}
"""Those of agents, of which none is at work here: ``test_agents`` and others crash them."""

OF_WORKFLOWS = {"WorkflowProcess"}
"""Those of workflows, of which none runs here: ``test_workflows`` crashes them."""

OF_TELEGRAM = {"Outbox", "TelegramDesk"}
"""Those of Telegram, which no bot is told to serve here: ``test_telegram`` crashes them."""


def crash_of(name: str) -> Callable[[Test], Test]:
    """The test makes actors of this class crash."""

    def covering(test: Test) -> Test:
        COVERED.add(name)
        return test

    return covering


def subclasses(base: type[Any]) -> Iterator[type[Any]]:
    for each in base.__subclasses__():
        yield each
        yield from subclasses(each)


def actor_classes() -> set[str]:
    """All of the daemon that others do not derive from."""
    for module in pkgutil.walk_packages(aegis.__path__, "aegis."):
        importlib.import_module(module.name)
    ours = [each for each in subclasses(Actor) if each.__module__.startswith("aegis.")]
    bases = {base for each in ours for base in each.__mro__[1:]}
    return {each.__name__ for each in ours if each not in bases}


async def test_every_actor_class_of_the_daemon_is_here(tmp_path: Path, new_gate: NewGate) -> None:
    assert actor_classes() == COVERED | OF_NODES | OF_AGENTS | OF_WORKFLOWS | OF_TELEGRAM
    async with busy_daemon(tmp_path, new_gate) as busy:
        kinds = {node.kind for node in nodes(busy.daemon.system.tree())}
    # Canvases are opened below.
    assert kinds - {"Supervisor"} == COVERED - {"CanvasActor"}


async def refused(pending: Pending) -> str:
    """The one sentence that a call ended with."""
    outcome = await pending.outcome()
    assert isinstance(outcome, CommandFailed), outcome
    return str(outcome)


async def read(busy: Busy, name: str) -> list[dict[str, Any]]:
    reply = await busy.callers["line"].call("term_read", name=name, since_seq=-1)
    records: list[dict[str, Any]] = reply["result"]
    return records


def is_true(record: object, name: str) -> bool:
    """Whether this is what the command of that terminal did."""
    assert isinstance(record, dict), record
    told = [record[key] for key in ("seq", "exit", "stdout", "end", "killed_by_restart")]
    return told == [0, 5, f"begun\n{name}\n", "exited", False]


def is_killed(record: object) -> bool:
    """Whether this is the record of a command that ended with its shell."""
    assert isinstance(record, dict), record
    told = [record[key] for key in ("seq", "exit", "stdout", "end", "killed_by_restart")]
    return told == [0, None, "begun\n", "killed_by_restart", True]


async def check_aftermath(busy: Busy, *crashed: str) -> list[dict[str, Any]]:
    """Once all have ended: nobody else noticed anything, and the tree shows what crashed.

    Gives the records of ``build``.
    """
    for gate in busy.gates.values():
        gate.open()
    await check_wakes(busy)
    [other] = await read(busy, "other")
    assert is_true(other, "other")
    for face, caller in busy.callers.items():
        infos = (await caller.call("term_list"))["result"]
        assert [info["name"] for info in infos] == list(NAMES), face
    again = await busy.callers["websocket"].call("term_run", name="build", cmd="echo works")
    assert (again["seq"], again["stdout"]) == (1, "works\n")
    # A connection's actor is not restarted: the next call of its client begins another.
    restarted = [path for path in crashed if not path.startswith("root/connections/")]
    assert restarts_in(await busy.callers["line"].call("tree")) == dict.fromkeys(restarted, 1)
    assert busy.crashed() == list(crashed)
    assert busy.logged() == []
    return (await read(busy, "build"))[:1]


async def check_wakes(busy: Busy) -> None:
    """The watcher hears of both commands once, whatever became of its wait."""
    woken = await busy.all_wakes(len(NAMES))
    assert sorted(each.split("/")[0] for each in woken) == ["term:build", "term:other"]
    reply = await busy.callers["line"].call("inbox_read", from_handle="watcher", after=woken[-1])
    assert reply["messages"] == []


def restarts_in(node: dict[str, Any]) -> dict[str, int]:
    """The places of the tree, as it is told, that began anew."""
    found = {node["path"]: node["restarts"]} if node["restarts"] else {}
    for child in node["children"]:
        found |= restarts_in(child)
    return found


# The actors of a terminal.


@crash_of("LedgerWriter")
async def test_a_writer_that_crashes_costs_nothing(tmp_path: Path, new_gate: NewGate) -> None:
    path = "root/terminals/build/writer"
    with trio.fail_after(GUARD_S):
        async with busy_daemon(tmp_path, new_gate) as busy:
            with crashing(path):
                busy.gates["build"].open()
                told = await busy.runs["build"].result()
            assert is_true(told, "build")
            assert await check_aftermath(busy, path) == [told]
            assert is_true(await busy.runs["other"].result(), "other")
            assert await busy.wait.result()


@crash_of("Terminal")
async def test_a_front_that_crashes_costs_its_callers_their_answers_and_the_command_goes_on(
    tmp_path: Path, new_gate: NewGate
) -> None:
    path = "root/terminals/build/terminal"
    with trio.fail_after(GUARD_S):
        async with busy_daemon(tmp_path, new_gate) as busy:
            queued = busy.call("line", "term_run", name="build", cmd="echo never", timeout=60)
            await trio.testing.wait_all_tasks_blocked()  # it is sent
            await busy.callers["line"].call("term_read", name="build")
            with crashing(path):
                reading = busy.call("line", "term_read", name="build")
                assert await refused(reading) == (
                    "terminal 'build' had an internal error while it handled this call; nothing is "
                    "lost: call again"
                )
            sentence = (
                "terminal 'build' had an internal error while it handled this call; if your "
                "command was typed, it keeps running: look for its record with aegis_term_read "
                "before you run it again"
            )
            assert await refused(busy.runs["build"]) == f"aegis_term_run: {sentence}"
            assert await refused(queued) == sentence
            [record] = await check_aftermath(busy, path)
            assert is_true(record, "build")
            assert is_true(await busy.runs["other"].result(), "other")
            assert await busy.wait.result()


async def test_a_list_that_meets_a_crash_of_a_front_is_whole_all_the_same(
    tmp_path: Path, new_gate: NewGate
) -> None:
    with trio.fail_after(GUARD_S):
        async with busy_daemon(tmp_path, new_gate) as busy:
            with crashing("root/terminals/build/terminal"):
                infos = (await busy.callers["line"].call("term_list"))["result"]
            assert [info["name"] for info in infos] == list(NAMES)


@crash_of("Shell")
async def test_a_shell_that_crashes_ends_its_command_whose_caller_gets_the_record(
    tmp_path: Path, new_gate: NewGate
) -> None:
    path = "root/terminals/build/shell"
    with trio.fail_after(GUARD_S):
        async with busy_daemon(tmp_path, new_gate) as busy:
            with crashing(path):
                typing = busy.call("line", "term_keys", name="build", keys=" ")
                assert await refused(typing) == (
                    "terminal 'build' had an internal error while it handled this call; the keys "
                    "may have been typed: look with aegis_term_read before you send them again"
                )
            told = await busy.runs["build"].result()
            assert is_killed(told)
            assert await check_aftermath(busy, path) == [told]
            assert is_true(await busy.runs["other"].result(), "other")
            assert await busy.wait.result()


# Inboxes.


@crash_of("Inbox")
async def test_an_inbox_that_crashes_tells_who_waits_and_has_the_wake_once(
    tmp_path: Path, new_gate: NewGate
) -> None:
    path = "root/inboxes/watcher/inbox"
    with trio.fail_after(GUARD_S):
        async with busy_daemon(tmp_path, new_gate) as busy:
            waiting = busy.call("auto", "inbox_wait", timeout=60)
            with crashing(path):
                busy.gates["build"].open()
                assert await refused(busy.wait) == (
                    "the inbox of 'watcher' ended before it could answer; call again: nothing "
                    "that it confirmed is lost"
                )
            told = await busy.runs["build"].result()
            assert is_true(told, "build")
            assert await check_aftermath(busy, path) == [told]
            sent = busy.call("line", "handoff", target_handle="bob", context="work")
            assert (await sent.result())["status"] == "landed"
            assert [each["body"] for each in (await waiting.result())["messages"]] == ["work"]


@crash_of("InboxRouter")
async def test_a_router_that_crashes_costs_the_call_in_hand_and_no_wake(
    tmp_path: Path, new_gate: NewGate
) -> None:
    path = "root/inbox-router"
    with trio.fail_after(GUARD_S):
        async with busy_daemon(tmp_path, new_gate) as busy:
            with crashing(path):
                sending = busy.call("line", "handoff", target_handle="bob", context="work")
                assert await refused(sending) == (
                    "the inbox had an internal error while it handled this call; your message "
                    "may have been delivered: if you send it again without the same key, it may "
                    "arrive twice"
                )
            [record] = await check_aftermath(busy, path)
            assert is_true(record, "build")
            assert await busy.runs["build"].result() == record
            assert await busy.wait.result()


async def test_a_router_that_crashes_with_a_wake_costs_no_wake(
    tmp_path: Path, new_gate: NewGate
) -> None:
    """A wake goes straight to a running inbox: the router gets it once that inbox has crashed."""
    paths = ("root/inboxes/watcher/inbox", "root/inbox-router")
    with trio.fail_after(GUARD_S):
        async with busy_daemon(tmp_path, new_gate) as busy:
            with crashing(*paths):
                busy.gates["build"].open()
                told = await busy.runs["build"].result()
                assert is_true(told, "build")
                await refused(busy.wait)
                # No call before that: it would reach the router before the wake does.
                await busy.is_up_again("root/inbox-router")
            assert await check_aftermath(busy, *paths) == [told]
            assert is_true(await busy.runs["other"].result(), "other")


# The directory and the daemon.


@crash_of("TerminalDirectory")
@crash_of("Daemon")
@crash_of("WorkspaceDirectory")
@crash_of("RequestDesk")
@crash_of("QueueDesk")
@crash_of("HistoryDesk")
@crash_of("GroupDesk")
@crash_of("WorkflowDesk")
@crash_of("CanvasDesk")
@crash_of("PushDesk")
@crash_of("AgentDirectory")
@pytest.mark.parametrize(
    ("path", "command", "words"),
    [
        (
            "root/terminal-directory",
            "term_list",
            "the directory of terminals had an internal error while it handled this call; nothing "
            "is lost: call again",
        ),
        (
            "root/workspaces",
            "workspace_list",
            "the directory of workspaces had an internal error while it handled this call; nothing "
            "is lost: call again",
        ),
        (
            "root/agent-directory",
            "list_sessions",
            "the directory of agents had an internal error while it handled this call; nothing is "
            "lost: call again",
        ),
        (
            "root/history",
            "history",
            "the desk of the history had an internal error while it handled this call; nothing is "
            "lost: call again",
        ),
        (
            "root/requests",
            "request_list",
            "the desk of requests had an internal error while it handled this call; nothing is "
            "lost: call again",
        ),
        (
            "root/queues",
            "queue_list",
            "the desk of queues had an internal error while it handled this call; nothing is "
            "lost: call again",
        ),
        (
            "root/groups",
            "group_list",
            "the desk of groups had an internal error while it handled this call; nothing is "
            "lost: call again",
        ),
        (
            "root/workflows",
            "workflow_list",
            "the desk of workflows had an internal error while it handled this call; nothing is "
            "lost: call again",
        ),
        (
            "root/canvas-desk",
            "canvas_list",
            "the desk of canvases had an internal error while it handled this call; nothing is "
            "lost: call again",
        ),
        (
            "root/push",
            "push_list",
            "the desk of notifications had an internal error while it handled this call; nothing "
            "is lost: call again",
        ),
        (
            "root/daemon",
            "status",
            "the daemon had an internal error while it handled this call; nothing is lost: call "
            "again",
        ),
    ],
)
async def test_a_service_that_crashes_costs_the_call_in_hand_and_no_terminal(
    tmp_path: Path, new_gate: NewGate, path: str, command: str, words: str
) -> None:
    with trio.fail_after(GUARD_S):
        async with busy_daemon(tmp_path, new_gate) as busy:
            with crashing(path):
                assert await refused(busy.call("line", command)) == words
            assert await busy.callers["line"].call(command)
            [record] = await check_aftermath(busy, path)
            assert is_true(record, "build")
            assert [await busy.runs["build"].result()] == [record]
            assert is_true(await busy.runs["other"].result(), "other")
            assert await busy.wait.result()


@crash_of("CanvasActor")
@crash_of("CanvasWatcher")
async def test_a_canvas_or_its_watcher_that_crashes_costs_the_call_in_hand_alone(
    tmp_path: Path, new_gate: NewGate
) -> None:
    with trio.fail_after(GUARD_S):
        async with busy_daemon(tmp_path, new_gate) as busy:
            call = busy.callers["line"].call
            info = await call("canvas_open", name="plan", file="plan.md")
            lines = {"name": "plan", "section": "Log"}
            await call("canvas_append_to_section", **lines, text="one")
            await call("canvas_subscribe", name="plan", from_handle="bob")
            with crashing("root/canvases/plan/canvas"):
                await refused(busy.call("line", "canvas_read", name="plan"))
            with crashing("root/canvas-watcher"):
                await call("canvas_open", name="other", file="other.md")
            with crashing("root/canvas-desk"):
                await refused(busy.call("line", "canvas_list"))
            await call("canvas_append_to_section", **lines, text="two", from_handle="ann")
            listed = {each["name"]: each["rev"] for each in (await call("canvas_list"))["result"]}
            assert listed == {"plan": 2, "other": 0}
            text = (await call("canvas_read", name="plan"))["sections"][0]
            assert (text["text"], info["sections"]) == ("one\ntwo", ["body"])
            crashed = ("root/canvases/plan/canvas", "root/canvas-watcher", "root/canvas-desk")
            [record] = await check_aftermath(busy, *crashed)
            assert is_true(record, "build")


async def test_a_directory_that_crashes_costs_the_answer_of_a_broadcast_and_types_nothing(
    tmp_path: Path, new_gate: NewGate
) -> None:
    with trio.fail_after(GUARD_S):
        async with busy_daemon(tmp_path, new_gate) as busy:
            names = list(NAMES)
            lost = busy.call("line", "term_broadcast", names=names, cmd="echo never", timeout=60)
            await busy.callers["websocket"].call("term_list")
            with crashing("root/terminal-directory"):
                await refused(busy.call("legacy", "term_list"))
            assert await refused(lost) == (
                "the directory of terminals had an internal error while it handled this call; "
                "where your command was typed, it keeps running: look for its records with "
                "aegis_term_read before you run it again"
            )
            [record] = await check_aftermath(busy, "root/terminal-directory")
            assert is_true(record, "build")


async def test_a_front_that_crashes_costs_a_broadcast_its_record_alone(
    tmp_path: Path, new_gate: NewGate
) -> None:
    with trio.fail_after(GUARD_S):
        async with busy_daemon(tmp_path, new_gate) as busy:
            names = list(NAMES)
            both = busy.call("line", "term_broadcast", names=names, cmd="true", timeout=60)
            await busy.callers["websocket"].call("term_list")
            with crashing("root/terminals/build/terminal"):
                await refused(busy.call("legacy", "term_read", name="build"))
            busy.gates["other"].open()
            lost, kept = (await both.result())["result"]
            assert (lost["name"], lost["record"]) == ("build", None)
            assert lost["error"].startswith("terminal 'build' did not answer; if your command was ")
            assert (kept["name"], kept["error"]) == ("other", None)
            assert (kept["record"]["seq"], kept["record"]["exit"]) == (1, 0)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
@pytest.mark.parametrize(
    ("path", "uri", "command", "arguments"),
    [
        (
            "root/terminals/build/terminal",
            "aegis://terminals/build/ledger",
            "term_read",
            {"name": "build"},
        ),
        ("root/inboxes/ann/inbox", "aegis://inbox/ann", "inbox_read", {"from_handle": "ann"}),
    ],
)
async def test_whoever_watches_is_told_to_read_again_what_its_actor_may_not_have_told(
    tmp_path: Path,
    new_gate: NewGate,
    mode: str,
    path: str,
    uri: str,
    command: str,
    arguments: dict[str, str],
) -> None:
    with trio.fail_after(GUARD_S):
        async with busy_daemon(tmp_path, new_gate) as busy:
            url = busy.sessions["legacy"]  # of ann
            async with watching_at(url, mode, [uri], {}) as watcher:
                with crashing(path):
                    await refused(busy.call("line", command, **arguments))
                assert await watcher.next() == uri
                assert await watcher.read(uri)


# The servers.


def connection_of(busy: Busy, face: str) -> str:
    """The actor of the client of this face."""
    paths = [node.path for node in nodes(busy.daemon.node("connections")) if not node.children]
    by_handle = [path for path in paths if "/mcp:handle:" in path]
    legacy = [path for path in paths if "/mcp:" in path and path not in by_handle]
    [path] = {
        "line": [path for path in paths if "/line:" in path],
        "websocket": [path for path in paths if "/websocket:" in path],
        "legacy": legacy,
        "auto": by_handle,
    }[face]
    return path


@crash_of("Connection")
@pytest.mark.parametrize("face", ["line", "websocket", "legacy", "auto"])
async def test_a_connection_that_crashes_costs_the_call_in_hand_of_its_client_alone(
    tmp_path: Path, new_gate: NewGate, face: str
) -> None:
    with trio.fail_after(GUARD_S):
        async with busy_daemon(tmp_path, new_gate) as busy:
            waiting = busy.call("auto", "inbox_wait", timeout=60)
            await busy.callers["auto"].call("term_list")
            path = connection_of(busy, face)
            with crashing(path):
                words = await refused(busy.call(face, "term_list"))
            assert words.removeprefix("aegis_term_list: ") == (
                "this connection had an internal error before your call was passed on; nothing "
                "was done: call again"
            )
            [record] = await check_aftermath(busy, path)
            assert connection_of(busy, face) == path
            assert [await busy.runs["build"].result()] == [record]
            assert is_true(record, "build")
            assert is_true(await busy.runs["other"].result(), "other")
            assert await busy.wait.result()
            assert not waiting.is_done
            await busy.callers["line"].call("handoff", target_handle="bob", context="work")
            assert (await waiting.result())["messages"]


async def test_a_client_whose_connection_crashes_again_and_again_costs_nobody_else_anything(
    tmp_path: Path, new_gate: NewGate
) -> None:
    with trio.fail_after(GUARD_S):
        async with busy_daemon(tmp_path, new_gate) as busy:
            path = connection_of(busy, "line")
            for _ in range(8):  # more than a supervisor restarts in its period
                with crashing(path):
                    await refused(busy.call("line", "term_list"))
                assert (await busy.callers["line"].call("term_list"))["result"]
            await check_aftermath(busy, *[path] * 8)


@crash_of("Gateway")
async def test_a_gateway_that_crashes_loses_its_clients_who_connect_again_and_no_command(
    tmp_path: Path, new_gate: NewGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The official client ends with an error if it loses a request whose answer has not begun.
    monkeypatch.setattr(post_answer, "OPEN_AFTER_S", 0.0)
    with trio.fail_after(GUARD_S):
        async with busy_daemon(tmp_path, new_gate) as busy:
            endpoint = endpoint_of(busy.daemon)
            with crashing(also={("gateway.accept.before", 1): Crash()}):
                async with await trio.open_unix_socket(endpoint.socket) as stream:
                    assert await stream.receive_some() == b""
            for each in (*busy.runs.values(), busy.wait):
                assert isinstance(await each.outcome(), Lost)
            await busy.is_up_again("root/gateway")
            async with callers(endpoint, busy.sessions) as busy.callers:
                assert endpoint_of(busy.daemon) == endpoint
                [record] = await check_aftermath(busy, "root/gateway")
                assert is_true(record, "build")
                connections = list(nodes(busy.daemon.node("connections")))[1:]
                assert len(connections) == len(busy.callers)
