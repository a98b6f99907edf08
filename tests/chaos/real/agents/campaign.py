"""One daemon with agents through many incarnations: agents, guards and daemons are killed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from aegis.client.line import ClientError, LineClient
from aegis.journal.ledger import scan
from tests.chaos.checking.checker import Violation, violations
from tests.chaos.checking.evidence import Evidence
from tests.chaos.checking.evidence import Life as SeenLife
from tests.chaos.checking.observations import Remains
from tests.chaos.notebook import Notebook
from tests.chaos.real.agents.clients import (
    FIRST,
    AgentClient,
    Answerer,
    Manager,
    Sender,
    new_work,
)
from tests.chaos.real.agents.kills import AgentKill, DaemonKill, Life
from tests.chaos.real.agents.log import read_log
from tests.chaos.real.agents.people import Person, Weaver
from tests.chaos.real.processes import Process, processes_of
from tests.chaos.real.scratch import GUARD_S, ScratchDaemon, ScratchError

STAND_IN = Path(__file__).parents[3] / "fakes" / "agents" / "main.py"

POINT_S = 4.0
"""Seconds after which a daemon that has not passed its fault point is killed at random."""

REST_S = 90.0
"""Seconds in which the sessions of the last daemon must come to rest."""

LOOK_S = 0.1

Entry = Mapping[str, Any]


class AgentCampaign:
    """A root with agents, its daemon, and the clients that outlive it. ``kills`` counts them."""

    def __init__(self, directory: Path, chance: random.Random, *, port: int) -> None:
        self.daemon = ScratchDaemon(directory)
        self.kills: dict[str, int] = {}
        self._witness = directory / "agents.log"
        self._witness.touch()
        self._chance = chance
        self._options = ("--port", str(port), "--trust")
        self._book = book = Notebook(moments=iter(time.monotonic_ns, -1))
        self._human = Sender("human", book, chance)
        self._answerer = Answerer("answerer", book, chance)
        self._manager = Manager("manager", book, chance)
        self._weaver = Weaver("weaver", book, chance, self.daemon.root)
        senders = [Sender(f"client{number}", book, chance) for number in range(2)]
        self._clients: list[AgentClient] = [
            *(*senders, self._human, self._answerer, self._manager),
            *(Person("person", book, chance), self._weaver),
        ]
        self._lives: list[SeenLife] = []
        self._remains: list[Remains] = []
        self._alive: frozenset[Process] = frozenset()
        self._failures: list[BaseException] = []

    # Incarnations.

    def prepare(self) -> None:
        """Start the first daemon with two sessions, and kill it."""
        command = f"[{sys.executable}, {STAND_IN}, claude]"
        (self.daemon.root / ".aegis.yaml").write_text(
            f"agents:\n  asks:\n    provider: claude\n    permission: ask\n    command: {command}\n"
            f"    env: {{AGENT_WITNESS: {self._witness}, CLAUDE_CONFIG_DIR: {self._witness}.d}}\n"
            "limits: {sessions: 1000, spawns_per_hour: 10000, messages_per_hour: 100000}\n"
        )
        self._weaver.prepare()
        self.daemon.start(*self._options)
        with self.daemon.connect() as client:
            for handle in FIRST:
                self._manager.spawn(client, handle, new_work(self._book, "quick")[1])
        self._die(DaemonKill())

    def live(self, life: Life) -> None:
        """Run one daemon from start to death, and kill its agents meanwhile."""
        self._book.life += 1
        self.daemon.launch(*self._options, faults=life.death.faults)
        if self.daemon.wait_ready():
            self._check_start()
            with self._load():
                self._kill_agents(life.kills)
                point = life.death.point
                is_dead = self.daemon.wait_dead(POINT_S if point else life.death.after_s)
                self._count(life.death.place if is_dead or not point else f"late for {point}")
                self._die(life.death)
        else:
            self._count(life.death.place)
            self._die(life.death)

    def _kill_agents(self, kills: tuple[AgentKill, ...]) -> None:
        for kill in kills:
            if self.daemon.wait_dead(kill.after_s):
                return
            agents = [each for each in self._processes() if _is_agent(each)]
            if agents and self._kill(self._chance.choice(agents), kill):
                self._count(kill.victim)

    def _kill(self, agent: Process, kill: AgentKill) -> bool:
        try:
            parent = Path(f"/proc/{agent.pid}/stat").read_text().rpartition(")")[2].split()[1]
            if kill.victim != "agent":
                os.kill(int(parent), signal.SIGKILL)
            if kill.victim != "guard":
                os.kill(agent.pid, signal.SIGKILL)
        except (OSError, IndexError):
            return False
        return True

    def _count(self, place: str) -> None:
        self.kills[place] = self.kills.get(place, 0) + 1

    def _processes(self) -> list[Process]:
        return sorted(processes_of(self.daemon.root))

    def _die(self, death: DaemonKill) -> None:
        victims = self._processes() if death.also else []
        self.daemon.kill()
        for each in victims:
            if "guard.py" in each.words or death.also.endswith("agents"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each.pid, signal.SIGKILL)
        self._alive |= processes_of(self.daemon.root)
        if len(self._lives) <= self._book.life:
            self._lives.append(SeenLife(number=self._book.life, killed=True))

    def _check_start(self) -> None:
        """Record the processes of earlier incarnations."""
        left = self._alive & processes_of(self.daemon.root)
        self._alive = frozenset()
        names = tuple(map(str, left))
        self._lives.append(SeenLife(number=self._book.life, killed=True, left=names))

    # The load.

    @contextlib.contextmanager
    def _load(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._work, args=[each]) for each in self._clients]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            if self.daemon.is_running:
                self.daemon.process.kill()
            for thread in threads:
                thread.join(GUARD_S)
        if any(thread.is_alive() for thread in threads):
            raise ScratchError("a client still waits for a daemon that is dead")
        for failure in self._failures:
            raise failure

    def _work(self, client: AgentClient) -> None:
        try:
            client.work(self.daemon)
        except ClientError:
            return
        except Exception as error:
            self._failures.append(error)

    # The end.

    def finish(self) -> Evidence:
        """Run a last daemon without a kill: all sessions come to rest, and everything is read.

        Raises ``ScratchError`` if it does not stop in order.
        """
        self._book.life += 1
        self.daemon.start(*self._options)
        self._check_start()
        with self.daemon.connect() as client:
            for session in client.call("list_sessions", {})["result"]:
                self._human.send(client, session["handle"], "quick")
            self._settle(client)
            self._read(client)
        if (code := self.daemon.stop()) != 0:
            raise ScratchError(f"the daemon stopped with {code}: {self.daemon.log[-2000:]}")
        for process in processes_of(self.daemon.root):
            self._remains.append(Remains(life=self._book.life, kind="process", what=str(process)))
        self._lives[-1] = attrs.evolve(self._lives[-1], killed=False)
        read_log(self._witness.read_text().splitlines(), self._book.agents)
        evidence = self._book.evidence(())
        return attrs.evolve(
            evidence,
            lives=tuple(self._lives),
            remains=tuple(self._remains),
            agents=attrs.evolve(evidence.agents, reads_late=True),
            subscriptions=(),
        )

    def _settle(self, client: LineClient) -> None:
        """Answer every request and end every turn that hangs, until all sessions are at rest."""
        end = time.monotonic() + REST_S
        while busy := self._busy(client):
            if time.monotonic() > end:
                self._book.agents.stuck += busy
                return
            for request in client.call("request_list", {"state": "open"})["requests"]:
                self._answerer.answer(client, request["id"], request["digest"], "allow")
            threading.Event().wait(LOOK_S)

    def _busy(self, client: LineClient) -> list[str]:
        busy = []
        for each in client.call("list_sessions", {})["result"]:
            handle = each["handle"]
            if each["state"] == "working" and self._hangs(client, handle):
                self._manager.order(client, "interrupt", handle)
            unread = client.call("inbox_read", {"from_handle": handle})["messages"]
            if each["state"] != "idle" or each["waiting"] or unread:
                busy.append(f"{handle} is {each['state']} ({each['reason']}), {len(unread)} unread")
        return busy

    def _hangs(self, client: LineClient, handle: str) -> bool:
        entries = client.call("session_read", {"handle": handle, "last_n": 100})["result"]
        opened = [each["fields"] for each in entries if each["kind"] == "turn_opened"]
        return bool(opened) and "HANG" in opened[-1]["text"]

    def _read(self, client: LineClient) -> None:
        notes = self._book.agents
        notes.sessions += client.call("list_sessions", {"closed": True})["result"]
        for each in notes.sessions:
            notes.transcripts[each["id"]] = self._transcript(each["id"])
        handles = [*(each["handle"] for each in notes.sessions), "client0", "client1"]
        for handle in handles:
            notes.inboxes[handle] = self._inbox(client, {"from_handle": handle})
        notes.inboxes["human"] = self._inbox(client, {})
        notes.requests += client.call("request_list", {"state": "all", "limit": 500})["requests"]

    def _transcript(self, session: str) -> tuple[Entry, ...]:
        """Read a transcript from its file: clients cannot read those of closed sessions."""
        path = self.daemon.state.agents / session / "transcript.jsonl"
        return tuple(read_lines(path.read_bytes()))

    def _inbox(self, client: LineClient, whose: Mapping[str, object]) -> tuple[Entry, ...]:
        request = {"unread": False, "limit": 1000, **whose}
        return tuple(client.call("inbox_read", request)["messages"])

    def violations(self, evidence: Evidence) -> list[Violation]:
        """Return the broken promises, of a campaign that is finished."""
        return [*violations(evidence), *self._weaver.violations()]

    def clean_up(self) -> None:
        """Leave no process, after success or failure."""
        if self.daemon.is_running:
            self.daemon.kill()
        for process in processes_of(self.daemon.root):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)


def _is_agent(process: Process) -> bool:
    return STAND_IN.name in process.words and "guard.py" not in process.words


def read_lines(data: bytes) -> Iterator[Entry]:
    """Return the sound lines of a ledger."""
    for line in scan(data).lines:
        yield line.fields
