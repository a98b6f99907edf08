"""Rules for wakes: one for each finished command and each subscriber but its writer. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from aegis.terminals.record import SHELL_WRITER
from tests.chaos.checking.case import Case
from tests.chaos.checking.evidence import Evidence
from tests.chaos.checking.matching import tokens_in
from tests.chaos.checking.observations import NEVER, Message, Record, Span
from tests.chaos.checking.rule import Rule

WAKE = "term:"


@attrs.frozen
class WakeId:
    """The parts of the id of a message from a terminal."""

    terminal: str
    life: str
    seq: int
    handle: str

    @classmethod
    def parse(cls, text: str) -> WakeId:
        """Parse an id. Raises ``ValueError`` for anything else."""
        terminal, life, seq, handle = text.removeprefix(WAKE).split("/")
        return cls(terminal, life, int(seq), handle)

    def __str__(self) -> str:
        return f"{WAKE}{self.terminal}/{self.life}/{self.seq}/{self.handle}"


def wake_ids(evidence: Evidence, handle: str) -> dict[str, Record]:
    """Return the records by the ids of their messages to ``handle``."""
    return {
        str(WakeId(terminal, evidence.ids.get(terminal, ""), record["seq"], handle)): record
        for terminal, record in evidence.records()
        if record["writer"] != f"agent:{handle}"
    }


def shown(evidence: Evidence, handle: str) -> dict[str, Message]:
    """Return the messages shown to ``handle``, by id, in the order of their first appearance."""
    messages: dict[str, Message] = {}
    for answer in evidence.answers[handle]:
        for message in answer.messages:
            messages.setdefault(message["id"], message)
    return messages


def _lost_wakes(case: Case) -> Iterator[str]:
    """Find records whose subscriber, other than the writer, got no message."""
    evidence = case.evidence
    for handle in evidence.answers:
        seen = shown(evidence, handle)
        for wake_id, record in wake_ids(evidence, handle).items():
            if wake_id in seen:
                continue
            terminal = WakeId.parse(wake_id).terminal
            is_due = case.wanted(handle, terminal, record) == {True}
            if is_due and not _is_dropped(case, WakeId.parse(wake_id)):
                yield f"{wake_id} was never shown"


def _is_dropped(case: Case, wake: WakeId) -> bool:
    """Return whether a wake may have been dropped, or may still be pending.

    An unsubscribe drops it, unless a later one of the terminal was shown. A closed terminal sends
    its pending wakes when it is spawned again.
    """
    at_the_end = Span(NEVER, NEVER)
    if case.evidence.changes and case.may_be_open(wake.terminal, at_the_end) != {True}:
        return True
    later = _first_later(case, wake)
    return any(
        not each.on
        and each.done is not False
        and (each.handle, each.terminal) == (wake.handle, wake.terminal)
        and not (later is not None and later.is_before(each.span))
        and not each.span.is_before(case.finished[wake.terminal, wake.seq])
        for each in case.evidence.subscriptions or ()
    )


def _first_later(case: Case, wake: WakeId) -> Span | None:
    """Return the answer that first showed a wake of a later record of the terminal."""
    for answer in case.evidence.answers[wake.handle]:
        for message in answer.messages:
            if message["id"].startswith(WAKE):
                other = WakeId.parse(message["id"])
                same = (other.terminal, other.life) == (wake.terminal, wake.life)
                if same and other.seq > wake.seq:
                    return answer.span
    return None


def _needless_wakes(case: Case) -> Iterator[str]:
    """Find wakes for the writer, for records outside the subscription, and for no record."""
    for handle in case.evidence.answers:
        records = wake_ids(case.evidence, handle)
        for message_id, message in shown(case.evidence, handle).items():
            if not message_id.startswith(WAKE):
                continue
            wake = WakeId.parse(message_id)
            if message_id in records:
                if True not in case.wanted(handle, wake.terminal, records[message_id]):
                    yield f"{message_id} was sent to {handle} without a subscription"
            elif not _may_have_been(case, wake):
                yield f"{message_id} was sent to {handle}: its own, or of no record"
            elif message["body"].split("\n")[0].endswith(f"run by agent:{handle}"):
                yield f"{message_id} was sent to {handle}: its own, since purged"


def _may_have_been(case: Case, wake: WakeId) -> bool:
    """Return whether the terminal may have had this life id before a purge."""
    unknown = any(
        change.kind == "spawn" and change.done is not False and change.id is None
        for change in case.evidence.changes
        if change.terminal == wake.terminal
    )
    is_other = wake.life != case.evidence.ids.get(wake.terminal)
    known = wake.life in case.evidence.former.get(wake.terminal, ())
    return known or (unknown and is_other and bool(case.purges(wake.terminal)))


def _wrong_wakes(case: Case) -> Iterator[str]:
    """Find messages that differ from their record, or from an earlier copy of themselves."""
    for handle, answers in case.evidence.answers.items():
        due, first = wake_ids(case.evidence, handle), shown(case.evidence, handle)
        for message_id, message in first.items():
            if message_id in due and not _fits(message, due[message_id]):
                yield f"{message_id} describes {due[message_id]} as {message['body']!r}"
        for message in (message for answer in answers for message in answer.messages):
            if message != first[message["id"]]:
                yield f"{message['id']} changed from {first[message['id']]} to {message}"


def _fits(message: Message, record: Record) -> bool:
    command, outcome = message["body"].split("\n")[:2]
    parts = outcome.split(" · ")
    is_named: bool
    if record["writer"] == SHELL_WRITER:  # the end of a shell at rest, which ran no command
        is_named = command == record["cmd_reason"]
    else:
        is_named = tokens_in(command)[:1] == tokens_in(record["cmd"])[:1]
        is_named = is_named and command.endswith(f"run by {record['writer']}")
    return (
        is_named
        and parts[0] == f"exit {'?' if record['exit'] is None else record['exit']}"
        and ("killed by restart" in parts) == record["killed_by_restart"]
        and ("timed out" in parts) == record["timed_out"]
    )


def _out_of_order(case: Case) -> Iterator[str]:
    """Find messages of one terminal that are not in the order of its records.

    Allowed where an inbox, not a terminal, failed during the delivery of several messages, and
    where a loss of power left a hole in the inbox.
    """
    if any(
        each.kind in ("crash", "disk fault") and each.terminal is None
        for each in case.evidence.disturbances
    ):
        return
    for handle in case.evidence.answers:
        if case.has_hole(handle):
            continue
        last: dict[tuple[str, str], int] = {}
        for message_id in shown(case.evidence, handle):
            if message_id.startswith(WAKE):
                wake = WakeId.parse(message_id)
                before = last.get((wake.terminal, wake.life), -1)
                if wake.seq < before:
                    yield f"{message_id} was shown after seq {before}"
                last[wake.terminal, wake.life] = wake.seq


WAKE_RULES: dict[str, Rule] = {
    "wake lost": Rule("G11", _lost_wakes),
    "wake needless": Rule("G11", _needless_wakes),
    "wake wrong": Rule("G11", _wrong_wakes),
    "out of order": Rule("G7", _out_of_order),
}
