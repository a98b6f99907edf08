"""The rules of workflows, event by event."""

from __future__ import annotations

import pytest

from aegis.errors import Forbidden, InvalidRequest, StorageError, Unavailable
from aegis.protocol.requests import AnswerReceived
from aegis.protocol.workflows import WorkflowStarted
from aegis.workflows import events as e
from aegis.workflows import starting
from aegis.workflows.calls import MAX_CALLS, failure, value
from aegis.workflows.rules import MAX_DEATHS
from aegis.workflows.starting import MAX_RUNNING
from tests.aegis.workflows.machine import Machine, workflow_id


@pytest.fixture
def machine() -> Machine:
    return Machine()


# The start.


def test_a_run_is_acknowledged_when_its_meta_is_synced_and_then_launched() -> None:
    machine = Machine(syncs=False)
    id_ = machine.start()
    assert [type(each) for each in machine.done] == [e.StoreMeta]
    assert [type(each) for each in machine.sync()] == [e.Return, e.Changed, e.Write]
    [launch] = machine.sync()
    assert isinstance(launch, e.Launch)
    assert (launch.workflow.id, launch.workflow.runs) == (id_, 1)


def test_a_meta_that_the_disk_refuses_leaves_nothing() -> None:
    machine = Machine(syncs=False)
    id_ = machine.start(key="k")
    machine.send(e.MetaRefused(id=id_, sentence="full"))
    assert [type(each) for each in machine.done] == [e.Drop, e.Fail]
    machine.syncs, machine.unsynced = True, []
    machine.start(key="k")
    [returned] = machine.actions(e.Return)
    assert returned.value == WorkflowStarted(workflow_id=workflow_id(2), status="running")


def test_the_same_key_gives_the_same_run_also_before_it_is_stored() -> None:
    machine = Machine(syncs=False)
    machine.start(key="k", kwargs={"a": 1})
    machine.start(key="k", kwargs={"a": 1})
    returned = [each for each in machine.sync() if isinstance(each, e.Return)]
    assert [each.caller for each in returned] == [1, 2]
    assert {str(each.value) for each in returned} == {
        str(WorkflowStarted(workflow_id=workflow_id(1), status="running"))
    }
    machine.start(key="k", kwargs={"a": 2})
    [failed] = machine.actions(e.Fail)
    assert isinstance(failed.error, InvalidRequest)
    machine.start(key="k", kwargs={"a": 2}, sender="agent:dev")
    assert machine.actions(e.StoreMeta) != []


def test_only_so_many_workflows_run_at_the_same_time(machine: Machine) -> None:
    first, *_ = (machine.start() for _ in range(MAX_RUNNING))
    machine.start()
    [failed] = machine.actions(e.Fail)
    assert isinstance(failed.error, Unavailable)
    machine.returns(first)
    machine.start()
    assert machine.actions(e.Fail) == []


# Calls.


def test_a_call_acts_after_its_begin_is_synced_and_returns_after_its_end_is() -> None:
    machine = Machine()
    id_ = machine.start()
    machine.syncs = False
    machine.calls(id_, "1", "delegate", queue="q", payload="p")
    assert not machine.actions(e.Perform)
    [perform] = machine.sync()
    assert isinstance(perform, e.Perform)
    assert perform.arguments == {"queue": "q", "payload": "p"}
    machine.does(id_, "1", value("result"))
    assert not machine.actions(e.Deliver)
    delivered = [each for each in machine.sync() if isinstance(each, e.Deliver)]
    assert delivered == [e.Deliver(id=id_, position="1", outcome=value("result"))]


@pytest.mark.parametrize(
    ("name", "action"), [("step", e.Proceed), ("bash", e.Proceed), ("send", e.Perform)]
)
def test_each_call_is_carried_out_where_it_belongs(
    machine: Machine, name: str, action: type[e.Action]
) -> None:
    machine.calls(machine.start(), "1", name, handle="h", text="t")
    assert len(machine.actions(action)) == 1


def test_a_checkpoint_is_stored_at_once_with_its_payload(machine: Machine) -> None:
    id_ = machine.start()
    machine.calls(id_, "1", "checkpoint", name="half", payload={"n": 1})
    [delivered] = machine.actions(e.Deliver)
    assert delivered.outcome == value({"checkpoint": "half", "payload": {"n": 1}})
    assert machine.workflow(id_).checkpoint == "half"
    assert machine.kinds(id_) == ["run", "begun", "ended"]


def test_sessions_are_noted_before_they_are_opened_or_written_to(machine: Machine) -> None:
    id_ = machine.start()
    machine.calls(id_, "1", "spawn", profile="p", workspace=None)
    machine.calls(id_, "2", "send", handle="other", text="t")
    workflow = machine.fold(id_).workflow
    assert (workflow.spawned, workflow.touched) == ((workflow.handle_of("1"),), ("other",))


def test_what_a_process_of_an_earlier_run_says_is_dropped(machine: Machine) -> None:
    id_ = machine.start()
    machine.dies(id_)
    machine.passes(10)
    assert machine.run(id_) == 2
    machine.send(e.Returned(id=id_, run=1, end="completed", result="1"))
    machine.send(e.Done(id=id_, run=1, position="1", outcome=value(1)))
    assert machine.done == []


@pytest.mark.parametrize("name", ["send", "delegate", "spawn", "ask_human", "drain", "close"])
def test_a_repeatable_call_is_continued_by_the_next_process(machine: Machine, name: str) -> None:
    id_ = machine.start()
    given = {"handle": "h"}
    machine.calls(id_, "1", name, **given)
    machine.dies(id_)
    machine.passes(10)
    machine.calls(id_, "1", name, **given)
    assert len(machine.actions(e.Perform)) == 1
    assert machine.kinds(id_).count("begun") == 1


@pytest.mark.parametrize("name", ["step", "bash", "terminal"])
def test_another_call_is_interrupted_for_good(machine: Machine, name: str) -> None:
    id_ = machine.start()
    machine.calls(id_, "1", name)
    for _ in range(2):
        machine.dies(id_)
        machine.passes(100)
        machine.calls(id_, "1", name)
        [delivered] = machine.actions(e.Deliver)
        error = (machine.journal(id_)["1"].outcome or {})["error"]
        assert error["type"] == "StepInterrupted"
        if machine.run(id_) == 2:
            assert delivered.outcome == {"error": error}


def test_with_retry_it_is_done_again(machine: Machine) -> None:
    id_ = machine.start()
    machine.calls(id_, "1", "bash")
    machine.dies(id_)
    machine.passes(10)
    machine.calls(id_, "1", "bash", retry=True)
    assert len(machine.actions(e.Proceed)) == 1
    assert machine.journal(id_)["1"].starts == 2


def test_another_call_at_a_position_fails_with_both_named(machine: Machine) -> None:
    id_ = machine.start()
    machine.calls(id_, "1", "bash", cmd="a")
    machine.dies(id_)
    machine.passes(10)
    machine.calls(id_, "1", "bash", cmd="b")
    [delivered] = machine.actions(e.Deliver)
    assert delivered.outcome["error"]["type"] == "WorkflowChanged"
    assert "bash('b')" in delivered.outcome["error"]["message"]
    assert "bash('a')" in delivered.outcome["error"]["message"]


def test_a_call_that_is_made_twice_or_had_ended_is_refused(machine: Machine) -> None:
    id_ = machine.start()
    machine.calls(id_, "1")
    machine.calls(id_, "1")
    assert "is made twice" in machine.actions(e.Deliver)[0].outcome["error"]["message"]
    machine.does(id_, "1")
    machine.calls(id_, "1")
    assert "has ended before" in machine.actions(e.Deliver)[0].outcome["error"]["message"]


def test_the_number_of_calls_and_the_size_of_the_journal_are_limited(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert starting.refusal_of_call(MAX_CALLS, 0) is not None
    monkeypatch.setattr(starting, "MAX_LEDGER_BYTES", 300)
    id_ = machine.start()
    machine.calls(id_, "1")
    machine.does(id_, "1", value("x" * 300))
    machine.calls(id_, "2")
    assert "its journal has reached" in machine.actions(e.Deliver)[0].outcome["error"]["message"]


# Questions.


def test_an_answer_counts_once_and_after_its_line_is_synced() -> None:
    machine = Machine()
    id_ = machine.start()
    machine.calls(id_, "1", "ask_human", question="q", options=None)
    key = machine.workflow(id_).call_id("1")
    machine.syncs = False
    machine.answers(key)
    assert machine.actions(e.Return) == []
    after = machine.sync()
    assert e.Deliver(id=id_, position="1", outcome=value("yes")) in after
    applied = [each.value for each in after if isinstance(each, e.Return)]
    assert applied == [AnswerReceived(applied=True)]
    machine.answers(key, "no")
    assert machine.actions(e.Return)[0].value == AnswerReceived(applied=True)
    assert (machine.journal(id_)["1"].outcome or {})["value"] == "yes"


def test_an_answer_without_a_process_is_kept_for_the_next_one(machine: Machine) -> None:
    id_ = machine.start()
    machine.calls(id_, "1", "ask_human", question="q", options=None)
    machine.dies(id_)
    machine.answers(machine.workflow(id_).call_id("1"))
    assert machine.actions(e.Deliver) == []
    machine.passes(10)
    assert machine.journal(id_)["1"].outcome == value("yes")


def test_an_answer_between_the_launch_and_the_call_is_delivered(machine: Machine) -> None:
    id_ = machine.start()
    given = {"question": "q", "options": None}
    machine.calls(id_, "1", "ask_human", **given)
    machine.dies(id_)
    machine.passes(10)
    machine.answers(machine.workflow(id_).call_id("1"))
    machine.calls(id_, "1", "ask_human", **given)
    assert machine.actions(e.Deliver)[0].outcome == value("yes")


@pytest.mark.parametrize("is_refused", [False, True])
def test_an_answer_that_is_being_written_when_the_call_is_made_is_delivered_once_it_is_durable(
    machine: Machine, is_refused: bool
) -> None:
    id_ = machine.start()
    given = {"question": "q", "options": None}
    machine.calls(id_, "1", "ask_human", **given)
    machine.dies(id_)
    machine.passes(10)
    machine.syncs = False
    machine.answers(machine.workflow(id_).call_id("1"))
    if is_refused:
        machine.refuse(id_)
    machine.calls(id_, "1", "ask_human", **given)
    assert machine.actions(e.Deliver) == []
    machine.syncs = True
    machine.passes(60)
    assert [each.outcome for each in machine.actions(e.Deliver)] == [value("yes")]


def test_an_answer_to_an_ended_workflow_does_not_act(machine: Machine) -> None:
    id_ = machine.start()
    machine.calls(id_, "1", "ask_human", question="q", options=None)
    key = machine.workflow(id_).call_id("1")
    machine.cancel(id_)
    machine.answers(key)
    [returned] = machine.actions(e.Return)
    assert isinstance(returned.value, AnswerReceived)
    assert not returned.value.applied


# The end.


def test_the_end_is_synced_before_anything_follows_from_it() -> None:
    machine = Machine()
    id_ = machine.start()
    machine.syncs = False
    machine.returns(id_)
    assert [type(each) for each in machine.done] == [e.Write]
    after = machine.sync()
    assert [type(each) for each in after] == [e.Changed, e.EndRun, e.Settle]
    machine.settles(id_)
    after = machine.sync()
    assert [type(each) for each in after] == [e.StoreMeta]
    assert [type(each) for each in machine.sync()] == [e.Release, e.Changed]
    assert machine.metas[id_].is_settled


def test_the_first_end_wins(machine: Machine) -> None:
    id_ = machine.start()
    machine.syncs = False
    machine.returns(id_)
    machine.cancel(id_)
    [failed] = machine.actions(e.Fail)
    assert isinstance(failed.error, InvalidRequest)
    machine.sync()
    assert machine.workflow(id_).phase == "completed"


def test_a_workflow_is_cancelled_by_its_starter_and_by_people(machine: Machine) -> None:
    ids = [machine.start(sender="agent:pm") for _ in range(2)]
    machine.cancel(ids[0], by="dev")
    assert isinstance(machine.actions(e.Fail)[0].error, Forbidden)
    for id_, by in zip(ids, ("pm", None), strict=True):
        machine.cancel(id_, by=by)
        assert machine.workflow(id_).phase == "cancelled"
        assert [type(each) for each in machine.done if isinstance(each, e.EndRun | e.Settle)] == [
            e.EndRun,
            e.Settle,
        ]


def test_a_process_that_dies_is_started_again_at_most_so_often_without_progress(
    machine: Machine,
) -> None:
    id_ = machine.start()
    machine.dies(id_)
    machine.passes(10)
    machine.calls(id_, "1")
    machine.does(id_, "1")  # progress
    for _ in range(MAX_DEATHS):
        assert machine.workflow(id_).phase == "running"
        machine.passes(10)
        machine.dies(id_)
    assert machine.workflow(id_).phase == "failed"
    assert machine.workflow(id_).error == (
        "its process ended 3 times without progress: it was killed"
    )


def test_a_workflow_that_can_never_run_again_fails_at_once(machine: Machine) -> None:
    id_ = machine.start()
    machine.dies(id_, is_final=True)
    assert (machine.workflow(id_).phase, machine.workflow(id_).error) == (
        "failed",
        "it was killed",
    )


# Restarts of the daemon.


def test_after_a_restart_it_is_launched_once_its_run_is_synced(machine: Machine) -> None:
    id_ = machine.start()
    machine.calls(id_, "1")
    machine.does(id_, "1")
    machine.begin()
    [launch] = machine.actions(e.Launch)
    assert launch.workflow.runs == 2
    machine.returns(id_)
    machine.begin()
    assert machine.actions(e.Launch) == []
    assert len(machine.actions(e.Settle)) == 1
    machine.settles(id_)
    machine.begin()
    assert machine.done == []


def test_one_that_is_settled_in_its_ledger_only_is_marked(machine: Machine) -> None:
    id_ = machine.start()
    machine.returns(id_)
    machine.syncs = False
    machine.settles(id_)
    machine.sync()
    machine.begin()
    assert [type(each) for each in machine.done] == [e.StoreMeta]


def test_a_resumed_workflow_repeats_what_failed_and_not_what_succeeded(machine: Machine) -> None:
    id_ = machine.start()
    machine.calls(id_, "1")
    machine.does(id_, "1")
    machine.calls(id_, "2")
    machine.does(id_, "2", failure("StepFailed", "no"))
    machine.send(e.Returned(id=id_, run=1, end="failed", error="no"))
    machine.reopen(id_)
    assert isinstance(machine.actions(e.Fail)[0].error, Unavailable)
    machine.settles(id_)
    machine.reopen(id_)
    assert machine.workflow(id_).phase == "running"
    assert len(machine.actions(e.Launch)) == 1
    journal = machine.journal(id_)
    assert (journal["1"].outcome, journal["2"].outcome) == (value("did"), None)
    machine.calls(id_, "2")
    assert len(machine.actions(e.Proceed)) == 1
    assert machine.workflow(id_).end_id.endswith("/end/2")


def test_a_retried_workflow_begins_anew_with_ids_of_its_own(machine: Machine) -> None:
    id_ = machine.start()
    machine.calls(id_, "1", "spawn", profile="p", workspace=None)
    before = machine.workflow(id_)
    machine.cancel(id_)
    machine.settles(id_)
    machine.reopen(id_, from_beginning=True)
    after = machine.workflow(id_)
    assert machine.journal(id_) == {}
    assert (after.spawned, after.attempt) == ((), 2)
    assert before.handle_of("1") != after.handle_of("1")
    assert before.call_id("1") != after.call_id("1")


def test_a_completed_workflow_is_never_run_again(machine: Machine) -> None:
    id_ = machine.start()
    machine.returns(id_)
    machine.settles(id_)
    machine.reopen(id_)
    assert isinstance(machine.actions(e.Fail)[0].error, InvalidRequest)


def test_a_reopening_that_is_not_stored_holds_not_after_a_restart(machine: Machine) -> None:
    id_ = machine.start()
    machine.cancel(id_)
    machine.settles(id_)
    machine.syncs = False
    machine.reopen(id_)
    machine.sync()  # the line, not the meta
    machine.syncs = True
    machine.begin()
    assert machine.workflow(id_).phase == "cancelled"
    machine.reopen(id_)
    assert machine.workflow(id_).phase == "running"


# A disk that refuses.


def test_a_refused_line_is_written_again_and_nothing_follows_before() -> None:
    machine = Machine()
    id_ = machine.start()
    machine.syncs = False
    machine.calls(id_, "1")
    machine.refuse(id_)
    assert machine.rules.store.info(id_).problem == "the disk is full"
    machine.calls(id_, "2")
    assert machine.actions(e.Write) == []
    machine.syncs = True
    machine.passes(10)
    assert [each.position for each in machine.actions(e.Proceed)] == ["1", "2"]
    assert machine.rules.store.info(id_).problem == ""
    assert [each.get("position") for each in machine.ledgers[id_]] == [None, "1", "2"]


def test_a_cancellation_that_is_refused_is_undone() -> None:
    machine = Machine()
    id_ = machine.start()
    machine.syncs = False
    machine.cancel(id_)
    machine.refuse(id_)
    assert isinstance(machine.actions(e.Fail)[0].error, StorageError)
    machine.syncs = True
    machine.returns(id_)
    machine.passes(10)
    assert machine.workflow(id_).phase == "completed"


def test_a_resumption_that_is_refused_is_undone() -> None:
    machine = Machine()
    id_ = machine.start()
    machine.cancel(id_)
    machine.settles(id_)
    machine.syncs = False
    machine.reopen(id_)
    machine.refuse(id_)
    assert isinstance(machine.actions(e.Fail)[0].error, StorageError)
    assert machine.workflow(id_).phase == "cancelled"
    machine.syncs = True
    machine.reopen(id_)
    assert machine.workflow(id_).phase == "running"
