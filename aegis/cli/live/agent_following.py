"""``agent read --follow``: the entries of a transcript as they are written."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

from aegis.cli.grammar.verb import Daemon
from aegis.cli.live.event_loop import run
from aegis.cli.printing.transcript import transcript_lines
from aegis.client.agent_kinds import SessionEvent, SessionValue
from aegis.client.client import connect

LAST = 50
"""The newest entries that are shown first."""


def follow_agent(daemon: Daemon, agent: str, *, last: int | None, since: int | None) -> None:
    """Show entries until the session is closed, or Ctrl-C.

    Raises ``ClientError``, ``OSError``.
    """
    begin = LAST if last is None and since is None else last
    with contextlib.suppress(KeyboardInterrupt):
        run(partial(_follow, daemon, agent, begin, since))


async def _follow(daemon: Daemon, agent: str, last: int | None, since: int | None) -> None:
    async with (
        connect(Path(daemon.root), handle=daemon.handle, patience_s=math.inf) as client,
        client.agents.events(agent, since=since, last_n=last) as events,
    ):
        async for value in events:
            line = _json(value) if daemon.as_json else _text(value)
            if line:
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()


def _json(value: SessionValue) -> str:
    if isinstance(value, SessionEvent):
        return json.dumps(_entry(value))
    return json.dumps({"gap": {"dropped": value.dropped, "reason": value.reason}})


def _text(value: SessionValue) -> str:
    if isinstance(value, SessionEvent):
        return transcript_lines([_entry(value)])
    missing = "entries" if value.dropped is None else f"{value.dropped} entries"
    return f"[{missing} are missing: they are no longer kept, or the disk has lost them]"


def _entry(value: SessionEvent) -> dict[str, Any]:
    return {"seq": value.seq, "kind": value.kind, "at": value.at, "fields": value.fields}
