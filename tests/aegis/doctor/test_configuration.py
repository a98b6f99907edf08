"""The configuration, as the doctor sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from aegis.doctor.configuration import REMEDY, examine_configuration
from aegis.doctor.finding import ok, problem
from aegis.state.root import CONFIG_NAME, StatePaths


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "all defaults"),
        ("", "all defaults"),
        (
            "terminals: {rows: 30, cols: 90}",
            ".aegis.yaml sets terminals.cols, terminals.rows",
        ),
    ],
)
def test_a_good_configuration_is_told_by_what_it_sets(
    tmp_path: Path, text: str | None, sentence: str
) -> None:
    if text is not None:
        (tmp_path / CONFIG_NAME).write_text(text)
    assert list(examine_configuration(StatePaths(tmp_path))) == [ok("configuration", sentence)]


def test_each_problem_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / CONFIG_NAME
    path.write_text("terminals:\n  rows: x\nweb: {}\n")
    assert list(examine_configuration(StatePaths(tmp_path))) == [
        problem(
            "configuration",
            f"{path} line 2: terminals.rows must be a whole number from 1 to 1000, not 'x'",
            REMEDY,
        ),
        problem(
            "configuration",
            f"{path} line 3: there is no key 'web'; the known keys are terminals, nodes, agents, "
            "default_agent, queues, canvases, plugin_dirs, groups, limits, keep, lifecycle, "
            "worktrees, telegram",
            REMEDY,
        ),
    ]


def test_a_shell_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / CONFIG_NAME
    path.write_text("terminals: {shell: /no/such/shell}")
    [found] = examine_configuration(StatePaths(tmp_path))
    assert found.level.value == "warning"
    assert "'/no/such/shell' is not an executable program" in found.sentence
    assert str(path) in found.remedy
