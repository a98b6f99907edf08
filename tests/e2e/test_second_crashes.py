"""A second crash while the first is recovered from, and crashes while a terminal is ended.

A terminal with a command in flight, beside another one; each crash of the list comes from a plan
that is armed in the midst of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import attrs
import pytest
import trio

from actors.faults import Crash, Fault
from tests.e2e.busy import Busy, busy_daemon, crashing, endpoint_of
from tests.e2e.callers import line_caller
from tests.e2e.harness import GUARD_S, Gate
from tests.e2e.inside import daemon_inside
from tests.e2e.test_crash_injection import is_killed, is_true

pytestmark = [
    pytest.mark.real,
    pytest.mark.usefixtures("tidied"),
    # The official client leaves this behind when it goes.
    pytest.mark.filterwarnings("ignore:Async generator '.*' was garbage collected:ResourceWarning"),
]

NewGate = Callable[[], Gate]

FRONT = "root/terminals/build/terminal"
SHELL = "root/terminals/build/shell"
WRITER = "root/terminals/build/writer"


@attrs.frozen
class Double:
    """Two crashes or more: ``paths`` crash with their next messages, ``also`` strikes beside.

    ``by`` is the call that begins it; ``lives`` what began anew, and how often.
    """

    paths: tuple[str, ...]
    lives: Mapping[str, int]
    also: Mapping[tuple[str, int], Fault] = attrs.field(factory=dict)
    by: str = "term_read"

    @property
    def kills(self) -> bool:
        """Whether the shell does not outlive it."""
        return SHELL in self.lives


def setup_of(actor: str, when: str) -> dict[tuple[str, int], Fault]:
    return {(f"actor.setup.{when}[{actor}]", 1): Crash()}


DOUBLES = {
    "the front, and again while it meets its shell": Double((FRONT, FRONT), {FRONT: 2}),
    "the front, and its next life while it begins": Double(
        (FRONT,), {FRONT: 2}, setup_of("Terminal", "before")
    ),
    "the front, and its next life once it has begun": Double(
        (FRONT,), {FRONT: 2}, setup_of("Terminal", "after")
    ),
    "the front, and the shell that tells it where things stand": Double(
        (FRONT, SHELL), {FRONT: 1, SHELL: 1}
    ),
    "the front, and the writer that tells it where its ledger ends": Double(
        (FRONT, WRITER), {FRONT: 1, WRITER: 1}
    ),
    "all three": Double((FRONT, SHELL, WRITER), {FRONT: 1, SHELL: 1, WRITER: 1}),
    "the shell, and its next life while it begins": Double(
        (SHELL,), {SHELL: 2}, setup_of("Shell", "before"), by="term_keys"
    ),
    "the shell, and its next life once it has begun": Double(
        (SHELL,), {SHELL: 2}, setup_of("Shell", "after"), by="term_keys"
    ),
    "the shell, and its next life with a shell that nobody noted": Double(
        (SHELL,), {SHELL: 2}, {("shell.start.after[build]", 1): Crash()}, by="term_keys"
    ),
    "the shell, and the front that hears of it": Double(
        (SHELL,), {SHELL: 1, FRONT: 1}, {("actor.receive.after[Terminal]", 2): Crash()}, "term_keys"
    ),
    "the writer, and its next life while it begins": Double(
        (WRITER,), {WRITER: 2}, setup_of("LedgerWriter", "before"), by="the end of the command"
    ),
    "the writer, and its next life once it has begun": Double(
        (WRITER,), {WRITER: 2}, setup_of("LedgerWriter", "after"), by="the end of the command"
    ),
}


@pytest.mark.parametrize("double", DOUBLES.values(), ids=DOUBLES)
async def test_a_second_crash_while_the_first_is_recovered_from_loses_and_doubles_nothing(
    tmp_path: Path, new_gate: NewGate, double: Double
) -> None:
    with trio.fail_after(2 * GUARD_S):
        async with busy_daemon(tmp_path, new_gate) as busy:
            with crashing(*double.paths, also=double.also):
                await begin(busy, double)
            await check(busy, double)


async def begin(busy: Busy, double: Double) -> None:
    """What makes the first crash; until all have crashed and the terminal answers."""
    if double.by == "the end of the command":
        busy.gates["build"].open()
    else:
        arguments = {"keys": " "} if double.by == "term_keys" else {}
        await busy.call("line", double.by, name="build", **arguments).outcome()
    for path, lives in double.lives.items():
        await busy.is_up_again(path, lives)
    assert await busy.daemon.records("build") is not None


async def check(busy: Busy, double: Double) -> None:
    for gate in busy.gates.values():
        gate.open()
    assert is_true(await busy.runs["other"].result(), "other")
    woken = await busy.all_wakes(2)
    assert sorted(each.split("/")[0] for each in woken) == ["term:build", "term:other"]
    line = busy.callers["line"]
    killed = double.kills
    assert await last_exit(busy) == (None if killed else 5)
    again = await line.call("term_run", name="build", cmd="echo works")
    assert (again["seq"], again["stdout"]) == (1, "works\n")
    assert await last_exit(busy) == 0
    first, second = (await line.call("term_read", name="build", since_seq=-1))["result"]
    assert second == again
    assert is_killed(first) if killed else is_true(first, "build")
    if FRONT not in double.lives:
        assert await busy.runs["build"].result() == first
    assert busy.restarted() == double.lives
    assert len(busy.shells("build")) == 1


async def last_exit(busy: Busy) -> object:
    """What the list of terminals says of the newest command of ``build``."""
    infos = (await busy.callers["line"].call("term_list"))["result"]
    return next(info["last_exit"] for info in infos if info["name"] == "build")


async def test_a_front_that_crashed_after_a_command_describes_it_as_before(tmp_path: Path) -> None:
    async with daemon_inside(tmp_path) as daemon, line_caller(endpoint_of(daemon)) as line:
        await daemon.spawn("build")
        await line.call("term_run", name="build", cmd="(exit 7)")
        [before] = (await line.call("term_list"))["result"]
        assert before["last_exit"] == 7
        with crashing(FRONT):
            await line.call("term_list")
        await daemon.records("build")  # answered once the shell has introduced itself
        [after] = (await line.call("term_list"))["result"]
    assert after == before
