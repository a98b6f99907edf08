"""Rules for readers of records and output, waiters, and broadcasts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from tests.chaos.checking.case import Case
from tests.chaos.checking.observations import OutputRead, Waited
from tests.chaos.checking.rule import TERMINALS, Rule

ROUNDING_S = 1e-6
"""The allowed rounding error, in seconds, in sums of times."""

SEQUENCE_BYTES = 64
"""The longest escape sequence under load: plain text may exceed its limit by one."""


def _catch_up(case: Case) -> Iterator[str]:
    """Find reads since a number that are not exactly the finished records above it."""
    for read in case.evidence.reads:
        found = [record["seq"] for record in read.records]
        first = read.since_seq + 1
        where = f"{read.terminal} since {read.since_seq}"
        # The damaged lines are known only for the present ledger, not for a purged one.
        whole = list(range(first, first + len(found)))
        if found not in (whole, case.numbers_from(first, len(found), read.terminal)):
            yield f"a read of {where} returned {found}"
        if any(record["end"] is None for record in read.records):
            yield f"a read of {where} returned a record without an end"
        known = [
            seen.record["seq"]
            for seen in case.seen
            if seen.terminal == read.terminal
            and seen.record["end"] is not None
            and seen.span.is_before(read.span)
            and not case.may_be_purged(seen.terminal, seen.span)
        ]
        last = max(known, default=-1)
        if not read.more and last > max([read.since_seq, *found]):
            yield f"a read of {where} returned {found}, after seq {last} was shown"


def _output(case: Case) -> Iterator[str]:
    """Find output that starts at another place than requested, or is too long."""
    for read in case.evidence.outputs:
        where = f"output of {read.terminal} from {read.from_cursor}"
        size = read.next_cursor - read.cursor
        if read.from_cursor is not None and read.cursor - read.from_cursor != read.dropped:
            yield f"{where} begins at {read.cursor}, {read.dropped} bytes dropped"
        most = read.max_bytes + (SEQUENCE_BYTES if read.plain else 0)
        if not 0 <= size <= most or (size == 0 and read.text):
            yield f"{where} has {size} bytes of {read.max_bytes}: {read.text[:80]!r}"


def _output_changed(case: Case) -> Iterator[str]:
    """Find bytes that differ between two reads.

    Reads before and after a loss of power, which may change bytes that were not synced, are not
    compared; nor are reads before and after a purge.
    """
    for reads in _comparable(case).values():
        texts: dict[tuple[int, int], str] = {}
        for read in reads:
            before = texts.setdefault((read.cursor, read.next_cursor), read.text)
            if before != read.text:
                yield f"{_named(read)} was {before[:80]!r} and is {read.text[:80]!r}"
        for (begin, middle), text in texts.items():
            for (other, end), rest in texts.items():
                whole = texts.get((begin, end))
                if other == middle and whole is not None and text + rest != whole:
                    yield f"output {begin} to {end} differs when read in two steps at {middle}"
        yield from _overlapping(reads)


def _overlapping(reads: list[OutputRead]) -> Iterator[str]:
    """Yield pairs of overlapping reads with comparable text: raw and ASCII only."""
    exact = [
        read
        for read in reads
        if not read.plain
        and read.text.isascii()
        and len(read.text) == read.next_cursor - read.cursor
    ]
    for one, other in combinations(exact, 2):
        begin = max(one.cursor, other.cursor)
        end = min(one.next_cursor, other.next_cursor)
        if begin < end and _part(one, begin, end) != _part(other, begin, end):
            yield f"{_named(one)} and {_named(other)} differ between {begin} and {end}"


def _part(read: OutputRead, begin: int, end: int) -> str:
    return read.text[begin - read.cursor : end - read.cursor]


def _named(read: OutputRead) -> str:
    return f"output of {read.terminal}, {read.cursor} to {read.next_cursor}"


def _comparable(case: Case) -> dict[tuple[str, int, int, bool], list[OutputRead]]:
    """Group the reads of each terminal between losses of power and purges."""
    found: dict[tuple[str, int, int, bool], list[OutputRead]] = {}
    losses = [death.moment for death in case.evidence.deaths if death.kind == "power loss"]
    for read in case.evidence.outputs:
        purges = case.purges(read.terminal)
        if any(purge.span.overlaps(read.span) or purge.done is None for purge in purges):
            continue
        before = sum(purge.span.is_before(read.span) for purge in purges)
        lost = sum(moment < read.span.asked for moment in losses)
        found.setdefault((read.terminal, before, lost, read.plain), []).append(read)
    return found


def _waits(case: Case) -> Iterator[str]:
    """Find waits that ended for a reason that was not requested or did not occur."""
    for waited in case.evidence.waits:
        if not _is_explained(case, waited):
            yield f"a wait at {waited.terminal} ended as {waited.reason}: {waited}"


def _is_explained(case: Case, waited: Waited) -> bool:
    match waited.reason:
        case "ended":
            known = waited.record is None or waited.record["end"] is not None
            right = waited.seq is None or (waited.record or {}).get("seq") == waited.seq
            return known and right
        case "matched":
            asked = waited.pattern is not None and waited.match is not None
            return asked and bool(re.search(waited.pattern or "", waited.match or "", re.MULTILINE))
        case "idle":
            return waited.idle_s is not None and waited.seconds > waited.idle_s - ROUNDING_S
        case "timeout":
            return waited.seconds > waited.timeout_s - ROUNDING_S
        case "closed":
            crashed = any(each.kind == "crash" for each in case.harms(waited.terminal, waited.span))
            return crashed or False in case.may_be_open(waited.terminal, waited.span)
        case "needs_input":
            return waited.record is not None and waited.record["end"] is None
    return False


def _broadcasts(case: Case) -> Iterator[str]:
    """Find broadcasts without exactly one entry, a record or an error, for each named terminal."""
    for cast in case.evidence.broadcasts:
        if cast.answered != cast.named:
            yield f"a broadcast to {cast.named} was answered for {cast.answered}"
        for terminal, record, error in zip(cast.answered, cast.records, cast.errors, strict=True):
            if (record is None) == (error is None):
                yield f"a broadcast has for {terminal} {record} and {error!r}"


READING_RULES: dict[str, Rule] = {
    "catch up": Rule("G11", _catch_up),
    "output gap": Rule("G10", _output),
    "output changed": Rule(TERMINALS, _output_changed),
    "wait": Rule(TERMINALS, _waits),
    "broadcast": Rule(TERMINALS, _broadcasts),
}
