"""The tables of fault points name what the code passes, and the rings pass all that they name.

Of rings 1 and 2 a little is played here. What only a real daemon can pass is named with the reason;
``tests/crash/test_one_kill.py`` kills one there.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import attrs
import pytest

import actors
import aegis
from actors.faults import FaultPoint, FaultTable, Plan
from aegis.lifetime import FAULT_TABLES
from aegis.telegram.faults import TELEGRAM
from tests.chaos.exhaustive import Exploration
from tests.chaos.histories import script as s
from tests.chaos.histories.agent_drawing import POINTS as STRUCK_WITH_AGENTS
from tests.chaos.histories.canvas_drawing import POINTS as STRUCK_WITH_CANVASES
from tests.chaos.histories.drawing import POINTS as STRUCK_BY_RING_2
from tests.chaos.histories.drawing import make_script
from tests.chaos.histories.group_drawing import POINTS as STRUCK_WITH_GROUPS
from tests.chaos.histories.playing import play
from tests.chaos.histories.task_drawing import POINTS as STRUCK_WITH_QUEUES
from tests.chaos.histories.trouble import TroubledPlan
from tests.chaos.histories.workflow_drawing import POINTS as STRUCK_WITH_WORKFLOWS
from tests.chaos.strikes import Kind, Strike
from tests.faults.terminals import StartRunFinish
from tests.faults.test_exhaustive import SCENARIOS

POINTS = {point.name for table in FAULT_TABLES for point in table}

ONLY_REAL = {
    "gateway.accept.before": "servers are not simulated",
    "agent.launch.before": "terminal agents are tried in tests/e2e/test_terminal_agent_kills.py",
    "agent.launch.after": "terminal agents are tried in tests/e2e/test_terminal_agent_kills.py",
    "agent.images.after": "files of messages are tried in tests/e2e/test_agent_sends.py",
    **dict.fromkeys(
        (point for point in POINTS if point.startswith("worktree.")),
        "worktrees need git, and are tried in tests/e2e/test_agent_worktrees.py",
    ),
    **dict.fromkeys(
        (point for point in POINTS if point.startswith("rewind.")),
        "rewinds need files, and are tried in tests/e2e/test_agent_rewinds.py",
    ),
    **dict.fromkeys(
        (point for point in POINTS if point.startswith("takeover.")),
        "take-overs need a terminal, and are tried in tests/e2e/test_agent_takeovers.py",
    ),
    **dict.fromkeys(
        (point.name for point in TELEGRAM),
        "the chat is tried in tests/e2e/test_telegram_kills.py",
    ),
}
"""Points that no simulated daemon passes, each with the reason."""

NOT_IN_HISTORIES = {
    "ledger.rotate.before",
    "ledger.rename.before",
    "ledger.rename.after",
    "ledger.rotate.after",
    "ledger.compact.before",
    "ledger.replace.before",
    "ledger.replace.after",
    "ledger.split.before",
    "ledger.split.after",
    "ledger.pack.before",
    "ledger.pack.after",
    "workflow.withdraw.before",
    "workflow.withdraw.after",
}
"""Points of rotations and compactions, for which a history is too short, and of abandoned calls.

Ring 1 has workflows that leave calls; ``tests/aegis/journal/test_table.py`` tries compactions.
"""

CRASHED = "actor.receive.before[Shell]"
"""The crash that makes a supervisor start an actor again: nothing else passes its points."""

SEEDS = (5627, 5042, 5034, 115)
"""Histories in which everything is done that passes a point."""

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "deaths-of-a-daemon.md"


# What stands in the code.


CONSTANT = re.compile(r"(^|\.)[A-Z_]+$")


@cache
def sources() -> dict[str, str]:
    """All modules of both packages, by name."""
    found = {}
    for package in (actors, aegis):
        top = Path(str(package.__file__)).parent
        for path in top.rglob("*.py"):
            parts = path.relative_to(top.parent).with_suffix("").parts
            found[".".join(parts)] = path.read_text()
    return found


def named(what: type[FaultTable] | type[FaultPoint]) -> dict[str, FaultTable | FaultPoint]:
    """Those of a module ``faults``, as ``module.CONSTANT``."""
    return {
        f"{module}.{constant}": value
        for module in sources()
        if module.endswith(".faults")
        for constant, value in vars(importlib.import_module(module)).items()
        if isinstance(value, what)
    }


def passes(text: str) -> Iterator[str]:
    """The points that are passed by ``hit``, ``reach`` or ``delay``, as ``module.CONSTANT``."""
    tree = ast.parse(text)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    imported = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=receiver, attr="hit" | "reach")):
                pass
            case ast.Attribute(value=receiver, attr="delay" | "hit") if id(
                node
            ) not in called and CONSTANT.search(ast.unparse(receiver)):
                pass
            case _:
                continue
        first, dot, rest = ast.unparse(receiver).partition(".")
        yield f"{imported.get(first, first)}{dot}{rest}"


def test_every_table_is_armed_by_a_daemon() -> None:
    tables = {id(table) for table in named(FaultTable).values()}
    assert tables == {id(table) for table in FAULT_TABLES}


def test_what_the_code_passes_is_what_the_tables_name() -> None:
    passing = [text for text in sources().values() if re.search(r"\.(reach\(|(hit|delay)\b)", text)]
    assert {each for text in passing for each in passes(text)} == set(named(FaultPoint))
    assert len(passing) > len(FAULT_TABLES)
    assert {getattr(point, "name", "") for point in named(FaultPoint).values()} == POINTS


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from aegis.journal import faults\nfaults.A.hit(x)", "aegis.journal.faults.A"),
        ("from actors.faults import A\nasync def f():\n await A.reach()", "actors.faults.A"),
        ("from actors.faults import A as B\nB.hit()", "actors.faults.A"),
        ("from aegis.journal import faults\nf(faults.A.delay)", "aegis.journal.faults.A"),
        ("from aegis.journal import faults\nf(faults.A.hit)", "aegis.journal.faults.A"),
        ("FaultPoint('a').hit()", "FaultPoint('a')"),
    ],
)
def test_a_pass_is_known_however_its_point_is_imported(text: str, found: str) -> None:
    assert list(passes(text)) == [found]


def test_the_page_of_deaths_has_every_point_and_no_other() -> None:
    rows = re.findall(r"^\| `([a-z_.]+\.(?:before|after))` \|", PAGE.read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(POINTS)


# What is passed.


def recorded(patch: pytest.MonkeyPatch, kind: type[Plan]) -> set[str]:
    """What is passed while such a plan is armed, from now on: points, also with their subjects."""
    seen: set[str] = set()
    real = kind.strike

    def strike(self: Plan, point: FaultPoint, subject: str = "") -> float:
        seen.update({point.name, f"{point.name}[{subject}]"})
        return real(self, point, subject)

    patch.setattr(kind, "strike", strike)
    return seen


def without_subjects(passed: set[str]) -> set[str]:
    return {each.partition("[")[0] for each in passed}


def test_the_scenarios_of_ring_1_pass_every_point(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = recorded(monkeypatch, Plan)
    for scenario in SCENARIOS:
        Exploration(scenario).run(None)
    Exploration(StartRunFinish()).run(Strike(CRASHED, 3, Kind.CRASH))
    assert without_subjects(passed) == POINTS - ONLY_REAL.keys()


@pytest.mark.long
def test_histories_pass_every_point_and_every_place_where_they_let_something_go_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passed = recorded(monkeypatch, TroubledPlan)
    for seed in SEEDS:
        play(make_script(seed))
    crash = s.PointFault(step=0, place=CRASHED, number=3, kind=Kind.CRASH)
    play(attrs.evolve(make_script(SEEDS[0]), faults=(crash,)))
    assert without_subjects(passed) == POINTS - ONLY_REAL.keys() - NOT_IN_HISTORIES
    struck = STRUCK_BY_RING_2.keys() | STRUCK_WITH_AGENTS.keys() | STRUCK_WITH_QUEUES.keys()
    struck |= STRUCK_WITH_GROUPS.keys() | STRUCK_WITH_CANVASES.keys()
    struck |= STRUCK_WITH_WORKFLOWS.keys()
    assert struck - passed == set()
