"""The categories of Claude Code's own tools. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from aegis.protocol.agent_events import ToolKind

PLAN_TOOL = "ExitPlanMode"
"""The tool by which the agent has its plan approved."""

QUESTION_TOOL = "AskUserQuestion"
"""The tool by which the agent asks a person questions."""

KINDS: Mapping[str, ToolKind] = {
    "Read": "read",
    "NotebookRead": "read",
    "ListMcpResourcesTool": "read",
    "ReadMcpResourceTool": "read",
    "Edit": "edit",
    "MultiEdit": "edit",
    "Write": "edit",
    "NotebookEdit": "edit",
    "Glob": "search",
    "Grep": "search",
    "LS": "search",
    "ToolSearch": "search",
    "Bash": "execute",
    "PowerShell": "execute",
    "Monitor": "execute",
    "KillShell": "execute",
    "WebFetch": "fetch",
    "WebSearch": "fetch",
    # A subagent: each of its own calls is asked for.
    "Task": "think",
    "Agent": "think",
    "TodoWrite": "plan",
    "TaskCreate": "plan",
    "TaskUpdate": "plan",
    "TaskList": "plan",
    "TaskGet": "plan",
    "EnterPlanMode": "plan",
    "ExitPlanMode": "plan",
}
"""The category of each tool; tools of MCP servers and unknown ones are "other"."""


def kind_of(tool: str) -> ToolKind:
    """Return the category of a tool."""
    return KINDS.get(tool, "other")
