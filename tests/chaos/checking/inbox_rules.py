"""Rules for inboxes: an accepted message is there once, until it is acknowledged. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from tests.chaos.checking.case import Case
from tests.chaos.checking.evidence import Answer, Handoff
from tests.chaos.checking.rule import Rule
from tests.chaos.checking.wake_rules import shown


def _shown_again(case: Case) -> Iterator[str]:
    """Find messages that were shown again after their acknowledgement was answered."""
    for handle, answers in case.evidence.answers.items():
        order: dict[str, None] = {}
        done: set[str] = set()
        for answer in answers:
            if not _was_lost(answer):
                done |= _up_to(order, answer.acknowledged)
            for message in answer.messages:
                order[message["id"]] = None
                if message["id"] in done:
                    yield f"{message['id']} was acknowledged by {handle} and shown again"


def _was_lost(answer: Answer) -> bool:
    """Return whether this is a read without an answer."""
    return answer.span.asked > 0 and answer.span.answered is None


def _up_to(order: dict[str, None], acknowledged: str | None) -> set[str]:
    """Return the messages shown up to ``acknowledged``, in the order of their first appearance."""
    names = list(order)
    return set(names[: names.index(acknowledged) + 1]) if acknowledged in order else set()


def _not_shown(case: Case) -> Iterator[str]:
    """Find messages, not acknowledged, that a later read with room for them did not show."""
    for handle, answers in case.evidence.answers.items():
        order: dict[str, None] = {}
        done: set[str] = set()
        for answer in answers:
            done |= _up_to(order, answer.acknowledged)
            if answer.limit is not None and not _was_lost(answer):
                waiting = [name for name in order if name not in done][: answer.limit]
                there = {message["id"] for message in answer.messages}
                if not set(waiting) <= there and not _is_replaced(answer, answers):
                    yield f"{handle} was shown {sorted(there)} and not {waiting}"
            order.update((message["id"], None) for message in answer.messages)


def _is_replaced(answer: Answer, answers: tuple[Answer, ...]) -> bool:
    """Return whether this is the empty answer to a wait that a newer wait replaced."""
    return not answer.messages and any(
        other is not answer and other.span.overlaps(answer.span) for other in answers
    )


def _kept_twice(case: Case) -> Iterator[str]:
    """Find messages that an inbox holds twice, and texts accepted once and stored twice."""
    evidence = case.evidence
    for handle, messages in evidence.kept.items():
        for message_id, times in Counter(message["id"] for message in messages).items():
            if times > 1:
                yield f"the inbox of {handle} holds {message_id} {times} times"
    for handle in evidence.answers:
        handed = {handoff.body for handoff in evidence.handoffs if handoff.to == handle}
        bodies = Counter(message["body"] for message in shown(evidence, handle).values())
        for body in sorted(handed):
            if bodies[body] > 1:
                yield f"{handle} got {body!r} {bodies[body]} times"


def _lost_handoffs(case: Case) -> Iterator[str]:
    """Find accepted messages that are not in the inbox under the id of their receipt."""
    seen = {handle: shown(case.evidence, handle) for handle in case.evidence.answers}
    for handoff in case.evidence.handoffs:
        if handoff.id is None:
            continue
        message = seen[handoff.to].get(handoff.id)
        if message is None or message["body"] != handoff.body:
            yield f"{handoff.body!r} was accepted as {handoff.id}; {handoff.to} got {message}"


def _handoffs_out_of_turn(case: Case) -> Iterator[str]:
    """Find messages out of order from one sender that waits for each receipt."""
    for handle in case.evidence.answers:
        place = {name: at for at, name in enumerate(shown(case.evidence, handle))}
        sent = [each for each in case.evidence.handoffs if each.to == handle and each.id in place]
        for one, other in combinations(sent, 2):
            earlier, later = sorted((one, other), key=lambda handoff: handoff.span.asked)
            if _is_before(earlier, later) and place[str(earlier.id)] > place[str(later.id)]:
                yield f"{handle} got {later.body!r} before {earlier.body!r}"


def _is_before(earlier: Handoff, later: Handoff) -> bool:
    return earlier.sender == later.sender and earlier.span.is_before(later.span)


INBOX_RULES: dict[str, Rule] = {
    "shown again": Rule("G7", _shown_again),
    "not shown": Rule("G7", _not_shown),
    "kept twice": Rule("G7", _kept_twice),
    "handoff lost": Rule("G1", _lost_handoffs),
    "handoffs out of turn": Rule("G7", _handoffs_out_of_turn),
}
