"""The note of a running shell, as a later life reads it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import attrs
import pytest

from aegis.journal.disk import OsDisk
from aegis.processes.os_processes import OsProcessHost, process_of
from aegis.terminals.shell.processes import (
    ShellNote,
    delete_note,
    load_note,
    make_note,
    save_note,
)

HOST = OsProcessHost()


def own_note() -> ShellNote:
    """A note that names this process as the leader.

    The session of this process would not do: in a container its leader may be outside, and
    getsid() is 0.
    """
    return make_note(HOST, os.getpid(), "/root/build/a.1.1")


def test_a_note_comes_back_with_the_start_time_of_the_shell(tmp_path: Path) -> None:
    path = tmp_path / "shell.json"
    assert load_note(OsDisk(), path) is None
    note = own_note()
    save_note(OsDisk(), path, note)
    assert load_note(OsDisk(), path) == note
    leader = process_of(os.getpid())
    assert leader is not None
    assert note.start_time == leader.start_time
    assert note.live_sids(HOST) == [os.getpid()]
    delete_note(OsDisk(), path)
    delete_note(OsDisk(), path)
    assert load_note(OsDisk(), path) is None


def test_a_session_is_not_ours_after_a_restart_or_with_another_leader() -> None:
    note = own_note()
    assert note.start_time is not None
    assert attrs.evolve(note, boot_id="another").live_sids(HOST) == []
    assert attrs.evolve(note, start_time=note.start_time - 1).live_sids(HOST) == []
    assert attrs.evolve(note, start_time=None).live_sids(HOST) == []
    assert make_note(HOST, None, "x").live_sids(HOST) == []


def test_the_session_of_a_leader_that_is_gone_is_still_ours() -> None:
    gone = attrs.evolve(make_note(HOST, 2**22 + 1, "x"), start_time=7)
    assert gone.live_sids(HOST) == [2**22 + 1]


@pytest.mark.parametrize(
    "changes",
    [{"sid": True}, {"sid": 1}, {"sid": 0}, {"sid": -5}, {"sid": "7"}, {"cookie": None}, {"x": 1}],
)
def test_a_note_that_makes_no_sense_is_none(tmp_path: Path, changes: dict[str, object]) -> None:
    path = tmp_path / "shell.json"
    fields = {**attrs.asdict(own_note()), **changes}
    if "x" in changes:
        del fields["start_time"]
    path.write_text(json.dumps(fields))
    assert load_note(OsDisk(), path) is None
