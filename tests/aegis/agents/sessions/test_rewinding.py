"""A rewind among agents that answer late or never, and disks that refuse."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from actors import ActorError
from aegis.agents import messages as msg
from aegis.agents.drivers.harness import FilesRewound
from aegis.agents.sessions.past import Rewind
from aegis.agents.sessions.rewinding import Rewinding
from aegis.agents.sessions.set_aside import LIST, digest_of
from aegis.agents.sessions.steps import RewindEntry
from aegis.errors import StorageError, Unavailable
from aegis.journal.disk import OsDisk
from aegis.protocol.agents import AgentRewind, RewindAgent

CUT = Rewind(id="i", turn=1, by="human")


class FullDisk(OsDisk):
    """A disk that is full while ``is_full``."""

    is_full = is_stuck = False

    def unlink(self, path: Path) -> None:
        if self.is_stuck and path.exists():
            raise OSError(errno.EIO, "Input/output error")
        super().unlink(path)

    def open(self, path: Path, flags: int) -> int:
        if self.is_full and path.name.isdigit():
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().open(path, flags)


class Case:
    """An agent that has left ``own``, and ``others``, which a person has changed since."""

    def __init__(self, root: Path) -> None:
        self.own, self.others = root / "own", root / "others"
        self.edited = {}
        for each in (self.own, self.others):
            each.write_text("agent")
            self.edited[str(each)] = digest_of(each)
        self.others.write_text("person")
        self.disk = FullDisk()
        self.root = root
        self.entries: list[tuple[str, dict[str, Any]]] = []
        self.rewinding = Rewinding(lambda: "ann", root / "s", str(root), self.disk, self.store)
        self.refusal: str | None = None
        self.answers = self.is_ended = False
        self.killed: trio.CancelScope | None = None

    async def store(self, entry: RewindEntry) -> None:
        self.entries.append((entry.kind, entry.fields))
        if self.killed is not None:
            self.killed.cancel()
            await trio.sleep_forever()
        self.rewinding.note_stored()

    async def ask(self, order: Any, timeout: float) -> Any:
        """Answer as the driver does."""
        if isinstance(order, msg.CloseDriver):
            self.is_ended = True
            return None
        if order.is_dry:
            return FilesRewound(files=("own", "others"))
        for each in (self.own, self.others) if self.writes else ():
            each.write_text("before")
        if not self.answers:
            await trio.sleep(timeout / 2)
            self.own.write_text(self.saved)
            await trio.sleep(timeout / 2)
            raise ActorError("no answer within 60 s")
        self.disk.is_full = self.is_full_then
        return FilesRewound(refusal=self.refusal)

    is_full_then = False
    writes = True
    saved = "a person's, meanwhile"

    async def run(self) -> AgentRewind:
        order = RewindAgent(handle="ann", turn=1)
        driver: Any = self
        return await self.rewinding.run(order, 1, "u1", driver, self.edited)

    def texts(self) -> tuple[str, str]:
        return self.own.read_text(), self.others.read_text()

    def kept(self, path: Path, refusal: str) -> str:
        """The text of a file that was changed meanwhile, where the refusal says that it is."""
        named = f"{str(path)!r} was changed meanwhile: that is kept in '"
        return Path(refusal.partition(named)[2].partition("'")[0]).read_text()

    @property
    def copies(self) -> bool:
        return (self.root / "s" / "rewind").exists()


AS_BEFORE = ("agent", "person")


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


async def test_an_agent_that_does_not_answer_is_ended_and_all_is_put_back(
    case: Case, autojump_clock: trio.testing.MockClock
) -> None:
    with pytest.raises(Unavailable, match="did not answer, and was ended") as refusal:
        await case.run()
    assert case.is_ended
    assert case.texts() == AS_BEFORE
    assert [kind for kind, _ in case.entries] == ["rewinding", "rewound"]
    assert case.entries[1][1]["files"] == []
    assert not case.copies
    assert case.kept(case.own, str(refusal.value)) == case.saved


async def test_a_refusal_after_some_files_were_written_undoes_all(
    case: Case, autojump_clock: trio.testing.MockClock
) -> None:
    case.answers, case.refusal = True, "it cannot"
    with pytest.raises(Unavailable, match="it cannot; '") as refusal:
        await case.run()
    assert not case.is_ended
    assert case.texts() == AS_BEFORE
    assert case.entries[1][1]["reason"] == "it cannot"
    assert case.kept(case.others, str(refusal.value)) == "before"
    assert len(case.entries[1][1]["kept"]) == 2
    case.writes = False
    with pytest.raises(Unavailable, match="it cannot; nothing was changed"):
        await case.run()


async def test_what_is_done_is_stored_with_its_files(
    case: Case, autojump_clock: trio.testing.MockClock
) -> None:
    case.answers = True
    done = await case.run()
    assert (done.files, done.left) == ([str(case.own)], [str(case.others)])
    assert case.texts() == ("before", "person")
    fields = case.entries[1][1]
    assert (fields["files"], fields["left"], fields["reason"]) == (done.files, done.left, "")
    assert fields["id"] == case.entries[0][1]["id"]
    assert not case.copies


async def test_copies_of_an_earlier_rewind_undo_no_later_one(
    case: Case, autojump_clock: trio.testing.MockClock
) -> None:
    case.answers = case.disk.is_stuck = True
    with capture_logs():
        await case.run()
    assert case.texts() == ("before", "person")
    assert case.copies
    with pytest.raises(StorageError, match="nothing was changed"):
        await case.run()
    assert [kind for kind, _ in case.entries] == ["rewinding", "rewound"]
    case.disk.is_stuck = False
    with trio.CancelScope() as life:
        case.killed = life  # once it is durable that the rewind has begun
        await case.run()
    assert life.cancelled_caught
    case.killed = None
    await case.rewinding.recover(CUT)
    assert case.texts() == ("before", "person")


async def test_a_full_disk_is_tried_again_until_all_is_put_back(
    case: Case, autojump_clock: trio.testing.MockClock
) -> None:
    case.answers = case.is_full_then = True
    with pytest.raises(StorageError, match="takes no turn until all files are put back"):
        await case.run()
    assert [kind for kind, _ in case.entries] == ["rewinding"]
    with capture_logs():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(case.rewinding.recover, CUT)
            await trio.sleep(3.5)
            assert [kind for kind, _ in case.entries] == ["rewinding"]
            case.disk.is_full = False
    assert case.texts() == AS_BEFORE
    assert case.entries[1][1]["reason"] == "it was cut short"
    assert not case.copies


async def test_a_rewind_that_was_cut_before_its_copies_changes_nothing(
    case: Case, autojump_clock: trio.testing.MockClock
) -> None:
    await case.rewinding.recover(CUT)
    assert case.texts() == AS_BEFORE
    [(kind, fields)] = case.entries
    assert (kind, fields["id"], fields["reason"]) == ("rewound", "i", "it was cut short")


async def test_a_damaged_list_ends_the_recovery_and_keeps_the_copies(
    case: Case, autojump_clock: trio.testing.MockClock
) -> None:
    case.answers = case.is_full_then = True
    with pytest.raises(StorageError):
        await case.run()
    listed = case.root / "s" / "rewind" / LIST
    listed.write_text("{")
    with capture_logs():
        await case.rewinding.recover(CUT)
    assert str(listed.parent) in case.entries[1][1]["reason"]
    assert (listed.parent / "1").read_text() == "person"
