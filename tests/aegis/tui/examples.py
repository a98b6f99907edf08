"""Values of the protocol for tests of the interface: what is not given has a plain default."""

from __future__ import annotations

from typing import Any

from aegis.client.agent_kinds import SessionEvent, session_event
from aegis.protocol.agents import AgentInfo, Blocked, TranscriptEntry
from aegis.protocol.groups import GroupInfo, GroupMember
from aegis.protocol.queues import QueueInfo, TaskInfo
from aegis.protocol.requests import RequestInfo
from aegis.protocol.streams import CommandItem
from aegis.protocol.terminals import CommandHeader, CommandRecord, TerminalInfo
from aegis.protocol.workflows import WorkflowInfo

NOON = "2026-05-22T12:00:00.000Z"
NOON_S = 1779451200.0
"""``NOON`` in seconds since 1970."""


def terminal(name: str = "build", **fields: Any) -> TerminalInfo:
    plain: dict[str, Any] = {
        "name": name,
        "pid": 4242,
        "shell": "/bin/bash",
        "cwd": "/srv/shop",
        "started_at": NOON,
        "cols": 80,
        "rows": 24,
        "integration": "osc133",
        "state": "idle",
        "last_cmd_at": None,
        "last_exit": None,
        "subscribers": [],
        "restarts": 0,
        "node": "local",
    }
    return TerminalInfo(**plain | fields)


def record(seq: int = 0, cmd: str | None = "make", **fields: Any) -> CommandRecord:
    plain: dict[str, Any] = {
        "seq": seq,
        "cmd": cmd,
        "writer": "human",
        "started_at": NOON,
        "finished_at": NOON,
        "duration_s": 4.2,
        "exit": 0,
        "stdout": "",
        "stderr": "",
        "killed_by_restart": False,
        "timed_out": False,
        "cwd": "/srv/shop",
        "output_bytes": 0,
        "truncated": False,
        "raw_start": 0,
        "raw_end": 0,
        "needs_input": None,
        "end": "exited",
    }
    return CommandRecord(**plain | fields)


def command(event: Any = "command_started", name: str = "build", **fields: Any) -> CommandItem:
    plain: dict[str, Any] = {
        "name": name,
        "seq": 0,
        "cmd": "make",
        "writer": "agent:ann",
        "exit": None,
        "duration_s": None,
        "started_at": NOON,
        "cwd": "/srv/shop",
        "raw_start": 0,
    }
    return CommandItem(event=event, command=CommandHeader(**plain | fields))


def agent(handle: str = "ann", **fields: Any) -> AgentInfo:
    plain: dict[str, Any] = {
        "id": f"id-{handle}",
        "handle": handle,
        "profile": "asks",
        "provider": "claude",
        "state": "idle",
        "since": NOON,
        "reason": "",
        "cwd": "/srv/shop",
        "spawned_by": "human",
        "model": "stand-in",
        "turn": 1,
        "waiting": 0,
        "quiet_s": 0.0,
        "tools": [],
        "blocked": None,
        "limited_until": None,
        "conversation": None,
    }
    return AgentInfo(**plain | fields)


def blocked(title: str = "Bash", kind: Any = "permission") -> Blocked:
    return Blocked(kind=kind, request_id="0" * 12, title=title, since=NOON)


def request(id: str = "0" * 12, **fields: Any) -> RequestInfo:  # noqa: A002 -- its name
    plain: dict[str, Any] = {
        "id": id,
        "digest": "d" * 64,
        "handle": "ann",
        "session": "id-ann",
        "turn": "1",
        "workflow": None,
        "kind": "permission",
        "tool": "Bash",
        "tool_kind": "execute",
        "title": "",
        "reason": "",
        "input": {"command": "touch x"},
        "excerpt": "",
        "input_bytes": 22,
        "options": [],
        "created": NOON,
        "state": "open",
        "answer": None,
        "scope": None,
        "by": None,
        "answered": None,
        "applied": None,
        "withdrawn": None,
    }
    return RequestInfo(**plain | fields)


def queue(name: str = "review", **fields: Any) -> QueueInfo:
    plain: dict[str, Any] = {
        "queue": name,
        "agent": "asks",
        "max_parallel": 2,
        "paused": False,
        "waiting": 0,
        "pending": 1,
        "running": 1,
        "ended": 0,
    }
    return QueueInfo(**plain | fields)


def task(task_id: str = "01T", **fields: Any) -> TaskInfo:
    plain: dict[str, Any] = {
        "task_id": task_id,
        "queue": "review",
        "status": "running",
        "queued_position": None,
        "worker": "w1",
        "attempt": 1,
        "max_attempts": 1,
        "result": None,
        "error": None,
        "sender": "human",
        "payload": "look at it",
        "key": None,
        "priority": 0,
        "waiting_for": [],
        "enqueued": NOON,
        "started": NOON,
        "ended": None,
    }
    return TaskInfo(**plain | fields)


def workflow(workflow_id: str = "01W", **fields: Any) -> WorkflowInfo:
    plain: dict[str, Any] = {
        "workflow_id": workflow_id,
        "name": "release",
        "status": "running",
        "sender": "human",
        "kwargs": "{}",
        "key": None,
        "calls": 3,
        "current": [],
        "checkpoint": None,
        "runs": 1,
        "result": None,
        "error": None,
        "problem": "",
        "started": NOON,
        "ended": None,
    }
    return WorkflowInfo(**plain | fields)


def group(name: str = "panel", **fields: Any) -> GroupInfo:
    members = [GroupMember(handle=each, profile="asks") for each in ("ann", "bob")]
    plain: dict[str, Any] = {
        "group": name,
        "id": f"id-{name}",
        "owner": "human",
        "created": NOON,
        "state": "open",
        "members": members,
    }
    return GroupInfo(**plain | fields)


def entry(kind: str, seq: int = 1, at: str = NOON, **fields: Any) -> SessionEvent:
    return session_event(TranscriptEntry(seq=seq, kind=kind, at=at, fields=fields))


def event(type: str, seq: int = 1, **fields: Any) -> SessionEvent:  # noqa: A002 -- its name
    return entry("event", seq, event={"type": type, **fields})
