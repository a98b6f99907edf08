"""``Recorder``: the records that the ledger's writer has not confirmed; no caller sees them yet.

A record is held back while a command with a lower number has not ended: the ledger's numbers rise.

If a caller was shown the number of a record, later records are sent only once that one is
confirmed. Reason: of two unsynced records, a loss of power may damage the first alone. The ledger's
newest number would then be above it, and the next incarnation would not recover it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import attrs
import structlog
import trio

from actors import Ref
from aegis.clock import utc_now
from aegis.errors import StorageError
from aegis.protocol.terminals import CommandRecord
from aegis.terminals import faults
from aegis.terminals.front.calls import Call
from aegis.terminals.messages import AppendFailed, AppendRecord, RecordAppended, ReportSynced
from aegis.terminals.record import NO_NUMBERS, UnrecordedCommand, lost_record
from aegis.terminals.retry import ask_across_restarts

log = structlog.get_logger()

MAX_UNSAVED = 16
"""The most records that may wait for a disk that refuses writes before commands are refused.

Typed commands cannot be refused. Their records wait without output (the raw log may have it); of
more than ``MAX_UNSAVED_TYPED`` the oldest are dropped and logged.
"""

MAX_UNSAVED_TYPED = 500


REPORT_TIMEOUT_S = 5.0


async def newest_synced(writer: Ref[AppendRecord | ReportSynced], *, settled: bool = False) -> int:
    """Return the number of the newest record that is synced; -1 if there is none.

    ``settled``: wait for records that are written and not synced, however long the disk takes.
    """
    timeout = math.inf if settled else REPORT_TIMEOUT_S
    report = await ask_across_restarts(writer, ReportSynced(settled=settled), timeout=timeout)
    return report.newest


class Recorder:
    """The unconfirmed records of one terminal and the callers that wait for them."""

    def __init__(
        self,
        writer: Ref[AppendRecord | ReportSynced],
        is_shown: Callable[[int], bool],
        is_early: Callable[[int], bool],
    ) -> None:
        self._writer = writer
        self._is_shown = is_shown
        self._is_early = is_early
        self._held = NO_NUMBERS
        self._records: dict[int, CommandRecord] = {}
        self._callers: dict[int, Call] = {}
        self._trouble = ""
        self._retry_is_due = False
        self._tries_left = 0

    @property
    def is_refused(self) -> bool:
        """Whether the disk refuses records, as far as is known."""
        return bool(self._trouble)

    @property
    def is_settled(self) -> bool:
        """Whether no record waits, except for a disk that refuses or a command that runs."""
        return self._records.keys() <= self._held or bool(self._trouble)

    def check(self, terminal: str) -> None:
        """Raise ``StorageError`` while too many records wait for a disk that refuses."""
        if self._trouble and len(self._records) >= MAX_UNSAVED:
            raise StorageError(f"terminal {terminal!r} cannot record commands: {self._trouble}")

    def append(self, record: CommandRecord, call: Call | None = None) -> bool:
        """Send a record to the writer; ``call`` is answered when it is confirmed.

        Return whether the writer has taken it in this step. Then it is in the file, unless
        ``AppendFailed`` follows.
        """
        if call is not None:
            self._callers[record.seq] = call
        self._records[record.seq] = self._bounded(record)
        if not self._trouble:
            return record.seq in self._send(sorted({record.seq, *self._held}))
        if len(self._records) <= MAX_UNSAVED:
            self.send_again()  # the writer accepts it only after the refused ones
        return False

    def append_lost(self, command: UnrecordedCommand) -> None:
        """Record a submission whose number was shown and that will not begin."""
        self.append(lost_record(command, utc_now(), trio.current_time()))

    def _bounded(self, record: CommandRecord) -> CommandRecord:
        if not (self._trouble or self._held) or len(self._records) < MAX_UNSAVED:
            return record
        if len(self._records) >= MAX_UNSAVED_TYPED:
            oldest = min(self._records)
            del self._records[oldest]
            self._held -= {oldest}
            log.error("record given up", seq=oldest, error=self._trouble)
        return attrs.evolve(record, stdout="", stderr="", truncated=True)

    def confirmed(self, news: RecordAppended) -> CommandRecord | None:
        """Answer the caller of a record that is in the ledger. None if it was confirmed before."""
        record = self._records.pop(news.seq, None)
        if record is not None:
            self._trouble = ""
            call = self._callers.pop(news.seq, None)
            if call is not None:
                faults.REPLY_BEFORE.hit()
                call.settle(record)
            if self._is_shown(record.seq):
                self._send(sorted(self._records))
        return record

    def refused(self, news: AppendFailed) -> bool:
        """Fail the callers of a refused record and of later ones; return if a retry is to follow.

        It is not if one is due already.
        """
        if news.seq not in self._records:
            return False
        is_first, self._retry_is_due = not self._retry_is_due, True
        self._trouble = news.why
        for seq in [seq for seq in self._callers if seq >= news.seq]:
            self._callers.pop(seq).settle(StorageError(news.why))
        self._try_last()
        return is_first

    def end(self) -> None:
        """Retry refused records once more, at once: the terminal ends."""
        self._tries_left = 1
        self._try_last()

    def _try_last(self) -> None:
        if self._tries_left and self._trouble:
            self._tries_left -= 1
            self.send_again()

    def retry(self) -> None:
        """Send refused records again: the retry is due."""
        self._retry_is_due = False
        if self._trouble:
            self.send_again()

    def send_again(self) -> None:
        """Send the unconfirmed records in order; the writer skips those that it has."""
        self._trouble = ""
        self._send(sorted(self._records))

    def _send(self, seqs: Sequence[int]) -> list[int]:
        """Send these records, unless they are held back; return those taken in this step."""
        shown = min(filter(self._is_shown, self._records), default=None)
        self._held = frozenset(filter(self._is_early, self._records)) or NO_NUMBERS
        taken = []
        for seq in seqs:
            if seq not in self._held and (shown is None or seq <= shown):
                after = max((each for each in self._records if each < seq), default=-1)
                message = AppendRecord(record=self._records[seq], after=after)
                if self._writer.hand_over(message):
                    taken.append(seq)
        return taken
