"""A router and its inboxes on real files, for the tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from actors import ChildSpec, Ref, SupervisorSpec, System, open_system
from aegis.inboxes.handoffs import Sessions
from aegis.inboxes.router import InboxRouter
from aegis.journal.disk import Disk
from aegis.journal.flusher import Done, Flusher, Forget, StartSoon
from aegis.protocol.inboxes import Deliver

GUARD_S = 60
"""Seconds after which a test that hangs ends."""


@asynccontextmanager
async def open_inboxes(
    directory: Path, disk: Disk | None = None, sessions: Sessions | None = None
) -> AsyncIterator[System]:
    spec = SupervisorSpec(
        name="root",
        children=(
            SupervisorSpec(name="inboxes", dynamic=True),
            ChildSpec.of(
                "router",
                InboxRouter,
                directory=directory,
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


def stall_syncs(monkeypatch: pytest.MonkeyPatch) -> trio.Event:
    """Nothing is synced until the event is set; opening a file is not held up."""
    moves_again = trio.Event()
    begin = Flusher.begin_fdatasync

    def stalled(
        flusher: Flusher, fd: int, began: Callable[[], object], done: Done, start_soon: StartSoon
    ) -> Forget:
        async def later() -> None:
            await moves_again.wait()
            begin(flusher, fd, began, done, start_soon)

        start_soon(later)
        return lambda: None

    monkeypatch.setattr(Flusher, "begin_fdatasync", stalled)
    return moves_again
