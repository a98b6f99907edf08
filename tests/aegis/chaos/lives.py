"""Lives of a simulated daemon on one machine: its terminals and inboxes, loaded, killed, checked.

All that a run does comes from one seed. The actors are the real ones, on real files; processes,
PTYs, shells and the clock are simulated, and no thread runs. What the clients were told is compared
with the ledgers and with what the commands themselves left behind, by the rules for real kills.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import attrs
import trio

from actors import ChildSpec, SupervisorSpec, System
from actors.simulate import Run, Simulation, simulate
from aegis.chaos.checking.checker import Violation, violations
from aegis.chaos.checking.evidence import Answer, Command, Evidence, Life, Told
from aegis.chaos.real.commands import Kind
from aegis.chaos.real.load import NEVER_TYPED, Notebook
from aegis.chaos.reproducible import reproducible
from aegis.chaos.simulated_host import SimulatedHost
from aegis.chaos.simulated_processes import Machine
from aegis.errors import AegisError
from aegis.inboxes.router import HandleSeen, InboxRouter
from aegis.journal.disk import OsDisk
from aegis.journal.flusher import Flusher
from aegis.protocol import terminals as api
from aegis.protocol.inboxes import ReadInbox, WaitInbox
from aegis.protocol.wire import to_plain
from aegis.terminals.directory import EndAllTerminals, TerminalDirectory
from aegis.terminals.meta import load_settings
from aegis.terminals.process_host import ProcessHost
from aegis.terminals.settings import TerminalFiles

SHARED, TYPED = "shared", "typed"
READER = "reviewer"
LIVES = 3
LIFE_S = 1.5
"""How long a daemon lives at most until it is killed, and the last one until it is stopped."""

KINDS: Mapping[str, Kind] = {
    "quick": Kind(text="echo %"),
    "several lines": Kind(
        text="play repeat % 40", stdout="".join(f"% {n}\n" for n in range(1, 41))
    ),
    "several lines of text": Kind(text="echo % one\necho % two", stdout="% one\n% two\n"),
    "much output": Kind(
        text="play repeat % 1000",
        stdout="".join(f"% {n}\n" for n in range(1, 1001)),
        weight=1,
    ),
    "failing": Kind(text="echo %", last="play exit 7", exit=7),
    "dying": Kind(text="echo %", last="play die KILL", stdout="%\nKilled\n", exit=137),
    "too long for its caller": Kind(
        text="echo %; sleep 0.25; echo % late", stdout="%\n% late\n", timeout_s=0.1, weight=3
    ),
    "typed": Kind(text="echo %", typed=True),
    "leaving a child": Kind(text="play stay setsid 1000; echo %", weight=1),
    "leaving a deaf child": Kind(text="play stay deaf 1000; echo %", weight=1),
    "forging marks": Kind(text="play forge; echo %", stdout="forged\n%\n", weight=1),
    "ending the shell": Kind(
        text="echo %", last="exit 3", stdout="%\nexit\n", exit=3, end="shell_exit", weight=1
    ),
}
"""As those of real kills, in the language of the simulated shell."""

RUN = tuple(kind for kind in KINDS.values() if not kind.typed)


class UnsyncedDisk(OsDisk):
    """The real files; no power is lost here, so a sync would only take time."""

    def fdatasync(self, fd: int) -> None:
        return

    def fsync(self, fd: int) -> None:
        return


def make_command(kind: Kind, *, token: str, terminal: str, handle: str, life: int) -> Command:
    """The command of this kind whose token is ``token``."""
    parts = [f"witness begun {token}", kind.text.replace("%", token), f"witness ended {token}"]
    parts += [kind.last] if kind.last else []
    return Command(
        token=token,
        terminal=terminal,
        writer=f"agent:{handle}",
        life=life,
        text=("\n" if "\n" in kind.text else "; ").join(parts),
        stdout=kind.stdout.replace("%", token),
        exit=kind.exit,
        end=kind.end,
        typed=kind.typed,
    )


def terminals_tree(root: Path, host: ProcessHost) -> SupervisorSpec:
    """What of a daemon's tree runs without servers."""
    state, flusher = root / ".aegis", Flusher(UnsyncedDisk())
    return SupervisorSpec(
        name="root",
        children=(
            SupervisorSpec(name="inboxes", dynamic=True),
            ChildSpec(
                name="inbox-router",
                actor=InboxRouter,
                arguments={
                    "directory": state / "inboxes",
                    "supervisor": "root/inboxes",
                    "flusher": flusher,
                },
            ),
            SupervisorSpec(name="terminals", dynamic=True),
            ChildSpec(
                name="terminal-directory",
                actor=TerminalDirectory,
                arguments={
                    "root": root,
                    "directory": state / "terminals",
                    "workspace": state / "workspace.json",
                    "restore": True,
                    "supervisor": "root/terminals",
                    "inboxes": "root/inbox-router",
                    "flusher": flusher,
                    "shell_file_limit": 1024,
                    "host": host,
                },
            ),
        ),
    )


class Worker:
    """Sends commands to terminals, one after the other."""

    def __init__(
        self, handle: str, terminal: str, kinds: Sequence[Kind], notebook: Notebook, chance: Random
    ) -> None:
        self._handle = handle
        self._terminal = terminal
        self._kinds = kinds
        self._notebook = notebook
        self._chance = chance

    async def work(self, system: System) -> None:
        """Go on until the daemon is gone."""
        while True:
            [kind] = self._chance.choices(self._kinds, [kind.weight for kind in self._kinds])
            await self.run(system, kind)
            if kind.typed or kind.timeout_s < 1:
                # Keys are not typed ahead of what still runs: that would be echoed into its output.
                await self.run(system, KINDS["quick"])
            await trio.sleep(self._chance.expovariate(100))

    async def run(self, system: System, kind: Kind) -> None:
        """Send one command, and note what came of it."""
        book, name = self._notebook, self._terminal
        command = make_command(
            kind,
            token=book.new_token(name),
            terminal=name,
            handle=self._handle,
            life=book.life,
        )
        book.commands.append(command)
        request: Any = api.RunCommand(
            name=name, cmd=command.text, timeout=kind.timeout_s, from_handle=self._handle
        )
        if kind.typed:
            request = api.SendKeys(name=name, keys=f"{command.text}\r", from_handle=self._handle)
        try:
            reply = await ask(system, request)
        except AegisError as error:
            if any(sentence in str(error) for sentence in NEVER_TYPED):
                book.refused.append(command.token)
            else:
                book.errors.append(f"{command.token} was told: {error}")
        else:
            if isinstance(reply, api.CommandRecord):
                book.told.append(Told(name, to_plain(reply)))


def terminal_files(root: Path, name: str) -> TerminalFiles:
    """Where the terminal keeps its files."""
    return TerminalFiles(root / ".aegis" / "terminals" / name)


async def ask(system: System, request: Any) -> Any:
    """Ask whoever such a request goes to. Raises ``AegisError``."""
    to = "inbox-router" if isinstance(request, ReadInbox | WaitInbox) else "terminal-directory"
    return await system.ref(f"root/{to}").ask(request, timeout=120)


@attrs.define(kw_only=True)
class Lives:
    """The lives of one run."""

    simulation: Simulation
    machine: Machine
    root: Path
    notebook: Notebook = attrs.field(factory=Notebook)
    answers: list[Answer] = attrs.field(factory=list)
    acknowledged: str | None = None
    lives: list[Life] = attrs.field(factory=list)
    ids: dict[str, str] = attrs.field(factory=dict)
    ledgers: dict[str, tuple[dict[str, Any], ...]] = attrs.field(factory=dict)
    kept: tuple[dict[str, Any], ...] = ()

    async def live(self, *, is_last: bool) -> None:
        """One daemon, from its start to its end."""
        host = SimulatedHost(self.machine)
        earlier = {each.pid for each in self.machine.alive}
        with trio.CancelScope() as death:
            async with self.simulation.open_system(terminals_tree(self.root, host)) as system:
                await self._begin(system, earlier)
                async with trio.open_nursery() as nursery:
                    for worker in self._workers():
                        nursery.start_soon(worker.work, system)
                    nursery.start_soon(self._read, system)
                    await trio.sleep(self.simulation.chance.uniform(0.01, LIFE_S))
                    if not is_last:
                        host.kill()
                        death.cancel()
                        await trio.sleep_forever()
                    nursery.cancel_scope.cancel()
                await self._finish(system)

    def _workers(self) -> list[Worker]:
        return [
            self._worker("builder", SHARED, RUN),
            self._worker("tester", SHARED, RUN),
            self._worker("typist", TYPED, tuple(KINDS.values())),
        ]

    def _worker(self, handle: str, terminal: str, kinds: Sequence[Kind]) -> Worker:
        return Worker(handle, terminal, kinds, self.notebook, self.simulation.chance)

    async def _begin(self, system: System, earlier: set[int]) -> None:
        book = self.notebook
        if not self.lives:
            system.ref("root/inbox-router").tell(HandleSeen(handle=READER))
            for name in (SHARED, TYPED):
                await ask(system, api.SpawnTerminal(name=name, shell="bash"))
                await ask(system, api.Subscribe(name=name, from_handle=READER))
        listed = await ask(system, api.ListTerminals())
        names = {info.name for info in listed.result if info.state != "failed"}
        book.life += 1
        left = [str(each.info) for each in self.machine.alive if each.pid in earlier]
        self.lives.append(
            Life(
                number=book.life,
                killed=True,
                missing=tuple(sorted({SHARED, TYPED} - names)),
                left=tuple(left),
            )
        )

    async def _read(self, system: System) -> None:
        while True:
            await self._wait_once(system, timeout=10)

    async def _wait_once(self, system: System, *, timeout: float) -> int:
        after = self.acknowledged
        request = WaitInbox(from_handle=READER, after=after, timeout=timeout)
        reply = to_plain(await ask(system, request))
        messages: Any = reply["messages"]
        self.answers.append(Answer(tuple(messages), after))
        self.acknowledged = reply["next"] or self.acknowledged  # type: ignore[assignment]
        return len(messages)

    async def _finish(self, system: System) -> None:
        """The daemon stops in order, its commands are let end before; then all is read."""
        for name in (SHARED, TYPED):
            await self._worker("builder", name, RUN).run(system, KINDS["quick"])
        self.lives[-1] = attrs.evolve(self.lives[-1], killed=False)
        for name in (SHARED, TYPED):
            records = await ask(system, api.ReadRecords(name=name, since_seq=-1))
            plain: Any = to_plain(records)["result"]
            self.ledgers[name] = tuple(plain)
            settings = load_settings(OsDisk(), terminal_files(self.root, name), self.root)
            assert settings is not None
            self.ids[name] = settings.life
        while await self._wait_once(system, timeout=1):
            pass
        everything = ReadInbox(from_handle=READER, unread=False, limit=1000)
        self.kept = tuple(to_plain(await ask(system, everything))["messages"])  # type: ignore[arg-type]
        await ask(system, EndAllTerminals())

    def evidence(self) -> Evidence:
        """All of it."""
        book = self.notebook
        begun, ended = (
            tuple(words[1] for words in self.machine.witnessed if words[0] == what)
            for what in ("begun", "ended")
        )
        return Evidence(
            commands=tuple(book.commands),
            begun=begun,
            ended=ended,
            told=tuple(book.told),
            refused=tuple(book.refused),
            ledgers=self.ledgers,
            ids=self.ids,
            answers={READER: tuple(self.answers)},
            kept={READER: self.kept},
            handoffs=(),
            lives=tuple(self.lives),
            errors=tuple(book.errors),
        )


@attrs.frozen(kw_only=True)
class Outcome:
    """What came of a run: what it proves, and how much was in it."""

    violations: list[Violation]
    records: int
    killed: int
    wakes: int
    ended: int
    left: list[str]


async def _play(root: Path, simulation: Simulation) -> Outcome:
    with reproducible(simulation.chance):
        async with trio.open_nursery() as nursery:
            machine = Machine(nursery, simulation.chance)
            lives = Lives(simulation=simulation, machine=machine, root=root)
            for number in range(LIVES):
                await lives.live(is_last=number == LIVES - 1)
            evidence = lives.evidence()
            left = [str(each.info) for each in machine.alive]
            nursery.cancel_scope.cancel()
    records = [record for _, record in evidence.records()]
    return Outcome(
        violations=violations(evidence),
        records=len(records),
        killed=sum(record["killed_by_restart"] for record in records),
        ended=len(evidence.ended),
        wakes=len({each["id"] for answer in lives.answers for each in answer.messages}),
        left=left,
    )


def play_lives(root: Path, *, seed: int) -> Run[Outcome]:
    """Lives of a daemon for ``root``, killed and restarted, from one seed."""
    (root / ".aegis").mkdir(parents=True)
    return simulate(partial(_play, root), seed=seed)
