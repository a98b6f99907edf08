"""``RequestDesk``: the actor of all requests to people, between their owners and the answerers.

    open      → the row is durable → the owner gets the id, every face shows the request
    answer    → durable → the owner gets the answer → it acted, a fact → the answerer gets the reply
    withdraw  → a fact, at once: an answer that was not sent yet never acts

That an owner has acted, that nobody waits for an answer any more, and that a session has another
handle has happened outside: the disk cannot refuse it. The ledger is created with the first
request. Closed requests that are not kept are answered from the archive.
"""

from __future__ import annotations

import contextlib
import math
import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import attrs
import structlog
import trio

from actors import Actor, ActorError, AskError, Down, Ref, Reply, Request
from aegis.clock import moment_of, utc_now
from aegis.errors import AegisError, InvalidRequest, StorageError, Unavailable
from aegis.journal.archive import DEFAULT_KEEP, Archive, Keep
from aegis.journal.archiver import Archiver, Leaving
from aegis.journal.flusher import Flusher
from aegis.journal.folding import exists
from aegis.journal.table import Table
from aegis.path_text import is_utf8
from aegis.protocol.history import EndedEntries, ListEnded
from aegis.protocol.naming import name_key
from aegis.protocol.requests import (
    ID_CHARS,
    Answerer,
    AnswerRequest,
    ApplyAnswer,
    AskHuman,
    FollowRequests,
    HumanAnswer,
    ListRequests,
    OpenRequest,
    PersonAnswer,
    RenameRequests,
    RequestList,
    RequestReply,
    WithdrawAsked,
    WithdrawnRequests,
    WithdrawRequests,
)
from aegis.requests import answers, faults, questions, records
from aegis.requests.history import history_entry
from aegis.requests.records import Holder, Record, holder_of
from aegis.requests.streams import RequestStreams, list_requests, waits_only
from aegis.turns.services import find_answerer

T = TypeVar("T")

log = structlog.get_logger("aegis.requests")

MAX_OPEN = 256
"""The largest number of requests that are not answered or withdrawn yet."""

MAX_OPEN_OF_ONE = 64
"""The same of one session or workflow."""

MAX_CLOSED_SIZE = 16 * 1024 * 1024
"""The size of the closed requests that are kept, whose inputs are in memory."""

RENAMED_AT_ONCE = 16
"""Closed requests that get another handle in one step."""

MAX_KEY_CHARS = 512

ANSWER_PATIENCE_S = 20.0
"""Seconds that an answerer waits for the owner to apply the answer."""

DELIVER_S = 10.0
DELIVER_AGAIN_S = 1.0
"""Seconds that an inbox may take for an answer, and after which it is sent again."""

OWNER_GONE = "its session ended before the answer could be applied"
OWNER_CRASHED = "its session crashed while the answer was applied: it may have acted"
OWNER_DOWN = "its session crashed or ended"


@attrs.frozen
class AnswerTimeout:
    """An answerer has waited long enough for the owner of a request."""

    request: str
    caller: Reply[RequestReply] = attrs.field(repr=False)  # its address is not of the seed


@attrs.frozen
class QuestionTimeout:
    """A caller of ``AskHuman`` has waited long enough."""

    request: str
    caller: Reply[HumanAnswer] = attrs.field(repr=False)


DeskMessage = (
    OpenRequest
    | AskHuman
    | QuestionTimeout
    | WithdrawAsked
    | WithdrawRequests
    | RenameRequests
    | ListRequests
    | AnswerRequest
    | PersonAnswer
    | FollowRequests
    | ListEnded
    | AnswerTimeout
    | Down
)

Opening = OpenRequest | AskHuman
Change = OpenRequest | AskHuman | WithdrawAsked | WithdrawRequests | RenameRequests | AnswerRequest


class RequestDesk(Actor[DeskMessage]):
    """The desk of a daemon, with the ledger ``path``. ``life`` names this life of the daemon."""

    def __init__(
        self, *, path: Path, archive: Path, flusher: Flusher, life: str, keep: Keep = DEFAULT_KEEP
    ) -> None:
        self._path, self._archive, self._flusher = path, archive, flusher
        self._life, self._keep = life, keep
        self._has_ledger: bool | None = None  # None: not looked for yet
        self._sent: dict[str, str] = {}  # answers, and why it was too late to withdraw them
        self._winners: dict[str, Reply[RequestReply]] = {}
        self._waiting: dict[str, list[Reply[HumanAnswer]]] = {}
        self._owners: dict[str, set[str]] = {}
        self._pending: dict[str, None] = {}  # all but the closed ones that are at rest
        self._keys: dict[tuple[Holder, str], str] = {}  # the newest request of each key
        self._handles: dict[str, str] = {}  # of renamed sessions

    async def setup(self) -> None:
        """Register the desk and read the ledger. If the disk refuses, each message tries again."""
        self._table: Table[Record] = Table(
            self._path,
            Record,
            self._flusher,
            self.context,
            changed=self._look,
            lost=self._derive,
            upgrade=records.lines_of_today,
        )
        self._archiver = Archiver(
            Archive(self._archive, records.KIND, self._flusher.disk, self._keep.archive_bytes),
            self._keep,
            self._flusher,
            self.context,
            find=self._leaving,
            leave=self._leave,
            max_size=MAX_CLOSED_SIZE,
        )
        incarnation = f"{self._life}.{self.context.incarnation}"
        self._streams = RequestStreams(incarnation, self._find, self._shown_pending)
        self.context.register("service", "requests")
        with contextlib.suppress(StorageError):
            await self._load(creates=False)

    async def teardown(self) -> None:
        self._table.close()

    async def receive(self, message: DeskMessage) -> None:
        """Handle a message of an owner, an answerer or a reader."""
        if not self._table.is_open:
            # A message without a reply finds no request then. A few crashes would end the daemon.
            refusal = () if isinstance(message, Request) else (StorageError,)
            with contextlib.suppress(*refusal):
                await self._load(creates=isinstance(message, Opening))
        elif isinstance(message, Change):
            await self._table.open()  # a disk that has refused may accept again
        match message:
            case OpenRequest():
                await self._open_of_owner(message)
            case AskHuman(from_handle=handle):
                act = partial(self._ask_human, message, await self._new_id())
                self._as_caller(message, handle, act)
            case QuestionTimeout(request=request_id, caller=caller):
                _send(caller, HumanAnswer(request_id=request_id, state="open", answer=None))
            case WithdrawAsked():
                self._withdraw_asked(message)
            case WithdrawRequests():
                self._withdraw_of_owner(message)
            case RenameRequests(session=session, handle=handle):
                self._rename(session, handle)
            case ListRequests():
                act = partial(self.context.start_soon, self._list, message)
                self._as_caller(message, message.from_handle, act)
            case AnswerRequest():
                self._as_caller(message, message.from_handle, partial(self._answer, message))
            case FollowRequests(from_handle=handle):
                self._as_caller(message, handle, partial(self._streams.take, message))
            case ListEnded():
                self.reply(message, self._ended(message))
            case AnswerTimeout(request=request_id, caller=caller):
                _fail_answerer(request_id, caller)
            case Down():
                self._owner_down(message)

    # The ledger.

    async def _load(self, *, creates: bool) -> None:
        """Have the ledger read, if there is one or it ``creates`` one. Raises ``StorageError``."""
        if self._has_ledger is None:
            disk = self._flusher.disk
            self._has_ledger = await self._flusher.look(partial(exists, disk, self._path))
        if not (self._has_ledger or creates):
            return
        had_problem = bool(self._table.problem)
        await self._table.open()
        if self._table.problem:
            raise StorageError(self._table.refusal)
        self._has_ledger = True
        if not had_problem:  # otherwise the table has called it
            self._derive()

    def _derive(self) -> None:
        """Do what follows from the requests that were read, or are left by a disk that refused."""
        for row in [*self._table.rows.values()]:
            reason = records.lost_with_daemon(row, self._life)
            if reason:
                self._withdraw([row], reason)
        self._pending.clear()
        self._keys.clear()
        for row in [*self._table.rows.values()]:
            self._index(row)
            self._watch(row)
            if row.phase == "answered" and row.id not in self._sent:
                self._apply_soon(row.id, None)
            self._close(row.id)

    def _index(self, row: Record) -> None:
        """Index a request that is put or was read."""
        self._pending[row.id] = None
        if not self._is_over(row):  # the row of an archived one comes last if its drop is refused
            self._keys[row.holder, row.key] = row.id

    def _close(self, request_id: str) -> None:
        """Count a request among the closed ones if it is closed and at rest."""
        row = self._table.rows[request_id]
        if not row.is_live and self._table.is_at_rest(request_id):
            self._pending.pop(request_id, None)
            self._archiver.add(request_id, moment_of(row.ended).timestamp(), row.size)

    def _leaving(self, request_id: str) -> Leaving | None:
        """Return a request as the archive gets it; None if it is not closed."""
        row = self._table.rows.get(request_id)
        if row is None or row.is_live:
            return None
        return Leaving(self._table, (row,), records.entries_of(row))

    def _leave(self, request_id: str) -> None:
        """Leave a request that is archived."""
        row = self._table.rows[request_id]
        if self._keys.get((row.holder, row.key)) == request_id:
            del self._keys[row.holder, row.key]
        self._streams.remove(request_id)

    def _look(self) -> None:
        """Look at what is durable now, and what the disk has refused."""
        if self._table.problem:  # that an answer acted is known, whether or not it is stored
            for each in [*self._winners]:
                self._confirm(each)
        self._streams.look()

    # What is shown.

    def _find(self, request_id: str) -> Record | None:
        """Return a request as it is shown: once it is durable, and with an answer that is."""
        durable, newest = self._table.shown(request_id), self._table.rows.get(request_id)
        if durable is None or newest is None:
            return None
        if newest.phase == "answered" and durable.phase == "open":
            return records.without_answer(newest)
        return newest

    def _shown(self, ids: Iterable[str]) -> Iterator[Record]:
        """Yield those of the requests that are shown."""
        return (each for each in map(self._find, ids) if each is not None)

    def _shown_pending(self) -> Iterator[Record]:
        """Yield the requests that are shown, without closed ones at rest; the oldest first."""
        return self._shown([*self._pending])

    def _pending_rows(self) -> list[Record]:
        """Return the requests with all changes, without closed ones at rest."""
        rows = self._table.rows
        return [rows[each] for each in self._pending if each in rows]  # the disk may refuse one

    def _of_holder(self, request: OpenRequest | WithdrawRequests) -> list[Record]:
        holder = holder_of(request)
        return [each for each in self._pending_rows() if each.holder == holder]

    async def _list(
        self, request: ListRequests, by: Answerer | None, reply: Reply[RequestList]
    ) -> None:
        is_short = waits_only(request)
        rows = self._shown_pending() if is_short else self._shown(reversed([*self._table.rows]))
        found = await list_requests(rows, request, by)
        id_ = request.id
        if id_ is None or len(id_) < ID_CHARS or found.requests or id_ in self._table.rows:
            reply.send(found)
            return
        try:
            _, row = await self._archived(id_)
        except AegisError as error:
            reply.fail(error)
            return
        is_seen = row is not None and answers.may_see(row, by)
        reply.send(RequestList(requests=[row.info()] if row is not None and is_seen else []))

    async def _archived(self, request_id: str) -> tuple[dict[str, Any] | None, Record | None]:
        """Return an archived request, as its entry of the index and its row if there are."""
        entry = await self._archiver.entry(records.id_name(request_id))
        if entry is None:
            return None, None
        return entry, await self._archiver.row(Record, entry, request_id)

    def _ended(self, request: ListEnded) -> EndedEntries:
        """Return closed requests for a search of the history."""
        if request.ids is None:
            return EndedEntries(ids=self._archiver.newest_first())
        rows = (self._table.rows.get(each) for each in request.ids)
        seen = [each for each in rows if each is not None and answers.may_see(each, request.by)]
        return EndedEntries(entries=[history_entry(each) for each in seen if not each.is_live])

    def _changed(self, rows: Iterable[Record]) -> None:
        """Notify the streams of changes that are shown at once."""
        for each in rows:
            if self._find(each.id) is not None:
                self._streams.changed(each.id)
        self._look()

    # Opening.

    async def _open_of_owner(self, request: OpenRequest) -> None:
        if self._find_owner(request.owner) is None:
            raise Unavailable(
                f"the owner {request.owner!r} of a request does not run: open it anew"
            )
        if self._of_key(request) is None:
            entry = await self._archiver.entry(records.key_name(request))
            if entry is not None:
                self.reply(request, answers.opened_before(entry))
                return
        new_id, reply = await self._new_id(), self.defer(request)
        self._open(request, new_id, lambda row: reply.send(answers.opened(row)), reply)

    def _open(
        self, request: OpenRequest, new_id: str, then: Callable[[Record], None], reply: Reply[Any]
    ) -> None:
        """Open a request, or find it by its key; call ``then`` with it once it is durable."""
        known = self._of_key(request)
        if known is not None:
            found = self._find(known.id)
            if found is not None:
                then(found)
            else:
                self._table.settled(lambda: then(self._table.rows[known.id]), reply)
            return
        error = self._refusal(request)
        if error is not None:
            reply.fail(error)
            return
        row = records.record_of(request, request_id=new_id, life=self._life, now=utc_now())
        if self._table.put(row, partial(self._opened, row.id, then), reply):
            self._index(row)
            self._watch(row)

    async def _new_id(self) -> str:
        """Return an id that no request has or had. Raises ``StorageError``."""
        while True:
            new = uuid.uuid4().hex[:ID_CHARS]
            is_archived = await self._archiver.entry(records.id_name(new)) is not None
            if new not in self._table.rows and not is_archived:
                return new

    def _of_key(self, request: OpenRequest) -> Record | None:
        """Return the request of this key that its owner gets again."""
        known = self._keys.get((holder_of(request), request.key))
        row = None if known is None else self._table.rows.get(known)
        return None if row is None or self._is_over(row) else row

    def _is_over(self, row: Record) -> bool:
        """Return whether the key of a request opens another one."""
        if row.phase == "withdrawn":
            return True
        # The same question can be asked again once it is answered.
        durable = self._table.shown(row.id)
        return row.asker is not None and durable is not None and durable.state == "answered"

    def _refusal(self, request: OpenRequest) -> AegisError | None:
        """Return why a request cannot be opened."""
        if request.asker is None and (request.session is None) == (request.workflow is None):
            return InvalidRequest("a request belongs to a session or to a workflow")
        if len(request.key) > MAX_KEY_CHARS or not is_utf8(request.key):
            return InvalidRequest(f"the key of a request has at most {MAX_KEY_CHARS} characters")
        live = sum(each.is_live for each in self._pending_rows())
        own = sum(each.is_live for each in self._of_holder(request))
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

    def _opened(self, request_id: str, then: Callable[[Record], None]) -> None:
        row = self._table.rows[request_id]
        if row.phase == "open":  # it may be withdrawn meanwhile
            self._streams.changed(request_id)
        then(row)

    # Answering.

    def _answer(self, request: AnswerRequest, by: Answerer | None, reply: Reply[Any]) -> None:
        row = self._find(request.id)
        if row is None:
            self.context.start_soon(self._answer_archived, request, by, reply)
            return
        answers.check_right(row, request, by)
        if row.phase != "open":
            reply.send(answers.settled(row))
            return
        if self._table.rows[row.id].phase == "open":
            answers.check_digest(row, request.digest)
            answered = records.with_answer(
                row,
                answers.answer_of(row, request),
                scope=request.scope,
                by="human" if by is None else f"agent:{by.handle}",
                life=self._life,
                now=utc_now(),
            )
            self._table.put(answered, partial(self._answered, row.id, reply), reply)
        else:  # another answer is being written
            self._table.settled(
                lambda: reply.send(answers.settled(self._table.rows[row.id])), reply
            )
        if not reply.is_settled:
            self.context.after(ANSWER_PATIENCE_S, AnswerTimeout(row.id, reply))

    async def _answer_archived(
        self, request: AnswerRequest, by: Answerer | None, reply: Reply[RequestReply]
    ) -> None:
        """Reply to an answer to a request that is not in the table."""
        try:
            entry, row = await self._archived(request.id)
            if row is not None:
                answers.check_right(row, request, by)
                reply.send(answers.settled(row))
            elif entry is not None:
                reply.send(answers.settled_before(request.id, entry))
            else:
                reply.send(answers.unknown(request.id))
        except AegisError as error:
            reply.fail(error)

    def _answered(self, request_id: str, reply: Reply[RequestReply]) -> None:
        """Send an answer that is durable to the owner, unless it was withdrawn meanwhile."""
        row = self._table.rows[request_id]
        if row.phase == "withdrawn":
            _send(reply, answers.settled(row))
        else:
            self._streams.changed(request_id)
            self._apply_soon(request_id, reply)

    def _apply_soon(self, request_id: str, reply: Reply[RequestReply] | None) -> None:
        self._sent[request_id] = ""
        self.context.start_soon(self._apply, request_id, reply)

    async def _apply(self, request_id: str, reply: Reply[RequestReply] | None) -> None:
        """Send an answer to its owner, and wait for the outcome as long as it takes."""
        row = self._table.rows[request_id]
        faults.APPLY_BEFORE.hit(row.owner)
        is_applied, reason = await self._applied(row)
        faults.APPLY_AFTER.hit(row.owner)
        doomed = self._sent.pop(request_id)
        if is_applied:
            if reply is not None:
                self._winners[request_id] = reply
            acted = partial(records.applied, now=utc_now())
            self._table.fact(request_id, acted, partial(self._confirm, request_id))
            self._changed([row])
        else:
            self._withdraw([row], doomed or reason or OWNER_GONE)
            _send(reply, answers.settled(self._table.rows[request_id]))

    def _confirm(self, request_id: str) -> None:
        """Reply to the answerer of a request that its answer has acted."""
        self._close(request_id)
        _send(self._winners.pop(request_id, None), answers.acted(self._table.rows[request_id]))

    async def _applied(self, row: Record) -> tuple[bool, str]:
        """Return whether the owner has acted on its answer; otherwise why it has not."""
        assert row.answer is not None
        assert row.scope is not None
        assert row.by is not None
        if row.owner == questions.DESK:
            await self._give_answer(row)
            return True, ""
        owner = self._find_owner(row.owner)
        if owner is None:
            return False, OWNER_GONE
        message = ApplyAnswer(id=row.id, key=row.key, answer=row.answer, scope=row.scope, by=row.by)
        try:
            received = await owner.ask(message, timeout=math.inf)
        except AskError:
            return False, OWNER_CRASHED
        except AegisError as error:
            return False, str(error)
        return received.applied, received.reason

    # Withdrawing and renaming.

    def _withdraw_of_owner(self, request: WithdrawRequests) -> None:
        reply = self.defer(request)
        ids = self._withdraw_fitting(request)
        if not ids:
            reply.send(WithdrawnRequests(ids=[]))
        elif self._table.problem:
            reply.fail(StorageError(self._table.refusal))
        else:
            self._table.settled(lambda: reply.send(WithdrawnRequests(ids=ids)), reply)

    def _withdraw_fitting(self, request: WithdrawRequests) -> list[str]:
        """Withdraw requests; return the ids of those whose withdrawal is not durable yet."""
        own = [each for each in self._of_holder(request) if _fits(request, each)]
        for each in own:
            if each.id in self._sent:  # only the owner knows whether it acted before
                self._sent[each.id] = request.reason
        self._withdraw([each for each in own if each.id not in self._sent], request.reason)
        found = [self._table.rows[each.id] for each in own if each.id in self._table.rows]
        gone = [each for each in found if each.phase == "withdrawn"]
        return [
            each.id
            for each in gone
            if (durable := self._table.shown(each.id)) is None or durable.phase != "withdrawn"
        ]

    def _withdraw(self, rows: Iterable[Record], reason: str) -> None:
        """Withdraw requests that can be; their answers, if any, never act from now on."""
        live = [each for each in rows if each.is_live]
        change = partial(records.withdrawn, reason=reason, now=utc_now())
        for each in live:
            self._fact(each.id, change)
            if each.id in self._waiting:
                self._answer_waiting(self._table.rows[each.id])
        self._changed(live)

    def _fact(self, request_id: str, change: Callable[[Record], Record]) -> None:
        if request_id in self._table.rows:  # the disk may refuse it with the fact before this one
            self._table.fact(request_id, change, partial(self._close, request_id))

    def _withdraw_asked(self, message: WithdrawAsked) -> None:
        """Withdraw the open questions of sessions that are closed."""
        for asker in dict.fromkeys(map(name_key, message.askers)):
            self._withdraw_fitting(WithdrawRequests(asker=asker, reason=message.reason))

    def _rename(self, session: str, handle: str) -> None:
        self._handles[session] = handle
        rows = [*self._table.rows.values()]
        own = [each for each in rows if each.session == session and each.handle != handle]
        self._rename_some([each for each in own if each.id in self._pending], handle)
        closed = [each.id for each in own if each.id not in self._pending]
        if closed:
            self.context.start_soon(self._rename_closed, session, handle, closed)

    def _rename_some(self, rows: Iterable[Record], handle: str) -> None:
        for each in rows:
            self._fact(each.id, partial(records.renamed, handle=handle))
        self._changed(rows)

    async def _rename_closed(self, session: str, handle: str, ids: list[str]) -> None:
        """Rename closed requests in steps, as there may be thousands, unless it is done anew."""
        for at in range(0, len(ids), RENAMED_AT_ONCE):
            if self._handles[session] != handle:
                return
            found = map(self._table.rows.get, ids[at : at + RENAMED_AT_ONCE])
            self._rename_some([each for each in found if each is not None], handle)
            await trio.lowlevel.checkpoint()

    # Owners.

    def _find_owner(self, owner: str) -> Ref[Any] | None:
        """Return the actor at a path or of a name, unless it has stopped for good."""
        system = self.context.system
        group, colon, name = owner.partition(":")
        try:
            found = system.registry.find(group, name) if colon else system.ref(owner)
        except ActorError:
            return None
        return None if found is None or found.is_stopped else found

    def _watch(self, row: Record) -> None:
        """Have a request withdrawn when its owner crashes or stops, if it ends with that."""
        if not (row.is_live and row.ends_with_owner):
            return
        ref = self._find_owner(row.owner)
        path = row.owner if ref is None else ref.path
        self._owners.setdefault(path, set()).add(row.owner)
        if ref is None:
            # Not now: its caller has not been answered.
            self.context.after(0, _down_of(row.owner))
            return
        with contextlib.suppress(ActorError):
            self.context.monitor(ref)

    def _owner_down(self, down: Down) -> None:
        owners = self._owners.get(down.path, set())
        if down.final:
            self._owners.pop(down.path, None)
        rows = self._pending_rows()
        own = [each for each in rows if each.owner in owners and each.ends_with_owner]
        self._withdraw([each for each in own if each.id not in self._sent], OWNER_DOWN)

    # Questions by aegis_ask_human, whose owner is the desk.

    def _ask_human(
        self, request: AskHuman, new_id: str, by: Answerer | None, reply: Reply[Any]
    ) -> None:
        if by is None or request.from_handle is None:
            raise InvalidRequest(
                "aegis_ask_human: you are the person; say in from_handle which agent asks"
            )
        question = questions.question_of(request, request.from_handle, by)
        self._open(question, new_id, partial(self._wait, request.wait_s, reply), reply)

    def _wait(self, wait_s: float, reply: Reply[HumanAnswer], row: Record) -> None:
        """Have the caller of an open question wait for its answer."""
        if row.is_live:
            earlier = self._waiting.get(row.id, [])
            self._waiting[row.id] = [*(each for each in earlier if not each.is_settled), reply]
            self.context.after(wait_s, QuestionTimeout(row.id, reply))
        else:  # withdrawn before it was durable
            reply.send(questions.human_answer(row))

    def _answer_waiting(self, row: Record) -> bool:
        """Reply to the callers that wait for a question; return whether there was one."""
        waiting = [each for each in self._waiting.pop(row.id, []) if not each.is_settled]
        for each in waiting:
            each.send(questions.human_answer(row))
        return bool(waiting)

    async def _give_answer(self, row: Record) -> None:
        """Reply to the waiting callers, else send a message; until the inbox has it."""
        if self._answer_waiting(row):
            return
        message = questions.answer_message(row)
        while True:
            inboxes = self.context.system.registry.find("service", "inboxes")
            try:
                if inboxes is not None:
                    await inboxes.ask(message, timeout=DELIVER_S)
                    return
            except (AskError, AegisError) as error:
                log.warning("answer not delivered", request=row.id, why=str(error))
            await trio.sleep(DELIVER_AGAIN_S)

    # Callers.

    def _as_caller(
        self,
        request: Request[T],
        handle: str | None,
        act: Callable[[Answerer | None, Reply[T]], None],
    ) -> None:
        """Call ``act`` with the rights of the caller, None for the operator."""
        reply = self.defer(request)
        sessions = self.context.system.registry.find("service", "sessions")
        if handle is None:
            _guarded(act, None, reply)
        elif sessions is None:
            _guarded(act, Answerer(handle=handle), reply)
        else:
            self.context.start_soon(self._act_as, sessions, handle, act, reply)

    async def _act_as(
        self,
        sessions: Ref[Any],
        handle: str,
        act: Callable[[Answerer | None, Reply[T]], None],
        reply: Reply[T],
    ) -> None:
        try:
            by = await find_answerer(sessions, handle)
        except AegisError as error:
            reply.fail(error)
        else:
            _guarded(act, by, reply)


def _guarded(
    act: Callable[[Answerer | None, Reply[T]], None], by: Answerer | None, reply: Reply[T]
) -> None:
    try:
        act(by, reply)
    except AegisError as error:
        reply.fail(error)


def _send(reply: Reply[T] | None, value: T) -> None:
    """Reply to a caller that still waits."""
    if reply is not None and not reply.is_settled:
        reply.send(value)


def _fail_answerer(request_id: str, caller: Reply[RequestReply]) -> None:
    if not caller.is_settled:
        caller.fail(
            Unavailable(
                f"the answer to request {request_id} is not confirmed after "
                f"{ANSWER_PATIENCE_S:.0f} s: look with aegis_request_list whether it was applied"
            )
        )


def _fits(request: WithdrawRequests, record: Record) -> bool:
    return (
        (request.turn is None or request.turn == record.turn)
        and (request.keys is None or record.key in request.keys)
        and (request.ids is None or record.id in request.ids)
    )


def _down_of(owner: str) -> Down:
    return Down(path=owner, incarnation=0, reason="it does not run", crashed=False, final=True)
