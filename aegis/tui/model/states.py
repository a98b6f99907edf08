"""The dot of an agent or a terminal, and why and since when it has it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from aegis.shown_text import escape_line
from aegis.tui.model.times import age, moment, since

if TYPE_CHECKING:
    from aegis.protocol.agents import AgentInfo
    from aegis.protocol.terminals import CommandHeader, TerminalInfo

WORKS, ASKS, STALE, GOOD, BAD, RESTS = "🟢", "🟡", "🟠", "✅", "🔴", "⚪"

STALLED_S = 120.0
"""Seconds without progress after which a working agent is shown as stale."""

OWN_PREFIX = "mcp__aegis__"
"""The beginning of the names that agents give to the daemon's tools."""


@attrs.frozen
class StatusDot:
    """A dot, the reason for it in a few words, and its age."""

    dot: str
    why: str
    age: str

    @property
    def text(self) -> str:
        """The reason and the age."""
        return " · ".join(each for each in (self.why, self.age) if each)


def tool_name(name: str) -> str:
    """Return the name of a tool; of the daemon's own ones without the agent's prefix."""
    return escape_line(name.removeprefix(OWN_PREFIX))


def agent_status(info: AgentInfo, now: float) -> StatusDot:
    """Return the dot of an agent; it has had it since its state changed."""
    at = info.blocked.since if info.blocked is not None else info.since
    if info.taken_over is not None:
        why = f"taken over in terminal {info.taken_over.terminal}"
        return StatusDot(RESTS, why, since(info.taken_over.since, now))
    return StatusDot(_agent_dot(info), _agent_why(info), since(at, now))


def _agent_dot(info: AgentInfo) -> str:
    if info.state == "exited":
        is_good = info.program is not None and info.program.exit_code == 0
        return GOOD if is_good else BAD
    if info.state == "working" and info.quiet_s >= STALLED_S:
        return STALE
    return {
        "working": WORKS,
        "starting": WORKS,
        "running": WORKS,
        "blocked": ASKS,
        "limited": ASKS,
        "needs_input": ASKS,
        "stale": STALE,
        "error": BAD,
        "closed": GOOD,
    }.get(info.state, RESTS)


def _agent_why(info: AgentInfo) -> str:
    if info.blocked is not None:
        title = tool_name(info.blocked.title)
        return title if info.blocked.kind == "permission" else f"{info.blocked.kind}: {title}"
    if info.program is not None:
        return _program_why(info)
    match info.state:
        case "working" if info.quiet_s >= STALLED_S:
            return f"no progress for {age(info.quiet_s)}"
        case "working" if info.tools:
            return tool_name(info.tools[0])
        case "limited" if info.limited_until:
            return f"usage limit until {escape_line(info.limited_until[11:16])}"
        case "error":
            return escape_line(info.reason) or "error"
    return info.state.replace("_", " ")


def _program_why(info: AgentInfo) -> str:
    assert info.program is not None
    need, code = info.program.need, info.program.exit_code
    if info.state == "exited":
        return "exited" if code is None else f"exit {code}"
    if need is not None:
        return escape_line(f"{need.kind}: {need.text}").removesuffix(": ")
    return escape_line(info.program.title) or info.state.replace("_", " ")


def terminal_status(info: TerminalInfo, command: CommandHeader | None, now: float) -> StatusDot:
    """Return the dot of a terminal, from the command that runs or the last one."""
    match info.state:
        case "unreachable":
            return StatusDot(STALE, f"{info.node} cannot be reached", "")
        case "failed":
            return StatusDot(BAD, "failed", "")
        case "running":
            return _command_status(command, now)
        case "starting":
            return StatusDot(WORKS, "starting", "")
    if info.last_cmd_at is None:
        return StatusDot(RESTS, "idle", "")
    ago = age(now - (moment(info.last_cmd_at) or now))
    if info.last_exit is None:
        return StatusDot(RESTS, "idle", ago)
    return StatusDot(GOOD if info.last_exit == 0 else BAD, f"exit {info.last_exit}", ago)


def _command_status(command: CommandHeader | None, now: float) -> StatusDot:
    if command is None:
        return StatusDot(WORKS, "running", "")
    passed = since(command.started_at, now)
    need = command.needs_input
    if need is not None:
        what = "a secret" if need.kind == "secret" else "input"
        return StatusDot(ASKS, escape_line(f"{need.program} needs {what}"), passed)
    return StatusDot(WORKS, escape_line(command.cmd or "running"), passed)
