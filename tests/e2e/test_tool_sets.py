"""The tools that a real daemon offers at the MCP addresses of agents, with the official client."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from aegis.protocol.table import TOOLS
from aegis.protocol.tool_sets import CORE, WORK
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.mcp_client import connect_mcp_to
from tests.e2e.streams import stream_client
from tests.e2e.test_agents import Team, open_request
from tests.resources.waiting import until

pytestmark = [
    pytest.mark.real,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

STAND_IN = Path(__file__).parents[1] / "fakes" / "agents" / "main.py"
AGENT = {
    "provider": "acp",
    "asking_mode": "default",
    "command": [sys.executable, str(STAND_IN), "acp"],
}
PROFILES = {
    "plain": {**AGENT, "tools": ["core"]},
    "boss": AGENT,
    "reader": {**AGENT, "permission": "read"},
    "hasty": {**AGENT, "permission": "full", "call_limit_s": 2},
}

each_era = pytest.mark.parametrize("era", ["legacy", "auto"])


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[DaemonProcess]:
    """A daemon with profiles whose sessions are stand-ins."""
    (own_daemon.root / ".aegis.yaml").write_text(json.dumps({"agents": PROFILES}))
    own_daemon.start("--port", "0", "--trust")
    yield own_daemon
    own_daemon.stop()


def entries(daemon: DaemonProcess, handle: str, kind: str) -> list[dict[str, Any]]:
    """The durable entries of this kind in a session's transcript."""
    found = daemon.call("session_read", handle=handle, last_n=1000)["result"]
    return [each["fields"] for each in found if each["kind"] == kind]


def send(daemon: DaemonProcess, handle: str, turn: int) -> None:
    """Have the session's agent do its turn number ``turn``."""
    daemon.call("handoff", target_handle=handle, context="SAY hello", from_handle="pm")

    until(lambda: len(entries(daemon, handle, "turn_ended")) == turn, f"turn {turn} has ended")


def servers(daemon: DaemonProcess, handle: str) -> list[dict[str, Any]]:
    """The states of MCP servers that the session's agent had, in order."""
    events = [each["event"] for each in entries(daemon, handle, "event")]
    return [each["mcp_servers"] for each in events if each["type"] == "system_init"]


@each_era
async def test_a_driver_learns_once_that_its_agent_has_listed_our_tools(
    team: DaemonProcess, era: str
) -> None:
    handle = team.call("spawn", profile="plain")["handle"]
    with trio.fail_after(GUARD_S):
        await trio.to_thread.run_sync(send, team, handle, 1)
        async with connect_mcp_to(team, era, handle) as client:
            await trio.to_thread.run_sync(send, team, handle, 2)
            assert servers(team, handle) == [{}]
            for _ in range(3):
                await client.list_tools()
            await trio.to_thread.run_sync(send, team, handle, 3)
    assert servers(team, handle) == [{}, {"aegis": "connected"}]


def text(result: Any, number: int = 0) -> str:
    """A text of a tool's result."""
    shown: str = result.content[number].text
    return shown


async def names(daemon: DaemonProcess, handle: str, era: str = "auto") -> list[str]:
    """The tools at the address of ``handle``."""
    async with connect_mcp_to(daemon, era, handle) as client:
        return [each.name for each in (await client.list_tools()).tools]


async def test_the_tools_of_a_session_are_chosen_with_its_url_and_survive_a_restart(
    own_daemon: DaemonProcess,
) -> None:
    core = [entry.tool for entry in TOOLS if entry.name in CORE]
    work = [entry.tool for entry in TOOLS if entry.name in WORK]
    every = [entry.tool for entry in TOOLS if not entry.operator]
    own_daemon.start("--port", "0")
    made = own_daemon.cli("session", "new", "--handle", "pm", "--tools", "core")
    again = own_daemon.cli("session", "new", "--handle", "pm")
    assert made.stdout == again.stdout
    own_daemon.call("session_new", handle="dev")
    own_daemon.call("session_new", handle="ann", tools=["aegis_term_run", "shell_open"])
    with trio.fail_after(GUARD_S):
        for _ in range(2):
            assert await names(own_daemon, "pm") == core
            assert await names(own_daemon, "dev") == work
            assert await names(own_daemon, "ann") == ["aegis_term_run", "shell_open"]
            own_daemon.kill()
            own_daemon.start("--port", "0")
        assert own_daemon.call("session_new", handle="PM", tools=["all"])["tools"] == ["all"]
        assert await names(own_daemon, "pm") == every
        own_daemon.call("session_new", handle="pm", tools=["core"])
        own_daemon.call("session_revoke", handle="pm")
        assert await names(own_daemon, "pm") == work
    refused = own_daemon.cli("session", "new", "--handle", "pm", "--tools", "core,term_runn")
    assert refused.returncode != 0
    assert "'term_runn' is no tool and no set of tools; did you mean 'term_run'?" in refused.stderr
    own_daemon.stop()


@each_era
async def test_a_session_url_takes_its_own_handle_and_only_tools_of_its_set(
    own_daemon: DaemonProcess, era: str
) -> None:
    own_daemon.start("--port", "0")
    own_daemon.call("session_new", handle="pm", tools=["core"])
    with trio.fail_after(GUARD_S):
        async with connect_mcp_to(own_daemon, era, "pm") as client:
            for tool in (await client.list_tools()).tools:
                assert "from_handle" not in tool.input_schema["properties"], tool.name
            own = await client.call_tool("aegis_term_list", {"from_handle": "pm"})
            assert not own.is_error
            refused = await client.call_tool("aegis_term_signal", {"name": "a", "signal": "INT"})
            assert text(refused) == (
                "aegis_term_signal: not offered at this address, whose tools are core: the set "
                "'all' has it; a person chooses it with `aegis-actors session new --handle HANDLE "
                "--tools SETS`"
            )
            meta: Any = (await client.call_tool("aegis_meta")).structured_content
    assert (meta["handle"], meta["kind"], meta["session"]) == ("pm", "client", None)
    assert "aegis_inbox_wait" in meta["tools"]
    assert "aegis_term_signal" in meta["other_tools"]
    assert set(meta["tools"]) | set(meta["other_tools"]) == {
        entry.tool for entry in TOOLS if not entry.operator
    }
    assert "session new" in meta["how_to_get"]
    own_daemon.stop()


async def test_a_driven_session_is_offered_core_without_the_inbox_and_learns_who_it_is(
    team: DaemonProcess,
) -> None:
    boss = team.call("spawn", profile="boss")["handle"]
    handle = team.call("spawn", profile="plain", from_handle=boss)["handle"]
    team.call("session_new", handle="guest")
    with trio.fail_after(GUARD_S):
        async with connect_mcp_to(team, "auto", handle) as client:
            listed = [each.name for each in (await client.list_tools()).tools]
            refused = await client.call_tool("aegis_inbox_wait", {"timeout": 1})
            meta: Any = (await client.call_tool("aegis_meta")).structured_content
        tools_of_boss = await names(team, boss)
    core = [entry.tool for entry in TOOLS if entry.name in CORE]
    assert listed == [each for each in core if each != "aegis_inbox_wait"]
    assert text(refused) == (
        "aegis_inbox_wait: not offered here: messages arrive as turns of your conversation"
    )
    assert "aegis_spawn" in tools_of_boss
    assert not {"aegis_inbox_wait", "aegis_inbox_read"} & set(tools_of_boss)
    assert (meta["handle"], meta["kind"], meta["spawned_by"]) == (handle, "session", boss)
    assert (meta["profile"], meta["permission"]) == ("plain", "ask")
    assert meta["peers"] == [{"handle": boss, "profile": "boss", "spawned_by": "human"}]
    assert meta["handles"] == ["guest"]
    assert meta["tools"] == listed
    assert "aegis_spawn" in meta["other_tools"]
    assert "arrive as turns" in meta["inbox"]
    assert ".aegis.yaml" in meta["how_to_get"]


def test_meta_in_a_shell_names_the_operator_or_the_handle_that_it_acts_as(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start("--port", "0")
    operator = json.loads(own_daemon.cli("agent", "meta", "--json").stdout)
    assert (operator["handle"], operator["kind"]) == ("human", "human")
    assert operator["tools"] == [entry.tool for entry in TOOLS if entry.name in WORK]
    assert {*operator["tools"], *operator["other_tools"]} == {entry.tool for entry in TOOLS}
    assert "aegis_call" in operator["how_to_get"]
    shown = own_daemon.cli("--as", "pm", "agent", "meta").stdout.splitlines()
    assert shown[:1] == ["pm"], own_daemon.cli("--as", "pm", "agent", "meta")
    assert shown[1].split() == ["kind", "client"]
    own_daemon.stop()


@pytest.mark.long
@each_era
async def test_a_call_that_waits_returns_before_the_agent_gives_it_up(
    team: DaemonProcess, era: str
) -> None:
    handle = team.call("spawn", profile="hasty")["handle"]
    team.call("term_spawn", name="build")
    with trio.fail_after(GUARD_S):
        async with connect_mcp_to(team, era, handle) as client:
            begun = trio.current_time()
            ran = await client.call_tool(
                "aegis_term_run", {"name": "build", "cmd": "sleep 600", "timeout": 300}
            )
            waited = await client.call_tool("aegis_term_wait", {"name": "build"})
            passed_s = trio.current_time() - begun
            listed = await client.call_tool("aegis_term_list")
    # Each waits 1.5 s; a busy machine adds to that.
    assert 3 <= passed_s < 60
    assert (ran.structured_content or {})["timed_out"]
    assert (waited.structured_content or {})["reason"] == "timeout"
    assert [text(ran, -1), text(waited, -1)] == [
        "Calls of yours return within 1.5 s, before they are cut: the command keeps running: wait "
        "for its end with aegis_term_wait.",
        "Calls of yours return within 1.5 s, before they are cut: call aegis_term_wait again to "
        "wait on.",
    ]
    assert len(listed.content) == 1
    team.call("term_close", name="build")


async def test_a_session_that_may_not_send_keys_cannot_type_on_a_stream(
    team: DaemonProcess,
) -> None:
    team.call("term_spawn", name="build")
    keys = {}
    for profile in ("reader", "hasty"):
        handle = team.call("spawn", profile=profile)["handle"]
        keys[profile] = team.call("session_new", handle=handle)["url"].rpartition("/")[2]
    async with stream_client(team, session=keys["reader"]) as client:
        stream = await client.open("terminal_output", name="build")
        await stream.type(b"echo read''er\r")
        item = await stream.item_where(lambda item: "keys_refused" in item)
        assert item["keys_refused"]["code"] == "forbidden"
        assert "'term_keys' is not allowed" in item["keys_refused"]["message"]
    async with stream_client(team, session=keys["hasty"]) as client:
        stream = await client.open("terminal_output", name="build", cursor=0)
        await stream.type(b"echo has''ty\r")
        printed = await stream.bytes_until(b"hasty\r\n")
        assert b"read" not in printed
        outcome = await client.call("term_wait", name="build", seq=0)
    assert outcome["record"]["stdout"].strip() == "hasty"


CALL_TOOL = "mcp__aegis__aegis_call"


def use(name: str, /, **arguments: object) -> str:
    """The order to ask for a call of a tool through aegis_call."""
    return f"USE {CALL_TOOL} {json.dumps({'tool': name, 'arguments': arguments})}"


def test_a_request_for_aegis_call_is_one_for_the_inner_tool_and_so_is_its_scope(
    own_daemon: DaemonProcess,
) -> None:
    team = Team(own_daemon)
    run = use("aegis_term_run", name="build", cmd="make")
    ann = team.spawn(run)
    request = open_request(team)
    assert request["tool"] == "mcp__aegis__aegis_term_run"
    assert request["input"] == {"name": "build", "cmd": "make"}
    assert [each["name"] for each in request["options"]] == [
        "Allow once",
        "Deny",
        "Allow aegis_term_run for this session",
    ]
    answer(team, request, answer="allow", scope="session")
    team.has_turns(ann, 1)
    # The agent got the call as it is, and no rule: aegis_call stays a tool that needs permission.
    outer = {"tool": "aegis_term_run", "arguments": {"name": "build", "cmd": "make"}}
    assert json.loads(team.texts(ann)[-1]) == ["allow", outer, 0, None]
    # The same tool is allowed from now on; another one asks, though the agent calls the same tool.
    team.send(ann, use("term_run", name="build", cmd="make test"))
    team.has_turns(ann, 2)
    assert json.loads(team.texts(ann)[-1])[0] == "allow"
    team.send(ann, use("aegis_term_close", name="build"))
    second = open_request(team)
    assert (second["tool"], second["input"]) == ("mcp__aegis__aegis_term_close", {"name": "build"})
    answer(team, second, answer="deny", scope="once")
    team.has_turns(ann, 3)
    assert json.loads(team.texts(ann)[-1])[0] == "deny"
    # What a policy allows, it allows here too; a call that shows no tool is asked for as it is.
    team.send(ann, use("aegis_queue_list"))
    team.has_turns(ann, 4)
    assert json.loads(team.texts(ann)[-1])[0] == "allow"
    team.send(ann, f'USE {CALL_TOOL} {{"arguments": {{}}}}')
    odd = open_request(team)
    assert (odd["tool"], odd["no_session_scope"]) == (CALL_TOOL, True)
    answer(team, odd, answer="deny", scope="once")
    team.has_turns(ann, 5)
    own_daemon.stop()


def answer(team: Team, request: dict[str, Any], **fields: object) -> None:
    team.call("request_answer", id=request["id"], digest=request["digest"], **fields)
