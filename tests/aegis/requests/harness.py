"""A desk on real files with owners that a test directs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import Actor, ChildSpec, Ref, Reply, Request, SupervisorSpec, System, open_system
from aegis.journal.disk import Disk
from aegis.journal.flusher import Flusher
from aegis.protocol.requests import (
    Answerer,
    AnswerReceived,
    AnswerRequest,
    ApplyAnswer,
    FindAnswerer,
    ListRequests,
    OpenRequest,
    RequestInfo,
    RequestOpened,
)
from aegis.requests.desk import RequestDesk
from tests.aegis.requests.machine import permission

GUARD_S = 60
OWNER = "root/owner"


@attrs.frozen
class CrashNow:
    """The order to crash."""


class Owner(Actor[ApplyAnswer | CrashNow]):
    """An owner that keeps its answers, as a session does, and acts on each of them once."""

    def __init__(self, *, acted: list[ApplyAnswer], is_slow: bool) -> None:
        self._acted = acted
        self._is_slow = is_slow
        self.waiting: list[Reply[AnswerReceived]] = []

    async def receive(self, message: ApplyAnswer | CrashNow) -> None:
        match message:
            case CrashNow():
                raise RuntimeError("as the test ordered")
            case ApplyAnswer():
                if message.id not in [each.id for each in self._acted]:
                    self._acted.append(message)
                if self._is_slow:
                    self.waiting.append(self.defer(message))
                else:
                    self.reply(message, AnswerReceived(applied=True))


class Sessions(Actor[FindAnswerer]):
    """The directory of sessions: it knows ``bob``, who may answer, and ``kid``, whom ann began."""

    async def setup(self) -> None:
        self.context.register("service", "sessions")

    async def receive(self, message: FindAnswerer) -> None:
        known = {
            "ann": Answerer(handle="ann", session="s-ann", answers_requests=True),
            "bob": Answerer(handle="bob", session="s-bob", answers_requests=True),
            "kid": Answerer(
                handle="kid", session="s-kid", ancestors=["s-ann"], answers_requests=True
            ),
        }
        self.reply(message, known.get(message.handle, Answerer(handle=message.handle)))


@attrs.frozen
class Office:
    """A running desk, its owner, and what the owner has acted on."""

    system: System
    acted: list[ApplyAnswer]

    @property
    def desk(self) -> Ref[Any]:
        return self.system.ref("root/requests")

    @property
    def owner(self) -> Ref[Any]:
        return self.system.ref(OWNER)

    async def open(self, request: OpenRequest | None = None) -> RequestOpened:
        opened: RequestOpened = await self.desk.ask(asked() if request is None else request)
        return opened

    async def listed(self, **fields: Any) -> list[RequestInfo]:
        made: Any = {"state": "all", "limit": 500} | fields
        found: list[RequestInfo] = (await self.desk.ask(ListRequests(**made))).requests
        return found

    async def state(self, to: RequestOpened) -> str:
        [found] = await self.listed(id=to.id)
        return "applied" if found.applied else found.state


def asked(key: str = "k1", **changes: Any) -> OpenRequest:
    return permission(key, **({"owner": OWNER} | changes))


def answer(to: RequestOpened, what: Any = "allow", **fields: Any) -> Request[Any]:
    made: dict[str, Any] = {"id": to.id, "digest": to.digest, "answer": what} | fields
    return AnswerRequest(**made)


@asynccontextmanager
async def open_office(
    directory: Path,
    *,
    life: str = "life1",
    disk: Disk | None = None,
    is_slow: bool = False,
    sessions: bool = False,
) -> AsyncIterator[Office]:
    acted: list[ApplyAnswer] = []
    path = directory / "requests.jsonl"
    spec = SupervisorSpec(
        name="root",
        children=(
            *((ChildSpec.of("sessions", Sessions),) if sessions else ()),
            ChildSpec.of("owner", Owner, acted=acted, is_slow=is_slow),
            ChildSpec.of("requests", RequestDesk, path=path, flusher=Flusher(disk), life=life),
        ),
    )
    with trio.fail_after(GUARD_S):
        async with open_system(spec) as system:
            yield Office(system, acted)
