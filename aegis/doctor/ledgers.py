"""The check of the ledgers of terminals and of all primitives, line by line."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from actors.errors import CodecError
from aegis.doctor.finding import Finding, ok
from aegis.doctor.ledger_rules import Survey, judge_ledger
from aegis.errors import StorageError
from aegis.journal.disk import OsDisk
from aegis.journal.ledger import MAX_LINE_BYTES, Damaged, Line, Scan, scan
from aegis.journal.opening import open_ledger
from aegis.journal.segment_names import Segment, segments_of
from aegis.journal.segments import unpacked
from aegis.names import shorten
from aegis.state.registry import RegistryError
from aegis.state.root import StatePaths, UntrustedState, open_seals
from aegis.state.sealing import Seal, Seals
from aegis.state.state_files import open_safely
from aegis.terminals.record import record_in

CHUNK_BYTES = 1 << 20
LEDGER = "ledger.jsonl"


def examine_ledgers(state: StatePaths, *, is_in_use: bool) -> Iterator[Finding]:
    """Yield the findings of every ledger, and a total. Raises ``OSError``."""
    lines = count = 0
    seals = _seals(state)
    for path in ledgers(state):
        seal = None if seals is None else seals.of(str(path))
        is_terminal = state.terminals in path.parents
        # The numbers of commands begin at 0, those of the lines of canvases and the chat at 1.
        survey = survey_of(
            path, _misfit if is_terminal else _nothing, seal, first=0 if is_terminal else 1
        )
        found = judge_ledger(_subject(state, path), survey, is_in_use=is_in_use)
        yield from (each for each in found if each.remedy)
        count, lines = count + 1, lines + survey.lines
    yield ok("ledgers", f"{count} read, {lines} intact lines")


def repair_ledgers(state: StatePaths) -> Iterator[Finding]:
    """Set aside the torn tail of each ledger, as a start of the daemon does.

    Damaged lines are not removed: each occupies a sequence number.
    """
    disk = OsDisk()
    for path in ledgers(state):
        try:
            if not survey_of(path).torn:
                continue
            opened = open_ledger(disk, path)
        except (StorageError, OSError):
            continue  # the check after the repair reports it
        disk.close(opened.fd)
        if opened.torn is not None:
            yield ok(_subject(state, path), f"the torn tail was moved to {opened.torn.name}")


def ledgers(state: StatePaths) -> list[Path]:
    """Return the files of the ledgers, terminals first."""
    found = [each / LEDGER for each in sorted(state.terminals.glob("*")) if has_ledger(each)]
    for directory in (state.canvases, state.workflows):
        found += sorted(directory.glob(f"*/{LEDGER}"))
    for directory in (state.workflows, state.queues, state.groups, state.inboxes):
        found += sorted(directory.glob("*.jsonl"))
    return found + [each for each in _single(state) if each.exists()]


def _single(state: StatePaths) -> dict[Path, str]:
    """Return the ledgers of which there is one, with their subjects."""
    return {
        state.requests: "requests",
        state.agents / "sessions.jsonl": "sessions",
        state.agents / "worktrees.jsonl": "worktrees",
        state.agents / "usage.jsonl": "usage of agents",
        state.telegram: "telegram",
        state.push: "push",
    }


def _seals(state: StatePaths) -> Seals | None:
    """Return the seals of the state; None if it is not this user's, which ``trust`` reports."""
    try:
        return open_seals(str(state.root))
    except (UntrustedState, RegistryError):
        return None


def _nothing(_: Line) -> str | None:
    return None


def has_ledger(directory: Path) -> bool:
    """Return whether the directory of a terminal has records. Raises ``OSError``."""
    path = directory / LEDGER
    return path.exists() or bool(segments_of(OsDisk(), path))


def survey_of(
    path: Path,
    misfit: Callable[[Line], str | None] = _nothing,
    seal: Seal | None = None,
    first: int = 0,
) -> Survey:
    """Read a whole ledger, with its segments, with bounded memory. Raises ``OSError``.

    ``first`` is the number of its first line; of a ledger whose oldest segments were deleted, the
    names of the others have it. ``misfit`` returns why an intact line cannot be read, None if it
    can.
    """
    while True:
        segments = _segments(path)
        survey = Survey(first=segments[0].first if segments else first)
        with contextlib.suppress(FileNotFoundError):  # a daemon is changing the files
            for each in segments:
                _survey_segment(survey, each, misfit, seal)
            if path.exists():  # not after a kill between the renaming of one and a new one
                _survey_file(survey, path, misfit, seal)
            if _segments(path)[-1:] == segments[-1:]:
                return survey


def _segments(path: Path) -> list[Segment]:
    return segments_of(OsDisk(), path) if path.name == LEDGER else []


def _survey_segment(
    survey: Survey, segment: Segment, misfit: Callable[[Line], str | None], seal: Seal | None
) -> None:
    if segment.path.exists():
        _survey_file(survey, segment.path, misfit, seal)
        return
    with open(open_safely(str(segment.packed), os.O_RDONLY), "rb") as file:  # noqa: PTH123
        data, why = unpacked(file.read())
    found = scan(data, seal=seal)
    _see(survey, found, misfit)
    if why:
        survey.see(Damaged(len(data), len(data), f"{segment.packed.name}: {why}"))


def _survey_file(
    survey: Survey, path: Path, misfit: Callable[[Line], str | None], seal: Seal | None
) -> None:
    rest, base = b"", 0
    with open(open_safely(str(path), os.O_RDONLY), "rb") as file:  # noqa: PTH123
        while chunk := file.read(CHUNK_BYTES):
            data = rest + chunk
            found = scan(data, base=base, seal=seal)
            _see(survey, found, misfit)
            rest, base = data[found.whole - base :], found.whole
            if len(rest) > MAX_LINE_BYTES:  # not a line: its end counts as a damaged line
                rest, base = rest[-1:], base + len(rest) - 1
    survey.torn = len(rest)


def _see(survey: Survey, found: Scan, misfit: Callable[[Line], str | None]) -> None:
    judged: list[Line | Damaged] = [*found.lines, *found.damaged]
    for each in sorted(judged, key=_start):
        survey.see(each, misfit(each) if isinstance(each, Line) else None)


def _misfit(line: Line) -> str | None:
    """Return why the line of a terminal's ledger is not a record; None if it is one."""
    try:
        record_in(line.fields)
    except CodecError as error:
        return shorten(str(error), 200)
    return None


def _start(judged: Line | Damaged) -> int:
    return judged.start


def _subject(state: StatePaths, path: Path) -> str:
    """Return the subject of a ledger: ``terminal build``, ``inbox pm`` or ``telegram``."""
    if (subject := _single(state).get(path)) is not None:
        return subject
    kinds = {
        "terminal": state.terminals,
        "canvas": state.canvases,
        "workflow": state.workflows,
        "queue": state.queues,
        "group": state.groups,
    }
    kind = next((word for word, each in kinds.items() if path.is_relative_to(each)), "inbox")
    name = path.parent.name if path.name == LEDGER else re.sub(r"[.]jsonl$", "", path.name)
    return f"{kind} {name}"
