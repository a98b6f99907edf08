"""The machine of one session: its state, its turns, and its way back after a loss. Pure.

Each method that takes something returns what is to be carried out, in that order. Rules:

- A turn is one user frame. ``turn_opened`` is durable before the frame is sent; its messages are
  acknowledged then. ``turn_ended`` is durable before the next turn opens and before its senders are
  notified.
- A turn that was sent and has no outcome when the process or the daemon ends is ``interrupted``: it
  is not sent again. One that was opened and certainly not sent is sent once the agent is ready.
- Messages that arrive during a turn become the next one together; an ``is_alone`` one stays alone.
- Only a ``Result`` that names the turn's uuid ends it, or the agent's report that it cancelled it.
- A process is started when there is something to do, on the rungs of ``ladder``. A session whose
  start failed is in ``error`` until a message, a restart or a resume tries again.
- A request is open until its agent withdraws it, which protocol machines do at the end of a turn
  (but a background agent's request outlives it), or until its process ends.
- Each ``StartDriver`` is followed by one ``DriverEnded``, also if the start failed.
- A conversation has one owner: the agent's process, or a person who took it over. ``taken_over`` is
  durable before the person's program is started, and ``handed_back`` before the agent's is.
- While files are set back, no turn, no process and no take-over begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec

import attrs

from actors.codec import structure, unstructure
from aegis.agents.drivers.commands import as_plain, has_command
from aegis.agents.messages import (
    DriverEnded,
    DriverFailed,
    DriverReady,
    InterruptTurn,
    SendTurn,
)
from aegis.agents.sessions import steps
from aegis.agents.sessions.activity import Activity
from aegis.agents.sessions.ladder import Ladder, end_reason
from aegis.agents.sessions.login import AgentLogin
from aegis.agents.sessions.metrics import Metrics
from aegis.agents.sessions.open_requests import OpenRequests
from aegis.agents.sessions.past import (
    MAX_PLAN_STEPS,
    EndedTurn,
    OpenTurn,
    Rewind,
    SessionPast,
    Takeover,
    end_of,
)
from aegis.agents.sessions.settings import (
    INTERRUPT_S,
    LIMIT_S,
    LOOK_AGAIN_S,
    START_AGAIN_S,
    STORE_AGAIN_S,
    SessionBudget,
    Settings,
)
from aegis.agents.sessions.steps import Entries, Incoming, Outcome, Output, SessionPhase
from aegis.agents.sessions.turns import CurrentTurn, Reports, WaitingMessages, ended_entry
from aegis.names import shorten
from aegis.protocol import agent_events as ev
from aegis.protocol.agent_states import EditConflict
from aegis.protocol.inboxes import Place

Given = ParamSpec("Given")


def _takes(
    method: Callable[Concatenate[SessionMachine, Given], None],
) -> Callable[Concatenate[SessionMachine, Given], list[Output]]:
    """Have a method of the machine return its outputs, and those of what follows from it."""

    @wraps(method)
    def take(machine: SessionMachine, /, *given: Given.args, **named: Given.kwargs) -> list[Output]:
        machine._out = []
        method(machine, *given, **named)
        machine._advance()
        return machine._out

    return take


class SessionMachine:
    """The machine of the session ``settings.session``; ``past`` is the fold of its transcript.

    Readable: ``phase`` and its ``reason``, both ``since`` a moment; the ``requests``; the
    ``activity``; the ``metrics``; the ``budget``; ``limited_until``; ``has_process``;
    ``takes_images``; ``is_rewinding``.
    """

    def __init__(self, settings: Settings, past: SessionPast, *, now: float) -> None:
        self._settings = settings
        self._past = past
        past.meter.end_process(past.at)  # no process outlives its daemon
        self.phase = SessionPhase.CLOSED if past.is_closed else SessionPhase.DORMANT
        self.since, self.reason = now, ""
        self.requests, self.budget = (
            OpenRequests(settings.policy, settings.note_allowed),
            SessionBudget(settings),
        )
        self.activity = Activity(now)
        self.limited_until: float | None = None
        self._ladder, self.login = Ladder(), AgentLogin(settings.login)
        self._login_method = ""
        self._is_outdated = False  # the process has a limit or an effort that was changed
        self._model_before = settings.model  # the one set when the agent last reported its own
        self._taker = ""  # the person who waits for the end of a turn to take over
        self._handing_back: steps.HandedBack | None = None  # what was said is not durable yet
        self._has_person = past.taken_over is not None  # their program may run
        self._turn: CurrentTurn | None = None
        self._ending: tuple[OpenTurn, dict[str, Any]] | None = None
        self._waiting = WaitingMessages()
        self._entries = Entries()
        self._reports = Reports(settings.session, settings.name)
        self.takes_images: bool | None = None  # None: the agent has not started yet
        self.has_process = self._is_wanted = self._is_failed = self._is_finished = False
        self.is_rewinding = False  # from its first question to the agent on
        self._out: list[Output] = []
        self._now = now

    @property
    def turn(self) -> int | None:
        """The number of the current turn."""
        return None if self._turn is None else self._turn.opened.number

    @property
    def turns(self) -> int:
        """The number of turns so far."""
        return self._past.turn

    @property
    def waiting(self) -> int:
        """The number of messages that wait for a turn."""
        return len(self._waiting)

    @property
    def ended(self) -> Sequence[EndedTurn]:
        """The newest turns whose ends are durable, the last one at the end."""
        return self._past.ended

    @property
    def current(self) -> OpenTurn | None:
        """The turn that is open, or whose end is not durable yet."""
        if self._turn is not None:
            return self._turn.opened
        return None if self._ending is None else self._ending[0]

    @property
    def said(self) -> str:
        """The agent's last message in the current turn, as far as it has come."""
        return "" if self._turn is None else self._turn.final

    def place_of(self, message: str) -> Place | None:
        """Return the place of a message; None if it has not arrived from the inbox."""
        if message in self._past.known:
            return Place(is_landed=True)
        position = self._waiting.place_of(message)
        return None if position is None else Place(position=position)

    @property
    def commands(self) -> Sequence[ev.SlashCommand]:
        """The agent's own commands, as it last announced them."""
        return self._past.commands or ()

    @property
    def model(self) -> str:
        """The model, by its full name once the agent has reported that."""
        is_newer = self._settings.model != self._model_before
        return self._settings.model if is_newer else self.activity.model or self._settings.model

    @property
    def models(self) -> Sequence[ev.OfferedModel]:
        """The models that the agent can be set to, as it last listed them."""
        return self._past.models

    def notice_of(self, command: str) -> str:
        """Return what the sender of a message should know; empty: nothing.

        ``command`` is the name of the agent's own command that it is.
        """
        known, handle = self._past.commands, self._settings.name()
        if self.takeover is not None:
            return f"a person has taken {handle} over: the message waits until it is handed back"
        if not command or has_command(known or (), command):
            return ""
        shown = shorten(command)
        if known is None:
            return f"{handle} has announced no commands yet: without /{shown} it gets this as text"
        return (
            f"{handle} has no command /{shown}, so it gets this as text; its commands: "
            f"agent show --commands {handle}"
        )

    @property
    def metrics(self) -> Metrics:
        """The agent's accounting over all turns and processes."""
        return self._past.meter.metrics

    @property
    def plan(self) -> list[ev.PlanStep]:
        """The list of what is to do, as the agent last reported it."""
        return self._past.plan

    @property
    def conflicts(self) -> list[EditConflict]:
        """The files that other sessions have changed too."""
        return self._settings.edited.of(self._settings.session)

    @property
    def takeover(self) -> Takeover | None:
        """The take-over of the conversation by a person, until its end is durable."""
        return self._past.taken_over

    @property
    def conversation(self) -> str | None:
        """The agent's id of the conversation."""
        return self._past.conversation

    @property
    def edited(self) -> Mapping[str, str]:
        """The digests of files as the agent left them, by their real paths."""
        return self._past.edited

    @property
    def rewinding(self) -> Rewind | None:
        """The rewind that has begun; None once its end is durable."""
        return self._past.rewinding

    def note_edited(self, path: str, digest: str) -> None:
        """Note how the agent has left a file; ``write_edited`` writes that."""
        self._past.keep_edited(path, digest)

    @_takes
    def write_edited(self, path: str, digest: str) -> None:
        """Write how the agent has left a file."""
        self._append("edited", path=path, digest=digest)

    def at(self, now: float) -> SessionMachine:
        """Take the moment at which what follows is taken; return the machine."""
        self._now = now
        return self

    def begin(self, now: float) -> list[Output]:
        """Return the outputs of the daemon's start: the outcome of a cut turn, and reports."""
        self._out, self._now = [], now
        self._end_terminals()
        for turn in self._past.unreported.values():
            self._report(*turn)
        if (cut := self._past.open_turn) is not None:
            self._end_turn(cut, "interrupted", "the daemon ended during the turn")
        if self._settings.reopened > self._past.reopened:
            # A person has ordered it; the daemon may have died since.
            self._past.is_closed, self._past.reopened = False, self._settings.reopened
            self._store("reopened", {"times": self._past.reopened})
            self._become(SessionPhase.DORMANT)
        elif self._settings.forked_from is not None and not self._past.at:
            self._append("forked", session=self._settings.forked_from)
        if self.takeover is not None:
            self.has_process = True  # until its end was seen
            self._put(steps.OpenTakeover(is_new=False))
            if self.phase is not SessionPhase.CLOSED:
                self._become(SessionPhase.TAKEN_OVER)
        if (rewind := self.rewinding) is not None:
            self._hold_turns(rewind.turn)
            self._put(steps.UndoRewind(rewind))
        if self.phase is SessionPhase.CLOSED:
            self._advance_end()
        return self._out

    @_takes
    def change(self, settings: Settings) -> None:
        """Take other settings from now on."""
        before = self._settings
        is_other = settings.limits_itself and settings.budget_usd != before.budget_usd
        is_other |= settings.effort != before.effort or settings.thinking != before.thinking
        self._is_outdated |= is_other and self.has_process
        self._settings = self.budget.settings = settings
        self.requests.policy = settings.policy

    def _advance(self) -> None:
        """Send or open a turn, start the agent for it, or finish."""
        if self._handing_back is not None and self._entries.are_stored:
            step, self._handing_back = self._handing_back, None
            self._end_takeover(step)
        is_limited = self.limited_until is not None and self._now < self.limited_until
        held = self.budget.holds(self.metrics.cost_usd, self._now) if self._waiting else None
        self._out += held or []
        has_work = bool(self._waiting) and held is None
        match self.phase:
            case SessionPhase.CLOSED:
                self._advance_end()
            case _ if self.is_rewinding:
                pass  # a turn, or a person, would change the files that are set back
            case _ if self._taker and self.current is None and self.takeover is None:
                self._take_over()
            case SessionPhase.DORMANT if has_work or self._turn is not None or self._is_wanted:
                self._start()
            case SessionPhase.IDLE if self._is_outdated and (has_work or not self.activity.tasks):
                self._is_wanted = True
                self._stop_process("its settings were changed")
            case SessionPhase.IDLE if self._turn is not None:
                if self._turn.is_stored:
                    self._send(self._turn)
            case SessionPhase.IDLE if has_work and self._ending is None and not is_limited:
                self._open_turn()

    def _take_over(self) -> None:
        """Leave the conversation to a person, once the agent's process has ended."""
        if self.has_process:
            self._stop_process(f"{self._taker} takes over")
            return
        conversation = self._past.conversation
        assert conversation is not None, "who takes over has been refused without one"
        self._store("taken_over", {"by": self._taker, "conversation": conversation})
        self._past.taken_over, self._has_person = Takeover(self._now, conversation), True
        self._become(SessionPhase.TAKEN_OVER, f"taken over by {self._taker}")
        self.has_process, self._taker = True, ""

    @_takes
    def begin_rewind(self, turn: int) -> None:
        """Begin to set files back to before ``turn``: no turn is begun until ``end_rewind``."""
        self._hold_turns(turn)

    @_takes
    def write_rewind(self, kind: Literal["rewinding", "rewound"], fields: dict[str, Any]) -> None:
        """Write an entry of a rewind; ``RewindStored`` follows once it is durable."""
        if kind == "rewinding":
            self._past.rewinding = structure(Rewind, fields)
        self._store(kind, fields)

    @_takes
    def end_rewind(self) -> None:
        """Take that the rewind has ended, or changes nothing."""
        self.is_rewinding = False
        if self.phase in (SessionPhase.IDLE, SessionPhase.DORMANT):
            self._become(self.phase)

    def _hold_turns(self, turn: int) -> None:
        self.is_rewinding = True
        if self.phase is not SessionPhase.CLOSED:
            self._become(self.phase, f"its files are being set back to before turn {turn}")

    @_takes
    def handed_back(self, step: steps.HandedBack) -> None:
        """Take what was said in a take-over, whose processes have ended."""
        assert self.takeover is not None
        for source, event in step.said:
            if source in self.takeover.imported:
                continue  # the daemon was killed while it took them before
            said = {"turn": None, "event": unstructure(event), "source": source}
            self._store("event", said)
            self._out += self.budget.measure(self._past.meter, event, self._now)
            self._past.add_said(event)
        self._handing_back, self._has_person = step, False

    def _end_takeover(self, step: steps.HandedBack) -> None:
        """Store that a conversation is handed back: all that was said is durable."""
        if step.conversation != self._past.conversation:
            changed = ev.ConversationChanged(how="cleared", conversation=step.conversation)
            self._append("event", turn=None, event=unstructure(changed))
            self._past.note_changed(changed)
            self._keep_conversation(step.conversation)
        self._store("handed_back", {"conversation": self._past.conversation, "reason": step.reason})

    def _advance_end(self) -> None:
        if self._turn is not None and self._turn.is_stored:
            self._finish("cancelled", self.reason)
        is_over = self._entries.are_stored and self._reports.are_done and not self.has_process
        if is_over and not self.is_rewinding and self._turn is None and not self._is_finished:
            self._is_finished = True
            self._put(steps.Finished())

    @_takes
    def arrived(self, messages: tuple[Incoming, ...]) -> None:
        """Take the messages that are in the inbox, oldest first; known ones are ignored."""
        fresh = self._waiting.add(messages, self._past.known)
        if messages and not self._waiting and self._turn is None:
            self._put(steps.Acknowledge(messages[-1].id))  # the daemon ended before it could
        if fresh:
            self._try_again()

    def _open_turn(self) -> None:
        number = self._past.turn + 1
        mentions, known = self._settings.mentions, self._past.commands
        self._turn = self._waiting.open_turn(
            self._settings.session,
            number,
            self._past.withdrawn,
            lambda text: as_plain(text, mentions, known),
        )
        # A text before a command would make it plain text, and a withdrawn turn is not sent.
        if not self._turn.command and not self._turn.is_interrupted:
            note = as_plain(
                self._settings.edited.take_note(self._settings.session), mentions, known
            )
            self._turn.text = f"{note}\n\n{self._turn.text}" if note else self._turn.text
            self._turn.has_note = bool(note)
        self._past.turn = number
        for message_id, _ in self._turn.opened.messages:
            self._past.remember(message_id)
        self._past.meter.begin_turn(self._now)
        self._store("turn_opened", self._turn.entry())

    def _send(self, turn: CurrentTurn) -> None:
        self._past.add_text("user", turn.command or turn.text)
        if turn.is_interrupted:
            self._return_note(turn)
            self._finish("cancelled", "interrupted before it was sent")
            return
        turn.is_sent = True
        self._become(SessionPhase.WORKING)
        self._put(
            SendTurn(
                uuid=turn.opened.uuid, text=turn.text, command=turn.command, images=turn.images
            )
        )
        if self._settings.max_runtime_s is not None:
            self._put(steps.SetTimer(timer="runtime", after_s=self._settings.max_runtime_s))

    def _return_note(self, turn: CurrentTurn) -> None:
        if turn.has_note:
            self._settings.edited.return_note(self._settings.session)

    def _finish(self, outcome: Outcome, reason: str, text: str = "") -> None:
        """End the current turn."""
        turn, self._turn = self._turn, None
        assert turn is not None
        self.activity.end_turn()
        self._end_turn(turn.opened, outcome, reason, text or turn.final)
        if self.phase is SessionPhase.WORKING:
            self._become(SessionPhase.IDLE)

    def _end_turn(self, turn: OpenTurn, outcome: Outcome, reason: str, text: str = "") -> None:
        fields = ended_entry(turn, outcome, reason, text)
        self._past.open_turn = None
        self._past.meter.end_turn(self._now)
        self._past.add_text("assistant", fields["text"])
        self._ending = turn, fields
        self._store("turn_ended", fields)

    def _report(self, turn: OpenTurn, outcome: str, detail: str) -> None:
        """Notify the senders of a turn that are to hear of its end."""
        self._out += self._reports.open(turn, outcome, detail)
        self._note_reported(self._reports.take_done())

    def _note_reported(self, turns: list[int]) -> None:
        for number in turns:
            self._append("notified", turn=number)

    def _store(self, kind: str, fields: dict[str, Any]) -> None:
        """Write an entry that must be durable; it is written again until the disk takes it."""
        self._put(self._entries.append(kind, self._now, fields, sync=True))

    @_takes
    def not_stored(self, number: int) -> None:
        """Take that the disk refused the entry of ``Append`` with this number."""
        self._entries.refused(number)
        self._put(steps.SetTimer(timer="store", after_s=STORE_AGAIN_S))

    @_takes
    def stored(self, number: int) -> None:
        """Take that the entry of ``Append`` with this number would survive a power loss."""
        kind = self._entries.stored(number)
        if kind == "taken_over":
            self._put(steps.OpenTakeover(is_new=True))
        elif kind == "handed_back":
            self._past.taken_over, self.has_process = None, False
            self._ladder.restart()
            if self.phase is SessionPhase.TAKEN_OVER:
                self._become(SessionPhase.DORMANT)
        elif kind in ("rewinding", "rewound"):
            if kind == "rewound":
                self._past.rewinding = None
            self._put(steps.RewindStored())
        elif kind == "turn_opened" and self._turn is not None:
            self._turn.is_stored = True
        elif kind == "turn_ended" and self._ending is not None:
            (turn, fields), self._ending = self._ending, None
            self._past.keep_ended(turn, fields["outcome"], fields["reason"], fields["text"])
            # Not at its beginning: the transcript has the messages, and the agent need not wait.
            self._out += [steps.Acknowledge(each) for each, _ in turn.messages[-1:]]
            if fields["owed"]:
                self._report(turn, *end_of(fields))

    # The agent's process.

    def _start(self) -> None:
        start = attrs.evolve(self._ladder.climb(self._past), login=self._login_method)
        if start.conversation is None:
            start = attrs.evolve(start, spent_usd=self.metrics.cost_usd or 0.0)
        self._is_outdated = False
        self._append("started", rung=self._ladder.rung, conversation=start.conversation)
        self._put(start)
        self.has_process = True
        self._become(SessionPhase.STARTING)

    def _end_terminals(self) -> None:
        """Write the ends of the ACP terminals that nobody has seen end.

        The driver does that at their release; but the daemon may have been killed, or the driver.
        """
        lost, self._past.terminals = self._past.terminals, {}
        for ended in lost.values():
            self._append("event", turn=self.turn, event=unstructure(ended))

    @_takes
    def turn_refused(self, uuid: str, reason: str) -> None:
        """Take that the driver did not send the turn of this uuid."""
        if self._turn is not None and self._is_current([uuid]):
            self._return_note(self._turn)
            self._finish("failed", reason)

    @_takes
    def driver_ready(self, ready: DriverReady) -> None:
        """Take that the agent can be used."""
        self.takes_images = ready.capabilities.takes_images
        if self.phase is SessionPhase.STARTING:
            self._ladder.restart()
            self._is_wanted = False
            self._keep_conversation(ready.conversation)
            self._become(SessionPhase.IDLE)

    def _keep_conversation(self, conversation: str) -> None:
        if conversation and conversation != self._past.conversation:
            self._past.keep_conversation(conversation)
            self._store("ready", {"conversation": conversation})

    @_takes
    def driver_failed(self, failed: DriverFailed) -> None:
        """Take that the agent cannot be used; its end follows."""
        self.login.note(failed)
        if self.phase is not SessionPhase.STARTING:
            self._fail(failed.reason)
            return
        self.reason = failed.reason
        self._ladder.note(failed)
        self._put(steps.StopDriver())

    def _fail(self, reason: str) -> None:
        """End an agent that was ready and cannot be used any more."""
        if self.phase in (SessionPhase.IDLE, SessionPhase.WORKING):
            if self._turn is not None and self._turn.is_sent:
                self._finish("failed", reason)
            self._is_failed = True
            self._stop_process(reason)

    @_takes
    def driver_ended(self, ended: DriverEnded) -> None:
        """Take the end of the agent's process."""
        reason, code = end_reason(ended), ended.exit_code
        self.has_process = False
        self._end_terminals()
        self.activity.end_process()
        self._past.meter.end_process(self._now)
        self._append("ended", code=code, reason=reason)
        self._out += self.requests.withdraw_all("the agent's process has ended")
        was, said = self.phase, self.reason
        if was in (SessionPhase.CLOSED, SessionPhase.ERROR):
            return
        failed, self._is_failed = self._is_failed, False
        if was is not SessionPhase.STARTING:
            self._become(
                SessionPhase.ERROR if failed else SessionPhase.DORMANT, said if failed else ""
            )
        elif self._ladder.is_exhausted(self._past):
            self._ladder.restart()
            self._is_wanted = False
            self._become(SessionPhase.ERROR, said or reason)
        else:
            self._put(steps.SetTimer(timer="start", after_s=START_AGAIN_S))
        if self._turn is not None and self._turn.is_sent:
            is_ours = was is SessionPhase.STOPPING
            self._finish("cancelled" if is_ours else "interrupted", said if is_ours else reason)
            self._is_wanted |= not is_ours

    @_takes
    def timer_fired(self, timer: steps.TimerName) -> None:
        """Take that a timer of ``SetTimer`` has run out."""
        turn = self._turn
        match timer:
            case "start" if self.phase is SessionPhase.STARTING and not self.has_process:
                self._start()
            case "store":
                self._out += self._entries.again(self._now)
            case "limit":
                self.limited_until = None
            case "look" if self.limited_until is not None and self._now < self.limited_until:
                self._put(steps.SetTimer(timer="look", after_s=LOOK_AGAIN_S))
            case "runtime" if turn is not None and turn.is_sent:
                self._interrupt("max_runtime_s")
                self._put(steps.SetTimer(timer="kill", after_s=INTERRUPT_S))
            case "answer":
                for request in self.requests.due(self._now):
                    self._append("expired", request=request)
                self._out += self.requests.expire(self._now)
            case "kill" if turn is not None and turn.is_sent and turn.is_interrupted:
                self._stop_process("the turn exceeded max_runtime_s")

    # Events of the agent.

    @_takes
    def heard(self, event: ev.AgentEvent) -> None:
        """Take an event of the agent."""
        if isinstance(event, ev.RequestOpened):
            event = self.requests.named(event)
        self.activity.take(event, self._now)
        if isinstance(event, ev.SystemInit):
            self._model_before = self._settings.model
        self._past.take_terminal(event)
        self._out += self.budget.measure(self._past.meter, event, self._now)
        self._append("event", turn=self.turn, event=unstructure(event))
        match event:
            case ev.RequestOpened():
                self._request_opened(event)
            case ev.RequestWithdrawn(id=request, reason=reason):
                self._out += self.requests.withdraw(request, reason)
            case ev.Result():
                self._result(event)
            case ev.Plan(steps=planned):
                self._past.plan = planned[:MAX_PLAN_STEPS]
            case ev.MessageChanged(uuid=uuid, state="cancelled") if self._is_current([uuid]):
                self._finish("cancelled", "the agent cancelled the turn")
            case ev.RateLimit(status="rejected", resets_at=resets_at):
                self._limited(resets_at)
            case ev.CommandsChanged(commands=commands):
                self._past.commands = commands
            case ev.ModelsOffered(models=models):
                self._past.models = models
            case ev.ConversationChanged(conversation=conversation):
                self._past.note_changed(event)
                # Also while the process is being stopped: the next one must not resume the old one.
                self._keep_conversation(conversation)
            case ev.SystemInit(conversation=conversation):
                if conversation and self.phase in (SessionPhase.IDLE, SessionPhase.WORKING):
                    self._keep_conversation(conversation)
            case _ if self._turn is not None:
                self._turn.take(event)

    def _result(self, result: ev.Result) -> None:
        if not self._is_current(result.messages):
            return
        assert self._turn is not None
        is_limited = self.limited_until is not None and self._now < self.limited_until
        outcome: Outcome = "limited" if is_limited else "failed"
        if result.ok or self._turn.is_interrupted or self.phase is SessionPhase.STOPPING:
            outcome = "completed" if result.ok else "cancelled"
        self._finish(outcome, result.reason, result.text)

    def _is_current(self, uuids: list[str]) -> bool:
        return self._turn is not None and self._turn.is_sent and self._turn.opened.uuid in uuids

    def _limited(self, resets_at: float | None) -> None:
        until = self._now + LIMIT_S if resets_at is None else max(resets_at, self._now)
        self.limited_until = until
        self._put(steps.SetTimer(timer="look", after_s=LOOK_AGAIN_S))
        self._put(steps.SetTimer(timer="limit", after_s=until - self._now))

    def _request_opened(self, request: ev.RequestOpened) -> None:
        if self.requests.is_open(request.id):
            return
        if (decided := self.requests.decide(request)) is None:
            self._put(steps.OpenAtDesk(event=request, turn=self.turn))
            self._out += self.requests.limit(request, self._settings.answer_within_s, self._now)
            return
        answer, why = decided
        self._append("decided", request=request.id, answer=unstructure(answer), why=why)
        self._put(steps.AnswerAgent(request=request.id, answer=answer, is_ours=True))

    @_takes
    def answered(self, request: str, answer: ev.RequestAnswer) -> None:
        """Take the answer to an open request, which is durable."""
        self._out += self.requests.answered(request, answer)

    @_takes
    def login_answered(self, answer: ev.RequestAnswer) -> None:
        """Take the answer to the request to log in, which is durable."""
        outputs = self.login.take(answer)
        self._out += outputs
        if not outputs:
            # For those that follow the transcript: the messages that wait get no turn.
            self._append("login_refused")

    @_takes
    def not_shown(self, request: str) -> None:
        """Take that no person will see this request: the desk refused it."""
        self._out += self.requests.not_shown(request)

    @_takes
    def notified(self, notification: str) -> None:
        """Take that the notification with this id is durable in its inbox."""
        self._note_reported(self._reports.confirm(notification))

    # Orders of people and other primitives.

    @_takes
    def end_turn(self, by: str, message: str | None = None) -> None:
        """End the current turn; with ``message``, unless a turn has taken that message."""
        if message is None or message not in self._past.known:
            self._interrupt(by)

    @_takes
    def take_over(self, by: str, *, interrupt: bool = False) -> None:
        """Leave the conversation to a person, once no turn runs."""
        # The end of an earlier take-over may not be durable yet: then this one begins once it is.
        if not self._has_person and self.phase is not SessionPhase.CLOSED:
            self._taker = by
            if interrupt:
                self._interrupt(by)

    @_takes
    def hand_back(self) -> None:
        """End a take-over, or call off one that waits for the end of a turn."""
        self._taker = ""
        if self._has_person:
            self._put(steps.EndTakeover())

    @_takes
    def restart(self, by: str) -> None:
        """Start a new process with the same conversation."""
        if self.takeover is not None:
            return
        self._is_wanted = self.phase is not SessionPhase.CLOSED
        self._ladder.restart()
        self._try_again()
        if self.has_process:
            self._stop_process(f"restarted by {by}")

    @_takes
    def resume(self, login: str = "") -> None:
        """Start the process without waiting for a message.

        ``login`` is the id of the login method that a person has chosen.
        """
        self._login_method = login or self._login_method
        self._is_wanted |= self.phase in _WITHOUT_PROCESS
        self._try_again()

    def _try_again(self) -> None:
        """Leave an error, or the one that would follow the end of a process that has failed."""
        self._is_failed = False
        if self.phase is SessionPhase.ERROR:
            self._ladder.restart()
            self._become(SessionPhase.DORMANT)

    def has_begun(self, message: str) -> bool:
        """Return whether a turn has taken the message of this id."""
        return message in self._past.known

    @_takes
    def withdraw(self, message: str, by: str) -> None:
        """End the turn of a message; one that has none yet gets one that ends before it is sent."""
        if self._turn is not None and self._turn.has(message):
            self._interrupt(by)
        elif message not in self._past.known and message not in self._past.withdrawn:
            self._past.withdraw(message)
            self._store("withdrawn", {"message": message, "by": by})

    def _interrupt(self, by: str) -> None:
        turn = self._turn
        if turn is not None and not turn.is_interrupted:
            turn.is_interrupted = True
            self._append("interrupt", turn=turn.opened.number, by=by)
            if turn.is_sent:
                self._put(InterruptTurn())

    @_takes
    def close(self, by: str) -> None:
        """End the session for good."""
        if self.phase is SessionPhase.CLOSED:
            return
        self._store("closed", {"by": by})
        self._taker = ""
        self._become(SessionPhase.CLOSED, f"closed by {by}")
        if self._turn is not None and self._turn.is_sent:
            self._finish("cancelled", self.reason)
        self._out += self.requests.withdraw_all("the session was closed")
        if self._has_person:
            self._put(steps.EndTakeover())
        elif self.takeover is None and self.has_process:
            self._put(steps.StopDriver())

    def _stop_process(self, reason: str) -> None:
        if self.has_process and self.phase not in (SessionPhase.STOPPING, SessionPhase.CLOSED):
            self._become(SessionPhase.STOPPING, reason)
            self._put(steps.StopDriver())

    def _become(self, phase: SessionPhase, reason: str = "") -> None:
        if phase is not self.phase:
            self.phase, self.since = phase, self._now
            self._out += self.login.follow(phase)
        self.reason = reason

    def _append(self, kind: str, **fields: Any) -> None:
        """Write an entry that may be lost."""
        self._put(self._entries.append(kind, self._now, fields, sync=False))

    def _put(self, output: Output) -> None:
        self._out.append(output)


_WITHOUT_PROCESS = (SessionPhase.DORMANT, SessionPhase.STOPPING, SessionPhase.ERROR)
"""The phases of a session that has no process, or soon has none."""
