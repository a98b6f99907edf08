"""The scenario of requests: a workflow asks, several answer each request, one is withdrawn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import Actor, ChildSpec, SupervisorSpec, System
from actors.faults import RUNTIME, FaultTable
from aegis.journal.faults import JOURNAL
from aegis.journal.opening import open_ledger
from aegis.journal.table import read_rows
from aegis.protocol.agent_events import PermissionAnswer
from aegis.protocol.requests import (
    AnswerReceived,
    AnswerRequest,
    ApplyAnswer,
    OpenedRequest,
    OpenRequest,
    WithdrawRequests,
)
from aegis.requests.desk import RequestDesk
from aegis.requests.faults import REQUESTS
from aegis.requests.records import Record
from tests.chaos.exhaustive import Evidence, World
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.reproducible import reproducible
from tests.faults.retrying import ask_until_answered, until_done

LEDGER = Path("/state/requests.jsonl")
KEYS = ("k1", "k2")
WITHDRAWN = "k3"
ANSWERS = ("allow", "deny")


@attrs.frozen
class Opened:
    """A request that its owner knows."""

    id: str
    digest: str


@attrs.frozen
class Acted:
    """An answer that acted."""

    id: str
    kind: str


@attrs.frozen
class Gone:
    """A request that was withdrawn."""

    id: str


class Workflow(Actor[ApplyAnswer]):
    """The owner: it acts once on each request."""

    def __init__(self, *, world: World, acted: dict[str, str]) -> None:
        self._world = world
        self._acted = acted

    async def receive(self, message: ApplyAnswer) -> None:
        answer = message.answer
        assert isinstance(answer, PermissionAnswer)
        if message.id not in self._acted:
            self._acted[message.id] = answer.kind
            self._world.confirm(Acted(message.id, answer.kind))
        self.reply(message, AnswerReceived(applied=True))


@attrs.frozen
class Answers:
    """Requests of a workflow through the real desk, each answered by two people at once."""

    name: str = "requests"
    image: Image = attrs.field(factory=lambda: {"/": None, "/state": None})
    tables: tuple[FaultTable, ...] = (JOURNAL, REQUESTS, RUNTIME)
    subjects: tuple[str, ...] = ("RequestDesk",)
    recovers_durably: bool = False
    shows_only_durable: bool = True

    async def play(self, world: World) -> None:
        acted: dict[str, str] = {}
        lives = count(1)

        async def live() -> None:
            spec = SupervisorSpec(
                name="root",
                children=(
                    ChildSpec.of("owner", Workflow, world=world, acted=acted),
                    ChildSpec.of(
                        "requests",
                        RequestDesk,
                        path=LEDGER,
                        archive=LEDGER.parent / "archive",
                        flusher=world.flusher,
                        life=f"life{next(lives)}",
                    ),
                ),
            )
            async with world.simulation.open_system(spec) as system:
                async with trio.open_nursery() as nursery:
                    for key in KEYS:
                        nursery.start_soon(self._decide, world, system, key)
                await self._withdraw(world, system)

        with reproducible(world.simulation.chance):
            await until_done(live)

    async def _open(self, world: World, system: System, key: str) -> OpenedRequest:
        request = OpenRequest(
            owner="root/owner",
            handle="flow",
            workflow="w1",
            key=key,
            kind="permission",
            tool="ask_human",
            input={"key": key},
        )
        opened = await ask_until_answered(system.ref("root/requests"), request)
        world.confirm(Opened(opened.id, opened.digest))
        return opened

    async def _decide(self, world: World, system: System, key: str) -> None:
        opened = await self._open(world, system, key)
        async with trio.open_nursery() as nursery:
            for answer in ANSWERS:
                nursery.start_soon(self._answer, system, opened, answer)

    async def _answer(self, system: System, opened: OpenedRequest, answer: Any) -> None:
        request = AnswerRequest(id=opened.id, digest=opened.digest, answer=answer)
        reply = await ask_until_answered(system.ref("root/requests"), request)
        assert reply.outcome in ("applied", "already_answered", "withdrawn"), reply

    async def _withdraw(self, world: World, system: System) -> None:
        opened = await self._open(world, system, WITHDRAWN)
        request = WithdrawRequests(workflow="w1", ids=[opened.id], reason="it was cancelled")
        await ask_until_answered(system.ref("root/requests"), request)
        world.confirm(Gone(opened.id))

    def recover(self, disk: SimulatedDisk) -> dict[str, tuple[str, str | None, str]]:
        opened = open_ledger(disk, LEDGER)
        disk.close(opened.fd)
        rows: dict[str, Record] = read_rows(disk, LEDGER, opened.length, Record)
        found: dict[str, tuple[str, str | None, str]] = {}
        for each in rows.values():
            kind = each.answer.kind if isinstance(each.answer, PermissionAnswer) else None
            found[each.id] = (each.phase, kind, each.digest)
        return found

    def check(
        self, evidence: Evidence, found: dict[str, tuple[str, str | None, str]], *, killed: bool
    ) -> Iterator[str]:
        kinds: dict[str, str] = {}
        for each in evidence.confirmed:
            match each:
                case Opened(id=request_id, digest=digest):
                    if request_id not in found:
                        yield f"request {request_id} was opened and is lost"
                    elif found[request_id][2] != digest:
                        yield f"request {request_id} is another one"
                case Acted(id=request_id, kind=kind):
                    if kinds.setdefault(request_id, kind) != kind:
                        yield f"request {request_id} was answered twice"
                    phase, stored, _ = found.get(request_id, ("lost", None, ""))
                    if stored != kind or phase == "open":
                        yield f"{kind} acted on {request_id}, of which {phase} {stored} is stored"
                case Gone(id=request_id):
                    if found.get(request_id, ("lost",))[0] != "withdrawn":
                        yield f"request {request_id} was withdrawn and is {found.get(request_id)}"
