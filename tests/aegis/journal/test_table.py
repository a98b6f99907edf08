"""Random operations on a table over a disk that refuses, is killed and loses power."""

from __future__ import annotations

import errno
from collections.abc import Callable, Container, Iterable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import Actor, ChildSpec, Reply, Request, SupervisorSpec
from actors.simulate import Simulation, simulate
from aegis.errors import StorageError
from aegis.journal.opening import open_ledger
from aegis.journal.table import StoredDocument, StoredText, Table, read_rows
from tests.chaos.machine.disk_images import legal_images
from tests.chaos.machine.disk_model import Image, cached_image
from tests.chaos.machine.simulated_disk import (
    ANY,
    DiskFault,
    DiskPlan,
    Fail,
    SimulatedDisk,
)
from tests.chaos.machine.simulated_flusher import SimulatedFlusher

LEDGER = Path("/state/rows.jsonl")
EMPTY: Image = {"/": None, "/state": None}
STEPS = 150
WRITES = (
    {"write"},
    {"fdatasync"},
    {"fsync"},
    {"rename"},
    {"pread", "unlink"},
    {"write", "fdatasync", "ftruncate", "open"},
)


@attrs.frozen(kw_only=True)
class Shelf:
    """A row of each kind of field."""

    id: str
    number: int
    done: tuple[int, ...] = ()
    text: StoredText | None = None
    paper: StoredDocument | None = None


@attrs.frozen
class Do(Request[str]):
    """Have the actor call ``act`` with its table and the reply of this request."""

    act: Callable[[Table[Shelf], Reply[str]], None]


class Owner(Actor[Do]):
    """The owner of a table, which a test directs."""

    def __init__(self, *, flusher: SimulatedFlusher, world: World) -> None:
        self._flusher, self._world = flusher, world

    async def setup(self) -> None:
        self.table: Table[Shelf] = Table(
            LEDGER,
            Shelf,
            self._flusher,
            self.context,
            changed=self._changed,
            lost=self._lost,
        )
        self._world.table = self.table
        await self.table.open()

    async def teardown(self) -> None:
        self.table.close()

    async def receive(self, message: Do) -> None:
        message.act(self.table, self.defer(message))

    def _changed(self) -> None:
        self._world.changes += 1

    def _lost(self) -> None:
        assert not self.table.problem
        self._world.losses += 1


class RefusingDisk(DiskPlan):
    """A disk whose calls named in ``refuses`` fail, each with the probability ``odds``."""

    refuses: Container[str] = ()
    odds = 0.5

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self._chance = chance

    def strike(self, call: str) -> DiskFault | None:
        """Count the call; perhaps fail it."""
        planned = super().strike(call)
        is_refused = call in self.refuses and self._chance.random() < self.odds
        return Fail(errno.ENOSPC) if is_refused else planned


class World:
    """A table, and what its callers know of it.

    ``durable`` has the versions that ``then`` was called for, by row; ``facts`` the numbers of
    facts by row, of which those in ``stored`` are durable.
    """

    table: Table[Shelf]

    def __init__(self, simulation: Simulation) -> None:
        self.chance = simulation.chance
        self.plan = RefusingDisk(self.chance)
        self.disk = SimulatedDisk(EMPTY, self.plan)
        self.changes = self.losses = 0
        self.count = 0
        self.durable: dict[str, Shelf | None] = {}
        self.held: dict[str, Shelf] = {}
        self.texts: dict[tuple[str, int], str] = {}
        self.facts: dict[int, str] = {}
        self.stored: list[int] = []
        self.dropped: set[str] = set()  # or tried to: the disk may have refused that
        self.outcomes: dict[int, list[str]] = {}
        self._simulation = simulation
        self._scope = trio.CancelScope()

    async def live(self, task_status: trio.TaskStatus[None]) -> None:
        owner = ChildSpec.of("owner", Owner, flusher=SimulatedFlusher(self.disk), world=self)
        spec = SupervisorSpec(name="root", children=(owner,))
        with trio.CancelScope() as self._scope:
            async with self._simulation.open_system(spec) as self.system:
                task_status.started()
                await trio.sleep_forever()

    async def stop(self, *, power_fails: bool) -> None:
        model = self.disk.model
        image = next(iter(legal_images(model))) if power_fails else dict(cached_image(model))
        self.disk = SimulatedDisk(image, self.plan)
        self._scope.cancel()
        await trio.testing.wait_all_tasks_blocked()

    # Steps.

    def step(self, nursery: trio.Nursery) -> None:
        chance = self.chance
        self.count += 1
        row_id = chance.choice("abcdef")
        match chance.randrange(10):
            case 0 | 1 | 2:
                nursery.start_soon(self.ask, self.count, partial(self.put, row_id, self.count))
            case 3:
                nursery.start_soon(self.ask, self.count, partial(self.drop, row_id))
            case 4 | 5:
                nursery.start_soon(self.ask, 0, partial(self.fact, row_id, self.count))
            case 6:
                nursery.start_soon(self.ask, self.count, self.settled)
            case 7 if chance.random() < 0.3:
                self.plan.refuses = chance.choice(WRITES)
            case 8:
                self.table.compact()
            case _:
                self.plan.refuses = ()

    async def ask(self, number: int, act: Any) -> None:
        """Ask the owner, and note each outcome of a request with a number."""
        try:
            value = await self.system.ref("root/owner").ask(Do(act), timeout=10_000)
        except StorageError:
            value = "refused"
        except Exception:
            value = "killed"
        if number:
            self.outcomes.setdefault(number, []).append(value)

    def put(self, row_id: str, number: int, table: Table[Shelf], reply: Reply[str]) -> None:
        before = table.rows.get(row_id)
        text = f"{number}:" + "x" * self.chance.choice([3, 500])
        new = Shelf(id=row_id, number=number, text=StoredText.of(text))
        row = new if before is None else attrs.evolve(before, number=number, text=new.text)
        self.texts[row_id, number] = text
        table.put(row, partial(self.is_durable, row_id, row, reply), reply)

    def put_row(self, row: Shelf, table: Table[Shelf], reply: Reply[str]) -> None:
        assert row.text is not None
        self.texts[row.id, row.number] = row.text.whole or ""
        table.put(row, lambda: reply.send("durable"), reply)

    def drop(self, row_id: str, table: Table[Shelf], reply: Reply[str]) -> None:
        if row_id in table.rows and not table.has_fact(row_id):
            for number in [each for each, of in self.facts.items() if of == row_id]:
                del self.facts[number]
                self.stored.remove(number)
            self.dropped.add(row_id)
            table.drop(row_id, partial(self.is_durable, row_id, None, reply), reply)
        else:
            reply.send("nothing")

    def fact(self, row_id: str, number: int, table: Table[Shelf], reply: Reply[str]) -> None:
        if table.shown(row_id) is not None and row_id in table.rows:
            self.facts[number] = row_id
            stored = partial(self.stored.append, number)
            table.fact(row_id, partial(_with_fact, number=number), stored)
        elif table.shown(row_id) is None and row_id not in {*table.rows} | self.dropped:
            self.facts[number] = row_id
            new = Shelf(id=row_id, number=number, done=(number,))
            table.add_fact(new, partial(self.stored.append, number))
        reply.send("done")

    def settled(self, table: Table[Shelf], reply: Reply[str]) -> None:
        rows = {key: row for key, row in table.rows.items() if not table.has_fact(key)}

        def then() -> None:
            for row_id, row in rows.items():
                shown = table.shown(row_id)
                assert shown is not None
                assert shown.number >= row.number
            reply.send("settled")

        table.settled(then, reply)

    def is_durable(self, row_id: str, row: Shelf | None, reply: Reply[str]) -> None:
        self.durable[row_id] = row
        newest = self.table.rows.get(row_id)
        if newest is not None and row is not None and newest.number == row.number:
            found = rows_in(next(iter(legal_images(self.disk.model)))).get(row_id)
            assert found is not None, "what follows from a line follows once it is durable"
            assert found.number == row.number
        reply.send("durable")

    # What must always hold.

    def check(self) -> None:
        table = self.table
        # A line that was refused is on the medium until it is truncated there.
        medium = rows_in(next(iter(legal_images(self.disk.model))))
        for row in () if table.problem else table.all_shown():
            kept = medium.get(row.id)
            if kept is None and row.id in self.dropped and table.rows.get(row.id) is not row:
                continue  # its drop is on the medium, and not acknowledged yet
            assert kept is not None, "a row that is shown survives a loss of power"
            assert kept.number >= row.number
        for number, row_id in self.facts.items():
            assert number in table.rows[row_id].done, "a fact holds, whatever the disk does"
        # Versions that were replaced too, which a coroutine may hold.
        for row in [*table.rows.values(), *self.held.values()]:
            if row.text is not None and not self.plan.refuses:
                assert table.text(row.text, "text") == self.texts[row.id, row.number]
        if table.rows:
            held = table.shown(self.chance.choice([*table.rows]))
            self.held = {} if held is None else {held.id: held}


def _with_fact(row: Shelf, *, number: int) -> Shelf:
    return row if number in row.done else attrs.evolve(row, done=(*row.done, number))


def rows_in(image: Image) -> dict[str, Shelf]:
    data = image.get(str(LEDGER))
    disk = SimulatedDisk({**EMPTY, **({} if data is None else {str(LEDGER): data})})
    return read_rows(disk, LEDGER, len(data or b""), Shelf)


def lines_in(image: Image) -> int:
    return (image[str(LEDGER)] or b"").count(b"\n")


SEEDS = [*range(16), *(pytest.param(each, marks=pytest.mark.long) for each in range(16, 300))]


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_what_the_disk_has_and_facts_are_never_lost(seed: int) -> None:
    async def story(simulation: Simulation) -> None:
        world = World(simulation)
        for life in range(3):
            async with trio.open_nursery() as nursery:
                await nursery.start(world.live)
                for _ in range(STEPS // 3):
                    world.step(nursery)
                    await trio.sleep(world.chance.choice([0, 0, 0.001, 0.004, 0.01, 6]))
                    world.check()
                world.plan.refuses = ()
                await trio.sleep(20)
                world.check()
                assert {*world.facts} == {*world.stored}, "each fact is durable in the end"
                assert len(world.stored) == len(world.facts), "and once"
                assert not world.table.problem
                assert [*world.table.all_shown()] == [*world.table.rows.values()]
                known = dict(world.table.rows)
                if chance_of_end := world.chance.random():
                    world.table.compact()  # a kill or a loss of power in its midst
                    await trio.sleep(chance_of_end * 0.03)
                await world.stop(power_fails=life % 2 == 0)
                world.held.clear()
            world.facts.clear()
            world.stored.clear()
            read = rows_in(cached_image(world.disk.model))
            assert read.keys() == known.keys()
            for key, row in read.items():
                assert (row.number, row.done) == (known[key].number, known[key].done)
            for row_id, row_or_none in world.durable.items():
                if row_or_none is not None and row_id in read:
                    assert read[row_id].number >= row_or_none.number
        assert all(len(each) == 1 for each in world.outcomes.values()), "one outcome each"
        assert {"durable"} <= {each for found in world.outcomes.values() for each in found}

    simulate(story, seed=seed)


def test_a_ledger_is_opened_again_after_the_disk_has_refused() -> None:
    async def story(simulation: Simulation) -> None:
        world = World(simulation)
        row = Shelf(id="a", number=1, text=StoredText.of("y" * 300))
        async with trio.open_nursery() as nursery:
            await nursery.start(world.live)
            nursery.start_soon(world.ask, 1, lambda table, reply: _put(table, row, reply))
            await trio.sleep(1)
            await world.stop(power_fails=True)
            world.plan.refuses, world.plan.odds = {"open"}, 1.0
            await nursery.start(world.live)
            world.plan.refuses = ()
            assert "cannot be read, which is tried again every 5 seconds" in world.table.problem
            nursery.start_soon(world.ask, 2, lambda table, reply: _put(table, row, reply))
            await trio.sleep(6)
            assert (world.table.problem, world.losses) == ("", 1)
            read = world.table.rows["a"].text
            assert read is not None
            assert world.table.text(read, "text") == "y" * 300
            await world.stop(power_fails=True)
        assert world.outcomes == {1: ["durable"], 2: ["refused"]}

    simulate(story, seed=1)


def test_a_ledger_that_is_opened_again_by_its_owner_is_tried_at_once() -> None:
    async def story(simulation: Simulation) -> None:
        world = World(simulation)
        row = Shelf(id="a", number=1)
        async with trio.open_nursery() as nursery:
            await nursery.start(world.live)
            for fails in (1, 2):
                world.plan.refuses, world.plan.odds = {"fdatasync"}, 1.0
                nursery.start_soon(world.ask, fails, lambda table, reply: _put(table, row, reply))
                await trio.sleep(0.1)
                world.plan.refuses = {"open"}
                await world.table.open()
                assert "cannot be written" in world.table.problem
                assert world.table.refusal.startswith("cannot open /state/rows.jsonl: ")
                world.plan.refuses = ()
                await world.table.open()
                assert (world.table.problem, world.losses) == ("", fails)
                await trio.sleep(0.1)
            nursery.start_soon(world.ask, 3, lambda table, reply: _put(table, row, reply))
            await trio.sleep(20)
            assert world.losses == 2
            await world.stop(power_fails=True)
        assert world.outcomes == {1: ["refused"], 2: ["refused"], 3: ["durable"]}

    simulate(story, seed=1)


@pytest.mark.parametrize("accepts", [True, False])
def test_a_fact_about_a_row_that_is_refused_is_refused_with_it(accepts: bool) -> None:
    async def story(simulation: Simulation) -> None:
        world = World(simulation)
        row = Shelf(id="a", number=1)

        def put_and_note(table: Table[Shelf], reply: Reply[str]) -> None:
            _put(table, row, reply)
            table.fact("a", partial(_with_fact, number=7), lambda: world.stored.append(7))

        async with trio.open_nursery() as nursery:
            await nursery.start(world.live)
            world.plan.refuses, world.plan.odds = set() if accepts else {"fdatasync"}, 1.0
            nursery.start_soon(world.ask, 1, put_and_note)
            await trio.sleep(1)
            world.plan.refuses = ()
            await trio.sleep(6)
            assert [*world.table.rows] == (["a"] if accepts else [])
            nursery.start_soon(world.ask, 2, lambda table, reply: _put(table, row, reply))
            await trio.sleep(1)
            assert world.table.rows["a"].done == ()
            await world.stop(power_fails=True)
        assert world.stored == ([7] if accepts else [])
        assert world.outcomes == {1: ["durable" if accepts else "refused"], 2: ["durable"]}

    simulate(story, seed=1)


def test_a_wait_for_all_changes_lasts_until_the_disk_has_accepted_the_facts() -> None:
    async def story(simulation: Simulation) -> None:
        world = World(simulation)
        row = Shelf(id="a", number=1)
        seen: list[tuple[int, ...]] = []

        async def wait() -> None:
            await world.table.durable()
            shown = world.table.shown("a")
            seen.append(() if shown is None else shown.done)

        async with trio.open_nursery() as nursery:
            await nursery.start(world.live)
            await wait()
            nursery.start_soon(world.ask, 1, lambda table, reply: _put(table, row, reply))
            await trio.sleep(1)
            world.plan.refuses, world.plan.odds = {"fdatasync", "open"}, 1.0
            world.table.fact("a", partial(_with_fact, number=7))
            nursery.start_soon(wait)
            await trio.sleep(20)
            assert seen == [()]
            nursery.start_soon(wait)
            world.plan.refuses = ()
            await trio.sleep(6)
            assert seen == [(), (7,), (7,)]
            await world.stop(power_fails=True)

    simulate(story, seed=1)


def _put(table: Table[Shelf], row: Shelf, reply: Reply[str]) -> None:
    table.put(row, lambda: reply.send("durable"), reply)


def test_a_text_whose_line_is_damaged_is_refused_and_a_short_one_is_in_memory() -> None:
    async def story(simulation: Simulation) -> None:
        world = World(simulation)
        long = Shelf(id="a", number=1, text=StoredText.of("y" * 300))
        short = Shelf(id="b", number=1, text=StoredText.of("short"))
        async with trio.open_nursery() as nursery:
            await nursery.start(world.live)
            for row in (long, short):
                nursery.start_soon(
                    world.ask, row.number, lambda table, reply, row=row: _put(table, row, reply)
                )
            await trio.sleep(1)
            texts = {key: row.text for key, row in world.table.rows.items()}
            opened = open_ledger(world.disk, LEDGER)
            world.disk.ftruncate(opened.fd, 10)
            assert texts["b"] is not None
            assert world.table.text(texts["b"], "text") == "short"
            assert texts["a"] is not None
            assert texts["a"].head == "y" * 200
            with pytest.raises(StorageError, match="cannot read"):
                world.table.text(texts["a"], "text")
            await world.stop(power_fails=False)

    simulate(story, seed=1)


def test_a_deferred_change_is_durable_with_the_next_one_and_when_it_is_asked_for() -> None:
    async def story(simulation: Simulation) -> None:
        world = World(simulation)
        async with trio.open_nursery() as nursery:
            await nursery.start(world.live)
            table, durable = world.table, list[str]()

            def put(row_id: str, *, is_deferred: bool = True) -> bool:
                then = partial(durable.append, row_id)
                return table.put(Shelf(id=row_id, number=1), then, is_deferred=is_deferred)

            assert put("a")
            await trio.sleep(1)
            assert durable == []
            assert table.shown("a") is None
            assert lines_in(cached_image(world.disk.model)) == 1, "it is written"
            assert put("b", is_deferred=False)
            await trio.sleep(1)
            assert durable == ["a", "b"]
            assert put("c")
            table.sync()
            await trio.sleep(1)
            assert durable == ["a", "b", "c"]
            assert put("d")
            world.plan.refuses, world.plan.odds = {"fdatasync"}, 1
            table.sync()
            await trio.sleep(1)
            assert (table.shown("d"), [*table.rows]) == (None, ["a", "b", "c"])
            assert not put("e")
            table.sync()
            world.plan.refuses = ()
            await trio.sleep(6)
            assert (table.problem, durable) == ("", ["a", "b", "c"])
            await world.stop(power_fails=True)

    simulate(story, seed=1)


def paper(number: int) -> Shelf:
    content = {"number": number, "text": "ä" * 300}
    return Shelf(id=f"p{number}", number=number, paper=StoredDocument.of(content))


async def papers(world: World, count: int = 3) -> list[StoredDocument]:
    """Put rows with documents, and return what is in memory of these."""
    for number in range(count):
        world.table.put(paper(number))
    await trio.sleep(1)
    found = [row.paper for row in world.table.rows.values()]
    return [each for each in found if each is not None]


def numbers_in(lines: Iterable[Any]) -> list[int]:
    return [each["set"]["paper"]["number"] for each in lines]


def test_of_a_document_only_the_place_is_in_memory() -> None:
    async def story(simulation: Simulation) -> None:
        world = World(simulation)
        async with trio.open_nursery() as nursery:
            await nursery.start(world.live)
            for _ in range(2):
                stored = await papers(world)
                assert [each.whole for each in stored] == [None] * 3
                assert numbers_in(world.table.lines_of(stored)) == [0, 1, 2]
                assert numbers_in(await world.table.lines_of_many(stored[1:])) == [1, 2]
                line = world.table.whole(world.table.rows["p1"])
                assert numbers_in([line]) == [1]
                await world.stop(power_fails=True)
                await nursery.start(world.live)
            opened = open_ledger(world.disk, LEDGER)
            stored = await papers(world)
            world.disk.ftruncate(opened.fd, stored[2].start + 10)
            found = world.table.lines_of(stored)
            assert found[2] == "the file ends before"
            assert (await world.table.lines_of_many(stored))[2] == "the file ends before"
            stored[0].start += 1
            assert isinstance(world.table.lines_of(stored[:1])[0], str), "it is another line"
            world.plan.refuses, world.plan.odds = {"pread"}, 1
            with pytest.raises(StorageError, match="cannot read"):
                world.table.lines_of(stored[1:2])
            world.plan.refuses = {"open"}
            with pytest.raises(StorageError, match="cannot read"):
                await world.table.lines_of_many(stored[1:2])
            await world.stop(power_fails=False)

    simulate(story, seed=1)


def test_a_document_is_read_while_the_ledger_is_compacted_and_after() -> None:
    async def story(simulation: Simulation) -> None:
        world = World(simulation)
        async with trio.open_nursery() as nursery:
            await nursery.start(world.live)
            stored = await papers(world, 40)
            for number in range(20):
                world.table.drop(f"p{number}")
            await trio.sleep(1)
            world.table.compact()
            found = []
            for _ in range(40):
                found.append(await world.table.lines_of_many(stored))
                await trio.sleep(0.0003)
            assert all(numbers_in(each) == [*range(40)] for each in found)
            assert lines_in(cached_image(world.disk.model)) == 20, "it is compacted"
            kept = [row.paper for row in world.table.rows.values() if row.paper is not None]
            assert numbers_in(world.table.lines_of(kept)) == [*range(20, 40)]
            await world.stop(power_fails=True)
            await nursery.start(world.live)
            kept = [row.paper for row in world.table.rows.values() if row.paper is not None]
            assert numbers_in(world.table.lines_of(kept)) == [*range(20, 40)]
            await world.stop(power_fails=False)

    simulate(story, seed=1)


# Compaction.


def shelves(count: int, number: int = 1) -> list[Shelf]:
    text = "".join(map(chr, range(200, 260))) * 5
    return [Shelf(id=f"r{each}", number=number, text=StoredText.of(text)) for each in range(count)]


async def fill(world: World, rows: list[Shelf]) -> None:
    """Put rows, and wait until they are durable."""
    async with trio.open_nursery() as nursery:
        for row in rows:
            nursery.start_soon(world.ask, 1, partial(world.put_row, row))


@pytest.fixture
def from_the_first_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aegis.journal.table.COMPACT_BYTES", 1)


@pytest.mark.usefixtures("from_the_first_byte")
def test_a_ledger_is_compacted_once_most_of_it_is_out_of_date() -> None:
    async def story(simulation: Simulation) -> None:
        world = World(simulation)
        async with trio.open_nursery() as nursery:
            await nursery.start(world.live)
            rows = shelves(40)
            await fill(world, rows)
            assert lines_in(cached_image(world.disk.model)) == 40
            await fill(world, [attrs.evolve(each, number=2) for each in rows[:10]])
            await trio.sleep(1)
            assert lines_in(cached_image(world.disk.model)) == 50, "most of it is live"
            for row in rows[:25]:
                world.table.drop(row.id)
            await trio.sleep(1)
            assert lines_in(cached_image(world.disk.model)) == 15, "one line for each row"
            for row in world.table.rows.values():
                assert row.text is not None
                assert rows[0].text is not None
                assert world.table.text(row.text, "text") == rows[0].text.whole
            await fill(world, [attrs.evolve(rows[30], number=3)])
            known = [*world.table.rows]
            await world.stop(power_fails=True)
            read = rows_in(cached_image(world.disk.model))
            assert [*read] == known, "in the order of their first lines"
            assert read["r30"].number == 3
            await nursery.start(world.live)
            for row in world.table.rows.values():
                assert row.text is not None
                assert world.table.text(row.text, "text") == "".join(map(chr, range(200, 260))) * 5
            assert world.disk.model.open_count == 1, "the file before is closed"
            await world.stop(power_fails=False)

    simulate(story, seed=1)


def test_a_text_that_was_replaced_is_read_from_the_file_before() -> None:
    async def story(simulation: Simulation) -> None:
        world = World(simulation)
        async with trio.open_nursery() as nursery:
            await nursery.start(world.live)
            (row,) = shelves(1)
            await fill(world, [row])
            before = world.table.rows["r0"].text
            await fill(world, [attrs.evolve(row, number=2, text=StoredText.of("z" * 400))])
            world.table.compact()
            await trio.sleep(1)
            after = world.table.rows["r0"].text
            assert before is not None
            assert after is not None
            assert row.text is not None
            assert lines_in(cached_image(world.disk.model)) == 1
            assert world.table.text(before, "text") == row.text.whole
            assert world.table.text(after, "text") == "z" * 400
            assert world.disk.model.open_count == 2
            del before
            assert world.disk.model.open_count == 1, "it is closed with the last text in it"
            await world.stop(power_fails=False)

    simulate(story, seed=1)


def test_a_ledger_with_lines_that_were_not_understood_stays_as_it_is() -> None:
    async def story(simulation: Simulation) -> None:
        world = World(simulation)
        async with trio.open_nursery() as nursery:
            await nursery.start(world.live)
            await fill(world, shelves(2))
            await world.stop(power_fails=False)
            opened = open_ledger(world.disk, LEDGER)
            world.disk.write(opened.fd, b'{"id":"r0","set":{"number":7}}\n')
            world.disk.fsync(opened.fd)
            await nursery.start(world.live)
            before = cached_image(world.disk.model)
            world.table.compact()
            await trio.sleep(1)
            assert cached_image(world.disk.model) == before
            await world.stop(power_fails=False)

    simulate(story, seed=1)


CALLS = 40
"""More calls of the disk than a compaction and what follows it make."""


async def compacted(world: World, nursery: trio.Nursery) -> None:
    """Compact a ledger while its rows are put again."""
    world.table.compact()
    for count in range(3, 8):
        row = attrs.evolve(shelves(1)[0], number=count)
        nursery.start_soon(world.ask, count, partial(world.put_row, row))
        await trio.sleep(0.004)
    await trio.sleep(7)


async def begun(world: World, nursery: trio.Nursery) -> None:
    """Start, and put rows twice, so that half of the ledger is out of date."""
    await nursery.start(world.live)
    for number in (1, 2):
        await fill(world, shelves(3, number))


def test_a_kill_or_a_loss_of_power_at_any_call_of_a_compaction_loses_nothing() -> None:
    async def story(simulation: Simulation) -> None:
        world = World(simulation)
        moments: list[tuple[int, list[Image]]] = []

        def look(_: str) -> None:
            acked = [n for n, told in world.outcomes.items() if "durable" in told]
            model = world.disk.model
            moments.append((max(2, *acked), [dict(cached_image(model)), *legal_images(model)]))

        async with trio.open_nursery() as nursery:
            await begun(world, nursery)
            world.disk.before_call = look
            await compacted(world, nursery)
            world.disk.before_call = lambda _: None
            assert lines_in(cached_image(world.disk.model)) < 10
            await world.stop(power_fails=False)
        assert len(moments) > 20
        for acked, images in moments:
            for image in images:
                read = rows_in(image)
                assert {*read} == {"r0", "r1", "r2"}
                assert read["r0"].number >= acked, "what was acknowledged is there"
                assert (read["r1"].number, read["r2"].number) == (2, 2)

    simulate(story, seed=1)


@pytest.mark.parametrize("number", range(1, CALLS))
def test_a_refused_call_of_a_compaction_changes_nothing(number: int) -> None:
    async def story(simulation: Simulation) -> None:
        world = World(simulation)
        async with trio.open_nursery() as nursery:
            await begun(world, nursery)
            world.plan.faults[ANY, world.plan.hits[ANY] + number] = Fail(errno.EIO)
            await compacted(world, nursery)
            answers = {told for found in world.outcomes.values() for told in found}
            assert answers <= {"durable", "refused"}
            assert not world.table.problem
            world.plan.faults.clear()
            world.check()
            numbers = [world.table.rows[each].number for each in ("r0", "r1", "r2")]
            kept = [n for n, told in world.outcomes.items() if told[-1] == "durable"]
            assert numbers == [max(2, *kept), 2, 2]
            world.table.compact()
            await trio.sleep(1)
            assert lines_in(cached_image(world.disk.model)) == 3
            assert world.disk.model.open_count == 1
            await world.stop(power_fails=True)
            read = rows_in(cached_image(world.disk.model))
            assert [read[each].number for each in ("r0", "r1", "r2")] == numbers

    simulate(story, seed=number)
