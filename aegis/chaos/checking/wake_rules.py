"""What was promised about inboxes: wakes once each, and what was accepted. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from aegis.chaos.checking.evidence import Evidence
from aegis.chaos.checking.happenings import Message, Record
from aegis.chaos.checking.matching import tokens_in

WAKE = "term:"


def wake_ids(evidence: Evidence, handle: str) -> dict[str, Record]:
    """The id of each message that ``handle`` must get from a terminal, with its record."""
    return {
        f"term:{terminal}/{evidence.ids[terminal]}/{record['seq']}/{handle}": record
        for terminal, record in evidence.records()
        if record["writer"] != f"agent:{handle}"
    }


def shown(evidence: Evidence, handle: str) -> dict[str, Message]:
    """What ``handle`` was shown, by id, in the order in which it first came."""
    messages: dict[str, Message] = {}
    for answer in evidence.answers[handle]:
        for message in answer.messages:
            messages.setdefault(message["id"], message)
    return messages


def _lost_wakes(evidence: Evidence) -> Iterator[str]:
    """Each subscriber hears of each record that is not its own."""
    for handle in evidence.answers:
        seen = shown(evidence, handle)
        for wake_id in wake_ids(evidence, handle):
            if wake_id not in seen:
                yield f"{wake_id} never came"


def _needless_wakes(evidence: Evidence) -> Iterator[str]:
    """Nobody hears of a command of its own, or of one that is not in the ledger."""
    for handle in evidence.answers:
        due = wake_ids(evidence, handle)
        for message_id in shown(evidence, handle):
            if message_id.startswith(WAKE) and message_id not in due:
                yield f"{message_id} came to {handle}: its own, or of no record"


def _wrong_wakes(evidence: Evidence) -> Iterator[str]:
    """A message tells what the record tells, and is the same however often it is shown."""
    for handle, answers in evidence.answers.items():
        due, first = wake_ids(evidence, handle), shown(evidence, handle)
        for message_id, message in first.items():
            if message_id in due and not _fits(message, due[message_id]):
                yield f"{message_id} tells of {due[message_id]} as {message['body']!r}"
        for message in (message for answer in answers for message in answer.messages):
            if message != first[message["id"]]:
                yield f"{message['id']} changed from {first[message['id']]} to {message}"


def _fits(message: Message, record: Record) -> bool:
    command, outcome = message["body"].split("\n")[:2]
    parts = outcome.split(" · ")
    return (
        tokens_in(command)[:1] == tokens_in(record["cmd"])[:1]
        and command.endswith(f"run by {record['writer']}")
        and parts[0] == f"exit {'?' if record['exit'] is None else record['exit']}"
        and ("killed by restart" in parts) == record["killed_by_restart"]
        and ("timed out" in parts) == record["timed_out"]
    )


def _shown_again(evidence: Evidence) -> Iterator[str]:
    """What was acknowledged, and the acknowledgement answered, is not shown again."""
    for handle, answers in evidence.answers.items():
        order: dict[str, None] = {}
        done: set[str] = set()
        for answer in answers:
            if answer.acknowledged is not None:
                for message_id in order:
                    done.add(message_id)
                    if message_id == answer.acknowledged:
                        break
            for message in answer.messages:
                order[message["id"]] = None
                if message["id"] in done:
                    yield f"{message['id']} was acknowledged by {handle} and shown again"


def _out_of_order(evidence: Evidence) -> Iterator[str]:
    """The messages of one terminal come in the order of its records."""
    for handle in evidence.answers:
        last: dict[str, int] = {}
        for message_id in shown(evidence, handle):
            if not message_id.startswith(WAKE):
                continue
            terminal, _, seq, _ = message_id.removeprefix(WAKE).split("/")
            if int(seq) < last.get(terminal, -1):
                yield f"{message_id} came behind seq {last[terminal]}"
            last[terminal] = int(seq)


def _kept_twice(evidence: Evidence) -> Iterator[str]:
    """An inbox holds a message once, and a text that was accepted once."""
    for handle, messages in evidence.kept.items():
        for message_id, times in Counter(message["id"] for message in messages).items():
            if times > 1:
                yield f"the inbox of {handle} holds {message_id} {times} times"
    for handle in evidence.answers:
        handed = {handoff.body for handoff in evidence.handoffs if handoff.to == handle}
        bodies = Counter(message["body"] for message in shown(evidence, handle).values())
        for body in handed:
            if bodies[body] > 1:
                yield f"{body!r} came to {handle} {bodies[body]} times"


def _lost_handoffs(evidence: Evidence) -> Iterator[str]:
    """A message that was accepted is there, with the id of its receipt."""
    seen = {handle: shown(evidence, handle) for handle in evidence.answers}
    for handoff in evidence.handoffs:
        if handoff.id is None:
            continue
        message = seen[handoff.to].get(handoff.id)
        if message is None or message["body"] != handoff.body:
            yield f"{handoff.body!r} was accepted as {handoff.id}; {handoff.to} got {message}"


WAKE_RULES: dict[str, Callable[[Evidence], Iterator[str]]] = {
    "wake lost": _lost_wakes,
    "wake needless": _needless_wakes,
    "wake wrong": _wrong_wakes,
    "shown again": _shown_again,
    "out of order": _out_of_order,
    "kept twice": _kept_twice,
    "handoff lost": _lost_handoffs,
}
