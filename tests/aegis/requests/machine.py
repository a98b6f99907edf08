"""The rules of requests without a disk: lines are synced when a test says so."""

from __future__ import annotations

from typing import Any

from aegis.journal.ledger import Append
from aegis.protocol.agent_events import RequestOption
from aegis.protocol.requests import (
    Answerer,
    AnswerRequest,
    OpenRequest,
    RequestOpened,
    RequestReply,
    WithdrawRequests,
)
from aegis.requests.events import (
    Action,
    Answering,
    Apply,
    Changed,
    Delivered,
    Event,
    Fail,
    Opening,
    Recovering,
    Refused,
    Return,
    Synced,
    Withdrawing,
)
from aegis.requests.ledger import Fold
from aegis.requests.rules import Requests

NOW = "2026-05-22T14:03:25.000Z"

OPTIONS = [
    RequestOption(id="yes", name="Allow", kind="allow_once"),
    RequestOption(id="always", name="Always allow", kind="allow_session"),
    RequestOption(id="no", name="Reject", kind="deny"),
]


def permission(key: str = "k1", **changes: Any) -> OpenRequest:
    fields: dict[str, Any] = {
        "owner": "root/sessions/ann",
        "handle": "ann",
        "session": "s-ann",
        "turn": "t1",
        "key": key,
        "kind": "permission",
        "tool": "Bash",
        "tool_kind": "execute",
        "title": "Run rm",
        "input": {"command": f"rm {key}"},
        "options": OPTIONS,
    }
    return OpenRequest(**(fields | changes))


class Machine:
    """The rules with a ledger in memory: ``lines`` are written, of which ``durable`` are synced."""

    def __init__(self, life: str = "life1", lines: list[dict[str, Any]] | None = None) -> None:
        self.rules = Requests(life)
        self.durable: list[dict[str, Any]] = list(lines or [])
        self.written: list[Append] = []
        self.returned: dict[int, Any] = {}
        self.applied: list[Apply] = []
        self.changed: list[str] = []
        self.ids = 0
        self.callers = 0
        if lines is not None:
            fold = Fold()
            for each in lines:
                fold.apply(each)
            self.take(self.rules.handle(Recovering(records=list(fold.records)), NOW))

    def take(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Append():
                    self.written.append(action)
                case Return(caller=caller, value=value):
                    assert caller not in self.returned, "a caller is answered once"
                    self.returned[caller] = value
                case Fail(caller=caller, error=error):
                    assert caller not in self.returned, "a caller is answered once"
                    self.returned[caller] = error
                case Apply():
                    self.applied.append(action)
                case Changed(id=request_id):
                    assert self.rules.find(request_id) is not None
                    self.changed.append(request_id)

    def handle(self, event: Event) -> None:
        self.take(self.rules.handle(event, NOW))

    def sync(self, count: int | None = None) -> None:
        """Sync so many of the written lines, all if None."""
        while self.written and count != 0:
            line = self.written.pop(0)
            self.durable.append(dict(line.line))
            self.handle(Synced(number=line.number))
            count = None if count is None else count - 1

    def refuse(self) -> None:
        self.written.clear()
        self.handle(Refused(sentence="the disk is full"))

    # What a test does, by the number of the caller.

    def open(self, request: OpenRequest) -> int:
        self.callers += 1
        self.ids += 1
        self.handle(Opening(request=request, id=f"{self.ids:012x}", caller=self.callers))
        return self.callers

    def opened(self, request: OpenRequest | None = None) -> RequestOpened:
        caller = self.open(permission() if request is None else request)
        self.sync()
        found = self.returned[caller]
        assert isinstance(found, RequestOpened), found
        return found

    def answer(
        self, to: RequestOpened, answer: Any = "allow", by: Answerer | None = None, **fields: Any
    ) -> int:
        self.callers += 1
        fields = {"id": to.id, "digest": to.digest, "answer": answer} | fields
        self.handle(Answering(request=AnswerRequest(**fields), by=by, caller=self.callers))
        return self.callers

    def withdraw(self, **fields: Any) -> int:
        self.callers += 1
        request = WithdrawRequests(**({"session": "s-ann", "reason": "the turn ended"} | fields))
        self.handle(Withdrawing(request=request, caller=self.callers))
        return self.callers

    def deliver(self, to: RequestOpened, *, applied: bool = True, reason: str = "") -> None:
        self.handle(Delivered(id=to.id, applied=applied, reason=reason))

    def outcome(self, caller: int) -> str | None:
        """The outcome of an answer; the name of its error; None while it waits."""
        found = self.returned.get(caller)
        if isinstance(found, RequestReply):
            return found.outcome
        return None if found is None else type(found).__name__

    def state(self, to: RequestOpened) -> str | None:
        found = self.rules.find(to.id)
        return None if found is None else found.info().state
