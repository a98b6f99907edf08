"""``RequestDesk``: the actor of all requests to people, between their owners and the answerers.

The rules decide (``rules``); this actor appends their lines, sends answers to owners, and looks up
the rights of sessions. The ledger is created with the first request.
"""

from __future__ import annotations

import contextlib
import math
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import attrs
import structlog
import trio

from actors import Actor, ActorError, AskError, Down, Ref, Reply, Request
from aegis.clock import utc_now
from aegis.errors import AegisError, InvalidRequest, StorageError, Unavailable
from aegis.journal.appender import Appender
from aegis.journal.flusher import Flusher
from aegis.journal.folding import exists, load
from aegis.journal.ledger import Append
from aegis.journal.line_writer import LineWriter
from aegis.protocol.naming import name_key
from aegis.protocol.requests import (
    Answerer,
    AnswerRequest,
    ApplyAnswer,
    AskHuman,
    FindAnswerer,
    FollowRequests,
    HumanAnswer,
    ListRequests,
    OpenRequest,
    RenameRequests,
    RequestList,
    WithdrawAsked,
    WithdrawnRequests,
    WithdrawRequests,
)
from aegis.requests import events as e
from aegis.requests import faults
from aegis.requests.asking import DESK, Askers, answer_message, question_of
from aegis.requests.followers import Followers
from aegis.requests.ledger import Fold
from aegis.requests.listing import list_requests
from aegis.requests.rules import OWNER_GONE, Requests

T = TypeVar("T")

log = structlog.get_logger("aegis.requests")

ANSWER_PATIENCE_S = 20.0
"""Seconds that an answerer waits for the owner to apply the answer."""

FIND_S = 5.0
"""Seconds that the lookup of a session may take."""

DELIVER_S = 10.0
DELIVER_AGAIN_S = 1.0
"""Seconds that an inbox may take for an answer, and after which it is sent again."""

NOBODY = 0
"""The caller of an event whose outcome nobody waits for."""

OWNER_CRASHED = "its session crashed while the answer was applied: it may have acted"


@attrs.frozen(kw_only=True)
class AnswerDeadline:
    """The answerer with this number has waited long enough."""

    caller: int
    id: str


@attrs.frozen(kw_only=True)
class AskDeadline:
    """The caller of ``AskHuman`` with this number has waited long enough."""

    caller: int


DeskMessage = (
    OpenRequest
    | AskHuman
    | AskDeadline
    | WithdrawAsked
    | WithdrawRequests
    | RenameRequests
    | ListRequests
    | AnswerRequest
    | FollowRequests
    | AnswerDeadline
    | Down
)


class RequestDesk(Actor[DeskMessage]):
    """The desk of a daemon, with the ledger ``path``. ``life`` names this life of the daemon."""

    def __init__(self, *, path: Path, flusher: Flusher, life: str) -> None:
        self._path = path
        self._flusher = flusher
        self._life = life
        self._is_loaded = False
        self._writer: LineWriter | None = None
        self._callers: dict[int, Reply[Any]] = {}
        self._waits_s: dict[int, float] = {}
        self._askers = Askers()
        self._count = 0
        self._owners: dict[str, set[str]] = {}

    async def setup(self) -> None:
        """Register the desk and read the ledger. If the disk refuses, each request tries again."""
        self.context.register("service", "requests")
        with contextlib.suppress(StorageError):
            await self._load()

    async def teardown(self) -> None:
        if self._writer is not None:
            self._writer.close()

    async def receive(self, message: DeskMessage) -> None:
        """Handle a message of an owner, an answerer or a reader."""
        if not self._is_loaded:
            await self._load()
        match message:
            case OpenRequest():
                await self._open(message)
            case AskHuman(from_handle=handle):
                if self._writer is None:
                    await self._open_ledger()
                self._as_caller(message, handle, partial(self._ask_human, message))
            case AskDeadline(caller=caller):
                self._askers.give_up(caller)
            case WithdrawAsked(askers=askers, reason=reason):
                self._withdraw_asked(askers, reason)
            case WithdrawRequests():
                caller = self._keep(self.defer(message))
                self._handle(e.Withdrawing(request=message, caller=caller))
            case RenameRequests(session=session, handle=handle):
                self._handle(e.Renaming(session=session, handle=handle))
            case ListRequests():
                self._as_caller(message, message.from_handle, partial(self._list, message))
            case AnswerRequest():
                self._as_caller(message, message.from_handle, partial(self._answer, message))
            case FollowRequests():
                self._as_caller(message, message.from_handle, partial(self._follow, message))
            case AnswerDeadline():
                self._give_up(message)
            case Down():
                self._owner_down(message)

    # Owners.

    async def _open(self, request: OpenRequest) -> None:
        if self._writer is None:
            await self._open_ledger()
        if self._find_owner(request.owner) is None:
            raise Unavailable(
                f"the owner {request.owner!r} of a request does not run: open it anew"
            )
        caller = self._keep(self.defer(request))
        self._handle(e.Opening(request=request, id=self._new_id(), caller=caller))

    def _new_id(self) -> str:
        new = uuid.uuid4().hex[:12]
        while self._rules.kept.get(new) is not None:
            new = uuid.uuid4().hex[:12]
        return new

    def _find_owner(self, owner: str) -> Ref[Any] | None:
        """Return the actor at a path or of a name, unless it has stopped for good."""
        group, colon, name = owner.partition(":")
        try:
            found = (
                self.context.system.registry.find(group, name)
                if colon
                else self.context.system.ref(owner)
            )
        except ActorError:
            return None
        return None if found is None or found.is_stopped else found

    def _watch(self, owner: str) -> None:
        ref = self._find_owner(owner)
        if ref is None:
            # Not now: the action that follows belongs to the same event.
            self.context.after(0, _down_of(owner))
            self._owners.setdefault(owner, set()).add(owner)
            return
        self._owners.setdefault(ref.path, set()).add(owner)
        with contextlib.suppress(ActorError):
            self.context.monitor(ref)

    def _owner_down(self, down: Down) -> None:
        owners = self._owners.get(down.path, set())
        if down.final:
            self._owners.pop(down.path, None)
        for owner in sorted(owners):
            self._handle(e.OwnerDown(owner=owner))

    async def _apply(self, action: e.Apply) -> None:
        """Send an answer to its owner, and wait for the reply as long as it takes."""
        faults.APPLY_BEFORE.hit(action.owner)
        applied, reason = await self._applied(action)
        faults.APPLY_AFTER.hit(action.owner)
        self._handle(e.Delivered(id=action.id, applied=applied, reason=reason))

    async def _applied(self, action: e.Apply) -> tuple[bool, str]:
        if action.owner == DESK:
            await self._give_answer(action.id)
            return True, ""
        owner = self._find_owner(action.owner)
        if owner is None:
            return False, OWNER_GONE
        message = ApplyAnswer(
            id=action.id, key=action.key, answer=action.answer, scope=action.scope, by=action.by
        )
        try:
            received = await owner.ask(message, timeout=math.inf)
        except AskError:
            return False, OWNER_CRASHED
        except AegisError as error:
            return False, str(error)
        return received.applied, received.reason

    # Questions by aegis_ask_human.

    def _ask_human(self, request: AskHuman, by: Answerer | None, reply: Reply[Any]) -> None:
        if by is None or request.from_handle is None:
            raise InvalidRequest(
                "aegis_ask_human: you are the person; say in from_handle which agent asks"
            )
        caller = self._keep(reply)
        self._waits_s[caller] = request.wait_s
        question = question_of(request, request.from_handle, by)
        self._handle(e.Opening(request=question, id=self._new_id(), caller=caller))

    def _begin_wait(self, caller: int, id_: str, wait_s: float, reply: Reply[Any]) -> None:
        """Have the caller of an open question wait for its answer."""
        record = self._rules.kept.get(id_)
        if record is None:  # withdrawn, and dropped from the history
            reply.send(HumanAnswer(request_id=id_, state="withdrawn", answer=None))
            return
        self._askers.add(caller, record, reply)
        if record.is_live:
            self.context.after(wait_s, AskDeadline(caller=caller))
        else:  # withdrawn before it was durable
            self._askers.settle(record)

    async def _give_answer(self, request_id: str) -> None:
        """Reply to the waiting callers, else send a message; until the inbox has it."""
        record = self._rules.kept[request_id]
        if self._askers.settle(record):
            return
        message = answer_message(record)
        while True:
            inboxes = self.context.system.registry.find("service", "inboxes")
            try:
                if inboxes is not None:
                    await inboxes.ask(message, timeout=DELIVER_S)
                    return
            except (AskError, AegisError) as error:
                log.warning("answer not delivered", request=request_id, why=str(error))
            await trio.sleep(DELIVER_AGAIN_S)

    def _withdraw_asked(self, askers: Sequence[str], reason: str) -> None:
        """Withdraw the open questions of sessions that are closed."""
        live = {each.holder[2] for each in self._rules.kept if each.is_live}
        for asker in live & {name_key(each) for each in askers}:
            request = WithdrawRequests(asker=asker, reason=reason)
            self._handle(e.Withdrawing(request=request, caller=NOBODY))

    # Answerers and readers.

    def _as_caller(
        self,
        request: Request[T],
        handle: str | None,
        act: Callable[[Answerer | None, Reply[T]], None],
    ) -> None:
        """Call ``act`` with the rights of the caller, None for the operator."""
        reply = self.defer(request)
        if handle is None:
            _guarded(act, None, reply)
            return
        sessions = self.context.system.registry.find("service", "sessions")
        if sessions is None:
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
            by: Answerer = await sessions.ask(FindAnswerer(handle=handle), timeout=FIND_S)
        except AskError:
            reply.fail(Unavailable(f"the session of {handle!r} could not be looked up; call again"))
        except AegisError as error:
            reply.fail(error)
        else:
            _guarded(act, by, reply)

    def _list(self, request: ListRequests, by: Answerer | None, reply: Reply[RequestList]) -> None:
        reply.send(list_requests(self._rules, request, by))

    def _answer(self, request: AnswerRequest, by: Answerer | None, reply: Reply[Any]) -> None:
        caller = self._keep(reply)
        deadline = AnswerDeadline(caller=caller, id=request.id)
        self._handle(e.Answering(request=request, by=by, caller=caller))
        if caller in self._callers:
            self.context.after(ANSWER_PATIENCE_S, deadline)

    def _follow(self, request: FollowRequests, by: Answerer | None, reply: Reply[Any]) -> None:
        self._followers.take(request, by, reply)

    def _give_up(self, deadline: AnswerDeadline) -> None:
        reply = self._callers.pop(deadline.caller, None)
        if reply is not None:
            reply.fail(
                Unavailable(
                    f"the answer to request {deadline.id} is not confirmed after "
                    f"{ANSWER_PATIENCE_S:.0f} s: look with aegis_request_list whether it was "
                    "applied"
                )
            )

    # The rules.

    def _keep(self, reply: Reply[Any]) -> int:
        self._count += 1
        self._callers[self._count] = reply
        return self._count

    def _handle(self, event: e.Event) -> None:
        for action in self._rules.handle(event, utc_now()):
            self._perform(action)
        self._followers.look()

    def _perform(self, action: e.Action) -> None:
        match action:
            case Append():
                assert self._writer is not None, "a ledger is open before it has lines"
                self._writer.append(action)
            case e.Apply():
                self.context.start_soon(self._apply, action)
            case e.Return(caller=caller, value=value):
                reply = self._callers.pop(caller, None)
                wait_s = self._waits_s.pop(caller, None)
                if reply is not None and wait_s is None:
                    reply.send(value)
                elif reply is not None and wait_s is not None:
                    assert not isinstance(value, WithdrawnRequests)
                    self._begin_wait(caller, value.id, wait_s, reply)
            case e.Fail(caller=caller, error=error):
                self._waits_s.pop(caller, None)
                reply = self._callers.pop(caller, None)
                if reply is not None:
                    reply.fail(error)
            case e.Changed(id=request_id):
                self._followers.changed(request_id)
                record = self._rules.kept.get(request_id)
                if record is not None and record.phase == "withdrawn":
                    self._askers.settle(record)
            case e.Watch(owner=owner):
                self._watch(owner)

    # The ledger.

    async def _load(self) -> None:
        """Read the ledger, if there is one. Raises ``StorageError``."""
        if await self._flusher.look(partial(exists, self._flusher.disk, self._path)):
            await self._open_ledger()
        else:
            self._begin()

    def _begin(self) -> None:
        self._rules = Requests(self._life)
        incarnation = f"{self._life}.{self.context.incarnation}"
        self._followers = Followers(self._rules, incarnation)
        self._is_loaded = True

    async def _open_ledger(self) -> None:
        """Open or create the ledger, and recover its requests. Raises ``StorageError``."""
        appender = await Appender.open(self._path, self._flusher)
        with contextlib.ExitStack() as undo:
            undo.callback(appender.close)
            read = partial(load, self._flusher.disk, self._path, appender.synced, Fold())
            fold = await self._flusher.look(read)
            undo.pop_all()
        self._writer = LineWriter(
            appender,
            self.context.start_soon,
            synced=lambda number: self._handle(e.Synced(number=number)),
            refused=lambda sentence: self._handle(e.Refused(sentence=sentence)),
            before=faults.APPEND_BEFORE.hit,
            after=faults.APPEND_AFTER.hit,
        )
        if not self._is_loaded:
            self._begin()
        self._handle(e.Recovering(records=list(fold.records)))


def _guarded(
    act: Callable[[Answerer | None, Reply[T]], None], by: Answerer | None, reply: Reply[T]
) -> None:
    try:
        act(by, reply)
    except AegisError as error:
        reply.fail(error)


def _down_of(owner: str) -> Down:
    return Down(path=owner, incarnation=0, reason="it does not run", crashed=False, final=True)
