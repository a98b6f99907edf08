"""Random histories of the directory: people, sessions, a refusing disk, crashes, kills."""

from __future__ import annotations

from random import Random
from typing import Any

import attrs
import pytest

from actors import AskError, Request
from aegis.agents.directory import roster_table
from aegis.agents.drivers.harness import Permission
from aegis.errors import AegisError, AlreadyExists, NotFound, StorageError
from aegis.journal.archiver import AGAIN_S
from aegis.protocol.agents import (
    AgentInfo,
    CloseAgent,
    ForkAgent,
    InterruptAgent,
    ListSessions,
    PurgeAgent,
    ReadSession,
    RenameAgent,
    ResumeSession,
    SetAgent,
    ShowAgent,
    SpawnAgent,
    Transcript,
)
from aegis.protocol.requests import FindAnswerer
from tests.aegis.agents.directory.office import Office, play

STEPS = 45
SEEDS = range(40)
LONG_SEEDS = range(40, 340)
SEEDS_THAT_DROP = [
    *range(400, 424),
    *(pytest.param(each, marks=pytest.mark.long) for each in range(424, 600)),
]
KEPT = 2
"""The closed sessions that are kept in histories that drop others."""

PERMISSIONS: tuple[Permission, ...] = ("ask", "write", "full")
WRITES = ("write", "fdatasync", "ftruncate")

SENTENCES = (
    "is or was used",
    "there is no agent",
    "is closed",
    "was purged",
    "is not kept any more",
)


@attrs.define
class Known:
    """What the person knows of one session; a field that may have changed has several values."""

    id: str
    handles: list[str]
    parent: str | None
    may_be_called: set[str]
    is_closed: bool = False
    is_purged: bool = False
    is_unsure: bool = False
    """Whether a close, a reopening or a purge was not answered."""
    permissions: set[str] = attrs.field(factory=lambda: {"ask"})


class History:
    """What people and the daemon did, at random; what is promised of it is checked."""

    def __init__(self, office: Office, seed: int, *, refuses: bool, drops: bool = False) -> None:
        self.office = office
        self.drops = drops
        self.chance = Random(seed)
        self.refuses = refuses
        self.count = 0
        self.known: dict[str, Known] = {}
        self.given: dict[str, str] = {}
        """The session of each handle that was ever given, in lower case."""
        self.unsure: set[str] = set()
        """Handles of spawns that were not answered."""

    async def run(self) -> None:
        steps = (
            *(self.spawns, self.spawns, self.spawns, self.spawns_below, self.renames),
            *(self.renames, self.sets, self.closes, self.closes, self.reopens, self.purges),
            *(self.forks, self.takes_a_handle, self.asks, self.passes, self.looks),
            *(self.crashes, self.kills, self.loses_power),
            *((self.fills_disk, self.one_refusal) if self.refuses else ()),
        )
        for _ in range(STEPS):
            await self.chance.choice(steps)()
        self.office.plan.refuses = ()
        await self.office.passes(2 * AGAIN_S if self.drops else 20)
        await self.check()
        await self.office.restart(power_fails=self.chance.random() < 0.5)
        await self.check()

    # A person.

    async def answer(self, request: Request[Any]) -> Any:
        """Return the answer; an error of the product, or None if there was no answer."""
        answer = self.office.ask_soon(request)
        for _ in range(60):
            if answer.has_come:
                break
            await self.office.passes(0.3)
        else:
            answer.give_up()
            return None
        if isinstance(answer.error, AskError):
            return None
        return answer.error if answer.value is None else answer.value

    def any(self, *, is_closed: bool | None = None) -> Known | None:
        found = [
            each
            for each in self.known.values()
            if not each.is_unsure and not each.is_purged and is_closed in (None, each.is_closed)
        ]
        return self.chance.choice(found) if found else None

    def new_handle(self) -> str:
        self.count += 1
        stem = self.chance.choice(("build-", "Build-", "ann", "x-1-"))
        return f"{stem}{self.count}"

    def name_of(self, known: Known) -> str:
        return self.chance.choice([known.id, *known.handles])

    async def spawns(self, parent: Known | None = None) -> None:
        handle = self.new_handle()
        by = None if parent is None else parent.handles[-1]
        request = SpawnAgent(
            handle=handle,
            profile="lead" if by or self.chance.random() < 0.3 else "asks",
            workspace=self.chance.choice((None, "web")),
            from_handle=by,
        )
        self.took(await self.answer(request), handle, parent)

    def took(self, answer: Any, handle: str, parent: Known | None) -> None:
        if isinstance(answer, AgentInfo):
            assert answer.handle == handle
            known = Known(answer.id, [handle], None if parent is None else parent.id, {handle})
            known.permissions = {answer.permission or "ask"}
            self.known[answer.id] = known
            self.gives(handle, answer.id)
        elif answer is None or not isinstance(answer, AegisError):
            self.unsure.add(handle.lower())
        elif isinstance(answer, AlreadyExists):
            raise AssertionError(f"a new handle is refused: {answer}")
        elif isinstance(answer, StorageError):
            self.unsure.add(handle.lower())

    def gives(self, handle: str, session: str) -> None:
        assert self.given.setdefault(handle.lower(), session) == session, handle

    async def spawns_below(self) -> None:
        found = self.any(is_closed=False)
        if found is not None and found.permissions == {"full"}:
            await self.spawns(found)

    async def renames(self) -> None:
        found = self.any()
        if found is None:
            return
        new = self.chance.choice([self.new_handle(), *found.handles])
        request = RenameAgent(old_handle=self.name_of(found), new_handle=new)
        answer = await self.answer(request)
        if isinstance(answer, AgentInfo):
            assert (answer.id, answer.handle) == (found.id, new)
            found.may_be_called = {new}
            found.handles.append(new)
            self.gives(new, found.id)
        elif answer is None or isinstance(answer, StorageError):
            found.may_be_called.add(new)
            self.unsure.add(new.lower())
        elif not (self.drops and found.is_closed and isinstance(answer, NotFound)):
            raise AssertionError(f"a rename to {new} is refused: {answer}")

    async def sets(self) -> None:
        found = self.any(is_closed=False)
        if found is None:
            return
        permission = self.chance.choice(PERMISSIONS)
        answer = await self.answer(SetAgent(handle=self.name_of(found), permission=permission))
        if isinstance(answer, AgentInfo):
            found.permissions = {permission}
        elif answer is None or isinstance(answer, StorageError):
            found.permissions.add(permission)

    async def closes(self) -> None:
        found = self.any(is_closed=False)
        if found is None:
            return
        answer = await self.answer(CloseAgent(handle=self.name_of(found)))
        if isinstance(answer, AgentInfo) and answer.state == "closed":
            found.is_closed = True
        else:
            found.is_unsure = True

    async def reopens(self) -> None:
        found = self.any(is_closed=True)
        if found is None:
            return
        answer = await self.answer(ResumeSession(handle=self.name_of(found)))
        if isinstance(answer, AgentInfo):
            assert answer.id == found.id
            found.is_closed = False
        else:
            found.is_unsure = True

    async def purges(self) -> None:
        found = self.any()
        if found is None or self.chance.random() < 0.5:
            return
        answer = await self.answer(PurgeAgent(handle=self.name_of(found)))
        if isinstance(answer, AgentInfo):
            found.is_closed = found.is_purged = True
        else:
            found.is_unsure = True

    async def forks(self) -> None:
        found = self.any(is_closed=False)
        if found is not None:
            handle = self.new_handle()
            request = ForkAgent(handle=self.name_of(found), new_handle=handle)
            self.took(await self.answer(request), handle, None)

    async def takes_a_handle(self) -> None:
        """Ask for a handle that another session has or had."""
        if self.given:
            handle = self.chance.choice([*self.given])
            answer = await self.answer(SpawnAgent(handle=handle.upper()))
            assert not isinstance(answer, AgentInfo), f"{handle} is given twice"

    async def asks(self) -> None:
        found = self.any()
        if found is not None:
            answer = await self.answer(ShowAgent(handle=self.name_of(found)))
            if isinstance(answer, AgentInfo):
                self.shows(found, answer)

    def shows(self, known: Known, info: AgentInfo) -> None:
        assert info.id == known.id
        assert info.handle in known.may_be_called
        if info.state != "closed" and info.permission:
            assert info.permission in known.permissions

    async def looks(self) -> None:
        """Look at the lists: none has what is closed, all have what is open."""
        answer = await self.answer(ListSessions())
        if isinstance(answer, AskError | AegisError) or answer is None:
            return
        listed = {each.id for each in answer.result}
        for each in self.known.values():
            if not each.is_unsure:
                assert (each.id in listed) is not each.is_closed, each

    async def passes(self) -> None:
        await self.office.passes(self.chance.choice((0.001, 0.3, 7.0)))

    # Trouble.

    async def crashes(self) -> None:
        await self.office.crashes()

    async def kills(self) -> None:
        await self.office.restart()

    async def loses_power(self) -> None:
        await self.office.restart(power_fails=True, draws=True)

    async def fills_disk(self) -> None:
        self.office.plan.refuses = WRITES
        for _ in range(self.chance.randrange(3)):
            await self.chance.choice((self.spawns, self.renames, self.sets, self.passes))()
        self.office.plan.refuses = ()
        await self.office.passes(self.chance.choice((0.001, 0.5, 7.0)))

    async def one_refusal(self) -> None:
        call = self.chance.choice((*WRITES, "open", "fsync"))
        self.office.plan.refuse_one(call, self.chance.randrange(1, 4))

    # What is promised.

    async def check(self) -> None:
        office = self.office
        found = {each.id: each for each in (await office.ask(ListSessions(closed=True))).result}
        dropped = [
            each
            for each in self.known.values()
            if each.id not in found
            and "not kept any more" in await office.refusal(ShowAgent(handle=each.handles[0]))
        ]
        await self.check_dropped(dropped, found)
        for known in self.known.values():
            info = found.get(known.id)
            if known in dropped:
                continue
            if not known.is_unsure:
                assert (info is None) == known.is_purged, known
            if info is None:
                assert "purged" in await office.refusal(ShowAgent(handle=known.id))
                continue
            self.shows(known, info)
            if not known.is_unsure:
                assert (info.state == "closed") is known.is_closed, known
            for handle in known.handles:
                shown = await office.show(handle)
                assert shown.id == known.id
                assert office.programs.names.address_of(handle) == known.handles[0]
                assert isinstance(
                    await office.refused(SpawnAgent(handle=handle.swapcase())), AlreadyExists
                )
            assert office.programs.names.shown(known.handles[0]) == info.handle
            await self.check_tree(known, info, {each.id for each in dropped})
        names = [each.handle.lower() for each in found.values()]
        assert len({*names}) == len(names)
        for each in found.values():
            assert each.id in self.known or each.handle.lower() in self.unsure, each
        unknown = await office.refused(InterruptAgent(handle="nobody"))
        assert isinstance(unknown, NotFound)

    async def check_dropped(self, dropped: list[Known], found: dict[str, AgentInfo]) -> None:
        """Check what is known of sessions that are not kept, and how many are."""
        for known in dropped:
            assert self.drops, known
            assert known.is_closed or known.is_unsure, known
            for name in (known.id, *known.handles):
                answer = await self.answer(ReadSession(handle=name))
                if isinstance(answer, Transcript):
                    assert not known.is_purged, known
                else:
                    assert "was purged" in str(answer), answer
                    assert known.is_purged or known.is_unsure, known
            for handle in known.handles:
                error = await self.office.refused(SpawnAgent(handle=handle.swapcase()))
                assert isinstance(error, AlreadyExists)
        if self.drops:
            opened = [each for each in found.values() if each.state != "closed"]
            answers = [await self.office.ask(FindAnswerer(handle=each.handle)) for each in opened]
            above = {each for answer in answers for each in answer.ancestors}
            assert len(found.keys() - above) - len(opened) <= KEPT

    async def check_tree(self, known: Known, info: AgentInfo, dropped: set[str]) -> None:
        if info.state != "closed":
            found = await self.office.ask(FindAnswerer(handle=info.handle))
            above, parent = [], known.parent
            while parent is not None and parent not in dropped:
                above.append(parent)
                parent = self.known[parent].parent
            assert [*found.ancestors] == above


def history(seed: int, *, refuses: bool, drops: bool = False) -> None:
    async def case(office: Office) -> None:
        await History(office, seed, refuses=refuses, drops=drops).run()

    play(case, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_without_a_refusing_disk(seed: int) -> None:
    history(seed, refuses=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_with_a_disk_that_refuses(seed: int) -> None:
    history(seed, refuses=True)


@pytest.mark.parametrize("seed", SEEDS_THAT_DROP)
def test_a_history_of_a_roster_that_keeps_few(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roster_table, "MAX_CLOSED", KEPT)
    history(seed, refuses=seed % 2 > 0, drops=True)


@pytest.mark.long
@pytest.mark.parametrize("seed", LONG_SEEDS)
def test_many_histories(seed: int) -> None:
    history(seed, refuses=seed % 3 > 0)
