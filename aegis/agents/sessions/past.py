"""``SessionPast``: the fold of a session's transcript. Pure.

The entries of a transcript, each with its ``kind`` and the moment ``at``:

    turn_opened  turn, uuid, text, messages: [{id, sender}]
    turn_ended   turn, outcome, reason, text
    notified     turn
    started      rung, conversation
    ready        conversation
    ended        code, reason
    event        turn, event
    decided      request, answer, why
    expired      request
    login_refused
    interrupt    turn, by
    withdrawn    message, by
    taken_over   by, conversation
    handed_back  conversation, reason
    closed       by
    edited       path, digest
    rewinding    id, turn, by
    rewound      id, turn, by, files, left, unable, kept, reason

An event of a take-over has no ``turn``; its ``source`` is its id in the agent's own file.

Each entry has the moment ``at`` too; the metrics are made from the events, and from the beginnings
and ends of turns and processes. ``carried`` makes an object of the fold, for the head line of the
next file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import attrs

from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.agents.sessions.metrics import Meter
from aegis.protocol import agent_events as ev
from aegis.protocol.agent_events import PlanStep, SlashCommand, TerminalEnded

MAX_KNOWN = 4_096
"""Message ids that are remembered, so that a message is never delivered twice."""

MAX_WITHDRAWN = 1_000
"""Messages that are remembered as withdrawn until they have a turn."""

MAX_UNREPORTED = 256
"""Ended turns that are remembered until their senders were notified."""

MAX_HEARD_CHARS = 1_001
"""The beginning of a completed turn's text that is kept for its sender: what is shown, and one
character more, which shows that there is more."""

LOSSES = frozenset({"interrupted", "failed", "limited"})
"""The outcomes of turns that are reported to the senders."""

MAX_TEXTS = 20
MAX_TEXT_BYTES = 32 * 1024
"""The texts that a fresh conversation is primed with, if the old one cannot be resumed."""


MAX_EDITED = 2_048
"""Files whose digests are known as the agent left them; the oldest is forgotten."""

MAX_ENDED = 16
MAX_ENDED_CHARS = 512 * 1024
"""The turns, and the size of their texts, whose ends are kept for waits."""

MEASURED: Mapping[str, type[ev.AgentEvent]] = {
    each.tag: each for each in (ev.Usage, ev.Result, ev.StateChanged, ev.SystemInit)
}
"""The events that the metrics are made from, by their types in a transcript."""

SAID: Mapping[str, type[ev.AgentEvent]] = {
    each.tag: each for each in (ev.UserMessage, ev.AssistantText)
}
"""The events of a take-over whose texts are kept."""

MAX_PLAN_STEPS = 200
"""The steps of a plan that are remembered."""

TERMINALS: Mapping[str, type[ev.AgentEvent]] = {
    each.tag: each for each in (ev.TerminalStarted, ev.TerminalOutput, ev.TerminalEnded)
}
"""The events of ACP terminals."""

MAX_TERMINALS = 256
"""Open ACP terminals that are remembered; an agent may have fewer."""


@attrs.frozen(kw_only=True)
class OpenTurn:
    """A turn that was opened; ``messages`` are pairs of id and sender."""

    number: int
    uuid: str
    messages: tuple[tuple[str, str], ...]


@attrs.frozen(kw_only=True)
class EndedTurn:
    """The end of a turn, durable; ``messages`` are the ids of its messages."""

    number: int
    messages: tuple[str, ...]
    outcome: str
    reason: str
    text: str


@attrs.define
class Takeover:
    """A take-over that began ``at`` this moment; ``imported`` are the ids of its events so far."""

    at: float
    conversation: str
    imported: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class Rewind:
    """A rewind of the agent's files to before ``turn``, by this handle."""

    id: str
    turn: int
    by: str


@attrs.define
class SessionPast:
    """The fold of a transcript. ``launches`` counts the starts of the agent's process, ``reopened``
    how often the session was opened again after a close.

    ``unreported`` has the turns by number whose senders are to hear of the end and may not have
    been notified, each with its outcome and the reason or text. ``ended`` are the newest turns
    that ended. ``terminals`` are the ACP terminals by id that have no end, each as it would have
    ended when it was last seen. ``commands`` and ``models`` are those that the agent last
    announced, ``plan`` is its newest one, and ``at`` the moment of the last entry. ``taken_over``
    is set while a person owns the conversation. ``cleared_after`` is the turn after which it was
    cleared, until a later one has ended. ``withdrawn`` are messages without a turn whose senders
    have cancelled them. ``edited`` are the digests of files as the agent left them, by their real
    paths, and ``rewinding`` is the rewind that has begun and not ended.
    """

    turn: int = 0
    launches: int = 0
    conversation: str | None = None
    open_turn: OpenTurn | None = None
    unreported: dict[int, tuple[OpenTurn, str, str]] = attrs.field(factory=dict)
    is_closed: bool = False
    reopened: int = 0
    taken_over: Takeover | None = None
    cleared_after: int | None = None
    known: dict[str, None] = attrs.field(factory=dict)
    withdrawn: dict[str, None] = attrs.field(factory=dict)
    texts: list[str] = attrs.field(factory=list)
    meter: Meter = attrs.field(factory=Meter)
    terminals: dict[str, ev.TerminalEnded] = attrs.field(factory=dict)
    ended: list[EndedTurn] = attrs.field(factory=list)
    commands: list[ev.SlashCommand] | None = None
    models: list[ev.OfferedModel] = attrs.field(factory=list)
    plan: list[ev.PlanStep] = attrs.field(factory=list)
    edited: dict[str, str] = attrs.field(factory=dict)
    rewinding: Rewind | None = None
    at: float = 0.0

    def take(self, entry: Mapping[str, Any]) -> None:
        """Take the next entry; one of an unknown kind, or of another form, is ignored."""
        moment = entry.get("at")
        at = float(moment) if isinstance(moment, int | float) else self.at
        self._measure(entry, at)
        self.at = at
        if entry.get("kind") == "event":  # most entries are: no pattern is tried for them
            if "source" in entry:
                self._take_said(str(entry["source"]), entry.get("event"))
            return
        match entry:
            case {"kind": "edited" | "rewinding" | "rewound"}:
                self._take_files(entry)
            case {"kind": "turn_opened", "turn": int(number), "uuid": str(uuid), **rest}:
                self._opened(number, uuid, rest)
            case {"kind": "turn_ended", "turn": int(number), "outcome": str(outcome), **rest}:
                self._ended(number, outcome, rest)
            case {"kind": "notified", "turn": int(number)}:
                self.unreported.pop(number, None)
            case {"kind": "ready", "conversation": str(conversation)}:
                self.keep_conversation(conversation)
            case {"kind": "started"}:
                self.launches += 1
            case {"kind": "taken_over", "conversation": str(conversation)}:
                self.launches += 1
                self.taken_over = Takeover(at, conversation)
            case {"kind": "handed_back"}:
                self.taken_over = None
            case {"kind": "withdrawn", "message": str(message)}:
                self.withdraw(message)
            case {"kind": "closed"}:
                self.is_closed = True
            case {"kind": "reopened", "times": int(times)}:
                self.is_closed, self.reopened = False, times

    def _take_said(self, source: str, event: object) -> None:
        """Take an event of a take-over."""
        if self.taken_over is not None:
            self.taken_over.imported.append(source)
        tag = event.get("type") if isinstance(event, dict) else None
        with contextlib.suppress(CodecError):
            if isinstance(tag, str) and tag in SAID:
                self.add_said(structure(SAID[tag], event))

    def add_said(self, event: ev.AgentEvent) -> None:
        """Keep the text of an event of a take-over, if it is a message."""
        match event:
            case ev.UserMessage(text=text):
                self.add_text("user", text)
            case ev.AssistantText(text=text):
                self.add_text("assistant", text)

    def _take_files(self, entry: Mapping[str, Any]) -> None:
        match entry:
            case {"kind": "edited", "path": str(path), "digest": str(digest)}:
                self.keep_edited(path, digest)
            case {"kind": "rewinding", "id": str(id_), "turn": int(number), "by": str(by)}:
                self.rewinding = Rewind(id=id_, turn=number, by=by)
            case {"kind": "rewound"}:
                self.rewinding = None

    def keep_edited(self, path: str, digest: str) -> None:
        """Keep how the agent left a file."""
        self.edited.pop(path, None)
        self.edited[path] = digest
        if len(self.edited) > MAX_EDITED:
            del self.edited[next(iter(self.edited))]

    def keep_conversation(self, conversation: str) -> None:
        """Keep the id of the conversation; a new one begins without the plan of the old one."""
        if self.conversation not in (None, conversation):
            self.plan = []
        self.conversation = conversation

    def _measure(self, entry: Mapping[str, Any], at: float) -> None:
        """Take an entry that is about the metrics."""
        if entry.get("kind") == "event":
            self._measure_event(entry.get("event"), at)
            return
        match entry:
            case {"kind": "turn_opened"}:
                self.meter.begin_turn(at)
            case {"kind": "ended"}:
                self.meter.end_process(at)
            case {"kind": "started"} | {"kind": "turn_ended", "outcome": "interrupted"}:
                # The end of a daemon writes no entry: its process had ended by the last one.
                self.meter.end_process(self.at)
            case {"kind": "turn_ended"}:
                self.meter.end_turn(at)

    def _measure_event(self, event: object, at: float) -> None:
        tag = event.get("type") if isinstance(event, dict) else None
        if not isinstance(tag, str):
            return
        with contextlib.suppress(CodecError):
            if tag in MEASURED:
                self.meter.take(structure(MEASURED[tag], event), at)
            elif tag in TERMINALS:
                self.take_terminal(structure(TERMINALS[tag], event))
            elif tag == ev.CommandsChanged.tag:
                self.commands = structure(ev.CommandsChanged, event).commands
            elif tag == ev.ModelsOffered.tag:
                self.models = structure(ev.ModelsOffered, event).models
            elif tag == ev.Plan.tag:
                self.plan = structure(ev.Plan, event).steps[:MAX_PLAN_STEPS]
            elif tag == ev.ConversationChanged.tag:
                self.note_changed(structure(ev.ConversationChanged, event))

    def note_changed(self, event: ev.ConversationChanged) -> None:
        """Note that a conversation was cleared: its agent has not had the primer since."""
        if event.how == "cleared":
            self.cleared_after = self.turn

    def take_terminal(self, event: ev.AgentEvent) -> None:
        """Follow an ACP terminal; another event changes nothing."""
        match event:
            case ev.TerminalStarted(terminal=id_, command=command):
                if len(self.terminals) < MAX_TERMINALS:
                    self.terminals[id_] = ev.TerminalEnded(
                        terminal=id_, command=command, output="", truncated=True
                    )
            case ev.TerminalOutput(terminal=id_, output=output) if id_ in self.terminals:
                self.terminals[id_] = attrs.evolve(self.terminals[id_], output=output)
            case ev.TerminalEnded(terminal=id_):
                self.terminals.pop(id_, None)

    def _opened(self, number: int, uuid: str, rest: Mapping[str, Any]) -> None:
        messages = tuple(_pair(each) for each in _items(rest.get("messages")))
        self.turn = max(self.turn, number)
        self.open_turn = OpenTurn(number=number, uuid=uuid, messages=messages)
        for message_id, _ in messages:
            self.remember(message_id)
        self.add_text("user", rest.get("text"))

    def _ended(self, number: int, outcome: str, rest: Mapping[str, Any]) -> None:
        turn = self.open_turn
        if turn is None or turn.number != number:
            return
        self.open_turn = None
        if rest.get("owed", outcome in LOSSES):  # older versions reported losses only
            self.unreported[number] = turn, *end_of({"outcome": outcome, **rest})
        if len(self.unreported) > MAX_UNREPORTED:
            del self.unreported[next(iter(self.unreported))]
        self.add_text("assistant", rest.get("text"))
        self.keep_ended(turn, outcome, str(rest.get("reason", "")), str(rest.get("text", "")))

    def keep_ended(self, turn: OpenTurn, outcome: str, reason: str, text: str) -> None:
        """Keep the end of a turn; of too many the oldest are forgotten."""
        if self.cleared_after is not None and turn.number > self.cleared_after:
            self.cleared_after = None
        messages = tuple(each for each, _ in turn.messages)
        self.ended.append(
            EndedTurn(
                number=turn.number, messages=messages, outcome=outcome, reason=reason, text=text
            )
        )
        while len(self.ended) > MAX_ENDED or (
            len(self.ended) > 1 and sum(len(each.text) for each in self.ended) > MAX_ENDED_CHARS
        ):
            del self.ended[0]

    def withdraw(self, message_id: str) -> None:
        """Remember that nobody waits for a message; of too many the oldest are forgotten."""
        self.withdrawn[message_id] = None
        if len(self.withdrawn) > MAX_WITHDRAWN:
            del self.withdrawn[next(iter(self.withdrawn))]

    def remember(self, message_id: str) -> None:
        """Remember a delivered message; of too many the oldest are forgotten."""
        self.withdrawn.pop(message_id, None)
        self.known[message_id] = None
        while len(self.known) > MAX_KNOWN:
            del self.known[next(iter(self.known))]

    def add_text(self, role: str, text: object) -> None:
        """Keep a text for a fresh conversation; the newest ones are kept."""
        if not isinstance(text, str) or not text:
            return
        self.texts.append(f"[{role}] {_newest(text, MAX_TEXT_BYTES - 16)}")
        while len(self.texts) > MAX_TEXTS or _size(self.texts) > MAX_TEXT_BYTES:
            del self.texts[0]


def end_of(fields: Mapping[str, Any]) -> tuple[str, str]:
    """Return the outcome of a ``turn_ended``, and what its senders hear of it.

    That is the beginning of the last text of a completed turn, and the reason of any other.
    """
    outcome = str(fields["outcome"])
    if outcome == "completed":
        return outcome, str(fields.get("text", ""))[:MAX_HEARD_CHARS]
    return outcome, str(fields.get("reason", ""))


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _pair(message: object) -> tuple[str, str]:
    if not isinstance(message, dict):
        return "", ""
    return str(message.get("id", "")), str(message.get("sender", ""))


def _newest(text: str, most: int) -> str:
    """Return the end of ``text``, at most ``most`` bytes of UTF-8."""
    data = text.encode("utf-8", "replace")
    return data[-most:].decode("utf-8", "ignore") if len(data) > most else data.decode()


def _size(texts: list[str]) -> int:
    return sum(len(each.encode()) for each in texts)


_SIMPLE = ("turn", "launches", "conversation", "is_closed", "reopened", "at")


def carried(past: SessionPast) -> dict[str, Any]:
    """Return a fold as an object of JSON values."""
    return {
        **{name: getattr(past, name) for name in _SIMPLE},
        "open_turn": None if past.open_turn is None else _turn_fields(past.open_turn),
        "unreported": [
            {"turn": _turn_fields(turn), "outcome": outcome, "reason": reason}
            for turn, outcome, reason in past.unreported.values()
        ],
        "known": [*past.known],
        "texts": [*past.texts],
        "meter": past.meter.fields(),
        "ended": [unstructure(each) for each in past.ended],
        **({"withdrawn": [*past.withdrawn]} if past.withdrawn else {}),
        **({"plan": [unstructure(each) for each in past.plan]} if past.plan else {}),
        **({"edited": past.edited} if past.edited else {}),
        **({"rewinding": unstructure(past.rewinding)} if past.rewinding else {}),
        **({"taken_over": unstructure(past.taken_over)} if past.taken_over else {}),
        **({} if past.cleared_after is None else {"cleared_after": past.cleared_after}),
        **({"terminals": terminals} if (terminals := _terminals(past)) else {}),
        **({"models": [*map(unstructure, past.models)]} if past.models else {}),
        **({} if past.commands is None else {"commands": [*map(unstructure, past.commands)]}),
    }


def _terminals(past: SessionPast) -> list[dict[str, Any]]:
    return [unstructure(each) for each in past.terminals.values()]


def restored(fields: dict[str, Any]) -> SessionPast:
    """Return the fold of which ``carried`` made an object.

    Raises ``KeyError``, ``TypeError``, ``ValueError`` or ``CodecError`` for any other object.
    """
    past = SessionPast(**{name: fields[name] for name in _SIMPLE})
    if fields["open_turn"] is not None:
        past.open_turn = _turn(fields["open_turn"])
    for each in fields["unreported"]:
        turn = _turn(each["turn"])
        past.unreported[turn.number] = turn, each["outcome"], each["reason"]
    past.known = dict.fromkeys(fields["known"])
    past.texts = [*fields["texts"]]
    past.meter = Meter.of(fields["meter"])
    # None of these is in the files of older versions.
    past.ended = [structure(EndedTurn, each) for each in fields.get("ended", ())]
    past.withdrawn = dict.fromkeys(fields.get("withdrawn", ()))
    past.plan = [structure(PlanStep, each) for each in fields.get("plan", ())]
    for each in fields.get("terminals", ()):
        ended = structure(TerminalEnded, each)
        past.terminals[ended.terminal] = ended
    if "taken_over" in fields:
        past.taken_over = structure(Takeover, fields["taken_over"])
    past.cleared_after = fields.get("cleared_after")
    past.edited = {str(path): str(each) for path, each in fields.get("edited", {}).items()}
    if "rewinding" in fields:
        past.rewinding = structure(Rewind, fields["rewinding"])
    if "commands" in fields:
        past.commands = [structure(SlashCommand, each) for each in fields["commands"]]
    past.models = [structure(ev.OfferedModel, each) for each in fields.get("models", ())]
    return past


def _turn_fields(turn: OpenTurn) -> dict[str, Any]:
    return {
        "number": turn.number,
        "uuid": turn.uuid,
        "messages": [[*each] for each in turn.messages],
    }


def _turn(fields: dict[str, Any]) -> OpenTurn:
    messages = tuple((message_id, sender) for message_id, sender in fields["messages"])
    return OpenTurn(number=fields["number"], uuid=fields["uuid"], messages=messages)
