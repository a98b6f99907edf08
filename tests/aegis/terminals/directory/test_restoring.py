"""The settings of a terminal whose ``meta.json`` is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from aegis.journal.flusher import Flusher
from aegis.journal.note import Note
from aegis.terminals.directory.spawning import life_without_meta, restored_settings
from aegis.terminals.settings import TerminalFiles
from aegis.terminals.wakes.subscriptions import NO_LIFE, Subscriptions


@pytest.fixture
def files(tmp_path: Path) -> TerminalFiles:
    return TerminalFiles(tmp_path / "terminals" / "build")


def write(files: TerminalFiles, fields: dict[str, object]) -> None:
    note = Note.open(files.subscribers, Flusher())
    note.write(fields)
    note.close()


def read(files: TerminalFiles) -> dict[str, object] | None:
    note = Note.open(files.subscribers, Flusher())
    note.close()
    return note.load()


def test_the_life_is_that_in_which_its_subscribers_were_told(
    files: TerminalFiles, tmp_path: Path
) -> None:
    write(files, Subscriptions().in_life("5f3a", -1).subscribed("pm", 3).stored())
    settings = restored_settings("build", tmp_path, files, Flusher())
    assert settings.life == "5f3a"
    assert restored_settings("build", tmp_path, files, Flusher()).life == "5f3a"


def test_without_subscribers_it_is_a_new_one(files: TerminalFiles) -> None:
    assert life_without_meta(files, Flusher()) != life_without_meta(files, Flusher())
    assert read(files) is None


def test_where_it_is_lost_the_subscribers_are_owed_nothing_of_it(files: TerminalFiles) -> None:
    subscribers: dict[str, object] = {"subscribers": [{"handle": "pm", "confirmed": 3}]}
    write(files, subscribers)
    assert life_without_meta(files, Flusher()) != life_without_meta(files, Flusher())
    assert read(files) == {**subscribers, "life": NO_LIFE}
