"""The promises of workflows to their clients and processes: a short history for each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from aegis.errors import Forbidden, InvalidRequest, NotFound, StorageError, Unavailable
from aegis.protocol.agent_states import AgentProgram
from aegis.protocol.agents import CloseAgent, ResumeSession, SpawnForWorkflow
from aegis.protocol.command import MAX_REPLY_BYTES, json_size
from aegis.protocol.derived.wire import to_plain
from aegis.protocol.feeds import FollowWorkflows, WorkflowsNews
from aegis.protocol.groups import BroadcastToGroup, DissolveGroup, SpawnMixedGroup, WaitForAll
from aegis.protocol.inboxes import MAX_BODY_CHARS, Deliver
from aegis.protocol.queues import Delegate, Enqueue
from aegis.protocol.requests import AnswerReceived, OpenRequest, WithdrawRequests
from aegis.protocol.terminals import RunCommand
from aegis.protocol.workflows import (
    CancelWorkflow,
    GetWorkflow,
    ListWorkflowSteps,
    ResumeWorkflow,
    RetryWorkflow,
    RunWorkflow,
    TrustPlugins,
    WorkflowSteps,
)
from aegis.workflows.calls import failure, value
from tests.aegis.tui.examples import record
from tests.aegis.workflows.office import (
    DIRECTORY,
    PLUGIN,
    Office,
    calling,
    limited,
    play,
    replies_of,
)
from tests.chaos.machine.disk_model import cached_image
from tests.chaos.machine.simulated_disk import SimulatedDisk

RECORDINGS = Path(__file__).parents[2] / "recordings"

QUESTION: dict[str, Any] = {"question": "q?", "options": None}
KILLED = "the process ended with the status -9"


def cancelled(position: str, call: str) -> dict[str, Any]:
    return failure("Cancelled", f"call {position}, {call}, was cancelled by the workflow")


# The start.


def test_an_acknowledged_run_survives_a_loss_of_power_and_gets_its_arguments() -> None:
    async def story(office: Office) -> None:
        started = await office.ask(RunWorkflow(name="work", kwargs={"a": 1}, from_handle="pm"))
        id_ = started.workflow_id
        assert started.status == "running"
        await office.restart(power_fails=True)
        info = await office.show(id_)
        assert (info.name, info.status, info.sender) == ("work", "running", "agent:pm")
        assert (info.kwargs, info.key, info.calls, info.current) == ('{"a": 1}', None, 0, [])
        assert (info.result, info.error, info.ended, info.problem) == (None, None, None, "")
        assert info.started.startswith("2026-01-01T00:00:00.0")
        start = office.program(id_).start
        assert start == {
            "kind": "start",
            "workflow_id": id_,
            "name": "work",
            "plugin": "plugin",
            "kwargs": {"a": 1},
            "files": {"plugin": ["/root/plugins/plugin.py", "digest"]},
            "config": {"c": 1},
            "host": "here",
        }
        assert (office.program(id_).journal, office.program(id_).go["seen"]) == ({}, [])

    play(story)


def test_a_process_is_started_once_the_run_is_acknowledged() -> None:
    async def story(office: Office) -> None:
        office.refuse("fdatasync")
        office.ask_soon(RunWorkflow(name="work", key="k"))
        await office.settles()
        assert not office.programs
        await office.accept()
        id_ = await office.run(key="k")
        assert len(office.lives(id_)) == 1
        assert (await office.show(id_)).runs == 1

    play(story)


@pytest.mark.parametrize("call", ["open", "write", "fsync"])
def test_a_run_that_the_disk_refuses_leaves_nothing(call: str) -> None:
    async def story(office: Office) -> None:
        office.refuse(call)
        refused = await office.refused(RunWorkflow(name="work", key="k"))
        assert isinstance(refused, StorageError)
        assert (await office.listed()).result == []
        await office.accept()
        id_ = await office.run(key="k")
        assert await office.status(id_) == ["running"]
        assert [each.workflow_id for each in (await office.listed()).result] == [id_]
        await office.restart(power_fails=True)
        assert [each.workflow_id for each in (await office.listed()).result] == [id_]

    play(story)


def test_the_same_key_of_a_sender_is_the_same_run() -> None:
    async def story(office: Office) -> None:
        both = [office.ask_soon(RunWorkflow(name="work", key="k")) for _ in range(2)]
        await office.settles()
        [id_] = {each.value.workflow_id for each in both}
        assert id_ == await office.run(key="k")
        other = await office.refused(RunWorkflow(name="work", key="k", kwargs={"a": 2}))
        assert isinstance(other, InvalidRequest)
        assert f"the key 'k' belongs to workflow {id_}, which has another name" in str(other)
        assert isinstance(await office.refused(RunWorkflow(name="other", key="k")), InvalidRequest)
        assert id_ != await office.run(key="k", by="dev")
        assert id_ != await office.run(key="l")
        assert await office.run() != await office.run()
        await office.returns(id_)
        started = await office.ask(RunWorkflow(name="work", key="k"))
        assert (started.workflow_id, started.status) == (id_, "completed")
        await office.restart()
        assert id_ == await office.run(key="k")
        assert len(office.lives(id_)) == 1

    play(story)


def test_a_key_counts_while_its_run_is_being_stored() -> None:
    async def story(office: Office) -> None:
        office.refuse("fsync", "fdatasync")
        both = [office.ask_soon(RunWorkflow(name="work", key="k")) for _ in range(2)]
        await office.settles()
        assert [type(each.error) for each in both] == [StorageError] * 2
        assert (await office.listed()).result == []

    play(story)


def test_a_run_that_is_not_possible_is_refused_with_the_reason() -> None:
    async def story(office: Office) -> None:
        unknown = await office.refused(RunWorkflow(name="wrok"))
        assert isinstance(unknown, NotFound)
        assert str(unknown) == "there is no workflow 'wrok'; did you mean 'work'?"
        wrong = await office.refused(RunWorkflow(name="work", kwargs={"b": 1}))
        assert isinstance(wrong, InvalidRequest)
        lone = await office.refused(RunWorkflow(name="work", key="\ud800"))
        assert str(lone) == "the key is not valid Unicode; leave surrogates out"
        assert (await office.listed()).result == []
        missing = await office.refused(GetWorkflow(workflow_id="0" * 26))
        assert isinstance(missing, NotFound)
        assert str(missing) == f"there is no workflow {'0' * 26}; look with aegis_workflow_list"

    play(story)


def test_only_sixteen_workflows_run_at_the_same_time() -> None:
    async def story(office: Office) -> None:
        first, *_ = [await office.run() for _ in range(16)]
        refused = await office.refused(RunWorkflow(name="work"))
        assert isinstance(refused, Unavailable)
        assert "16 workflows run, which is the limit" in str(refused)
        await office.raises(first)
        last = await office.run()
        again = await office.refused(ResumeWorkflow(workflow_id=first))
        assert str(again) == "16 workflows run, which is the limit; try again later"
        await office.returns(last)
        assert (await office.resume(first)).status == "running"

    play(story)


# Calls.


def test_a_call_acts_once_its_begin_is_durable_and_returns_once_its_end_is() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        office.refuse()
        await office.calls(id_, "1")
        await office.calls(id_, "2", "delegate", queue="q", payload="p")
        assert (office.program(id_).proceeds, office.services.asked) == ([], [])
        assert "No space left" in (await office.show(id_)).problem
        await office.accept()
        assert (await office.show(id_)).problem == ""
        assert office.program(id_).proceeds == ["1"]
        assert len(office.services.of(Enqueue)) == 1
        office.refuse()
        await office.does(id_, "1", value("result"))
        await office.ends_task(f"workflow:{id_}/1/2")
        await office.calls(id_, "3")
        assert office.program(id_).answers == {}
        await office.accept()
        assert office.program(id_).answers == {"1": value("result"), "2": value("did it")}
        assert office.program(id_).proceeds == ["1", "3"]
        await office.restart(power_fails=True)
        journal = office.program(id_).journal
        assert list(journal) == ["1", "2", "3"]
        assert [each["outcome"] for each in journal.values()] == [
            value("result"),
            value("did it"),
            None,
        ]

    play(story)


@pytest.mark.parametrize("power_fails", [False, True])
def test_an_end_that_was_not_durable_may_be_lost_and_what_began_is_known(
    power_fails: bool,
) -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1")
        office.refuse()
        await office.does(id_, "1")
        office.plan.refuses = ()
        await office.restart(power_fails=power_fails)
        assert office.program(id_).journal["1"]["outcome"] is None
        await office.calls(id_, "1")
        assert office.program(id_).proceeds == []
        outcome = office.program(id_).answers["1"]
        assert outcome["error"]["type"] == "StepInterrupted"

    play(story)


@pytest.mark.parametrize("name", ["step", "bash"])
def test_the_process_carries_out_its_own_calls(name: str) -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1", name)
        assert (office.program(id_).proceeds, office.program(id_).answers) == (["1"], {})
        await office.does(id_, "1", failure("StepFailed", "no"))
        assert office.program(id_).answers == {"1": failure("StepFailed", "no")}
        assert office.services.asked == []
        await office.does(id_, "1", value("late"))
        await office.does(id_, "7", value("never called"))
        await office.dies_in(id_)
        journal = office.program(id_).journal
        assert list(journal) == ["1"]
        assert journal["1"] == {
            "position": "1",
            "name": name,
            "digest": calling("1", name)["digest"],
            "about": f"{name}('s1')",
            "outcome": failure("StepFailed", "no"),
        }

    play(story)


def test_calls_of_branches_are_carried_out_at_the_same_time() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1/0/1")
        await office.calls(id_, "1/1/1", "delegate", queue="q", payload="p")
        info = await office.show(id_)
        assert info.current == ["step('s1/0/1')", "delegate('q', 'p')"]
        assert info.calls == 0
        await office.ends_task(f"workflow:{id_}/1/1/1/1")
        assert [*office.program(id_).answers] == ["1/1/1"]
        await office.does(id_, "1/0/1")
        info = await office.show(id_)
        assert (info.current, info.calls) == ([], 2)

    play(story)


def test_a_checkpoint_is_kept_with_its_payload() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1", "checkpoint", name="half", payload={"n": 1})
        kept = value({"checkpoint": "half", "payload": {"n": 1}})
        assert office.program(id_).answers == {"1": kept}
        assert (await office.show(id_)).checkpoint == "half"
        office.refuse()
        await office.calls(id_, "2", "checkpoint", name="most", payload=None)
        assert "2" not in office.program(id_).answers
        await office.accept()
        assert office.program(id_).answers["2"] == value({"checkpoint": "most", "payload": None})
        await office.restart(power_fails=True)
        assert (await office.show(id_)).checkpoint == "most"
        assert (await office.show(id_)).calls == 2
        assert office.program(id_).journal["1"]["outcome"] == kept
        assert office.services.asked == []

    play(story)


@pytest.mark.parametrize("name", ["step", "bash", "terminal"])
def test_a_call_that_may_have_acted_is_interrupted_for_good(name: str) -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        given: dict[str, Any] = {"terminal": "t", "cmd": "make", "timeout": None}
        await office.calls(id_, "1", name, **given)
        for number in range(2):
            await office.dies_in(id_)
            before = [*office.services.asked]
            assert office.program(id_).proceeds == []
            if number == 0:
                await office.calls(id_, "1", name, **given)
                outcome = office.program(id_).answers["1"]
                assert outcome["error"]["type"] == "StepInterrupted"
                assert f"call 1, {name}(" in outcome["error"]["message"]
            assert office.services.asked == before
        assert office.program(id_).journal["1"]["outcome"] == outcome
        await office.restart(power_fails=True)
        assert office.program(id_).journal["1"]["outcome"] == outcome

    play(story)


@pytest.mark.parametrize("name", ["step", "bash"])
def test_with_retry_an_interrupted_call_is_done_again(name: str) -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1", name)
        await office.dies_in(id_)
        await office.calls(id_, "1", name, retry=True)
        assert office.program(id_).proceeds == ["1"]
        await office.dies_in(id_)
        await office.calls(id_, "1", name, retry=True)
        await office.does(id_, "1")
        assert office.program(id_).answers == {"1": value("did")}
        await office.dies_in(id_)
        assert office.program(id_).journal["1"]["outcome"] == value("did")

    play(story)


def test_another_call_at_a_position_ends_it_with_both_named() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1", "bash", cmd="a")
        await office.dies_in(id_)
        await office.calls(id_, "1", "bash", retry=True, cmd="b")
        error = office.program(id_).answers["1"]["error"]
        assert error["type"] == "WorkflowChanged"
        assert "call 1 is bash('b') now, and was bash('a') in the journal" in error["message"]
        assert office.program(id_).proceeds == []
        assert (await office.show(id_)).current == []

    play(story)


def test_a_call_that_is_made_twice_is_refused() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1")
        await office.calls(id_, "1")
        assert "is made twice" in office.program(id_).answers["1"]["error"]["message"]
        assert office.program(id_).proceeds == ["1"]
        await office.does(id_, "1")
        assert office.program(id_).answers["1"] == value("did")

    play(story)


def test_frames_that_make_no_sense_change_nothing() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        for frame in (
            {"kind": "unknown"},
            {"kind": "called", "position": "1"},
            {**calling("1"), "position": "1" * 101},
            {**calling("1"), "name": "n" * 21},
            {**calling("1"), "position": ""},
            {**calling("1"), "arguments": []},
            {"kind": "left", "position": "4"},
            {"kind": "returned", "end": "completed"},
            {"kind": "returned", "end": "cancelled", "error": "no"},
        ):
            office.program(id_).says(frame)
        await office.settles()
        info = await office.show(id_)
        assert (info.status, info.calls, info.current) == ("running", 0, [])
        await office.calls(id_, "1")
        await office.does(id_, "1", {"what": 1})
        error = office.program(id_).answers["1"]["error"]
        assert error == {"type": "CallFailed", "message": "the process has sent no outcome"}
        await office.calls(id_, "2", "fly", handle="h")
        error = office.program(id_).answers["2"]["error"]
        assert "this daemon has no engine call 'fly'" in error["message"]
        await office.calls(id_, "3", "bash", cmd="x" * 500)
        await office.dies_in(id_)
        assert len(office.program(id_).journal["3"]["about"]) <= 200

    play(story)


def test_a_result_that_is_too_large_fails_the_run_and_an_error_is_shortened() -> None:
    async def story(office: Office) -> None:
        large, wrong = await office.run(), await office.run()
        await office.returns(large, "x" * 300_000)
        info = await office.show(large)
        assert (info.status, info.error) == ("failed", "its result is too large")
        await office.raises(wrong, "x" * 5_000)
        info = await office.show(wrong)
        assert len(info.error or "") <= 2_000

    play(story)


def test_the_number_of_calls_of_a_workflow_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        for position in ("1", "2"):
            await office.makes(id_, position)
        await office.dies_in(id_)
        await office.makes(id_, "3")
        await office.calls(id_, "4")
        message = office.program(id_).answers["4"]["error"]["message"]
        assert message == "a workflow makes at most 3 calls: start another one for the rest"
        info = await office.show(id_)
        assert (info.calls, info.current) == (3, [])

    limited(monkeypatch, "MAX_CALLS", 3)
    play(story)


def test_a_call_that_the_disk_refused_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        office.refuse("fdatasync")
        await office.calls(id_, "1")
        await office.accept()
        await office.does(id_, "1")
        assert office.program(id_).answers == {"1": value("did")}

    limited(monkeypatch, "MAX_CALLS", 1)
    play(story)


def test_the_size_of_the_journal_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.makes(id_, "1", value("x" * 200_000))
        await office.makes(id_, "2", value("x" * 200_000))
        await office.calls(id_, "3")
        message = office.program(id_).answers["3"]["error"]["message"]
        assert "its journal has reached 0 MiB, the limit: keep large results" in message
        await office.raises(id_)
        await office.retry(id_)
        assert await office.makes(id_, "1") == value("did")

    limited(monkeypatch, "MAX_LEDGER_BYTES", 300_000)
    play(story)


# The order and the time of outcomes.


def test_the_next_process_gets_the_order_in_which_the_function_got_its_outcomes() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        go = office.program(id_).go
        assert (go["seen"], go["unseen"], go["time"], go["at"]) == ([], [], None, None)
        await office.calls(id_, "1/0/1", time=0.5)
        await office.calls(id_, "1/1/1", time=0.5)
        await office.does(id_, "1/1/1")
        await office.does(id_, "1/0/1")
        await office.calls(id_, "2", seen=[("1/1/1", 1.0), ("#1", 1.5), ("1/0/1", 2.0)], time=2.5)
        at = office.in_seconds(0)
        await office.does(id_, "2")
        await office.restart(power_fails=True)
        go = office.program(id_).go
        assert go["seen"] == [["1/1/1", 1.0], ["#1", 1.5], ["1/0/1", 2.0]]
        assert (go["unseen"], go["time"]) == (["2"], 2.5)
        assert go["at"] == pytest.approx(1767225600 + 0.2 + 0.2 * 4, abs=0.6), at
        office.add_session("h", state="working")
        await office.calls(id_, "3", "drain", handle="h", seen=[("2", 3.0)], time=3.5)
        await office.dies_in(id_)
        await office.calls(id_, "3", "drain", handle="h", seen=[("#2", 4.0)], time=4.5)
        await office.dies_in(id_)
        go = office.program(id_).go
        assert go["seen"][3:] == [["2", 3.0], ["#2", 4.0]]
        assert (go["unseen"], go["time"]) == ([], 4.5)

    play(story)


def test_outcomes_that_the_function_did_not_get_are_in_the_order_of_their_ends() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        for position in ("1/0/1", "1/1/1", "1/2/1"):
            await office.calls(id_, position)
        for position in ("1/2/1", "1/0/1", "1/1/1"):
            await office.does(id_, position)
        await office.restart(power_fails=True)
        assert office.program(id_).go["unseen"] == ["1/2/1", "1/0/1", "1/1/1"]

    play(story)


def test_the_time_of_a_workflow_stands_still_until_a_person_continues_it() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.makes(id_, "1")
        await office.calls(id_, "2", seen=[("1", 1.0)], time=1.5)
        await office.does(id_, "2", failure("StepFailed", "no"))
        await office.calls(id_, "3", seen=[("2", 2.0)], time=9.5)
        await office.raises(id_)
        await office.resume(id_)
        go = office.program(id_).go
        assert (go["seen"], go["unseen"]) == ([["1", 1.0]], [])
        assert (go["time"], go["at"]) == (1.0, None)
        await office.calls(id_, "2", time=1.7)
        await office.does(id_, "2")
        await office.calls(id_, "3", seen=[("2", 2.5)], time=3.5)
        await office.restart(power_fails=True)
        go = office.program(id_).go
        assert (go["seen"], go["unseen"]) == ([["1", 1.0], ["2", 2.5]], [])
        assert go["time"] == 3.5
        assert go["at"] is not None

    play(story)


# Calls that the function leaves.


def test_a_call_that_the_function_leaves_is_cancelled_and_stays_so() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1", "delegate", queue="q", payload="p")
        await office.leaves(id_, "1", seen=[("#1", 1.0)], time=1.5)
        outcome = cancelled("1", "delegate('q', 'p')")
        assert office.program(id_).answers == {"1": outcome}
        await office.ends_task(f"workflow:{id_}/1/1")
        assert office.program(id_).answers == {"1": outcome}
        info = await office.show(id_)
        assert (info.current, info.calls) == ([], 1)
        await office.restart(power_fails=True)
        assert office.program(id_).journal["1"]["outcome"] == outcome
        go = office.program(id_).go
        assert (go["seen"], go["unseen"], go["time"]) == ([["#1", 1.0]], ["1"], 1.5)

    play(story)


@pytest.mark.parametrize("name", ["step", "delegate"])
def test_a_call_that_the_function_leaves_before_it_is_durable_never_acts(name: str) -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        office.refuse()
        await office.calls(id_, "1", name, queue="q", payload="p")
        await office.leaves(id_, "1")
        assert office.program(id_).answers == {}
        await office.accept()
        [error] = [each["error"] for each in office.program(id_).answers.values()]
        assert error["type"] == "Cancelled"
        assert (office.program(id_).proceeds, office.services.asked) == ([], [])
        await office.restart(power_fails=True)
        assert office.program(id_).journal["1"]["outcome"]["error"]["type"] == "Cancelled"

    play(story)


def test_an_outcome_that_is_on_its_way_wins_over_the_cancellation() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1")
        office.refuse()
        await office.does(id_, "1")
        await office.leaves(id_, "1")
        await office.accept()
        assert office.program(id_).answers == {"1": value("did")}
        await office.leaves(id_, "1")
        assert office.program(id_).answers == {"1": value("did")}
        assert (await office.show(id_)).calls == 1

    play(story)


def test_the_question_of_a_cancelled_call_is_withdrawn_once_that_is_durable() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        key = f"workflow:{id_}/1/1"
        await office.calls(id_, "1", "ask_human", **QUESTION)
        office.refuse()
        await office.leaves(id_, "1")
        assert office.services.of(WithdrawRequests) == []
        await office.accept()
        [withdraw] = office.services.of(WithdrawRequests)
        assert (withdraw.workflow, withdraw.keys) == (id_, [key])
        assert withdraw.reason == "its workflow does not wait for the answer any longer"
        received = await office.answered(key)
        assert received == AnswerReceived(
            applied=False, reason="its workflow did not wait for the answer any longer"
        )
        await office.restart()
        assert len(office.services.of(WithdrawRequests)) == 2, "perhaps it was not done before"
        assert (await office.answered(key)).applied is False
        assert office.program(id_).journal["1"]["outcome"] == cancelled("1", "ask_human('q?')")

    play(story)


def test_a_cancelled_call_that_is_no_question_withdraws_nothing() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1", "drain", handle="h")
        await office.calls(id_, "2", "ask_human", **QUESTION)
        await office.leaves(id_, "1")
        await office.restart()
        assert office.services.of(WithdrawRequests) == []

    play(story)


# Agents.


def test_a_session_is_spawned_once_under_a_handle_of_its_own() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run(by="pm")
        handle = await office.opens_session(id_, "1/0/2")
        assert handle == f"work-{id_[-10:].lower()}-1-0-2"
        [spawn] = office.services.of(SpawnForWorkflow)
        assert (spawn.profile, spawn.workspace, spawn.from_handle) == ("p", None, "pm")
        assert spawn.workflow == "work"
        await office.calls(id_, "2", "spawn", profile="p", workspace="w")
        assert office.services.of(SpawnForWorkflow)[1].workspace == "w"
        office.services.holds = {SpawnForWorkflow}
        await office.calls(id_, "3", "spawn", profile="p", workspace=None)
        office.services.holds = set()
        await office.dies_in(id_)
        await office.calls(id_, "3", "spawn", profile="p", workspace=None)
        last = office.program(id_).answers["3"]["value"]
        assert len(office.services.sessions) == 3
        await office.returns(id_)
        assert office.services.sessions[last].state == "closed"

    play(story)


def test_a_session_that_was_opened_without_an_answer_is_found() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1", "spawn", profile="p", workspace=None)
        handle = office.program(id_).answers["1"]["value"]
        office.refuse()
        await office.calls(id_, "2", "send", handle=handle, text="hi")
        await office.accept()
        await office.restart()
        await office.calls(id_, "2", "send", handle=handle, text="hi")
        assert len(office.services.of(SpawnForWorkflow)) == 1
        office.services.holds = {SpawnForWorkflow}
        await office.calls(id_, "3", "spawn", profile="p", workspace=None)
        lost = f"work-{id_[-10:].lower()}-3"
        office.add_session(lost)  # it is open, and its answer was lost
        office.services.holds = set()
        await office.passes(130)
        assert office.program(id_).answers["3"] == value(lost)
        assert len(office.services.of(SpawnForWorkflow)) == 2

    play(story)


def test_a_message_is_sent_once_and_its_reply_is_the_text_of_its_turn() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run(by="pm")
        office.add_session("dev")
        await office.calls(id_, "1", "send", handle="dev", text="do it")
        [message] = office.services.sessions["dev"].messages.values()
        assert (message.id, message.sender, message.body) == (
            f"workflow:{id_}/1/1",
            "workflow:work",
            "do it",
        )
        assert office.rights.sent == [("pm", "dev")]
        await office.dies_in(id_)
        await office.calls(id_, "1", "send", handle="dev", text="do it")
        await office.restart()
        await office.calls(id_, "1", "send", handle="dev", text="do it")
        assert len(office.services.sessions["dev"].messages) == 1
        assert office.rights.sent == [("pm", "dev")], "a replay sends nothing"
        await office.replies("dev", "the reply")
        assert office.program(id_).answers["1"] == value("the reply")
        await office.calls(id_, "2", "send", handle="dev", text="more")
        await office.replies("dev", outcome="failed")
        error = office.program(id_).answers["2"]["error"]
        assert (error["type"], error["code"]) == ("CallFailed", "unavailable")
        assert error["message"] == "'dev' did not answer: its turn failed: it said so"

    play(story)


def test_a_message_that_may_not_be_sent_fails_the_call() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run(by="pm")
        person = await office.run()
        own = await office.opens_session(id_, "1")
        office.add_session("dev")
        office.rights.no_messages["pm"] = Forbidden("not to dev")
        await office.calls(id_, "2", "send", handle="dev", text="hi")
        error = office.program(id_).answers["2"]["error"]
        assert (error["code"], error["message"]) == ("forbidden", "not to dev")
        await office.calls(id_, "3", "send", handle=own, text="hi")
        assert len(office.services.sessions[own].messages) == 1, "of its own session it is master"
        await office.calls(person, "1", "send", handle="dev", text="hi")
        assert len(office.services.sessions["dev"].messages) == 1
        for position, text in (("4", " \n"), ("5", "x" * (MAX_BODY_CHARS + 1))):
            await office.calls(id_, position, "send", handle=own, text=text)
            error = office.program(id_).answers[position]["error"]
            assert error["code"] == "invalid_request"
        assert "the message is empty" in office.program(id_).answers["4"]["error"]["message"]
        assert "a message has at most" in office.program(id_).answers["5"]["error"]["message"]
        await office.calls(id_, "6", "send", handle=own, text="x" * MAX_BODY_CHARS)
        assert len(office.services.sessions[own].messages) == 2
        await office.calls(person, "2", "send", handle="nobody", text="hi")
        assert "there is no agent" in office.program(person).answers["2"]["error"]["message"]

    play(story)


def test_a_drain_waits_until_a_session_has_nothing_to_do() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        office.add_session("dev")
        await office.calls(id_, "1", "drain", handle="dev")
        assert office.program(id_).answers["1"] == value(None)
        await office.calls(id_, "2/0/1", "send", handle="dev", text="hi")
        await office.calls(id_, "2/1/1", "drain", handle="dev")
        assert "2/1/1" not in office.program(id_).answers
        await office.begins("dev")
        assert "2/1/1" not in office.program(id_).answers
        session = office.services.sessions["dev"]
        session.state = "idle"
        office.services.add(session, "turn_ended", outcome="completed", text="t", reason="")
        await office.settles()
        assert office.program(id_).answers["2/1/1"] == value(None)
        await office.calls(id_, "3", "drain", handle="nobody")
        assert office.program(id_).answers["3"]["error"]["code"] == "not_found"
        program = AgentProgram(
            terminal="t",
            command="vim",
            source="",
            need=None,
            launches=1,
            exit_code=None,
            progress=None,
            title="",
        )
        office.add_session("sh", state="working", program=program)
        await office.calls(id_, "4", "drain", handle="sh")
        assert office.program(id_).answers["4"] == value(None)

    play(story)


def test_a_drain_ends_with_its_session() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        session = office.add_session("dev", state="working")
        await office.calls(id_, "1", "drain", handle="dev")
        assert "1" not in office.program(id_).answers
        office.services._close(session)
        await office.settles()
        assert office.program(id_).answers["1"] == value(None)

    play(story)


def test_a_session_is_closed_on_behalf_of_the_starter() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run(by="pm")
        office.add_session("dev")
        await office.calls(id_, "1", "close", handle="dev")
        [close] = office.services.of(CloseAgent)
        assert (close.handle, close.from_handle) == ("dev", "pm")
        assert office.program(id_).answers["1"] == value(None)
        assert office.services.sessions["dev"].state == "closed"

    play(story)


# Groups, queues, terminals.


def test_a_group_is_created_once_and_dissolved_at_the_end() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run(by="pm")
        given: dict[str, Any] = {"profiles": ["a", "b"], "preset": None}
        await office.calls(id_, "1", "group", **given)
        name = office.program(id_).answers["1"]["value"]
        assert name == f"work-{id_[-10:].lower()}-1"
        [spawn] = office.services.of(SpawnMixedGroup)
        assert (spawn.profiles, spawn.preset, spawn.from_handle) == (["a", "b"], None, "pm")
        office.services.holds = {SpawnMixedGroup}
        await office.calls(id_, "2", "group", **given)
        await office.dies_in(id_)
        office.services.holds = set()
        await office.calls(id_, "2", "group", **given)
        assert len(office.services.groups) == 2
        await office.returns(id_)
        await office.settles()
        assert [each.group for each in office.services.of(DissolveGroup)] == [
            *office.services.groups
        ]
        assert office.services.of(CloseAgent) == []

    play(story)


def test_a_group_that_is_being_started_is_awaited_and_a_dissolved_one_fails() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        given: dict[str, Any] = {"profiles": ["a"], "preset": None}
        await office.calls(id_, "1", "group", **given)
        name = office.program(id_).answers["1"]["value"]
        await office.dies_in(id_)
        group = office.services.groups[name]
        office.services.groups[name] = attrs.evolve(group, forming=1)
        second = f"work-{id_[-10:].lower()}-2"
        office.services.groups[second] = attrs.evolve(group, group=second, forming=1)
        await office.calls(id_, "2", "group", **given)
        assert "2" not in office.program(id_).answers
        office.services.groups[second] = attrs.evolve(group, group=second)
        await office.passes(2)
        assert office.program(id_).answers["2"] == value(second)
        third = f"work-{id_[-10:].lower()}-3"
        office.services.groups[third] = attrs.evolve(group, group=third, state="dissolved")
        await office.calls(id_, "3", "group", **given)
        await office.passes(5)
        error = office.program(id_).answers["3"]["error"]
        assert "was dissolved; run the workflow again" in error["message"]

    play(story)


def test_a_broadcast_is_sent_once_and_returns_all_replies() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run(by="pm")
        given: dict[str, Any] = {
            "group": "g",
            "objective": "o",
            "output_format": "f",
            "tool_guidance": "t",
            "boundaries": "b",
            "reducer": "concat",
        }
        await office.calls(id_, "1", "broadcast", **given)
        key = f"workflow:{id_}/1/1"
        await office.dies_in(id_)
        await office.calls(id_, "1", "broadcast", **given)
        first, second = office.services.of(BroadcastToGroup)
        assert first == second
        assert (first.key, first.callback, first.from_handle) == (key, False, "pm")
        assert (first.objective, first.output_format) == ("o", "f")
        assert (first.tool_guidance, first.boundaries) == ("t", "b")
        office.services.replies[key] = replies_of({"a": "A"}, is_over=False)
        office.services.look()
        office.services.replies[key] = None
        await office.yields()
        assert "1" not in office.program(id_).answers
        office.services.replies[key] = replies_of({"a": "A", "b": None})
        office.services.look()
        await office.settles()
        assert office.program(id_).answers["1"] == value(
            {"replies": {"a": "A"}, "reduced": "A", "order": ["a"], "missing": {"b": "failed: why"}}
        )
        wait = office.services.of(WaitForAll)[-1]
        assert (wait.group, wait.reducer, wait.from_handle) == ("g", "concat", "pm")

    play(story)


def test_a_task_is_enqueued_once_and_its_result_is_the_outcome() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run(by="pm")
        await office.calls(id_, "1", "delegate", queue="q", payload="p")
        await office.restart()
        await office.calls(id_, "1", "delegate", queue="q", payload="p")
        key = f"workflow:{id_}/1/1"
        assert [*office.services.tasks] == [key]
        for each in (*office.services.of(Enqueue), *office.services.of(Delegate)):
            assert (each.queue, each.payload, each.key) == ("q", "p", key)
            assert each.from_handle == "pm"
        assert [each.callback for each in office.services.of(Enqueue)] == [False] * 2
        await office.ends_task(key, result="the result")
        assert office.program(id_).answers["1"] == value("the result")
        for position, status, sentence in (
            ("2", "failed", f"task workflow:{id_}/1/2 has failed: it went wrong"),
            ("3", "cancelled", f"task workflow:{id_}/1/3 was cancelled: it went wrong"),
        ):
            await office.calls(id_, position, "delegate", queue="q", payload="p")
            await office.ends_task(f"workflow:{id_}/1/{position}", status)
            assert office.program(id_).answers[position] == failure("TaskFailed", sentence)

    play(story)


def test_a_service_that_refuses_fails_the_call_with_its_code() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        office.services.refuses[Enqueue] = NotFound("there is no queue 'q'")
        await office.calls(id_, "1", "delegate", queue="q", payload="p")
        outcome = failure("CallFailed", "there is no queue 'q'", code="not_found")
        assert office.program(id_).answers["1"] == outcome
        await office.dies_in(id_)
        assert office.program(id_).journal["1"]["outcome"] == outcome
        assert (await office.show(id_)).status == "running"

    play(story)


def test_a_command_is_run_on_a_terminal_on_behalf_of_the_starter() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run(by="pm")
        office.services.record = record(seq=7, exit=3, stdout="out")
        await office.calls(id_, "1", "terminal", terminal="t", cmd="make", timeout=5.0)
        [command] = office.services.of(RunCommand)
        assert (command.name, command.cmd, command.timeout) == ("t", "make", 5.0)
        assert command.from_handle == "pm"
        found = office.program(id_).answers["1"]["value"]
        assert (found["seq"], found["exit"], found["stdout"]) == (7, 3, "out")
        assert (found["needs_input"], found["timed_out"], found["truncated"]) == (False,) * 3
        await office.calls(id_, "2", "terminal", terminal="t", cmd="make", timeout=None)
        assert office.services.of(RunCommand)[1].timeout > 3_000
        office.rights.no_terminals["pm"] = "pm may not use t"
        await office.calls(id_, "3", "terminal", terminal="t", cmd="make", timeout=None)
        error = office.program(id_).answers["3"]["error"]
        assert (error["code"], error["message"]) == ("forbidden", "pm may not use t")
        assert len(office.services.of(RunCommand)) == 2
        office.services.holds = {RunCommand}
        person = await office.run()
        await office.calls(person, "1", "terminal", terminal="t", cmd="make", timeout=5.0)
        await office.passes(40)
        error = office.program(person).answers["1"]["error"]
        assert (error["type"], error["code"]) == ("CallFailed", "unavailable")

    play(story)


# Questions.


def test_a_question_is_opened_once_and_its_answer_counts_once() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run(by="pm")
        await office.calls(id_, "1", "ask_human", question="Which?", options=["a", "b"])
        key = f"workflow:{id_}/1/1"
        [request] = office.services.of(OpenRequest)
        assert (request.owner, request.handle) == ("service:workflows", "pm")
        assert (request.key, request.workflow, request.tool) == (key, id_, "ask_human")
        assert request.title == "work asks: Which?"
        assert request.needs_person
        [question] = request.input["questions"]
        assert question["options"] == [{"label": "a"}, {"label": "b"}]
        assert (question["question"], question["multiSelect"]) == ("Which?", False)
        await office.restart()
        await office.calls(id_, "1", "ask_human", question="Which?", options=["a", "b"])
        assert office.services.of(OpenRequest)[1] == request
        assert await office.answered(key, "a") == AnswerReceived(applied=True)
        assert office.program(id_).answers == {"1": value("a")}
        assert await office.answered(key, "b") == AnswerReceived(applied=True)
        assert office.program(id_).answers == {"1": value("a")}
        await office.restart(power_fails=True)
        assert office.program(id_).journal["1"]["outcome"] == value("a")
        assert await office.answered(key, "a") == AnswerReceived(applied=True)

    play(story)


def test_a_question_of_a_person_goes_to_people_and_may_be_declined() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1", "ask_human", **QUESTION)
        assert office.services.of(OpenRequest)[0].handle == "human"
        assert await office.answered(f"workflow:{id_}/1/1", None) == AnswerReceived(applied=True)
        assert office.program(id_).answers == {"1": value(None)}
        for position, text in (("2", " "), ("3", "x" * 8_001)):
            await office.calls(id_, position, "ask_human", question=text, options=None)
            error = office.program(id_).answers[position]["error"]
            assert error["message"] == "a question has 1 to 8000 characters"
            assert error["code"] == "invalid_request"
        assert len(office.services.of(OpenRequest)) == 1
        await office.calls(id_, "4", "ask_human", question="x" * 8_000, options=None)
        assert len(office.services.of(OpenRequest)) == 2

    play(story)


def test_several_answers_are_one_text() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1", "ask_human", **QUESTION)
        answer = office.answers(f"workflow:{id_}/1/1", {"q": ["a", "b"], "r": ["c"]})
        await office.settles()
        assert answer.value == AnswerReceived(applied=True)
        assert office.program(id_).answers == {"1": value("a\nb\nc")}

    play(story)


def test_an_answer_is_acknowledged_once_it_is_durable() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1", "ask_human", **QUESTION)
        key = f"workflow:{id_}/1/1"
        office.refuse()
        answer = office.answers(key, {"q": ["yes"]})
        await office.settles()
        assert not answer.has_come
        assert office.program(id_).answers == {}
        await office.accept()
        assert answer.value == AnswerReceived(applied=True)
        assert office.program(id_).answers == {"1": value("yes")}
        await office.restart(power_fails=True)
        assert office.program(id_).journal["1"]["outcome"] == value("yes")

    play(story)


def test_an_answer_that_is_given_again_is_acknowledged_once_it_is_durable() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1", "ask_human", **QUESTION)
        key = f"workflow:{id_}/1/1"
        office.refuse()
        answers = [office.answers(key, {"q": ["yes"]}, number) for number in (1, 2)]
        await office.settles()
        assert [each.value for each in answers] == [None, None]
        await office.accept()
        assert [each.value for each in answers] == [AnswerReceived(applied=True)] * 2

    play(story)


def test_an_answer_without_a_process_is_kept_for_the_next_one() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1", "ask_human", **QUESTION)
        await office.dies_in(id_, 0.3)
        assert await office.answered(f"workflow:{id_}/1/1") == AnswerReceived(applied=True)
        await office.passes(10)
        assert office.program(id_).journal["1"]["outcome"] == value("yes")
        assert office.program(id_).go["unseen"] == ["1"]

    play(story)


@pytest.mark.parametrize("is_refused", [False, True])
def test_an_answer_before_the_replay_reaches_its_question_is_delivered(is_refused: bool) -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1", "ask_human", **QUESTION)
        await office.dies_in(id_)
        if is_refused:
            office.refuse()
        answer = office.answers(f"workflow:{id_}/1/1", {"q": ["yes"]})
        await office.settles()
        await office.calls(id_, "1", "ask_human", **QUESTION)
        if is_refused:
            assert office.program(id_).answers == {}
            await office.accept()
        assert answer.value == AnswerReceived(applied=True)
        assert office.program(id_).answers == {"1": value("yes")}

    play(story)


def test_an_answer_that_nobody_waits_for_is_not_applied() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1", "ask_human", **QUESTION)
        await office.calls(id_, "2", "ask_human", **QUESTION)
        await office.cancel(id_)
        gone = AnswerReceived(
            applied=False,
            reason="its workflow has ended, or was run again from its beginning",
        )
        assert await office.answered(f"workflow:{id_}/1/1") == gone
        await office.retry(id_)
        assert await office.answered(f"workflow:{id_}/1/1") == gone
        assert await office.answered("workflow:nonsense") == gone
        assert await office.answered("nonsense") == gone
        await office.calls(id_, "1", "ask_human", **QUESTION)
        assert await office.answered(f"workflow:{id_}/2/1") == AnswerReceived(applied=True)
        assert office.program(id_).answers == {"1": value("yes")}

    play(story)


def test_an_answer_to_a_workflow_that_is_being_ended_is_not_applied() -> None:
    async def story(office: Office) -> None:
        office.services.holds = {WithdrawRequests}
        id_ = await office.run()
        await office.calls(id_, "1", "ask_human", **QUESTION)
        await office.cancel(id_)
        received = await office.answered(f"workflow:{id_}/1/1")
        assert received == AnswerReceived(applied=False, reason="its workflow has ended")

    play(story)


# The end.


def test_the_end_is_durable_before_anything_follows_from_it() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run(by="pm")
        handle = await office.opens_session(id_, "1")
        office.refuse()
        await office.returns(id_, {"n": 1})
        assert await office.status(id_) == ["running"]
        assert office.message(id_) is None
        assert office.services.sessions[handle].state == "idle"
        await office.accept()
        info = await office.show(id_)
        assert (info.status, info.result, info.error) == ("completed", '{"n": 1}', None)
        assert info.ended is not None
        message = office.message(id_)
        assert message is not None
        assert (message.handle, message.sender, message.body) == ("pm", "workflow:work", '{"n": 1}')
        assert (message.task_id, message.status) == (id_, "ok")
        assert office.services.sessions[handle].state == "closed"
        await office.restart(power_fails=True)
        after = await office.show(id_)
        assert after == info
        assert len(office.lives(id_)) == 1
        assert len(office.services.of(Deliver)) == 1

    play(story)


def test_the_starter_is_notified_of_each_end_in_its_words() -> None:
    async def story(office: Office) -> None:
        text, nothing, bad, ended = [await office.run() for _ in range(4)]
        quiet = await office.run(callback=False)
        await office.returns(text, "plain text")
        await office.returns(nothing, None)
        await office.raises(bad, "ValueError: no")
        await office.cancel(ended)
        await office.returns(quiet)
        log = "(its log: aegis-actors workflow status"
        by = "it was cancelled by human"
        for id_, body, status in (
            (text, "plain text", "ok"),
            (nothing, "null", "ok"),
            (bad, f"the workflow has failed: ValueError: no\n{log} {bad})", "error"),
            (
                ended,
                f"the workflow was cancelled: {by}\n{log} {ended})",
                "error",
            ),
        ):
            message = office.message(id_)
            assert message is not None
            assert (message.handle, message.body, message.status) == ("human", body, status)
        assert office.message(quiet) is None
        large = await office.run(kwargs={"a": 10**600})
        await office.returns(large, "x" * 60_000)
        message = office.message(large)
        assert message is not None
        assert message.body == "x" * 60_000
        info = await office.show(large)
        assert info.result == f'"{"x" * 49_999}'
        assert info.kwargs == f'{{"a": 1{"0" * 493}'

    play(story)


def test_the_first_end_counts() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        office.refuse()
        await office.returns(id_)
        refused = await office.refused(CancelWorkflow(workflow_id=id_))
        assert isinstance(refused, InvalidRequest)
        assert str(refused) == f"workflow {id_} has ended already: it is ending"
        await office.accept()
        assert await office.status(id_) == ["completed"]
        refused = await office.refused(CancelWorkflow(workflow_id=id_))
        assert str(refused) == f"workflow {id_} has ended already: it is completed"

    play(story)


def test_a_workflow_is_cancelled_by_its_starter_and_by_people() -> None:
    async def story(office: Office) -> None:
        one, two, other = await office.run(by="pm"), await office.run(by="pm"), await office.run()
        for id_ in (one, other):
            refused = await office.refused(CancelWorkflow(workflow_id=id_, from_handle="dev"))
            assert isinstance(refused, Forbidden)
        assert f"workflow {other} was started by human, who may cancel it" in str(refused)
        for id_, by, shown in (
            (one, "PM", "agent:PM"),
            (two, None, "human"),
            (other, None, "human"),
        ):
            info = await office.cancel(id_, by)
            assert (info.status, info.error) == ("cancelled", f"it was cancelled by {shown}")
            assert info.ended is not None
            assert not office.program(id_).is_alive
        assert await office.status(one, two, other) == ["cancelled"] * 3

    play(story)


def test_a_cancelled_workflow_ends_its_calls_and_closes_its_sessions_at_once() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run(by="pm")
        own = await office.opens_session(id_, "1")
        office.add_session("dev")
        await office.calls(id_, "2/0/1", "send", handle=own, text="hi")
        await office.calls(id_, "2/1/1", "send", handle="dev", text="hi")
        await office.begins(own)
        await office.begins("dev")
        await office.cancel(id_)
        assert office.services.sessions[own].state == "closed"
        assert office.services.sessions["dev"].closes == 0
        [withdraw] = office.services.of(WithdrawRequests)
        assert (withdraw.workflow, withdraw.keys) == (id_, None)
        assert withdraw.reason == "its workflow is cancelled"
        await office.replies("dev") if office.services.sessions["dev"].waiting else None
        assert office.program(id_).answers.keys() == {"1"}

    play(story)


def test_the_sessions_of_a_completed_workflow_are_drained_for_a_minute() -> None:
    async def story(office: Office) -> None:
        id_, slow = await office.run(), await office.run()
        own = await office.opens_session(id_, "1")
        office.services.sessions[own].state = "working"
        busy = await office.opens_session(slow, "1")
        office.services.sessions[busy].state = "working"
        await office.returns(id_)
        await office.returns(slow)
        assert await office.status(id_) == ["completed"]
        assert office.message(id_) is not None
        assert office.services.sessions[own].state == "working"
        office.services.sessions[own].state = "idle"
        office.services.add(office.services.sessions[own], "turn_ended", outcome="completed")
        await office.settles()
        assert office.services.sessions[own].state == "closed"
        await office.passes(50)
        assert office.services.sessions[busy].state == "working"
        await office.passes(11)
        assert office.services.sessions[busy].state == "closed"

    play(story)


def test_a_session_that_it_only_wrote_to_is_drained_and_stays_open() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        office.add_session("dev")
        await office.calls(id_, "1", "send", handle="dev", text="hi")
        await office.raises(id_)
        await office.replies("dev")
        await office.passes(70)
        assert office.services.sessions["dev"].closes == 0
        assert (await office.resume(id_)).status == "running"

    play(story)


def test_the_end_of_a_workflow_is_followed_by_its_clean_up_after_a_restart_too() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        own = await office.opens_session(id_, "1")
        office.services.holds = {CloseAgent, Deliver}
        await office.raises(id_)
        assert await office.status(id_) == ["failed"]
        await office.restart(power_fails=True)
        refused = await office.refused(ResumeWorkflow(workflow_id=id_))
        assert str(refused) == f"workflow {id_} is still being ended; try again"
        office.services.holds = set()
        await office.restart(power_fails=True)
        assert office.services.sessions[own].state == "closed"
        assert office.message(id_) is not None
        count = len(office.services.asked)
        await office.restart(power_fails=True)
        assert len(office.services.asked) == count, "it is settled"
        assert len(office.lives(id_)) == 1

    play(story)


# Deaths of processes.


def test_a_process_that_dies_is_started_again_a_little_later_each_time() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.dies_in(id_, 0.5)
        info = await office.show(id_)
        assert info.problem == f"its process will be started again: {KILLED}"
        assert len(office.lives(id_)) == 1
        await office.passes(0.6)
        assert len(office.lives(id_)) == 2
        assert (await office.show(id_)).problem == ""
        assert (await office.show(id_)).runs == 2
        await office.dies_in(id_, 1.5)
        assert len(office.lives(id_)) == 2
        await office.passes(0.6)
        assert len(office.lives(id_)) == 3
        await office.dies_in(id_, 1)
        info = await office.show(id_)
        assert info.status == "failed"
        assert info.error == f"its process ended 3 times without progress: {KILLED}"

    play(story)


def test_the_end_of_a_call_is_progress() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        for _ in range(2):
            await office.dies_in(id_)
        await office.makes(id_, "1")
        for _ in range(2):
            await office.dies_in(id_)
            assert await office.status(id_) == ["running"]
        await office.dies_in(id_)
        assert await office.status(id_) == ["failed"]

    play(story)


def test_a_process_that_cannot_be_started_is_tried_again() -> None:
    async def story(office: Office) -> None:
        office.start_fails = "no memory"
        id_ = await office.run()
        assert (await office.show(id_)).problem == "its process will be started again: no memory"
        office.start_fails = ""
        await office.passes(2)
        assert (await office.show(id_)).problem == ""
        assert len(office.lives(id_)) == 1

    play(story)


def test_a_workflow_whose_plugin_is_gone_fails_at_once() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        office.plugins.is_gone = True
        await office.dies_in(id_)
        info = await office.show(id_)
        assert (info.status, info.error) == ("failed", "its plugin is gone, or not trusted")
        assert len(office.lives(id_)) == 1

    play(story)


def test_the_calls_for_a_dead_process_are_not_carried_on() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1", "delegate", queue="q", payload="p")
        await office.dies_in(id_)
        assert (await office.show(id_)).current == []
        await office.ends_task(f"workflow:{id_}/1/1")
        assert office.program(id_).answers == {}
        await office.calls(id_, "1", "delegate", queue="q", payload="p")
        assert office.program(id_).answers == {"1": value("did it")}

    play(story)


# Deaths of the daemon.


def test_a_process_that_outlived_its_daemon_is_ended_before_the_next_one_is_started() -> None:
    async def story(office: Office) -> None:
        office.guards = False
        id_ = await office.run()
        await office.makes(id_, "1")
        first = office.program(id_)
        await office.stop(power_fails=True)
        assert [each for each in office.lives(id_) if each.is_alive] == [first]
        await office.start()
        await office.passes(1)
        assert not first.is_alive
        assert office.program(id_) is not first
        assert office.program(id_).journal["1"]["outcome"] == value("did")
        assert (await office.show(id_)).runs == 2

    play(story)


def test_a_crash_of_the_desk_costs_the_process_and_nothing_else() -> None:
    async def story(office: Office) -> None:
        id_, done = await office.run(), await office.run()
        await office.makes(id_, "1")
        await office.calls(id_, "2", "delegate", queue="q", payload="p")
        await office.returns(done)
        first = office.program(id_)
        await office.crashes()
        assert not first.is_alive
        assert await office.status(id_, done) == ["running", "completed"]
        journal = office.program(id_).journal
        assert [each["outcome"] for each in journal.values()] == [value("did"), None]
        await office.calls(id_, "2", "delegate", queue="q", payload="p")
        await office.ends_task(f"workflow:{id_}/1/2")
        assert office.program(id_).answers == {"2": value("did it")}
        await office.returns(id_)
        assert office.message(id_) is not None

    play(story)


# Resume and retry.


def test_a_resumed_workflow_repeats_what_failed_and_not_what_succeeded() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.makes(id_, "1")
        await office.makes(id_, "2", failure("StepFailed", "no"))
        await office.calls(id_, "3")
        await office.raises(id_, "it failed")
        info = await office.resume(id_)
        assert (info.status, info.error, info.result, info.ended) == ("running", None, None, None)
        journal = office.program(id_).journal
        assert [each["outcome"] for each in journal.values()] == [value("did"), None, None]
        for position in ("2", "3"):
            assert await office.makes(id_, position) == value("did")
        await office.dies_in(id_)
        journal = office.program(id_).journal
        assert [each["outcome"] for each in journal.values()] == [value("did")] * 3
        await office.returns(id_)
        message = office.message(id_, 2)
        assert message is not None
        assert message.status == "ok"
        before = office.message(id_)
        assert before is not None
        assert before.status == "error"

    play(story)


def test_what_a_resumed_workflow_repeats_is_interrupted_like_any_call() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.makes(id_, "1", failure("StepFailed", "no"))
        await office.raises(id_)
        await office.resume(id_)
        await office.calls(id_, "1")
        assert office.program(id_).proceeds == ["1"]
        await office.dies_in(id_)
        await office.calls(id_, "1")
        assert office.program(id_).proceeds == []
        error = office.program(id_).answers["1"]["error"]
        assert error["type"] == "StepInterrupted"

    play(story)


def test_a_session_that_was_closed_at_the_end_is_opened_again() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        own = await office.opens_session(id_, "1")
        await office.raises(id_)
        assert office.services.sessions[own].state == "closed"
        await office.resume(id_)
        assert office.program(id_).journal["1"]["outcome"] is None
        assert await office.opens_session(id_, "1") == own
        assert [each.handle for each in office.services.of(ResumeSession)] == [own]
        assert office.services.sessions[own].state == "idle"
        await office.returns(id_)
        assert office.services.sessions[own].state == "closed"

    play(story)


def test_a_closed_session_is_opened_again_for_a_message() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        own = await office.opens_session(id_, "1")
        office.services._close(office.services.sessions[own])
        await office.calls(id_, "2", "send", handle=own, text="hi")
        assert office.services.sessions[own].state == "idle"
        office.add_session("dev", state="closed")
        await office.calls(id_, "3", "send", handle="dev", text="hi")
        assert office.services.sessions["dev"].state == "closed"

    play(story)


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_cancelled_call_is_done_again_only_where_the_function_ended_with_it(
    goes_on: bool,
) -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1/0/1", "drain", handle="h")
        office.add_session("dev", state="working")
        await office.calls(id_, "2/0/1", "drain", handle="dev")
        await office.calls(id_, "2/1/1")
        await office.leaves(id_, "2/0/1")
        await office.does(id_, "2/1/1", failure("StepFailed", "no"))
        if goes_on:
            await office.calls(id_, "2/0/2")
        await office.raises(id_)
        await office.passes(70)
        await office.resume(id_)
        journal = office.program(id_).journal
        outcome = cancelled("2/0/1", "drain('dev')")
        assert journal["2/0/1"]["outcome"] == (outcome if goes_on else None)
        assert journal["2/1/1"]["outcome"] is None

    play(story)


def test_a_retried_workflow_begins_anew_with_ids_of_its_own() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run(kwargs={"a": 3})
        first = await office.opens_session(id_, "1")
        await office.calls(id_, "2", "delegate", queue="q", payload="p")
        await office.calls(id_, "3", "checkpoint", name="half", payload=None)
        await office.cancel(id_)
        info = await office.retry(id_)
        assert (info.status, info.checkpoint, info.calls) == ("running", None, 0)
        program = office.program(id_)
        assert (program.journal, program.go["seen"], program.go["unseen"]) == ({}, [], [])
        assert program.start["kwargs"] == {"a": 3}
        second = await office.opens_session(id_, "1")
        assert second == f"work-{id_[-10:].lower()}-r2-1"
        assert first != second
        await office.calls(id_, "2", "delegate", queue="q", payload="other")
        assert [*office.services.tasks] == [f"workflow:{id_}/1/2", f"workflow:{id_}/2/2"]
        await office.restart(power_fails=True)
        assert list(office.program(id_).journal) == ["1", "2"]
        await office.returns(id_)
        assert office.message(id_, 2) is not None
        assert [office.services.sessions[each].closes for each in (first, second)] == [1, 1]

    play(story)


@pytest.mark.parametrize("command", [ResumeWorkflow, RetryWorkflow])
def test_only_a_failed_or_cancelled_workflow_is_run_again(command: Any) -> None:
    async def story(office: Office) -> None:
        done, running = await office.run(), await office.run()
        await office.returns(done)
        for id_, phase in ((done, "completed"), (running, "running")):
            refused = await office.refused(command(workflow_id=id_))
            assert isinstance(refused, InvalidRequest)
            assert f"workflow {id_} is {phase}; only one that has failed" in str(refused)
        missing = await office.refused(command(workflow_id="0" * 26))
        assert isinstance(missing, NotFound)

    play(story)


@pytest.mark.parametrize("command", [ResumeWorkflow, RetryWorkflow])
def test_running_again_is_durable_when_it_is_acknowledged(command: Any) -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.raises(id_)
        assert (await office.ask(command(workflow_id=id_))).status == "running"
        await office.restart(power_fails=True)
        assert await office.status(id_) == ["running"]
        await office.raises(id_)
        assert office.message(id_, 2) is not None

    play(story)


@pytest.mark.parametrize("call", ["write", "fdatasync"])
@pytest.mark.parametrize("command", [ResumeWorkflow, RetryWorkflow])
def test_running_again_that_the_disk_refuses_changes_nothing(command: Any, call: str) -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.makes(id_, "1")
        await office.raises(id_)
        before = await office.show(id_)
        office.refuse(call)
        refused = await office.refused(command(workflow_id=id_))
        assert isinstance(refused, StorageError)
        assert await office.show(id_) == before
        await office.accept()
        assert await office.status(id_) == ["failed"]
        assert (await office.ask(command(workflow_id=id_))).status == "running"
        await office.settles()
        assert len(office.lives(id_)) == 2
        assert list(office.program(id_).journal) == (["1"] if command is ResumeWorkflow else [])

    play(story)


# A disk that refuses.


def test_a_cancellation_that_the_disk_refuses_does_not_happen() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1")
        office.refuse()
        refused = await office.refused(CancelWorkflow(workflow_id=id_))
        assert isinstance(refused, StorageError)
        assert await office.status(id_) == ["running"]
        assert office.program(id_).is_alive
        await office.accept()
        await office.does(id_, "1")
        await office.returns(id_)
        assert await office.status(id_) == ["completed"]
        assert len(office.lives(id_)) == 1

    play(story)


def test_what_a_process_did_while_a_cancellation_was_refused_counts() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1")
        office.refuse("fdatasync")
        cancel = office.ask_soon(CancelWorkflow(workflow_id=id_))
        await office.yields()
        await office.does(id_, "1")
        await office.calls(id_, "2")
        assert isinstance(cancel.error, StorageError)
        await office.accept()
        assert office.program(id_).answers == {"1": value("did")}
        assert office.program(id_).proceeds == ["1", "2"]
        await office.does(id_, "2")
        await office.returns(id_, "all")
        assert (await office.show(id_)).result == '"all"'

    play(story)


def test_a_call_that_is_made_during_a_cancellation_acts_once_that_is_refused() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        office.plan.refuse_one("fdatasync", 1)
        cancel = office.ask_soon(CancelWorkflow(workflow_id=id_))
        await office.yields()
        await office.calls(id_, "1")
        assert isinstance(cancel.error, StorageError)
        await office.accept()
        assert office.program(id_).proceeds == ["1"]
        assert len(office.lives(id_)) == 1

    play(story)


def test_a_process_that_dies_while_the_disk_refuses_is_started_again() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1")
        office.refuse()
        await office.does(id_, "1")
        await office.dies_in(id_, 30)
        assert len(office.lives(id_)) == 1
        await office.accept()
        assert office.program(id_).journal["1"]["outcome"] == value("did")

    play(story)


def test_a_disk_that_refuses_holds_other_workflows_up_no_longer() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        office.refuse()
        await office.calls(id_, "1")
        await office.passes(40)
        await office.accept()
        other = await office.run()
        assert await office.makes(other, "1") == value("did")
        await office.does(id_, "1")
        await office.returns(id_)
        await office.returns(other)
        assert await office.status(id_, other) == ["completed"] * 2

    play(story)


@pytest.mark.parametrize("number", range(1, 8))
@pytest.mark.parametrize("call", ["write", "fdatasync", "fsync", "open"])
def test_one_refusal_delays_a_life_and_changes_nothing_in_it(call: str, number: int) -> None:
    async def story(office: Office) -> None:
        id_ = await office.run(by="pm")
        office.plan.refuse_one(call, number)
        await office.calls(id_, "1")
        await office.passes(11)
        await office.does(id_, "1")
        await office.passes(11)
        await office.calls(id_, "2", "delegate", queue="q", payload="p")
        await office.passes(11)
        await office.ends_task(f"workflow:{id_}/1/2")
        await office.passes(11)
        await office.calls(id_, "3", "checkpoint", name="c", payload=1)
        await office.passes(11)
        assert [*office.program(id_).answers] == ["1", "2", "3"]
        await office.returns(id_)
        await office.passes(11)
        assert await office.status(id_) == ["completed"]
        assert len(office.lives(id_)) == 1
        assert len(office.services.messages) == 1
        office.plan.faults.clear()
        await office.restart(power_fails=True)
        info = await office.show(id_)
        assert (info.status, info.calls, info.checkpoint) == ("completed", 3, "c")
        count = len(office.services.asked)
        await office.restart()
        assert len(office.services.asked) == count

    play(story)


def test_what_cannot_be_read_at_the_start_is_read_later() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run(key="k")
        await office.makes(id_, "1")
        await office.stop(power_fails=True)
        office.refuse("open")
        await office.start()
        await office.settles()
        refused = await office.refused(RunWorkflow(name="work", key="k"))
        assert isinstance(refused, StorageError)
        await office.accept()
        assert await office.run(key="k") == id_
        assert office.program(id_).journal["1"]["outcome"] == value("did")

    play(story)


def test_a_journal_that_cannot_be_read_stops_its_workflow_alone() -> None:
    async def story(office: Office) -> None:
        id_, other = await office.run(), await office.run()
        await office.makes(id_, "1")
        await office.stop(power_fails=True)
        office.refuse_to_open(f"{id_}/ledger.jsonl")
        await office.start()
        await office.passes(1)
        info = await office.show(id_)
        assert info.status == "running"
        assert "its ledger cannot be read" in info.problem
        assert len(office.lives(id_)) == 1
        assert len(office.lives(other)) == 2
        await office.returns(other)
        del office.disk.model.open  # it can be read again
        await office.passes(11)
        info = await office.show(id_)
        assert (info.problem, info.calls) == ("", 1)
        assert office.program(id_).journal["1"]["outcome"] == value("did")

    play(story)


def test_runs_that_are_settled_leave_no_open_files() -> None:
    async def story(office: Office) -> None:
        await office.returns(await office.run())
        count = office.disk.model.open_count
        failed = await office.run()
        await office.raises(failed)
        await office.resume(failed)
        await office.makes(failed, "1")
        await office.returns(failed)
        await office.cancel(await office.run())
        assert office.disk.model.open_count == count
        await office.restart()
        assert office.disk.model.open_count <= count

    play(story)


def test_what_a_start_has_left_that_was_never_acknowledged_is_removed() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.stop()
        image = dict(cached_image(office.disk.model))
        unknown, damaged = "0" * 26, "1" * 26
        files = {f"{unknown}/meta.json.new": b"{", f"{damaged}/meta.json": b"nonsense\n"}
        for path, data in files.items():
            image[str(DIRECTORY / path.partition("/")[0])] = None
            image[str(DIRECTORY / path)] = data
        office.disk = SimulatedDisk(image, office.plan)
        await office.start()
        await office.settles()
        assert [each.workflow_id for each in (await office.listed()).result] == [id_]
        after = cached_image(office.disk.model)
        assert str(DIRECTORY / unknown) not in after
        assert after[str(DIRECTORY / damaged / "meta.json")] == b"nonsense\n"

    play(story)


def test_an_answer_waits_for_a_journal_that_cannot_be_read() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "1", "ask_human", **QUESTION)
        await office.stop(power_fails=True)
        office.refuse("open")
        await office.start()
        answer = office.answers(f"workflow:{id_}/1/1", {"q": ["yes"]})
        await office.passes(20)
        assert not answer.has_come
        await office.accept()
        assert answer.value == AnswerReceived(applied=True)
        assert office.program(id_).journal["1"]["outcome"] == value("yes")

    play(story)


# Lists, and what is followed.


def test_runs_are_listed_newest_first_with_those_that_run_before_others() -> None:
    async def story(office: Office) -> None:
        ids = [await office.run() for _ in range(4)]
        await office.returns(ids[3])
        await office.returns(ids[0])
        found = await office.listed()
        assert [each.workflow_id for each in found.result] == [ids[2], ids[1], ids[0], ids[3]]
        assert (found.more, [each.name for each in found.workflows]) == (False, ["other", "work"])
        assert found.problems == []
        first = await office.listed(2)
        assert [each.workflow_id for each in first.result] == ids[2:0:-1]
        assert first.more
        assert (await office.listed(4)).more is False
        await office.restart(power_fails=True)
        after = await office.listed()
        assert [each.workflow_id for each in after.result] == [ids[2], ids[1], ids[0], ids[3]]
        office.plugins.is_gone = True
        assert len((await office.listed()).problems) == 1

    play(story)


def test_a_list_has_a_limited_size() -> None:
    async def story(office: Office) -> None:
        for _ in range(6):
            await office.returns(await office.run(), "x" * 49_000)
        found = await office.listed()
        assert len(found.result) == 4
        assert found.more

    play(story)


def test_followers_get_all_that_run_and_then_what_changes() -> None:
    async def story(office: Office) -> None:
        one, two = await office.run(), await office.run()
        await office.returns(two)
        first = await office.news()
        assert first.is_all
        assert [each.workflow_id for each in first.workflows] == [one]
        waiting = office.ask_soon(_following(first))
        await office.settles()
        assert not waiting.has_come
        await office.calls(one, "1")
        assert [each.current for each in waiting.value.workflows] == [["step('s1')"]]
        assert not waiting.value.is_all
        news = waiting.value
        await office.does(one, "1")
        news = await office.news(news)
        assert [(each.workflow_id, each.calls) for each in news.workflows] == [(one, 1)]
        three = await office.run()
        news = await office.news(news)
        assert [each.workflow_id for each in news.workflows] == [three]
        office.refuse()
        await office.calls(three, "1")
        news = await office.news(news)
        shown = {each.workflow_id: each for each in news.workflows}
        assert shown[three].problem != ""
        await office.accept()
        news = await office.news(news)
        shown = {each.workflow_id: each for each in news.workflows}
        assert shown[three].problem == ""
        await office.cancel(three)
        news = await office.news(news)
        shown = {each.workflow_id: each for each in news.workflows}
        assert shown[three].status == "cancelled"

    play(story)


def _following(news: WorkflowsNews) -> FollowWorkflows:
    return FollowWorkflows(place=news.place)


def test_a_run_is_followed_until_it_is_settled_and_again_when_it_is_resumed() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        news = await office.news()
        await office.raises(id_)
        news = await office.news(news)
        assert [each.status for each in news.workflows] == ["failed"]
        assert (await office.news()).workflows == []
        await office.resume(id_)
        news = await office.news(news)
        assert [each.status for each in news.workflows] == ["running"]
        assert [each.workflow_id for each in (await office.news()).workflows] == [id_]

    play(story)


# Plugins.


def test_plugins_are_trusted_durably_as_they_are_now() -> None:
    async def story(office: Office) -> None:
        trusted = await office.ask(TrustPlugins())
        assert trusted.files == ["plugins/plugin.py"]
        assert office.plugins.trusted == [PLUGIN]
        [digest] = office.remembered
        office.remembering_fails, office.plugins.trusted = True, []
        refused = await office.refused(TrustPlugins())
        assert isinstance(refused, StorageError)
        assert str(refused) == "the trust could not be stored: No space left on device"
        assert (office.plugins.trusted, office.remembered) == ([], [digest])

    play(story)


# Older versions.


@pytest.mark.parametrize("first_life_s", [None, 0.001, 0.003, 0.005, 0.008, 0.012, 0.02, 0.04])
def test_the_files_of_a_version_before_tables_are_read_and_continued(
    first_life_s: float | None,
) -> None:
    async def story(office: Office) -> None:
        recorded = json.loads((RECORDINGS / "workflows_before_tables.json").read_text())
        ids = {name: each["info"]["workflow_id"] for name, each in recorded["runs"].items()}
        office.add_session("dev")
        await office.stop()
        files = {path: text.encode() for path, text in recorded["files"].items()}
        office.disk = office.disk_with(files)
        if first_life_s is not None:
            await office.start()
            await trio.sleep(first_life_s)
            await office.stop(power_fails=True)
        await office.start()
        await office.passes(20)
        await office.restart(power_fails=True)
        for name, id_ in ids.items():
            expected = recorded["runs"][name]
            info = attrs.asdict(await office.show(id_))
            changing = {"runs": info["runs"], "calls": info["calls"]}
            assert info == {**expected["info"], **changing}
            assert (
                await office.run(
                    info["name"], by=_starter(info), kwargs=json.loads(info["kwargs"]), key=name
                )
                == id_
            )
            if expected["frames"] is not None:
                program = office.program(id_)
                assert [program.start, program.journal, program.go] == expected["frames"]
        message = office.message(ids["ending"])
        assert message is not None
        assert message.body == "text"
        assert office.message(ids["done"]) is None, "it was settled"
        await office.resume(ids["failed"])
        assert [each["outcome"] for each in office.program(ids["failed"]).journal.values()] == [
            value("did"),
            None,
        ]
        await office.makes(ids["failed"], "2")
        await office.returns(ids["failed"])
        assert await office.answered(f"workflow:{ids['resumed']}/1/5") == AnswerReceived(
            applied=True
        )
        await office.cancel(ids["retried"])
        await office.retry(ids["retried"])
        await office.restart(power_fails=True)
        assert office.program(ids["resumed"]).journal["5"]["outcome"] == value("yes")
        assert office.program(ids["retried"]).journal == {}
        assert await office.status(ids["failed"]) == ["completed"]

    play(story)


def _starter(info: dict[str, Any]) -> str | None:
    sender = str(info["sender"])
    return sender.removeprefix("agent:") if sender.startswith("agent:") else None


# Steps.


async def steps(office: Office, id_: str, **fields: Any) -> WorkflowSteps:
    return await office.ask(ListWorkflowSteps(workflow_id=id_, **fields))


def test_the_steps_of_a_run_are_listed_in_order_while_it_runs_and_once_it_has_ended() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        assert (await steps(office, id_)).result == []
        await office.calls(id_, "0", name="a", key="k")
        await office.passes(2)
        await office.does(id_, "0", value("x" * 3_000))
        await office.calls(id_, "1", name="b", key="l")
        await office.does(id_, "1", failure("ValueError", "no"))
        await office.calls(id_, "2", "checkpoint", name="half", payload={"n": 1})
        await office.calls(id_, "3", name="c", key="m")
        found = await steps(office, id_)
        assert (found.workflow_id, found.total, found.more) == (id_, 4, False)
        a, b, half, c = found.result
        assert [each.number for each in found.result] == [1, 2, 3, 4]
        assert [each.kind for each in found.result] == ["step", "step", "checkpoint", "step"]
        assert [each.state for each in found.result] == [
            *("completed", "failed", "completed", "running"),
        ]
        assert (a.position, a.label, a.error, a.is_cut) == ("0", "step('a', 'k')", None, True)
        assert a.result is not None
        assert a.result.startswith('"xxx')
        assert a.started is not None
        assert a.ended is not None
        assert a.ended > a.started
        assert (b.result, b.error, b.is_cut) == (None, "ValueError: no", False)
        assert half.handle == "half"
        assert (c.ended, c.result, c.error) == (None, None, None)
        await office.restart(power_fails=True)
        assert await steps(office, id_) == found
        page = await steps(office, id_, after=1, limit=2)
        assert (page.result, page.total, page.more) == ([b, half], 4, True)
        assert (await steps(office, id_, after=9)).result == []
        await office.cancel(id_)
        await office.passes(1)
        ended = await steps(office, id_)
        assert ended.result == [a, b, half, attrs.evolve(c, state="interrupted")]
        await office.restart(power_fails=True)
        assert await steps(office, id_) == ended
        missing = await office.refused(ListWorkflowSteps(workflow_id="0" * 26))
        assert isinstance(missing, NotFound)

    play(story)


def test_a_retry_begins_with_no_step_and_a_resumed_one_runs_again() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        await office.calls(id_, "0", name="a", key="k")
        await office.does(id_, "0", failure("ValueError", "no"))
        await office.raises(id_)
        await office.passes(1)
        assert [each.state for each in (await steps(office, id_)).result] == ["failed"]
        await office.resume(id_)
        await office.calls(id_, "0", name="a", key="k")
        [again] = (await steps(office, id_)).result
        assert (again.state, again.error, again.ended) == ("running", None, None)
        await office.does(id_, "0")
        assert [each.state for each in (await steps(office, id_)).result] == ["completed"]
        await office.raises(id_)
        await office.passes(1)
        await office.retry(id_)
        assert (await steps(office, id_)).result == []

    play(story)


def test_a_list_of_steps_fits_into_a_reply_and_continues_behind_its_last_one() -> None:
    async def story(office: Office) -> None:
        id_ = await office.run()
        for number in range(150):
            await office.calls(id_, f"{number}", name="a", key=f"{number}")
            await office.does(id_, f"{number}", value("\x1b" * 2_000))
        for is_over in (False, True):
            if is_over:
                await office.returns(id_)
                await office.passes(1)
            known: list[int] = []
            more = True
            while more:
                page = await steps(office, id_, after=len(known), limit=500)
                assert page.total == 150
                assert json_size(to_plain(page)) < MAX_REPLY_BYTES
                known += [each.number for each in page.result]
                more = page.more
            assert known == [*range(1, 151)]

    play(story)


def test_the_steps_of_a_run_of_before_tables_are_listed_without_times() -> None:
    async def story(office: Office) -> None:
        recorded = json.loads((RECORDINGS / "workflows_before_tables.json").read_text())
        await office.stop()
        office.disk = office.disk_with(
            {path: text.encode() for path, text in recorded["files"].items()}
        )
        await office.start()
        await office.passes(20)
        listed = 0
        for each in recorded["runs"].values():
            info = await office.show(each["info"]["workflow_id"])
            if info.status == "completed":
                found = await steps(office, info.workflow_id)
                assert found.total == info.calls
                assert {(e.state, e.started, e.ended) for e in found.result} <= {
                    (state, None, None) for state in ("completed", "failed", "cancelled")
                }
                listed += found.total
        assert listed == 3

    play(story)
