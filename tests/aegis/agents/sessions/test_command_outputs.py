"""The files with the output of released commands."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from aegis.agents.drivers.terminals.run import StoredOutput
from aegis.agents.sessions import command_outputs as module
from aegis.agents.sessions.command_outputs import DIRECTORY, CommandOutputs
from aegis.journal.flusher import Flusher
from tests.aegis.agents.drivers.terminals.world import terminals_in


def stored(output: str = "a\n", begin: int = 0) -> StoredOutput:
    return StoredOutput(command="ls", output=output, begin=begin, exit_code=0, signal=None)


async def test_the_newest_are_kept_and_the_oldest_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_KEPT", 3)
    outputs = CommandOutputs(tmp_path, Flusher())
    ids = ["term_1_9", "term_1_10", "term_2_1", "term_2_2"]
    for id_ in ids:
        await outputs.keep(id_, stored(id_))
    found = [await outputs.read(each) for each in ids]
    assert [each and each.output for each in found] == [None, *ids[1:]]


@pytest.mark.parametrize("damage", [b"", b"{", b'{"command": 1}\n'])
async def test_a_damaged_file_counts_as_none(tmp_path: Path, damage: bytes) -> None:
    outputs = CommandOutputs(tmp_path, Flusher())
    await outputs.keep("term_1_1", stored())
    (tmp_path / DIRECTORY / "term_1_1.jsonl").write_bytes(damage)
    assert await outputs.read("term_1_1") is None


async def test_a_disk_that_refuses_or_stalls_holds_no_release_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / DIRECTORY).touch()
    await CommandOutputs(tmp_path, Flusher()).keep("term_1_1", stored())

    async def stalls(*_: object) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(Flusher, "look", stalls)
    monkeypatch.setattr(module, "KEEP_S", 0.01)
    with trio.fail_after(60):
        await CommandOutputs(tmp_path, Flusher()).keep("term_1_1", stored())


@given(st.text(), st.integers(0, 9), st.integers(0, 50))
def test_text_after_a_cursor_is_the_end_of_the_output(text: str, begin: int, cursor: int) -> None:
    text = text.encode(errors="ignore").decode()
    at, left = stored(text, begin).since(cursor)
    assert text.endswith(left)
    assert at + len(left.encode()) == begin + len(text.encode())
    assert at >= begin
    assert left == text or at >= min(cursor, begin + len(text.encode()))


@pytest.mark.real
async def test_what_was_dropped_before_counts_for_the_offsets(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create("printf '12345\\n67890\\nab'", outputByteLimit=8)
        await it.wait(id_)
        await it.call("release", id_)
        found = await it.outputs.read(id_)
    assert found is not None
    assert (found.output, found.begin) == ("67890\nab", 6)
