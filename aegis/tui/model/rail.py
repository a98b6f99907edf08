"""The rows of the left rail. Pure.

Workspaces come first, each with its agent and its shells; then the other agents, each below the one
that spawned it; then the other terminals. A row with a key opens the tab of that key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from aegis.tui.model.states import GOOD, RESTS, StatusDot, agent_status, terminal_status
from aegis.tui.model.world import World

if TYPE_CHECKING:
    from aegis.protocol.agents import AgentInfo

MAX_DEPTH = 4
"""Deeper children are shown at this depth."""


@attrs.frozen
class RailRow:
    """One row: a heading without a key, or an object whose tab has the key ``key``."""

    title: str
    key: str = ""
    status: StatusDot | None = None
    depth: int = 0


def agent_key(info: AgentInfo) -> str:
    """Return the key of an agent's tab: that of its terminal if it is one."""
    return f"agent:{info.id}" if info.program is None else f"term:{info.program.terminal}"


def rail_rows(world: World, now: float) -> list[RailRow]:
    """Return the rows, from the top."""
    shown: set[str] = set()
    rows = [*_workspaces(world, now, shown)]
    agents = [*_agents(world, now, shown)]
    terminals = [*_terminals(world, now, shown)]
    rows += [RailRow("AGENTS"), *agents] if agents else []
    rows += [RailRow("TERMINALS"), *terminals] if terminals else []
    return rows or [RailRow("NOTHING IS OPEN")]


def _workspaces(world: World, now: float, shown: set[str]) -> Iterator[RailRow]:
    for workspace in sorted(world.workspaces, key=lambda each: each.workspace_id):
        rows = []
        agent = None if workspace.agent is None else world.agent(workspace.agent)
        if agent is not None:
            rows.append(_agent_row(agent, world, now, shown, 0))
        for name in (each.shell_id for each in workspace.shells):
            if name in world.terminals and f"term:{name}" not in shown:
                rows += [_terminal_row(name, world, now, shown)]
        if rows:
            yield RailRow(workspace.workspace_id.upper())
            yield from rows


def _agents(world: World, now: float, shown: set[str]) -> Iterator[RailRow]:
    left = sorted(
        (each for each in world.agents.values() if agent_key(each) not in shown),
        key=lambda each: each.handle,
    )
    children: dict[str, list[AgentInfo]] = {}
    handles = {each.handle for each in left}
    for each in left:
        parent = each.spawned_by if each.spawned_by in handles - {each.handle} else ""
        children.setdefault(parent, []).append(each)
    yield from _below("", children, world, now, shown, 0)
    # A circle cannot be reached from above: its members are shown at the top.
    for each in left:
        if agent_key(each) not in shown:
            yield _agent_row(each, world, now, shown, 0)


def _below(
    parent: str,
    children: dict[str, list[AgentInfo]],
    world: World,
    now: float,
    shown: set[str],
    depth: int,
) -> Iterator[RailRow]:
    for each in children.pop(parent, []):
        yield _agent_row(each, world, now, shown, min(depth, MAX_DEPTH))
        yield from _below(each.handle, children, world, now, shown, depth + 1)


def _terminals(world: World, now: float, shown: set[str]) -> Iterator[RailRow]:
    for name in sorted(world.terminals):
        if f"term:{name}" not in shown:
            yield _terminal_row(name, world, now, shown)


def _agent_row(info: AgentInfo, world: World, now: float, shown: set[str], depth: int) -> RailRow:
    key = agent_key(info)
    shown.add(key)
    return RailRow(info.handle, key, agent_status(info, now), depth)


def _terminal_row(name: str, world: World, now: float, shown: set[str]) -> RailRow:
    shown.add(f"term:{name}")
    return RailRow(name, f"term:{name}", status_of(f"term:{name}", world, now))


def status_of(key: str, world: World, now: float) -> StatusDot:
    """Return the status of a tab's subject."""
    kind, _, name = key.partition(":")
    if kind == "agent" and (info := world.agents.get(name)) is not None:
        return agent_status(info, now)
    if kind == "term":
        agent = world.agent_of_terminal(name)
        if agent is not None:
            return agent_status(agent, now)
        terminal = world.terminals.get(name)
        if terminal is not None:
            return terminal_status(terminal, world.running.get(name), now)
    if kind == "agent":
        return StatusDot(GOOD, "closed", "")
    return StatusDot(RESTS, "closed" if kind == "term" else "", "")
