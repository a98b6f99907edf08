"""Scenarios of whole terminals: the real directory, fronts, shells, writers and inboxes.

Processes and PTYs are simulated. When the daemon dies, its shells live on as real ones would: the
state of the next daemon on the same machine is checked, besides those after a loss of power.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import ActorError, AskError, System
from actors.faults import RUNTIME, FaultTable
from actors.simulate import Simulation, simulate
from aegis.errors import AegisError, AlreadyExists
from aegis.inboxes.faults import INBOXES
from aegis.journal.faults import JOURNAL
from aegis.protocol import terminals as api
from aegis.protocol.control import ResizeTerminal
from aegis.protocol.derived.wire import to_plain
from aegis.protocol.output import WaitTerminal
from aegis.terminals.directory.directory import EndAllTerminals
from aegis.terminals.faults import TERMINALS
from tests.chaos.checking.case import Case
from tests.chaos.checking.checker import RULES
from tests.chaos.checking.evidence import Answer, Command, Life, SeenRecord
from tests.chaos.checking.evidence import Evidence as Load
from tests.chaos.checking.matching import tokens_in
from tests.chaos.checking.observations import UNKNOWN, Disturbance, Record
from tests.chaos.commands import SIMULATED, Kind
from tests.chaos.exhaustive import Evidence, World
from tests.chaos.histories.asking import NEVER_TYPED
from tests.chaos.machine.disk_model import Image, cached_image
from tests.chaos.machine.simulated_disk import ProcessDied, SimulatedDisk
from tests.faults.daemons import (
    EMPTY,
    OF_BEFORE,
    READER,
    Found,
    Place,
    ask,
    place,
    recovered,
    without_the_moment,
)
from tests.faults.retrying import over_lives, until_done

WRITER = "builder"

BEFORE = 2_000_003
"""The seed of the events before a scenario: none of its names is drawn again."""
QUICK, FAILING = SIMULATED.kinds["quick"], SIMULATED.kinds["failing"]
LATE = SIMULATED.kinds["too long for its caller"]
HOLDING = Kind(text="echo %; sleep 0.1; echo % late", stdout="%\n% late\n")
"""A command that runs long enough for type-ahead."""

ENDLESS = Kind(text="echo %; sleep 1000", stdout="%\n", timeout_s=0.1)
DEAF = SIMULATED.kinds["leaving a deaf child"]

WHERE_ONE_DIES = {"killed too early"}
"""The rule that does not hold if a single actor may crash: that ends a command, too."""

AFTER_POWER_LOSS = {"unrecorded"}
"""The rule that does not hold after a loss of power: shells and unsynced notes are lost."""


@attrs.frozen
class Opened:
    """An open terminal of so many columns."""

    name: str
    columns: int


@attrs.frozen
class Shut:
    """A closed terminal; ``purge``: with all its history."""

    name: str
    purge: bool = False


@attrs.frozen(kw_only=True)
class Proof:
    """The evidence of the commands themselves, and the state of the next daemon on the machine."""

    commands: Sequence[Command]
    refused: Sequence[str]
    begun: Sequence[str]
    ended: Sequence[str]
    disturbances: Sequence[Disturbance]
    next: Found


@attrs.define
class Client:
    """A client of the terminals of one run, over all incarnations, with a log of its replies."""

    world: World
    commands: list[Command] = attrs.field(factory=list)
    refused: list[str] = attrs.field(factory=list)
    earlier: list[str] = attrs.field(factory=list)
    """The tokens of commands that ran on another machine."""
    disturbances: list[Disturbance] = attrs.field(factory=list)

    def command(self, name: str, kind: Kind, *, typed: bool) -> Command:
        """Return a new command, which is about to be sent."""
        token = f"@{name}.{len(self.commands)}@"
        command = SIMULATED.command(
            kind, token=token, terminal=name, writer=WRITER, life=1, typed=typed
        )
        self.commands.append(command)
        return command

    async def type_ahead(self, system: System, name: str, kinds: Sequence[Kind]) -> None:
        """Send lines as keys at any time: their echo may be in any output of this terminal."""
        commands = [self.command(name, kind, typed=True) for kind in kinds]
        keys = "".join(f"{command.text}\r" for command in commands)
        self.disturbances.append(Disturbance(kind="keys", terminal=name, span=UNKNOWN, text=keys))
        with contextlib.suppress(AegisError, AskError, ActorError):
            await ask(system, api.SendKeys(name=name, keys=keys, from_handle=WRITER))

    async def run(
        self,
        system: System,
        name: str,
        kind: Kind,
        *,
        typed: bool = False,
        until: api.Until = "ended",
    ) -> None:
        """Send a command, once; it may have run even without an answer."""
        command = self.command(name, kind, typed=typed)
        token = command.token
        request: Any = api.RunCommand(
            name=name,
            cmd=command.text,
            timeout=kind.timeout_s,
            until=until,
            from_handle=WRITER,
        )
        if typed:
            # Lines typed ahead of a running command would be echoed into its output.
            await until_done(partial(ask, system, WaitTerminal(name=name)))
            request = api.SendKeys(name=name, keys=f"{command.text}\r", from_handle=WRITER)
        try:
            reply = await ask(system, request)
        except (AegisError, AskError, ActorError) as error:
            if any(sentence in str(error) for sentence in NEVER_TYPED):
                self.refused.append(token)
        else:
            self.confirm_record(name, reply)

    async def read(self, system: System, name: str) -> None:
        reading = await until_done(partial(ask, system, api.ReadRecords(name=name, since_seq=-1)))
        for record in reading.result:
            self.confirm_record(name, record)

    def confirm_record(self, name: str, reply: object) -> None:
        """Record that a client got this record."""
        if isinstance(reply, api.CommandRecord):
            record: Any = to_plain(reply)
            self.world.confirm(SeenRecord(name, record))

    async def spawn(self, system: System, name: str, columns: int) -> None:
        self.world.tries(Opened(name, columns))
        request = api.SpawnTerminal(name=name, shell="bash", cols=columns)
        await until_done(partial(_unless_there, system, request))
        self.world.confirm(Opened(name, columns))

    async def resize(self, system: System, name: str, columns: int) -> None:
        self.world.tries(Opened(name, columns))
        await until_done(partial(ask, system, ResizeTerminal(name=name, rows=24, cols=columns)))
        self.world.confirm(Opened(name, columns))

    async def close(self, system: System, name: str, *, purge: bool) -> None:
        """Close a terminal; a second try may find it closed."""
        self.world.tries(Shut(name, purge))
        await until_done(partial(_unless_gone, system, api.CloseTerminal(name=name, purge=purge)))
        self.world.confirm(Shut(name, purge))


async def _unless_there(system: System, request: api.SpawnTerminal) -> None:
    try:
        await ask(system, request)
    except AlreadyExists as error:
        if "is open already" not in str(error):
            raise


async def _unless_gone(system: System, request: api.CloseTerminal) -> None:
    try:
        await ask(system, request)
    except AegisError as error:
        if "there is no terminal" not in str(error) and "is closed;" not in str(error):
            raise


@attrs.frozen(kw_only=True)
class OnTerminals:
    """The common part of the scenarios of terminals: the run, its deaths, and the rules."""

    name: str = "terminals"
    image: Image = EMPTY
    tables: tuple[FaultTable, ...] = (JOURNAL, TERMINALS, INBOXES, RUNTIME)
    subjects: tuple[str, ...] = ("TerminalDirectory", "Terminal", "Shell", "LedgerWriter")
    recovers_durably: bool = True
    shows_only_durable: bool = True

    async def work(self, client: Client, system: System) -> None:
        """Do the work of the clients of one daemon; again from the start after a failed start."""
        raise NotImplementedError

    async def before(self, client: Client, here: Place) -> None:
        """Prepare the machine; by default there were no earlier events."""

    async def play(self, world: World) -> None:
        async with place(world.simulation, world.simulation.chance) as here:
            client = Client(world)
            await self.before(client, here)
            work = partial(self.work, client)
            try:
                await over_lives(partial(here.killed_when, world.disk, work))
            except* ProcessDied:
                pass
            with world.undisturbed():
                found = await here.examine(SimulatedDisk(cached_image(world.disk.model)))
            begun, ended = (_witnessed(here, what) for what in ("begun", "ended"))
            world.evidence.proof = Proof(
                commands=client.commands,
                refused=client.refused,
                begun=begun,
                ended=[*client.earlier, *ended],
                disturbances=client.disturbances,
                next=found,
            )

    def recover(self, disk: SimulatedDisk) -> Found:
        return recovered(disk)

    def check(self, evidence: Evidence, found: Found, *, killed: bool) -> Iterator[str]:
        yield from self.judge(evidence, found, killed=killed)
        if killed:
            for what in self.judge(evidence, evidence.proof.next, killed=True):
                yield f"{what} (with the processes that were left)"

    def judge(self, evidence: Evidence, found: Found, *, killed: bool) -> Iterator[str]:
        """Yield a sentence for each promise that the state of one daemon breaks."""
        if found.left:
            yield f"earlier processes are left: {found.left}"
        if found.doomed:
            yield f"remains of a purge: {found.doomed}"
        if found.failed:
            yield f"terminals {found.failed} could not be started"
        yield from self.judge_terminals(evidence, found)
        load = load_of(evidence, found, killed=killed, reader=self.reader)
        case = Case(load)
        for name, rule in RULES.items():
            is_exempt = name in WHERE_ONE_DIES or (name in AFTER_POWER_LOSS and not killed)
            if not is_exempt and not (name == "numbers" and _is_damaged(found)):
                found_wrong = [f"{name}: {what}" for what in rule.find(case)]
                yield from (each for each in found_wrong if not _is_unknown(name, each, load))

    @property
    def reader(self) -> str | None:
        """The subscriber to all terminals, or None."""
        return None

    def judge_terminals(self, evidence: Evidence, found: Found) -> Iterator[str]:
        """Check that the terminals are open or closed as they should be, with their settings."""
        for name in {each.name for each in evidence.tried if isinstance(each, Opened | Shut)}:
            allowed = columns_allowed(name, evidence)
            shelf = found.shelves.get(name)
            columns = None if shelf is None else shelf.columns
            if columns not in allowed:
                yield f"{name} has {columns} columns, and should have one of {allowed}"


def columns_allowed(name: str, evidence: Evidence) -> list[int | None]:
    """Return the allowed widths: the last confirmed one, or one tried after it. None: closed."""

    def states(changes: Sequence[object]) -> list[int | None]:
        own = [each for each in changes if isinstance(each, Opened | Shut) and each.name == name]
        return [each.columns if isinstance(each, Opened) else None for each in own]

    confirmed, tried = states(evidence.confirmed), states(evidence.tried)
    return [confirmed[-1] if confirmed else None, *tried[len(confirmed) :]]


def load_of(evidence: Evidence, found: Found, *, killed: bool, reader: str | None) -> Load:
    """Return the evidence as the rules for loads take it.

    Raw bytes are not synced, so after a loss of power output is only checked if a client got it
    with a final record.
    """
    proof: Proof = evidence.proof
    seen = [
        SeenRecord(each.terminal, without_the_moment(each.record))
        for each in evidence.confirmed
        if isinstance(each, SeenRecord)
    ]
    ledgers = {name: shelf.records for name, shelf in found.shelves.items()}
    if not killed:
        final = {(each.terminal, each.record["seq"]) for each in seen if each.record["end"]}
        seen = [each for each in seen if each.record["end"]] + [
            SeenRecord(each.terminal, {**each.record, "stdout": ""})
            for each in seen
            if not each.record["end"]
        ]
        whole = {command.token: command.stdout for command in proof.commands}
        ledgers = {
            name: tuple(
                each if (name, each["seq"]) in final else _with_output(each, whole)
                for each in records
            )
            for name, records in ledgers.items()
        }
    answers = {} if reader is None else {reader: (Answer(found.messages),)}
    return Load(
        commands=tuple(proof.commands),
        begun=tuple(proof.begun),
        ended=tuple(proof.ended),
        seen=tuple(seen),
        refused=tuple(proof.refused),
        ledgers=ledgers,
        ids={name: shelf.life for name, shelf in found.shelves.items()},
        answers=answers,
        kept={} if reader is None else {reader: found.messages},
        handoffs=(),
        disturbances=tuple(proof.disturbances),
        lives=(Life(number=1, killed=True),),
    )


def _with_output(record: Record, whole: Mapping[str, str]) -> Record:
    """Return the record with the full output of its command, as an undamaged raw log has it."""
    token = next(iter(tokens_in(record["cmd"])), "")
    return {**record, "stdout": whole.get(token, "")}


def _is_unknown(rule: str, what: str, load: Load) -> bool:
    """Return whether a typed command may be unrecorded: a crash of the shell loses it."""
    typed = [command.token for command in load.commands if command.typed]
    return rule == "unrecorded" and any(token in what for token in typed)


def _is_damaged(found: Found) -> bool:
    return any(shelf.damaged for shelf in found.shelves.values())


def _witnessed(here: Place, what: str) -> tuple[str, ...]:
    return tuple(words[1] for words in here.machine.witnessed if words[0] == what)


def left_by(work: Callable[[System], Awaitable[None]]) -> Image:
    """Return the disk after this work, all of it on the medium."""
    disk = SimulatedDisk(EMPTY)

    async def play(simulation: Simulation) -> None:
        async with place(simulation, simulation.chance) as here:
            await here.killed_when(disk, work)

    simulate(play, seed=BEFORE)
    return cached_image(disk.model)


@cache
def subscribed() -> Image:
    """Return the disk with one terminal that has a subscriber."""

    async def work(system: System) -> None:
        await ask(system, api.SpawnTerminal(name="build", shell="bash"))
        await ask(system, api.Subscribe(name="build", from_handle=READER))
        await ask(system, EndAllTerminals())

    return left_by(work)


@attrs.frozen(kw_only=True)
class StartRunFinish(OnTerminals):
    """A daemon that starts, restores its terminal, runs commands of several kinds, and stops."""

    name: str = "start, run, finish"
    image: Image = attrs.field(factory=subscribed)
    kinds: tuple[Kind, ...] = (QUICK, LATE, FAILING)

    @property
    def reader(self) -> str | None:
        return READER

    async def work(self, client: Client, system: System) -> None:
        for kind in self.kinds:
            await client.run(system, "build", kind)
        await client.run(system, "build", QUICK, typed=True)
        await client.run(system, "build", QUICK)
        await client.read(system, "build")
        await until_done(partial(ask, system, EndAllTerminals()))

    def judge_terminals(self, evidence: Evidence, found: Found) -> Iterator[str]:
        if list(found.shelves) != ["build"] or found.shelves["build"].columns is None:
            yield f"build was not restored, but {list(found.shelves)}"


@attrs.frozen(kw_only=True)
class TypeAhead(OnTerminals):
    """Lines that are typed while a command runs, and another command that waits behind them."""

    name: str = "type-ahead"
    image: Image = attrs.field(factory=subscribed)
    lines: tuple[Kind, ...] = (QUICK, FAILING)

    async def work(self, client: Client, system: System) -> None:
        await client.run(system, "build", HOLDING, until="started")
        await client.type_ahead(system, "build", self.lines)
        await client.run(system, "build", QUICK)
        await client.read(system, "build")

    def judge_terminals(self, evidence: Evidence, found: Found) -> Iterator[str]:
        if list(found.shelves) != ["build"]:
            yield f"build was not restored, but {list(found.shelves)}"


class DiesAtARecord(SimulatedDisk):
    """A disk whose process is killed before it writes the record of this command to a ledger.

    ``refuses``: the disk refuses the record, and the process is killed at the next try.
    """

    token = b""
    refuses = False

    def __init__(self, image: Image) -> None:
        super().__init__(image)
        self._ledgers: set[int] = set()

    def open(self, path: Path, flags: int) -> int:
        fd = super().open(path, flags)
        if path.suffix == ".jsonl":  # the note of a command has its token too
            self._ledgers.add(fd)
        return fd

    def write(self, fd: int, data: bytes | memoryview) -> int:
        if self.token and self.token in bytes(data) and fd in self._ledgers:
            if not self.refuses:
                raise self.die()
            self.refuses = False
            raise OSError(errno.EIO, "refused")
        return super().write(fd, data)


@attrs.frozen(kw_only=True)
class Recovery(OnTerminals):
    """A killed daemon: one command runs, one has ended without a record; another starts.

    ``is_noted``: the end of the second is in the note, because the disk has refused its record.
    """

    name: str = "in-flight recovery"
    image: Image = attrs.field(factory=subscribed)
    is_noted: bool = False

    @property
    def reader(self) -> str | None:
        return READER

    async def before(self, client: Client, here: Place) -> None:
        disk = DiesAtARecord(self.image)
        disk.refuses = self.is_noted

        async def work(system: System) -> None:
            await ask(system, api.SpawnTerminal(name="test", shell="bash"))
            await ask(system, api.Subscribe(name="test", from_handle=READER))
            await client.run(system, "build", DEAF)
            await client.run(system, "build", ENDLESS)
            disk.token = f"@test.{len(client.commands)}@".encode()
            await client.run(system, "test", FAILING)
            await trio.sleep_forever()

        with client.world.undisturbed():
            try:
                await here.killed_when(disk, work)
            except* ProcessDied:
                pass
            await trio.sleep(1)
        disk.model.close_all()
        client.world.disk.model = disk.model

    async def work(self, client: Client, system: System) -> None:
        for name in ("build", "test"):
            await client.read(system, name)
        await client.run(system, "build", QUICK)
        await client.read(system, "build")

    def judge_terminals(self, evidence: Evidence, found: Found) -> Iterator[str]:
        if [shelf.columns for shelf in found.shelves.values()] != [80, 80]:
            yield f"not both terminals were restored: {found.shelves}"


@attrs.frozen(kw_only=True)
class NotedRecovery(Recovery):
    """The recovery with a noted end."""

    is_noted: bool = True


@attrs.frozen(kw_only=True)
class Spawn(OnTerminals):
    """Two terminals that are spawned on a new root; one is resized."""

    name: str = "spawn"

    async def work(self, client: Client, system: System) -> None:
        await client.spawn(system, "build", 80)
        await client.spawn(system, "test", 100)
        await client.resize(system, "build", 120)


@cache
def two_with_history() -> Image:
    """Return the disk with two open terminals, each with the record of a command."""

    async def work(system: System) -> None:
        for name in ("build", "test"):
            await ask(system, api.SpawnTerminal(name=name, shell="bash"))
            text = old_command(name).text
            await ask(system, api.RunCommand(name=name, cmd=text, from_handle=WRITER))
        await ask(system, EndAllTerminals())

    return left_by(work)


def old_command(name: str) -> Command:
    """Return the earlier command of a terminal."""
    return SIMULATED.command(
        QUICK, token=f"@{name}{OF_BEFORE}", terminal=name, writer=WRITER, life=1
    )


@cache
def old_found() -> Found:
    """Return the state before anything is closed."""
    return recovered(SimulatedDisk(two_with_history()))


@attrs.frozen(kw_only=True)
class Purge(OnTerminals):
    """A terminal that is closed with its history and spawned anew, and another that is kept."""

    name: str = "close with purge"
    image: Image = attrs.field(factory=two_with_history)

    async def before(self, client: Client, here: Place) -> None:
        for name in ("build", "test"):
            client.commands.append(old_command(name))
            client.earlier.append(old_command(name).token)
            client.world.tries(Opened(name, 80))
            client.world.confirm(Opened(name, 80))

    async def work(self, client: Client, system: System) -> None:
        await client.close(system, "build", purge=True)
        await client.spawn(system, "build", 100)
        await client.run(system, "build", QUICK)
        await client.close(system, "test", purge=False)

    def judge_terminals(self, evidence: Evidence, found: Found) -> Iterator[str]:
        yield from super().judge_terminals(evidence, found)
        old, shelf = old_found().shelves, found.shelves
        if "test" not in shelf or shelf["test"].records != old["test"].records:
            yield f"the history of test is not what it was: {shelf.get('test')}"
        purge, held = Shut("build", purge=True), old_command("build").token in found.tokens
        if purge in evidence.confirmed and held:
            yield "the purged data is left in part"
        is_whole = "build" in shelf and shelf["build"].records == old["build"].records
        if not is_whole and (held or purge not in evidence.tried):
            yield f"the history of build is left in part: {shelf.get('build')}"


def undisturbed_records(found: Found) -> Mapping[str, list[tuple[str, int | None]]]:
    """Return the ends of the commands of each terminal."""
    return {
        name: [(record["end"], record["exit"]) for record in shelf.records]
        for name, shelf in found.shelves.items()
    }
