"""The undisturbed end of a history with agents: all come to rest, and everything is read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import trio

from aegis.journal.disk import read_file
from aegis.journal.ledger import scan
from aegis.protocol import agents as api
from aegis.protocol import inboxes as box
from aegis.protocol import requests as req
from aegis.protocol.derived.wire import to_plain
from tests.chaos.histories import script as s
from tests.chaos.histories.agent_steps import AgentSteps
from tests.chaos.histories.asking import Asker
from tests.chaos.histories.tree import STATE
from tests.chaos.machine.simulated_agent import AgentWorld
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.machine.simulated_processes import Machine
from tests.chaos.notebook import Notebook

MOST_BYTES = 2**24
"""The most bytes of a transcript that are read."""

LEDGERS = ("sessions.jsonl", "usage.jsonl", "worktrees.jsonl")
"""The files of all sessions together, beside which each session has a directory of its own."""

PATIENCE_S = 120.0
LOOK_S = 0.5


class AgentEnd:
    """The reader of everything about agents, as the client behind ``asker``."""

    def __init__(self, asker: Asker, book: Notebook, world: AgentWorld) -> None:
        self._asker = asker
        self._steps = AgentSteps(asker.handle, asker, book)
        self._book = book
        self._world = world

    async def settle(self) -> None:
        """Give each open session one more order, and wait until all are at rest."""
        for number, session in enumerate(await self._sessions(closed=False)):
            await self._steps.send(session.handle, f"@work.{9000 + number}.quick@", s.HUMAN)
        busy = await self._busy()
        for _ in range(round(PATIENCE_S / LOOK_S)):
            if not busy:
                break
            await trio.sleep(LOOK_S)
            busy = await self._busy()
        self._book.agents.stuck += busy

    async def _sessions(self, *, closed: bool) -> list[api.AgentInfo]:
        listed = await self._asker.ask(api.ListSessions(closed=closed))
        return [] if listed.value is None else listed.value.result

    async def _busy(self) -> list[str]:
        """Return a sentence for each session that is not at rest."""
        found = []
        for each in await self._sessions(closed=False):
            unread = await self._messages(each.handle, unread=True)
            if self._has_nothing_to_copy(each):
                continue
            if each.state != "idle" or each.waiting or unread:
                ids = [message["id"] for message in unread]
                found.append(f"{each.handle} is {each.state} ({each.reason}), unread: {ids}")
        return found

    def _has_nothing_to_copy(self, session: api.AgentInfo) -> bool:
        """Return whether a fork failed because the conversation to copy was lost before.

        A fork that has had no turn copies it again, although a process of it was ready.
        """
        own = [each for each in self._world.processes.values() if each.session == session.id]
        is_fork = bool(own) and all(each.is_fork for each in own)
        is_lost = is_fork and own[-1].resumes not in self._world.conversations
        return is_lost and session.state == "error"

    async def read(self, sound_disk: Callable[[], SimulatedDisk]) -> None:
        """Read sessions, transcripts, inboxes and requests."""
        notes = self._book.agents
        sessions = await self._sessions(closed=True)
        for each in sessions:
            notes.sessions.append(_plain(each))
            notes.inboxes[each.handle] = await self._messages(each.handle, unread=False)
            path = STATE.agents / each.id / "transcript.jsonl"
            data = read_file(sound_disk(), path, max_bytes=MOST_BYTES) or b""
            notes.transcripts[each.id] = tuple(line.fields for line in scan(data).lines)
        known = {each.handle for each in notes.spawned if each.done}
        known |= {each.to for each in notes.work if each.receipt}  # its spawn may be unanswered
        for handle in sorted(known - {*notes.inboxes}):  # of a purged session
            notes.inboxes[handle] = await self._messages(handle, unread=False)
        with contextlib.suppress(FileNotFoundError):  # there was no session
            names = sound_disk().list_directory(STATE.agents)
            notes.files += [each for each in names if not each.startswith(LEDGERS)]
        notes.inboxes[s.HUMAN] = await self._messages(None, unread=False)
        listed = await self._asker.ask(req.ListRequests(state="all", limit=500))
        if listed.value is not None:
            notes.requests += [_plain(each) for each in listed.value.requests]

    async def _messages(self, handle: str | None, *, unread: bool) -> tuple[Any, ...]:
        limit = 50 if unread else 1000
        request = box.ReadInbox(unread=unread, limit=limit, from_handle=handle)
        answered = await self._asker.ask(request)
        return () if answered.value is None else tuple(_plain(answered.value)["messages"])

    def take_log(self, machine: Machine) -> None:
        """Take the programs' own log."""
        notes, world = self._book.agents, self._world
        notes.processes = list(world.processes.values())
        notes.frames, notes.reported = world.frames, world.reported
        notes.questions, notes.effects = world.questions, world.effects
        notes.begun, notes.said = world.begun, world.said
        notes.waits = world.open_questions(machine)


def _plain(value: Any) -> Any:
    return to_plain(value)
