"""``aegis-actors mcp`` in front of a real daemon, with the official client of both eras."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
from typing import Any

import pytest
import trio
from mcp import Client
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from tests.e2e.harness import GUARD_S, DaemonProcess, LiveTerminal
from tests.e2e.mcp_client import command_of, connect_command
from tests.e2e.watchers import watching_over

pytestmark = [
    pytest.mark.real,
    pytest.mark.filterwarnings("ignore:resources/(un)?subscribe is removed"),
]

each_era = pytest.mark.parametrize("era", ["legacy", "auto"])

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


async def called(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return dict(result.structured_content or {})


def connections(daemon: DaemonProcess) -> list[str]:
    """The actors of the clients that speak MCP over a command."""
    tree = daemon.call("tree")
    [found] = [each for each in tree["children"] if each["name"] == "connections"]
    names = [each["name"] for each in found["children"]]
    return [name for name in names if name.startswith("mcp:stdio-")]


@each_era
async def test_a_client_acts_under_the_handle_of_its_command_and_no_other(
    daemon: DaemonProcess, terminal: LiveTerminal, handle: str, era: str
) -> None:
    with trio.fail_after(GUARD_S):
        async with connect_command(daemon, era, handle) as client:
            record = await called(client, "aegis_term_run", name=terminal.name, cmd="echo hi")
            assert (record["stdout"], record["writer"]) == ("hi\n", f"agent:{handle}")
            refused = await client.call_tool("aegis_inbox_read", {"from_handle": "bob"})
            assert refused.is_error
            assert f"belongs to '{handle}'" in refused.content[0].text  # type: ignore[union-attr]
            assert "aegis_down" not in {each.name for each in (await client.list_tools()).tools}


def test_every_request_of_a_pipe_is_answered_and_the_last_needs_no_newline(
    daemon: DaemonProcess, terminal: LiveTerminal, handle: str
) -> None:
    run = {"name": terminal.name, "cmd": "sleep 1; echo piped"}
    requests = [
        INITIALIZE,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {
            "jsonrpc": "2.0",
            "id": 2.0,
            "method": "tools/call",
            "params": {"name": "aegis_term_run", "arguments": run},
        },
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": 3, "method": "ping"},
    ]
    command = command_of(daemon, handle)
    done = subprocess.run(
        [command.command, *command.args],
        env=command.env,
        cwd=command.cwd,
        input="\n".join(map(json.dumps, requests)).encode(),
        capture_output=True,
        timeout=GUARD_S,
        check=True,
    )
    answers = {each.get("id"): each for each in map(json.loads, done.stdout.splitlines())}
    assert answers.keys() == {0, 1, 2, 3, None}
    assert answers[2]["result"]["structuredContent"]["stdout"] == "piped\n"
    assert answers[None]["error"]["code"] == -32600


@each_era
async def test_each_client_is_one_actor_that_ends_with_it(
    own_daemon: DaemonProcess, era: str
) -> None:
    daemon = own_daemon
    await trio.to_thread.run_sync(daemon.start)
    with trio.fail_after(GUARD_S):
        async with (
            connect_command(daemon, era, "pm") as first,
            connect_command(daemon, era, "pm") as second,
        ):
            for client in (first, first, second):
                await called(client, "aegis_term_list")
            assert len(connections(daemon)) == 2
        while connections(daemon):  # noqa: ASYNC110 -- nobody is told when a connection is gone
            await trio.sleep(0.01)
    assert await trio.to_thread.run_sync(daemon.stop) == 0


@each_era
async def test_progress_is_told_while_a_command_runs(
    daemon: DaemonProcess, terminal: LiveTerminal, handle: str, era: str
) -> None:
    told: list[str] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")
        await called(other, "aegis_term_keys", name=terminal.name, keys="\r")

    with trio.fail_after(GUARD_S):
        async with (
            connect_command(daemon, era, handle) as client,
            connect_command(daemon, era, f"{handle}-2") as other,
        ):
            record = await client.call_tool(
                "aegis_term_run",
                {"name": terminal.name, "cmd": "echo begun; cat | head -n 1", "timeout": GUARD_S},
                progress_callback=on_progress,
            )
    assert not record.is_error
    assert told[0] == "begun"


@each_era
async def test_a_watched_ledger_notifies(
    daemon: DaemonProcess, terminal: LiveTerminal, handle: str, era: str
) -> None:
    uri = f"aegis://terminals/{terminal.name}/ledger"
    server = stdio_client(command_of(daemon, handle))
    with trio.fail_after(GUARD_S):
        async with watching_over(server, era, [uri]) as watcher:
            record = await trio.to_thread.run_sync(terminal.run, "echo one")
            assert await watcher.next() == uri
            assert await watcher.read(uri) == {"result": [record]}
            await trio.to_thread.run_sync(terminal.run, "echo two")
            assert await watcher.next() == uri


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
@each_era
async def test_a_call_in_hand_is_answered_when_the_daemon_goes(
    own_daemon: DaemonProcess, era: str, kill: bool
) -> None:
    daemon = own_daemon
    await trio.to_thread.run_sync(daemon.start)

    async def wait_for_ever(client: Client, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        try:
            result = await client.call_tool("aegis_term_wait", {"name": "build", "idle_s": 1000})
            outcomes.append(str(result.content))
        except MCPError as error:
            outcomes.append(str(error))

    outcomes: list[str] = []
    with trio.fail_after(GUARD_S):
        async with connect_command(daemon, era, "pm") as client, trio.open_nursery() as nursery:
            await called(client, "aegis_term_spawn", name="build")
            await nursery.start(wait_for_ever, client)
            await called(client, "aegis_term_list")  # so the other call has arrived
            await trio.to_thread.run_sync(daemon.kill if kill else daemon.stop)
    [outcome] = outcomes
    if kill:
        assert "ended: start it with: aegis-actors up" in outcome
    else:
        assert "closed" in outcome or "stopp" in outcome or "went away" in outcome


def test_an_older_client_sees_why_it_is_not_served(own_daemon: DaemonProcess) -> None:
    done = subprocess.run(
        [*own_daemon.program, "mcp", "--handle", "pm"],
        cwd=own_daemon.root,
        env=own_daemon.environment,
        input=json.dumps(INITIALIZE) + "\n",
        capture_output=True,
        text=True,
        timeout=GUARD_S,
        check=False,
    )
    answer = json.loads(done.stdout)
    assert (answer["id"], done.returncode) == (0, 1)
    assert "start one with: aegis-actors up" in answer["error"]["message"]
    assert done.stderr == f"aegis-actors: {answer['error']['message']}\n"


def test_the_daemon_says_how_a_client_is_configured(daemon: DaemonProcess) -> None:
    assert f" aegis-actors mcp --handle NAME --root {daemon.root}\n" in daemon.banner


def test_a_handle_that_cannot_be_one_is_refused_in_one_sentence(daemon: DaemonProcess) -> None:
    done = daemon.cli("mcp", "--handle", "a b")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("aegis-actors: handle 'a b' is not a name: use ")
    assert daemon.cli("mcp").returncode == 2


@pytest.mark.alone
def test_the_bridge_costs_little_more_to_start_than_the_command_line_itself(
    daemon: DaemonProcess,
) -> None:
    def cpu_s(*words: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, input=b"", capture_output=True, timeout=GUARD_S, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    words = [*daemon.program, "mcp", "--handle", "pm", "--root", str(daemon.root)]
    pairs = [(cpu_s(sys.executable, "-c", "import click"), cpu_s(*words)) for _ in range(9)]
    click, bridge = (statistics.median(each) for each in zip(*pairs, strict=True))
    assert bridge < 3 * click, f"importing click {click:.3f} s of CPU, the bridge {bridge:.3f} s"
