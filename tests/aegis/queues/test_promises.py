"""The promises of queues to their clients, over a simulated disk: a short history for each."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from aegis.journal.archive import Keep
from aegis.protocol.feeds import FollowQueues
from aegis.protocol.inboxes import MAX_BODY_CHARS
from aegis.protocol.queues import (
    CancelTask,
    Delegate,
    Enqueue,
    GetTask,
    ListTasks,
    MoveTask,
    PauseQueue,
    ResumeQueue,
    RetryTask,
)
from aegis.queues import desk
from aegis.queues.tasks import QueueSettings
from tests.aegis.queues.office import BUILD, Office, play
from tests.aegis.simulated_daemon import WRITES

RECORDINGS = Path(__file__).parents[2] / "recordings"

TWO = attrs.evolve(BUILD, max_parallel=2)
DOCS = QueueSettings(name="docs", agent="claude", account="claude")
FREE = QueueSettings(name="free", agent="codex", account="codex")


# The order of tasks.


def test_tasks_begin_by_priority_and_then_in_their_order() -> None:
    async def story(office: Office) -> None:
        first = await office.enqueue()
        low, two, three, high = [await office.enqueue(priority=each) for each in (-1, 0, 0, 5)]
        shown = [
            (await office.show(each)).queued_position for each in (first, low, two, three, high)
        ]
        assert shown == [None, 3, 1, 2, 0]
        assert [each.task_id for each in await office.listed()] == [first, high, two, three, low]
        for task in (first, high, two, three, low):
            assert await office.status(task) == ["running"]
            await office.ends(task)
        assert office.agents.opened == ["build-1", "build-5", "build-3", "build-4", "build-2"]
        ended = [each.task_id for each in await office.listed("build", 2)]
        assert ended == [low, three]

    play(story)


async def moves(office: Office, task: str, to: str, by: str | None = None) -> None:
    """Move a task before another one, or to an end, which is shown at once."""
    place: Any = {"to": to} if to in ("first", "last") else {"before": to}
    request: Any = MoveTask(queue="build", task_id=task, from_handle=by, **place)
    info = await office.ask(request)
    assert info == await office.show(task)
    await office.settles()


async def order(office: Office) -> list[str]:
    """Return the pending tasks in the order in which they begin."""
    found = [each for each in await office.listed("build") if each.status == "pending"]
    assert [each.queued_position for each in found] == [*range(len(found))]
    return [each.task_id for each in found]


def test_a_task_is_moved_before_another_one_and_to_both_ends_and_stays_there() -> None:
    async def story(office: Office) -> None:
        running = await office.enqueue()
        one, two, three, four = [await office.enqueue() for _ in range(4)]
        await moves(office, three, one)
        assert await order(office) == [three, one, two, four]
        await moves(office, three, one)  # where it is already
        await moves(office, one, "last")
        await moves(office, four, "first")
        five = await office.enqueue()
        assert await order(office) == [four, three, two, one, five]
        await office.restart(power_fails=True)
        assert await order(office) == [four, three, two, one, five]
        assert {(await office.show(each)).priority for each in await order(office)} == {0}
        for task in (running, four, three, two, one, five):
            assert await office.status(task) == ["running"]
            await office.ends(task)
        assert office.agents.opened[0] == "build-1"

    play(story)


def test_a_moved_task_takes_the_priority_of_a_neighbour_only_if_its_place_needs_it() -> None:
    async def story(office: Office) -> None:
        await office.enqueue()
        high, middle, low = [await office.enqueue(priority=each) for each in (5, 0, -5)]
        other = await office.enqueue(priority=3)
        await moves(office, low, middle)
        assert await order(office) == [high, other, low, middle]
        assert (await office.show(low)).priority == 0
        await moves(office, low, "first")
        assert (await office.show(low)).priority == 5
        await moves(office, high, "last")
        assert await order(office) == [low, other, middle, high]
        assert (await office.show(high)).priority == 0
        await moves(office, high, middle)
        assert (await office.show(high)).priority == 0
        await moves(office, low, other)
        assert (await office.show(low)).priority == 5, "its own is right there"

    play(story)


@pytest.mark.parametrize("seed", range(20))
def test_moves_at_random_give_the_order_that_a_list_has(seed: int) -> None:
    async def story(office: Office) -> None:
        await office.enqueue()
        chance = office.chance
        known = [await office.enqueue(priority=chance.randint(-1, 1)) for _ in range(6)]
        known = await order(office)
        for _ in range(60):
            task = chance.choice(known)
            to = chance.choice([*(each for each in known if each != task), "first", "last"])
            await moves(office, task, to)
            known.remove(task)
            at = {"first": 0, "last": len(known)}.get(to)
            known.insert(known.index(to) if at is None else at, task)
            assert await order(office) == known
        await office.restart(power_fails=True)
        assert await order(office) == known

    play(story, seed=seed)


def test_only_a_task_that_has_not_begun_is_moved_by_its_sender_or_a_person() -> None:
    async def story(office: Office) -> None:
        running = await office.enqueue(by="pm")
        one, two = await office.enqueue(by="pm"), await office.enqueue(by="dev")
        ended = await office.enqueue()
        await office.cancel(ended)
        elsewhere = await office.enqueue(queue="docs")

        async def refused(words: str, task: str, by: str | None = None, **place: Any) -> None:
            request = MoveTask(queue="build", task_id=task, from_handle=by, **place)
            assert words in await office.refusal(request)

        await refused(f"task {running} runs", running, to="last")
        await refused(f"task {ended} has ended", ended, to="first")
        await refused(f"task {running} runs", one, before=running)
        await refused("is in queue 'docs', not in 'build'", elsewhere, to="first")
        await refused("is in queue 'docs', not in 'build'", one, before=elsewhere)
        await refused("before itself", one, before=one)
        await refused("give either before", one)
        await refused("give either before", one, before=two, to="last")
        await refused("there is no task", "0" * 26, to="last")
        await refused("was enqueued by agent:dev", two, by="pm", to="first")
        await moves(office, two, one, by="DEV")
        await moves(office, one, "first")
        assert await order(office) == [one, two]

    play(story, BUILD, DOCS)


def test_a_task_that_waits_is_moved_too_and_begins_in_its_new_place() -> None:
    async def story(office: Office) -> None:
        first = await office.enqueue()
        later = await office.enqueue(not_before="2026-01-01T00:01:00Z", priority=1)
        one, two = await office.enqueue(), await office.enqueue()
        await moves(office, two, later)
        await moves(office, later, "last")
        assert await order(office) == [two, one]
        await office.passes(70)
        assert await order(office) == [two, one, later]
        assert await office.status(first) == ["running"]

    play(story)


def test_a_move_that_the_disk_refuses_never_happened() -> None:
    async def story(office: Office) -> None:
        await office.enqueue()
        one, two = await office.enqueue(), await office.enqueue()
        office.plan.refuses = {"fdatasync"}
        refused = office.ask_soon(MoveTask(queue="build", task_id=two, to="first"))
        await office.settles()
        assert "No space left" in str(refused.error)
        office.plan.refuses = ()
        await office.passes(10)
        assert await order(office) == [one, two]
        await moves(office, two, "first")
        await office.restart(power_fails=True)
        assert await order(office) == [two, one]

    play(story)


def test_a_task_that_begins_or_is_cancelled_while_its_move_is_stored_is_not_lined_up() -> None:
    async def story(office: Office) -> None:
        running = await office.enqueue()
        one, two = await office.enqueue(), await office.enqueue()
        both = [
            office.ask_soon(MoveTask(queue="build", task_id=one, to="last")),
            office.ask_soon(CancelTask(task_id=running)),
            office.ask_soon(MoveTask(queue="build", task_id=two, to="last")),
            office.ask_soon(CancelTask(task_id=two)),
        ]
        await office.settles()
        await office.passes(1)
        assert all(each.value for each in both)
        assert await office.status(one, two) == ["running", "cancelled"]
        assert await order(office) == []

    play(story)


def test_at_most_max_parallel_run_and_the_queue_counts_them() -> None:
    async def story(office: Office) -> None:
        tasks = [await office.enqueue() for _ in range(4)]
        statuses = [each.status for each in await office.listed()]
        assert statuses == ["running", "running", "pending", "pending"]
        info = await office.queue()
        assert (info.running, info.pending, info.waiting, info.ended) == (2, 2, 0, 0)
        await office.ends(tasks[0], text="the result")
        ended = await office.show(tasks[0])
        assert (ended.status, ended.result, ended.attempt) == ("completed", "the result", 1)
        assert ended.started is not None
        assert ended.ended is not None
        info = await office.queue()
        assert (info.running, info.pending, info.waiting, info.ended) == (2, 1, 0, 1)
        assert not office.agents.is_open("build-1")
        assert office.agents.is_open("build-2")

    play(story, TWO)


def test_a_task_waits_for_all_that_it_names() -> None:
    async def story(office: Office) -> None:
        one, two = await office.enqueue(), await office.enqueue()
        last = await office.enqueue(after=[one, two, one])
        info = await office.show(last)
        assert (info.status, info.waiting_for) == ("waiting", [one, two])
        assert (await office.queue()).waiting == 1
        await office.ends(one)
        assert (await office.show(last)).waiting_for == [two]
        assert (await office.show(last)).waits == f"for {two}"
        await office.ends(two)
        assert await office.status(last) == ["running"]
        assert (await office.show(last)).waiting_for == []

    play(story, TWO)


@pytest.mark.parametrize("end", ["failed", "cancelled"])
def test_tasks_fail_with_one_that_they_name(end: str) -> None:
    async def story(office: Office) -> None:
        one = await office.enqueue()
        two = await office.enqueue(after=[one])
        three = await office.enqueue(after=[two])
        if end == "failed":
            await office.ends(one, "failed")
        else:
            await office.cancel(one)
        has = "has failed" if end == "failed" else "was cancelled"
        shown = [await office.show(each) for each in (one, two, three)]
        assert [each.status for each in shown] == [end, "failed", "failed"]
        assert shown[1].error == f"task {one}, which it waits for, {has}"
        assert shown[2].error == f"task {two}, which it waits for, has failed"
        assert shown[0].failed_with == [two, three]
        assert all(office.message(each) for each in (one, two, three))
        late = await office.enqueue(after=[one])
        assert await office.status(late) == ["failed"]
        assert (await office.queue()).ended == 4

    play(story)


def test_a_task_that_names_a_completed_one_need_not_wait() -> None:
    async def story(office: Office) -> None:
        one = await office.enqueue()
        await office.ends(one)
        assert await office.status(await office.enqueue(after=[one])) == ["running"]

    play(story)


def test_a_task_waits_for_its_time() -> None:
    async def story(office: Office) -> None:
        answer = await office.enqueued(not_before="2026-01-01T00:01:00Z")
        assert answer.not_before is not None
        await office.settles()
        task = answer.task_id
        assert (await office.show(task)).waits.startswith("until ")
        await office.passes(58)
        assert (await office.show(task)).status == "waiting"
        await office.passes(3)
        assert await office.status(task) == ["running"]
        past = await office.enqueue(queue="docs", not_before="2026-01-01T00:00:01Z")
        assert await office.status(past) == ["running"]

    play(story, BUILD, DOCS)


def test_a_task_and_a_limit_do_not_wait_longer_because_the_machine_slept_or_its_clock_was_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(office: Office) -> None:
        limited = await office.enqueue(queue="docs")
        await office.begins(limited)
        office.agents.limit("docs-1", "2026-01-01T10:00:00Z")
        parked = await office.enqueue(queue="docs")
        due = [await office.enqueue(not_before=f"2026-01-01T0{each}:00:00Z") for each in (8, 9)]
        cancelled = await office.enqueue(not_before="2026-01-01T09:00:00Z")
        await office.cancel(cancelled)
        clock = time.time
        with monkeypatch.context() as patched:
            # The timers of a process do not count the time of a suspended machine.
            patched.setattr(time, "time", lambda: clock() + 8.5 * 3600)
            await office.passes(61)
            assert await office.status(*due) == ["running", "waiting"]
            assert await office.status(limited, parked) == ["limited", "pending"]
        with monkeypatch.context() as patched:
            patched.setattr(time, "time", lambda: clock() + 12 * 3600)
            await office.passes(61)
            assert await office.status(*due) == ["running", "running"]
            assert await office.status(limited, parked) == ["running", "running"]
            assert any("/go-on/" in each for each in office.agents.messages)
            assert (await office.queue("docs")).limited_until is None
            assert await office.status(cancelled) == ["cancelled"]

    play(story, TWO, attrs.evolve(FREE, name="docs", max_parallel=2))


# Attempts.


def test_a_failed_task_is_tried_again_only_if_more_attempts_are_allowed() -> None:
    async def story(office: Office) -> None:
        once = await office.enqueue()
        await office.ends(once, "failed", "so far")
        info = await office.show(once)
        assert (info.status, info.result) == ("failed", "so far")
        assert info.error == "its turn failed: it said so"
        twice = await office.enqueue(max_attempts=2)
        await office.ends(twice, "failed")
        info = await office.show(twice)
        assert (info.status, info.error) == ("waiting", "its turn failed: it said so")
        assert (await office.queue()).running == 0
        assert not office.agents.is_open("build-2")
        await office.passes(9)
        assert await office.status(twice) == ["waiting"]
        await office.passes(1)
        info = await office.show(twice)
        assert (info.status, info.worker, info.error) == ("running", "build-2-2", None)
        await office.ends(twice, "failed")
        info = await office.show(twice)
        assert (info.status, info.attempt, info.max_attempts) == ("failed", 2, 2)
        assert office.agents.sessions["build-2-2"].prompt == "work"

    play(story)


def test_a_session_that_did_nothing_is_no_attempt_and_the_third_in_a_row_is_the_end() -> None:
    async def story(office: Office) -> None:
        office.agents.refuses_spawn = "no program"
        task = await office.enqueue()
        for pause in (5, 10):
            info = await office.show(task)
            assert (info.status, info.attempt) == ("waiting", 0)
            assert info.error == "no agent could be started for it: no program"
            assert info.waits == f"until {info.not_before}: {info.error}"
            await office.passes(pause)
        info = await office.show(task)
        assert (info.status, info.result) == ("failed", None)
        assert info.error == "no agent could be started for it: no program"
        message = office.message(task)
        assert message is not None
        assert message.status == "error"

    play(story)


def test_a_session_that_began_resets_the_count_of_those_that_did_nothing() -> None:
    async def story(office: Office) -> None:
        office.agents.refuses_spawn = "no program"
        task = await office.enqueue(max_attempts=3)
        await office.passes(5)
        office.agents.refuses_spawn = ""
        await office.passes(10)
        await office.ends(task, "failed")
        office.agents.refuses_spawn = "no program"
        await office.passes(10)
        assert (await office.show(task)).status == "waiting"
        await office.passes(6)
        assert (await office.show(task)).status == "waiting"
        await office.passes(11)
        assert (await office.show(task)).status == "failed"
        assert (await office.show(task)).attempt == 1

    play(story)


def test_a_session_that_was_closed_before_it_began_is_no_attempt() -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue()
        office.agents.close("build-1")
        await office.passes(61)  # a turn may have begun that is not in the transcript yet
        info = await office.show(task)
        assert (info.status, info.attempt) == ("waiting", 0)
        await office.passes(5)
        assert await office.worker(task) == "build-1-2"

    play(story)


def test_a_task_ends_when_it_has_run_too_long() -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue(max_runtime_s=60)
        await office.passes(100)  # it has not begun
        await office.begins(task)
        await office.passes(58)
        assert await office.status(task) == ["running"]
        await office.passes(2)
        assert "longer than max_runtime_s=60" in ((await office.show(task)).error or "")
        assert not office.agents.is_open("build-1")
        own = await office.enqueue(queue="docs")
        await office.begins(own)
        await office.passes(31)
        assert await office.status(own) == ["failed"]

    play(story, BUILD, attrs.evolve(DOCS, max_runtime_s=30))


def test_a_usage_limit_parks_the_tasks_of_the_account_and_ends() -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue(max_runtime_s=60)
        await office.begins(task)
        await office.passes(30)
        office.agents.limit("build-1", "2026-01-01T00:06:00Z")
        await office.settles()
        info = await office.show(task)
        assert info.status == "limited"
        assert info.error
        assert info.error.endswith("ends at 2026-01-01T00:06:00.000Z")
        parked = await office.enqueue(queue="docs")
        assert await office.status(parked) == ["pending"]
        assert (await office.queue("docs")).limited_until == "2026-01-01T00:06:00.000Z"
        free = await office.enqueue(queue="free")
        assert await office.status(free) == ["running"]
        assert (await office.queue("free")).limited_until is None
        await office.passes(330)
        assert await office.status(parked) == ["running"]
        assert (await office.queue("docs")).limited_until is None
        info = await office.show(task)
        assert (info.status, info.attempt, info.error) == ("running", 1, None)
        [go_on] = [each for id_, each in office.agents.messages.items() if "/go-on/" in id_]
        assert (go_on.handle, go_on.task_id) == ("build-1", task)
        # The time of the limit does not count for max_runtime_s.
        await office.passes(20)
        assert await office.status(task) == ["running"]
        await office.passes(20)
        assert await office.status(task) == ["failed"]

    play(story, BUILD, DOCS, FREE)


def test_a_task_ends_as_usual_after_a_usage_limit() -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue()
        await office.begins(task)
        office.agents.limit("build-1", "2026-01-01T00:06:00Z")
        await office.settles()
        office.agents.sessions["build-1"].limited_until = None
        await office.ends(task)  # a person has continued it
        info = await office.show(task)
        assert (info.status, info.error) == ("completed", None)

    play(story)


@pytest.mark.parametrize("is_over", [False, True])
@pytest.mark.parametrize(("outcome", "status"), [("completed", "completed"), ("failed", "failed")])
def test_a_task_ends_whose_turn_has_outgrown_its_transcript_before_a_restart(
    outcome: str, status: str, is_over: bool
) -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue()
        await office.begins(task)
        session = office.agents.sessions["build-1"]
        for _ in range(3):
            office.agents.add("build-1", "text")
        session.dropped = 2
        if is_over:
            await office.stop()
            office.agents.end("build-1", outcome, "a long story")
            office.agents.close("build-1")
            await office.start()
            await office.settles()
        else:
            await office.restart()
            await office.ends(task, outcome, "a long story")
        info = await office.show(task)
        assert (info.status, info.result, info.attempt) == (status, "a long story", 1)
        assert list(office.agents.sessions) == ["build-1"]

    play(story)


def test_a_worker_waits_for_what_it_has_begun() -> None:
    async def story(office: Office) -> None:
        busy = await office.enqueue()
        office.agents.busy.add("build-1")
        await office.ends(busy)
        assert await office.status(busy) == ["running"]
        await office.passes(500)
        assert await office.status(busy) == ["running"]
        await office.passes(200)
        assert await office.status(busy) == ["completed"]
        asks = await office.enqueue()
        office.agents.asks.add("build-2")
        await office.ends(asks)
        await office.passes(5_000)
        assert await office.status(asks) == ["running"]
        office.agents.asks.clear()
        await office.ends(asks)
        assert await office.status(asks) == ["completed"]

    play(story)


# Clients.


def test_a_key_returns_the_same_task() -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue(key="k", by="Bob")
        assert (await office.enqueued(key="k", by="bob")).task_id == task
        other = Enqueue(queue="build", payload="other", key="k", from_handle="bob")
        assert "belongs to task" in await office.refusal(other)
        assert await office.enqueue(key="k") != task
        assert await office.enqueue(key="k", by="bob", queue="docs") != task
        assert (await office.queue()).running + (await office.queue()).pending == 2
        await office.restart()
        assert (await office.enqueued(key="k", by="bob")).task_id == task
        assert "belongs to task" in await office.refusal(other)

    play(story, BUILD, DOCS)


def test_a_key_that_is_used_twice_at_once_has_one_task() -> None:
    async def story(office: Office) -> None:
        ask = Enqueue(queue="build", payload="work", key="k")
        one, two = office.ask_soon(ask), office.ask_soon(ask)
        waits = office.delegate(key="k")
        await office.settles()
        assert one.value.task_id == two.value.task_id
        assert len(await office.listed()) == 1
        await office.ends(one.value.task_id)
        assert waits.value.task_id == one.value.task_id
        again = office.delegate(key="k")
        await office.settles()
        assert again.value.status == "completed"

    play(story)


def test_an_agent_cancels_its_own_tasks_only() -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue(by="bob")
        refusal = await office.refusal(CancelTask(task_id=task, from_handle="eve"))
        assert "was enqueued by agent:bob" in refusal
        info = await office.cancel(task, by="BOB")
        assert (info.status, info.error) == ("cancelled", "it was cancelled by agent:BOB")
        assert "has ended already" in await office.refusal(CancelTask(task_id=task))
        assert not office.agents.is_open("build-1")
        other = await office.enqueue(by="bob")
        info = await office.cancel(other)
        assert info.error == "it was cancelled by human"
        unknown = await office.refusal(CancelTask(task_id="0" * 26))
        assert unknown == f"there is no task {'0' * 26}: look with aegis_queue_list"

    play(story)


def test_the_first_end_wins_and_a_late_result_is_kept() -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue()
        await office.begins(task)
        cancelled = office.ask_soon(CancelTask(task_id=task))
        await office.yields()
        office.agents.end("build-1", text="late")
        await office.settles()
        assert cancelled.value.status == "cancelled"
        for _ in range(2):
            info = await office.show(task)
            assert (info.status, info.result) == ("cancelled", "late")
            await office.restart()
        assert office.message(task) is not None

    play(story)


def test_a_person_retries_a_task_that_failed() -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue(max_attempts=2)
        waits = await office.enqueue(after=[task])
        assert "is running; only one" in await office.refusal(RetryTask(task_id=task))
        await office.ends(task, "failed")
        await office.passes(10)
        await office.ends(task, "failed")
        assert (await office.queue()).ended == 2
        info = await office.retry(task)
        assert (info.status, info.failed_with, info.max_attempts) == ("running", [waits], 4)
        assert await office.status(task, waits) == ["running", "failed"]
        await office.ends(task)
        info = await office.show(task)
        assert (info.status, info.attempt, info.error) == ("completed", 3, None)
        assert office.message(task) is not None
        again = office.message(task, retries=1)
        assert again is not None
        assert (again.status, again.body) == ("ok", "done")
        assert "is completed; only one" in await office.refusal(RetryTask(task_id=task))
        assert await office.retry(waits)
        assert await office.status(waits) == ["running"]
        queue = await office.queue()
        assert (queue.running, queue.ended) == (1, 1)
        await office.restart()
        assert (await office.show(waits)).attempt == 0
        assert (await office.queue()).ended == 1

    play(story)


def test_a_task_is_not_retried_before_its_session_has_ended_or_while_it_waits_in_vain() -> None:
    async def story(office: Office) -> None:
        one = await office.enqueue()
        two = await office.enqueue(after=[one])
        office.agents.closing_fails = True
        await office.cancel(one)
        refusal = await office.refusal(RetryTask(task_id=one))
        assert refusal == f"the session of task {one} is still being ended; try again"
        office.agents.closing_fails = False
        await office.passes(2)
        refusal = await office.refusal(RetryTask(task_id=two))
        assert (
            refusal
            == f"task {two} waits for task {one}, which was cancelled: retry that one before it"
        )
        await office.retry(one)
        await office.retry(two)
        assert await office.status(one, two) == ["running", "waiting"]

    play(story)


def test_a_paused_queue_starts_nothing_also_after_a_restart() -> None:
    async def story(office: Office) -> None:
        assert (await office.ask(PauseQueue(queue="BUILD"))).paused
        task = await office.enqueue()
        await office.restart(power_fails=True)
        assert await office.status(task) == ["pending"]
        assert (await office.queue()).paused
        assert not (await office.ask(ResumeQueue(queue="build"))).paused
        await office.settles()
        assert await office.status(task) == ["running"]
        assert (await office.queue("docs")).paused
        parked = await office.enqueue(queue="docs")
        assert await office.status(parked) == ["pending"]
        await office.ask(ResumeQueue(queue="docs"))
        await office.restart()
        assert await office.status(parked) == ["running"]

    play(story, BUILD, attrs.evolve(DOCS, paused=True, account="x"))


def test_a_caller_that_delegates_gets_the_result_and_no_message() -> None:
    async def story(office: Office) -> None:
        waits = office.delegate(by="bob")
        await office.settles()
        assert not waits.has_come
        [task] = await office.listed()
        await office.ends(task.task_id)
        assert (waits.value.status, waits.value.result) == ("completed", "done")
        assert office.message(task.task_id) is None
        assert not office.agents.is_open("build-1")

    play(story)


def test_a_caller_that_has_waited_long_enough_gets_a_message_later() -> None:
    async def story(office: Office) -> None:
        waits = office.delegate(by="bob", timeout=20)
        await office.passes(19)
        assert not waits.has_come
        await office.passes(1)
        assert (waits.value.status, waits.error) == ("running", None)
        await office.ends(waits.value.task_id, text="the answer")
        message = office.message(waits.value.task_id)
        assert message is not None
        assert (message.handle, message.body, message.status) == ("bob", "the answer", "ok")
        assert (message.sender, message.task_id) == ("queue:build", waits.value.task_id)
        impatient = office.delegate(timeout=0)
        await office.settles()
        assert impatient.value.status == "running"
        await office.restart(power_fails=True)
        assert await office.show(impatient.value.task_id)

    play(story)


def test_a_caller_that_is_gone_when_its_task_ends_gets_a_message() -> None:
    async def story(office: Office) -> None:
        async with office.gives_up():
            await office.ask(Delegate(queue="build", payload="work", from_handle="bob"))
        [task] = await office.listed()
        await office.ends(task.task_id)
        assert office.message(task.task_id) is not None

    play(story)


def test_a_task_without_callback_notifies_nobody() -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue(callback=False)
        await office.ends(task)
        assert office.message(task) is None
        await office.restart()
        assert office.message(task) is None

    play(story)


def test_a_person_may_wait_for_a_task_behind_one_that_is_being_dispatched() -> None:
    async def story(office: Office) -> None:
        first = (await office.enqueued()).task_id
        waits = office.delegate()
        await office.settles()
        assert waits.error is None
        await office.ends(first)
        [task, _] = await office.listed()
        await office.ends(task.task_id)
        assert waits.value.status == "completed"

    play(story)


def test_a_worker_does_not_wait_for_its_own_place() -> None:
    async def story(office: Office) -> None:
        await office.enqueue()
        own = Delegate(queue="build", payload="work", from_handle="BUILD-1")
        assert "would wait for this one" in await office.refusal(
            attrs.evolve(own, from_handle="build-1")
        )
        assert len(await office.listed()) == 1
        office.delegate(by="build-1", queue="docs")
        await office.settles()
        around = attrs.evolve(own, from_handle="docs-1")
        assert "would wait for this one" in await office.refusal(around)
        assert (await office.enqueued(by="docs-1")).task_id

    play(story, BUILD, DOCS)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown queue": ({"queue": "biuld"}, "did you mean 'build'?"),
    "empty payload": ({"payload": " \n"}, "the payload is empty"),
    "unknown task": ({"after": ["0" * 26]}, "there is no task"),
    "too many tasks": ({"after": ["0" * 26] * 101}, "at most 100 others, not 101"),
    "no time": ({"not_before": "tomorrow"}, "is no date with a time of day"),
    "a time beyond the calendar": ({"not_before": "9999-99-99"}, "is no date with a time of day"),
    "a lone surrogate": ({"payload": "\ud800"}, "not valid Unicode"),
    "a lone surrogate in the key": ({"key": "\ud800"}, "not valid Unicode"),
    "no right": ({"from_handle": "eve"}, "eve may not use claude"),
}


def test_a_bad_task_is_refused_and_leaves_nothing() -> None:
    async def story(office: Office) -> None:
        office.rights.refused.add("eve")
        for fields, words in REFUSED.values():
            made: dict[str, Any] = {"queue": "build", "payload": "work", **fields}
            assert words in await office.refusal(Enqueue(**made))
        assert await office.listed() == []
        assert [*office.files()] == []
        assert "none is configured" not in await office.refusal(Enqueue(queue="x", payload="y"))

    play(story)


def test_a_queue_takes_a_bounded_number_of_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "MAX_LIVE_CHARS", 10 * MAX_BODY_CHARS)

    async def story(office: Office) -> None:
        big = "x" * MAX_BODY_CHARS
        await office.ask(PauseQueue(queue="build"))
        tasks = [(await office.enqueued(big)).task_id for _ in range(10)]
        words = f"10 tasks that have not ended, with payloads of {10 * len(big)} characters"
        assert words in await office.refusal(Enqueue(queue="build", payload=big))
        await office.cancel(tasks[0])
        assert (await office.enqueued(big)).task_id
        await office.restart()
        assert words in await office.refusal(Enqueue(queue="build", payload=big))

    play(story)


def test_a_queue_takes_a_bounded_number_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "MAX_LIVE", 3)

    async def story(office: Office) -> None:
        first = await office.enqueue()
        for _ in range(2):
            await office.enqueue()
        refused = Enqueue(queue="build", payload="work")
        assert "has 3 tasks that have not ended" in await office.refusal(refused)
        await office.ends(first)
        assert (await office.enqueued()).task_id

    play(story)


def test_a_queue_without_configuration_keeps_its_tasks_and_starts_none() -> None:
    async def story(office: Office) -> None:
        await office.enqueue()
        task = await office.enqueue()
        office.settings = (DOCS,)
        await office.restart()
        assert await office.status(task) == ["pending"]
        info = await office.queue()
        assert (info.agent, info.problem) == ("", "it is not in .aegis.yaml any more")
        refusal = await office.refusal(Enqueue(queue="build", payload="work"))
        assert refusal == "queue 'build' is not in .aegis.yaml any more"
        office.settings = (BUILD,)
        await office.restart()
        assert (await office.queue()).problem == ""

    play(story)


def test_lists_are_limited() -> None:
    async def story(office: Office) -> None:
        for _ in range(4):
            await office.ends(await office.enqueue(), text="y" * 50_001)
        for _ in range(2):
            await office.enqueue("z" * 300)
        listed = await office.ask(ListTasks(queue=None, limit=3))
        assert (len(listed.result), listed.more) == (3, True)
        listed = await office.ask(ListTasks(queue="build", limit=6))
        assert (len(listed.result), listed.more) == (6, False)
        assert len(listed.result[0].payload) == 200
        assert len(listed.result[-1].result or "") == 50_000
        for _ in range(2):
            await office.ends((await office.listed())[0].task_id, text="y" * 50_000)
        listed = await office.ask(ListTasks(queue=None, limit=100))
        assert (len(listed.result), listed.more) == (5, True)

    play(story)


def test_streams_get_each_change_of_a_queue() -> None:
    async def story(office: Office) -> None:
        news = await office.news()
        assert news.is_all
        assert [each.queue for each in news.queues] == ["build", "docs"]
        follower = office.ask_soon(FollowQueues(place=news.place))
        await office.settles()
        assert not follower.has_come
        task = await office.enqueue()
        assert [each.queue for each in follower.value.queues] == ["build"]
        await office.ends(task)
        latest = await office.news(follower.value)
        assert [(each.running, each.ended) for each in latest.queues] == [(0, 1)]
        follower = office.ask_soon(FollowQueues(place=latest.place))
        await office.ask(PauseQueue(queue="docs"))
        await office.settles()
        assert [each.paused for each in follower.value.queues] == [True]

    play(story, BUILD, DOCS)


# The disk refuses.


@pytest.mark.parametrize("refuses", [WRITES, {"fdatasync"}])
def test_a_refused_task_leaves_nothing_and_its_key_can_be_used_again(refuses: set[str]) -> None:
    async def story(office: Office) -> None:
        await office.enqueue()
        office.plan.refuses = refuses
        ask = Enqueue(queue="build", payload="work", key="k")
        for _ in range(3):
            assert "No space left" in await office.refusal(ask)
        assert "No space left" in await office.refusal(Delegate(queue="build", payload="work"))
        assert len(await office.listed()) == 1
        office.plan.refuses = ()
        await office.passes(6)
        task = (await office.ask(ask)).task_id
        await office.restart(power_fails=True)
        assert [each.key for each in await office.listed()] == [None, "k"]
        assert await office.status(task) == ["pending"]

    play(story)


def test_a_refused_dispatch_opens_no_session_and_is_tried_again() -> None:
    async def story(office: Office) -> None:
        task = (await office.enqueued()).task_id  # its dispatch is being written
        office.plan.refuses = {"fdatasync"}
        await office.passes(20)
        assert office.agents.opened == []
        office.plan.refuses = ()
        await office.passes(6)
        assert office.agents.opened == ["build-1"]
        await office.ends(task)
        assert await office.status(task) == ["completed"]

    play(story)


@pytest.mark.parametrize("seed", range(8))
def test_a_task_that_is_dispatched_and_cancelled_in_one_sync_leaves_no_session(seed: int) -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue(not_before=office.in_seconds(1))
        await trio.sleep(1 - trio.current_time() % 1 - 0.002)
        other = office.ask_soon(Enqueue(queue="build", payload="x"))  # its sync is in progress
        await trio.sleep(0.003)
        cancelled = await office.ask(CancelTask(task_id=task))
        assert cancelled.status == "cancelled"
        await office.ask(CancelTask(task_id=other.value.task_id))
        await office.passes(1)
        assert not [each for each in office.agents.sessions if office.agents.is_open(each)]

    play(story, attrs.evolve(BUILD, max_parallel=2), seed=seed)


@pytest.mark.parametrize("power_fails", [False, True])
def test_a_refused_end_is_written_once_the_disk_accepts(*, power_fails: bool) -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue()
        await office.begins(task)
        office.plan.refuses = WRITES
        office.agents.end("build-1", text="it took an hour")
        await office.passes(30)
        assert office.message(task) is None
        assert office.agents.is_open("build-1")
        refused = Enqueue(queue="build", payload="more")
        assert "No space left" in await office.refusal(refused)
        office.plan.refuses = ()
        await office.passes(6)
        info = await office.show(task)
        assert (info.status, info.result, info.attempt) == ("completed", "it took an hour", 1)
        assert office.message(task) is not None
        await office.restart(power_fails=power_fails)
        assert (await office.show(task)).result == "it took an hour"
        assert office.agents.opened == ["build-1"]

    play(story)


def test_a_refused_cancellation_never_happened() -> None:
    async def story(office: Office) -> None:
        running = await office.enqueue()
        waiting = await office.enqueue(after=[running])
        pending = await office.enqueue()
        await office.begins(running)
        office.plan.refuses = {"fdatasync"}
        tries = [office.ask_soon(CancelTask(task_id=each)) for each in (waiting, running, pending)]
        await office.settles()
        assert all("No space left" in str(each.error) for each in tries)
        assert await office.status(running, waiting) == ["running", "waiting"]
        assert office.agents.is_open("build-1")
        office.plan.refuses = ()
        await office.passes(6)
        assert await office.status(running, waiting, pending) == ["running", "waiting", "pending"]
        await office.ends(running)
        assert await office.status(running) == ["completed"]
        assert len(office.agents.opened) == 2

    play(story)


def test_an_end_that_comes_with_a_refused_cancellation_counts() -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue()
        await office.begins(task)
        office.plan.refuses = {"fdatasync"}
        cancelled = office.ask_soon(CancelTask(task_id=task))
        await office.yields()
        office.agents.end("build-1", text="just in time")
        await office.settles()
        assert cancelled.error is not None
        office.plan.refuses = ()
        await office.passes(20)
        if (await office.show(task)).status == "running":  # the end came before the refusal
            await office.passes(20)
        info = await office.show(task)
        assert (info.status, info.result) == ("completed", "just in time")

    play(story)


def test_a_refused_retry_and_a_refused_pause_change_nothing() -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue()
        await office.ends(task, "failed")
        office.plan.refuses = WRITES
        assert "No space left" in await office.refusal(RetryTask(task_id=task))
        assert "No space left" in await office.refusal(PauseQueue(queue="build"))
        await office.settles()
        info = await office.queue()
        assert (info.ended, info.paused, info.running) == (1, False, 0)
        assert await office.status(task) == ["failed"]
        office.plan.refuses = ()
        await office.passes(6)
        assert await office.status(task) == ["failed"]
        await office.retry(task)
        assert await office.status(task) == ["running"]

    play(story)


def test_a_refused_note_that_the_sender_was_notified_notifies_nobody_twice() -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue()
        await office.begins(task)
        office.agents.end("build-1")
        await office.until(lambda: office.message(task) is not None)
        office.plan.refuses = WRITES
        await office.passes(20)
        office.plan.refuses = ()
        await office.passes(6)
        await office.restart(power_fails=True)
        assert await office.status(task) == ["completed"]
        more = await office.enqueue()
        assert await office.status(more) == ["running"]

    play(story)


def test_a_ledger_that_cannot_be_read_is_read_later() -> None:
    async def story(office: Office) -> None:
        blocker = await office.enqueue()
        waiting = await office.enqueue(queue="docs", after=[blocker])
        pending = await office.enqueue()
        await office.ends(blocker)
        await office.stop()
        office.refuse_to_open("build.jsonl")
        await office.start()
        await office.settles()
        info = await office.queue()
        assert info.problem.startswith("its ledger cannot be read, which is tried again every 5")
        assert "cannot be read" in await office.refusal(Enqueue(queue="build", payload="work"))
        assert await office.refusal(GetTask(task_id=pending))
        assert office.agents.opened.count("docs-1") <= 1
        office.refuse_to_open("")
        await office.passes(6)
        assert (await office.queue()).problem == ""
        assert await office.status(pending, waiting) == ["running", "running"]
        assert Counter(office.agents.opened).most_common(1)[0][1] == 1

    play(story, BUILD, DOCS)


# Restarts.


@pytest.mark.parametrize("power_fails", [False, True])
def test_a_restart_follows_what_ran_and_settles_what_ended(*, power_fails: bool) -> None:
    async def story(office: Office) -> None:
        ended, running, pending = [await office.enqueue() for _ in range(3)]
        await office.begins(running)
        await office.ends(ended)
        await office.restart(power_fails=power_fails)
        assert await office.status(ended, running, pending) == ["completed", "running", "running"]
        assert set(Counter(office.agents.opened).values()) == {1}
        assert (await office.queue()).running == 2
        await office.ends(running, text="after the restart")
        assert (await office.show(running)).result == "after the restart"
        await office.ends(pending)
        info = await office.queue()
        assert (info.running, info.ended) == (0, 3)
        assert all(office.message(each) for each in (ended, running, pending))

    play(story, TWO)


def test_a_restart_gives_no_place_to_a_dependant_before_what_ran_has_its_own() -> None:
    async def story(office: Office) -> None:
        blocker = await office.enqueue()
        running = await office.enqueue(queue="docs")
        waiting = await office.enqueue(queue="docs", after=[blocker])
        office.agents.closing_fails = True  # so the end of the blocker is not over
        await office.ends(blocker)
        await office.restart()
        assert await office.status(running, waiting) == ["running", "pending"]
        assert office.agents.opened == ["build-1", "docs-1"]

    play(story, BUILD, DOCS)


def test_an_end_while_the_daemon_was_down_is_found() -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue()
        await office.begins(task)
        await office.stop()
        office.agents.end("build-1", text="meanwhile")
        await office.start()
        await office.settles()
        info = await office.show(task)
        assert (info.status, info.result, info.attempt) == ("completed", "meanwhile", 1)

    play(story)


def test_a_session_that_a_killed_daemon_opened_gets_its_payload() -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue("the payload")
        await office.stop()
        await office.start()
        await office.settles()
        assert office.agents.messages["spawn:build-1"].body == "the payload"
        assert await office.status(task) == ["running"]
        assert office.agents.opened == ["build-1"]

    play(story)


def test_a_restart_closes_the_workers_of_earlier_attempts() -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue(max_attempts=3)
        office.agents.closing_fails = True
        await office.ends(task, "failed")
        assert office.agents.is_open("build-1")
        await office.stop()
        office.agents.closing_fails = False
        await office.start()
        await office.settles()
        assert not office.agents.is_open("build-1")
        await office.passes(10)
        assert await office.worker(task) == "build-1-2"

    play(story)


def test_the_time_of_an_attempt_begins_anew_with_a_restart() -> None:
    async def story(office: Office) -> None:
        task = await office.enqueue(max_runtime_s=60)
        await office.begins(task)
        await office.passes(50)
        await office.restart()
        await office.passes(50)
        assert await office.status(task) == ["running"]
        await office.passes(11)
        assert await office.status(task) == ["failed"]

    play(story)


@pytest.mark.long
def test_an_old_task_is_known_by_its_key_and_its_outcome() -> None:
    async def story(office: Office) -> None:
        office.agents.spawned = lambda request: office.does_at_once(request)
        tasks = [(await office.enqueued(key=f"k{number}")).task_id for number in range(1_110)]
        await office.passes(60)
        for _ in range(2):
            assert (await office.enqueued(key="k0")).task_id == tasks[0]
            other = Enqueue(queue="build", payload="other", key="k0")
            assert "which has another payload" in await office.refusal(other)
            refusal = await office.refusal(CancelTask(task_id=tasks[0]))
            assert "is completed, and in the archive" in refusal
            assert await office.show(tasks[-1])
            after = await office.enqueue(after=[tasks[0]])
            assert await office.status(after) == ["completed"]
            assert await office.show(tasks[20])
            await office.restart()
        assert (await office.queue()).ended == 1_112

    play(story, attrs.evolve(BUILD, max_parallel=50), keep=Keep(days=0))


# Ledgers of older versions.


def test_a_ledger_of_a_version_before_tables_is_read_and_continued() -> None:
    async def story(office: Office) -> None:
        await office.stop()
        recorded = (RECORDINGS / "queue_before_tables.jsonl").read_bytes()
        office.disk = office.disk_with(recorded)
        await office.start()
        await office.passes(15)
        found = {each.task_id: each for each in await office.listed()}
        statuses = [each.status for _, each in sorted(found.items())]
        assert statuses == ["completed", "completed", "failed", "cancelled", "running", "pending"]
        first, twice, lost, late, idle, pending = sorted(found)
        assert (found[first].result, found[first].payload) == ("a result", "the first\npayload")
        assert (await office.enqueued("the first\npayload", key="k", by="BOB")).task_id == first
        info = found[twice]
        assert (info.result, info.attempt, info.worker) == ("y" * 1000, 3, "build-2-3")
        assert (info.max_attempts, info.failed_with) == (4, [lost])
        info = found[late]
        assert (info.result, info.error) == ("late", "it was cancelled by human")
        assert (found[idle].worker, found[idle].priority) == ("build-5-3", 2)
        queue = await office.queue()
        assert (queue.paused, queue.running, queue.pending, queue.ended) == (True, 1, 1, 4)
        await office.ask(ResumeQueue(queue="build"))
        await office.ends(idle)
        await office.restart(power_fails=True)
        assert await office.status(first, idle, pending) == ["completed", "completed", "running"]
        assert (await office.show(twice)).result == "y" * 1000

    play(story)
