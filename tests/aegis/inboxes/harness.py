"""A router and its inboxes on real files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from actors import ChildSpec, Ref, SupervisorSpec, System, open_system
from aegis.inboxes.handoffs import SessionDirectory
from aegis.inboxes.reading import message_archive
from aegis.inboxes.router import InboxRouter
from aegis.inboxes.rows import row_of
from aegis.journal.disk import Disk
from aegis.journal.flusher import Flusher
from aegis.protocol.inboxes import Deliver

GUARD_S = 60
"""Seconds after which a test that hangs ends."""


@asynccontextmanager
async def open_inboxes(
    directory: Path, disk: Disk | None = None, sessions: SessionDirectory | None = None
) -> AsyncIterator[System]:
    spec = SupervisorSpec(
        name="root",
        children=(
            SupervisorSpec(name="inboxes", dynamic=True),
            ChildSpec.of(
                "router",
                InboxRouter,
                directory=directory,
                archive=message_archive(directory.parent / "archive", Flusher(disk).disk),
                supervisor="root/inboxes",
                flusher=Flusher(disk),
                sessions=sessions,
            ),
        ),
    )
    with trio.fail_after(GUARD_S):
        async with open_system(spec) as system:
            yield system


def router(system: System) -> Ref[Any]:
    return system.ref("root/router")


def wake(number: int, handle: str = "pm") -> Deliver:
    return Deliver(
        handle=handle,
        id=f"w{number}",
        sender="term:build",
        body=f"body {number}",
        timestamp="2026-05-22T14:03:25.000Z",
    )


def line_of(message: Deliver, number: int) -> dict[str, Any]:
    """Return the line that adds a message, with this number, to a ledger."""
    row = row_of(message, number)
    fields = {"type": row.tag, "chars": row.chars, "message": row.message.whole, "number": number}
    return {"id": row.id, "set": fields}
