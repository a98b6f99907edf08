"""The ancestors of a process while its parents end."""

from __future__ import annotations

import os

import pytest

from aegis.processes import ancestry as module
from aegis.processes.ancestry import ancestry
from aegis.processes.process_table import ProcessInfo

Table = dict[int, list[ProcessInfo | None]]


def process(pid: int, parent: int, start: int) -> ProcessInfo:
    return ProcessInfo(
        pid=pid, name="sh", state="S", session=1, threads=1, start_time=start, parent=parent
    )


def read(monkeypatch: pytest.MonkeyPatch, table: Table, pid: int) -> list[int]:
    """Each read of a process takes its next state; the last one stays."""

    def process_of(wanted: int) -> ProcessInfo | None:
        states = table.get(wanted, [None])
        return states.pop(0) if len(states) > 1 else states[0]

    monkeypatch.setattr(module, "known_process", process_of)
    monkeypatch.setattr(module, "environment_of", lambda pid: b"")
    return [each.pid for each in ancestry(pid)]


def test_a_parent_that_ends_during_the_read_hides_no_ancestor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = os.getpid()
    gone: Table = {
        -3: [process(-3, -2, 30), process(-3, -1, 30)],
        -2: [None],
        -1: [process(-1, own, 10)],
    }
    assert read(monkeypatch, gone, -3) == [-3, -1]


def test_a_parent_whose_pid_is_another_process_is_not_an_ancestor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reused: Table = {
        -3: [process(-3, -2, 30), process(-3, -1, 30)],
        -2: [process(-2, 0, 31)],
        -1: [process(-1, os.getpid(), 10)],
    }
    assert read(monkeypatch, reused, -3) == [-3, -1]


def test_a_process_that_ended_or_has_too_many_ancestors_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert read(monkeypatch, {}, -3) == []
    deep: Table = {-n: [process(-n, -n - 1, 1000 - n)] for n in range(1, 200)}
    assert read(monkeypatch, deep, -1) == []
