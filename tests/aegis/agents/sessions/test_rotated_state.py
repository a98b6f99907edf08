"""The codes of a transcript that was rotated: the files of another state are refused or signed."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from aegis.agents.sessions.transcript import TRANSCRIPT, TranscriptWriter, read_closed
from aegis.journal.disk import OsDisk
from aegis.journal.flusher import Flusher
from aegis.journal.rotation import next_of, previous_of
from aegis.protocol.agents import ReadSession
from aegis.state.root import StatePaths
from aegis.state.sealing import Seals
from aegis.trust import forged_files, take_over
from tests.aegis.agents.sessions.test_rotation import event


@pytest.fixture
def state(tmp_path: Path) -> StatePaths:
    return StatePaths(tmp_path)


def seals(state: StatePaths, id_: str) -> Seals:
    return Seals(bytes(32), id_ * 32, str(state.directory))


def path_of(state: StatePaths) -> Path:
    return Path(str(state.agents)) / "s1" / TRANSCRIPT


async def write(state: StatePaths, flusher: Flusher) -> None:
    transcript = await TranscriptWriter.open(path_of(state), flusher, 4_000)
    async with trio.open_nursery() as nursery:
        transcript.start(nursery.start_soon, lambda number, error: None)
        for number in range(1, 41):
            await transcript.append(number, event(number), sync=True)
        nursery.cancel_scope.cancel()
    transcript.close()


async def numbers(state: StatePaths, flusher: Flusher) -> list[int]:
    found = await read_closed(path_of(state), flusher, ReadSession(handle="s", since=0))
    return [each.seq for each in found.result]


async def test_both_files_belong_to_their_state_and_are_signed_when_it_is_taken_over(
    state: StatePaths,
) -> None:
    first, second = seals(state, "0"), seals(state, "1")
    path = path_of(state)
    await write(state, Flusher(OsDisk(first)))
    kept = await numbers(state, Flusher(OsDisk(first)))
    assert kept == list(range(kept[0], 41))
    next_of(path).write_bytes(path.read_bytes())  # as a rotation that was cut leaves it
    names = [f"agents/s1/{each.name}" for each in (path, previous_of(path), next_of(path))]
    assert forged_files(state, first) == []
    assert sorted(forged_files(state, second)) == sorted(names)
    assert await numbers(state, Flusher(OsDisk(second))) == []
    take_over(state, second)
    assert forged_files(state, second) == []
    assert await numbers(state, Flusher(OsDisk(second))) == kept
    transcript = await TranscriptWriter.open(path, Flusher(OsDisk(second)))
    assert transcript.newest == 40
    transcript.close()


async def test_a_planted_next_file_does_not_become_the_transcript(state: StatePaths) -> None:
    own = Flusher(OsDisk(seals(state, "0")))
    path = path_of(state)
    await write(state, own)
    kept = await numbers(state, own)
    foreign = StatePaths(state.root / "other")
    await write(foreign, Flusher(OsDisk(seals(foreign, "1"))))
    path.rename(previous_of(path))  # as after a kill inside a rotation
    next_of(path).write_bytes(path_of(foreign).read_bytes())
    transcript = await TranscriptWriter.open(path, own)
    assert transcript.newest == 40
    transcript.close()
    assert set(await numbers(state, own)) <= {*kept}
    assert next_of(path).exists()
