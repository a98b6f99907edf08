"""What the interface shows of the daemon's state, without widgets."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.protocol.agents import AgentNeed, AgentProgram, AgentTakeover
from aegis.protocol.streams import TerminalItem
from aegis.protocol.terminals import NeedsInput
from aegis.protocol.workspaces import ShellInfo, WorkspaceInfo
from aegis.tui.model.rail import rail_rows, status_of
from aegis.tui.model.states import StatusDot, agent_status
from aegis.tui.model.tabs import MAX_TABS, Tabs
from aegis.tui.model.times import age, clock, duration, elapsed, moment, since
from aegis.tui.model.world import ChangeKind, World
from tests.aegis.tui.examples import NOON, NOON_S, agent, blocked, command, request, terminal


def opened(name: str = "build", **fields: Any) -> TerminalItem:
    return TerminalItem(event="terminal_opened", terminal=terminal(name, **fields))


def closed(name: str = "build") -> TerminalItem:
    return TerminalItem(event="terminal_closed", terminal=terminal(name, state="closed"))


def program(**fields: Any) -> AgentProgram:
    plain = {
        "terminal": "ann",
        "command": "claude",
        "source": "report",
        "need": None,
        "launches": 1,
        "exit_code": None,
        "progress": None,
        "title": "",
    }
    return AgentProgram(**plain | fields)


@pytest.mark.parametrize(
    ("state", "fields", "dot", "why"),
    [
        ("working", {}, "🟢", "working"),
        ("working", {"tools": ["mcp__aegis__aegis_term_run"]}, "🟢", "aegis_term_run"),
        ("working", {"quiet_s": 130.0}, "🟠", "no progress for 2m"),
        ("blocked", {"blocked": blocked()}, "🟡", "Bash"),
        ("blocked", {"blocked": blocked("Which?", "question")}, "🟡", "question: Which?"),
        ("limited", {"limited_until": "2026-05-22T15:30:00Z"}, "🟡", "usage limit until 15:30"),
        ("error", {"reason": "no such file\x1b[2K"}, "🔴", "no such file<U+001B>[2K"),
        ("idle", {}, "⚪", "idle"),
        ("dormant", {}, "⚪", "dormant"),
        ("exited", {"program": program(exit_code=0)}, "✅", "exit 0"),
        ("exited", {"program": program(exit_code=3)}, "🔴", "exit 3"),
        ("exited", {"program": program()}, "🔴", "exited"),
        ("stale", {"program": program(title="Reading")}, "🟠", "Reading"),
        (
            "needs_input",
            {
                "program": program(
                    need=AgentNeed(kind="permission", text="Run ls?", tool="", tool_input="")
                )
            },
            "🟡",
            "permission: Run ls?",
        ),
        (
            "working",
            {"quiet_s": 300.0, "taken_over": AgentTakeover(terminal="takeover-ann", since=NOON)},
            "⚪",
            "taken over in terminal takeover-ann",
        ),
    ],
)
def test_an_agent_has_a_dot_a_reason_and_an_age(
    state: str, fields: dict[str, Any], dot: str, why: str
) -> None:
    status = agent_status(agent(state=state, **fields), NOON_S + 75)
    assert (status.dot, status.why, status.age) == (dot, why, "1m")


@pytest.mark.parametrize(
    ("fields", "dot", "why"),
    [
        ({}, "⚪", "idle"),
        ({"last_cmd_at": NOON, "last_exit": 0}, "✅", "exit 0"),
        ({"last_cmd_at": NOON, "last_exit": 2}, "🔴", "exit 2"),
        ({"last_cmd_at": NOON}, "⚪", "idle"),
        ({"state": "starting"}, "🟢", "starting"),
        ({"state": "failed"}, "🔴", "failed"),
        ({"state": "unreachable", "node": "big"}, "🟠", "big cannot be reached"),
        ({"state": "running"}, "🟢", "running"),
    ],
)
def test_a_terminal_has_a_dot_and_a_reason(fields: dict[str, Any], dot: str, why: str) -> None:
    world = World()
    world.on_terminal(opened(**fields))
    status = status_of("term:build", world, NOON_S)
    assert (status.dot, status.why) == (dot, why)


def test_a_running_command_is_the_reason_since_it_began() -> None:
    world = World()
    world.on_terminal(opened(state="running", running=command().command))
    assert world.on_command(command(cmd="pytest -q")) is ChangeKind.STARTED
    status = status_of("term:build", world, NOON_S + 12)
    assert (status.dot, status.text) == ("🟢", "pytest -q · 12s")
    assert world.on_command(command("command_finished")) is ChangeKind.FINISHED
    assert "build" not in world.running


def test_a_command_that_begins_to_need_input_asks_once() -> None:
    world = World()
    world.on_terminal(opened(state="running", running=command().command))
    needing = command("command_changed", needs_input=NeedsInput(kind="secret", program="sudo"))
    assert world.on_command(needing) is ChangeKind.ASKS
    assert world.on_command(needing) is ChangeKind.SHOWN
    status = status_of("term:build", world, NOON_S + 12)
    assert (status.dot, status.why) == ("🟡", "sudo needs a secret")


def test_the_end_of_an_earlier_command_does_not_end_the_one_that_runs() -> None:
    world = World()
    world.on_command(command(seq=4))
    world.on_command(command("command_finished", seq=3))
    assert world.running["build"].seq == 4


def test_a_terminal_that_is_idle_or_gone_has_no_command() -> None:
    world = World()
    for seq in range(3):
        world.on_command(command(name=f"t{seq}"))
    running = command(name="t0").command
    world.replace_terminals([terminal("t0", state="running", running=running), terminal("t1")])
    assert [*world.running] == ["t0"]
    world.on_terminal(opened("t0"))
    assert world.running == {}


def test_what_opens_and_closes_is_reported_once() -> None:
    world = World()
    assert world.on_terminal(opened()) is ChangeKind.OPENED
    assert world.on_terminal(opened()) is ChangeKind.SHOWN
    assert world.on_terminal(closed()) is ChangeKind.CLOSED
    assert world.on_terminal(closed()) is ChangeKind.NOTHING
    assert world.on_agent(agent()) is ChangeKind.OPENED
    assert world.on_agent(agent(state="working")) is ChangeKind.SHOWN
    assert world.on_agent(agent(state="blocked", blocked=blocked())) is ChangeKind.ASKS
    assert world.on_agent(agent(state="blocked", blocked=blocked())) is ChangeKind.SHOWN
    assert world.on_agent(agent(state="working")) is ChangeKind.SHOWN
    assert world.on_agent(agent()) is ChangeKind.FINISHED
    assert world.on_agent(agent(state="closed")) is ChangeKind.CLOSED
    assert world.on_agent(agent(state="closed")) is ChangeKind.NOTHING


def test_a_request_is_open_until_it_is_settled_or_no_longer_listed() -> None:
    world = World()
    assert world.on_request(request("a" * 12)) is ChangeKind.ASKS
    assert world.on_request(request("a" * 12)) is ChangeKind.SHOWN
    assert world.on_request(request("b" * 12, created="2026-05-22T11:00:00Z")) is ChangeKind.ASKS
    assert [each.id[0] for each in world.open_requests()] == ["b", "a"]
    assert world.on_request(request("b" * 12, state="withdrawn")) is ChangeKind.SHOWN
    assert world.on_request(request("b" * 12, state="withdrawn")) is ChangeKind.NOTHING
    world.keep_requests([])
    assert world.open_requests() == []


def test_the_rail_has_workspaces_then_agents_below_their_spawners_then_terminals() -> None:
    world = World()
    world.replace_agents([agent("zoe"), agent("ann"), agent("kid", spawned_by="ann"), agent("own")])
    for name in ("build", "shop", "logs"):
        world.on_terminal(opened(name))
    shell = ShellInfo(
        workspace_id="web", shell_id="shop", cols=80, rows=24, cwd=None, state="running"
    )
    world.workspaces = [
        WorkspaceInfo(workspace_id="web", directory="/srv", shells=[shell], agent="own")
    ]
    rows = [(each.title, each.depth) for each in rail_rows(world, NOON_S)]
    assert rows == [
        ("WEB", 0),
        ("own", 0),
        ("shop", 0),
        ("AGENTS", 0),
        ("ann", 0),
        ("kid", 1),
        ("zoe", 0),
        ("TERMINALS", 0),
        ("build", 0),
        ("logs", 0),
    ]


def test_agents_that_spawned_each_other_are_shown_all_the_same() -> None:
    world = World()
    world.replace_agents([agent("a", spawned_by="b"), agent("b", spawned_by="a")])
    assert [each.title for each in rail_rows(world, NOON_S)] == ["AGENTS", "a", "b"]


def test_a_terminal_agent_is_shown_once_and_opens_its_terminal() -> None:
    world = World()
    world.replace_agents([agent(state="running", program=program())])
    world.on_terminal(opened("ann"))
    rows = rail_rows(world, NOON_S)
    assert [(each.title, each.key) for each in rows] == [("AGENTS", ""), ("ann", "term:ann")]
    assert status_of("term:ann", world, NOON_S).why == "running"


def test_a_tab_has_a_star_until_it_is_shown() -> None:
    tabs, world = Tabs(), World()
    for key in ("term:a", "term:b"):
        assert tabs.add(key)
    assert not tabs.add("term:a")
    tabs.show("term:a")
    tabs.has_news("term:a")
    tabs.has_news("term:b")
    assert [each.has_news for each in tabs.labels(world, NOON_S)] == [False, True]
    tabs.show("term:b")
    assert [each.has_news for each in tabs.labels(world, NOON_S)] == [False, False]


def test_a_closed_tab_gives_way_to_the_one_shown_before() -> None:
    tabs = Tabs()
    for key in ("term:a", "term:b", "term:c"):
        tabs.show(key)
    tabs.show("term:a")
    assert tabs.beside(1) == "term:b"
    assert tabs.beside(-1) == "term:c"
    assert tabs.close("term:a") == "term:c"
    assert tabs.close("term:c") == "term:b"
    assert tabs.close("term:b") == ""
    assert tabs.beside(1) == ""


def test_others_cannot_open_tabs_without_bound() -> None:
    tabs = Tabs()
    added = [tabs.add(f"term:{number}") for number in range(MAX_TABS + 5)]
    assert added.count(True) == MAX_TABS
    tabs.show("term:own")
    assert tabs.keys[-1] == "term:own"


@pytest.mark.parametrize(
    ("seconds", "whole", "short", "passing"),
    [
        (4.2, "4.20s", "4s", "4s"),
        (65.0, "1m05s", "1m", "1m05s"),
        (7500.0, "2h05m", "2h", "2h05m"),
        (200_000.0, "55h33m", "2d", "55h33m"),
        (-3.0, "-3.00s", "0s", "0s"),
    ],
)
def test_times_are_short(seconds: float, whole: str, short: str, passing: str) -> None:
    assert (duration(seconds), age(seconds), elapsed(seconds)) == (whole, short, passing)


def test_a_time_that_is_none_or_no_time_is_empty() -> None:
    assert moment(NOON) == NOON_S
    for text in (None, "", "soon"):
        assert (moment(text), since(text, NOON_S), clock(text)) == (None, "", "")
    assert moment("2026-05-22T12:00:00") == NOON_S


def test_a_closed_agent_has_ended_well_and_a_closed_terminal_rests() -> None:
    assert status_of("agent:gone", World(), NOON_S) == StatusDot("✅", "closed", "")
    assert status_of("term:gone", World(), NOON_S) == StatusDot("⚪", "closed", "")
