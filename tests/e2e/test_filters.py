"""Subscriptions with a filter: over MCP in both eras, on the command line, and across kill -9."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client

from tests.e2e.conftest import Connect
from tests.e2e.harness import DaemonProcess, LiveTerminal, Wakes

pytestmark = [
    pytest.mark.real,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

COMMANDS = ["true pytest", "false pytest", "true make", "false make"]


def cmds(messages: list[dict[str, Any]]) -> list[str]:
    """The commands that these messages tell of."""
    return [each["body"].splitlines()[0].split(" · ")[0].removeprefix("$ ") for each in messages]


async def woken_by(client: Client, count: int) -> list[str]:
    """What the next ``count`` messages tell of."""
    messages: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    while len(messages) < count:
        result = await client.call_tool("aegis_inbox_wait", after)
        assert result.structured_content is not None
        messages += result.structured_content["messages"]
        after = {"after": result.structured_content["next"]}
    return cmds(messages)


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_an_agent_is_woken_by_what_it_asked_for(
    daemon: DaemonProcess, terminal: LiveTerminal, connect_mcp: Connect, handle: str, era: str
) -> None:
    async with connect_mcp(daemon, era, handle) as pm, connect_mcp(daemon, era) as operator:
        wanted = {"name": terminal.name, "pattern": "pytest|last", "only_failures": True}
        reply = await pm.call_tool("aegis_term_subscribe", wanted)
        assert reply.structured_content == {"ok": True, "subscribers": [handle]}
        for cmd in [*COMMANDS, "false last"]:
            await operator.call_tool("aegis_term_run", {"name": terminal.name, "cmd": cmd})
        assert await woken_by(pm, 2) == ["false pytest", "false last"]


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("(", "pattern is not a regular expression that RE2 reads: missing ): ("),
        ("x" * 1001, "pattern must be at most 1000 characters long, not 1001"),
        (r"\pL{500}", "pattern is too large: use smaller counts in {n,m}, or fewer classes of "),
    ],
)
async def test_a_bad_pattern_is_a_tool_error_of_one_sentence(
    daemon: DaemonProcess, terminal: LiveTerminal, connect_mcp: Connect, pattern: str, sentence: str
) -> None:
    async with connect_mcp(daemon, "auto") as client:
        wanted = {"name": terminal.name, "pattern": pattern}
        result = await client.call_tool("aegis_term_subscribe", wanted)
    assert result.is_error
    [content] = result.content
    assert content.text.startswith(f"aegis_term_subscribe: {sentence}")  # type: ignore[union-attr]
    assert terminal.described()["subscribers"] == []


def subscribe(terminal: LiveTerminal, handle: str, **wanted: object) -> Wakes:
    terminal.daemon.call("term_subscribe", name=terminal.name, from_handle=handle, **wanted)
    return Wakes(terminal.daemon, handle)


def test_subscribing_again_replaces_the_filter(terminal: LiveTerminal, handle: str) -> None:
    wakes = subscribe(terminal, handle, pattern="make")
    for cmd in COMMANDS:
        terminal.run(cmd)
    subscribe(terminal, handle.upper(), only_failures=True)
    for cmd in COMMANDS:
        terminal.run(cmd)
    subscribe(terminal, handle)
    terminal.run("true last")
    expected = ["true make", "false make", "false pytest", "false make", "true last"]
    assert cmds([wakes.next() for _ in expected]) == expected
    assert wakes.unread() == []
    assert terminal.described()["subscribers"] == [handle]


def test_the_command_line_takes_a_filter(
    daemon: DaemonProcess, terminal: LiveTerminal, handle: str
) -> None:
    options = ["--pattern", "pytest", "--only-failures"]
    done = daemon.cli("--as", handle, "term", "subscribe", terminal.name, *options)
    assert (done.returncode, done.stdout) == (0, f"subscribers: {handle}\n")
    wakes = Wakes(daemon, handle)
    for cmd in COMMANDS:
        terminal.run(cmd)
    assert cmds([wakes.next()]) == ["false pytest"]
    bad = daemon.cli("term", "subscribe", terminal.name, "--pattern", "(")
    assert bad.returncode != 0
    assert "pattern is not a regular expression" in bad.stderr


def test_a_killed_command_is_a_failure(terminal: LiveTerminal, handle: str) -> None:
    wakes = subscribe(terminal, handle, only_failures=True)
    terminal.run("true")
    terminal.run("kill -9 $$")
    assert cmds([wakes.next()]) == ["kill -9 $$"]


@pytest.mark.parametrize("before", ["nothing", "an older filter"])
def test_a_filter_holds_after_a_kill_at_once(own_daemon: DaemonProcess, before: str) -> None:
    own_daemon.start()
    terminal = own_daemon.terminal("build")
    if before == "an older filter":
        subscribe(terminal, "pm", pattern="make")
    subscribe(terminal, "pm", pattern="pytest", only_failures=True)
    own_daemon.kill()
    own_daemon.start()
    terminal = own_daemon.terminal("build")
    assert terminal.described()["subscribers"] == ["pm"]
    for cmd in COMMANDS:
        terminal.run(cmd)
    wakes = Wakes(own_daemon, "pm")
    assert cmds([wakes.next()]) == ["false pytest"]
    assert wakes.unread() == []


def test_what_a_kill_left_untold_is_told_by_the_filter_of_its_time(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start(faults="inbox.append.before[pm]@1=kill")
    terminal = own_daemon.terminal("build")
    subscribe(terminal, "pm", pattern="make")
    for cmd in ["true pytest", "true make"]:  # the second one meets the fault, after its record
        terminal.daemon.send("term_run", name="build", cmd=cmd)
    own_daemon.wait_stopped()
    own_daemon.hang_up()
    own_daemon.start()
    terminal = own_daemon.terminal("build")
    subscribe(terminal, "pm", pattern="pytest")
    for cmd in COMMANDS:
        terminal.run(cmd)
    wakes = Wakes(own_daemon, "pm")
    expected = ["true make", "true pytest", "false pytest"]
    assert cmds([wakes.next() for _ in expected]) == expected
    assert wakes.unread() == []


def test_a_subscription_from_before_there_were_filters_wants_everything(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    terminal = own_daemon.terminal("build")
    subscribe(terminal, "pm")
    own_daemon.kill()
    stored = (terminal.directory / "subscribers.json").read_text()
    assert '[{"handle":"pm","confirmed":-1}]' in stored
    own_daemon.start()
    own_daemon.terminal("build").run("true make")
    assert cmds([Wakes(own_daemon, "pm").next()]) == ["true make"]
