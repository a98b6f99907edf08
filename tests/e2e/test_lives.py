"""The three actors of a terminal crash apart from each other, at every message that they handle.

A script of commands is run once to count the messages, then once for each message of each actor,
with a crash before or after its handler. Each command leaves a witness when it runs, so whatever
crashed, the ledger can be held against what really happened.
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import attrs
import pytest
import trio

from actors import AskError
from actors.faults import RUNTIME, Crash, Plan, armed
from aegis.errors import AegisError
from aegis.protocol import terminals as api
from tests.e2e.harness import GUARD_S, Gate
from tests.e2e.inside import DaemonInside, daemon_inside

pytestmark = pytest.mark.real

NAME = "build"


@attrs.define
class Script:
    """Commands of every kind on one terminal, and what their callers were told."""

    daemon: DaemonInside
    witness: Path
    gate: Gate
    told: list[api.CommandRecord] = attrs.field(factory=list)

    def words(self, token: str) -> str:
        """A command that proves that it ran, and prints its token."""
        return f"echo {token} >>{self.witness}; printf 'out-%s\\n' {token}"

    async def call(self, cmd: str, timeout: float = GUARD_S) -> None:
        try:
            record = await self.daemon.front(NAME).ask(
                api.RunCommand(name=NAME, cmd=cmd, timeout=timeout), timeout=2 * GUARD_S
            )
        except (AskError, AegisError):
            return
        if record.end is not None:
            self.told.append(record)

    async def type(self, line: str) -> None:
        try:
            await self.daemon.front(NAME).ask(api.SendKeys(name=NAME, keys=f"{line}\r"))
        except (AskError, AegisError):
            return

    async def play(self) -> None:
        await self.call(self.words("a"))
        await self.type(self.words("b"))
        await self.call(self.words("c"))
        await self.call("# nothing runs")
        await self.call("echo 'open")
        await self.call(f"{self.words('d')}; {self.gate.hold}", timeout=0.05)
        await self.type(f"sleep 0.1; {self.words('e')}")
        self.gate.open()
        await self.call(self.words("f"))
        await self.call(f"{self.words('g')}; exit 3")
        await self.call(self.words("h"))

    async def settle(self) -> None:
        """Whatever crashed: the terminal works again, and all that was typed has ended."""
        for _ in range(20):
            before = len(self.told)
            await self.call(self.words("z"))
            if len(self.told) > before:
                return
        raise AssertionError("the terminal does not work any more")

    def witnessed(self) -> list[str]:
        """The tokens of the commands that ran, in order."""
        return self.witness.read_text().split()


async def play(directory: Path, plan: Plan) -> tuple[Script, list[api.CommandRecord]]:
    with trio.fail_after(4 * GUARD_S):
        async with daemon_inside(directory) as daemon:
            await daemon.spawn(NAME)
            with closing(Gate(directory)) as gate:
                script = Script(daemon, directory / "witness", gate)
                with armed(plan, RUNTIME):
                    await script.play()
                    await script.settle()
                records = await daemon.records(NAME)
    return script, records


def check(script: Script, records: list[api.CommandRecord], *, may_kill: bool) -> None:
    assert [record.seq for record in records] == list(range(len(records)))
    assert all(record in records for record in script.told)
    ran = script.witnessed()
    recorded = [token for record in records for token in ran_of(record)]
    killed = [record for record in records if record.end == "killed_by_restart"]
    if may_kill:
        # A command that was only submitted when the shell was lost is recorded, and never ran.
        typed = {"b", "e"}  # one whose start was not heard when the shell was lost has no record
        assert [token for token in recorded if token in ran] == [
            token for token in ran if token in recorded or token not in typed
        ]
        assert len(killed) <= 2
    else:
        assert recorded == ran
        assert killed == []
    for record in records:
        others = {token for token in ran if f"out-{token}" in record.stdout}
        # The text of a typed command is known at its end only.
        assert len(others) <= 1 if record.cmd is None else others <= set(ran_of(record)), record
        if record.end == "exited" and ran_of(record):
            assert others == set(ran_of(record)), record


def ran_of(record: api.CommandRecord) -> list[str]:
    """The tokens in the text of a command."""
    return [part.split()[1] for part in (record.cmd or "").split(";") if ">>" in part]


def occurrences(plan: Plan, actor: str) -> int:
    return plan.hits[f"actor.receive.before[{actor}]"]


async def test_the_script_runs_everything_when_nothing_crashes(tmp_path: Path) -> None:
    plan = Plan()
    script, records = await play(tmp_path, plan)
    check(script, records, may_kill=False)
    assert script.witnessed() == [*"abcdefgh", "z"]
    assert [record.end for record in records] == ["exited"] * 7 + ["shell_exit"] + ["exited"] * 2
    assert len(script.told) == 7
    assert min(occurrences(plan, actor) for actor in ("Terminal", "LedgerWriter", "Shell")) >= 10


PARTS = int(os.environ.get("AEGIS_CRASH_STEP", "3"))
"""Of so many messages one is tried in the ordinary run; all with 1."""


@pytest.mark.long
@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("actor", ["Terminal", "LedgerWriter", "Shell"])
async def test_a_crash_at_any_message_loses_doubles_and_confuses_nothing(
    tmp_path: Path, actor: str, where: str
) -> None:
    point = f"actor.receive.{where}[{actor}]"
    number, struck = 1 if where == "before" else 2, 0
    while True:
        plan = Plan({(point, number): Crash()})
        directory = tmp_path / str(number)
        directory.mkdir()
        script, records = await play(directory, plan)
        if plan.hits[point] < number:
            break
        struck += 1
        try:
            check(script, records, may_kill=actor == "Shell")
        except AssertionError as error:
            raise AssertionError(f"at {point}, pass {number}") from error
        number += PARTS
    assert struck >= 3
