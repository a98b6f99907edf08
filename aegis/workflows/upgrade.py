"""The files of workflows as versions before tables wrote them, as those of today.

A run had a ``meta.json``, one line with its arguments and, once it was settled, its end; and a
journal with lines of these kinds, of which each call had two or more:

    {"kind": "run", "number": …}
    {"kind": "begun", "position": …, "name": …, "digest": …, "about": …, "handle": …, SEEN}
    {"kind": "ended", "position": …, "outcome": {…}, SEEN}
    {"kind": "seen", SEEN}
    {"kind": "returned", "end": …, "result": …, "error": …, "at": …}
    {"kind": "settled" | "resumed" | "retried"}

SEEN is ``"seen": [[position, time], …], "time": …, "at": …``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
import structlog

from actors.codec import unstructure
from aegis.journal.disk import Disk, read_file, replace_file, shown, storage_errors
from aegis.journal.folding import exists, lines_of, log_damage
from aegis.journal.ledger import Damaged, DamagedLine, decode_line, encode_line, seal_line
from aegis.journal.table import StoredText
from aegis.workflows.calls import Outcome
from aegis.workflows.runs import (
    EngineCall,
    Moment,
    StoredRun,
    ended,
    reopened,
    settled,
    with_outcome,
)

log = structlog.get_logger("aegis.workflows")

META = "meta.json"
LEDGER = "ledger.jsonl"

MAX_META_BYTES = 4 * 1024 * 1024

Fields = dict[str, Any]


def run_before_tables(disk: Disk, directory: Path) -> StoredRun | None:
    """Return the run of a directory with a ``meta.json``; None without one that can be read.

    Blocking. Raises ``StorageError``.
    """
    path = directory / META
    with storage_errors("read", path):
        data = read_file(disk, path, max_bytes=MAX_META_BYTES)
    if data is None:
        return None
    try:
        meta = decode_line(data, disk.seal(path))["workflow"]
        run = _run_of(meta)
    except (DamagedLine, KeyError, TypeError) as error:
        log.warning("workflow not read", file=shown(path), why=str(error))
        return None
    if run.id != directory.name:
        return None
    ledger = directory / LEDGER
    if run.is_settled or not exists(disk, ledger):
        return run
    damaged: list[Damaged] = []
    run = _run_after(
        _at_start(run), (each.fields for each in lines_of(disk, ledger, None, damaged))
    )
    log_damage(ledger, damaged, 0)
    return run


def _run_of(meta: Mapping[str, Any]) -> StoredRun:
    named = ("id", "name", "file", "sender", "callback", "key", "started", "attempt", "resumes")
    shown_at_end = ("phase", "calls", "checkpoint", "error", "ended", "is_settled")
    result = meta["result"]
    return StoredRun(
        **{each: meta[each] for each in (*named, *shown_at_end)},
        kwargs=StoredText.of(json.dumps(meta["kwargs"], ensure_ascii=False)),
        processes=meta["runs"],
        result=None if result is None else StoredText.of(result),
    )


def _at_start(run: StoredRun) -> StoredRun:
    """Return a run as it was before the first line of its ledger."""
    again = reopened(run, from_beginning=False)
    return attrs.evolve(again, attempt=1, resumes=0, processes=0)


def _run_after(run: StoredRun, lines: Iterable[Mapping[str, Any]]) -> StoredRun:
    """Return a run after the lines of its ledger."""
    for line in lines:
        match line:
            case {"kind": "run", "number": int(number)}:
                run = attrs.evolve(run, processes=number)
            case {"kind": "ended", "outcome": {"value": {"checkpoint": str(name)}}}:
                run = attrs.evolve(run, checkpoint=name, calls=run.calls + 1)
            case {"kind": "ended"}:
                run = attrs.evolve(run, calls=run.calls + 1)
            case {"kind": "returned", "end": end, "at": str(at)}:
                run = ended(
                    run,
                    end=end,
                    at=at,
                    calls=run.calls,
                    checkpoint=run.checkpoint,
                    result=line.get("result"),
                    error=line.get("error"),
                )
            case {"kind": "settled"}:
                run = settled(run)
            case {"kind": "resumed" | "retried" as kind}:
                calls, checkpoint = run.calls, run.checkpoint
                run = reopened(run, from_beginning=kind == "retried")
                if kind == "resumed":
                    run = attrs.evolve(run, calls=calls, checkpoint=checkpoint)
    return run


def upgrade_journal(disk: Disk, path: Path) -> None:
    """Replace a journal of the older form by one of today's, if it is one.

    Blocking. Raises ``StorageError``. A crash leaves the old one or the new one.
    """
    calls = calls_before_tables(disk, path) if exists(disk, path) else None
    if calls is None:
        return
    seal = disk.seal(path)
    with storage_errors("write", path):
        replace_file(disk, path, (seal_line(_line_of(each), seal) for each in calls.values()))


def calls_before_tables(disk: Disk, path: Path) -> dict[str, EngineCall] | None:
    """Return the calls in a journal of the older form; None if it is none.

    Blocking. Raises ``StorageError``.
    """
    damaged: list[Damaged] = []
    lines = lines_of(disk, path, None, damaged)
    first = next(lines, None)
    if first is None or "kind" not in first.fields:
        return None
    journal = _Journal()
    journal.apply(first.fields)
    for each in lines:
        journal.apply(each.fields)
    log_damage(path, damaged, journal.skipped)
    return journal.calls


def _line_of(call: EngineCall) -> bytes:
    fields = unstructure(call)
    del fields["id"]
    if call.outcome is not None:
        fields["outcome"] = call.outcome.whole
    return encode_line({"id": call.id, "set": fields})


class _Journal:
    """The calls that the lines of a journal so far result in."""

    def __init__(self) -> None:
        self.calls: dict[str, EngineCall] = {}
        self.skipped = 0
        self._attempt, self._round, self._number = 1, 0, 0
        self._newest = ""

    def apply(self, line: Mapping[str, Any]) -> None:
        """Apply the next line."""
        self._number += 1
        match line:
            case {"kind": "begun", "position": str(position), "name": str(name)}:
                self._begin(position, name, line)
            case {"kind": "ended", "position": str(position), "outcome": dict(outcome)}:
                self._end(position, outcome, line)
            case {"kind": "seen"} if self._newest:
                self._add_moment(self._newest, line)
            case {"kind": "resumed"}:
                self._round += 1
            case {"kind": "retried"}:
                self._attempt, self.calls = self._attempt + 1, {}

    def _begin(self, position: str, name: str, line: Mapping[str, Any]) -> None:
        known = self.calls.get(position)
        if known is None:
            self.calls[position] = EngineCall(
                id=position,
                attempt=self._attempt,
                name=name,
                digest=str(line.get("digest")),
                about=str(line.get("about")),
                began=self._number,
                first_round=self._round,
                round=self._round,
                handle=line.get("handle"),
            )
        else:
            starts = known.starts + 1
            self.calls[position] = attrs.evolve(known, starts=starts, round=self._round)
        self._newest = position
        self._add_moment(position, line)

    def _end(self, position: str, outcome: Outcome, line: Mapping[str, Any]) -> None:
        call = self.calls.get(position)
        if call is None:
            self.skipped += 1
            return
        if call.name == "checkpoint" and isinstance(outcome.get("value"), dict):
            call = attrs.evolve(call, handle=outcome["value"].get("checkpoint"))
        self.calls[position] = with_outcome(
            call, outcome=outcome, number=self._number, round_=self._round
        )
        self._add_moment(position, line)

    def _add_moment(self, position: str, line: Mapping[str, Any]) -> None:
        seen = tuple((str(each), at) for each, at in line.get("seen", ()))
        if seen or line.get("time") is not None:
            moment = Moment(self._number, self._round, seen, line.get("time"), line.get("at"))
            call = self.calls[position]
            self.calls[position] = attrs.evolve(call, moments=(*call.moments, moment))
