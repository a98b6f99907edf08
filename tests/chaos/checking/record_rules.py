"""Rules for records: one for each command, whole, true and durable. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import pairwise

from tests.chaos.checking.case import CRASHING, Case
from tests.chaos.checking.evidence import Command, SeenRecord
from tests.chaos.checking.matching import SHELL, tokens_in
from tests.chaos.checking.observations import UNKNOWN, Record
from tests.chaos.checking.rule import Rule

KNOWN_EARLY = ("seq", "cmd", "writer", "started_at", "cwd", "raw_start", "timed_out")
"""Fields that an unfinished record and its final record share."""


def _told_and_gone(case: Case) -> Iterator[str]:
    """Find records that a client got but that are missing or different in the ledger."""
    records = case.evidence.records()
    kept_by_seq = {(terminal, record["seq"]): record for terminal, record in records}
    for seen in case.seen:
        if case.may_be_purged(seen.terminal, seen.span):
            continue
        kept = kept_by_seq.get((seen.terminal, seen.record["seq"]))
        if kept is None:
            yield f"seq {seen.record['seq']} of {seen.terminal} was shown and is in no ledger"
        elif seen.record["end"] is not None:
            yield from _differences(seen, kept, tuple(seen.record))
        else:
            yield from _differences(seen, kept, KNOWN_EARLY)
            less = case.is_rebuilt_from_less(seen.terminal, kept, seen.span)
            if not less and not kept["stdout"].startswith(seen.record["stdout"]):
                yield f"seq {kept['seq']} of {seen.terminal} lost output that was shown: {kept}"


def _differences(seen: SeenRecord, kept: Record, fields: tuple[str, ...]) -> Iterator[str]:
    for field in fields:
        if seen.record[field] != kept[field]:
            yield (
                f"{field} of seq {kept['seq']} of {seen.terminal} was shown as "
                f"{seen.record[field]!r} and is {kept[field]!r}"
            )


def _numbers(case: Case) -> Iterator[str]:
    """Find numbers that are not 0, 1, 2, …, apart from those of damaged lines."""
    for terminal, records in case.evidence.ledgers.items():
        found = [record["seq"] for record in records]
        right = case.numbers_from(0, len(found), terminal)
        if found != right:
            wrong = next(index for index, seq in enumerate(found) if right[index] != seq)
            yield f"seq of {terminal} goes {found[max(0, wrong - 2) : wrong + 2]} at {wrong}"


def _unrecorded(case: Case) -> Iterator[str]:
    """Find commands that started and have no record.

    Allowed is a typed command that was killed before its start mark was read: the daemon did not
    know it yet. It is the last that started on its terminal in an incarnation that was killed, or
    whose shell's actor crashed; of lines typed ahead the shell may have started several. After a
    loss of power, in that incarnation or in the one that recovered it, all unreported commands may
    be missing: notes are not synced. A failing disk takes as much if the daemon died soon after,
    because the kernel drops the pages of a sync that failed.
    """
    recorded, commands = set(case.matching.tokens), case.evidence.by_token
    seen = {case.matching.token_of(each.terminal, each.record) for each in case.seen}
    begun = case.evidence.begun
    unread_typed = _typed_in_the_end(begun, commands, recorded)
    for token in dict.fromkeys(begun):
        command = commands[token]
        unread = command.typed and (
            (token in unread_typed and command.life in case.killed_lives)
            or any(each.kind in CRASHING for each in case.harms_to(command))
        )
        is_lost = case.lost_power_by_recovery(command.life) or case.lost_pages(command)
        never_seen = is_lost and token not in seen
        gone = case.may_be_purged(command.terminal, command.span)
        if token not in recorded and not (unread or never_seen or gone):
            yield f"{token} started and has no record"


def _typed_in_the_end(
    begun: Iterable[str], commands: Mapping[str, Command], recorded: Container[str]
) -> frozenset[str]:
    """Return the commands that started last on their terminal: typed, and without a record."""
    last: dict[tuple[str, int], list[str]] = {}
    for token in begun:
        command = commands[token]
        row = last.setdefault((command.terminal, command.life), [])
        if not command.typed or token in recorded:
            row.clear()
        else:
            row.append(token)
    return frozenset(token for row in last.values() for token in row)


def _repeated(case: Case) -> Iterator[str]:
    """Find commands that ran twice or have two records."""
    for token, times in Counter(case.matching.tokens).items():
        if times > 1:
            yield f"{token} has {times} records"
    for token, times in Counter(case.evidence.begun).items():
        if times > 1:
            yield f"{token} ran {times} times"


def _strangers(case: Case) -> Iterator[str]:
    """Find records that match no sent command, or differ from it in writer or text."""
    for terminal, record, command in case.matched:
        if record["writer"] == SHELL:
            yield from _wrong_end(case, terminal, record)
        elif command is None:
            yield f"seq {record['seq']} of {terminal} matches no sent command: {dict(record)}"
        elif record["writer"] != command.writer:
            yield f"{command.token} was written by {command.writer}, not by {record['writer']}"
        elif record["cmd"] != command.text and not _may_be_nameless(case, command, record):
            yield f"the text of {command.token} was recorded as {record['cmd']!r}"


def _wrong_end(case: Case, terminal: str, record: Record) -> Iterator[str]:
    """Find a record of a shell's end between commands that nothing can have caused."""
    ends = ("shell killed", "keys")
    if (record["cmd"], record["end"]) != (None, "shell_exit") or not record["cmd_reason"]:
        yield f"seq {record['seq']} of {terminal} is no end of a shell: {dict(record)}"
    if not any(each.kind in ends for each in case.harms(terminal, UNKNOWN)):
        yield f"seq {record['seq']} of {terminal}: no shell was ended there"


def _may_be_nameless(case: Case, command: Command, record: Record) -> bool:
    """Return whether a typed command may lack its text, which comes with the end mark."""
    if not command.typed or record["cmd"] is not None:
        return False
    return record["end"] != "exited" or bool(case.harms_to(command, record))


def _mixed(case: Case) -> Iterator[str]:
    """Find output of one command in the record of another, apart from echoed keystrokes."""
    for terminal, record, command in case.matched:
        if record["writer"] == SHELL:
            continue  # its words may be a line that was being typed
        since = UNKNOWN if command is None else command.span
        if case.is_rebuilt_from_less(terminal, record, since):
            continue
        own = [] if command is None else [command.token]
        strange = [token for token in tokens_in(record["stdout"]) if token not in own]
        if strange and command is not None:
            typed = [tokens_in(each.text) for each in case.harms_to(command, record)]
            strange = [token for token in strange if not any(token in each for each in typed)]
        if strange:
            yield f"the output of seq {record['seq']} of {terminal} ({own}) holds {strange}"


def _killed_too_early(case: Case) -> Iterator[str]:
    """Find killed commands that were not the last of their incarnation.

    Allowed where the actors of the terminal crashed.
    """
    for terminal, commands in case.matching.of.items():
        rows = list(zip(case.evidence.ledgers[terminal], commands, strict=True))
        for (record, command), (later, next_one) in pairwise(rows):
            if command is None or next_one is None or command.life != next_one.life:
                continue
            crashed = case.may_be_crashed(command, record)
            if record["killed_by_restart"] and not later["killed_by_restart"] and not crashed:
                yield f"seq {record['seq']} of {terminal} was killed, and {later['seq']} was not"


def _refused(case: Case) -> Iterator[str]:
    """Find commands that ran although their caller got the answer that they were never typed."""
    known = {*case.evidence.begun, *case.matching.tokens}
    for token in case.evidence.refused:
        if token in known:
            yield f"{token} was refused and ran, or is recorded"


def _order_of_lives(case: Case) -> Iterator[str]:
    """Find records that are not in the order of the incarnations that got the commands."""
    for terminal, commands in case.matching.of.items():
        lives = [command.life for command in commands if command is not None]
        if lives != sorted(lives):
            yield f"the records of {terminal} are not in the order of their lives: {lives}"


def _out_of_turn(case: Case) -> Iterator[str]:
    """Find commands with a lower number than a command that was answered before.

    Keys are answered before their command starts: they precede later requests of the same client.
    """
    for terminal, commands in case.matching.of.items():
        rows = list(zip(case.evidence.ledgers[terminal], commands, strict=True))
        known = [(record["seq"], command) for record, command in rows if command is not None]
        for index, (seq, command) in enumerate(known):
            for later_seq, later in known[index + 1 :]:
                comparable = not later.typed or later.writer == command.writer
                if comparable and later.span.is_before(command.span):
                    yield f"{later.token} ({later_seq}) came before {command.token} ({seq})"


RECORD_RULES: dict[str, Rule] = {
    "told and gone": Rule("G1", _told_and_gone),
    "numbers": Rule("G3", _numbers),
    "unrecorded": Rule("G2", _unrecorded),
    "repeated": Rule("G2", _repeated),
    "stranger": Rule("G2", _strangers),
    "mixed output": Rule("G2", _mixed),
    "killed too early": Rule("G8", _killed_too_early),
    "refused and run": Rule("G5", _refused),
    "order of lives": Rule("G4", _order_of_lives),
    "out of turn": Rule("G7", _out_of_turn),
}
