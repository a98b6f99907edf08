"""The scenario of a transcript: turns over several rotations, each entry until it is stored."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import InjectedCrash
from actors.faults import FaultTable
from aegis.agents.sessions.past import SessionPast, carried
from aegis.agents.sessions.transcript import TranscriptWriter, entries_since, fold, shown_of_closed
from aegis.errors import StorageError
from aegis.journal.faults import JOURNAL
from aegis.journal.opening import open_ledger
from aegis.journal.rotation import settle_rotation
from tests.chaos.exhaustive import Evidence, World
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.faults.retrying import over_lives, until_done

PATH = Path("/state/agents/s1/transcript.jsonl")
LIMIT_BYTES = 500
TURNS = 3


def opened(turn: int) -> dict[str, Any]:
    """Return the entry of a turn's beginning."""
    messages = [{"id": f"m{turn}", "sender": "human"}]
    fields = {"turn": turn, "uuid": f"u{turn}", "text": "do it", "messages": messages}
    return {"kind": "turn_opened", **fields}


def ended(turn: int) -> dict[str, Any]:
    """Return the entry of a turn's end."""
    return {"kind": "turn_ended", "turn": turn, "outcome": "completed", "reason": "", "text": "t"}


@attrs.frozen
class HeldTranscript:
    """A transcript after recovery: its fold, the numbers of the kept entries, and the newest."""

    turn: int
    known: tuple[str, ...]
    open_turn: int | None
    texts: tuple[str, ...]
    seqs: tuple[int, ...]
    newest: int


@attrs.frozen
class Transcripts:
    """A session's entries, each written until the disk has it; a crash opens the file again."""

    name: str = "transcript rotation"
    image: Image = attrs.field(
        factory=lambda: {"/": None, "/state": None, "/state/agents": None, "/state/agents/s1": None}
    )
    tables: tuple[FaultTable, ...] = (JOURNAL,)
    subjects: tuple[str, ...] = ()
    recovers_durably: bool = True
    shows_only_durable: bool = True

    async def play(self, world: World) -> None:
        await over_lives(partial(self._live, world))

    async def _live(self, world: World) -> None:
        transcript = await until_done(
            lambda: TranscriptWriter.open(PATH, world.flusher, LIMIT_BYTES)
        )
        crash: StorageError | None = None
        try:
            async with trio.open_nursery() as nursery:
                writer = _Writer(transcript)
                transcript.start(nursery.start_soon, writer.settle)
                await self._write(world, transcript.past, writer)
        except* InjectedCrash as crashes:
            crash = StorageError(f"the session crashed: {crashes}")
        finally:
            transcript.close()
        if crash is not None:
            raise crash

    async def _write(self, world: World, past: SessionPast, writer: _Writer) -> None:
        if past.open_turn is not None:
            await writer.store(ended(past.open_turn.number))
            world.confirm(("ended", past.open_turn.number))
        for turn in range(past.turn + 1, TURNS + 1):
            world.tries(turn)
            await writer.store(opened(turn))
            world.confirm(("opened", turn))
            await writer.store(ended(turn))
            world.confirm(("ended", turn))

    def recover(self, disk: SimulatedDisk) -> HeldTranscript:
        settle_rotation(disk, PATH)
        ledger = open_ledger(disk, PATH)
        disk.close(ledger.fd)
        folded = fold(disk, PATH, ledger.length)
        kept = entries_since(disk, PATH, 0, shown_of_closed(disk, PATH))
        past = carried(folded.past)
        return HeldTranscript(
            turn=past["turn"],
            known=tuple(past["known"]),
            open_turn=None if past["open_turn"] is None else past["open_turn"]["number"],
            texts=tuple(past["texts"]),
            seqs=tuple(each["seq"] for each in kept.records),
            newest=folded.seq,
        )

    def check(self, evidence: Evidence, found: HeldTranscript, *, killed: bool) -> Iterator[str]:
        confirmed = {
            kind: max((n for each, n in evidence.confirmed if each == kind), default=0)
            for kind in ("opened", "ended")
        }
        begun = max(evidence.tried, default=0)
        if not confirmed["opened"] <= found.turn <= begun:
            yield f"turn {found.turn} is the last one; stored {confirmed}, begun {begun}"
        if found.known != tuple(f"m{turn}" for turn in range(1, found.turn + 1)):
            yield f"the messages {found.known} are known after turn {found.turn}"
        if found.open_turn is not None and found.open_turn <= confirmed["ended"]:
            yield f"turn {found.open_turn} is open, and its end was stored"
        expected = ("[user] do it", "[assistant] t") * found.turn
        if found.texts != expected[: len(expected) - (found.open_turn is not None)]:
            yield f"the texts {found.texts} are known after turn {found.turn}"
        # A number whose entry the disk has lost is not used again.
        if [*found.seqs] != sorted({*found.seqs}) or found.newest != max(found.seqs, default=0):
            yield f"the entries {found.seqs} are kept, the newest is {found.newest}"


class _Writer:
    """Writes entries one by one, again until the disk has taken each."""

    def __init__(self, transcript: TranscriptWriter) -> None:
        self._transcript = transcript
        self._number = 0
        self._outcome: StorageError | None = None
        self._settled = trio.Event()

    def settle(self, number: int, error: StorageError | None) -> None:
        if number == self._number:
            self._outcome = error
            self._settled.set()

    async def store(self, entry: dict[str, Any]) -> None:
        await until_done(partial(self._store_once, entry))

    async def _store_once(self, entry: dict[str, Any]) -> None:
        self._number += 1
        self._settled = trio.Event()
        await self._transcript.append(self._number, entry, sync=True)
        await self._settled.wait()
        if self._outcome is not None:
            raise self._outcome
