"""Tests of the scenarios of whole terminals: their work, and the broken promises that they find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from aegis.journal import purging
from aegis.journal.flusher import Flusher
from aegis.journal.note import Note
from aegis.terminals.directory import directory
from aegis.terminals.directory.workspace import OpenNames
from aegis.terminals.front import recovery
from aegis.terminals.front.current_command import CurrentCommand
from aegis.terminals.meta import save_settings
from aegis.terminals.record import UnrecordedCommand
from tests.chaos.exhaustive import Effort, Exploration
from tests.chaos.machine.simulated_host import SimulatedHost
from tests.chaos.strikes import Kind, Strike
from tests.faults.terminals import (
    NotedRecovery,
    OnTerminals,
    Purge,
    Recovery,
    Spawn,
    StartRunFinish,
    TypeAhead,
    undisturbed_records,
)

Patch = pytest.MonkeyPatch

ENDS = {
    StartRunFinish: {
        "build": [("exited", 0), ("exited", 0), ("exited", 7), ("exited", 0), ("exited", 0)]
    },
    TypeAhead: {"build": [("exited", 0), ("exited", 0), ("exited", 7), ("exited", 0)]},
    Recovery: {
        "build": [("exited", 0), ("killed_by_restart", None), ("exited", 0)],
        "test": [("killed_by_restart", None)],
    },
    NotedRecovery: {
        "build": [("exited", 0), ("killed_by_restart", None), ("exited", 0)],
        "test": [("exited", 7)],
    },
    Spawn: {"build": [], "test": []},
    Purge: {"build": [("exited", 0)], "test": [("exited", 0)]},
}

FEW = Effort(image_step=499, second_step=10_000, left_step=10_000, max_product=16)


@pytest.mark.parametrize("scenario", ENDS, ids=lambda scenario: scenario.__name__)
def test_undisturbed_every_command_is_recorded_with_its_own_end(
    scenario: type[OnTerminals],
) -> None:
    outcome = Exploration(scenario()).run(None)
    assert outcome.failure == ""
    assert undisturbed_records(outcome.evidence.proof.next) == ENDS[scenario]
    assert outcome.evidence.proof.refused == []


def test_what_a_failed_terminal_shows_is_synced() -> None:
    findings = Exploration(Recovery(), FEW).examine(FAILS_TO_START)
    assert not findings.violations, findings.violations[0]


FAILS_TO_START = Strike("actor.setup.after[Shell]", 2, Kind.CRASH)
"""The front has written the record of the running command, and ends before its sync."""


async def sync_nothing(flusher: Flusher, path: object) -> None:
    return


def show_what_is_not_synced(patch: Patch) -> None:
    for module in (recovery, directory):
        patch.setattr(module, "sync_ledger", sync_nothing)


def forget_what_was_in_flight(patch: Patch) -> None:
    patch.setattr(Note, "load", lambda self: None)


def forget_a_run_behind_a_typed_line(patch: Patch) -> None:
    real = CurrentCommand._write

    def write(self: CurrentCommand, command: UnrecordedCommand | None) -> None:
        displaced, self._displaced = self._displaced, None
        try:
            real(self, command)
        finally:
            self._displaced = displaced

    patch.setattr(CurrentCommand, "_write", write)


def end_nothing_of_earlier_daemons(patch: Patch) -> None:
    patch.setattr(SimulatedHost, "open_target", lambda self, process: None)


def leave_a_closed_terminal_in_the_workspace(patch: Patch) -> None:
    async def remove(self: OpenNames, name: str) -> None:
        return

    patch.setattr(OpenNames, "remove", remove)


def leave_a_spawned_terminal_out_of_the_workspace(patch: Patch) -> None:
    async def add(self: OpenNames, name: str) -> None:
        return

    patch.setattr(OpenNames, "add", add)


def purge_without_deleting(patch: Patch) -> None:
    patch.setattr(purging, "delete", lambda disk, doomed: None)


def forget_to_save_a_size(patch: Patch) -> None:
    def save(disk: Any, files: Any, settings: Any, *, is_new: bool) -> None:
        save_settings(disk, files, attrs.evolve(settings, cols=80), is_new=is_new)

    patch.setattr("aegis.terminals.directory.life_cycle.save_settings", save)


@attrs.frozen
class Broken:
    """A broken promise, its break, the scenario that must find it, and the strike."""

    by: Callable[[Patch], None]
    scenario: type[OnTerminals]
    rule: str
    strike: Strike | None = None


BROKEN = [
    Broken(show_what_is_not_synced, Recovery, "told and gone", FAILS_TO_START),
    Broken(forget_what_was_in_flight, Recovery, "unrecorded"),
    Broken(
        forget_a_run_behind_a_typed_line,
        TypeAhead,
        "unrecorded",
        Strike("mark.start.after", 4, Kind.DIE),
    ),
    Broken(end_nothing_of_earlier_daemons, Recovery, "are left"),
    Broken(leave_a_closed_terminal_in_the_workspace, Purge, "and should have one of"),
    Broken(leave_a_spawned_terminal_out_of_the_workspace, Spawn, "and should have one of"),
    Broken(purge_without_deleting, Purge, "remains of a purge"),
    Broken(forget_to_save_a_size, Spawn, "and should have one of"),
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.by.__name__)
def test_a_promise_broken_on_purpose_is_noticed(broken: Broken, monkeypatch: Patch) -> None:
    scenario = broken.scenario()  # what was there before is made by sound code
    broken.by(monkeypatch)
    found = Exploration(scenario, FEW).examine(broken.strike).violations
    assert any(broken.rule in violation.what for violation in found), found[:3]
