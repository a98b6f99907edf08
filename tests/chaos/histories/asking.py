"""Requests of a simulated client: each is logged with its one outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import attrs
import trio

from actors import (
    ActorCrashed,
    ActorStopped,
    AskCycle,
    AskDeadline,
    AskError,
    MailboxFull,
    Ref,
    System,
    describe,
)
from aegis.errors import AegisError, Unavailable
from aegis.protocol import inboxes as box
from aegis.protocol.command import Command
from aegis.protocol.entry import Entry, Owner
from aegis.protocol.naming import name_key
from aegis.protocol.table import COMMANDS
from tests.chaos.checking.observations import Ask, Outcome, OutcomeKind, Span
from tests.chaos.notebook import Notebook

GRACE_S = 30.0
"""The time, in seconds, that the servers grant a request beyond its own timeout."""

ENTRIES: dict[type[Any], Entry] = {entry.command: entry for entry in COMMANDS}

_KINDS: dict[type[AskError], OutcomeKind] = {
    ActorCrashed: "crashed",
    ActorStopped: "stopped",
    MailboxFull: "mailbox full",
    AskDeadline: "deadline",
    AskCycle: "cycle",
}

NEVER_TYPED = (
    "not typed",
    "did not run",
    "nothing was sent",
    "nothing of yours was sent",
    "has no shell right now",
    "is closed;",
    "is being closed",
    "has failed",
    "there is no terminal",
)
"""The words of a refusal whose command no shell has run."""


@attrs.frozen(kw_only=True)
class Answered:
    """The answer to a request: its ``value``, an ``error``, or neither without an answer."""

    span: Span
    value: Any = None
    error: Exception | None = None
    seconds: float = 0.0

    @property
    def is_done(self) -> bool | None:
        """Return whether the request was carried out; None if that is not certain."""
        if self.value is not None:
            return True
        return False if isinstance(self.error, AegisError) and self.is_certain else None

    @property
    def is_certain(self) -> bool:
        """Return whether an error says that nothing was done."""
        return getattr(self.error, "code", "") in ("not_found", "already_exists", "invalid_request")

    @property
    def was_never_typed(self) -> bool:
        """Return whether a refusal says that the command did not run."""
        return isinstance(self.error, AegisError) and any(
            sentence in str(self.error) for sentence in NEVER_TYPED
        )


Noter: TypeAlias = Callable[[Answered], None]


def forget(answered: Answered) -> None:
    """Log nothing beyond the ask itself."""


class Asker:
    """The client ``handle`` in one incarnation of the daemon, ended once ``is_over``."""

    def __init__(
        self, handle: str, system: System, book: Notebook, is_over: Callable[[], bool]
    ) -> None:
        self.handle = handle
        self.system = system
        self._book = book
        self._is_over = is_over

    async def ask(
        self,
        request: Command[Any],
        note: Noter = forget,
        *,
        gone_after_s: float | None = None,
    ) -> Answered:
        """Ask, log the outcome by ``note``, and return it.

        ``gone_after_s``: the client disconnects after so many seconds.
        """
        asked, begun = self._book.moment(), trio.current_time()
        answered = Answered(span=Span(asked))
        scope = trio.CancelScope()
        if gone_after_s is not None:
            scope.deadline = begun + gone_after_s
        try:
            with scope:
                answered = await self._answered(request, asked, begun)
        finally:
            note(answered)
            unanswered = answered.span.answered is None
            self._write_down(request, answered, gave_up=unanswered and not self._is_over())
        return answered

    async def _answered(self, request: Command[Any], asked: int, begun: float) -> Answered:
        value, error = None, None
        try:
            value = await self._owner(request).ask(request, timeout=_patience_s(request))
        except (AegisError, AskError) as refusal:
            error = refusal
        if self._is_over():
            await trio.sleep_forever()  # a dead daemon sends no answer
        return Answered(
            span=Span(asked, self._book.moment()),
            value=value,
            error=error,
            seconds=trio.current_time() - begun,
        )

    def _owner(self, request: Command[Any]) -> Ref[Any]:
        """Return the actor that answers the request, as the servers find it."""
        form = box.Handoff if isinstance(request, box.Handoff) else type(request)
        owner, registry = ENTRIES[form].owner, self.system.registry
        front = registry.find("terminal", name_key(getattr(request, "name", "")))
        if owner is Owner.TERMINAL and front is not None and not front.is_stopped:
            return front
        service = registry.find("service", owner.service)
        if service is None:
            raise Unavailable("the daemon is starting or stopping; try again")
        return service

    def _write_down(self, request: Command[Any], answered: Answered, *, gave_up: bool) -> None:
        self._book.asks.append(
            Ask(
                client=self.handle,
                life=self._book.life,
                what=type(request).__name__,
                span=answered.span,
                outcomes=_outcomes(answered),
                gave_up=gave_up,
            )
        )


def _outcomes(answered: Answered) -> tuple[Outcome, ...]:
    error = answered.error
    if error is not None:
        kind: OutcomeKind = "refused"
        if isinstance(error, AskError):
            kind = _KINDS.get(type(error), "no reply")
        code = error.code if isinstance(error, AegisError) else ""
        return (Outcome(kind=kind, code=code, sentence=describe(error)),)
    return () if answered.value is None else (Outcome(kind="value"),)


def _patience_s(request: Command[Any]) -> float:
    given: list[float | None] = [getattr(request, name, None) for name in ("timeout", "wait_s")]
    return GRACE_S + sum(seconds for seconds in given if seconds is not None)
