"""Files of the state, other than ledgers, that are missing or cannot be read, and what was kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from aegis.doctor.files import MAX_SHOWN, every_file
from aegis.doctor.finding import Finding, ok, problem, warning
from aegis.doctor.ledgers import LEDGER, survey_of
from aegis.errors import AegisError
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import DamagedLine, decode_line
from aegis.journal.note import Note
from aegis.state.root import State

META, IN_FLIGHT, SUBSCRIBERS = "meta.json", "in_flight.json", "subscribers.json"

KEPT = ".damaged-"
"""What the name of a file that was set aside contains."""


def examine_damage(state: State, *, is_in_use: bool) -> Iterator[Finding]:
    """One finding for each file that is damaged or missing, and one for all that were kept."""
    is_sound = True
    for found in (*_workspace(state), *_terminals(state, is_in_use=is_in_use), *_kept(state)):
        is_sound = False
        yield found
    if is_sound:
        yield ok("damage", "no other file is damaged or missing")


def _workspace(state: State) -> Iterator[Finding]:
    name = state.workspace.name
    try:
        document = json.loads(state.workspace.read_bytes())
    except FileNotFoundError:
        names = [each.name for each in _directories(state) if (each / LEDGER).exists()]
        if names:
            sentence = f"{name} is missing, so the next up restores none of {len(names)} terminals"
            yield problem("workspace", sentence, f"spawn those you need again: {_some(names)}")
        return
    except (ValueError, RecursionError):
        document = None
    if not (isinstance(document, dict) and isinstance(document.get("terminals"), list)):
        sentence = f"{name} is damaged; the next up sets it aside and restores no terminal"
        yield problem("workspace", sentence, "put a good copy in its place before that")


def _terminals(state: State, *, is_in_use: bool) -> Iterator[Finding]:
    for directory in _directories(state):
        subject = f"terminal {directory.name}"
        if (directory / LEDGER).exists():
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
        yield problem(subject, f"{path.name} is missing; the usual settings are used", remedy)
    except DamagedLine as damage:
        sentence = f"{path.name} is damaged: {damage}; the usual settings are used"
        yield problem(subject, sentence, remedy)


def _lost_records(subject: str, directory: Path) -> Iterator[Finding]:
    """Whether the ledger ends before the numbers that were given."""
    note = _note(directory / IN_FLIGHT)
    fields = (note.load() if note is not None else None) or {}
    following, commands = fields.get("next"), fields.get("commands")
    if type(following) is not int or not isinstance(commands, list):
        return
    unrecorded = {each.get("seq") for each in commands if isinstance(each, dict)}
    ledger = directory / LEDGER
    ends = survey_of(ledger).highest if ledger.exists() else -1
    if any(seq not in unrecorded for seq in range(ends + 1, following)):
        ends_with = f"ends with record {ends}" if ends >= 0 else "has no records"
        yield problem(
            subject,
            f"its ledger {ends_with}, though numbers up to {following - 1} were given",
            "keep a copy of the file: it was cut or removed from outside",
        )


def _kept(state: State) -> Iterator[Finding]:
    kept = [
        str(each.relative_to(state.root))
        for each in every_file(state.directory)
        if KEPT in each.name
    ]
    if kept:
        sentence = f"damaged files were set aside: {_some(kept)}"
        yield warning("damage", sentence, "see what they hold; delete them when you have")


def _directories(state: State) -> list[Path]:
    """Those of the terminals; the names of others begin with a dot."""
    if not state.terminals.is_dir():
        return []
    found = sorted(state.terminals.iterdir())
    return [each for each in found if each.is_dir() and not each.name.startswith(".")]


def _note(path: Path) -> Note | None:
    """The note; None where there is none, or where the disk refuses it."""
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
