"""The actor that speaks for the daemon: which nodes its status names, whatever becomes of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import Actor, ChildSpec, Ref, Request, SupervisorSpec, open_system
from aegis.daemon import Daemon
from aegis.errors import Unavailable
from aegis.protocol.daemon import DaemonStatus, Examination, Examine, GetStatus, Voided
from aegis.protocol.nodes import ListNodes, NodeList, NodeStatus
from aegis.protocol.pages import PageAddress, PageList, PagesRevoked


class NoKeys:
    """Keys that nobody asks for here."""

    url = "http://127.0.0.1:1"
    handles: list[str] = []  # noqa: RUF012 - as the protocol has it
    revoked = ()

    def tools(self, handle: str) -> tuple[str, ...]:
        raise AssertionError(handle)

    async def session_url(self, handle: str, tools: Sequence[str] | None = None) -> str:
        raise AssertionError((handle, tools))

    async def revoke(self, handle: str, *, is_noted: bool = False) -> Voided:
        raise AssertionError((handle, is_noted))

    async def drop_revoked(self, handle: str) -> None:
        raise AssertionError(handle)

    async def rotate(self, session: str | None, *, all_keys: bool) -> Voided:
        raise AssertionError((session, all_keys))

    @property
    def logged_in(self) -> PageList:
        raise AssertionError

    def page_code(self) -> PageAddress:
        raise AssertionError

    async def new_link(self, view: str, label: str, for_s: float) -> PageAddress:
        raise AssertionError((view, label, for_s))

    async def revoke_page(self, name: str) -> PagesRevoked:
        raise AssertionError(name)


@attrs.frozen
class Seen:
    """A handle was seen."""


class Silent(Actor[Seen | ListNodes]):
    """Takes a question and never answers it."""

    def __init__(self, service: str | None = None) -> None:
        self._service = service

    async def setup(self) -> None:
        if self._service is not None:
            self.context.register("service", self._service)

    async def receive(self, message: Seen | ListNodes) -> None:
        if isinstance(message, ListNodes):
            self.defer(message)


class Knows(Actor[ListNodes]):
    """Names these nodes; the first ``crashes`` lives crash with the question instead."""

    def __init__(self, service: str, nodes: list[NodeStatus], crashes: int = 0) -> None:
        self._service = service
        self._nodes = nodes
        self._crashes = crashes

    async def setup(self) -> None:
        self.context.register("service", self._service)

    async def receive(self, message: ListNodes) -> None:
        if self.context.incarnation <= self._crashes:
            raise RuntimeError("made to order")
        self.reply(message, NodeList(result=self._nodes))


@asynccontextmanager
async def running(*services: ChildSpec, **options: Any) -> AsyncIterator[Ref[Any]]:
    daemon = ChildSpec.of(
        "daemon",
        Daemon,
        root=Path("/work"),
        version="0",
        stop=trio.Event(),
        keyring=NoKeys(),
        handles="root/handles",
        handle_seen=Seen,
        **options,
    )
    children: tuple[Any, ...] = (
        ChildSpec.of("handles", Silent),
        SupervisorSpec(name="connections", dynamic=True),
        *services,
        daemon,
    )
    with trio.fail_after(60):
        async with open_system(SupervisorSpec(name="root", children=children)) as system:
            yield system.ref("root/daemon")


async def status(*services: ChildSpec) -> DaemonStatus:
    request: Request[DaemonStatus] = GetStatus()
    async with running(*services) as daemon:
        return await daemon.ask(request, timeout=30)


def child(name: str, actor: type[Actor[Any]], **arguments: Any) -> ChildSpec:
    return ChildSpec.of(name, actor, service=name, **arguments)


WORKER = NodeStatus(name="w1", kind="worker", state="up", terminals=2, pid=9)
HOST = NodeStatus(name="gpu1", kind="host", state="up", terminals=0, address="10.0.0.7:5")
REMEMBERED = NodeStatus(name="gpu1", kind="host", state="unreachable", terminals=4)


async def test_without_nodes_the_status_has_none() -> None:
    assert (await status()).nodes == []


async def test_the_status_has_what_runs_and_what_is_remembered(autojump_clock: object) -> None:
    services = (
        child("nodes", Knows, nodes=[WORKER, HOST], crashes=1),
        child("terminals", Knows, nodes=[REMEMBERED]),
    )
    assert (await status(*services)).nodes == [attrs.evolve(HOST, terminals=4), WORKER]


async def test_who_gives_no_answer_is_left_out_of_the_status(autojump_clock: object) -> None:
    services = (child("nodes", Silent), child("terminals", Knows, nodes=[REMEMBERED]))
    assert (await status(*services)).nodes == [REMEMBERED]


@pytest.mark.parametrize("fails", [False, True])
async def test_callers_of_an_examination_at_the_same_time_share_one(fails: bool) -> None:
    begun, may_end, outcomes = 0, trio.Event(), []

    async def examine(root: Path) -> Examination:
        nonlocal begun
        begun += 1
        await may_end.wait()
        if fails:
            raise Unavailable("made to order")
        return Examination(root=str(root), findings=[], left_out=0)

    async with running(examine=examine) as daemon:

        async def call() -> None:
            request: Request[Examination] = Examine()
            try:
                outcomes.append((await daemon.ask(request, timeout=30)).root)
            except Unavailable as error:
                outcomes.append(str(error))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            may_end.set()
        assert (begun, outcomes) == (1, ["made to order" if fails else "/work"] * 3)
        await call()
        assert begun == 2
