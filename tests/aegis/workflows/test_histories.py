"""Random histories of workflows: clients, processes, a disk that refuses, and deaths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from aegis.journal.archive import Keep
from aegis.protocol.workflows import (
    CancelWorkflow,
    ResumeWorkflow,
    RetryWorkflow,
    RunWorkflow,
    WorkflowInfo,
)
from aegis.workflows.calls import failure, is_failure, value
from tests.aegis.simulated_daemon import WRITES, Answer
from tests.aegis.workflows.office import Frame, Office, Program, calling, play

STEPS = 150
MOST_RUNS = 5

CALLS: dict[str, dict[str, Any]] = {
    "step": {},
    "bash": {},
    "send": {"handle": "dev", "text": "hi"},
    "delegate": {"queue": "q", "payload": "work"},
    "ask_human": {"question": "q?", "options": None},
    "checkpoint": {"name": "half", "payload": 1},
    "spawn": {"profile": "p", "workspace": None},
    "drain": {"handle": "dev"},
    "terminal": {"terminal": "t", "cmd": "make", "timeout": 5.0},
}

Reopening = ResumeWorkflow | RetryWorkflow


@attrs.define
class Script:
    """The function of a run: its calls, one after another; ``fails``: it may raise behind them.

    ``effects`` counts how often the process carried out each call, ``got`` has the outcomes that
    the function got, by positions, and ``reopened`` counts the requests to run it again. Every
    third call may be done again after an interruption.
    """

    calls: list[str]
    fails: bool
    effects: Counter[int] = attrs.field(factory=Counter)
    got: dict[int, Frame] = attrs.field(factory=dict)
    reopened: int = 0

    def retries(self, position: int) -> bool:
        return (position + len(self.calls)) % 3 == 0


@attrs.define
class Progress:
    """The place of the function in one process: the call that it makes, and whether it did it."""

    position: int = 1
    has_called: bool = False
    did: bool = False


class History:
    """The clients and processes of an office, which act at random; what was promised is kept."""

    def __init__(self, office: Office) -> None:
        self.office = office
        self.chance = office.chance
        self.scripts: dict[str, Script] = {}
        self.keys: dict[str, str] = {}
        self.cancelled: set[str] = set()
        self.asked: list[tuple[Any, Answer[Any]]] = []
        self.progress: dict[int, Progress] = {}

    # Processes.

    def alive(self) -> Iterator[tuple[str, Program]]:
        """Yield the runs whose processes live and have their journals."""
        for id_ in self.scripts:
            lives = self.office.lives(id_)
            if lives and lives[-1].is_alive and lives[-1].go:
                yield id_, lives[-1]

    def advance(self, id_: str, program: Program) -> None:
        """Let the function of a run do the next thing."""
        script = self.scripts[id_]
        progress = self.progress.setdefault(id(program), Progress())
        position = progress.position
        known = program.journal.get(str(position), {}).get("outcome")
        outcome = known or program.answers.get(str(position))
        if outcome is not None:
            assert script.got.setdefault(position, outcome) == outcome, "a call has one outcome"
            self.progress[id(program)] = Progress(position + 1)
            if is_failure(outcome) and outcome["error"]["type"] != "Cancelled":
                self.ends(program, is_ok=False)
        elif position > len(script.calls):
            self.ends(program, is_ok=not script.fails or self.chance.random() < 0.5)
        elif not progress.has_called:
            progress.has_called = True
            name, retry = script.calls[position - 1], script.retries(position)
            program.says(calling(str(position), name, retry, **CALLS[name]))
        elif str(position) in program.proceeds and not progress.did:
            progress.did = True
            script.effects[position] += 1
            does_it = self.chance.random() < 0.9
            found = value("did") if does_it else failure("StepFailed", "no")
            program.says({"kind": "done", "position": str(position), "outcome": found})
        elif self.chance.random() < 0.1:
            program.says({"kind": "left", "position": str(position), "seen": [], "time": None})

    @staticmethod
    def ends(program: Program, *, is_ok: bool) -> None:
        if is_ok:
            program.says({"kind": "returned", "end": "completed", "result": '"result"'})
        else:
            program.says({"kind": "returned", "end": "failed", "error": "it failed"})
        program.exit()

    # Services.

    async def serve(self) -> None:
        """Let one thing happen outside of the daemon that a call may wait for."""
        office, chance, services = self.office, self.chance, self.office.services
        running = [key for key, task in services.tasks.items() if task is None]
        match chance.randrange(3):
            case 0 if running:
                await office.ends_task(chance.choice(running))
            case 1 if services.sessions["dev"].waiting:
                await office.replies("dev")
            case 2 if services.questions:
                key = chance.choice([*services.questions])
                self.asked.append((None, office.answers(key, {"q": ["y"]})))

    # Clients.

    async def step(self) -> None:
        office, chance = self.office, self.chance
        alive = [*self.alive()]
        match chance.randrange(24):
            case 0 | 1 if len(self.scripts) < MOST_RUNS:
                self.ask(RunWorkflow(name="work", key=str(chance.randrange(8))))
            case 2 if self.scripts and chance.random() < 0.4:
                self.ask(CancelWorkflow(workflow_id=chance.choice([*self.scripts])))
            case 3 | 4 if self.scripts:
                command = chance.choice([ResumeWorkflow, ResumeWorkflow, RetryWorkflow])
                self.ask(command(workflow_id=chance.choice([*self.scripts])))
            case 5:
                await office.passes(chance.choice([0.5, 3, 12, 70]))
            case 6 if chance.random() < 0.4:
                office.plan.refuses = chance.choice([WRITES, {"fdatasync"}, {"write"}])
            case 7 | 8:
                office.plan.refuses = ()
            case 9 if chance.random() < 0.3:
                await self.restart()
            case 10 if alive and chance.random() < 0.5:
                await office.dies_in(chance.choice(alive)[0], chance.choice([0.01, 1, 10]))
            case 11 if chance.random() < 0.1:
                office.plan.refuses = ()
                await office.crashes()
            case 12 | 13 | 14:
                await self.serve()
            case 15:
                await office.passes(chance.uniform(0, 0.02))
            case _ if alive:
                self.advance(*chance.choice(alive))
                await office.passes(chance.choice([0, 0.005, 0.2]))
        self.collect()

    def ask(self, request: Any) -> None:
        if isinstance(request, Reopening):
            self.scripts[request.workflow_id].reopened += 1
        self.asked.append((request, self.office.ask_soon(request)))

    def collect(self) -> None:
        """Note what was promised by the answers that have come."""
        for request, answer in self.asked:
            if answer.value is None:
                continue
            match request:
                case RunWorkflow(key=str(key)):
                    id_ = answer.value.workflow_id
                    assert self.keys.setdefault(key, id_) == id_, "a key has one run"
                    self.write_script(id_)
                case CancelWorkflow(workflow_id=id_):
                    assert answer.value.status == "cancelled"
                    self.cancelled.add(id_)
                case ResumeWorkflow(workflow_id=id_) | RetryWorkflow(workflow_id=id_):
                    self.cancelled.discard(id_)
                    self.reopen(self.scripts[id_], is_retry=isinstance(request, RetryWorkflow))
        self.asked = [(r, a) for r, a in self.asked if not a.has_come]

    def write_script(self, id_: str) -> None:
        """Write the function of a run that was not known before."""
        if id_ not in self.scripts:
            names = [self.chance.choice([*CALLS]) for _ in range(self.chance.randint(1, 6))]
            self.scripts[id_] = Script(names, fails=self.chance.random() < 0.4)

    @staticmethod
    def reopen(script: Script, *, is_retry: bool) -> None:
        """Forget the outcomes of calls that are done again."""
        for position, outcome in [*script.got.items()]:
            if is_retry or is_failure(outcome) or script.calls[position - 1] == "spawn":
                del script.got[position]

    async def restart(self) -> None:
        office, chance = self.office, self.chance
        self.collect()
        # The callers of the others would get an answer of either kind.
        reopened = {each.workflow_id for each, _ in self.asked if isinstance(each, Reopening)}
        for id_ in reopened:
            self.scripts[id_].got.clear()
            self.cancelled.discard(id_)
        self.asked = []
        office.plan.refuses = ()
        before = {id_: await office.show(id_) for id_ in self.scripts if id_ not in reopened}
        await office.restart(power_fails=chance.random() < 0.5, draws=chance.random() < 0.5)
        for each in (await office.listed()).result:
            self.write_script(each.workflow_id)  # its caller may have got no answer
        for id_, info in before.items():
            now = await office.show(id_)
            if info.status != "running":
                assert (now.status, now.result) == (info.status, info.result), "it was shown"
        await self.check()

    async def check(self) -> None:
        """Check what holds whenever the disk accepts."""
        for id_, script in self.scripts.items():
            info = await self.office.show(id_)
            assert id_ not in self.cancelled or info.status == "cancelled", "it was acknowledged"
            for position, count in script.effects.items():
                most = 1 + script.reopened
                assert script.retries(position) or count <= most, "an ended call is done again"

    async def finish(self) -> None:
        """Let everything end, without further faults."""
        office = self.office
        office.plan.refuses = ()
        await office.passes(15)
        for _ in range(600):
            self.collect()
            infos = [await office.show(id_) for id_ in self.scripts]
            running = [each.workflow_id for each in infos if each.status == "running"]
            if not running:
                break
            for id_, program in [*self.alive()]:
                self.advance(id_, program)
            for _ in range(2):
                await self.serve()
            await office.passes(1.5)
        else:
            raise AssertionError(f"a workflow never ends: {running}")
        await office.passes(200)
        self.collect()

    async def check_end(self) -> None:
        """Check what follows from the end of each run."""
        office = self.office
        for id_ in self.scripts:
            info = await office.show(id_)
            assert (info.problem, info.current) == ("", [])
            prefix = f"workflow:{id_}/end"
            ends = {_number(each): each for each in office.services.messages if prefix in each}
            is_ok = office.services.messages[ends[max(ends)]].status == "ok"
            assert is_ok is (info.status == "completed"), "its starter was notified"
            for handle, session in office.services.sessions.items():
                is_own = handle.startswith(f"work-{id_[-10:].lower()}-")
                assert not is_own or session.state == "closed", "its sessions are closed"
            assert not [each for each in office.lives(id_) if each.is_alive]


def _number(message: str) -> int:
    """Return the number of an end, from the id of the message about it."""
    return int(message.partition("/end/")[2] or 1)


FEW = Keep(newest=2, days=0)
SEEDS = [*range(60), *(pytest.param(each, marks=pytest.mark.long) for each in range(60, 1_060))]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_finished_call_is_done_again_and_each_workflow_ends_and_is_reported(seed: int) -> None:
    async def story(office: Office) -> None:
        office.add_session("dev")
        history = History(office)
        for _ in range(STEPS):
            await history.step()
        await history.restart()
        await history.finish()
        await history.check()
        await history.check_end()
        before, count = await _shown(office), len(office.services.asked)
        await office.restart(power_fails=True)
        changed = [each for each in await _shown(office) if each not in before]
        assert changed == [], "a restart changes nothing that clients see"
        assert len(office.services.asked) == count, "all is settled"

    play(story, seed=seed, keep=FEW if seed % 2 else None)


async def _shown(office: Office) -> list[WorkflowInfo]:
    return (await office.listed()).result
