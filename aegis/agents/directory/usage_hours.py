"""``UsageHours``: what sessions used in each hour, in ``agents/usage.jsonl``.

A session reports its sums so far. What they grew by since its newest row belongs to the hour of the
report, so that no transcript is read, and what a kill has cut off counts with the next report.
Sessions of a version without these rows begin with their first report: what they had used before
has no hour.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import attrs
import trio

from actors import Context
from aegis.agents.directory.board import Board
from aegis.clock import local_text, moment_of, moment_text
from aegis.errors import InvalidRequest, StorageError
from aegis.journal.flusher import Flusher
from aegis.journal.table import Table
from aegis.protocol.agents import (
    AgentInfo,
    AgentUsage,
    ReadUsageOverTime,
    UsageOverTime,
    UsageSpan,
)

NAME = "usage.jsonl"

GATHER_S = 5.0
"""Seconds for which reports are gathered before they are written."""

MAX_ROWS = 20_000
"""Rows that are kept: a year and more of fifty a day. Of more the oldest are dropped."""

DROPPED_ROWS = 1_000

HOUR_S = 3_600


@attrs.frozen(kw_only=True)
class UsageFigures:
    """Sums of a session; None: the agent does not report it."""

    turns: int = 0
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    turns_s: float = 0.0

    @classmethod
    def of(cls, usage: AgentUsage) -> UsageFigures:
        """Return the sums of an accounting."""
        return cls(**{name: getattr(usage, name) for name in _NAMES})

    def plus(self, other: UsageFigures) -> UsageFigures:
        """Return both together."""
        return UsageFigures(
            **{name: _sum(getattr(self, name), getattr(other, name)) for name in _NAMES}
        )

    def growth(self, before: UsageFigures) -> UsageFigures:
        """Return what these sums have more; a sum that has become lower has not grown."""
        return UsageFigures(
            **{name: _growth(getattr(self, name), getattr(before, name)) for name in _NAMES}
        )

    def usage(self) -> AgentUsage:
        """Return the sums as clients see them."""
        return AgentUsage(
            turns=self.turns,
            input_tokens=self.input_tokens,
            cached_tokens=self.cached_tokens,
            output_tokens=self.output_tokens,
            cost_usd=None if self.cost_usd is None else round(self.cost_usd, 6),
            turns_s=round(self.turns_s, 3),
        )


_NAMES = [each.name for each in attrs.fields(UsageFigures)]


def _sum(one: Any, other: Any) -> Any:
    return one if other is None else (one or 0) + other


def _growth(now: Any, before: Any) -> Any:
    return None if now is None else max(type(now)(0), now - (before or 0))


@attrs.frozen(kw_only=True)
class UsageHour:
    """The figures of ``session`` in the ``hour``, counted from 1970; ``total``: its sums then."""

    tag: ClassVar[str] = "hour"

    id: str
    session: str
    handle: str
    hour: int
    used: UsageFigures
    total: UsageFigures


class UsageHours:
    """The rows of the sessions of ``board``, below ``directory``. The owner closes it."""

    def __init__(self, directory: Path, board: Board, flusher: Flusher, context: Context) -> None:
        self._board = board
        self._totals: dict[str, UsageFigures] = {}
        self._first: dict[str, UsageFigures] = {}
        self._reported: dict[str, AgentInfo] = {}
        self._has_reports = trio.Event()
        self._table: Table[UsageHour] = Table(
            directory / NAME, UsageHour, flusher, context, lost=self._derive
        )

    def close(self) -> None:
        """Write what was reported, and close the file."""
        if self._table.is_open:
            self._write()
        self._table.close()

    def take(self, info: AgentInfo) -> None:
        """Take the state of a session; it is written soon."""
        if info.usage is not None:
            if info.id not in self._totals and info.id not in self._first:
                self._first[info.id] = UsageFigures.of(info.usage)
            self._reported[info.id] = info
            self._has_reports.set()

    async def run(self) -> None:
        """Write what is reported, until cancelled."""
        while True:
            await self._has_reports.wait()
            await trio.sleep(GATHER_S)
            self._has_reports = trio.Event()
            await self._open()
            if not self._table.problem:
                self._write()
                self._table.sync()

    async def read(self, request: ReadUsageOverTime, handles: dict[str, str]) -> UsageOverTime:
        """Return what the sessions with these ids used, by their ``handles``."""
        since = 0.0 if request.since is None else _moment(request.since)
        await self._open()
        if self._table.problem:
            raise StorageError(self._table.refusal)
        self._write()
        rows = [
            attrs.evolve(row, handle=handles.get(row.session, row.handle))
            for row in self._table.rows.values()
            if (row.hour + 1) * HOUR_S > since
            and (request.handle is None or row.session in handles)
        ]
        return over_time(rows, request)

    async def _open(self) -> None:
        if not self._table.is_open:
            await self._table.open()
            self._derive()

    def _derive(self) -> None:
        """Find the newest sums of each session, and have what is not written reported again."""
        self._totals = {
            row.session: row.total
            for row in sorted(self._table.rows.values(), key=lambda each: each.hour)
        }
        for info in self._board.infos:
            self.take(info)

    def _write(self) -> None:
        reported, self._reported = self._reported, {}
        hour = int(time.time() // HOUR_S)
        for info in reported.values():
            if info.usage is not None and not self._count(
                info.id, info.handle, UsageFigures.of(info.usage), hour
            ):
                return  # what was reported is taken from the board when the disk accepts again
        if len(self._table.rows) > MAX_ROWS:
            oldest = sorted(self._table.rows.values(), key=lambda each: each.hour)
            for row in oldest[: len(oldest) - MAX_ROWS + DROPPED_ROWS]:
                self._table.drop(row.id)

    def _count(self, session: str, handle: str, now: UsageFigures, hour: int) -> bool:
        """Put what a session has used since its newest row; return whether the disk takes it."""
        before = self._totals.get(session)
        is_new = before is None and not any(attrs.astuple(self._first[session]))
        if before is None:
            before = self._first[session]
        used = now.growth(before)
        # A new session has a row before its first turn: its end may be cut off by a kill.
        if not is_new and not any(attrs.astuple(used)):
            return True
        id_ = f"{session}/{hour}"
        total = before.plus(used)
        known = self._table.rows.get(id_)
        if known is not None:
            used = known.used.plus(used)
        row = UsageHour(id=id_, session=session, handle=handle, hour=hour, used=used, total=total)
        is_put = self._table.put(row, is_deferred=True)
        if is_put:
            self._totals[session] = total
            self._first.pop(session, None)
        return is_put


def over_time(rows: Iterable[UsageHour], request: ReadUsageOverTime) -> UsageOverTime:
    """Return rows by hour, day or session, the oldest first. Pure."""
    found: dict[tuple[str, str | None], UsageFigures] = {}
    whole = UsageFigures()
    begin_of = _BEGINS[request.by]
    for row in sorted(rows, key=lambda each: (each.hour, each.handle)):
        whole = whole.plus(row.used)
        if not any(attrs.astuple(row.used)):
            continue
        is_split = request.split or request.by == "agent"
        key = begin_of(row.hour), row.handle if is_split else None
        found[key] = found.get(key, UsageFigures()).plus(row.used)
    spans = [
        UsageSpan(begin=begin, handle=handle, usage=figures.usage())
        for (begin, handle), figures in found.items()
    ]
    if request.by == "agent":
        spans.sort(key=lambda each: (-(each.usage.cost_usd or 0.0), each.handle or ""))
        kept = spans[: request.limit]
    else:
        kept = spans[-request.limit :]
    return UsageOverTime(result=kept, total=whole.usage(), more=len(kept) < len(spans))


def _day(hour: int) -> str:
    midnight = datetime.fromtimestamp(hour * HOUR_S).replace(hour=0, minute=0)
    return local_text(midnight.timestamp())


_BEGINS: dict[str, Callable[[int], str]] = {
    "hour": lambda hour: moment_text(hour * HOUR_S),
    "day": _day,
    "agent": lambda hour: "",
}


def _moment(text: str) -> float:
    try:
        return moment_of(text).timestamp()
    except ValueError as error:
        raise InvalidRequest(f"since: {error}") from error
