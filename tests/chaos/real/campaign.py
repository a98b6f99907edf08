"""One daemon through many incarnations: each is killed under load, and the next takes over."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs
import trio

from aegis.client.line import ClientError, CommandFailed
from tests.chaos.checking import observations
from tests.chaos.checking.evidence import Evidence, Life
from tests.chaos.checking.observations import Disturbance, Remains, RemainsKind, Span
from tests.chaos.commands import REAL
from tests.chaos.notebook import Notebook
from tests.chaos.real.deaths import (
    FAILING,
    RAW_LOG,
    AtCall,
    AtPoint,
    Death,
    Failing,
    UnderLoad,
    WhileStarting,
    WhileStopping,
)
from tests.chaos.real.load import McpReader, Reader, Sender, Typist, Worker
from tests.chaos.real.opener import Opener
from tests.chaos.real.processes import Process, holders_of, is_locked, processes_of
from tests.chaos.real.reading import Kept, life_id, read_all
from tests.chaos.real.scratch import GUARD_S, ScratchDaemon, ScratchError
from tests.chaos.real.tracing import tracer_of

SHARED, TYPED = ("t0", "t1"), ("t2",)
TERMINALS = (*SHARED, *TYPED)
PM, REVIEWER = "pm", "reviewer"
"""The subscribers; the first is also a writer."""

PARDONED = {
    WhileStopping: frozenset({"unavailable"}),
    Failing: frozenset({"storage", "unavailable"}),
}
"""The errors that clients may get from a stopping daemon, and from a failing disk."""

MADE = ("InjectedCrash", *{os.strerror(getattr(errno, name)) for _, name in FAILING})
"""The words in a log line about an injected crash or error."""

Client = Worker | Reader | Opener

KEPT = frozenset(
    {
        ".gitignore",
        "state.id",
        "version",
        "place.json",
        "lock",
        "port",
        "keys.json",
        "endpoint.json",
        "workspace.json",
        "workspaces.json",
    }
    | {"terminals", "inboxes"}
)
"""The files in the state's directory when no daemon runs; each may have a ``.new`` beside it."""


@attrs.frozen
class Address:
    """The clients' configuration: the same in every incarnation."""

    url: str
    token: str = attrs.field(repr=False)
    session: str = attrs.field(repr=False)


class Campaign:
    """A root, its daemon, and the clients that outlive it. ``port`` is the daemon's."""

    def __init__(self, directory: Path, chance: random.Random, *, port: int) -> None:
        self.daemon = ScratchDaemon(directory)
        self.notebook = Notebook()
        self._chance = chance
        self._port = port
        self._address: Address | None = None
        self._witness = directory / "witness"
        self._witness.touch()
        self.daemon.variables["WITNESS"] = str(self._witness)
        self._lives: list[Life] = []
        self._remains: list[Remains] = []
        self._alive: frozenset[Process] = frozenset()
        book = self.notebook
        self._readers: list[Reader] = [Reader(PM, book), McpReader(REVIEWER, book)]
        self._workers: list[Worker] = [
            *(Worker(f"builder-{name}", [name], book, chance) for name in SHARED),
            *(Typist(f"typist-{name}", [name], book, chance) for name in TYPED),
            Sender(PM, SHARED, book, chance),
        ]
        self._opener = Opener(book.new_name, chance)
        self._failures: list[BaseException] = []

    # Incarnations.

    def prepare(self) -> None:
        """Start the first daemon with terminals and subscribers; kill it when both are promised."""
        self.daemon.start("--port", str(self._port))
        with self.daemon.connect() as client:
            for name in TERMINALS:
                client.call("term_spawn", {"name": name})
                for handle in (PM, REVIEWER):
                    client.call("term_subscribe", {"name": name, "from_handle": handle})
        self._address = self._addressed()
        self._die()

    def live(self, death: Death) -> None:
        """Run one daemon from start to death. Raises ``ScratchError`` if it does not die."""
        self.notebook.life += 1
        self.notebook.pardoned = PARDONED.get(type(death), frozenset())
        began = self.notebook.moment()
        self._launch(death)
        if isinstance(death, WhileStarting):
            self.daemon.wait_dead(death.seconds)
        elif self.daemon.wait_ready():
            self._check_start()
            with self._load():
                self._await(death)
        self._die()
        if isinstance(death, Failing) and death.call == RAW_LOG:
            self._note_lost_output(began)
        if isinstance(death, WhileStopping):
            self._lives[-1] = attrs.evolve(self._lives[-1], stopping=True)

    def _note_lost_output(self, began: int) -> None:
        """Note that the raw logs of a life since ``began``, which has ended, may lack bytes.

        Commands whose end was noted, and that were killed before their record, are rebuilt from it.
        """
        book = self.notebook
        ended = observations.Death(life=book.life, kind="kill", moment=book.moment())
        span = Span(began, ended.moment)
        book.deaths.append(ended)
        book.disturbances.append(Disturbance(kind="disk fault", terminal=None, span=span))

    def _launch(self, death: Death) -> None:
        handles = [each.handle for each in self._workers]
        handles += [each.handle for each in self._readers]
        match death:
            case AtPoint():
                self.daemon.launch(faults=death.faults)
            case AtCall() | Failing():
                words = tracer_of(death, self.daemon.state, TERMINALS, handles)
                self.daemon.launch(tracer=words)
            case _:
                self.daemon.launch()

    def _await(self, death: Death) -> None:
        match death:
            case UnderLoad() | Failing():
                self.daemon.wait_dead(death.seconds)
            case WhileStopping():
                if not self.daemon.wait_dead(death.load_s):
                    self.daemon.process.terminate()
                    self.daemon.wait_dead(death.seconds)
            case _:
                if not self.daemon.wait_dead(GUARD_S):
                    raise ScratchError(f"{death} was not passed: {self._survivor()}")

    def _survivor(self) -> str:
        """Return the state of a daemon that should have died, for the report."""
        terminals = self.daemon.call("term_list")["result"]
        last = [each.token for each in self.notebook.commands[-len(self._workers) :]]
        book = self.notebook
        seen = f"records seen {book.seen[-1:]}, errors {[*book.errors, *map(str, book.refusals)]}"
        return f"{terminals}, last sent {last}, {seen}, log {self.daemon.log[-2000:]}"

    def _die(self) -> None:
        self.daemon.kill()
        if is_locked(self.daemon.state.lock):
            self._left("lock", str(self.daemon.state.lock))
        self._alive |= processes_of(self.daemon.root)
        if len(self._lives) <= self.notebook.life:
            self._lives.append(Life(number=self.notebook.life, killed=True))

    # Checks at a start.

    def _check_start(self) -> None:
        """Record the remains of earlier incarnations, and the missing terminals."""
        state, pid = self.daemon.state, self.daemon.process.pid
        left = self._alive & processes_of(self.daemon.root)
        for holder in holders_of(state.directory, before=pid):
            self._left("descriptor", f"{holder} holds a file of {state.directory}")
        missing: list[str] = []
        try:
            missing = self._missing()
            for broken in self._strange_address():
                self._complain(broken)
        except CommandFailed as error:
            self.notebook.was_refused("the checks at a start", error)
        except ClientError:  # the daemon is dead already
            pass
        self._alive = frozenset()
        life = Life(
            number=self.notebook.life,
            killed=True,
            missing=tuple(missing),
            left=tuple(sorted(map(str, left))),
        )
        self._lives.append(life)

    def _missing(self) -> list[str]:
        there = {info["name"] for info in self.daemon.call("term_list")["result"]}
        for broken in self._opener.settle(there):
            self._complain(broken)
        return [name for name in TERMINALS if name not in there]

    def _strange_address(self) -> Iterator[str]:
        now = self._addressed()
        if now != self._address:
            yield f"clients know it as {self._address}, and it is {now} with other keys or port"
        status = self.daemon.call("status")
        if status["pid"] != self.daemon.process.pid:
            yield f"its status is that of another process: {status}"

    def _addressed(self) -> Address:
        session = self.daemon.call("session_new", handle=REVIEWER)["url"]
        with self.daemon.connect() as client:
            return Address(client.endpoint.url, client.endpoint.token, session)

    def _left(self, kind: RemainsKind, what: str) -> None:
        life = self.notebook.life
        self._remains.append(Remains(life=life, kind=kind, what=what))

    def _complain(self, what: str) -> None:
        self.notebook.errors.append(f"in life {self.notebook.life} {what}")

    # The load.

    @contextlib.contextmanager
    def _load(self) -> Iterator[None]:
        clients: list[Client] = [*self._workers, *self._readers, self._opener]
        threads = self._threads(clients)
        try:
            yield
        finally:
            if self.daemon.is_running:
                self.daemon.process.kill()
            self._join(threads)
        self._check_clients()

    def _threads(self, clients: Iterable[Client]) -> list[threading.Thread]:
        threads = [threading.Thread(target=self._work, args=[client]) for client in clients]
        for thread in threads:
            thread.start()
        return threads

    def _join(self, threads: list[threading.Thread]) -> None:
        for thread in threads:
            thread.join(GUARD_S)
        if any(thread.is_alive() for thread in threads):
            raise ScratchError("a client still waits for a daemon that is dead")

    def _work(self, client: Client) -> None:
        try:
            client.work(self.daemon)
        except Exception as error:
            self._failures.append(error)

    def _check_clients(self) -> None:
        for failure in self._failures:
            raise failure

    # The end.

    def clean_up(self) -> None:
        """Leave no process, after success or failure."""
        if self.daemon.is_running:
            self.daemon.kill()
        for process in processes_of(self.daemon.root):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

    def finish(self) -> Evidence:
        """Run a last daemon without a kill: wait for every wake, read everything, stop.

        All is read through an MCP client. Raises ``ScratchError`` if it does not stop in order.
        """
        self.notebook.life += 1
        self.notebook.pardoned = frozenset()
        self.daemon.start()
        self._check_start()
        threads = self._threads(self._readers)
        ids = {name: life_id(self.daemon.state, name) for name in TERMINALS}
        self._run_last(ids)
        with self.daemon.connect() as client:
            for broken in self._opener.differences(client):
                self._complain(broken)
        kept = trio.run(read_all, self.daemon, TERMINALS, [each.handle for each in self._readers])
        if (code := self.daemon.stop()) != 0:
            raise ScratchError(f"the daemon stopped with {code}: {self.daemon.log[-2000:]}")
        self._join(threads)
        self._check_clients()
        self._check_nothing_left()
        self._lives[-1] = attrs.evolve(self._lives[-1], killed=False)
        return self._evidence(ids, kept)

    def _check_nothing_left(self) -> None:
        for process in processes_of(self.daemon.root):
            self._left("process", str(process))
        state = self.daemon.state
        for path in (*state.directory.iterdir(), *state.terminals.glob(".*")):
            if path.name.removesuffix(".new") not in KEPT:
                self._complain(f"{path} was left over")

    def _run_last(self, ids: dict[str, str]) -> None:
        """Run a last command on each terminal: after its wake, no earlier one comes."""
        last = Worker("last", TERMINALS, self.notebook, self._chance)
        with self.daemon.connect() as client:
            for name in TERMINALS:
                last.run(client, name, REAL.kinds["quick"])
        seqs = {seen.terminal: seen.record["seq"] for seen in self.notebook.seen[-len(TERMINALS) :]}
        for reader in self._readers:
            reader.has_seen(
                {f"term:{name}/{ids[name]}/{seqs[name]}/{reader.handle}" for name in TERMINALS}
            )

    def _evidence(self, ids: dict[str, str], kept: Kept) -> Evidence:
        book = self.notebook
        lines = self._witness.read_text().splitlines()
        return attrs.evolve(
            book.evidence(tuple(line.split()) for line in lines),
            ledgers=kept.ledgers,
            ids=ids,
            answers={reader.handle: tuple(reader.answers) for reader in self._readers},
            kept=kept.inboxes,
            lives=tuple(self._lives),
            subscriptions=None,
            remains=tuple(self._remains),
            errors=(*book.errors, *map(str, book.refusals), *self._errors_in_log()),
        )

    def _errors_in_log(self) -> list[str]:
        """Return the errors in the daemons' logs that were not injected."""
        lines = self.daemon.log.splitlines()
        return [
            line
            for line in lines
            if '"level": "error"' in line and not any(made in line for made in MADE)
        ]
