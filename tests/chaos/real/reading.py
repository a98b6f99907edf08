"""The terminals and inboxes of a daemon, read through MCP as an agent reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import attrs

from aegis.state.root import StatePaths
from tests.chaos.checking.observations import Message, Record
from tests.chaos.real.scratch import ScratchDaemon
from tests.chaos.real.sessions import Session, open_session

NEWEST = 1000
"""The most messages of an inbox in one answer."""


@attrs.frozen
class Kept:
    """Every record of each terminal, and the newest messages of each inbox."""

    ledgers: Mapping[str, tuple[Record, ...]]
    inboxes: Mapping[str, tuple[Message, ...]]


async def read_all(daemon: ScratchDaemon, terminals: Sequence[str], handles: Sequence[str]) -> Kept:
    """Read all ledgers and inboxes. Raises ``ToolFailed``."""
    async with open_session(daemon) as operator:
        ledgers = {name: await _records(operator, name) for name in terminals}
    return Kept(ledgers, {handle: await _newest(daemon, handle) for handle in handles})


async def _records(session: Session, name: str) -> tuple[Record, ...]:
    """Return every record, page by page."""
    records: list[Record] = []
    while True:
        since = records[-1]["seq"] if records else -1
        page = await session.call("term_read", {"name": name, "since_seq": since})
        records += page["result"]
        if not page.get("more"):
            return tuple(records)


async def _newest(daemon: ScratchDaemon, handle: str) -> tuple[Message, ...]:
    async with open_session(daemon, handle) as session:
        answer = await session.call("inbox_read", {"unread": False, "limit": NEWEST})
    return tuple(answer["messages"])


def life_id(state: StatePaths, name: str) -> str:
    """Return the life id of the terminal in its messages."""
    meta = json.loads((state.terminals / name / "meta.json").read_text())
    return str(meta["life"])
