"""One daemon through many lives: each is killed under load, and the next goes on from there."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import attrs

from aegis.chaos.checking.evidence import Evidence, Life
from aegis.chaos.checking.happenings import Message, Record
from aegis.client.line import CommandFailed, LineClient, LineError
from tests.crash.commands import KINDS
from tests.crash.deaths import AtPoint, Death, UnderLoad, WhileStarting
from tests.crash.load import McpReader, Notebook, Reader, Sender, Typist, Worker
from tests.crash.processes import Process, processes_of
from tests.e2e.harness import GUARD_S, DaemonProcess

SHARED, TYPED = ("t0", "t1"), ("t2",)
TERMINALS = (*SHARED, *TYPED)
PM, REVIEWER = "pm", "reviewer"
"""The subscribers; the first is also a writer."""


class Campaign:
    """A root, its daemon, and the clients that outlive it."""

    def __init__(self, directory: Path, chance: random.Random) -> None:
        self.daemon = DaemonProcess(directory)
        self.notebook = Notebook()
        self._witness = directory / "witness"
        self._witness.touch()
        self.daemon.variables["WITNESS"] = str(self._witness)
        self._lives: list[Life] = []
        self._alive: frozenset[Process] = frozenset()
        self._readers = [Reader(PM), McpReader(REVIEWER)]
        self._workers = [
            *(Worker(f"builder-{name}", [name], self.notebook, chance) for name in SHARED),
            *(Typist(f"typist-{name}", [name], self.notebook, chance) for name in TYPED),
            Sender(PM, SHARED, self.notebook, chance),
        ]
        self._failures: list[BaseException] = []

    # Lives.

    def prepare(self) -> None:
        """The first life: terminals, subscribers; it is killed once both were promised."""
        self.daemon.start()
        with self.daemon.connect() as client:
            for name in TERMINALS:
                client.call("term_spawn", {"name": name})
                for handle in (PM, REVIEWER):
                    client.call("term_subscribe", {"name": name, "from_handle": handle})
        self._die()

    def live(self, death: Death) -> None:
        """One life, from its start to its death."""
        faults = death.faults if isinstance(death, AtPoint) else ""
        self.notebook.life += 1
        self.daemon.launch(faults=faults)
        if isinstance(death, WhileStarting):
            self._wait_dead(death.seconds)
        elif self.daemon.wait_ready():
            self._look_around()
            with self._load():
                if isinstance(death, UnderLoad):
                    self._wait_dead(death.seconds)
                else:
                    self._wait_dead(GUARD_S)
                    assert not self.daemon.is_running, f"{death} was not passed: {self._standing()}"
        self._die()

    def _wait_dead(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.daemon.process.wait(seconds)

    def _standing(self) -> str:
        """What a failure should tell of a daemon that lives on."""
        terminals = self.daemon.call("term_list")["result"]
        last = [each.token for each in self.notebook.commands[-len(self._workers) :]]
        told = f"told {self.notebook.told[-1:]}, errors {self.notebook.errors}"
        return f"{terminals}, last sent {last}, {told}, log {self.daemon.log[-2000:]}"

    def _die(self) -> None:
        self.daemon.kill()
        self._alive |= processes_of(self.daemon.root)
        if len(self._lives) <= self.notebook.life:
            self._lives.append(Life(number=self.notebook.life, killed=True))

    def _look_around(self) -> None:
        """What is there of earlier lives that should not be, and what is not that should."""
        left = self._alive & processes_of(self.daemon.root)
        missing: list[str] = []
        try:
            there = {info["name"] for info in self.daemon.call("term_list")["result"]}
            missing = [name for name in TERMINALS if name not in there]
        except CommandFailed as error:
            self.notebook.errors.append(f"who looked around was told {error.code}: {error}")
        except LineError:  # it is dead already
            pass
        self._alive = frozenset()
        life = Life(
            number=self.notebook.life,
            killed=True,
            missing=tuple(missing),
            left=tuple(sorted(map(str, left))),
        )
        self._lives.append(life)

    # The load.

    @contextlib.contextmanager
    def _load(self) -> Iterator[None]:
        clients = [*self._workers, *self._readers]
        threads = [threading.Thread(target=self._work, args=[client]) for client in clients]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            if self.daemon.is_running:
                self.daemon.process.kill()
            for thread in threads:
                thread.join(GUARD_S)
            assert not any(thread.is_alive() for thread in threads), "a client still waits"
        self._check_clients()

    def _work(self, client: Worker | Reader) -> None:
        try:
            client.work(self.daemon)
        except BaseException as error:
            self._failures.append(error)

    def _check_clients(self) -> None:
        for failure in self._failures:
            raise failure

    # The end.

    def clean_up(self) -> None:
        """Whatever happened, leave no process."""
        if self.daemon.is_running:
            self.daemon.kill()
        for process in processes_of(self.daemon.root):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

    def finish(self) -> Evidence:
        """A last life without a kill: wait until every wake came, read everything, stop."""
        self.notebook.life += 1
        self.daemon.start()
        self._look_around()
        threads = [threading.Thread(target=self._work, args=[each]) for each in self._readers]
        for thread in threads:
            thread.start()
        ids = {name: self._life_id(name) for name in TERMINALS}
        self._run_last(ids)
        with self.daemon.connect() as client:
            ledgers = {name: _all_records(client, name) for name in TERMINALS}
            kept = {each.handle: _newest(client, each.handle) for each in self._readers}
        assert self.daemon.stop() == 0
        for thread in threads:
            thread.join(GUARD_S)
        self._check_clients()
        self._lives[-1] = attrs.evolve(self._lives[-1], killed=False)
        return self._evidence(ids, ledgers, kept)

    def _run_last(self, ids: dict[str, str]) -> None:
        """A last command on each terminal: when its wake came, all before it did, or never will."""
        last = Worker("last", TERMINALS, self.notebook, random.Random(0))
        with self.daemon.connect() as client:
            for name in TERMINALS:
                last.run(client, name, KINDS["quick"])
        seqs = {told.terminal: told.record["seq"] for told in self.notebook.told[-len(TERMINALS) :]}
        for reader in self._readers:
            reader.has_seen(
                {f"term:{name}/{ids[name]}/{seqs[name]}/{reader.handle}" for name in TERMINALS}
            )

    def _life_id(self, name: str) -> str:
        meta = json.loads((self.daemon.state.terminals / name / "meta.json").read_text())
        return str(meta["life"])

    def _evidence(
        self,
        ids: dict[str, str],
        ledgers: dict[str, tuple[Record, ...]],
        kept: dict[str, tuple[Message, ...]],
    ) -> Evidence:
        book = self.notebook
        begun, ended = self._witnesses()
        errors = [line for line in self.daemon.log.splitlines() if '"level": "error"' in line]
        return Evidence(
            commands=tuple(book.commands),
            begun=begun,
            ended=ended,
            told=tuple(book.told),
            refused=tuple(book.refused),
            ledgers=ledgers,
            ids=ids,
            answers={reader.handle: tuple(reader.answers) for reader in self._readers},
            kept=kept,
            handoffs=tuple(book.handoffs),
            lives=tuple(self._lives),
            errors=(*book.errors, *errors),
        )

    def _witnesses(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        words = [line.split() for line in self._witness.read_text().splitlines()]
        begun = tuple(token for what, token in words if what == "begun")
        return begun, tuple(token for what, token in words if what == "ended")


def _all_records(client: LineClient, name: str) -> tuple[Record, ...]:
    """Every record, page by page."""
    records: list[Record] = []
    while True:
        since = records[-1]["seq"] if records else -1
        page = client.call("term_read", {"name": name, "since_seq": since})
        records += page["result"]
        if not page.get("more"):
            return tuple(records)


def _newest(client: LineClient, handle: str) -> tuple[Message, ...]:
    arguments = {"from_handle": handle, "unread": False, "limit": 1000}
    return tuple(client.call("inbox_read", arguments)["messages"])
