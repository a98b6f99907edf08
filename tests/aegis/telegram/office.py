"""The chat of a daemon on a simulated disk and clock, before a server that speaks the Bot API.

The desk and the outbox are the real ones. Sessions, requests, the person's inbox and terminals are
played by one actor, and the Bot API is called in the process: what both have loses nothing.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import attrs
import httpx2
import trio

from actors import Actor, ChildSpec, Reply, Request
from actors.faults import RUNTIME, Crash, Plan, armed
from actors.simulate import Simulation, simulate
from aegis.clock import utc_now
from aegis.errors import InvalidRequest, NotFound
from aegis.journal.ledger import decode_line, encode_line, seal_new_line
from aegis.protocol.agents import AgentInfo, AgentList, ListSessions, TranscriptEntry
from aegis.protocol.feeds import (
    AgentsNews,
    AgentsPlace,
    FollowAgents,
    FollowInbox,
    FollowSession,
    InboxNews,
    InboxPlace,
    SessionNews,
    SessionPlace,
)
from aegis.protocol.inboxes import Message, MessageList, PersonHandoff, ReadInbox, Receipt
from aegis.protocol.requests import (
    FollowRequests,
    ListRequests,
    PersonAnswer,
    RequestInfo,
    RequestList,
    RequestNews,
    RequestPlace,
    RequestReply,
)
from aegis.protocol.terminals import CommandRecord, ListTerminals, RunCommand, TerminalList
from aegis.telegram.desk import Begin, TelegramDesk
from aegis.telegram.outbox import Outbox
from aegis.telegram.settings import ChatSettings
from tests.aegis.simulated_daemon import EMPTY, WRITES, SimulatedDaemon
from tests.aegis.tui.examples import NOON, agent, record, request
from tests.chaos.machine.disk_model import cached_image
from tests.chaos.machine.simulated_disk import SEALS, SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.chaos.reproducible import reproducible
from tests.fakes.telegram import CHAT, TOKEN, USER, BotApi

LEDGER = Path("/state/telegram.jsonl")
SETTINGS = ChatSettings(chat_id=CHAT, user_ids=(USER,), token=TOKEN)
CALL_S = 0.01
"""The duration of a call of the Bot API."""

BEGUN_S = 8.0
"""Longer than the pauses of the outbox between a few messages."""

AGAIN_S = 60.0
"""Longer than what a desk waits until it uses a ledger again that the disk has refused."""


def id_of(number: int) -> str:
    """Return the id of a request."""
    return f"{number:012x}"


class SimulatedBotApi(BotApi):
    """A server without threads or limits of its own."""

    def __init__(self, *, is_forum: bool = False) -> None:
        super().__init__(is_forum=is_forum)
        self.news = trio.Event()
        self.is_down = False

    def continue_after(self, update: int) -> None:
        """Give the next update the id after this one."""
        self._last_update = update

    def waits(self, offset: int) -> bool:
        """Return whether there is no update from ``offset`` on."""
        return all(each < offset for each in self._updates)

    def _update(self, fields: dict[str, Any]) -> int:
        self.news.set()
        return super()._update(fields)

    def _count_flood(self) -> None:
        """Take any number of messages."""


class PlayedClient:
    """The HTTP client of one ``Bot``."""

    api: SimulatedBotApi

    def __init__(self, **_: object) -> None:
        pass

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    async def post(self, url: str, *, json: dict[str, Any], timeout: float) -> Any:
        del timeout
        method = url.rpartition("/")[2]
        await trio.sleep(CALL_S)
        if method == "getUpdates":
            await self._wait(json)
        if self.api.is_down:
            raise httpx2.ConnectError("down")
        try:
            _, body = self.api.answer(method, {**json, "timeout": 0})
        except ConnectionAbortedError:
            raise httpx2.ReadError("cut") from None
        await trio.sleep(CALL_S)
        return _Answer(body)

    async def _wait(self, given: Mapping[str, Any]) -> None:
        self.api.confirmed = max(self.api.confirmed, given.get("offset", 0))
        with trio.move_on_after(given["timeout"]):
            while self.api.waits(given.get("offset", 0)):
                self.api.news = trio.Event()
                await self.api.news.wait()


@attrs.frozen
class _Answer:
    body: dict[str, Any]

    @property
    def content(self) -> bytes:
        return json.dumps(self.body).encode()


@attrs.define
class World:
    """What is in the daemon beside its chat; it survives each life.

    ``handoffs`` are by their keys: a message with a known key is delivered once. ``runs`` are the
    commands that ended; those in ``holds`` do not, and neither do calls of a class in it.
    """

    agents: dict[str, AgentInfo] = attrs.field(factory=dict)
    transcripts: dict[str, list[TranscriptEntry]] = attrs.field(factory=dict)
    requests: dict[str, RequestInfo] = attrs.field(factory=dict)
    request_changes: list[str] = attrs.field(factory=list)
    agent_changes: list[str] = attrs.field(factory=list)
    messages: list[Message] = attrs.field(factory=list)
    handoffs: dict[str | None, PersonHandoff] = attrs.field(factory=dict)
    answers: list[PersonAnswer] = attrs.field(factory=list)
    runs: list[str] = attrs.field(factory=list)
    holds: set[str] = attrs.field(factory=set)
    refuses: str = ""
    _changed: trio.Event = attrs.field(factory=trio.Event)

    def change(self) -> None:
        """Notify those who wait for news."""
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    async def changes(self) -> None:
        """Wait for a change."""
        await self._changed.wait()

    # What happens in the daemon.

    def spawn(self, handle: str) -> str:
        """Open a session; return its id."""
        info = agent(handle)
        self.agents[info.id] = info
        self.transcripts.setdefault(info.id, [])
        self._agent_changed(info.id)
        return info.id

    def close(self, session: str) -> None:
        self.agents[session] = attrs.evolve(self.agents[session], state="closed")
        self._agent_changed(session)

    def _agent_changed(self, session: str) -> None:
        self.agent_changes.append(session)
        self.change()

    def turn(self, session: str, text: str) -> None:
        """A session does a turn, and says this text."""
        event = {"type": "assistant_text", "text": text, "message": text}
        for kind, fields in (
            ("turn_opened", {"turn": 1}),
            ("event", {"event": event}),
            ("turn_ended", {"outcome": "completed"}),
        ):
            entries = self.transcripts[session]
            entries.append(TranscriptEntry(seq=len(entries), kind=kind, at=NOON, fields=fields))
        self.change()

    def ask(self, number: int, **fields: Any) -> RequestInfo:
        """A session asks the person."""
        asked = request(id_of(number), digest=f"{number:064x}", **fields)
        self._request(asked)
        return asked

    def release(self) -> None:
        """Let end what is held."""
        self.holds.clear()
        self.change()

    def settle(self, number: int, *, state: Any = "withdrawn", by: str | None = None) -> None:
        answer = {"kind": "allow_once"} if state == "answered" else None
        change = {"state": state, "withdrawn": "the turn ended", "by": by, "answer": answer}
        self._request(attrs.evolve(self.requests[id_of(number)], **change))

    def _request(self, info: RequestInfo) -> None:
        self.requests[info.id] = info
        self.request_changes.append(info.id)
        self.change()

    def wake(self, body: str, **more: Any) -> None:
        """The person gets a message."""
        fields = {"id": f"m{len(self.messages)}", "sender": "term:build", **more}
        self.messages.append(Message(body=body, text=body, timestamp=utc_now(), **fields))
        self.change()

    def report(self, session: str, number: int, body: str, status: str = "ok") -> None:
        """The person gets the report of a turn's end."""
        id_ = f"session:{session}/turn:{number}/human"
        self.wake(body, id=id_, sender="substrate", status=status)

    # What it answers: None is not yet.

    def reply_to(self, message: Request[Any]) -> Any:
        if type(message).__name__ in self.holds:
            return None
        match message:
            case FollowAgents(place=place):
                return self._agents_after(place)
            case FollowSession(handle=session):
                return self._entries(session, message)
            case FollowRequests(place=place):
                return self._requests_after(place)
            case ListRequests(id=id_, state=state):
                found = [*self.requests.values()]
                found = [each for each in found if state == "all" or each.state == "open"]
                return RequestList(requests=[each for each in found if id_ in (None, each.id)])
            case PersonAnswer():
                return self._answer(message)
            case ReadInbox():
                return MessageList(messages=[*self.messages], next=None)
            case FollowInbox(place=place):
                return self._messages_after(place)
            case PersonHandoff():
                if self.refuses:
                    raise InvalidRequest(self.refuses)
                self.handoffs.setdefault(message.key, message)
                return Receipt(id="x", status="landed", position=0)
            case RunCommand():
                return self._run(message.cmd)
            case ListSessions():
                return AgentList(result=[*self.agents.values()])
            case ListTerminals():
                return TerminalList(result=[])
        raise AssertionError(message)

    def _agents_after(self, place: AgentsPlace | None) -> AgentsNews | None:
        new = AgentsPlace(board="b", change=len(self.agent_changes))
        if place is None:
            found = [each for each in self.agents.values() if each.state != "closed"]
            return AgentsNews(agents=found, place=new, is_all=True)
        changed = [self.agents[each] for each in self.agent_changes[place.change :]]
        return AgentsNews(agents=changed, place=new) if changed else None

    def _entries(self, session: str, message: FollowSession) -> SessionNews | None:
        if session not in self.transcripts:
            raise NotFound("there is no such session")
        entries = self.transcripts[session]
        newest, is_over = len(entries) - 1, self.agents[session].state == "closed"
        if message.place is None:
            since = newest if message.since is None else message.since
            return SessionNews(entries=[], place=SessionPlace(seq=since), newest=newest)
        new = entries[message.place.seq + 1 :]
        if not new and not is_over:
            return None
        place = SessionPlace(seq=newest)
        return SessionNews(entries=new, place=place, newest=newest, is_over=is_over)

    def _messages_after(self, place: InboxPlace | None) -> InboxNews | None:
        seen = len(self.messages) if place is None else place.number
        if place is not None and seen >= len(self.messages):
            return None
        new = InboxPlace(at=0, number=len(self.messages), life=1)
        return InboxNews(messages=self.messages[seen:], missed=0, place=new)

    def _run(self, command: str) -> CommandRecord | None:
        if command in self.holds:
            return None
        self.runs.append(command)
        return record(cmd=command)

    def _requests_after(self, place: RequestPlace | None) -> RequestNews | None:
        new = RequestPlace(incarnation="i", change=len(self.request_changes))
        if place is None:
            found = [each for each in self.requests.values() if each.state == "open"]
            return RequestNews(changed=found, place=new, open=[each.id for each in found])
        ids = dict.fromkeys(self.request_changes[place.change :])
        return (
            RequestNews(changed=[self.requests[each] for each in ids], place=new) if ids else None
        )

    def _answer(self, message: PersonAnswer) -> RequestReply:
        found = self.requests[message.id]
        if found.state != "open":
            text = f"it was {found.state}"
            return RequestReply(
                id=found.id, outcome="already_answered", text=text, by=None, at=None
            )
        if self.refuses:
            raise InvalidRequest(self.refuses)
        self.answers.append(message)
        self.settle(int(message.id, 16), state="answered", by="human")
        return RequestReply(id=found.id, outcome="applied", text="", by=None, at=None)


SERVICES = ("sessions", "agents", "requests", "inboxes", "terminals")

PlayedMessage = (
    FollowAgents
    | FollowSession
    | FollowRequests
    | ListRequests
    | PersonAnswer
    | ReadInbox
    | FollowInbox
    | PersonHandoff
    | RunCommand
    | ListSessions
    | ListTerminals
)


class PlayedServices(Actor[PlayedMessage]):
    """All services of a daemon that its chat uses."""

    def __init__(self, *, world: World) -> None:
        self._world = world

    async def setup(self) -> None:
        for service in SERVICES:
            self.context.register("service", service)

    async def receive(self, message: PlayedMessage) -> None:
        self.context.start_soon(self._reply, message, self.defer(message))

    async def _reply(self, message: Any, reply: Reply[Any]) -> None:
        try:
            while (answer := self._world.reply_to(message)) is None and not reply.is_settled:
                await self._world.changes()
        except (NotFound, InvalidRequest) as error:
            reply.fail(error)
        else:
            reply.send(answer)


class Office(SimulatedDaemon):
    """One state directory with the lives of a daemon, its chat, and the people in it."""

    intensity = 1_000

    def __init__(self, simulation: Simulation, *, is_forum: bool = False) -> None:
        super().__init__(simulation, "root/telegram")
        self.api = SimulatedBotApi(is_forum=is_forum)
        self.world = World()

    # Lives of the daemon.

    def actors(self) -> tuple[ChildSpec, ...]:
        return (
            ChildSpec.of("services", PlayedServices, world=self.world),
            ChildSpec.of("telegram-outbox", Outbox, settings=SETTINGS),
            ChildSpec.of(
                "telegram",
                TelegramDesk,
                settings=SETTINGS,
                path=LEDGER,
                flusher=SimulatedFlusher(self.disk),
                address_of=str,  # no session has an alias
            ),
        )

    def dies(self) -> None:
        """Forget nothing: Telegram, sessions and requests are played and lose nothing."""

    async def begins(self) -> None:
        """Wait until the desk reports."""
        await self.passes(BEGUN_S)

    async def begins_again(self, *, power_fails: bool = False, draws: bool = False) -> None:
        """Kill the daemon, and start the next life."""
        await self.restart(power_fails=power_fails, draws=draws)
        await self.begins()

    async def crash_desk(self) -> None:
        """Crash the desk; it restarts and reads its ledger."""
        plan = Plan({("actor.receive.before[TelegramDesk]", 1): Crash()})
        with armed(plan, RUNTIME):
            self.system.ref("root/telegram").tell(Begin())
            await self.settles()
        await self.begins()

    # What is in the chat.

    def shows(self, part: str) -> int:
        """Return how many messages have this part."""
        return sum(part in each for each in self.api.texts())

    def message(self, part: str) -> dict[str, Any]:
        """Return the newest message that has this part."""
        found = self.api.find(part)
        assert found is not None, self.api.texts()
        return found

    async def press(self, message: dict[str, Any], label: str) -> None:
        self.api.press(message["message_id"], self.api.buttons(message)[label])
        await self.begins()

    async def write(self, text: str, **more: Any) -> int:
        """Write a text in the chat; return its update once it was carried out."""
        number = self.api.write(text, **more)
        await self.begins()
        return number

    @property
    def texts(self) -> list[str]:
        """The messages that sessions got."""
        return [each.context for each in self.world.handoffs.values()]

    # The disk.

    def refuse(self, *calls: str) -> None:
        """Refuse these calls of the disk; all that write if none is named."""
        self.plan.refuses = frozenset(calls) or WRITES

    async def accept(self) -> None:
        """Accept all calls again, and wait until the desk works."""
        self.plan.refuses = ()
        await self.passes(AGAIN_S)

    def lines(self) -> list[dict[str, Any]]:
        """Return the lines of the ledger, without their codes."""
        data = cached_image(self.disk.model).get(str(LEDGER)) or b""
        return [decode_line(each) for each in data.splitlines(keepends=True)]

    def has(self, path: Path) -> bool:
        return str(path) in cached_image(self.disk.model)

    async def restart_with(self, files: Mapping[Path, Iterable[Mapping[str, Any]]]) -> None:
        """Restart on ledgers of these lines, each sealed as the current file."""
        await self.stop()
        image = {str(path): b"".join(map(_sealed, lines)) for path, lines in files.items()}
        self.disk = SimulatedDisk({**EMPTY, **image}, self.plan)
        await self.start()
        await self.begins()


def _sealed(fields: Mapping[str, Any]) -> bytes:
    return seal_new_line(encode_line(fields), SEALS.of(str(LEDGER)))


def play(
    story: Callable[[Office], Awaitable[None]], *, seed: int = 1, is_forum: bool = False
) -> None:
    """Run a story of an office whose desk has begun."""

    async def run(simulation: Simulation) -> None:
        with reproducible(simulation.chance):
            office = Office(simulation, is_forum=is_forum)
            client = type("Client", (PlayedClient,), {"api": office.api})
            with mock.patch.object(httpx2, "AsyncClient", client):
                async with office.opened():
                    await office.begins()
                    await story(office)

    simulate(run, seed=seed)
