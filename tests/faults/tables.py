"""The scenario of a table whose ledger is compacted while its rows change."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import attrs

from actors import Actor, ChildSpec, Request, SupervisorSpec
from actors.faults import FaultTable
from aegis.journal.faults import JOURNAL
from aegis.journal.flusher import Flusher
from aegis.journal.opening import open_ledger
from aegis.journal.table import StoredText, Table, read_rows, settle_replacement
from tests.chaos.exhaustive import Evidence, World
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.reproducible import reproducible
from tests.faults.retrying import ask_until_answered, until_done

PATH = Path("/state/cards.jsonl")
CHANGES = 6
IDS = ("a", "b")


@attrs.frozen
class Card:
    """A row with a text that is too long for memory."""

    id: str
    number: int
    text: StoredText


@attrs.frozen
class WriteCard(Request[str]):
    """Store a version of a card; the reply is its text as it was before."""

    id: str
    number: int


class CardIndex(Actor[WriteCard]):
    """The owner of the table, which begins a compaction with each change."""

    def __init__(self, *, flusher: Flusher) -> None:
        self._flusher = flusher

    async def setup(self) -> None:
        self._table: Table[Card] = Table(PATH, Card, self._flusher, self.context)
        await self._table.open()

    async def teardown(self) -> None:
        self._table.close()

    async def receive(self, message: WriteCard) -> None:
        before = self._table.shown(message.id)
        text = "" if before is None else self._table.text(before.text, "text")
        card = Card(message.id, message.number, StoredText.of(text_of(message.number)))
        reply = self.defer(message)
        self._table.put(card, partial(reply.send, text), reply)
        self._table.compact()


def text_of(number: int) -> str:
    """Return the text of a version."""
    return f"{number}" * 300


@attrs.frozen
class Compaction:
    """Cards whose versions are stored one after the other, in a ledger that is replaced."""

    name: str = "compaction of a table"
    image: Image = attrs.field(factory=lambda: {"/": None, "/state": None})
    tables: tuple[FaultTable, ...] = (JOURNAL,)
    subjects: tuple[str, ...] = ()
    recovers_durably: bool = True
    shows_only_durable: bool = True

    async def play(self, world: World) -> None:
        spec = SupervisorSpec(
            name="root", children=(ChildSpec.of("cards", CardIndex, flusher=world.flusher),)
        )

        async def live() -> None:
            async with world.simulation.open_system(spec) as system:
                for number in range(1, CHANGES + 1):
                    world.tries(number)
                    card = WriteCard(IDS[number % 2], number)
                    before = await ask_until_answered(system.ref("root/cards"), card)
                    assert before in (text_of(number), text_of(number - 2), "")
                    world.confirm(number)

        with reproducible(world.simulation.chance):
            await until_done(live)

    def recover(self, disk: SimulatedDisk) -> dict[str, Card]:
        opened = open_ledger(disk, PATH)
        disk.close(opened.fd)
        settle_replacement(disk, PATH)
        return read_rows(disk, PATH, opened.length, Card)

    def check(self, evidence: Evidence, found: dict[str, Card], *, killed: bool) -> Iterator[str]:
        for parity, id_ in enumerate(IDS):
            confirmed = max((n for n in evidence.confirmed if n % 2 == parity), default=0)
            tried = max((n for n in evidence.tried if n % 2 == parity), default=0)
            number = found[id_].number if id_ in found else 0
            if not confirmed <= number <= tried:
                yield f"card {id_} is {number}, of which {confirmed} is stored, {tried} tried"
            if number and found[id_].text.digest != StoredText.of(text_of(number)).digest:
                yield f"card {id_} has another text"
