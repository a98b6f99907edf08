"""The rules of requests: a state machine that knows neither disk nor actors. Pure.

``handle`` takes one event and returns the actions that follow, in order. A line that it appends
gets a number; ``Synced`` with that number says that it is durable. What depends on a line, such as
showing a request or applying an answer, follows only then.

    open      → Append(opened)   → Synced → the owner gets the id, every face sees the request
    answer    → Append(answered) → Synced → Apply → Delivered → Append(applied) → the answerer
    withdraw  → at once; an answer that was not sent yet never acts
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import attrs

from aegis.errors import AegisError, InvalidRequest, StorageError, Unavailable
from aegis.journal.ledger import Append
from aegis.path_text import is_utf8
from aegis.protocol.requests import OpenRequest, WithdrawnRequests, WithdrawRequests
from aegis.requests import ledger
from aegis.requests.answers import answer_of
from aegis.requests.events import (
    Action,
    Answering,
    Apply,
    Changed,
    Delivered,
    Event,
    Fail,
    Opening,
    OwnerDown,
    Recovering,
    Refused,
    Renaming,
    Return,
    Synced,
    Watch,
    Withdrawing,
)
from aegis.requests.kept import KeptRequests
from aegis.requests.records import Record, holder_of, record_of
from aegis.requests.replies import acted, check_digest, opened, settled, unknown
from aegis.requests.rights import check_right
from aegis.shown_text import escape_line, shortened

MAX_OPEN = 256
"""The largest number of requests that are not answered or withdrawn yet."""

MAX_OPEN_OF_ONE = 64
"""The same of one session or workflow."""

MAX_KEY_CHARS = 512
MAX_REASON_CHARS = 1_000
MAX_UNSAVED = 256
"""Lines that the disk refused and that are written again."""

HUMAN = "human"

OWNER_GONE = "its session ended before the answer could be applied"
RESTARTED = "the daemon was restarted"
RESTARTED_ANSWERED = "the daemon was restarted before the answer was applied"
OWNER_DOWN = "its session crashed or ended"


What = Literal["opened", "answered", "applied", "withdrawn", "renamed"]


@attrs.define
class _Line:
    """A line that is not synced: the change that depends on it, and the callers that wait."""

    what: What
    fields: ledger.Line
    ids: list[str]
    callers: list[int]


class Requests:
    """All requests of a daemon, in its incarnation ``life``."""

    def __init__(self, life: str) -> None:
        self._life = life
        self.kept = KeptRequests()
        self._lines: dict[int, _Line] = {}
        self._unsaved: list[_Line] = []
        self._numbers = 0
        self._waiting: dict[str, list[int]] = {}
        self._doomed: dict[str, str] = {}

    # Reading.

    def shown(self) -> Iterator[Record]:
        """Yield the requests that may be shown, the oldest first."""
        return (each for each in self.kept if each.phase != "opening")

    def find(self, request_id: str) -> Record | None:
        """Return the request with this id, if it may be shown."""
        record = self.kept.get(request_id)
        return None if record is None or record.phase == "opening" else record

    # Events.

    def handle(self, event: Event, now: str) -> list[Action]:
        """Return the actions that follow from ``event`` at the time ``now``."""
        match event:
            case Opening():
                return self._open(event, now)
            case Answering():
                return self._answer(event, now)
            case Delivered():
                return self._delivered(event, now)
            case Withdrawing(request=request, caller=caller):
                return self._withdraw_fitting(request, caller)
            case Renaming():
                return self._rename(event)
            case OwnerDown(owner=owner):
                return self._owner_down(owner)
            case Recovering(records=records):
                return self._recover(records)
            case Synced(number=number):
                return self._synced(number)
            case Refused(sentence=sentence):
                return self._refused(sentence)

    # Opening.

    def _open(self, event: Opening, now: str) -> list[Action]:
        request, caller = event.request, event.caller
        known = self._of_key(request)
        if known is not None and known.phase == "opening":
            self._line_of(known.id, "opened").callers.append(caller)
            return []
        if known is not None:
            return [Return(caller=caller, value=opened(known))]
        error = self._refusal(request)
        if error is not None:
            return [Fail(caller=caller, error=error)]
        record = record_of(request, request_id=event.id, life=self._life, now=now)
        self.kept.put(record)
        append = self._append("opened", ledger.opened_line(record), [record.id], [caller])
        return [*self._watch(record), *append]

    def _of_key(self, request: OpenRequest) -> Record | None:
        for each in self.kept.of_holder(holder_of(request)):
            # The same question can be asked again once it is answered.
            is_over = each.phase == "withdrawn" or (each.asker is not None and not each.is_open)
            if each.key == request.key and not is_over:
                return each
        return None

    def _refusal(self, request: OpenRequest) -> AegisError | None:
        """Return why a request cannot be opened."""
        if request.asker is None and (request.session is None) == (request.workflow is None):
            return InvalidRequest("a request belongs to a session or to a workflow")
        if len(request.key) > MAX_KEY_CHARS or not is_utf8(request.key):
            return InvalidRequest(f"the key of a request has at most {MAX_KEY_CHARS} characters")
        live = sum(each.is_live for each in self.kept)
        own = sum(each.is_live for each in self.kept.of_holder(holder_of(request)))
        if own >= MAX_OPEN_OF_ONE:
            return Unavailable(
                f"{request.handle!r} has {own} open requests, which is the limit; "
                "answer some with aegis_request_answer"
            )
        if live >= MAX_OPEN:
            return Unavailable(
                f"{live} requests are open, which is the limit; "
                "answer some with aegis_request_answer"
            )
        return None

    # Answering.

    def _answer(self, event: Answering, now: str) -> list[Action]:
        request, caller = event.request, event.caller
        record = self.find(request.id)
        if record is None:
            return [Return(caller=caller, value=unknown(request.id))]
        try:
            check_right(record, request, event.by)
            if record.phase == "answering":
                self._waiting.setdefault(record.id, []).append(caller)
                return []
            if record.phase != "open":
                return [Return(caller=caller, value=settled(record))]
            check_digest(record, request.digest)
            answer = answer_of(record, request)
        except AegisError as error:
            return [Fail(caller=caller, error=error)]
        record = self._change(
            record,
            phase="answering",
            life=self._life,
            answer=answer,
            scope=request.scope,
            by=HUMAN if event.by is None else f"agent:{event.by.handle}",
            answered=now,
        )
        return self._append("answered", ledger.answered_line(record), [record.id], [caller])

    def _answer_synced(self, record: Record, callers: list[int]) -> list[Action]:
        waiting = self._waiting.pop(record.id, [])
        if record.phase == "withdrawn":
            reply = settled(record)
            return [Return(caller=each, value=reply) for each in (*callers, *waiting)]
        record = self._change(record, phase="answered")
        self._waiting[record.id] = [*callers]
        late = settled(record)
        return [
            _apply(record),
            Changed(id=record.id),
            *(Return(caller=each, value=late) for each in waiting),
        ]

    def _delivered(self, event: Delivered, now: str) -> list[Action]:
        record = self.kept.get(event.id)
        if record is None or record.phase != "answered":
            return []
        callers = self._waiting.pop(record.id, [])
        doomed = self._doomed.pop(record.id, None)
        if not event.applied:
            reason = shortened(escape_line(doomed or event.reason or OWNER_GONE), MAX_REASON_CHARS)
            actions = self._withdraw([record], reason, [])
            reply = settled(self.kept[record.id])
            return [*actions, *(Return(caller=each, value=reply) for each in callers)]
        record = self._change(record, phase="applied", applied=now)
        append = self._append("applied", ledger.applied_line(record), [record.id], callers)
        return [Changed(id=record.id), *append]

    # Withdrawing.

    def _withdraw_fitting(self, request: WithdrawRequests, caller: int) -> list[Action]:
        own = [each for each in self.kept.of_holder(holder_of(request)) if _fits(request, each)]
        fitting = [each for each in own if each.is_live]
        reason = shortened(escape_line(request.reason), MAX_REASON_CHARS)
        # An answer on its way to the owner: only the owner knows whether it acted before.
        for each in fitting:
            if each.phase == "answered":
                self._doomed[each.id] = reason
        now = [each for each in fitting if each.phase != "answered"]
        if now:
            return self._withdraw(now, reason, [caller])
        return self._withdrawn_before([each.id for each in own], caller)

    def _withdrawn_before(self, ids: list[str], caller: int) -> list[Action]:
        """Answer the caller once an earlier withdrawal of these requests is durable."""
        actions = self._append_unsaved()
        for line in reversed(self._lines.values()):
            if line.what == "withdrawn" and not set(line.ids).isdisjoint(ids):
                line.callers.append(caller)
                return actions
        return [*actions, Return(caller=caller, value=WithdrawnRequests(ids=[]))]

    def _withdraw(self, records: list[Record], reason: str, callers: list[int]) -> list[Action]:
        """Withdraw requests; their answers, if any, never act from now on."""
        shown = [each.id for each in records if each.phase != "opening"]
        ids = [each.id for each in records]
        for each in records:
            self._change(each, phase="withdrawn", withdrawn=reason)
        append = self._append("withdrawn", ledger.withdrawn_line(ids, reason), ids, callers)
        return [*(Changed(id=each) for each in shown), *append]

    def _owner_down(self, owner: str) -> list[Action]:
        gone = [
            each
            for each in self.kept
            if each.owner == owner
            and each.ends_with_owner
            and each.phase in ("opening", "open", "answering")
        ]
        return self._withdraw(gone, OWNER_DOWN, []) if gone else []

    def _rename(self, event: Renaming) -> list[Action]:
        own = [each for each in self.kept.of_session(event.session) if each.handle != event.handle]
        if not own:
            return []
        for each in own:
            self._change(each, handle=event.handle)
        ids = [each.id for each in own]
        line = ledger.renamed_line(event.session, event.handle)
        shown = [Changed(id=each.id) for each in own if each.phase != "opening"]
        return [*shown, *self._append("renamed", line, ids, [])]

    # Recovery.

    def _recover(self, records: Sequence[Record]) -> list[Action]:
        for each in records:
            self.kept.put(each)
        # The answer to a question by ``AskHuman`` is sent again: a message with the same id.
        late = [
            each
            for each in records
            if each.phase == "answered" and each.asker is None and each.life != self._life
        ]
        lost = [
            each
            for each in records
            if each.phase == "open" and each.ends_with_owner and each.life != self._life
        ]
        actions: list[Action] = []
        if late:
            actions += self._withdraw(late, RESTARTED_ANSWERED, [])
        if lost:
            actions += self._withdraw(lost, RESTARTED, [])
        for each in list(self.kept):
            if each.is_live:
                actions += self._watch(each)
            if each.phase == "answered":
                actions.append(_apply(each))
        return actions

    # The ledger.

    def _append(
        self,
        what: What,
        fields: ledger.Line,
        ids: list[str],
        callers: list[int],
    ) -> list[Action]:
        """Append a line, after those that the disk refused before."""
        return [*self._append_unsaved(), self._append_line(_Line(what, fields, ids, callers))]

    def _append_unsaved(self) -> list[Action]:
        again, self._unsaved = self._unsaved, []
        return [self._append_line(each) for each in again]

    def _append_line(self, line: _Line) -> Append:
        self._numbers += 1
        self._lines[self._numbers] = line
        return Append(number=self._numbers, line=line.fields)

    def _line_of(self, request_id: str, what: str) -> _Line:
        for line in self._lines.values():
            if line.what == what and request_id in line.ids:
                return line
        raise AssertionError(f"no line of {request_id} waits")

    def _synced(self, number: int) -> list[Action]:
        line = self._lines.pop(number)
        if line.what in ("opened", "answered", "applied"):
            record = self.kept.get(line.ids[0])
            if record is None:
                # It was withdrawn, and so many after it that the history has dropped it.
                return [Return(caller=each, value=unknown(line.ids[0])) for each in line.callers]
            return self._change_synced(line.what, record, line.callers)
        done = WithdrawnRequests(ids=line.ids)
        return [Return(caller=each, value=done) for each in line.callers]

    def _change_synced(self, what: What, record: Record, callers: list[int]) -> list[Action]:
        if what == "opened":
            return self._open_synced(record, callers)
        if what == "answered":
            return self._answer_synced(record, callers)
        return [Return(caller=each, value=acted(record)) for each in callers]

    def _open_synced(self, record: Record, callers: list[int]) -> list[Action]:
        actions: list[Action] = []
        if record.phase == "opening":
            record = self._change(record, phase="open")
            actions.append(Changed(id=record.id))
        return [*actions, *(Return(caller=each, value=opened(record)) for each in callers)]

    def _refused(self, sentence: str) -> list[Action]:
        """Undo what no line is there for; keep the lines about what has happened all the same."""
        lines, self._lines = list(self._lines.values()), {}
        dropped = {each for line in lines if line.what == "opened" for each in line.ids}
        actions: list[Action] = []
        for line in lines:
            actions += self._undo(line, dropped, sentence)
        for each in dropped:
            self.kept.drop(each)
        return actions

    def _undo(self, line: _Line, dropped: set[str], sentence: str) -> list[Action]:
        callers = list(line.callers)
        record = self.kept.get(line.ids[0])
        if line.what == "answered" and record is not None:
            callers += self._waiting.pop(record.id, [])
            phase = "open" if record.phase == "answering" else record.phase
            self._change(record, phase=phase, answer=None, scope=None, by=None, answered=None)
        elif line.what in ("applied", "withdrawn", "renamed"):
            self._keep(line, dropped)
        if line.what == "applied" and record is not None:
            # It acted, so the answerer gets that reply, whether or not it is stored.
            return [Return(caller=each, value=acted(record)) for each in callers]
        return [Fail(caller=each, error=StorageError(sentence)) for each in callers]

    def _keep(self, line: _Line, dropped: set[str]) -> None:
        kept = [each for each in line.ids if each not in dropped]
        if kept and len(self._unsaved) < MAX_UNSAVED:
            fields = {**line.fields, "ids": kept} if "ids" in line.fields else line.fields
            self._unsaved.append(_Line(line.what, fields, kept, []))

    def _change(self, record: Record, **changes: Any) -> Record:
        changed = attrs.evolve(record, **changes)
        self.kept.put(changed)
        return changed

    def _watch(self, record: Record) -> list[Action]:
        return [Watch(owner=record.owner)] if record.ends_with_owner else []


def _apply(record: Record) -> Apply:
    assert record.answer is not None
    assert record.scope is not None
    assert record.by is not None
    return Apply(
        id=record.id,
        owner=record.owner,
        key=record.key,
        answer=record.answer,
        scope=record.scope,
        by=record.by,
    )


def _fits(request: WithdrawRequests, record: Record) -> bool:
    return (
        (request.turn is None or request.turn == record.turn)
        and (request.keys is None or record.key in request.keys)
        and (request.ids is None or record.id in request.ids)
    )
