"""Past broadcasts, and groups that are gone, are moved to the archive."""

from __future__ import annotations

import gzip

import pytest

from aegis.errors import AegisError
from aegis.journal.archive import Keep
from aegis.protocol.groups import GroupReplies, WaitForAll, WaitForAny
from tests.aegis.groups.office import DIRECTORY, Office, ordering, play
from tests.chaos.machine.disk_model import cached_image

FEW = Keep(newest=2, days=0, most=1_000)
NONE = Keep(newest=0, days=0, most=1_000)


async def order(office: Office, number: int, member: str = "ann", **fields: str) -> str:
    """Give a group an order with the key ``k<number>``, to which ``ann`` replies."""
    id_ = await office.broadcast(f"do {number}", key=f"k{number}", **fields)
    await office.ends(member, f"did {number}")
    return id_


def archived(office: Office, kind: str) -> int:
    """Return the number of rows of a kind in the archive."""
    files = cached_image(office.disk.model).items()
    data = [v or b"" for k, v in files if f"/{kind}/" in k and k.endswith(".gz")]
    return sum(len(gzip.decompress(each).splitlines()) for each in data)


def test_a_broadcast_is_answered_from_the_archive_as_it_was() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob", by="pm")
        before: dict[str, GroupReplies] = {}
        for number in range(6):
            id_ = await order(office, number, by="pm")
            await office.ends("bob", f"bob did {number}" * 500)
            before[id_] = await office.replies(id_)
            assert before[id_].metadata.is_over
            await office.passes(10)
        assert archived(office, "broadcasts") == 3 * 3, "the newest and two past ones are kept"
        for restarts in (False, True, True):
            if restarts:
                await office.restart(power_fails=True)
            for id_, replies in before.items():
                assert await office.replies(id_) == replies
                any_of = WaitForAny(group="g", broadcast_id=id_, timeout=0, cancel_losers=True)
                assert (await office.ask(any_of)).by_member == replies.by_member
            assert (await office.replies()).broadcast_id == id_
            unknown = WaitForAll(group="g", broadcast_id="0" * 26)
            await office.refusals("has no broadcast", unknown)

    play(story, keep=FEW)


def test_an_archived_broadcast_is_of_its_group_by_any_of_its_names() -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        first, *_ = [await order(office, number) for number in range(4)]
        await office.passes(1)
        assert archived(office, "broadcasts") == 2 * 3
        await office.rename("g", "h")
        await office.form("bob", group="other")
        for name in ("g", "h"):
            assert (await office.replies(first, group=name)).reduced == "did 0"
        wait = WaitForAll(group="other", broadcast_id=first)
        await office.refusals("has no broadcast", wait)

    play(story, keep=NONE)


def test_every_key_answers_with_the_same_id_once_rows_are_dropped_and_archived() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", by="pm")
        ids = [await order(office, number, by="pm") for number in range(30)]
        await office.passes(1)
        assert archived(office, "broadcasts") >= 27 * 2
        for power_fails in (None, False, True):
            if power_fails is not None:
                await office.restart(power_fails=power_fails)
            for number, id_ in enumerate(ids):
                again = await office.ask(ordering(f"do {number}", key=f"k{number}", by="pm"))
                assert again.broadcast_id == id_
                words = f"belongs to broadcast {id_}, which has another text"
                await office.refusals(words, ordering("else", key=f"k{number}", by="pm"))
        assert len(office.orders("ann")) == 30, "each order was given once"
        other = await office.ask(ordering("do 3", key="k3"))
        assert other.broadcast_id not in ids, "a key belongs to its sender"

    play(story, keep=FEW)


def test_the_reply_to_an_archived_broadcast_is_not_taken_for_that_of_a_later_one() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob")
        await office.broadcast("first")
        await office.ends("ann", "first of ann")
        await office.ends("bob", "first of bob")
        for _ in range(3):  # bob never replies to these
            await office.broadcast("race")
            await office.ends("ann", "won")
            await office.ask(WaitForAny(group="g"))
            await office.passes(30)
        assert archived(office, "broadcasts") >= 6
        for power_fails in (False, True):
            await office.restart(power_fails=power_fails)
            id_ = await office.broadcast("last")
            assert await office.statuses(id_) == {"ann": "pending", "bob": "pending"}
            await office.ends("ann", "last of ann")
            await office.ends("bob", "last of bob")
            assert (await office.replies(id_)).by_member == {
                "ann": "last of ann",
                "bob": "last of bob",
            }

    play(story, keep=NONE)


def test_a_group_that_is_gone_is_archived_with_its_ledger_deleted() -> None:
    async def story(office: Office) -> None:
        for number in range(3):
            await office.form(member := f"ann{number}")
            ids = [await order(office, each, member) for each in range(3)]
            await office.dissolve()
            await office.passes(1)
            assert archived(office, "groups") == (number + 1) * 7
            assert await office.listed() == []
            wait = WaitForAll(group="g", broadcast_id=ids[0])
            await office.refusals("there is no group 'g'", wait)
            await office.restart(power_fails=number == 1)
            assert await office.listed() == []
            assert str(DIRECTORY / "g.jsonl") not in office.files()

    play(story, keep=Keep())


def test_a_ledger_of_a_group_that_is_gone_is_archived_at_the_next_start() -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        await order(office, 0)
        office.plan.refuses = ("rename",)  # the archive cannot be written
        await office.dissolve()
        await office.passes(5)
        assert (archived(office, "groups"), await office.listed()) == (0, [])
        await office.form("new")
        office.plan.refuses = ()
        await office.restart(power_fails=True)
        await office.passes(1)
        assert archived(office, "groups") == 3
        assert [each.handle for each in (await office.show()).members] == ["new"]

    play(story)


def test_the_oldest_broadcasts_of_all_groups_are_moved() -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        await office.form("bob", group="other")
        for number in range(4):
            await order(office, number)
            await office.passes(1)
        await office.broadcast("other", group="other")
        await office.ends("bob", "did other")
        await office.passes(1)
        assert archived(office, "broadcasts") == 2, "its newest is not past"
        assert (await office.replies(group="other")).reduced == "did other"

    play(story, keep=FEW)


def test_broadcasts_whose_losers_are_not_notified_yet_are_not_archived() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob")
        office.agents.silent.add(office.member("bob").id)
        ids = []
        for number in range(4):
            ids.append(await office.broadcast(f"do {number}"))
            await office.ends("ann", f"did {number}")
            assert (await office.ask(WaitForAny(group="g"))).metadata.is_over
        assert archived(office, "broadcasts") == 0
        office.agents.silent.clear()
        await office.passes(20)
        assert archived(office, "broadcasts") == 3 * 3
        for number, each in enumerate(ids):
            assert (await office.replies(each)).reduced == f"did {number}"

    play(story, keep=NONE)


SEEDS = [*range(12), *(pytest.param(each, marks=pytest.mark.long) for each in range(12, 60))]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_disk_that_refuses_and_kills_lose_no_broadcast_and_no_key(seed: int) -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        ids: dict[int, str] = {}
        for number in range(30):
            await office.draws_trouble()
            answer = office.ask_soon(ordering(f"do {number}", key=f"k{number}"))
            await office.passes(0.1)
            if answer.value is None:
                continue
            ids[number] = answer.value.broadcast_id
            await office.passes(12)
            await office.ends("ann", f"did {number}")
            await office.passes(12)
        office.plan.faults.clear()
        await office.passes(200)
        await office.restart(power_fails=True)
        assert ids
        for number, id_ in ids.items():
            again = await office.ask(ordering(f"do {number}", key=f"k{number}"))
            assert again.broadcast_id == id_
            assert (await office.replies(id_)).reduced == f"did {number}"
        assert len(office.orders("ann")) == len({*office.orders("ann")}), "each is given once"

    play(story, seed=seed, keep=FEW)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_group_that_is_dissolved_while_the_disk_refuses_does_not_return(seed: int) -> None:
    async def story(office: Office) -> None:
        chance = office.chance
        for number in range(8):
            await office.form(member := f"ann{number}")
            for each in range(2):
                await order(office, each, member)
            call = chance.choice(["write", "fsync", "rename", "open", "unlink", "fdatasync"])
            office.plan.refuse_one(call, chance.randrange(1, 12))
            while True:
                try:
                    await office.dissolve()
                except AegisError as error:
                    if "there is no group" in str(error):
                        break
                    await office.passes(6)
            await office.passes(chance.choice([0.001, 0.01, 1, 70]))
            if chance.random() < 0.5:
                await office.restart(power_fails=chance.random() < 0.7, draws=True)
            office.plan.faults.clear()
            await office.passes(10)
            assert await office.listed() == []
        await office.restart(power_fails=True)
        await office.passes(200)
        await office.restart()
        assert office.files() == [each for each in office.files() if "/archive/" in each]
        assert archived(office, "groups") >= 8 * 5

    play(story, seed=seed)
