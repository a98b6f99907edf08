"""Scenarios of the ledger: records one by one, and many that share syncs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import ChildSpec, Down, SupervisorSpec
from actors.faults import RUNTIME, FaultTable
from aegis.journal.faults import JOURNAL
from aegis.journal.old_files import ARCHIVE_BYTES, delete_oldest
from aegis.journal.opening import open_ledger
from aegis.journal.segments import SEGMENT_BYTES, SegmentReader, pack_segments
from aegis.protocol.terminals import CommandRecord
from aegis.terminals.front.recorder import Recorder
from aegis.terminals.front.terminal import RETRY_APPEND_S
from aegis.terminals.front.writer import LedgerWriter
from aegis.terminals.front_port import Front
from aegis.terminals.messages import AppendFailed, RecordAppended, RetryAppends
from aegis.terminals.record import record_in
from aegis.terminals.settings import TerminalFiles
from tests.aegis.terminals.samples import RECORD
from tests.chaos.exhaustive import Evidence, World
from tests.chaos.machine.disk_model import Image, cached_image
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.machine.simulated_flusher import SYNC_S
from tests.faults.retrying import until_done

FILES = TerminalFiles(Path("/state/terminals/build"))

GAP_S = 0.4 * SYNC_S
"""The time in seconds between two records of a burst: several come during one sync."""


def record(seq: int) -> CommandRecord:
    return attrs.evolve(RECORD, seq=seq, cmd=f"echo {seq}", stdout=f"{seq}\n" * 3)


class SmallFront(Front):
    """The part of a terminal's front that writes records: the real recorder, and a script."""

    def __init__(self, *, world: World, bursts: Sequence[int], done: trio.Event) -> None:
        self._world = world
        self._bursts = bursts
        self._done = done
        self._seq = 0
        self._changed = trio.Event()

    async def setup(self) -> None:
        writer = self.context.sibling("writer", LedgerWriter)
        self._recorder = Recorder(writer, lambda seq: False, lambda seq: False)
        self.context.monitor(writer)
        self.context.start_soon(self._script)

    async def receive(self, message: object) -> None:
        match message:
            case RecordAppended(seq=seq):
                if self._recorder.confirmed(message) is not None:
                    self._world.confirm(seq)
                    self._changed.set()
                    self._changed = trio.Event()
            case AppendFailed():
                if self._recorder.refused(message):
                    self.context.after(RETRY_APPEND_S, RetryAppends())
            case RetryAppends():
                self._recorder.retry()
            case Down():
                self._recorder.send_again()

    async def _script(self) -> None:
        for burst in self._bursts:
            for _ in range(burst):
                self._world.tries(self._seq)
                self._recorder.append(record(self._seq))
                self._seq += 1
                await trio.sleep(GAP_S)
            while len(self._world.evidence.confirmed) < self._seq:
                await self._changed.wait()
        self._done.set()


@attrs.frozen
class HeldLedger:
    """The ledger after recovery: the good lines, and the number of damaged lines behind them.

    ``kept_aside``: whether all that recovery removed is in a file beside the ledger.
    """

    records: tuple[dict[str, Any], ...]
    damaged: int
    kept_aside: bool


@attrs.frozen
class Append:
    """Bursts of records through the real writer; each burst waits for the one before.

    The ledger is split once it has ``segment_bytes``, and older segments are compressed. They are
    deleted when together they have more than ``archive_bytes``.
    """

    name: str
    bursts: tuple[int, ...]
    segment_bytes: int = SEGMENT_BYTES
    archive_bytes: int = ARCHIVE_BYTES
    image: Image = attrs.field(factory=lambda: {"/": None, "/state": None})
    tables: tuple[FaultTable, ...] = (JOURNAL, RUNTIME)
    subjects: tuple[str, ...] = ("LedgerWriter",)
    recovers_durably: bool = True
    shows_only_durable: bool = True

    async def play(self, world: World) -> None:
        done = trio.Event()
        spec = SupervisorSpec(
            name="root",
            children=(
                ChildSpec.of(
                    "writer",
                    LedgerWriter,
                    files=FILES,
                    flusher=world.flusher,
                    archive_bytes=self.archive_bytes,
                    segment_bytes=self.segment_bytes,
                ),
                ChildSpec.of("terminal", SmallFront, world=world, bursts=self.bursts, done=done),
            ),
        )

        async def live() -> None:
            async with world.simulation.open_system(spec):
                await done.wait()

        await until_done(live)

    def recover(self, disk: SimulatedDisk) -> HeldLedger:
        before = cached_image(disk.model).get(str(FILES.ledger)) or b""
        opened = open_ledger(disk, FILES.ledger)
        disk.close(opened.fd)
        cut = before[opened.length :]
        kept = b"" if opened.torn is None else cached_image(disk.model).get(str(opened.torn))
        pack_segments(disk, FILES.ledger)
        delete_oldest(disk, FILES.directory.parent.parent, self.archive_bytes)
        reading = SegmentReader(FILES.ledger, disk=disk).last_now(1_000)
        return HeldLedger(tuple(reading.records), opened.damaged_count, cut == kept)

    def check(self, evidence: Evidence, found: HeldLedger, *, killed: bool) -> Iterator[str]:
        seqs = [fields["seq"] for fields in found.records]
        oldest = seqs[0] if seqs and self.archive_bytes < ARCHIVE_BYTES else 0
        if lost := [seq for seq in evidence.confirmed if seq not in seqs and seq >= oldest]:
            yield f"records {lost} were confirmed and are lost"
        if doubled := [seq for seq, times in Counter(seqs).items() if times > 1]:
            yield f"records {doubled} are there twice"
        if not found.damaged and seqs != list(range(oldest, oldest + len(seqs))):
            yield f"the order is {seqs}"
        for seq, fields in zip(seqs, found.records, strict=True):
            if seq not in evidence.tried or record_in(fields) != record(seq):
                yield f"record {seq} was never written like this"
        if not found.kept_aside:
            yield "a torn tail was cut off and is not kept aside"
        if killed and found.damaged:
            yield "a kill has damaged a line"
