"""One turn: the messages that it is made of, its last text, and reports to its senders.

``WaitingMessages`` are those that no turn has taken yet. Pure.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice, takewhile
from typing import Any

import attrs

from aegis.agents.sessions.past import MAX_HEARD_CHARS, OpenTurn
from aegis.agents.sessions.steps import Incoming, Notify, Outcome
from aegis.protocol.agent_events import AgentEvent, AssistantText
from aegis.protocol.inboxes import is_prompt

MAX_TURN_CHARS = 1_000_000
MAX_TURN_MESSAGES = 1_000
"""The limits of the text and of the messages of one turn; further messages become the next one."""

MAX_RESULT_CHARS = 262_144
"""The last message of a turn, as far as it is kept with its outcome."""

HUMAN = "human"
"""The handle of the person at the daemon."""

COMPLETED = "completed"
"""The outcome of a turn that did what it was to do."""

NAMESPACE = uuid.UUID("8a8f7c1e-52f5-4b53-9b51-0d6f5a1f3d11")
"""The namespace of turns' uuids."""


def turn_uuid(session: str, number: int) -> str:
    """Return the uuid of a turn's user frame."""
    return str(uuid.uuid5(NAMESPACE, f"{session}/{number}"))


@attrs.define(kw_only=True)
class CurrentTurn:
    """The current turn, from its opening on.

    ``is_stored``: it is durable as opened, so it may be sent. ``final`` is the agent's last message
    in it. ``command`` is a person's, which replaces the ``text`` if the agent has it. ``images``
    are the names of files. ``has_note``: it begins with the note about files that others changed.
    """

    opened: OpenTurn
    text: str
    command: str = ""
    images: tuple[str, ...] = ()
    is_stored: bool = False
    is_sent: bool = False
    is_interrupted: bool = False
    has_note: bool = False
    final: str = ""
    final_message: str = ""

    def take(self, event: AgentEvent) -> None:
        """Take an event of the agent: the last message is kept."""
        if isinstance(event, AssistantText):
            self._keep(event)
        elif not self.final_message:
            self.final_message = "\0"  # the next text without an id is a new message

    def _keep(self, chunk: AssistantText) -> None:
        is_same = bool(self.final) and chunk.message == self.final_message
        self.final = (self.final + chunk.text if is_same else chunk.text)[-MAX_RESULT_CHARS:]
        self.final_message = chunk.message

    def has(self, message: str) -> bool:
        """Return whether the message of this id is one of its messages."""
        return any(id_ == message for id_, _ in self.opened.messages)

    def entry(self) -> dict[str, Any]:
        """Return the fields of ``turn_opened``."""
        fields: dict[str, Any] = {
            "turn": self.opened.number,
            "uuid": self.opened.uuid,
            "messages": [{"id": each, "sender": sender} for each, sender in self.opened.messages],
            "text": self.command or self.text,
        }
        return {**fields, "images": [*self.images]} if self.images else fields


def next_turn(
    session: str,
    number: int,
    waiting: Sequence[Incoming],
    plain: Callable[[str], str] = str,
) -> tuple[CurrentTurn, int]:
    """Return the turn with this number, and how many of the waiting messages it takes.

    ``plain`` returns a text without mentions, which only a person may have the agent expand.
    """
    batch = [waiting[0]] if waiting[0].is_alone else [*_fitting(waiting)]
    opened = OpenTurn(
        number=number,
        uuid=turn_uuid(session, number),
        messages=tuple((each.id, each.sender) for each in batch),
    )
    text = "\n\n".join(each.text if each.is_person else plain(each.text) for each in batch)
    first = batch[0]
    turn = CurrentTurn(opened=opened, text=text, command=first.command, images=first.images)
    return turn, len(batch)


def _fitting(waiting: Sequence[Incoming]) -> Iterator[Incoming]:
    chars = 0
    for number, message in enumerate(waiting):
        chars += len(message.text)
        if message.is_alone or (number and chars > MAX_TURN_CHARS):
            return
        yield message


def ended_entry(turn: OpenTurn, outcome: Outcome, reason: str, text: str) -> dict[str, Any]:
    """Return the fields of ``turn_ended``; ``owed``: a sender is to hear of it."""
    return {
        "turn": turn.number,
        "outcome": outcome,
        "reason": reason,
        "text": text[-MAX_RESULT_CHARS:],
        "owed": any(_hears_of(turn, handle, outcome) for handle in _handles(turn)),
    }


def notifications(
    session: str, name: str, turn: OpenTurn, outcome: str, detail: str
) -> Iterator[Notify]:
    """Yield the notifications of a turn's end, one for each sender that is to hear of it.

    ``name`` is the current handle of the session. ``detail`` is the reason of a loss, or the last
    text of a completed turn.
    """
    began = f"turn {turn.number} of {name!r}, which your message began,"
    if outcome == COMPLETED:
        is_whole = len(detail) < MAX_HEARD_CHARS
        shown = detail.strip() if is_whole else f"{detail[:-1]}… (agent read {name})"
        body = f"{began} is done: {shown}" if shown else f"{began} is done, without a text"
    else:
        body = f"{began} {_LOSS[outcome]}: {detail}"
    done = turn if outcome == COMPLETED else None
    for handle in filter(None, _handles(turn)):
        if _hears_of(turn, handle, outcome):
            id_ = f"session:{session}/turn:{turn.number}/{handle}"
            yield Notify(id=id_, handle=handle, body=body, done=done)


_LOSS = {
    "interrupted": "was interrupted, may have been done in part, and is not sent again",
    "failed": "failed",
    "limited": "was refused by a usage limit",
}
"""The outcomes that are reported to each sender, in words."""


def _hears_of(turn: OpenTurn, handle: str, outcome: str) -> bool:
    """An agent is answered by the agent itself, so only the person hears of success.

    The sender of a prompt follows its turn.
    """
    is_followed = all(is_prompt(id_) for id_, _ in turn.messages)
    return outcome in _LOSS or (outcome == COMPLETED and handle == HUMAN and not is_followed)


def _handles(turn: OpenTurn) -> list[str]:
    """Return the handles of the senders, each once; empty for what is no agent and no person."""
    return [*dict.fromkeys(_handle_of(sender) for _, sender in turn.messages)]


def _handle_of(sender: str) -> str:
    """Return the handle of a sender; empty if it was no agent and no person."""
    kind, _, handle = sender.partition(":")
    return sender if sender == HUMAN else handle if kind == "agent" else ""


class Reports:
    """The notifications of the session ``session`` that no inbox has confirmed yet.

    ``name`` returns its current handle.
    """

    def __init__(self, session: str, name: Callable[[], str]) -> None:
        self._session = session
        self._name = name
        self._waiting: dict[int, set[str]] = {}

    @property
    def are_done(self) -> bool:
        """Whether every notification is confirmed."""
        return not self._waiting

    def open(self, turn: OpenTurn, outcome: str, detail: str) -> list[Notify]:
        """Return the notifications of a turn's end."""
        sent = [*notifications(self._session, self._name(), turn, outcome, detail)]
        self._waiting[turn.number] = {each.id for each in sent}
        return sent

    def confirm(self, notification: str) -> list[int]:
        """Note that an inbox has a notification; return as ``take_done``."""
        for waiting in self._waiting.values():
            waiting.discard(notification)
        return self.take_done()

    def take_done(self) -> list[int]:
        """Return the numbers of the turns whose senders have all been notified, each once."""
        done = [number for number, waiting in self._waiting.items() if not waiting]
        for number in done:
            del self._waiting[number]
        return done


class WaitingMessages:
    """The waiting messages, oldest first.

    Their number has no limit but that of the inbox: one that was left out would be marked as read
    with the next acknowledgement.
    """

    def __init__(self) -> None:
        self._messages: dict[str, Incoming] = {}

    def __len__(self) -> int:
        return len(self._messages)

    def add(self, messages: Sequence[Incoming], known: Collection[str]) -> int:
        """Add the messages that are neither waiting nor ``known``; return their number."""
        before = len(self._messages)
        for each in messages:
            if each.id not in known:
                self._messages.setdefault(each.id, each)
        return len(self._messages) - before

    def open_turn(
        self,
        session: str,
        number: int,
        withdrawn: Collection[str],
        plain: Callable[[str], str] = str,
    ) -> CurrentTurn:
        """Remove the messages of the next turn, and return it. Requires a message.

        ``withdrawn`` messages share no turn with others: theirs ends before it is sent.
        ``plain``: see ``next_turn``.
        """
        oldest = [*islice(self._messages.values(), MAX_TURN_MESSAGES)]
        is_withdrawn = oldest[0].id in withdrawn
        alike = [*takewhile(lambda each: (each.id in withdrawn) is is_withdrawn, oldest)]
        turn, taken = next_turn(session, number, alike, plain)
        turn.is_interrupted = is_withdrawn
        for each in alike[:taken]:
            del self._messages[each.id]
        return turn

    def place_of(self, message: str) -> int | None:
        """Return the number of messages before this one; None if it does not wait."""
        return [*self._messages].index(message) if message in self._messages else None
