"""Tasks that are over are moved to the archive; what is known of them is known all the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs
import pytest

from aegis.clock import moment_of
from aegis.errors import InvalidRequest, NotFound
from aegis.journal import archive, archiver
from aegis.journal.archive import Keep
from aegis.protocol.queues import CancelTask, Delegate, Enqueue, GetTask, RetryTask, TaskInfo
from tests.aegis.queues.office import ARCHIVE, BUILD, Office, play
from tests.chaos.machine.disk_model import cached_image

FEW = Keep(newest=2, days=0.001, most=1_000)
DAY_S = 86_400.0

Story = Callable[[Office], Awaitable[None]]


async def done(office: Office, count: int) -> list[str]:
    """Enqueue tasks with the keys k0, k1, …, and complete each; return their ids."""
    ids = []
    for number in range(count):
        task = await office.enqueue(f"work {number}", key=f"k{number}")
        await office.ends(task, text=f"result {number}")
        ids.append(task)
    return ids


async def grow_old(office: Office) -> str:
    """Let the tasks grow old, and another one end, which moves them; return its id."""
    await office.passes(100)
    task = await office.enqueue("last")
    await office.ends(task)
    await office.passes(1)
    return task


async def live(office: Office) -> list[str]:
    return [each.task_id for each in await office.listed()]


def test_a_task_is_answered_from_the_archive_as_it_was() -> None:
    async def story(office: Office) -> None:
        before: dict[str, TaskInfo] = {}
        for number in range(6):
            task = await office.enqueue("x" * 3_000, key=f"k{number}")
            await office.ends(task, text=f"{number}" * 3_000)
            before[task] = await office.show(task)
            await office.passes(100)
        assert await live(office) == [*reversed([*before])][:2], "the newest are kept"
        for task, info in before.items():
            assert await office.show(task) == info
        await office.restart(power_fails=True)
        assert len(await live(office)) == 2
        for task, info in before.items():
            assert await office.show(task) == info
        assert (await office.queue()).ended == 6

    play(story, keep=FEW)


def test_the_file_of_tasks_says_when_the_newest_ended() -> None:
    async def story(office: Office) -> None:
        await done(office, 9)
        newest = (await office.listed())[0].ended
        await office.passes(4 * DAY_S)
        await grow_old(office)
        found = archive.Archive(ARCHIVE, "tasks", office.disk, 1 << 30)
        (file,) = found.files()
        known = found.ended_before(file)
        assert newest is not None
        assert known is not None
        assert 0 < (moment_of(known) - moment_of(newest)).total_seconds() <= 1

    play(story, keep=Keep(newest=1, days=0.001))


def test_every_key_answers_with_the_same_id_once_rows_are_dropped_and_archived() -> None:
    async def story(office: Office) -> None:
        ids = await done(office, 30)
        await grow_old(office)
        assert len(await live(office)) == 2
        for power_fails in (None, False, True):
            if power_fails is not None:
                await office.restart(power_fails=power_fails)
            for number, task in enumerate(ids):
                again = await office.enqueued(f"work {number}", key=f"k{number}")
                assert (again.task_id, again.queued_position) == (task, None)
                why = await office.refusal(
                    Enqueue(queue="build", payload="another", key=f"k{number}")
                )
                assert f"belongs to task {task}, which has another payload" in why
            info = await office.ask(Delegate(queue="build", payload="work 3", key="k3", timeout=5))
            assert (info.task_id, info.result) == (ids[3], "result 3")
        assert len(office.agents.opened) == len({*office.agents.opened}) == 31
        new = await office.enqueue("work 3", key="k3", by="lead")
        assert new not in ids, "a key belongs to its sender"
        assert await office.worker(new) == "build-32", "numbers are never given again"

    play(story, keep=FEW)


def test_numbers_rise_when_all_tasks_of_a_queue_are_archived() -> None:
    async def story(office: Office) -> None:
        await done(office, 3)
        other = attrs.evolve(BUILD, name="other")
        for number in range(4):
            task = await office.enqueue(f"o{number}", queue=other.name)
            await office.ends(task)
        await office.passes(100)
        await office.ends(await office.enqueue("o4", queue=other.name))
        await office.restart(power_fails=True)
        assert {each.queue for each in await office.listed()} == {"other"}
        task = await office.enqueue("more")
        assert await office.worker(task) == "build-4"
        assert (await office.queue()).ended == 3

    play(story, BUILD, attrs.evolve(BUILD, name="other"), keep=FEW)


def test_a_dependant_learns_how_an_archived_task_has_ended() -> None:
    async def story(office: Office) -> None:
        lost = await office.enqueue("lost")
        won = await office.enqueue("won")
        await office.cancel(lost)
        early = await office.enqueue("early", after=[won], not_before=office.in_seconds(20_000))
        await office.ends(won)
        await done(office, 6)
        await grow_old(office)
        assert {lost, won}.isdisjoint(await live(office))
        for _ in range(2):
            fails = await office.enqueue("fails", after=[lost])
            info = await office.show(fails)
            assert (info.status, info.error) == (
                "failed",
                f"task {lost}, which it waits for, was cancelled",
            )
            begins = await office.enqueue("begins", after=[won])
            assert (await office.show(begins)).status == "running"
            await office.ends(begins)
            assert (await office.show(early)).waiting_for == []
            await office.restart(power_fails=True)
        why = await office.refusal(RetryTask(task_id=fails))
        assert f"waits for task {lost}, which is not kept any more, so it can never begin" in why
        await office.passes(20_000)
        assert (await office.show(early)).status == "running"
        assert "there is no task 'nothing'" in await office.refusal(
            Enqueue(queue="build", payload="x", after=["nothing"])
        )

    play(story, keep=FEW)


def test_an_archived_task_cannot_be_changed() -> None:
    async def story(office: Office) -> None:
        ids = await done(office, 5)
        await grow_old(office)
        for request in (RetryTask(task_id=ids[0]), CancelTask(task_id=ids[0])):
            error = await office.refused(request)
            assert isinstance(error, InvalidRequest)
            assert "it is completed, and in the archive; enqueue it anew" in str(error)
        unknown = await office.refused(GetTask(task_id="0" * 26))
        assert isinstance(unknown, NotFound)

    play(story, keep=FEW)


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        (Keep(newest=3, days=1, most=100), 12),
        (Keep(newest=3, days=0.001, most=100), 3),
        (Keep(newest=3, days=1, most=5), 4),
        (Keep(newest=100, days=0.001, most=1_000), 12),
    ],
)
def test_the_newest_and_the_young_are_kept_and_never_more_than_the_most(
    keep: Keep, expected: int
) -> None:
    async def story(office: Office) -> None:
        await done(office, 11)
        last = await grow_old(office)
        assert (await live(office))[0] == last
        assert len(await live(office)) == expected

    play(story, keep=keep)


def test_the_count_of_what_is_to_be_moved() -> None:
    keep = Keep(newest=1_000, days=30, most=20_000)
    now = 100 * DAY_S
    old, young = 10 * DAY_S, 90 * DAY_S
    assert keep.count([old] * 1_000, now) == 0
    assert keep.count([old] * 1_099, now) == 0, "few are not moved"
    assert keep.count([old] * 1_100, now) == 100
    assert keep.count([old] * 500 + [young] * 1_500, now) == 500
    assert keep.count([young] * 20_000, now) == 0
    assert keep.count([young] * 20_001, now) == 101
    assert Keep(newest=0, days=0, most=5).count([old] * 2, now) == 2


def test_the_archive_is_bounded_and_what_was_deleted_is_known_all_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def story(office: Office) -> None:
        ids = []
        for number in range(60):
            if number % 10 == 0:
                await grow_old(office)
            payload = "".join(chr(office.chance.randrange(200, 4_000)) for _ in range(3_000))
            task = await office.enqueue(payload, key=f"k{number}")
            await office.ends(task)
            ids.append((task, payload))
        await grow_old(office)
        image = cached_image(office.disk.model)
        sizes = [len(v or b"") for k, v in image.items() if k.endswith(".gz")]
        assert sum(sizes) <= FEW_BYTES.archive_bytes
        gone, payload = ids[0]
        assert "it has ended, and the archive has it no more" in await office.refusal(
            GetTask(task_id=gone)
        )
        assert (await office.enqueued(payload, key="k0")).task_id == gone
        fails = await office.enqueue("x", after=[gone])
        assert (await office.show(fails)).status == "running"
        assert (await office.show(ids[50][0])).status == "completed"

    play(story, keep=FEW_BYTES)
    assert "archive too large, oldest deleted" in capsys.readouterr().out


FEW_BYTES = attrs.evolve(FEW, archive_bytes=65_536)


def test_a_file_of_the_archive_has_a_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(office: Office) -> None:
        ids = await done(office, 20)
        await grow_old(office)
        names = [each for each in cached_image(office.disk.model) if each.endswith(".gz")]
        assert 5 < len(names) < 19
        assert await office.status(*ids) == ["completed"] * 20

    monkeypatch.setattr(archive, "SMALL_BYTES", 0)
    monkeypatch.setattr(archiver, "CHARS_AT_ONCE", 300)
    play(story, keep=FEW)


@pytest.mark.parametrize("seed", range(12))
def test_a_disk_that_refuses_and_kills_lose_no_task_and_no_key(seed: int) -> None:
    async def story(office: Office) -> None:
        ids: dict[int, str] = {}
        for number in range(40):
            await office.draws_trouble()
            answer = office.ask_soon(
                Enqueue(queue="build", payload=f"work {number}", key=f"k{number}")
            )
            await office.passes(0.1)
            for old in office.chance.sample(sorted(ids), min(3, len(ids))):
                repeated = office.ask_soon(
                    Enqueue(queue="build", payload=f"work {old}", key=f"k{old}")
                )
                await office.passes(0.1)
                assert repeated.value is None or repeated.value.task_id == ids[old]
            if answer.value is None:
                continue
            ids[number] = answer.value.task_id
            await office.passes(6)
            if (await office.show(ids[number])).status == "running":
                await office.ends(ids[number])
        office.plan.faults.clear()
        await office.passes(200)
        await office.restart(power_fails=True)
        for number, task in ids.items():
            again = await office.enqueued(f"work {number}", key=f"k{number}")
            assert again.task_id == task
            await office.show(task)
        opened = office.agents.opened
        assert len(opened) == len({*opened}), "one session per dispatch"

    play(story, seed=seed, keep=FEW)
