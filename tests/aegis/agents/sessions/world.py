"""A world around a session's machine: a disk, an inbox, an agent and people, all by chance."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from aegis.agents.drivers.harness import Capabilities
from aegis.agents.messages import DriverEnded, DriverFailed, DriverReady, SendTurn
from aegis.agents.sessions import steps
from aegis.agents.sessions.login import LOGIN
from aegis.agents.sessions.past import SessionPast
from aegis.agents.sessions.rules import SessionMachine
from aegis.agents.sessions.settings import Settings
from aegis.agents.sessions.steps import Incoming, Output, SessionPhase
from aegis.protocol import agent_events as ev

FETCHED = 3
"""Messages that are read from the inbox at a time."""

SENDERS = ("agent:pm", "human", "agent:builder", "term:build", "group:g/broadcast:1")


def settings(**fields: Any) -> Settings:
    return Settings(**{"session": "s1", "name": lambda: "ann", "policy": lambda _: None, **fields})


def message(number: int, sender: str = "agent:pm") -> Incoming:
    alone = sender.startswith("group:")
    return Incoming(id=f"m{number}", sender=sender, text=f"do {number}", is_alone=alone)


def driver_ended(code: int | None, stderr: str = "") -> DriverEnded:
    return DriverEnded(launch=1, reason="", exit_code=code, stderr=stderr)


class World:
    """Carries out the outputs of one session, over several lives of the daemon."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.now = 1000.0
        self.entries: list[dict[str, Any]] = []  # durable, in order
        self.unsynced: list[steps.Append] = []
        self.inbox: list[Incoming] = []
        self.acknowledged = 0
        self.sent: dict[str, str] = {}
        self.shown: dict[str, str] = {}  # requests of the desk, and the state of each
        self.notified: list[str] = []
        self.notifications: list[str] = []  # on their way
        self.timers: dict[str, float] = {}
        self.running: str | None = None
        self.process = "none"
        self.conversation: str | None = None
        self.requests = 0
        self.finished = False
        self.rewind = ""  # the step at which a rewind is: asked, writing, setting, ending
        self.restart()

    # Lives of the daemon.

    def restart(self) -> None:
        """The daemon was killed: a part of what was not synced is there nevertheless."""
        kept = self.chance.randint(0, len(self.unsynced)) if self.unsynced else 0
        self.entries += [each.entry for each in self.unsynced[:kept]]
        self.unsynced.clear()
        self.notifications.clear()
        self.timers.clear()
        self.finished = False
        self.running, self.process, self.rewind = None, "none", ""
        for request, state in self.shown.items():
            if state == "open":
                self.shown[request] = "withdrawn"
        past = SessionPast()
        for entry in self.entries:
            past.take(entry)
        self.session = SessionMachine(settings(max_runtime_s=50.0), past, now=self.now)
        self.carry_out(self.session.begin(self.now))
        self.fetched = self.acknowledged
        self.fetch()

    def fetch(self) -> None:
        """The next unread messages are reported, not all."""
        begin = self.fetched
        self.fetched = min(len(self.inbox), begin + FETCHED)
        self.give(SessionMachine.arrived, tuple(self.inbox[begin : self.fetched]))

    def give(self, step: Callable[..., list[Output]], *given: Any) -> None:
        self.now += self.chance.random()
        self.carry_out(step(self.session.at(self.now), *given))

    # Outputs.

    def carry_out(self, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, steps.UndoRewind | steps.RewindStored):
                self.follow_rewind(output)
            else:
                self.carry_out_one(output)

    def carry_out_one(self, output: Output) -> None:
        match output:
            case steps.Append():
                self.unsynced.append(output)
            case SendTurn(uuid=uuid, text=text):
                assert uuid not in self.sent, "a turn was sent twice"
                assert self.process == "ready", "a turn was sent to no agent"
                assert self.running is None, "a turn was sent during another one"
                assert not self.rewind, "a turn was sent while files were set back"
                opened = [each for each in self.entries if each.get("uuid") == uuid]
                assert opened, "a turn was sent before it was durable"
                self.sent[uuid], self.running = text, uuid
            case steps.StartDriver(conversation=conversation):
                assert self.process == "none", "two processes of one session"
                assert not self.rewind, "a process was started while files were set back"
                self.process, self.conversation = "starting", conversation
            case steps.StopDriver():
                assert self.process != "none"
                self.process = "stopping"
            case steps.Acknowledge(message=message_id):
                position = [each.id for each in self.inbox].index(message_id)
                opened = [each for each in self.entries if each["kind"] == "turn_opened"]
                taken = {each["id"] for entry in opened for each in entry["messages"]}
                assert taken >= {each.id for each in self.inbox[: position + 1]}
                self.acknowledged = max(self.acknowledged, position + 1)
            case steps.OpenAtDesk(event=event):
                if event.id == LOGIN:
                    assert self.process == "none", "a login is asked for beside a process"
                    assert self.shown.get(LOGIN) != "open"
                else:
                    assert event.id not in self.shown
                self.shown[event.id] = "open"
            case steps.LogIn():
                assert self.shown[LOGIN] == "answered"
                self.shown[LOGIN] = "applied"
            case steps.AnswerAgent(request=request):
                assert self.shown[request] == "answered", "an answer after the withdrawal"
                self.shown[request] = "applied"
            case steps.WithdrawAtDesk(requests=requests):
                for request in requests:
                    assert self.shown[request] != "applied"
                    self.shown[request] = "withdrawn"
            case steps.Notify(id=notification, done=done):
                number, handle = notification.split("turn:")[1].split("/")
                outcomes = {
                    each["turn"]: each["outcome"]
                    for each in self.entries
                    if each["kind"] == "turn_ended"
                }
                is_done = outcomes[int(number)] == "completed"
                assert is_done == (done is not None)
                assert handle == "human" or not is_done
                self.notifications.append(notification)
            case steps.SetTimer(timer=timer, after_s=after_s):
                assert after_s >= 0
                self.timers[timer] = self.now + after_s
            case steps.Finished():
                assert not self.finished
                assert not self.rewind, "it finished while files were set back"
                assert self.process == "none"
                self.finished = True

    # What happens.

    def sync(self) -> None:
        batch, self.unsynced = self.unsynced, []
        self.entries += [each.entry for each in batch]
        for each in batch:
            if each.sync:
                self.give(SessionMachine.stored, each.number)

    def refuse(self) -> None:
        batch, self.unsynced = self.unsynced, []
        for each in batch:
            if each.sync:
                self.give(SessionMachine.not_stored, each.number)

    def notify(self) -> None:
        """The oldest notification arrives."""
        if self.notifications:
            self.notified.append(self.notifications.pop(0))
            self.give(SessionMachine.notified, self.notified[-1])

    def follow_rewind(self, output: steps.UndoRewind | steps.RewindStored) -> None:
        if isinstance(output, steps.UndoRewind):
            self.write_rewind("rewound", output.rewind.id)
        else:
            self.rewind = "setting" if self.rewind == "writing" else "ended"

    def set_back(self) -> None:
        """A person asks for a rewind, or it takes its next step."""
        session = self.session
        is_idle = session.phase is SessionPhase.IDLE and session.current is None
        if not self.rewind and is_idle and not session.is_rewinding:
            self.rewind = "asked"
            self.give(SessionMachine.begin_rewind, 1)
        elif self.rewind == "asked" and self.chance.random() < 0.3:
            self.end_rewind()  # it was refused, or a dry run
        elif self.rewind == "asked":
            self.write_rewind("rewinding", f"w{self.chance.random()}")
        elif self.rewind == "setting":
            self.write_rewind("rewound", "w")
        elif self.rewind == "ended":
            self.end_rewind()

    def write_rewind(self, kind: Any, id_: str) -> None:
        self.rewind = "writing" if kind == "rewinding" else "ending"
        self.give(SessionMachine.write_rewind, kind, {"id": id_, "turn": 1, "by": "human"})

    def end_rewind(self) -> None:
        self.rewind = ""
        self.give(SessionMachine.end_rewind)

    def arrive(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            self.inbox.append(message(len(self.inbox), self.chance.choice(SENDERS)))
        self.fetch()

    def ring(self) -> None:
        """The next timer runs out."""
        if self.timers:
            name = min(self.timers, key=lambda each: self.timers[each])
            self.now = max(self.now, self.timers.pop(name))
            timer: Any = name
            self.give(SessionMachine.timer_fired, timer)

    def ready(self) -> None:
        if self.process == "starting":
            self.process = "ready"
            conversation = self.conversation or f"c{self.chance.random()}"
            self.give(
                SessionMachine.driver_ready,
                DriverReady(launch=1, conversation=conversation, capabilities=Capabilities()),
            )

    def fail(self) -> None:
        if self.process in ("starting", "ready"):
            kind: Any = self.chance.choice(["conversation", "other", "login"])
            self.give(
                SessionMachine.driver_failed, DriverFailed(launch=1, reason="it cannot", kind=kind)
            )

    def die(self) -> None:
        if self.process != "none":
            self.process, self.running = "none", None
            self.give(
                SessionMachine.driver_ended,
                driver_ended(self.chance.choice([0, 1, None]), stderr="oops"),
            )

    def result(self) -> None:
        if self.process == "ready":
            ok = self.chance.random() < 0.7
            uuids = [self.running] if self.running and self.chance.random() < 0.8 else []
            if uuids:
                self.running = None
            elif self.chance.random() < 0.5:
                uuids = ["stale", *self.chance.sample(list(self.sent), k=min(1, len(self.sent)))]
                uuids = [each for each in uuids if each != self.running]
            self.agent(ev.Result(messages=uuids, ok=ok, reason="end", text="done"))

    def cancelled(self) -> None:
        if self.process == "ready" and self.running:
            uuid, self.running = self.running, None
            self.agent(ev.MessageChanged(uuid=uuid, state="cancelled"))

    def ask(self) -> None:
        if self.process == "ready":
            self.requests += 1
            self.agent(ev.RequestOpened(id=f"r{self.requests}", kind="permission", tool="Bash"))

    def withdraw(self) -> None:
        if self.process == "ready" and self.requests:
            self.agent(ev.RequestWithdrawn(id=f"r{self.chance.randint(1, self.requests)}"))

    def answer(self) -> None:
        open_ones = [each for each, state in self.shown.items() if state == "open"]
        if open_ones:
            request = self.chance.choice(open_ones)
            self.shown[request] = "answered"
            if request == LOGIN:
                self.log_in()
                return
            self.give(SessionMachine.answered, request, ev.PermissionAnswer(kind="allow_once"))

    def log_in(self) -> None:
        action: Any = self.chance.choice(["accept", "decline"])
        self.give(SessionMachine.login_answered, ev.ElicitationAnswer(action=action))
        if self.shown[LOGIN] == "applied":
            self.give(SessionMachine.resume)

    def limit(self) -> None:
        if self.process == "ready":
            resets_at = self.chance.choice([None, self.now + 5, self.now - 5])
            self.agent(ev.RateLimit(status="rejected", resets_at=resets_at))

    def talk(self) -> None:
        if self.process == "ready":
            self.agent(ev.AssistantText(text="hm", message=self.chance.choice(["", "a", "b"])))

    def agent(self, event: ev.AgentEvent) -> None:
        self.give(SessionMachine.heard, event)

    def settle(self) -> None:
        """Let everything come to its end: a patient disk, an agent that answers."""
        for _ in range(400):
            before = self.progress
            self.sync()
            if self.process == "stopping":
                self.die()
            self.ready()
            if self.process == "ready" and self.running:
                uuid, self.running = self.running, None
                self.agent(ev.Result(messages=[uuid], ok=True, reason="end"))
            self.sync()
            while self.notifications:
                self.notify()
            self.fetch()
            if self.rewind:
                self.set_back()
            if before == self.progress:
                if not self.timers:
                    return
                self.ring()

    @property
    def progress(self) -> tuple[object, ...]:
        timers = dict(self.timers)
        read = self.fetched, self.acknowledged
        return len(self.entries), self.process, timers, read, self.rewind

    @property
    def is_at_rest(self) -> bool:
        return self.session.phase in (
            SessionPhase.IDLE,
            SessionPhase.DORMANT,
            SessionPhase.CLOSED,
            SessionPhase.ERROR,
        )
