"""What a machine must have."""

from __future__ import annotations

from pathlib import Path

import pytest

from aegis.doctor.finding import Finding, Level, has_problem, ok, problem, warning
from aegis.doctor.machine import examine_machine
from aegis.doctor.machine_rules import (
    EARLIEST_S,
    judge_clock,
    judge_files,
    judge_kernel,
    judge_packages,
    judge_python,
    judge_space,
    judge_watches,
)
from aegis.state.root import StatePaths, make_directory

MIB = 1 << 20
NOW = EARLIEST_S + 1000


@pytest.mark.parametrize(
    ("found", "level"),
    [
        (judge_kernel("Linux", "5.4.0-90-generic"), Level.OK),
        (judge_kernel("Linux", "6.18.44-fc"), Level.OK),
        (judge_kernel("Linux", "5.3.99"), Level.PROBLEM),
        (judge_kernel("Linux", "4.19"), Level.PROBLEM),
        (judge_kernel("Linux", "unknown"), Level.PROBLEM),
        (judge_kernel("Darwin", "23.1.0"), Level.PROBLEM),
        (judge_python((3, 11, 0)), Level.OK),
        (judge_python((3, 10, 9)), Level.PROBLEM),
        (judge_packages({"trio": "0.35.0", "mcp": "2.3.0"}), Level.OK),
        (judge_packages({"trio": "0.35.0", "mcp": None}), Level.PROBLEM),
        (judge_files(1024, 4096), Level.OK),
        (judge_files(256, 1023), Level.WARNING),
        (judge_watches(8192), Level.OK),
        (judge_watches(None), Level.OK),
        (judge_watches(8191), Level.WARNING),
        (judge_watches(8192, "Too many open files"), Level.WARNING),
        (judge_space(1024 * MIB, "/x"), Level.OK),
        (judge_space(1023 * MIB, "/x"), Level.WARNING),
        (judge_space(63 * MIB, "/x"), Level.PROBLEM),
        (judge_clock(NOW, None), Level.OK),
        (judge_clock(NOW, NOW + 120), Level.OK),
        (judge_clock(NOW, NOW + 121), Level.WARNING),
        (judge_clock(0, None), Level.PROBLEM),
    ],
    ids=lambda each: each.sentence if isinstance(each, Finding) else each.value,
)
def test_a_figure_is_judged(found: Finding, level: Level) -> None:
    assert found.level is level
    assert bool(found.remedy) == (level is not Level.OK)


def test_a_missing_package_is_named() -> None:
    assert judge_packages({"trio": None, "mcp": None}).sentence == "missing: mcp, trio"


def test_only_a_problem_is_one() -> None:
    assert not has_problem([ok("a", "b"), warning("a", "b", "c")])
    assert has_problem([ok("a", "b"), problem("a", "b", "c")])


def test_this_machine_can_run_what_is_tested_on_it(tmp_path: Path) -> None:
    state = StatePaths(tmp_path)
    make_directory(state)
    state.lock.touch()
    found = {each.subject: each for each in examine_machine(state)}
    assert list(found) == [
        *("kernel", "python", "packages", "open files", "inotify", "disk", "clock")
    ]
    assert "trio " in found["packages"].sentence
    assert not has_problem(found.values())
