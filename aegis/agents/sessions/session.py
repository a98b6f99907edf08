"""``AgentSession``: the actor that carries out a session's machine.

It owns the transcript, follows the inbox of its handle, starts the driver below its own supervisor,
and passes requests to the desk. It holds no resource of the operating system but the transcript.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

import attrs
import structlog
import trio

from actors import Actor, ActorError, ChildSpec, Down, Ref, Reply, System, Timer, describe
from aegis.agents import faults
from aegis.agents import messages as msg
from aegis.agents.drivers.tui import TuiPlan
from aegis.agents.sessions import own_messages as own
from aegis.agents.sessions import steps
from aegis.agents.sessions.edited_files import EditCalls
from aegis.agents.sessions.followers import TranscriptFollowers
from aegis.agents.sessions.login import run_login
from aegis.agents.sessions.mail import Mail, News
from aegis.agents.sessions.past import Rewind, Takeover
from aegis.agents.sessions.requests_out import DeskRefused, RequestsOut, agent_id
from aegis.agents.sessions.rewinding import Rewinding
from aegis.agents.sessions.rules import SessionMachine
from aegis.agents.sessions.set_aside import digest_of
from aegis.agents.sessions.settings import (
    ChangeSettings,
    ResumeAgent,
    Settings,
    change_agent,
    refusal_of_agent,
)
from aegis.agents.sessions.status import (
    AskedChanged,
    CheckStall,
    SessionClosed,
    SessionIdentity,
    StateReports,
    agent_info,
    held_by_person,
)
from aegis.agents.sessions.transcript import LIMIT_BYTES, TRANSCRIPT, TranscriptWriter, read_durable
from aegis.agents.sessions.turns import turn_uuid
from aegis.agents.sessions.waits import AgentWaits, Places, is_at_rest, outcome_of
from aegis.errors import AegisError, AlreadyExists, InvalidRequest, StorageError, Unavailable
from aegis.journal.flusher import Flusher
from aegis.limits import in_thread_or_here
from aegis.path_text import path_of_text, text_of_path
from aegis.protocol import agents as api
from aegis.protocol.agent_events import AssistantText
from aegis.protocol.feeds import FollowSession
from aegis.protocol.inboxes import FindMessage, WithdrawMessage
from aegis.protocol.requests import AnswerReceived, ApplyAnswer

log = structlog.get_logger("aegis.agents")

DRIVER = "driver"
"""The name of a driver below its supervisor."""

GATHER_S = 0.005
"""Seconds for which the changes of a working session are gathered before they are shown."""

MAKE_AGAIN_S = 1.0
"""Seconds after which the program of a take-over is looked for again."""

CLOSE_S = 20.0
"""Seconds that a driver has to end its process tree."""

MakeDriver = Callable[[int, steps.StartDriver, Ref[Any]], Awaitable[ChildSpec]]
"""Returns the spec of a driver for a launch, a start and a session. Raises ``AegisError``."""

Owner = Literal["agent", "person"]
"""The owner of a conversation, whose process may have it open."""

MakeTui = Callable[[int, str, Owner | None], Awaitable[TuiPlan]]
"""Returns the agent's own program for a launch and a conversation; nobody else may have that open.

Raises ``AegisError``: ``AlreadyExists`` if the program must not be started beside another one.
"""


class PersonsProgram(Protocol):
    """The agent's own program in a shared terminal, where a person uses it."""

    @property
    def has_started(self) -> bool:
        """Whether it runs."""
        ...

    def end(self) -> None:
        """Have it ended. Idempotent."""
        ...

    def delete_secrets(self) -> None:
        """Delete the files that it has read."""
        ...

    async def run(self, takeover: Takeover, *, is_new: bool) -> steps.HandedBack:
        """Start it if it ``is_new``; return once it has ended, and no process of it is left."""
        ...


OpenTui = Callable[[System, SessionIdentity, TuiPlan, Callable[[], None]], PersonsProgram]
"""Returns a program that is not started yet; it calls the function once it runs."""


class AgentSession(Actor[own.SessionMessage]):
    """The actor of the session ``identity``; its transcript is below ``directory``.

    ``settings`` are those of its machine. ``make_driver`` returns the spec of a driver, which
    is started below the supervisor at ``processes`` (a path), ``make_tui`` the agent's own program,
    and ``open_tui`` opens that for a person. ``on_change`` is called with each
    change of the session's state.
    """

    def __init__(
        self,
        *,
        identity: SessionIdentity,
        directory: Path,
        settings: Settings,
        make_driver: MakeDriver,
        make_tui: MakeTui,
        open_tui: OpenTui,
        processes: str,
        flusher: Flusher,
        on_change: Callable[[api.AgentInfo], None] = lambda info: None,
        transcript_bytes: int = LIMIT_BYTES,
    ) -> None:
        self._identity = identity
        self._directory = directory
        self._make_driver = make_driver
        self._make_tui, self._open_tui = make_tui, open_tui
        self._processes = processes
        self._flusher = flusher
        self._transcript_bytes = transcript_bytes
        self._settings = settings
        self._transcript: TranscriptWriter | None = None
        self._driver: Ref[Any] | None = None
        self._launch = self._unwanted = self._over = 0
        self._connected_launch = 0
        self._timers: dict[str, tuple[int, Timer]] = {}
        self._timer_number = 0
        self._shows_soon = False
        self._places = Places()
        self._edit_calls = EditCalls()
        self._noting = trio.Lock()
        self._closers: list[Reply[api.AgentInfo]] = []
        self._takers: list[Reply[api.AgentInfo]] = []
        self._back: list[Reply[api.AgentInfo]] = []
        self._back_from: Takeover | None = None  # its end answers them
        self._persons: PersonsProgram | None = None
        self._ends_takeover = False  # it may be ordered before there is a terminal
        self._on_change = on_change

    async def setup(self) -> None:
        """Open the transcript, report turns that were cut, and follow the inbox.

        Raises ``StorageError``.
        """
        path, limit = self._directory / TRANSCRIPT, self._transcript_bytes
        self._transcript = transcript = await TranscriptWriter.open(path, self._flusher, limit)
        self._session = SessionMachine(self._settings, transcript.past, now=time.time())
        transcript.start(self.context.start_soon, self._on_outcome)
        self._reports = StateReports(self._identity, self._on_change, self.context.after)
        self._followers = TranscriptFollowers(transcript, self.context.start_soon)
        self._waits = AgentWaits(
            self._identity,
            self.context.start_soon,
            lambda wait: outcome_of(wait, self._session, self._info()),
            self._why_waiting,
        )
        self._requests = RequestsOut(
            self.context, self.context.path, self._identity, self._report_change
        )
        self._mail = Mail(self.context, self._identity.address, self._identity.address_of)
        self._launch = transcript.past.launches
        with contextlib.suppress(ActorError):  # the driver of an earlier incarnation
            await self.context.system.supervisor(self._processes).stop_child(DRIVER)
        self._rewinding = Rewinding(
            lambda: self._identity.handle,
            self._directory,
            self._identity.cwd,
            self._flusher.disk,
            self.context.ref.send,
        )
        await self._carry_out(self._session.begin(time.time()))
        self.context.register("session", self._identity.id)
        self._report_change()
        if not transcript.past.is_closed:  # or it was opened again
            self._mail.start()

    async def teardown(self) -> None:
        if self._transcript is not None:
            self._transcript.close()
        for reply in self._closers:
            reply.fail(Unavailable("the daemon is stopping; the session is being closed"))
        for reply in (*self._takers, *self._back):
            reply.fail(Unavailable("the daemon is stopping; the take-over ends with it"))

    async def receive(self, message: own.SessionMessage) -> None:
        """Pass a message to the machine, carry out its outputs, and show what has changed."""
        await self._take(message)
        assert self._transcript is not None
        # No entry is shown before an awaited one, whose outcome is the next message: to gather from
        # here on would show a turn in the moment in which its end is to be stored.
        if self._transcript.is_awaited:
            return
        if self._session.phase is not steps.SessionPhase.WORKING:
            self._followers.look()
        if not self._shows_soon:
            self._shows_soon = True
            self.context.start_soon(self._show_soon)

    async def _show_soon(self) -> None:
        # Each of these takes as long as to store several entries, and would delay a turn.
        await trio.sleep(GATHER_S)
        self._shows_soon = False
        self._followers.look()
        self._report_change()
        assert self._transcript is not None
        self._transcript.fold()

    async def _take(self, message: own.SessionMessage) -> None:
        match message:
            case msg.DriverEvents() | msg.DriverReady() | msg.DriverFailed() | msg.DriverEnded():
                await self._report(message)
                self.reply(message, None)
            case steps.Notified(id=notification):
                await self._carry_out(self._machine.notified(notification))
            case (
                steps.HandedBack()
                | own.TakeoverStarted()
                | api.TakeOverAgent()
                | api.HandBackAgent()
            ):
                await self._switch_owner(message)
            case News():
                await self._carry_out(self._machine.arrived(message.arrived))
                self._places.look(self._session)
            case own.Settled(number=number, error=error):
                is_stored, machine = error is None, self._machine
                await self._carry_out(
                    machine.stored(number) if is_stored else machine.not_stored(number)
                )
            case own.TimerDue(timer=timer, number=number):
                if self._timers.get(timer, (0, None))[0] == number:
                    await self._carry_out(self._machine.timer_fired(timer))
            case own.NoDriver() | steps.TurnRefused() | DeskRefused() | Down():
                await self._failed(message)
            case ApplyAnswer():
                await self._apply(message)
            case FindMessage(message=wanted, interrupt_by=by):
                if by is not None:
                    await self._carry_out(self._machine.end_turn(by, wanted))
                self._places.take(message, self.defer(message), self._session)
            case WithdrawMessage(message=wanted, by=by):
                await self._carry_out(self._machine.withdraw(wanted, by))
                self.reply(message, None)
            case (
                own.FileEdited()
                | api.RewindAgent()
                | steps.RewindEntry()
                | steps.RewindOver()
                | AskedChanged()
            ):
                await self._of_files(message)
            case CheckStall():
                self._reports.look_again()
            case _:
                await self._ordered(message)

    async def _failed(self, message: own.NoDriver | steps.TurnRefused | DeskRefused | Down) -> None:
        match message:
            case steps.TurnRefused(uuid=uuid, reason=reason):
                await self._carry_out(self._machine.turn_refused(uuid, reason))
            case own.NoDriver(launch=launch, reason=reason, is_held=is_held):
                await self._driver_lost(launch, reason, is_held=is_held)
            case DeskRefused(key=key):
                await self._not_shown(key)
            case Down(crashed=True):  # any other driver has reported its end before
                await self._driver_lost(self._launch, "the driver of the agent crashed")

    async def _interrupt(self, message: api.InterruptAgent) -> None:
        wanted = message.message
        if wanted is None:
            await self._carry_out(self._machine.end_turn(_by(message)))
            self.reply(message, self._info())
            return
        if message.unless_begun and self._machine.has_begun(wanted):
            raise InvalidRequest(
                f"{message.handle!r} has begun the turn of this message: interrupt the turn to end "
                "it"
            )
        await self._carry_out(self._machine.withdraw(wanted, _by(message)))
        self.context.start_soon(self._reply_durable, self.defer(message), self._info())

    async def _ordered(self, message: Any) -> None:
        match message:
            case api.InterruptAgent():
                await self._interrupt(message)
            case api.RestartAgent():
                if self._session.takeover is not None:
                    raise InvalidRequest(
                        f"agent restart: a person has taken over {message.handle!r}: end that "
                        f"first with agent handback {message.handle}"
                    )
                await self._carry_out(self._machine.restart(_by(message)))
                self.reply(message, self._info())
            case api.CloseAgent():
                self._closers.append(self.defer(message))
                await self._carry_out(self._machine.close(_by(message)))
            case api.ShowDetails():
                info = attrs.asdict(self._info(), recurse=False)
                details = api.AgentDetails(
                    **info,
                    commands=[*self._session.commands],
                    models=[*self._session.models],
                    takes_images=self._session.takes_images,
                    calls=self._session.activity.calls,
                    tasks=[each[:200] for each in self._session.activity.tasks[:64]],
                )
                self.reply(message, details)
            case api.ShowAgent():
                self.reply(message, self._info())
            case api.ReadSession():
                self.context.start_soon(self._read, message, self.defer(message))
            case api.WaitAgent():
                self._wait(message)
            case FollowSession():
                self._followers.take(message, self.defer(message))
            case ResumeAgent(login=login):
                await self._carry_out(self._machine.resume(login))
            case ChangeSettings():
                # Before the change: it may end the process that knows what the agent offers.
                driver = self._driver if self._session.has_process else None
                refusal = None if driver is None else await refusal_of_agent(message, driver)
                if refusal is not None:
                    self.reply(message, refusal)
                    return
                model = self._session.model
                await self._carry_out(self._machine.change(message.settings))
                # One that is being ended takes no order; the next has the change from its start.
                is_used = self._session.has_process and (
                    self._session.phase is not steps.SessionPhase.STOPPING
                )
                driver = self._driver if is_used else None
                self.context.start_soon(change_agent, message, driver, self.defer(message), model)
            case api.ToolsListed():
                self._tools_listed()

    def _report_change(self) -> None:
        takeover = self._session.takeover
        if self._back and (takeover is None or takeover is not self._back_from):
            self._answer(self._back)
        self._reports.look(self._session, self._requests.blocked, time.time())
        self._waits.look()

    def _info(self) -> api.AgentInfo:
        return agent_info(self._identity, self._session, self._requests.blocked, time.time())

    def _wait(self, request: api.WaitAgent) -> None:
        self._waits.take(request, self.defer(request), self._session.said)
        if request.message is not None and self._session.place_of(request.message) is None:
            self.context.start_soon(self._refuse_unknown, request.message)

    async def _refuse_unknown(self, message: str) -> None:
        """Fail the waits for a message that never was in the inbox: it will have no turn."""
        if not await self._mail.has_had(message):
            self._waits.refuse(message)

    def _why_waiting(self) -> str:
        """Return what keeps a wait from its end; empty: the agent works."""
        if self._session.takeover is not None:
            return held_by_person(self._identity)
        return "it is idle" if is_at_rest(self._session, self._info()) else ""

    # The machine.

    @property
    def _machine(self) -> SessionMachine:
        """The machine, which takes what follows at this moment."""
        return self._session.at(time.time())

    async def _carry_out(self, outputs: list[steps.Output]) -> None:
        for output in outputs:
            await self._carry_out_one(output)

    async def _carry_out_one(self, output: steps.Output) -> None:
        match output:
            case steps.Append(number=number, entry=entry, sync=sync):
                assert self._transcript is not None
                await self._transcript.append(number, entry, sync=sync)
            case (
                steps.StartDriver()
                | steps.StopDriver()
                | steps.OpenTakeover()
                | steps.EndTakeover()
            ):
                self._switch_process(output)
            case steps.RewindStored() | steps.UndoRewind():
                self._of_rewind(output)
            case msg.SendTurn():
                faults.SEND_BEFORE.hit(self._identity.handle)
                self._order(output)
                faults.SEND_AFTER.hit(self._identity.handle)
            case msg.InterruptTurn():
                self._order(output)
            case steps.AnswerAgent(request=request, answer=answer):
                self._order(msg.SendAnswer(request=request, answer=answer))
            case steps.OpenAtDesk(event=event, turn=turn):
                self._requests.open(event, turn, self._launch)
            case steps.WithdrawAtDesk(requests=requests, reason=reason):
                self._requests.withdraw(requests, reason, self._launch)
            case steps.LogIn():
                cwd, again = self._identity.cwd, ResumeAgent(output.method)
                self.context.start_soon(run_login, self.context, output, cwd, again)
            case steps.Acknowledge(message=message):
                faults.ACKNOWLEDGE_BEFORE.hit(self._identity.handle)
                self._mail.acknowledge(message)
            case steps.Notify(id=id_, done=turn) if turn is not None and self._waits.has_turn(turn):
                self.context.ref.tell(steps.Notified(id_))  # by the answer to the call that waits
            case steps.Notify():
                faults.NOTIFY_BEFORE.hit(self._identity.handle)
                self._mail.notify(output)
            case steps.SetTimer(timer=timer, after_s=after_s):
                self._wake(timer, after_s)
            case steps.Finished():
                self._finished()

    def _wake(self, timer: steps.TimerName, after_s: float) -> None:
        earlier = self._timers.pop(timer, None)
        if earlier is not None:
            earlier[1].cancel()
        self._timer_number += 1
        due = own.TimerDue(timer=timer, number=self._timer_number)
        self._timers[timer] = self._timer_number, self.context.after(after_s, due)

    def _finished(self) -> None:
        self._report_change()  # first: no message is taken once the close is answered
        for reply in self._closers:
            reply.send(self._info())
        self._closers.clear()
        self._fail_takers(Unavailable("agent takeover: the session was closed"))
        self._followers.close()
        self._settings.edited.close(self._identity.id)
        # Its monitor can be too late: a session that was closed before may end in its start.
        directory = self.context.system.registry.find("service", "agents")
        if directory is not None:
            with contextlib.suppress(ActorError):
                directory.tell(SessionClosed(self._identity.id))
        self.context.finish()

    # Take-overs.

    def _switch_process(
        self,
        output: steps.StartDriver | steps.StopDriver | steps.OpenTakeover | steps.EndTakeover,
    ) -> None:
        match output:
            case steps.StartDriver():
                self._start_driver(output)
            case steps.StopDriver():
                self._stop_driver()
            case steps.OpenTakeover(is_new=is_new):
                self._launch += is_new
                self.context.start_soon(self._leave_to_person, is_new)
            case steps.EndTakeover():
                self._ends_takeover = True
                if self._persons is not None:
                    self._persons.end()

    async def _switch_owner(
        self,
        message: steps.HandedBack | own.TakeoverStarted | api.TakeOverAgent | api.HandBackAgent,
    ) -> None:
        match message:
            case api.TakeOverAgent():
                await self._take_over(message)
            case own.TakeoverStarted():
                self._answer(self._takers)
            case api.HandBackAgent():
                await self._hand_back(message)
            case steps.HandedBack(reason=reason):
                self._persons, self._ends_takeover = None, False
                await self._carry_out(self._machine.handed_back(message))
                self._fail_takers(Unavailable(f"agent takeover: {reason or 'it has ended'}"))

    async def _take_over(self, message: api.TakeOverAgent) -> None:
        """Have the conversation left to a person; the answer comes when their program runs."""
        conversation = self._session.conversation
        if conversation is None:
            raise InvalidRequest(
                f"agent takeover: {message.handle!r} has no conversation yet; send it a message "
                "first"
            )
        # What cannot be started is refused before anything is stopped.
        owner: Owner = "agent" if self._session.takeover is None else "person"
        try:
            await self._make_tui(self._launch + 1, conversation, owner)
        except AegisError as error:
            raise type(error)(f"agent takeover: {error}") from error
        self._takers.append(self.defer(message))
        if self._persons is not None and self._persons.has_started:
            self._answer(self._takers)
        else:
            order = self._machine.take_over(_by(message), interrupt=message.interrupt)
            await self._carry_out(order)

    async def _hand_back(self, message: api.HandBackAgent) -> None:
        """Have a take-over ended; the answer comes when the agent has the conversation again."""
        if self._session.takeover is None and not self._takers:
            raise InvalidRequest(
                f"agent handback: nobody has taken over {message.handle!r}; agent takeover does"
            )
        await self._carry_out(self._machine.hand_back())
        self._fail_takers(Unavailable("agent takeover: it was called off by agent handback"))
        self._back.append(self.defer(message))
        self._back_from = self._session.takeover

    def _answer(self, waiting: list[Reply[api.AgentInfo]]) -> None:
        for reply in waiting:
            reply.send(self._info())
        waiting.clear()

    def _fail_takers(self, error: AegisError) -> None:
        for reply in self._takers:
            reply.fail(error)
        self._takers.clear()

    async def _leave_to_person(self, is_new: bool) -> None:
        """Run the take-over to its end, and report that."""
        takeover = self._session.takeover
        assert takeover is not None
        owner: Owner | None = None if is_new else "person"
        while True:
            try:
                plan = await self._make_tui(self._launch, takeover.conversation, owner)
                break
            except AegisError as error:  # its profile is gone, or the disk refuses
                if is_new and (isinstance(error, AlreadyExists) or self._ends_takeover):
                    back = steps.HandedBack(
                        conversation=takeover.conversation, said=(), reason=str(error)
                    )
                    await self.context.ref.send(back)
                    return
                log.warning("take-over waits", session=self._identity.id, why=str(error))
                await trio.sleep(MAKE_AGAIN_S)
        self._persons = self._open_tui(
            self.context.system,
            self._identity,
            plan,
            lambda: self.context.ref.tell(own.TakeoverStarted()),
        )
        if self._ends_takeover:
            self._persons.end()
        await self.context.ref.send(await self._persons.run(takeover, is_new=is_new))

    # Rewinds.

    async def _of_files(
        self,
        message: own.FileEdited
        | api.RewindAgent
        | steps.RewindEntry
        | steps.RewindOver
        | AskedChanged,
    ) -> None:
        match message:
            case steps.RewindEntry(kind=kind, fields=fields):
                await self._carry_out(self._machine.write_rewind(kind, fields))
            case steps.RewindOver():
                await self._carry_out(self._machine.end_rewind())
            case AskedChanged():
                pass  # what has changed is shown after each message
            case own.FileEdited(path=path, digest=digest):
                await self._carry_out(self._machine.write_edited(path, digest))
            case api.RewindAgent():
                turn = self._session.turns if message.turn is None else message.turn
                if (refusal := self._refusal_of_rewind(message.handle, turn)) is not None:
                    raise InvalidRequest(f"agent rewind: {refusal}")
                await self._carry_out(self._machine.begin_rewind(turn))
                assert self._driver is not None
                self.context.start_soon(
                    self._rewind, message, turn, self._driver, self.defer(message)
                )

    def _refusal_of_rewind(self, handle: str, turn: int) -> str | None:
        session = self._session
        if not self._settings.rewinds:
            return (
                f"{self._identity.provider} cannot set files back to an earlier turn; only Claude "
                f"Code can. git shows what {handle} has changed: agent diff {handle}"
            )
        if session.takeover is not None or self._takers:
            return (
                f"a person has taken over {handle!r}: end that first with agent handback {handle}"
            )
        if session.is_rewinding:
            return f"{session.reason or 'a rewind is in progress'}: wait for the end of that"
        if not session.turns:
            return f"{handle!r} has had no turn yet"
        if turn > session.turns:
            return f"{handle!r} has had {session.turns} turns, no {turn}"
        if session.phase is steps.SessionPhase.DORMANT:
            return f"the process of {handle!r} does not run: start it with agent restart {handle}"
        if session.phase is not steps.SessionPhase.IDLE or self._driver is None or session.current:
            return (
                f"{handle!r} is not idle: wait for the end of its turn with agent wait {handle}, "
                f"or end it with agent interrupt {handle}"
            )
        if session.activity.tasks:
            return (
                f"{handle!r} has tasks in the background, which may change files: wait for their "
                f"end, or end them with agent restart {handle}"
            )
        return None

    async def _rewind(
        self, message: api.RewindAgent, turn: int, driver: Ref[Any], reply: Reply[api.AgentRewind]
    ) -> None:
        """Carry out a rewind to its end; the session takes messages meanwhile."""
        async with self._noting:  # the digests of the last turn are taken
            edited = self._session.edited
        uuid = turn_uuid(self._identity.id, turn)
        try:
            done = await self._rewinding.run(message, turn, uuid, driver, edited)
            for each in done.files if done.is_done else ():
                real = await in_thread_or_here(os.path.realpath, path_of_text(each))
                await self._note_left(text_of_path(Path(real)))
            reply.send(done)
        except AegisError as error:
            reply.fail(type(error)(f"agent rewind: {error}"))
        await self._undo_rewind(self._session.rewinding)

    def _of_rewind(self, output: steps.RewindStored | steps.UndoRewind) -> None:
        match output:
            case steps.RewindStored():
                self._rewinding.note_stored()
            case steps.UndoRewind(rewind=rewind):
                self.context.start_soon(self._undo_rewind, rewind)

    async def _undo_rewind(self, rewind: Rewind | None) -> None:
        """End a rewind; undo it first if it was cut."""
        if rewind is not None:
            await self._rewinding.recover(rewind)
        await self.context.ref.send(steps.RewindOver())

    async def _note_left(self, path: str) -> None:
        """Take the digest of a file as the agent has left it."""
        with contextlib.suppress(OSError):  # it is no regular file, or too large: of others
            digest = await in_thread_or_here(digest_of, Path(path_of_text(path)))
            self._session.note_edited(path, digest)
            await self.context.ref.send(own.FileEdited(path, digest))

    # The transcript.

    def _on_outcome(self, number: int, error: StorageError | None) -> None:
        if self._session.turn is None:
            self._followers.look()  # the end of a turn is shown before what follows from it
        settled = own.Settled(number=number, error=None if error is None else str(error))
        self.context.ref.tell(settled)

    async def _reply_durable(self, reply: Reply[api.AgentInfo], result: api.AgentInfo) -> None:
        """Answer once all entries so far are durable."""
        assert self._transcript is not None
        try:
            await self._transcript.sync()
        except StorageError as error:
            reply.fail(error)
        else:
            reply.send(result)

    async def _read(self, message: api.ReadSession, reply: Reply[api.Transcript]) -> None:
        assert self._transcript is not None
        try:
            reply.send(await read_durable(self._transcript, message))
        except AegisError as error:
            reply.fail(error)

    # The driver.

    def _start_driver(self, start: steps.StartDriver) -> None:
        self._launch += 1
        self.context.start_soon(self._start, start, self._launch)

    async def _start(self, start: steps.StartDriver, launch: int) -> None:
        supervisor = self.context.system.supervisor(self._processes)
        try:
            with contextlib.suppress(ActorError):  # the one before may still be there
                await supervisor.stop_child(DRIVER)
            await faults.START_BEFORE.reach(self._identity.handle)
            spec = await self._make_driver(launch, start, self.context.ref)
            driver = await supervisor.start_child(spec)
            await faults.START_AFTER.reach(self._identity.handle)
            self.context.monitor(driver)
        except (ActorError, AegisError) as error:
            is_held = isinstance(error, AlreadyExists)
            await self.context.ref.send(own.NoDriver(launch, describe(error), is_held))
            return
        if launch == self._over:
            return
        self._driver = driver
        if self._connected_launch == launch:  # a quick agent connects before its driver is known
            self._order(msg.McpConnected())
        if launch == self._unwanted:
            await self._end_driver(driver, launch)

    def _tools_listed(self) -> None:
        """Send the driver the agent's first list of tools; later ones say nothing new."""
        if self._persons is not None:
            self._persons.delete_secrets()
            return
        if self._connected_launch != self._launch:
            self._connected_launch = self._launch
            self._order(msg.McpConnected())

    def _stop_driver(self) -> None:
        self._unwanted = self._launch
        # Without a driver its start is in progress, or has failed: the start looks at the number.
        if self._driver is not None:
            self.context.start_soon(self._end_driver, self._driver, self._launch)

    async def _end_driver(self, driver: Ref[Any], launch: int) -> None:
        try:
            await driver.ask(msg.CloseDriver(), timeout=CLOSE_S)
        except ActorError as error:
            await self.context.ref.send(own.NoDriver(launch, describe(error)))

    def _order(self, order: Any) -> None:
        # The request is queued here, not in the task: tasks start in any order.
        if self._driver is not None:
            self.context.start_soon(self._await, order, self._driver.send_request(order))

    async def _await(self, order: Any, reply: Reply[str | None]) -> None:
        try:
            refused = await reply.wait()
        except ActorError:
            return  # the end of the driver is reported by its monitor
        if refused:
            log.warning("order not carried out", session=self._identity.id, why=refused)
        if refused and isinstance(order, msg.SendTurn):
            await self.context.ref.send(steps.TurnRefused(uuid=order.uuid, reason=refused))

    async def _report(self, report: msg.DriverReport) -> None:
        if report.launch != self._launch or report.launch == self._over:
            return
        match report:
            case msg.DriverEvents(events=events):
                for event in events:
                    await self._carry_out(self._machine.heard(event))
                    if paths := self._edit_calls.take(event):
                        self.context.start_soon(self._note_edits, paths)
                    if isinstance(event, AssistantText):
                        self._waits.hear(event)
            case msg.DriverReady():
                # It can be ready before its supervisor has replied to its start.
                self._driver = self.context.system.ref(f"{self._processes}/{DRIVER}")
                await self._carry_out(self._machine.driver_ready(report))
            case msg.DriverFailed():
                await self._carry_out(self._machine.driver_failed(report))
            case msg.DriverEnded():
                self._driver, self._over = None, report.launch
                await self._carry_out(self._machine.driver_ended(report))

    async def _note_edits(self, paths: list[str]) -> None:
        """Note changed files, and have the other sessions that changed them show that."""
        base, id_ = Path(path_of_text(self._identity.cwd)), self._identity.id
        async with self._noting:  # the digest that is taken last is that of the last edit
            for path in paths:
                real = await in_thread_or_here(os.path.realpath, base / path)
                if self._settings.rewinds:
                    await self._note_left(text_of_path(real))
                name = partial(self._identity.name_of, self._identity.address)
                for session in self._settings.edited.note(id_, name, text_of_path(real)):
                    ref = self.context.system.registry.find("session", session)
                    if ref is not None:
                        with contextlib.suppress(ActorError):
                            ref.tell(AskedChanged())

    async def _driver_lost(self, launch: int, reason: str, *, is_held: bool = False) -> None:
        """Take the end of a driver that sent no ``DriverEnded``."""
        if launch != self._launch or launch == self._over or not self._session.has_process:
            return
        self._driver, self._over = None, launch
        if self._session.phase is steps.SessionPhase.STARTING:
            kind: Literal["held", "other"] = "held" if is_held else "other"
            failed = msg.DriverFailed(launch=launch, reason=reason, kind=kind)
            await self._carry_out(self._machine.driver_failed(failed))
        ended = msg.DriverEnded(launch=launch, reason="", exit_code=None, stderr=reason)
        await self._carry_out(self._machine.driver_ended(ended))

    # Requests.

    async def _not_shown(self, key: str) -> None:
        request = agent_id(key, self._launch)
        if request is not None:
            await self._carry_out(self._machine.not_shown(request))

    async def _apply(self, message: ApplyAnswer) -> None:
        if self._requests.is_repeated(message):
            self.context.start_soon(self._requests.repeat, message, self.defer(message))
            return
        request = agent_id(message.key, self._launch)
        if request is None:
            late = AnswerReceived(applied=False, reason="the agent no longer waits for the answer")
            self.reply(message, late)
            return
        is_done = self._session.login.waits_for(request)
        if is_done:
            outputs = self._machine.login_answered(message.answer)
        else:
            outputs = self._machine.answered(request, message.answer)
        # Before an entry about it: its readers ask for the state, which is not "blocked" any more.
        self._requests.close(message.key)
        order = next((each for each in outputs if isinstance(each, steps.AnswerAgent)), None)
        await self._carry_out([each for each in outputs if each is not order])
        reply = self.defer(message)
        apply = self._requests.apply
        self.context.start_soon(apply, message, order, self._driver, reply, is_done)


def _by(command: Any) -> str:
    return command.from_handle or "human"
