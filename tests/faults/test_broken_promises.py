"""Tests of ring 1 itself: each case breaks one promise on purpose, and ring 1 finds it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from aegis.canvases import views
from aegis.canvases.canvas import CanvasActor
from aegis.groups import members
from aegis.groups.desk import DeskGroup
from aegis.inboxes.inbox import Inbox
from aegis.journal import disk, note, opening, raw_log, shared_files
from aegis.journal.appender import Appender
from aegis.journal.disk import Disk
from aegis.journal.file_content import Exchanged, FilePlace
from aegis.journal.note import Note
from aegis.journal.raw_log import RawLog
from aegis.journal.shared_directory import SharedDirectory
from aegis.journal.table import Table
from aegis.protocol.inboxes import Deliver
from aegis.turns import watch
from aegis.workflows import runs
from aegis.workflows.desk import WorkflowDesk
from tests.chaos.exhaustive import Effort, Exploration, Scenario
from tests.chaos.machine.simulated_disk import SimulatedDirectory, SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher, skipping
from tests.faults.canvases import Sections
from tests.faults.groups import Broadcasts
from tests.faults.inboxes import HandOver
from tests.faults.ledgers import Append
from tests.faults.names import NamedWorkspaces, OpenTerminals, Subscriptions
from tests.faults.raw_logs import Rotation
from tests.faults.workflows import Steps

Patch = pytest.MonkeyPatch


def skip_the_sync(patch: Patch) -> None:
    patch.setattr(SimulatedFlusher, "sync_slowly", skipping(SimulatedFlusher.sync_slowly))


def acknowledge_before_the_sync(patch: Patch) -> None:
    patch.setattr(Appender, "is_synced", lambda self, position: True)


def acknowledge_what_came_during_the_sync(patch: Patch) -> None:
    real = Appender._acknowledge
    patch.setattr(
        Appender, "_acknowledge", lambda self, epoch, target: real(self, epoch, epoch.written)
    )


def sync_no_directory(patch: Patch) -> None:
    for module in (disk, opening):
        patch.setattr(module, "sync_directory", lambda to, directory: None)


def sync_not_the_directory_above_that_of_all_terminals(patch: Patch) -> None:
    patch.setattr(opening, "MAY_BE_NEW", 2)


def forget_to_cut_a_torn_tail(patch: Patch) -> None:
    patch.setattr(opening, "end_of_last_line", lambda to, fd, size: size)


def throw_a_torn_tail_away(patch: Patch) -> None:
    patch.setattr(opening, "replace_file", lambda to, path, chunks: None)


def show_what_an_earlier_life_did_not_sync(patch: Patch) -> None:
    real = SimulatedDisk.fsync

    def fsync(self: SimulatedDisk, fd: int) -> None:
        if self.model.size(fd) == 0:  # of a new file and of a directory, but not at an opening
            real(self, fd)

    patch.setattr(SimulatedDisk, "fsync", fsync)


def go_on_after_a_failed_sync(patch: Patch) -> None:
    """Treat a failed sync as if the next sync covered it."""

    async def recover(self: Appender) -> None:
        self._epoch.error = None

    patch.setattr(Appender, "recover", recover)
    patch.setattr(Appender, "_fail", _fail_and_keep)


def _fail_and_keep(self: Any, epoch: Any, error: Exception) -> None:
    if epoch.error is None:
        epoch.error = error
        self._notify(epoch)


def take_a_short_write_for_a_whole_one(patch: Patch) -> None:
    patch.setattr(disk, "write_all", lambda to, fd, data: to.write(fd, data))


def rename_before_the_data_is_synced(patch: Patch) -> None:
    real: Callable[..., int] = disk.install_file

    def install(to: Disk, path: Path, chunks: Iterable[bytes], *, durable: bool = False) -> int:
        return real(to, path, chunks)

    patch.setattr(disk, "install_file", install)
    patch.setattr(note, "install_file", install)


def deliver_twice(patch: Patch) -> None:
    async def unknown(_inbox: Inbox, _id: str) -> bool:
        return False

    patch.setattr(Inbox, "_knows", unknown)


def show_deferred_messages_before_their_sync(patch: Patch) -> None:
    patch.setattr(Table, "_is_durable", lambda self, position: True)
    patch.setattr(Inbox, "_sync_if_enough", lambda self: self._table._settle())


def write_both_notes_into_one_slot(patch: Patch) -> None:
    real: Callable[..., None] = disk.pwrite_all
    patch.setattr(note, "pwrite_all", lambda to, fd, data, offset: real(to, fd, data, 0))


def leave_the_note_unsynced(patch: Patch) -> None:
    async def sync(self: Note) -> None:
        if self._fd is None:
            self._put(self._current.fields)

    patch.setattr(Note, "sync", sync)


def show_a_note_that_an_earlier_life_did_not_sync(patch: Patch) -> None:
    async def confirm(self: Note) -> None:
        await trio.lowlevel.checkpoint()

    patch.setattr(Note, "confirm", confirm)


def rotate_without_saying_so_first(patch: Patch) -> None:
    real = RawLog._store

    def store(self: RawLog, bases: raw_log._Bases) -> None:
        if bases.next is None:
            real(self, bases)
        else:
            self._bases = bases

    patch.setattr(RawLog, "_store", store)


def exchange_without_a_sync(patch: Patch) -> None:
    patch.setattr(SimulatedDirectory, "sync", lambda self: None)


def forget_what_an_exchange_displaced(patch: Patch) -> None:
    def exchange(directory: SharedDirectory, place: FilePlace, *_: object) -> Exchanged:
        directory.rename(place.swap, place.name)
        directory.sync()
        return "exchanged"

    patch.setattr(shared_files, "_exchange", exchange)


def replace_a_section_whatever_was_read(patch: Patch) -> None:
    patch.setattr(views, "refusal", lambda *_: None)


def read_an_older_document_than_the_state(patch: Patch) -> None:
    real: Callable[..., None] = CanvasActor._judge

    def judge(self: CanvasActor, found: Any) -> None:
        before = self._document
        real(self, found)
        self._document = before

    patch.setattr(CanvasActor, "_judge", judge)


def take_any_turn_of_a_member_for_its_reply(patch: Patch) -> None:
    class Everything(list[object]):
        def __contains__(self, _: object) -> bool:
            return True

    patch.setattr(watch, "_message_ids", lambda fields: Everything())
    patch.setattr(DeskGroup, "seen", lambda self, session: 0)


def send_a_broadcast_again_after_a_restart(patch: Patch) -> None:
    real: Callable[..., Deliver] = members.order

    def order(*what: Any) -> Deliver:
        return attrs.evolve(real(*what), id=uuid.uuid4().hex)

    patch.setattr(members, "order", order)


def forget_the_ends_of_steps(patch: Patch) -> None:
    patch.setattr(runs, "with_outcome", lambda call, **_: attrs.evolve(call, ended=call.ended + 1))


def answer_a_step_before_its_sync(patch: Patch) -> None:
    real: Callable[..., None] = WorkflowDesk._finish

    def finish(self: Any, live: Any, position: str, outcome: Any, *more: Any, **named: Any) -> None:
        if position in live.asked:
            self._answer(live, position, outcome)
        real(self, live, position, outcome, *more, **named)

    patch.setattr(WorkflowDesk, "_finish", finish)


@attrs.frozen
class Broken:
    """A broken promise, its break, and the scenario that must find it, by strikes at ``places``."""

    by: Callable[[Patch], None]
    scenario: Scenario
    places: tuple[str, ...] = ()


APPEND, GROUP = Append("append", (1, 1)), Append("group commit", (5, 3))

BROKEN = [
    Broken(skip_the_sync, APPEND),
    Broken(acknowledge_before_the_sync, APPEND),
    Broken(acknowledge_what_came_during_the_sync, GROUP),
    Broken(sync_no_directory, APPEND),
    Broken(sync_not_the_directory_above_that_of_all_terminals, APPEND),
    Broken(forget_to_cut_a_torn_tail, APPEND),
    Broken(throw_a_torn_tail_away, APPEND),
    Broken(show_what_an_earlier_life_did_not_sync, APPEND),
    Broken(go_on_after_a_failed_sync, APPEND),
    Broken(take_a_short_write_for_a_whole_one, OpenTerminals()),
    Broken(rename_before_the_data_is_synced, OpenTerminals()),
    Broken(rename_before_the_data_is_synced, NamedWorkspaces()),
    Broken(skip_the_sync, HandOver()),
    Broken(deliver_twice, HandOver()),
    Broken(show_deferred_messages_before_their_sync, HandOver(deferred=("bob",))),
    Broken(write_both_notes_into_one_slot, Subscriptions()),
    Broken(leave_the_note_unsynced, Subscriptions()),
    Broken(show_a_note_that_an_earlier_life_did_not_sync, Subscriptions()),
    Broken(show_a_note_that_an_earlier_life_did_not_sync, NamedWorkspaces()),
    Broken(rotate_without_saying_so_first, Rotation()),
    Broken(exchange_without_a_sync, Sections(), ("exchange.sync",)),
    Broken(forget_what_an_exchange_displaced, Sections(edits_at="rename", number=3)),
    Broken(replace_a_section_whatever_was_read, Sections()),
    Broken(read_an_older_document_than_the_state, Sections(), ("disk.fsync",)),
    Broken(take_any_turn_of_a_member_for_its_reply, Broadcasts()),
    Broken(send_a_broadcast_again_after_a_restart, Broadcasts(), ("ledger.append.",)),
    Broken(skip_the_sync, Broadcasts()),
    Broken(forget_the_ends_of_steps, Steps()),
    Broken(answer_a_step_before_its_sync, Steps(), ("ledger.sync.before",)),
]

QUICK = Effort(image_step=3, second_step=10, stop_at_violation=True)


@pytest.mark.parametrize(
    "broken", BROKEN, ids=lambda broken: f"{broken.by.__name__}-{broken.scenario.name}"
)
def test_a_promise_broken_on_purpose_is_noticed(
    broken: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken.by(monkeypatch)
    effort = attrs.evolve(QUICK, places=broken.places)
    assert Exploration(broken.scenario, effort).explore().violations
