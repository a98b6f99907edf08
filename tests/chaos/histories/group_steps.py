"""The steps of a simulated client on groups, and their undisturbed end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import trio

from aegis.journal.disk import read_file
from aegis.journal.ledger import scan
from aegis.protocol import groups as api
from tests.chaos.checking.group_evidence import GroupReply, GroupSent
from tests.chaos.histories import script as s
from tests.chaos.histories.asking import Answered, Asker
from tests.chaos.histories.tree import STATE
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.notebook import Notebook

KEYED = 80_000
"""The first number of the orders of broadcasts with a key: the same key has the same order."""

MOST_BYTES = 2**24
"""The most bytes of a ledger that are read."""

PATIENCE_S = 600.0
LOOK_S = 1.0


class GroupSteps:
    """The steps on groups of the client behind ``asker``, called ``handle``."""

    def __init__(self, handle: str, asker: Asker, book: Notebook) -> None:
        self._handle = handle
        self._ask = asker.ask
        self._book = book

    async def do(self, step: s.Step) -> None:
        """Do one step."""
        await DOERS[type(step)](self, step)

    async def spawn(self, step: s.SpawnGroupStep) -> None:
        # People own the groups: any client may use and dissolve them.
        request = api.SpawnMixedGroup(group=step.group, profiles=["asks"] * step.members)
        await self._ask(request, self._saw)

    def _saw(self, answered: Answered) -> None:
        if answered.value is not None:
            self._saw_members([answered.value])

    def _saw_members(self, infos: list[api.GroupInfo]) -> None:
        self._book.groups.members |= {each.handle for info in infos for each in info.members}

    async def broadcast(self, step: s.GroupBroadcastStep) -> None:
        number, key = step.number, None
        if step.key is not None:
            place = 100 * s.GROUPS.index(step.group) + step.key
            number, key = KEYED + place, f"k{step.key}"
        token = f"@work.{number}.{step.kind}@"
        request = api.BroadcastToGroup(
            group=step.group, objective=token, key=key, callback=step.callback
        )
        await self._ask(request, partial(self._sent, request, token))

    def _sent(self, request: api.BroadcastToGroup, token: str, answered: Answered) -> None:
        self._book.groups.sent.append(
            GroupSent(
                group=request.group,
                token=token,
                sender=s.HUMAN,
                span=answered.span,
                id=None if answered.value is None else answered.value.broadcast_id,
                key=request.key,
                callback=request.callback,
            )
        )

    async def wait(self, step: s.GroupWaitStep) -> None:
        known = [each.id for each in self._book.groups.sent if each.group == step.group and each.id]
        chosen = known[step.draw % len(known)] if known else None
        common: dict[str, Any] = {
            "group": step.group,
            "timeout": step.timeout_s,
            "broadcast_id": chosen,
        }
        request: Any = api.WaitForAll(**common)
        if step.is_any:
            request = api.WaitForAny(**common, cancel_losers=step.cancels)
        await self._ask(request, self._got)

    def _got(self, answered: Answered) -> None:
        found = answered.value
        if found is not None:
            self._book.groups.replies += [
                GroupReply(id=found.broadcast_id, member=member, text=text)
                for member, text in found.by_member.items()
            ]

    async def show(self, step: s.ShowGroupStep) -> None:
        await self._ask(api.ShowGroup(group=step.group), self._saw)
        await self._ask(api.ListGroups())

    async def dissolve(self, step: s.DissolveGroupStep) -> None:
        self._book.groups.dissolved.add(step.group)
        await self._ask(api.DissolveGroup(group=step.group), self._saw)

    # The end.

    async def settle(self, disk: SimulatedDisk) -> None:
        """Wait until no group waits for anything; then read all replies, and the ledgers."""
        left = await self._left()
        for _ in range(round(PATIENCE_S / LOOK_S)):
            if not left:
                break
            await trio.sleep(LOOK_S)
            left = await self._left()
        self._book.groups.stuck += left
        for each in [*self._book.groups.sent]:
            if each.id is not None:
                request = api.WaitForAll(group=each.group, timeout=0.0, broadcast_id=each.id)
                await self._ask(request, self._got)
        self._book.groups.members |= members_in(disk)

    async def _left(self) -> list[str]:
        listed = await self._ask(api.ListGroups())
        infos: list[api.GroupInfo] = [] if listed.value is None else listed.value.result
        self._saw_members(infos)
        self._book.groups.open = {each.group for each in infos if each.state == "open"}
        return [
            f"the group {each.group} is {each.state}, {each.forming} forming: {each.problem}"
            for each in infos
            if each.forming
            or each.problem
            or each.state == "dissolving"
            or (each.broadcast is not None and not each.broadcast.is_over)
        ]


DOERS: dict[type[s.Step], Callable[[GroupSteps, Any], Awaitable[None]]] = {
    s.SpawnGroupStep: GroupSteps.spawn,
    s.GroupBroadcastStep: GroupSteps.broadcast,
    s.GroupWaitStep: GroupSteps.wait,
    s.ShowGroupStep: GroupSteps.show,
    s.DissolveGroupStep: GroupSteps.dissolve,
}


def members_in(disk: SimulatedDisk) -> set[str]:
    """Return the ids of all sessions that were ever opened for a group, or were to be."""
    found: set[str] = set()
    try:
        names = disk.list_directory(STATE.groups)
    except OSError:
        return found  # no group was created
    for name in names:
        data = read_file(disk, STATE.groups / name, max_bytes=MOST_BYTES) or b""
        for line in scan(data).lines:
            forming = line.fields.get("set", {}).get("forming", {})
            found |= {each["session"] for one in forming.values() for each in one["members"]}
    return found
