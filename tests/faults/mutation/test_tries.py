"""Tests of the tries of a campaign, their order, and their results."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from aegis.journal.appender import Appender
from tests.faults.mutation.histories import play_until_broken
from tests.faults.mutation.machine import ROOT, Ended, Machine
from tests.faults.mutation.parts import RINGS, Part, first_failure, ordinary
from tests.faults.mutation.reached import reached_lines
from tests.faults.mutation.run import Campaign, Change, stages_of
from tests.faults.mutation.tries import UNBROKEN, Try, rows, totals, verdicts

SIMULATED, REAL = RINGS[0], RINGS[2]
MUTANT = {"m": Change("aegis/names.py", "broken", range(7, 9))}


def tried(what: str, part: str, noticed_by: str | None = None) -> Try:
    return Try(what=what, part=part, noticed_by=noticed_by, seconds=1.0)


def test_a_ring_goes_before_an_ordinary_test() -> None:
    tries = [
        tried(UNBROKEN, "ring 2"),
        tried("a", "ring 2", "told and gone"),
        tried("b", "ring 2"),
        tried("b", "ordinary: x", "t.py::t"),
        tried("b", "ring 4", "r.py::r"),
        tried("c", "ordinary: x", "t.py::t"),
        tried("c", "ring 3"),
        tried("d", "ring 2"),
    ]
    found = verdicts("abcde", tries)
    assert [(each.by, each.how) for each in found.values()] == [
        ("ring 2", "told and gone"),
        ("ring 4", "r.py::r"),
        ("ordinary: x", "t.py::t"),
        (None, None),
        (None, None),
    ]
    assert totals(found) == {
        "only by an ordinary test": 1,
        "ring 2": 1,
        "ring 4": 1,
        "survived": 2,
    }
    assert rows(found)[0] == "| a | ring 2 | `told and gone` |"
    assert rows(found)[3] == "| d | survived |  |"


def test_a_try_is_read_as_it_was_written() -> None:
    each = attrs.evolve(tried("m", "ring 1", "t"), reached={"a.py": [1, 2]})
    assert Try.from_line(each.to_line()) == each


@pytest.mark.parametrize(
    ("output", "failure"),
    [
        ("FAILED wake lost - seed 3: a subscriber - never", "wake lost"),
        ("1 failed\nFAILED tests/a.py::test_b[a - c] - assert 1", "tests/a.py::test_b[a - c]"),
        ("FAILED tests/a.py::test_b - a[0] is [1]", "tests/a.py::test_b"),
        ("ERROR tests/a.py::test_b[group commit]\n", "tests/a.py::test_b[group commit]"),
        ("Killed\n", None),
    ],
)
def test_the_first_failure_is_found(output: str, failure: str | None) -> None:
    assert first_failure(output) == failure


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("aegis/terminals/screen/live.py", "tests/aegis/terminals"),
        ("aegis/daemon_process.py", "tests/aegis/test_daemon_process.py"),
        ("actors/incarnation.py", "tests/actors"),
    ],
)
def test_the_ordinary_tests_are_those_of_the_package(file: str, tests: str) -> None:
    names = [f"ordinary: {tests}", f"ordinary, real: {tests}"]
    assert [part.name for part in ordinary(file)] == names
    assert all(tests in part.words for part in ordinary(file))


def test_ordinary_tests_come_behind_the_cheapest_ring() -> None:
    stages = stages_of(RINGS, MUTANT)
    assert [stage["m"].name for stage in stages] == [
        "ring 2",
        "ordinary: tests/aegis/test_names.py",
        "ordinary, real: tests/aegis/test_names.py",
        "ring 1",
        "ring 3",
        "ring 4",
        "ordinary, real: tests/e2e",
    ]


@pytest.mark.long
def test_the_tests_of_the_changed_file_itself_go_first() -> None:
    words = ["-p", "tests.faults.mutation.first", "--first", "tests/aegis/inboxes/test_quoting.py"]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", *words]
    done = subprocess.run(
        [*command, "tests/aegis/inboxes"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    files = [line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line]
    assert files[0] == "tests/aegis/inboxes/test_quoting.py"
    assert len(set(files)) > 1
    assert "tests/aegis/inboxes/test_quoting.py" in ordinary("aegis/inboxes/quoting.py")[0].words


async def test_those_that_nothing_noticed_are_tried_first() -> None:
    mutants = {"a": MUTANT["m"], "b": MUTANT["m"]}
    on = Scripted(Path(), ended=[FINE] * 3)
    campaign = Campaign(on, mutants, 1, None)
    campaign.tries = [tried("a", "ordinary: x", "t.py::t")]
    await campaign.run([dict.fromkeys(mutants, REAL)])
    assert [each.what for each in campaign.tries[1:]] == [UNBROKEN, "b", "a"]


def test_no_part_looks_at_what_breaks_promises_by_itself() -> None:
    words = [word for part in RINGS for word in part.words]
    assert not {"tests", "tests/faults", "tests/faults/test_broken_promises.py"} & {*words}


@pytest.mark.long
def test_a_history_of_a_broken_tree_breaks_a_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert play_until_broken(range(1)) is None
    monkeypatch.setattr(Appender, "is_synced", lambda self, position: True)
    assert play_until_broken(range(20, 60)) is not None


def test_the_lines_that_ran_are_printed_last() -> None:
    assert reached_lines('FAILED x\nREACHED {"a.py": [1, 3]}\n') == {"a.py": [1, 3]}
    assert reached_lines("Killed") == {}


@attrs.define
class Scripted(Machine):
    """A machine with planned results of its commands, in turn."""

    ended: list[tuple[int | None, str]] = attrs.field(factory=list)
    ran: list[tuple[Sequence[str], bool]] = attrs.field(factory=list)

    async def run(
        self, words: Sequence[str], *, within_s: float, change: tuple[str, str] | None = None
    ) -> Ended:
        self.ran.append((words, change is not None))
        code, output = self.ended.pop(0)
        return Ended(code, output, 2.0)


async def outcome(part: Part, *ended: tuple[int | None, str], **options: Any) -> Campaign:
    on = Scripted(Path(), ended=list(ended))
    campaign = Campaign(on, MUTANT, 1, options.get("out"))
    assert await campaign.run([{"m": part}]) is None
    assert on.ended == []
    return campaign


FINE, FAILED = (0, ""), (1, "FAILED tests/a.py::test_b - why")


async def test_a_failure_among_real_processes_must_come_again() -> None:
    campaign = await outcome(REAL, FINE, FAILED, FINE, FINE)
    assert verdicts(MUTANT, campaign.tries)["m"].by is None
    campaign = await outcome(REAL, FINE, FAILED, FAILED)
    assert verdicts(MUTANT, campaign.tries)["m"].how == "tests/a.py::test_b"


async def test_a_hang_is_noticed() -> None:
    campaign = await outcome(REAL, FINE, (None, ""))
    assert verdicts(MUTANT, campaign.tries)["m"].how == "hang"


@pytest.mark.parametrize(("line", "tries"), [(7, 2), (9, 1)])
async def test_a_part_that_does_not_run_the_line_is_not_tried(line: int, tries: int) -> None:
    told = (0, f'REACHED {{"aegis/names.py": [1, {line}]}}')
    campaign = await outcome(SIMULATED, told, *[FINE] * (tries - 1))
    assert len(campaign.tries) == tries


async def test_what_was_tried_is_not_tried_again(tmp_path: Path) -> None:
    out = tmp_path / "tries"
    first = await outcome(REAL, FINE, FINE, out=out)
    again = await outcome(REAL, out=out)
    assert again.tries == first.tries


async def test_a_part_that_fails_on_the_unbroken_tree_ends_it() -> None:
    on = Scripted(Path(), ended=[(3, f"{sys.argv[0]} is gone")])
    campaign = Campaign(on, MUTANT, 1, None)
    assert await campaign.run([{"m": SIMULATED}]) == "ring 2: exit 3"
