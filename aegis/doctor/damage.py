"""The check for state files, other than ledgers, that are missing, damaged or set aside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from aegis.doctor.files import MAX_SHOWN, every_file
from aegis.doctor.finding import Finding, ok, problem, warning
from aegis.doctor.ledgers import LEDGER, has_ledger, survey_of
from aegis.errors import AegisError
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import DamagedLine, decode_line
from aegis.journal.note import Note
from aegis.state.root import StatePaths

META, IN_FLIGHT, SUBSCRIBERS = "meta.json", "in_flight.json", "subscribers.json"

KEPT = ".damaged-"
"""Part of the name of a damaged file that was set aside."""


def examine_damage(state: StatePaths, *, is_in_use: bool) -> Iterator[Finding]:
    """Yield a finding for each damaged or missing file, and one for all files set aside."""
    is_sound = True
    for found in (*_workspace(state), *_terminals(state, is_in_use=is_in_use), *_kept(state)):
        is_sound = False
        yield found
    if is_sound:
        yield ok("damage", "no other file is damaged or missing")


def _workspace(state: StatePaths) -> Iterator[Finding]:
    name = state.workspace.name
    try:
        document = json.loads(state.workspace.read_bytes())
    except FileNotFoundError:
        names = [each.name for each in _directories(state) if has_ledger(each)]
        if names:
            sentence = f"{name} is missing, so the next up restores none of {len(names)} terminals"
            yield problem("workspace", sentence, f"spawn the ones you need again: {_some(names)}")
        return
    except (ValueError, RecursionError):
        document = None
    if not (isinstance(document, dict) and isinstance(document.get("terminals"), list)):
        sentence = f"{name} is damaged; the next up sets it aside and restores no terminal"
        yield problem("workspace", sentence, "replace it by a good copy before the next up")


def _terminals(state: StatePaths, *, is_in_use: bool) -> Iterator[Finding]:
    for directory in _directories(state):
        subject = f"terminal {directory.name}"
        if has_ledger(directory):
            yield from _meta(subject, directory / META)
        for path in (directory / IN_FLIGHT, directory / SUBSCRIBERS):
            note = _note(path)
            if note is not None and note.damaged and note.is_blank:
                sentence = f"{path.name} cannot be read; the next start sets it aside"
                yield problem(subject, sentence, "subscribe again, and check the last records")
        if not is_in_use:
            yield from _lost_records(subject, directory)


def _meta(subject: str, path: Path) -> Iterator[Finding]:
    remedy = "close the terminal and spawn it again with its settings"
    try:
        decode_line(path.read_bytes())
    except FileNotFoundError:
        if path.parent.exists():  # it was not purged meanwhile
            yield problem(subject, f"{path.name} is missing; default settings are used", remedy)
    except DamagedLine as damage:
        sentence = f"{path.name} is damaged: {damage}; default settings are used"
        yield problem(subject, sentence, remedy)


def _lost_records(subject: str, directory: Path) -> Iterator[Finding]:
    """Yield a problem if the ledger ends before the last sequence number in use."""
    note = _note(directory / IN_FLIGHT)
    fields = (note.load() if note is not None else None) or {}
    following, commands = fields.get("next"), fields.get("commands")
    if type(following) is not int or not isinstance(commands, list):
        return
    unrecorded = {each.get("seq") for each in commands if isinstance(each, dict)}
    ends = survey_of(directory / LEDGER).highest
    if any(seq not in unrecorded for seq in range(ends + 1, following)):
        ends_with = f"ends with record {ends}" if ends >= 0 else "has no records"
        yield problem(
            subject,
            f"its ledger {ends_with}, although numbers up to {following - 1} were used",
            "keep a copy of the file: another program truncated or removed it",
        )


def _kept(state: StatePaths) -> Iterator[Finding]:
    kept = [
        str(each.relative_to(state.root))
        for each in every_file(state.directory)
        if KEPT in each.name
    ]
    if kept:
        sentence = f"damaged files were set aside: {_some(kept)}"
        yield warning("damage", sentence, "inspect them, then delete them")


def _directories(state: StatePaths) -> list[Path]:
    """Return the directories of terminals; names of other directories begin with a dot."""
    if not state.terminals.is_dir():
        return []
    found = sorted(state.terminals.iterdir())
    return [each for each in found if each.is_dir() and not each.name.startswith(".")]


def _note(path: Path) -> Note | None:
    """Open the note; return None if it is missing or cannot be read."""
    if not path.is_file():
        return None
    try:
        note = Note.open(path, Flusher())
    except AegisError:
        return None
    note.close()
    return note


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
    return ", ".join(names[:MAX_SHOWN]) + more
