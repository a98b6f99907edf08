"""The scenario of an agent session: a prompt, a permission, a lost turn, and the close.

Sessions, directory, driver, inboxes and desk are the real ones; the agent's process is simulated.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import ChildSpec, Ref, SupervisorSpec, System
from actors.faults import RUNTIME, FaultTable
from aegis.agents.directory.board import Board
from aegis.agents.directory.directory import AgentDirectory
from aegis.agents.directory.programs import Programs
from aegis.agents.directory.roster import Roster, RosterRow
from aegis.agents.faults import AGENTS
from aegis.errors import AlreadyExists
from aegis.inboxes.faults import INBOXES
from aegis.inboxes.reading import message_archive
from aegis.inboxes.router import InboxRouter
from aegis.journal.disk import read_file
from aegis.journal.faults import JOURNAL
from aegis.journal.ledger import scan
from aegis.journal.opening import open_ledger
from aegis.journal.table import read_rows
from aegis.processes.process_scan import ProcessScan
from aegis.protocol.agents import CloseAgent, ReadSession, ShowAgent, SpawnAgent
from aegis.protocol.inboxes import Handoff, ReadInbox
from aegis.protocol.requests import AnswerRequest, ListRequests
from aegis.requests.desk import RequestDesk
from aegis.requests.faults import REQUESTS
from aegis.requests.records import Record
from tests.chaos.checking.agent_evidence import Effect, UserFrame
from tests.chaos.exhaustive import Evidence, World
from tests.chaos.histories.tree import CONFIGURATION, SimulatedKeys
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.simulated_agent import AgentWorld
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.machine.simulated_host import SimulatedHost
from tests.chaos.machine.simulated_line import simulated_agents
from tests.chaos.machine.simulated_processes import Machine
from tests.chaos.reproducible import reproducible
from tests.faults.inboxes import stored_messages
from tests.faults.retrying import PAUSE_S, ask_until_answered, until_done

STATE = Path("/state")
INBOXES_DIRECTORY, AGENTS_DIRECTORY = STATE / "inboxes", STATE / "agents"
LEDGER = STATE / "requests.jsonl"
ROSTER = AGENTS_DIRECTORY / "sessions.jsonl"
AGENT, CLIENT = "ann", "pm"
PATIENCE = 300
"""The most looks at a session, a second apart: a disk may stall, and an agent start again."""

MOST_BYTES = 2**20


@attrs.frozen
class Spawned:
    """A session that its spawner knows."""

    id: str


@attrs.frozen
class Accepted:
    """A message to a handle, accepted under this id."""

    handle: str
    id: str


@attrs.frozen
class Answered:
    """The answer to the request with this id was applied."""

    id: str


@attrs.frozen
class Closed:
    """The close was answered."""


@attrs.frozen
class Held:
    """The state after recovery: sessions, the turns of each transcript, inboxes, answers."""

    roster: dict[str, bool]
    turns: dict[str, dict[str, str]]
    losses: frozenset[str]
    closed: frozenset[str]
    inboxes: dict[str, tuple[str, ...]]
    answers: dict[str, str]


class _Confirmed(list[Any]):
    """A log of programs whose entries are confirmed at once, unless the daemon is dead."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def append(self, item: Any) -> None:
        super().append(item)
        self._world.confirm(item)


@attrs.frozen
class Turns:
    """One session through turns that complete, ask, die, and are reported; then it is closed."""

    name: str = "agent session"
    image: Image = attrs.field(factory=lambda: {"/": None, "/state": None})
    tables: tuple[FaultTable, ...] = (JOURNAL, AGENTS, REQUESTS, INBOXES, RUNTIME)
    subjects: tuple[str, ...] = ("AgentSession", "AgentDirectory")
    recovers_durably: bool = False
    shows_only_durable: bool = True

    async def play(self, world: World) -> None:
        numbers, lives = count(100), count(1)
        agents = AgentWorld(lambda: next(numbers))
        agents.frames = _Confirmed(world)
        agents.effects = _Confirmed(world)
        with reproducible(world.simulation.chance), simulated_agents(agents):
            async with trio.open_nursery() as nursery:
                machine = Machine(nursery, world.simulation.chance)

                async def live() -> None:
                    spec = session_tree(world, machine, f"life{next(lives)}")
                    async with world.simulation.open_system(spec) as system:
                        await _Client(world, system, numbers).play()

                await until_done(live)
                nursery.cancel_scope.cancel()

    def recover(self, disk: SimulatedDisk) -> Held:
        roster = roster_on(disk)
        turns: dict[str, dict[str, str]] = {}
        losses: set[str] = set()
        closed: set[str] = set()
        for id_ in roster.by_id:
            known = turns[id_] = {}
            by_number: dict[int, str] = {}
            for entry in ledger_lines(disk, AGENTS_DIRECTORY / id_ / "transcript.jsonl"):
                match entry:
                    case {"kind": "turn_opened", "turn": int(number), "uuid": str(uuid)}:
                        by_number[number] = uuid
                        known[uuid] = "opened"
                    case {"kind": "turn_ended", "turn": int(number), "outcome": str(outcome)}:
                        known[by_number.get(number, str(number))] = outcome
                        if outcome != "completed":
                            losses.add(f"session:{id_}/turn:{number}/")
                    case {"kind": "closed"}:
                        closed.add(id_)
        return Held(
            {each.id: each.is_closed for each in roster.by_id.values()},
            turns,
            frozenset(losses),
            frozenset(closed),
            {handle: inbox_ids(disk, handle) for handle in (AGENT, CLIENT)},
            _answers(disk),
        )

    def check(self, evidence: Evidence, found: Held, *, killed: bool) -> Iterator[str]:
        opened = {uuid for turns in found.turns.values() for uuid in turns}
        frames = [each for each in evidence.confirmed if isinstance(each, UserFrame)]
        uuids = [each.uuid for each in frames]
        if len(set(uuids)) < len(uuids):
            yield f"a turn was sent twice: {uuids}"
        tokens = [token for each in frames for token in each.tokens]
        if len(set(tokens)) < len(tokens):
            yield f"a message was sent twice: {tokens}"
        for message in found.inboxes[CLIENT]:
            if not any(message.startswith(loss) for loss in found.losses):
                yield f"{message} reports a loss that is not in the transcript"
        yield from self._lost(evidence, found, opened)

    def _lost(self, evidence: Evidence, found: Held, opened: set[str]) -> Iterator[str]:
        for each in evidence.confirmed:
            match each:
                case Spawned(id=id_) if id_ not in found.roster:
                    yield f"session {id_} was spawned and is lost"
                case Accepted(handle=handle, id=id_) if id_ not in found.inboxes[handle]:
                    yield f"message {id_} was accepted by {handle} and is lost"
                case UserFrame(uuid=uuid) if uuid not in opened:
                    yield f"turn {uuid} was sent and is not in the transcript"
                case Effect(token=token) if each.is_allowed:
                    if found.answers.get(token) != "allow_once":
                        yield f"{token} was allowed, stored is {found.answers.get(token)}"
                case Closed() if not found.closed:
                    yield "the session was closed and is not"


class _Client:
    """The client of one incarnation: it does what is not done yet."""

    def __init__(self, world: World, system: System, numbers: Iterator[int]) -> None:
        self._world = world
        self._system = system
        self._numbers = numbers
        self._sessions: Ref[Any] = system.ref("root/agent-directory")
        self._inboxes: Ref[Any] = system.ref("root/inbox-router")
        self._desk: Ref[Any] = system.ref("root/requests")

    async def play(self) -> None:
        await self._has_ended(await self._spawn())
        for kind in ("ask", "die"):
            await self._has_ended(await self._work(kind))
        await ask_until_answered(self._sessions, CloseAgent(handle=AGENT))
        self._world.confirm(Closed())

    async def _spawn(self) -> str:
        """Spawn the session, and return the id of its first message."""
        request = SpawnAgent(handle=AGENT, prompt="@work.1.quick@", from_handle=CLIENT)
        info = await until_done(lambda: self._spawned(request))
        if info is None:  # a spawn was refused, or its answer was lost: perhaps without prompt
            # A session whose start failed is started by the next command, not by a message.
            await ask_until_answered(self._sessions, ShowAgent(handle=AGENT))
            return await self._work("quick")
        self._world.confirm(Spawned(info.id))
        self._world.confirm(Accepted(AGENT, f"spawn:{info.id}"))
        return f"spawn:{info.id}"

    async def _spawned(self, request: SpawnAgent) -> Any:
        try:
            return await self._sessions.ask(request)
        except AlreadyExists:
            return None

    async def _work(self, kind: str) -> str:
        """Send one order; a repeated one after a lost receipt is another message."""

        async def send() -> Any:
            token = f"@work.{next(self._numbers)}.{kind}@"
            request = Handoff(target_handle=AGENT, context=token, from_handle=CLIENT)
            return await self._inboxes.ask(request)

        receipt = await until_done(send)
        self._world.confirm(Accepted(AGENT, receipt.id))
        return str(receipt.id)

    async def _has_ended(self, message: str) -> None:
        """Wait for the end of the turn of a message, and for the report if it was lost."""
        for _ in range(PATIENCE):
            await self._answer()
            turn = await self._turn_of(message)
            if turn is not None and await self._is_over(turn):
                return
            await trio.sleep(PAUSE_S)
        raise AssertionError(f"the turn of {message} does not end")

    async def _answer(self) -> None:
        """Allow each open request."""
        listed = await ask_until_answered(self._desk, ListRequests())
        for each in listed.requests:
            answer = AnswerRequest(id=each.id, digest=each.digest, answer="allow")
            reply = await ask_until_answered(self._desk, answer)
            if reply.outcome == "applied":
                self._world.confirm(Answered(each.id))

    async def _turn_of(self, message: str) -> int | None:
        for fields in await self._entries("turn_opened"):
            if message in [each["id"] for each in fields["messages"]]:
                return int(fields["turn"])
        return None

    async def _is_over(self, turn: int) -> bool:
        ends = {each["turn"]: each["outcome"] for each in await self._entries("turn_ended")}
        request = ReadInbox(unread=False, from_handle=CLIENT)
        reports = (await ask_until_answered(self._inboxes, request)).messages
        for report in reports:
            self._world.confirm(Accepted(CLIENT, report.id))
        is_reported = any(f"/turn:{turn}/" in report.id for report in reports)
        return ends.get(turn) == "completed" or (turn in ends and is_reported)

    async def _entries(self, kind: str) -> list[dict[str, Any]]:
        request = ReadSession(handle=AGENT, last_n=1000)
        found = await ask_until_answered(self._sessions, request)
        return [each.fields for each in found.result if each.kind == kind]


def session_tree(world: World, machine: Machine, life: str) -> SupervisorSpec:
    """Return a daemon's tree with sessions, inboxes and requests, and nothing else."""
    programs = Programs(
        configuration=attrs.evolve(CONFIGURATION, default_agent="asks"),
        keys=SimulatedKeys(),
        scan=ProcessScan(SimulatedHost(machine)),
        root="/state",
        variables={},
    )
    flusher = world.flusher
    return SupervisorSpec(
        name="root",
        children=(
            SupervisorSpec(name="inboxes", dynamic=True),
            ChildSpec.of(
                "inbox-router",
                InboxRouter,
                directory=INBOXES_DIRECTORY,
                archive=message_archive(INBOXES_DIRECTORY.parent / "archive", flusher.disk),
                supervisor="root/inboxes",
                flusher=flusher,
            ),
            ChildSpec.of(
                "requests",
                RequestDesk,
                path=LEDGER,
                archive=Path("/state/archive"),
                flusher=flusher,
                life=life,
            ),
            SupervisorSpec(name="agents", dynamic=True),
            ChildSpec.of(
                "agent-directory",
                AgentDirectory,
                root="/state",
                directory=AGENTS_DIRECTORY,
                inboxes=INBOXES_DIRECTORY,
                programs=programs,
                board=Board(),
                supervisor="root/agents",
                archive=Path("/state/archive"),
                flusher=flusher,
            ),
        ),
    )


def ledger_lines(disk: SimulatedDisk, path: Path) -> list[dict[str, Any]]:
    """Return the lines of a ledger, as a start of the daemon leaves it."""
    disk.close(open_ledger(disk, path).fd)
    data = read_file(disk, path, max_bytes=MOST_BYTES) or b""
    return [line.fields for line in scan(data).lines]


def roster_on(disk: SimulatedDisk) -> Roster:
    """Return the roster, as a start of the daemon leaves it."""
    opened = open_ledger(disk, ROSTER)
    disk.close(opened.fd)
    roster = Roster()
    roster.begin(read_rows(disk, ROSTER, opened.length, RosterRow).values())
    return roster


def inbox_ids(disk: SimulatedDisk, handle: str) -> tuple[str, ...]:
    """Return the ids of the messages of an inbox, as a start of the daemon leaves it."""
    path = INBOXES_DIRECTORY / f"{handle}.jsonl"
    opened = open_ledger(disk, path)
    disk.close(opened.fd)
    return tuple(each.id for each in stored_messages(disk, path))


def _answers(disk: SimulatedDisk) -> dict[str, str]:
    """Return the kind of the stored answer by the token of the question."""
    opened = open_ledger(disk, LEDGER)
    disk.close(opened.fd)
    found = {}
    rows: dict[str, Record] = read_rows(disk, LEDGER, opened.length, Record)
    for each in rows.values():
        answer: Any = each.answer
        found[str((each.input or {})["command"]).split()[-1]] = (
            "" if answer is None else answer.kind
        )
    return found
