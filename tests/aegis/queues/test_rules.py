"""The rules of queues, one by one."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from aegis.protocol.queues import Enqueued
from aegis.queues import enqueuing, store
from aegis.queues import events as e
from aegis.queues.rules import Queues
from aegis.queues.tasks import QueueSettings
from tests.aegis.queues.machine import BUILD, Machine, task_id

TWO = QueueSettings(name="build", agent="claude", account="claude", max_parallel=2)


def test_a_task_is_acknowledged_once_it_is_synced_and_then_begins() -> None:
    machine = Machine(syncs=False)
    task = machine.enqueue()
    assert [type(each) for each in machine.done] == [e.Write]
    [answer] = [each for each in machine.sync() if isinstance(each, e.Return)]
    assert answer.value == Enqueued(task_id=task, queued_position=None)


def test_a_session_is_opened_after_its_dispatch_is_synced() -> None:
    machine = Machine(syncs=False)
    task = machine.enqueue()
    machine.sync()
    assert machine.task(task).phase == "dispatched"
    actions = machine.sync()
    assert [each.task.id for each in actions if isinstance(each, e.Open)] == [task]


def test_tasks_begin_by_priority_and_then_in_their_order() -> None:
    machine = Machine()
    first = machine.enqueue()
    low, two, three, high = (machine.enqueue(priority=each) for each in (-1, 0, 0, 5))
    order = [first]
    while order[-1] != low:
        machine.begins(order[-1])
        machine.completes(order[-1])
        order += machine.opened()
    assert order == [first, high, two, three, low]


def test_positions_count_the_tasks_that_begin_before() -> None:
    machine = Machine()
    running, one, two, first = (machine.enqueue(priority=each) for each in (0, 0, 0, 1))
    info = machine.rules.state.info
    assert [info(each).queued_position for each in (running, one, two, first)] == [None, 1, 2, 0]


def test_at_most_max_parallel_run() -> None:
    machine = Machine(TWO)
    tasks = [machine.enqueue() for _ in range(4)]
    assert [machine.status(each) for each in tasks] == ["running", "running", "pending", "pending"]
    machine.completes(tasks[1])
    assert machine.opened() == [tasks[2]]


def test_the_end_is_synced_before_the_sender_is_notified_and_the_place_is_free() -> None:
    machine = Machine(syncs=False)
    one = machine.enqueue()
    two = machine.enqueue()
    while machine.unsynced:
        machine.sync()
    machine.completes(one)
    assert not machine.actions(e.Settle)
    machine.sync()  # started
    actions = machine.sync()
    [settle] = [each for each in actions if isinstance(each, e.Settle)]
    assert (settle.task.id, settle.task.result, settle.notify) == (one, "done", True)
    assert machine.task(two).phase == "dispatched"


def test_the_first_end_wins_and_a_late_result_is_kept() -> None:
    machine = Machine()
    task = machine.enqueue()
    machine.begins(task)
    machine.cancel(task)
    machine.completes(task, "late")
    info = machine.rules.state.info(task)
    assert (info.status, info.result) == ("cancelled", "late")
    assert machine.fold("build").tasks[task] == machine.task(task)


def test_a_key_returns_the_same_task() -> None:
    machine = Machine()
    task = machine.enqueue(key="k")
    machine.enqueue(key="k")
    [answer] = machine.actions(e.Return)
    assert answer.value == Enqueued(task_id=task, queued_position=None)
    machine.enqueue("other", key="k")
    assert "belongs to task" in machine.refusal()
    assert machine.enqueue(key="k", sender="agent:bob") != task
    assert machine.rules.state.queues["build"].live == 2


def test_a_key_whose_task_is_not_synced_yet_is_answered_with_it() -> None:
    machine = Machine(syncs=False)
    machine.enqueue(key="k")
    machine.enqueue(key="k")
    assert machine.done == []
    assert sum(isinstance(each, e.Return) for each in machine.sync()) == 2


def test_a_task_waits_for_all_that_it_names() -> None:
    machine = Machine(TWO)
    one, two = machine.enqueue(), machine.enqueue()
    last = machine.enqueue(after=[one, two])
    assert machine.status(last) == "waiting"
    machine.completes(one)
    assert machine.rules.state.info(last).waiting_for == [two]
    machine.completes(two)
    assert machine.opened() == [last]


@pytest.mark.parametrize("end", ["failed", "cancelled"])
def test_a_task_fails_with_one_that_it_names(end: str) -> None:
    machine = Machine()
    one = machine.enqueue()
    last = machine.enqueue(after=[machine.enqueue(after=[one])])
    if end == "failed":
        machine.loses(one)
    else:
        machine.cancel(one)
    info = machine.rules.state.info(last)
    assert info.status == "failed"
    assert "which it waits for, has failed" in (info.error or "")


def test_a_task_that_names_an_ended_one_need_not_wait() -> None:
    machine = Machine()
    one = machine.enqueue()
    machine.completes(one)
    assert machine.status(machine.enqueue(after=[one])) == "running"
    machine.enqueue()
    two = machine.enqueue()
    machine.cancel(two)
    assert machine.status(machine.enqueue(after=[two])) == "failed"


def test_a_task_waits_for_its_time() -> None:
    machine = Machine()
    task = machine.enqueue(not_before="2026-05-22T14:04:00Z")
    assert machine.status(task) == "waiting"
    [wake] = machine.actions(e.Wake)
    machine.passes(wake.at - machine.now)
    assert machine.opened() == [task]


def test_a_failed_task_is_not_tried_again_unless_more_attempts_are_allowed() -> None:
    machine = Machine()
    once, twice = machine.enqueue(), machine.enqueue(max_attempts=2)
    machine.loses(once, text="so far")
    info = machine.rules.state.info(once)
    assert (info.status, info.error, info.result) == ("failed", "its turn failed", "so far")
    machine.loses(twice)
    assert machine.status(twice) == "waiting"
    assert [each.worker for each in machine.actions(e.Stop)] == ["build-2"]
    machine.passes(10)
    assert machine.opened() == [twice]
    assert machine.worker(twice) == "build-2-2"
    machine.loses(twice)
    assert (machine.status(twice), machine.task(twice).attempt) == ("failed", 2)


def test_a_session_that_did_nothing_is_no_attempt_and_the_third_in_a_row_is_the_end() -> None:
    machine = Machine()
    task = machine.enqueue()
    for _ in range(2):
        machine.is_idle(task)
        assert (machine.status(task), machine.task(task).attempt) == ("waiting", 0)
        machine.passes(20)
        assert machine.opened() == [task]
    machine.is_idle(task)
    error = machine.rules.state.info(task).error
    assert error == "no agent could be started for it: no program"


def test_a_task_ends_when_it_has_run_too_long() -> None:
    machine = Machine()
    task = machine.enqueue(max_runtime_s=60)
    machine.begins(task)
    machine.passes(59)
    assert machine.status(task) == "running"
    machine.passes(1)
    assert "longer than max_runtime_s=60" in (machine.rules.state.info(task).error or "")


def test_a_usage_limit_parks_the_tasks_of_the_account_and_ends() -> None:
    other = QueueSettings(name="docs", agent="claude", account="claude", max_parallel=2)
    free = QueueSettings(name="free", agent="codex", account="codex")
    machine = Machine(BUILD, other, free)
    task = machine.enqueue()
    machine.begins(task)
    machine.is_limited(task, 300)
    assert machine.status(task) == "limited"
    parked = machine.enqueue(queue="docs")
    assert (machine.status(parked), machine.opened()) == ("pending", [])
    assert machine.status(machine.enqueue(queue="free")) == "running"
    machine.passes(300)
    assert machine.opened() == [parked]
    assert [each.task.id for each in machine.actions(e.GoOn)] == [task]
    assert (machine.status(task), machine.task(task).attempt) == ("running", 1)


def test_an_agent_cancels_its_own_tasks_only() -> None:
    machine = Machine()
    task = machine.enqueue(sender="agent:bob")
    machine.cancel(task, by="eve")
    assert "was enqueued by agent:bob" in machine.refusal()
    machine.cancel(task, by="bob")
    assert machine.status(task) == "cancelled"
    machine.cancel(task)
    assert "has ended already" in machine.refusal()


def test_a_person_retries_a_task_that_failed() -> None:
    machine = Machine()
    task = machine.enqueue()
    machine.retry(task)
    assert "is running" in machine.refusal()
    machine.loses(task)
    machine.retry(task)
    assert "is still being ended; try again" in machine.refusal()
    machine.settles(task)
    machine.retry(task)
    assert machine.opened() == [task]
    assert machine.task(task).end_id.endswith("/end/1")
    machine.completes(task)
    assert machine.status(task) == "completed"


def test_a_paused_queue_starts_nothing_also_after_a_restart() -> None:
    machine = Machine()
    machine.send(e.Pausing(queue="BUILD", paused=True, caller=0))
    task = machine.enqueue()
    machine.begin()
    assert machine.status(task) == "pending"
    machine.send(e.Pausing(queue="build", paused=False, caller=0))
    assert machine.opened() == [task]


def test_a_caller_that_delegates_gets_the_result_and_no_message() -> None:
    machine = Machine()
    task = machine.delegate(by="bob")
    assert not machine.actions(e.Return)
    machine.completes(task)
    [answer] = machine.actions(e.Return)
    assert getattr(answer.value, "result", None) == "done"
    [settle] = machine.actions(e.Settle)
    assert (settle.notify, settle.unless) == (True, (1,)), "unless the caller is gone"


def test_a_caller_that_has_waited_long_enough_gets_a_message_later() -> None:
    machine = Machine()
    task = machine.delegate(by="bob")
    machine.send(e.GivingUp(id=task, caller=machine.count))
    [answer] = machine.actions(e.Return)
    assert getattr(answer.value, "status", None) == "running"
    machine.completes(task)
    assert [(each.notify, each.unless) for each in machine.actions(e.Settle)] == [(True, ())]


def test_a_caller_without_patience_gets_the_task_once_it_is_stored() -> None:
    machine = Machine(syncs=False)
    task = machine.delegate()
    machine.send(e.GivingUp(id=task, caller=machine.count))
    assert machine.done == []
    [answer] = [each for each in machine.sync() if isinstance(each, e.Return)]
    assert getattr(answer.value, "task_id", None) == task


def test_a_worker_does_not_wait_for_its_own_place() -> None:
    machine = Machine()
    task = machine.enqueue()
    machine.delegate(by=machine.worker(task))
    assert "would wait for this one" in machine.refusal()
    assert machine.rules.state.queues["build"].live == 1


def test_workers_of_two_queues_do_not_wait_for_each_other() -> None:
    other = QueueSettings(name="docs", agent="claude", account="claude")
    machine = Machine(BUILD, other)
    one = machine.enqueue()
    two = machine.delegate(by=machine.worker(one), queue="docs")
    machine.delegate(by=machine.worker(two))
    assert "would wait for this one" in machine.refusal()


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown queue": ({"queue": "biuld"}, "did you mean 'build'?"),
    "empty payload": ({"payload": " \n"}, "the payload is empty"),
    "unknown task": ({"after": ["0" * 26]}, "there is no task"),
    "too many tasks": ({"after": ["0" * 26] * 101}, "at most 100 others"),
    "no time": ({"not_before": "tomorrow"}, "is no date with a time of day"),
    "a time beyond the calendar": ({"not_before": "9999-99-99"}, "is no date with a time of day"),
    "a lone surrogate": ({"payload": "\ud800"}, "not valid Unicode"),
}


@pytest.mark.parametrize(("fields", "words"), REFUSED.values(), ids=REFUSED)
def test_a_bad_task_is_refused_and_leaves_nothing(fields: dict[str, Any], words: str) -> None:
    machine = Machine()
    machine.enqueue(**fields)
    assert words in machine.refusal()
    assert machine.ledgers == {"build": []}
    assert [*machine.rules.state.tasks] == []


def test_a_queue_without_configuration_keeps_its_tasks_and_starts_none() -> None:
    machine = Machine()
    machine.enqueue()
    task = machine.enqueue()
    machine.settings = (QueueSettings(name="build"),)
    machine.begin()
    assert machine.status(task) == "pending"
    assert "not in .aegis.yaml" in machine.rules.state.queue_info("build").problem
    machine.enqueue()
    assert "not in .aegis.yaml" in machine.refusal()


# The disk refuses.


def test_a_refused_task_leaves_nothing_and_its_caller_gets_the_reason() -> None:
    machine = Machine(syncs=False)
    machine.enqueue(key="k")
    machine.refuse("build")
    assert machine.refusal() == "the disk is full"
    assert [*machine.rules.state.tasks] == []
    machine.enqueue(key="k")
    assert machine.unsynced


def test_a_refused_dispatch_opens_no_session_and_is_tried_again() -> None:
    machine = Machine(syncs=False)
    task = machine.enqueue()
    machine.sync()
    machine.refuse("build")
    assert machine.status(task) == "waiting"
    machine.syncs = True
    machine.passes(5)
    assert machine.opened() == [task]
    assert machine.worker(task) == "build-1"


def test_a_refused_end_is_written_again_before_anything_else() -> None:
    machine = Machine()
    task = machine.enqueue()
    machine.syncs = False
    machine.completes(task)
    machine.refuse("build")
    assert machine.status(task) == "running"
    machine.syncs = True
    machine.enqueue()
    assert machine.status(task) == "completed"
    kinds = [each["kind"] for each in machine.ledgers["build"]]
    assert kinds == ["enqueued", "dispatched", "started", "ended", "enqueued", "dispatched"]


def test_a_refused_cancellation_is_undone() -> None:
    machine = Machine(TWO)
    running = machine.enqueue()
    waiting = machine.enqueue(after=[running])
    machine.syncs = False
    machine.cancel(waiting)
    machine.cancel(running)
    machine.refuse("build")
    assert len(machine.actions(e.Fail)) == 2
    assert (machine.status(running), machine.status(waiting)) == ("running", "waiting")


# Recovery.


def test_a_restart_follows_what_ran_and_settles_what_ended() -> None:
    machine = Machine(TWO)
    ended, running, pending = (machine.enqueue() for _ in range(3))
    machine.completes(ended)
    machine.begins(running)
    machine.begin()
    assert {(each.task.id, each.is_new) for each in machine.actions(e.Open)} == {
        (running, False),
        (pending, False),
    }
    assert [(each.task.id, each.notify) for each in machine.actions(e.Settle)] == [(ended, True)]
    machine.settles(ended)
    machine.begin()
    assert not machine.actions(e.Settle)


def test_a_restart_closes_the_workers_of_earlier_attempts() -> None:
    machine = Machine()
    task = machine.enqueue(max_attempts=3)
    machine.loses(task)
    machine.begin()
    assert [each.worker for each in machine.actions(e.Stop)] == ["build-1"]
    machine.passes(10)
    machine.begin()
    assert [each.worker for each in machine.actions(e.Stop)] == ["build-1"]


def test_a_result_that_comes_while_a_cancellation_is_synced_is_the_same_after_a_restart() -> None:
    machine = Machine()
    task = machine.enqueue()
    machine.begins(task)
    machine.syncs = False
    machine.cancel(task)
    machine.completes(task, "late")
    machine.syncs = True
    machine.settles(task)
    assert machine.rules.state.info(task).result == "late"
    machine.begin()
    assert machine.rules.state.info(task).result == "late"


def test_the_time_of_a_usage_limit_does_not_count_for_max_runtime_s() -> None:
    machine = Machine()
    task = machine.enqueue(max_runtime_s=60)
    machine.begins(task)
    machine.passes(30)
    machine.is_limited(task, 300)
    machine.passes(300)
    machine.passes(29)
    assert machine.status(task) == "running"
    machine.passes(1)
    assert machine.status(task) == "failed"


# Old tasks.


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep two ended tasks in memory, and know four more."""
    monkeypatch.setattr(store, "MAX_ENDED", 2)
    monkeypatch.setattr(store, "MAX_DROPPED", 4)


def ended(machine: Machine, **fields: Any) -> str:
    task = machine.enqueue(**fields)
    machine.completes(task)
    machine.settles(task)
    return task


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("restarts", [False, True])
def test_an_old_task_is_known_by_its_key_and_its_outcome(restarts: bool) -> None:
    machine = Machine()
    tasks = [ended(machine, key=f"k{number}") for number in range(5)]
    if restarts:
        machine.begin()
    machine.enqueue(key="k0")
    [answer] = machine.actions(e.Return)
    assert answer.value == Enqueued(task_id=tasks[0], queued_position=None)
    machine.enqueue("other", key="k0")
    assert "which has another payload" in machine.refusal()
    assert machine.status(machine.enqueue(after=[tasks[0]])) == "running"
    machine.cancel(tasks[0])
    assert "is no longer kept; its ledger has it" in machine.refusal()
    assert machine.rules.state.queues["build"].numbers == 6


@pytest.mark.usefixtures("few")
def test_as_many_tasks_as_ever_leave_a_bounded_number_in_memory_and_in_a_fold() -> None:
    machine = Machine()
    tasks = [ended(machine, key=f"k{number}") for number in range(20)]
    for each in (machine.rules.state.tasks, machine.fold("build").tasks):
        assert [task.id for task in each] == tasks[-2:]
        assert [*each.dropped] == tasks[-6:-2]
        assert not each.is_known(tasks[0])


@pytest.mark.usefixtures("few")
def test_a_retried_task_is_in_the_ledger_whatever_a_reader_has_dropped() -> None:
    machine = Machine()
    task = machine.enqueue()
    machine.loses(task)
    machine.settles(task)
    fold = machine.fold("build")
    machine.retry(task)
    old = attrs.evolve(machine.task(task), phase="failed", is_notified=True)
    for number in (90, 91):
        fold.tasks.put(attrs.evolve(old, id=task_id(number)))
    assert not fold.tasks.get(task)
    for line in machine.ledgers["build"][-2:]:
        fold.apply(line)
    assert fold.tasks[task] == machine.task(task)


def test_the_payloads_of_the_tasks_that_have_not_ended_are_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(enqueuing, "MAX_LIVE_CHARS", 10)
    machine = Machine()
    first = machine.enqueue("12345678")
    machine.enqueue("123")
    assert "payloads of 8 characters, which is the limit" in machine.refusal()
    machine.completes(first)
    machine.enqueue("123")
    assert not machine.actions(e.Fail)


def test_a_handle_is_the_same_in_any_case() -> None:
    machine = Machine()
    task = machine.enqueue(sender="agent:Bob", key="k")
    machine.enqueue(sender="agent:bob", key="k")
    [answer] = machine.actions(e.Return)
    assert answer.value == Enqueued(task_id=task, queued_position=None)
    machine.cancel(task, by="BOB")
    assert machine.status(task) == "cancelled"


def test_a_ledger_that_is_read_later_lets_its_tasks_begin_and_those_that_wait_for_them() -> None:
    other = QueueSettings(name="docs", agent="claude", account="claude")
    machine = Machine(BUILD, other)
    blocker = machine.enqueue()
    waiting = machine.enqueue(queue="docs", after=[blocker])
    pending = machine.enqueue()
    docs = e.Loaded(settings=other, tasks=[*machine.fold("docs").tasks])
    machine.completes(blocker)
    build = e.Loaded(settings=BUILD, tasks=[*machine.fold("build").tasks])
    machine.rules = Queues()
    machine.send(e.Recovering(queues=[e.Loaded(settings=BUILD, problem="EIO"), docs]))
    assert (machine.status(waiting), machine.opened()) == ("waiting", [])
    machine.enqueue()
    assert machine.refusal() == "EIO"
    machine.send(e.Recovering(queues=[build]))
    assert {*machine.opened()} == {pending, waiting}
    assert machine.rules.state.queue_info("build").problem == ""
