"""Rules for the wakes of canvases: each change wakes its subscribers once, not its writer. Pure.

No answer has the moment of a change. A change is not older than the tokens in its text, nor than
the changes before it; and it is not newer than an answer with its revision.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

import attrs

from aegis.canvases.document import BODY, PREAMBLE
from aegis.protocol.canvases import CanvasChange
from tests.chaos.checking.canvas_evidence import CanvasFound, CanvasSubscribing
from tests.chaos.checking.canvas_rules import TOKEN
from tests.chaos.checking.case import Case, possible_states
from tests.chaos.checking.observations import NEVER, Message, Span
from tests.chaos.checking.rule import Rule

WAKE = "canvas:"
LINES = 6
"""The lines of a text that a wake shows."""


@attrs.frozen
class CanvasWakeId:
    """The parts of the id of a message from a canvas."""

    canvas: str
    life: str
    rev: int
    handle: str

    @classmethod
    def parse(cls, text: str) -> CanvasWakeId:
        """Parse an id. Raises ``ValueError`` for anything else."""
        canvas, life, rev, handle = text.removeprefix(WAKE).split("/")
        return cls(canvas, life, int(rev), handle)


def _wakes(case: Case) -> Iterator[tuple[str, CanvasWakeId, Message]]:
    """Yield each message from a canvas, with the handle of the client that got it."""
    for handle, messages in case.evidence.kept.items():
        for message in messages:
            if message["id"].startswith(WAKE):
                yield handle, CanvasWakeId.parse(message["id"]), message


def _moments(case: Case, found: CanvasFound) -> Mapping[int, Span]:
    """Return the time in which each change was made, by revision."""
    canvases = case.evidence.canvases
    made = {each.token: each.span.asked for each in canvases.writes}
    made |= {each.token: each.span.asked for each in canvases.edits}
    answers = [(each.canvas, each.rev, each.span.last) for each in canvases.writes]
    answers += [(each.canvas, each.rev, each.span.last) for each in canvases.seen]
    answered: dict[int, int] = {}
    for canvas, rev, moment in answers:
        if canvas == found.canvas and rev:
            answered[rev] = min(moment, answered.get(rev, NEVER))
    spans: dict[int, Span] = {}
    earliest, latest = 0, NEVER
    for change in found.changes:
        tokens = TOKEN.findall(change.text or "")
        earliest = max([earliest, *(made.get(each, 0) for each in tokens)])
        spans[change.rev] = Span(earliest)
    for change in reversed(found.changes):
        latest = min(latest, answered.get(change.rev, NEVER))
        begin = spans[change.rev].asked
        spans[change.rev] = Span(begin, None if latest == NEVER else max(begin, latest))
    return spans


def _wanted(
    case: Case, handle: str, found: CanvasFound, change: CanvasChange, when: Span
) -> set[bool]:
    """Return the possible answers to whether the change was to wake ``handle``."""
    if change.writer == f"agent:{handle}":
        return {False}
    steps = [
        (case.settled(each.span), each, each.done is True)
        for each in _subscriptions(case, handle, found.canvas)
    ]
    states: set[CanvasSubscribing | None] = possible_states(None, steps, when)
    return {state is not None and state.wants(change.section) for state in states}


def _subscriptions(case: Case, handle: str, canvas: str) -> list[CanvasSubscribing]:
    return [
        each
        for each in case.evidence.canvases.subscribed
        if (each.handle, each.canvas) == (handle, canvas) and each.done is not False
    ]


def _lost(case: Case) -> Iterator[str]:
    """Find changes whose subscriber, other than the writer, got no message."""
    waked = {(wake.canvas, wake.rev, handle) for handle, wake, _ in _wakes(case)}
    for found in case.evidence.canvases.found:
        got = {*waked, *_of_saves(found, waked)}
        moments = _moments(case, found)
        for handle in case.evidence.kept:
            for change in found.changes:
                if (found.canvas, change.rev, handle) in got:
                    continue
                when = moments[change.rev]
                is_due = _wanted(case, handle, found, change, when) == {True}
                if is_due and not _is_dropped(case, handle, found.canvas, when):
                    yield f"{handle} was not woken for revision {change.rev} of {found.canvas}"


def _of_saves(
    found: CanvasFound, waked: set[tuple[str, int, str]]
) -> Iterator[tuple[str, int, str]]:
    """Yield the changes that are in the message about the last change of the same save."""
    saved = [each for each in found.changes if each.writer == "outside"]
    for canvas, rev, handle in waked:
        for last in saved:
            if (canvas, rev) == (found.canvas, last.rev):
                for each in saved:
                    if each.timestamp == last.timestamp and each.rev < rev:
                        yield canvas, each.rev, handle


def _is_dropped(case: Case, handle: str, canvas: str, when: Span) -> bool:
    """Return whether a wake may have been dropped by an end of the subscription before it."""
    return any(
        not each.on and not case.settled(each.span).is_before(when)
        for each in _subscriptions(case, handle, canvas)
    )


def _needless(case: Case) -> Iterator[str]:
    """Find wakes for the writer, for others than subscribers, for no change, and repeated ones."""
    founds = {each.canvas: each for each in case.evidence.canvases.found}
    times: Counter[tuple[str, str, int]] = Counter()
    for handle, wake, message in _wakes(case):
        times[handle, wake.canvas, wake.rev] += 1
        found = founds.get(wake.canvas)
        changes = {} if found is None else {each.rev: each for each in found.changes}
        change = changes.get(wake.rev)
        if found is None:
            continue  # it cannot be read, which another rule reports
        if change is None or wake.handle != handle:
            yield f"{handle} was woken by {message['id']}, which is no change"
        elif True not in _wanted(case, handle, found, change, _moments(case, found)[change.rev]):
            yield f"{handle} was woken by {message['id']}: its own, or without a subscription"
    for (handle, canvas, rev), number in times.items():
        if number > 1:
            yield f"{handle} was woken {number} times for revision {rev} of {canvas}"


def _wrong(case: Case) -> Iterator[str]:
    """Find wakes that describe another change than theirs."""
    founds = {each.canvas: each for each in case.evidence.canvases.found}
    for handle, wake, message in _wakes(case):
        found = founds.get(wake.canvas)
        for change in () if found is None else found.changes:
            if change.rev == wake.rev and not _fits(message, change):
                yield f"{handle} got {change} as {message['body']!r}"


def _fits(message: Message, change: CanvasChange) -> bool:
    # A text may have an empty line itself.
    blocks = re.split(r'\n\n(?=section "|and \d+ more)', message["body"])
    return any(_is_block(each, change) for each in blocks)


def _is_block(block: str, change: CanvasChange) -> bool:
    section, how, *text = [*block.split("\n"), ""]
    first = "\n".join((change.text or "").split("\n")[:LINES])
    by = "another program" if change.writer == "outside" else change.writer
    alone = {BODY, PREAMBLE}
    return (
        (section == f'section "{change.section}"' or change.section in alone)
        and (change.displaced or how.startswith(f"{change.op} by {by}"))
        and TOKEN.findall("\n".join(text)) == TOKEN.findall(first)
    )


def _out_of_order(case: Case) -> Iterator[str]:
    """Find wakes of one canvas that are not in the order of its changes.

    Allowed where an inbox failed during the delivery of several messages, and where a loss of power
    left a hole in it.
    """
    if any(each.kind in ("crash", "disk fault") for each in case.evidence.disturbances):
        return
    last: dict[tuple[str, str], int] = {}
    for handle, wake, message in _wakes(case):
        before = last.get((handle, wake.canvas), 0)
        if wake.rev < before and not case.has_hole(handle):
            yield f"{handle} got {message['id']} after revision {before}"
        last[handle, wake.canvas] = wake.rev


CANVAS_WAKE_RULES: dict[str, Rule] = {
    "canvas wake lost": Rule("G19", _lost),
    "canvas wake needless": Rule("G19", _needless),
    "canvas wake wrong": Rule("G19", _wrong),
    "canvas wake out of order": Rule("G7", _out_of_order),
}
