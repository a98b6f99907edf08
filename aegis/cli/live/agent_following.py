"""``agent read --follow`` and ``agent output --follow``: news of a session as they come."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from aegis.cli.grammar.verb import TargetDaemon
from aegis.cli.live.event_loop import run
from aegis.cli.printing.formatting import escaped
from aegis.cli.printing.transcript import transcript_lines
from aegis.client.agent_kinds import CommandValue, SessionEvent, SessionValue
from aegis.client.client import connect
from aegis.client.stream_kinds import Gap
from aegis.protocol.agent_streams import CommandOutputItem

LAST = 50
"""The newest entries that are shown first."""


def follow_agent(daemon: TargetDaemon, agent: str, *, last: int | None, since: int | None) -> None:
    """Show entries until the session is closed, or Ctrl-C.

    Raises ``ClientError``, ``OSError``.
    """
    begin = LAST if last is None and since is None else last
    with contextlib.suppress(KeyboardInterrupt):
        run(partial(_follow, daemon, agent, begin, since))


async def _follow(daemon: TargetDaemon, agent: str, last: int | None, since: int | None) -> None:
    async with (
        connect(Path(daemon.root), handle=daemon.handle, patience_s=math.inf) as client,
        client.agents.events(agent, since=since, last_n=last) as events,
    ):
        async for value in events:
            line = _json(value) if daemon.as_json else _text(value)
            if line:
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()


def follow_command(daemon: TargetDaemon, agent: str, command: str) -> None:
    """Print the output of a command until it is released, or Ctrl-C.

    Raises ``ClientError``, ``OSError``.
    """
    with contextlib.suppress(KeyboardInterrupt):
        run(partial(_follow_command, daemon, agent, command))


async def _follow_command(daemon: TargetDaemon, agent: str, command: str) -> None:
    line = ""
    async with (
        connect(Path(daemon.root), handle=daemon.handle, patience_s=math.inf) as client,
        client.agents.command_output(agent, command) as output,
    ):
        async for value in output:
            line = value.line if isinstance(value, CommandOutputItem) else line
            _write(_json_output(value) if daemon.as_json else _output(value))
    # Only a finished line is printed at once: a program may still change it.
    _write("" if daemon.as_json or not line else f"{escaped(line)}\n")


def _write(text: str) -> None:
    if text:
        sys.stdout.write(text)
        sys.stdout.flush()


def _json_output(value: CommandValue) -> str:
    if isinstance(value, CommandOutputItem):
        return f"{json.dumps(attrs.asdict(value))}\n"
    return f"{_gap(value)}\n"


def _output(value: CommandValue) -> str:
    if isinstance(value, CommandOutputItem):
        return escaped(value.text)
    missing = "some output" if value.dropped is None else f"{value.dropped} bytes"
    return f"[{missing} missing: it is no longer kept]\n"


def _gap(gap: Gap) -> str:
    return json.dumps({"gap": {"dropped": gap.dropped, "reason": gap.reason}})


def _json(value: SessionValue) -> str:
    if isinstance(value, SessionEvent):
        return json.dumps(_entry(value))
    return _gap(value)


def _text(value: SessionValue) -> str:
    if isinstance(value, SessionEvent):
        return transcript_lines([_entry(value)])
    missing = "entries" if value.dropped is None else f"{value.dropped} entries"
    return f"[{missing} are missing: they are no longer kept, or the disk has lost them]"


def _entry(value: SessionEvent) -> dict[str, Any]:
    return {"seq": value.seq, "kind": value.kind, "at": value.at, "fields": value.fields}
