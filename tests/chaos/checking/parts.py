"""Sound evidence in parts: commands, their records, and the messages about them."""

from __future__ import annotations

from typing import Any

from tests.chaos.checking.evidence import Command
from tests.chaos.checking.observations import Record, Span

KILLED = {"end": "killed_by_restart", "killed_by_restart": True, "exit": None, "duration_s": None}


def command(number: int, life: int, writer: str = "agent:ann", **fields: Any) -> Command:
    terminal = fields.pop("terminal", "t0")
    token = f"@{terminal}.{life}.{number}@"
    sound = {"text": f"echo {token}", "stdout": f"{token}\n"}
    return Command(token=token, terminal=terminal, writer=writer, life=life, **(sound | fields))


def record_of(command: Command, seq: int, **fields: Any) -> Record:
    return {
        "seq": seq,
        "cmd": command.text,
        "writer": command.writer,
        "started_at": f"12:00:0{seq}",
        "duration_s": 0.1,
        "cwd": "/",
        "raw_start": seq * 100,
        "exit": command.exit,
        "stdout": command.stdout,
        "killed_by_restart": False,
        "timed_out": False,
        "end": command.end,
        **fields,
    }


def wake(record: Record, handle: str, *, terminal: str = "t0", life: str = "abc") -> dict[str, Any]:
    outcome = [f"exit {'?' if record['exit'] is None else record['exit']}"]
    outcome += ["0.10s"] if record["duration_s"] else []
    outcome += ["killed by restart"] if record["killed_by_restart"] else []
    outcome += ["timed out"] if record["timed_out"] else []
    text = f"$ {record['cmd'] or '?'} · run by {record['writer']}\n{' · '.join(outcome)}"
    return {"id": f"term:{terminal}/{life}/{record['seq']}/{handle}", "body": text}


def at(moment: int) -> Span:
    """A call that was asked then and answered at the next moment."""
    return Span(moment, moment + 1)
