"""Clients at work on terminals of several places, while places are cut off or die; judged after."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs
import trio

from aegis.client.line import CommandFailed, LineClient
from tests.chaos.checking.evidence import Evidence, Life, SeenRecord
from tests.chaos.checking.observations import Change, Death, Disturbance, Remains, Span, Subscribing
from tests.chaos.commands import REAL, Kind
from tests.chaos.notebook import Notebook, Refusal
from tests.chaos.real.load import McpReader, Reader, Sender, Typist, Worker, pause
from tests.chaos.real.opener import Opener
from tests.chaos.real.processes import processes_of
from tests.chaos.real.reading import life_id, read_all
from tests.chaos.real.scratch import GUARD_S, ScratchDaemon
from tests.chaos.real.watching import TemporarySubscriber, Watcher

Client = Worker | Reader | Opener

PM, REVIEWER, COMER = "pm", "reviewer", "comer"
"""Who subscribes: the first two to every command of every terminal, the third comes and goes."""


SLOW = Kind(text="echo %; sleep 1; echo % late", stdout="%\n% late\n", weight=3)
"""Most likely in flight when something happens."""


class SlowWorker(Worker):
    """Some of its commands take a while."""

    _kinds = (*REAL.kinds.values(), SLOW)


class SlowTypist(Typist):
    """The same of one that types."""

    _kinds = (*Typist._kinds, SLOW)


@attrs.frozen(kw_only=True)
class Place:
    """A root, and the terminals whose files are there.

    Several clients run commands on each of ``shared``; on each of ``typed`` is one that types.
    ``node`` is what to ask for when they are spawned.
    """

    process: ScratchDaemon
    shared: tuple[str, ...] = ()
    typed: tuple[str, ...] = ()
    node: str | None = None

    @property
    def terminals(self) -> tuple[str, ...]:
        return (*self.shared, *self.typed)


@attrs.define
class Trouble:
    """Something of which calls on ``terminals`` may be told, from ``asked`` to ``over``."""

    terminals: frozenset[str]
    asked: int
    is_crash: bool
    over: int | None = None

    @property
    def span(self) -> Span:
        return Span(self.asked, self.over)

    def explains(self, refusal: Refusal) -> bool:
        """Whether the call may have met it."""
        concerns = refusal.terminal in self.terminals and refusal.code == "unavailable"
        return concerns and self.span.overlaps(refusal.span)


class NodeLoad:
    """The load on a daemon whose terminals are at ``places``, through all that befalls them.

    ``witness`` is the file that commands write to, whose path their environment has as WITNESS.
    """

    def __init__(
        self, daemon: ScratchDaemon, places: Sequence[Place], chance: random.Random, witness: Path
    ) -> None:
        self.daemon = daemon
        self.places = places
        self.book = Notebook()
        self._witness = witness
        self._lives: list[Life] = []
        self._deaths: list[Death] = []
        self._changes: list[Change] = []
        self._troubles: list[Trouble] = []
        self._remains: list[Remains] = []
        self._failures: list[Exception] = []
        self._threads: list[threading.Thread] = []
        self._reading: list[threading.Thread] = []
        self._chance = chance
        self._homes: dict[str, ScratchDaemon] = {}
        self._make_clients()

    def _make_clients(self) -> None:
        book, chance = self.book, self._chance
        shared = [name for place in self.places for name in place.shared]
        typed = [name for place in self.places for name in place.typed]
        self._readers = [Reader(PM, book), McpReader(REVIEWER, book), Reader(COMER, book)]
        names = [name for place in self.places for name in place.terminals]
        self._comer = TemporarySubscriber(COMER, names, book, self._new_chance())
        self._workers: list[Worker] = [
            *(SlowWorker(f"builder-{name}", [name], book, self._new_chance()) for name in shared),
            *(SlowTypist(f"typist-{name}", [name], book, self._new_chance()) for name in typed),
            Sender(PM, shared, book, self._new_chance()),
            Watcher("watcher", names, book, self._new_chance()),
            self._comer,
        ]
        self._openers = [
            Opener(book.new_name, self._new_chance(), node=place.node, is_over=book.is_over)
            for place in self.places
        ]
        self._last = Worker("last", names, book, chance)

    def _new_chance(self) -> random.Random:
        """Each client has its own, so that what one does depends not on when others do it."""
        return random.Random(self._chance.random())

    @property
    def terminals(self) -> list[str]:
        """All that were spawned."""
        return list(self._homes)

    # The load.

    def prepare(self) -> None:
        """Spawn the terminals, subscribe, begin. The processes are up."""
        for place in self.places:
            for name in place.terminals:
                self.spawn(name, place.process, place.node)
        self._is_ready()
        self.begin()

    def spawn(self, name: str, process: ScratchDaemon, node: str | None) -> None:
        """Spawn a terminal on ``node``, whose files will be those of ``process``; subscribe."""
        asked = self.book.moment()
        with self.daemon.connect() as client:
            self._spawn(client, {"name": name} | ({} if node is None else {"node": node}))
            span = Span(asked, self.book.moment())
            self._changes.append(Change(kind="spawn", terminal=name, span=span, done=True))
            self._homes[name] = process
            for handle in (PM, REVIEWER):
                self._subscribe(client, name, handle)

    def _spawn(self, client: LineClient, arguments: Mapping[str, str]) -> None:
        """A place that is up again may take a moment to be used."""
        deadline = time.monotonic() + GUARD_S
        while True:
            try:
                client.call("term_spawn", arguments)
            except CommandFailed as error:
                if "try again in a moment" not in str(error) or time.monotonic() > deadline:
                    raise
                pause()
            else:
                return

    def run(self, name: str) -> None:
        """Run a command that must be carried out."""
        with self.daemon.connect() as client:
            self._run(client, name)

    def _run(self, client: LineClient, name: str) -> SeenRecord:
        token = self._last.run(client, name, REAL.kinds["quick"])
        seen = [each for each in self.book.seen if token in str(each.record["cmd"])]
        assert seen, list(map(str, self.book.refusals[-1:]))
        return seen[0]

    def _subscribe(self, client: LineClient, name: str, handle: str) -> None:
        asked = self.book.moment()
        client.call("term_subscribe", {"name": name, "from_handle": handle})
        span = Span(asked, self.book.moment())
        self.book.subscriptions.append(
            Subscribing(handle=handle, terminal=name, span=span, done=True)
        )

    def _is_ready(self) -> None:
        life = Life(number=self.book.life, killed=False, ready=self.book.moment())
        self._lives.append(life)

    def begin(self) -> None:
        """Let all clients work."""
        self._threads = self._start([*self._workers, *self._openers])
        self._reading = self._start(self._readers)

    def _start(self, clients: Iterable[Client]) -> list[threading.Thread]:
        threads = [threading.Thread(target=self._work, args=[each]) for each in clients]
        for thread in threads:
            thread.start()
        return threads

    def _work(self, client: Client) -> None:
        try:
            client.work(self.daemon)
        except Exception as error:
            self._failures.append(error)

    def _join(self, threads: list[threading.Thread]) -> None:
        for thread in threads:
            thread.join(GUARD_S)
        assert not any(thread.is_alive() for thread in threads), "a client waits for ever"

    # What befalls it.

    @contextmanager
    def trouble(self, terminals: Iterable[str], *, is_crash: bool = False) -> Iterator[None]:
        """Within it calls on these terminals may fail; with ``is_crash`` their actors may too."""
        trouble = Trouble(frozenset(terminals), self.book.moment(), is_crash)
        self._troubles.append(trouble)
        yield
        trouble.over = self.book.moment()

    def kill_daemon(self) -> None:
        """With -9. Its clients go away; the next life is to be told with ``lives_again``."""
        self.daemon.kill()
        self._lives[-1] = attrs.evolve(self._lives[-1], killed=True)
        moment = self.book.moment()
        self._deaths.append(Death(life=self.book.life, kind="kill", moment=moment))
        self._join([*self._threads, *self._reading])

    def lives_again(self) -> None:
        """The next life of the daemon is ready: clients may come."""
        self.book.life += 1
        self._is_ready()
        self.begin()

    # The end.

    def stop_working(self) -> None:
        """Let each client finish what it is about."""
        self.book.is_over.set()
        self._join(self._threads)

    def finish(self) -> Evidence:
        """Wait until every wake came, read everything, stop every process in order, and look."""
        self.stop_working()
        ids = {name: life_id(each.state, name) for name, each in self._homes.items()}
        self._run_last(ids)
        self._settle_opened()
        handles = [each.handle for each in self._readers]
        kept = trio.run(read_all, self.daemon, self.terminals, handles)
        for process in {id(place.process): place.process for place in self.places}.values():
            assert process.stop() == 0, process.log[-2000:]
            self._look_what_is_left(process)
        self._join(self._reading)
        for failure in self._failures:
            raise failure
        return self._evidence(ids, kept.ledgers, kept.inboxes)

    def _look_what_is_left(self, process: ScratchDaemon) -> None:
        for left in processes_of(process.root):
            each = Remains(life=self.book.life, kind="process", what=str(left))
            self._remains.append(each)

    def _run_last(self, ids: Mapping[str, str]) -> None:
        """A last command on each: when its wake came, all before it did, or never will."""
        due: dict[str, int] = {}
        with self.daemon.connect() as client:
            for name in self.terminals:
                self._comer.subscribe(client, name, on=True)
                due[name] = self._run(client, name).record["seq"]
        for reader in self._readers:
            reader.has_seen(
                {f"term:{name}/{ids[name]}/{seq}/{reader.handle}" for name, seq in due.items()}
            )

    def _settle_opened(self) -> None:
        """What was told of terminals that came and went is how they stand."""
        there = {info["name"] for info in self.daemon.call("term_list")["result"]}
        with self.daemon.connect() as client:
            for opener in self._openers:
                self.book.errors += [*opener.settle(there), *opener.differences(client)]

    def _evidence(
        self,
        ids: Mapping[str, str],
        ledgers: Mapping[str, tuple[Mapping[str, object], ...]],
        inboxes: Mapping[str, tuple[Mapping[str, object], ...]],
    ) -> Evidence:
        return attrs.evolve(
            self.book.evidence(self._witnessed()),
            ledgers=ledgers,
            ids=ids,
            answers={each.handle: tuple(each.answers) for each in self._readers},
            kept=inboxes,
            lives=tuple(self._lives),
            errors=tuple(self._unexplained()),
            changes=tuple(self._changes),
            disturbances=(*self.book.disturbances, *self._crashes()),
            deaths=tuple(self._deaths),
            remains=tuple(self._remains),
        )

    def _crashes(self) -> Iterator[Disturbance]:
        for trouble in self._troubles:
            if trouble.is_crash:
                for name in sorted(trouble.terminals):
                    yield Disturbance(kind="crash", terminal=name, span=trouble.span)

    def _unexplained(self) -> Iterator[str]:
        """Refusals that nothing explains, and errors in the logs."""
        yield from self.book.errors
        for refusal in self.book.refusals:
            if not any(trouble.explains(refusal) for trouble in self._troubles):
                yield f"{refusal} at {refusal.span}"
        for place in self.places:
            for line in place.process.log.splitlines():
                if '"level": "error"' in line or not line.startswith("{"):
                    yield line

    def _witnessed(self) -> list[tuple[str, ...]]:
        return [tuple(line.split()) for line in self._witness.read_text().splitlines()]
