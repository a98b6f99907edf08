"""The machine of a session, case by case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from aegis.agents.drivers.harness import Capabilities
from aegis.agents.messages import DriverFailed, DriverReady, InterruptTurn, SendTurn
from aegis.agents.sessions import steps
from aegis.agents.sessions.edited_files import EditedFiles
from aegis.agents.sessions.login import LOGIN
from aegis.agents.sessions.open_requests import MAX_OPEN, NOBODY
from aegis.agents.sessions.past import SessionPast, carried, restored
from aegis.agents.sessions.rules import SessionMachine
from aegis.agents.sessions.settings import LIMIT_S, START_AGAIN_S
from aegis.agents.sessions.steps import Incoming, Output, SessionPhase
from aegis.protocol import agent_events as ev
from tests.aegis.agents.sessions.world import driver_ended, message, settings

Kind = TypeVar("Kind")


class Case:
    """A session whose disk is quick: what must be durable is, unless ``disk`` is "slow"."""

    def __init__(self, past: SessionPast | None = None, **fields: Any) -> None:
        self.session = SessionMachine(settings(**fields), past or SessionPast(), now=0.0)
        self.out: list[Output] = []
        self.entries: list[dict[str, Any]] = []
        self.disk = "quick"
        self.now = 0.0

    def give(
        self, step: Callable[..., list[Output]], *given: Any, at: float | None = None, **named: Any
    ) -> Case:
        self.now = self.now if at is None else at
        self.take(step(self.session.at(self.now), *given, **named))
        return self

    def take(self, outputs: list[Output]) -> None:
        self.out += outputs
        for each in outputs:
            if isinstance(each, steps.Append):
                self.entries.append(each.entry)
                if each.sync and self.disk == "quick":
                    self.give(SessionMachine.stored, each.number)

    def of(self, form: type[Kind]) -> list[Kind]:
        return [each for each in self.out if isinstance(each, form)]

    def kinds(self, *names: str) -> list[dict[str, Any]]:
        return [each for each in self.entries if each["kind"] in names]

    def ready(self, conversation: str = "c1") -> Case:
        return self.give(
            SessionMachine.driver_ready,
            DriverReady(launch=1, conversation=conversation, capabilities=Capabilities()),
        )

    def working(self, *numbers: int) -> Case:
        self.give(SessionMachine.arrived, tuple(message(each) for each in numbers or (1,)))
        return self.ready() if self.session.phase is SessionPhase.STARTING else self

    def phase(self) -> SessionPhase:
        return self.session.phase

    def uuid(self) -> str:
        return self.of(SendTurn)[-1].uuid

    def result(self, *, ok: bool = True, reason: str = "completed", text: str = "") -> Case:
        result = ev.Result(messages=[self.uuid()], ok=ok, reason=reason, text=text)
        return self.give(SessionMachine.heard, result)

    def outcome(self) -> str:
        outcome: str = self.kinds("turn_ended")[-1]["outcome"]
        return outcome


def permission(request: str = "r1") -> ev.RequestOpened:
    return ev.RequestOpened(id=request, kind="permission", tool="Bash")


ALLOW = ev.PermissionAnswer(kind="allow_once")


def test_a_message_starts_the_agent_and_becomes_a_turn() -> None:
    case = Case().give(SessionMachine.arrived, (message(1),))
    assert case.of(steps.StartDriver) == [steps.StartDriver(conversation=None)]
    assert case.phase() is SessionPhase.STARTING
    case.ready()
    assert [each.text for each in case.of(SendTurn)] == ["do 1"]
    assert case.phase() is SessionPhase.WORKING


def test_messages_are_acknowledged_once_the_end_of_their_turn_is_durable() -> None:
    case = Case().give(SessionMachine.arrived, (message(1), message(2))).ready()
    case.disk = "slow"
    case.result()
    assert case.of(steps.Acknowledge) == []
    case.disk = "quick"
    ended = [each for each in case.of(steps.Append) if each.entry["kind"] == "turn_ended"]
    case.give(SessionMachine.stored, ended[-1].number)
    assert case.of(steps.Acknowledge) == [steps.Acknowledge("m2")]


def test_a_turn_is_not_sent_before_it_is_durable() -> None:
    case = Case().working()
    case.result()
    case.disk = "slow"
    case.give(SessionMachine.arrived, (message(2),))
    assert len(case.of(SendTurn)) == 1
    case.give(SessionMachine.stored, case.of(steps.Append)[-1].number)
    assert len(case.of(SendTurn)) == 2


def test_a_turn_that_the_disk_refuses_is_written_again_and_then_sent() -> None:
    case = Case().working().result()
    case.disk = "slow"
    case.give(SessionMachine.arrived, (message(2),))
    refused = case.of(steps.Append)[-1]
    case.give(SessionMachine.not_stored, refused.number)
    assert case.of(steps.SetTimer)[-1].timer == "store"
    case.disk = "quick"
    case.give(SessionMachine.timer_fired, "store")
    assert len(case.of(SendTurn)) == 2
    case.give(SessionMachine.stored, refused.number)
    assert len(case.of(SendTurn)) == 2


def test_only_what_the_disk_refused_is_written_again() -> None:
    case = Case().give(SessionMachine.arrived, (message(1),))
    case.disk = "slow"
    case.ready()
    ready, opened = [each for each in case.of(steps.Append) if each.sync]
    case.give(SessionMachine.not_stored, ready.number).give(SessionMachine.timer_fired, "store")
    assert [each.entry["kind"] for each in case.of(steps.Append) if each.sync] == [
        *("ready", "turn_opened", "ready"),
    ]
    case.give(SessionMachine.stored, opened.number)
    assert len(case.of(SendTurn)) == 1


def test_messages_during_a_turn_become_one_turn_after_it() -> None:
    case = Case().working(1)
    case.give(SessionMachine.arrived, (message(2),)).give(
        SessionMachine.arrived, (message(2), message(3))
    )
    assert (case.session.waiting, len(case.of(SendTurn))) == (2, 1)
    case.result()
    assert [each.text for each in case.of(SendTurn)] == ["do 1", "do 2\n\ndo 3"]


def test_a_broadcast_is_a_turn_of_its_own() -> None:
    case = Case().working(0)
    mixed = (message(1), message(2), message(3, "group:g"), message(4, "group:g"), message(5))
    case.give(SessionMachine.arrived, mixed)
    for _ in range(4):
        case.result()
    texts = [each.text for each in case.of(SendTurn)]
    assert texts == ["do 0", "do 1\n\ndo 2", "do 3", "do 4", "do 5"]


@pytest.mark.parametrize("messages", [[], ["another"]])
def test_a_result_that_answers_no_message_of_the_turn_does_not_end_it(messages: list[str]) -> None:
    case = Case().working()
    case.give(SessionMachine.heard, ev.Result(messages=messages, ok=True, reason="completed"))
    assert case.phase() is SessionPhase.WORKING
    assert case.kinds("turn_ended") == []


@pytest.mark.parametrize(
    ("ok", "interrupted", "outcome"),
    [
        (True, False, "completed"),
        (False, False, "failed"),
        (False, True, "cancelled"),
        (True, True, "completed"),
    ],
)
def test_the_outcome_of_a_turn(ok: bool, interrupted: bool, outcome: str) -> None:
    case = Case().working()
    if interrupted:
        case.give(SessionMachine.end_turn, "pm")
        assert case.of(InterruptTurn) == [InterruptTurn()]
    case.result(ok=ok)
    assert case.outcome() == outcome
    assert case.phase() is SessionPhase.IDLE
    assert bool(case.of(steps.Notify)) == (outcome == "failed")


def test_a_turn_that_the_agent_reports_as_cancelled_ends_and_the_next_one_is_sent() -> None:
    case = Case().working(1)
    case.give(SessionMachine.arrived, (message(2),))
    case.give(SessionMachine.heard, ev.MessageChanged(uuid="another", state="cancelled"))
    assert case.kinds("turn_ended") == []
    case.give(SessionMachine.heard, ev.MessageChanged(uuid=case.uuid(), state="cancelled"))
    assert case.outcome() == "cancelled"
    assert [each.text for each in case.of(SendTurn)] == ["do 1", "do 2"]


def test_the_text_of_a_turn_is_the_agents_last_message() -> None:
    case = Case().working()
    for text, message_id in (("first", "a"), ("se", "b"), ("cond", "b")):
        case.give(SessionMachine.heard, ev.AssistantText(text=text, message=message_id))
    case.result()
    assert case.kinds("turn_ended")[0]["text"] == "second"
    case.give(SessionMachine.arrived, (message(2),))
    case.give(SessionMachine.heard, ev.AssistantText(text="before"))
    case.give(SessionMachine.heard, ev.ToolUse(id="t", name="Bash"))
    case.give(SessionMachine.heard, ev.AssistantText(text="after"))
    case.result()
    assert case.kinds("turn_ended")[1]["text"] == "after"


def test_a_process_that_dies_in_a_turn_interrupts_it_and_is_resumed() -> None:
    case = (
        Case()
        .working()
        .give(SessionMachine.driver_ended, driver_ended(-9, stderr="fatal: out of memory"))
    )
    ended = case.kinds("turn_ended")[0]
    assert ended["outcome"] == "interrupted"
    assert "fatal: out of memory" in ended["reason"]
    assert [each.handle for each in case.of(steps.Notify)] == ["pm"]
    assert case.of(steps.StartDriver)[-1] == steps.StartDriver(conversation="c1")
    case.ready()
    assert len(case.of(SendTurn)) == 1
    assert case.phase() is SessionPhase.IDLE


def test_an_end_between_turns_is_no_crash_and_starts_nothing() -> None:
    case = Case().working().result().give(SessionMachine.driver_ended, driver_ended(1))
    assert case.phase() is SessionPhase.DORMANT
    assert len(case.of(steps.StartDriver)) == 1
    assert case.of(steps.Notify) == []


def test_a_turn_that_the_daemon_cut_is_interrupted_and_never_sent_again() -> None:
    before = Case().working(1)
    past = SessionPast()
    for entry in before.entries:
        past.take(entry)
    case = Case(past)
    case.take(case.session.begin(0.0))
    assert case.outcome() == "interrupted"
    assert [each.id for each in case.of(steps.Notify)] == ["session:s1/turn:1/pm"]
    case.give(SessionMachine.arrived, (message(1), message(2))).ready()
    assert [each.text for each in case.of(SendTurn)] == ["do 2"]
    assert case.of(steps.StartDriver) == [steps.StartDriver(conversation="c1")]


def test_a_message_whose_acknowledgement_was_lost_is_acknowledged_again() -> None:
    past = SessionPast()
    for entry in Case().working(1).result().entries:
        past.take(entry)
    case = Case(past).give(SessionMachine.arrived, (message(1),))
    assert case.of(steps.Acknowledge) == [steps.Acknowledge("m1")]
    assert case.phase() is SessionPhase.DORMANT


def test_the_ladder_resumes_twice_then_primes_a_fresh_conversation_then_gives_up() -> None:
    case = (
        Case().working().result(text="all done").give(SessionMachine.driver_ended, driver_ended(0))
    )
    case.give(SessionMachine.arrived, (message(2),))
    for _ in range(3):
        case.give(SessionMachine.driver_ended, driver_ended(1, stderr="broken"))
        case.give(SessionMachine.timer_fired, "start")
    starts = case.of(steps.StartDriver)[1:]
    assert [each.conversation for each in starts] == ["c1", "c1", None]
    assert starts[-1].texts == ("[user] do 1", "[assistant] all done")
    assert [each["rung"] for each in case.kinds("started")] == [1, 1, 2, 3]
    assert [each.after_s for each in case.of(steps.SetTimer)] == [START_AGAIN_S] * 2
    assert case.phase() is SessionPhase.ERROR
    assert "broken" in case.session.reason
    case.give(SessionMachine.arrived, (message(3),))
    assert case.phase() is SessionPhase.STARTING


def test_an_unknown_conversation_skips_to_a_fresh_one() -> None:
    case = (
        Case()
        .working()
        .result()
        .give(SessionMachine.driver_ended, driver_ended(0))
        .give(SessionMachine.resume)
    )
    case.give(
        SessionMachine.driver_failed,
        DriverFailed(launch=1, reason="no conversation c1", kind="conversation"),
    )
    case.give(SessionMachine.driver_ended, driver_ended(1)).give(
        SessionMachine.timer_fired, "start"
    )
    assert [each.conversation for each in case.of(steps.StartDriver)] == [None, "c1", None]
    case.ready("c2")
    assert case.session.conversation == "c2"


def test_a_needed_login_is_an_error_at_once() -> None:
    case = Case().give(SessionMachine.arrived, (message(1),))
    case.give(
        SessionMachine.driver_failed,
        DriverFailed(launch=1, reason="log in with: claude /login", kind="login"),
    )
    assert case.of(steps.StopDriver) == [steps.StopDriver()]
    case.give(SessionMachine.driver_ended, driver_ended(1))
    assert (case.phase(), case.session.reason) == (
        SessionPhase.ERROR,
        "log in with: claude /login",
    )
    assert case.session.waiting == 1


def needing_login() -> Case:
    case = Case(login=steps.LogIn(command="claude auth login", terminal="login-pm"))
    case.give(SessionMachine.arrived, (message(1),))
    case.give(
        SessionMachine.driver_failed, DriverFailed(launch=1, reason="not logged in", kind="login")
    )
    assert case.of(steps.OpenAtDesk) == []  # its process still runs
    return case.give(SessionMachine.driver_ended, driver_ended(1))


ACCEPTED = ev.ElicitationAnswer(action="accept")


def test_a_needed_login_is_a_request_with_its_command() -> None:
    case = needing_login()
    [opened] = case.of(steps.OpenAtDesk)
    event = opened.event
    assert (event.id, event.kind, event.reason) == (LOGIN, "login", "not logged in")
    assert event.input == {"command": "claude auth login", "terminal": "login-pm"}
    assert case.session.login.is_open


def test_an_approved_login_is_run_once_and_the_agent_is_started_afterwards() -> None:
    case = needing_login()
    assert case.session.login.waits_for(LOGIN)
    order = steps.LogIn(command="claude auth login", terminal="login-pm")
    case.give(SessionMachine.login_answered, ACCEPTED)
    assert case.of(steps.LogIn) == [order]
    assert not case.session.login.waits_for(LOGIN)
    assert case.phase() == SessionPhase.ERROR
    starts = len(case.of(steps.StartDriver))
    case.give(SessionMachine.resume)
    assert len(case.of(steps.StartDriver)) == starts + 1


def test_a_refused_login_runs_nothing() -> None:
    case = needing_login()
    case.give(SessionMachine.login_answered, ev.ElicitationAnswer(action="decline"))
    assert case.of(steps.LogIn) == []
    assert (case.phase(), case.session.login.is_open) == (SessionPhase.ERROR, False)
    assert len(case.kinds("login_refused")) == 1


@pytest.mark.parametrize(
    ("step", "is_expected"),
    [
        ((SessionMachine.resume,), True),
        ((SessionMachine.close, "human"), True),
        ((SessionMachine.restart, "human"), True),
        ((SessionMachine.arrived, ()), False),
    ],
)
def test_a_login_is_withdrawn_when_the_session_is_started_again_or_closed(
    step: Any, is_expected: bool
) -> None:
    case = needing_login().give(*step)
    assert bool(case.of(steps.WithdrawAtDesk)) == is_expected
    assert case.session.login.is_open != is_expected


def test_another_failure_asks_for_no_login() -> None:
    case = (
        Case()
        .working()
        .give(
            SessionMachine.driver_failed,
            DriverFailed(launch=1, reason="our server is not connected"),
        )
    )
    case.give(SessionMachine.driver_ended, driver_ended(0))
    assert case.of(steps.OpenAtDesk) == []


def test_an_agent_that_fails_in_a_turn_is_in_error_with_the_reason() -> None:
    case = (
        Case()
        .working()
        .give(
            SessionMachine.driver_failed,
            DriverFailed(launch=1, reason="our server is not connected"),
        )
    )
    assert case.outcome() == "failed"
    case.give(SessionMachine.driver_ended, driver_ended(0))
    assert (case.phase(), case.session.reason) == (
        SessionPhase.ERROR,
        "our server is not connected",
    )


@pytest.mark.parametrize(
    ("step", "given", "sent"),
    [
        (SessionMachine.restart, ("human",), 1),
        (SessionMachine.resume, (), 1),
        (SessionMachine.arrived, ((message(2),),), 2),
    ],
)
def test_an_order_while_a_failed_process_is_being_ended_starts_one_more(
    step: Any, given: tuple[object, ...], sent: int
) -> None:
    failed = DriverFailed(launch=1, reason="log in with: claude /login", kind="login")
    case = Case().working().give(SessionMachine.driver_failed, failed)
    assert case.phase() is SessionPhase.STOPPING
    case.give(step, *given).give(SessionMachine.driver_ended, driver_ended(0))
    assert (case.phase(), len(case.of(steps.StartDriver))) == (SessionPhase.STARTING, 2)
    case.ready()
    assert len(case.of(SendTurn)) == sent
    case.give(SessionMachine.driver_failed, DriverFailed(launch=2, reason="it is broken"))
    case.give(SessionMachine.driver_ended, driver_ended(1))
    assert (case.phase(), len(case.of(steps.StartDriver))) == (SessionPhase.ERROR, 2)
    assert case.of(steps.OpenAtDesk) == [], "no login is needed any more"


def test_a_resume_during_a_restart_does_not_call_that_off() -> None:
    case = Case().working().result().give(SessionMachine.restart, "human")
    case.give(SessionMachine.resume).give(SessionMachine.driver_ended, driver_ended(0))
    assert case.phase() is SessionPhase.STARTING


def test_a_turn_that_was_opened_and_not_sent_is_sent_when_the_agent_is_back() -> None:
    case = Case().working().result()
    case.disk = "slow"
    case.give(SessionMachine.arrived, (message(2),)).give(
        SessionMachine.driver_ended, driver_ended(0)
    )
    case.disk = "quick"
    opened = [each for each in case.of(steps.Append) if each.entry["kind"] == "turn_opened"][-1]
    case.give(SessionMachine.stored, opened.number)
    case.ready()
    assert [each.text for each in case.of(SendTurn)] == ["do 1", "do 2"]


def test_an_interrupt_before_the_turn_was_sent_cancels_it_unsent() -> None:
    case = Case().working().result()
    case.disk = "slow"
    case.give(SessionMachine.arrived, (message(2),)).give(SessionMachine.end_turn, "pm")
    opened = [each for each in case.of(steps.Append) if each.entry["kind"] == "turn_opened"][-1]
    case.disk = "quick"
    case.give(SessionMachine.stored, opened.number)
    assert len(case.of(SendTurn)) == 1
    assert case.outcome() == "cancelled"
    assert case.of(steps.Acknowledge)[-1] == steps.Acknowledge("m2")


def test_an_interrupt_without_a_turn_and_a_second_one_do_nothing() -> None:
    case = Case().give(SessionMachine.end_turn, "pm")
    case.working().give(SessionMachine.end_turn, "pm").give(SessionMachine.end_turn, "pm")
    assert len(case.of(InterruptTurn)) == 1


def test_a_turn_that_exceeds_its_time_is_interrupted_and_then_its_process_is_ended() -> None:
    case = Case(max_runtime_s=60.0).working()
    assert case.of(steps.SetTimer)[-1] == steps.SetTimer(timer="runtime", after_s=60.0)
    case.give(SessionMachine.timer_fired, "runtime")
    assert case.of(InterruptTurn) == [InterruptTurn()]
    case.give(SessionMachine.timer_fired, "kill")
    assert case.of(steps.StopDriver) == [steps.StopDriver()]
    case.give(SessionMachine.driver_ended, driver_ended(None))
    assert case.kinds("turn_ended")[0]["reason"] == "the turn exceeded max_runtime_s"


def test_a_timer_of_an_earlier_turn_does_not_touch_the_next_one() -> None:
    case = Case(max_runtime_s=60.0).working()
    case.give(SessionMachine.timer_fired, "runtime").result(ok=False)
    case.give(SessionMachine.arrived, (message(2),)).give(SessionMachine.timer_fired, "kill")
    assert case.of(steps.StopDriver) == []


@pytest.mark.parametrize(("resets_at", "after_s"), [(100.0, 90.0), (None, LIMIT_S), (5.0, 0.0)])
def test_a_usage_limit_parks_the_messages_until_it_ends(
    resets_at: float | None, after_s: float
) -> None:
    case = Case().working()
    limit = ev.RateLimit(status="rejected", resets_at=resets_at)
    case.give(SessionMachine.heard, limit, at=10.0).result(ok=False, reason="api_error")
    assert case.outcome() == ("limited" if after_s else "failed")
    assert case.of(steps.SetTimer)[-1] == steps.SetTimer(timer="limit", after_s=after_s)
    case.give(SessionMachine.arrived, (message(2),))
    assert len(case.of(SendTurn)) == (1 if after_s else 2)
    case.give(SessionMachine.timer_fired, "limit", at=10.0 + after_s)
    assert len(case.of(SendTurn)) == 2
    assert len(case.of(steps.StartDriver)) == 1


def test_a_request_is_shown_answered_once_and_applied() -> None:
    case = (
        Case()
        .working()
        .give(SessionMachine.heard, permission())
        .give(SessionMachine.heard, permission())
    )
    assert [each.event.id for each in case.of(steps.OpenAtDesk)] == ["r1"]
    case.give(SessionMachine.answered, "r1", ALLOW)
    assert case.of(steps.AnswerAgent) == [steps.AnswerAgent(request="r1", answer=ALLOW)]
    case.give(SessionMachine.answered, "r1", ALLOW)
    assert len(case.of(steps.AnswerAgent)) == 1
    assert case.of(steps.WithdrawAtDesk)[-1].requests == ("r1",)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ((SessionMachine.heard, ev.RequestWithdrawn(id="r1", reason="cancelled")), "cancelled"),
        ((SessionMachine.driver_ended, driver_ended(0)), "the agent's process has ended"),
        ((SessionMachine.close, "human"), "the session was closed"),
    ],
)
def test_an_answer_after_the_withdrawal_does_not_act(step: Any, reason: str) -> None:
    case = Case().working().give(SessionMachine.heard, permission()).give(*step)
    assert case.of(steps.WithdrawAtDesk) == [steps.WithdrawAtDesk(requests=("r1",), reason=reason)]
    case.give(SessionMachine.answered, "r1", ALLOW)
    assert case.of(steps.AnswerAgent) == []


def test_a_request_of_a_background_agent_outlives_the_turn() -> None:
    case = Case().working().give(SessionMachine.heard, permission()).result()
    assert case.of(steps.WithdrawAtDesk) == []
    case.give(SessionMachine.answered, "r1", ALLOW)
    assert len(case.of(steps.AnswerAgent)) == 1


def test_a_conversation_without_an_id_is_not_kept() -> None:
    case = (
        Case()
        .working()
        .result()
        .give(SessionMachine.driver_ended, driver_ended(0))
        .give(SessionMachine.resume)
    )
    case.ready("")
    assert case.session.conversation == "c1"


def test_the_policy_answers_first_and_says_why() -> None:
    case = (
        Case(policy=lambda _: (ALLOW, "write allows edits"))
        .working()
        .give(SessionMachine.heard, permission())
    )
    assert case.of(steps.OpenAtDesk) == []
    assert case.of(steps.AnswerAgent) == [
        steps.AnswerAgent(request="r1", answer=ALLOW, is_ours=True)
    ]
    assert case.kinds("decided")[0]["why"] == "write allows edits"


def test_too_many_requests_are_refused() -> None:
    case = Case().working()
    for number in range(MAX_OPEN + 2):
        case.give(SessionMachine.heard, permission(f"r{number}"))
    assert len(case.of(steps.OpenAtDesk)) == MAX_OPEN
    refused = [each.answer for each in case.of(steps.AnswerAgent)]
    assert [getattr(each, "kind", "") for each in refused] == ["deny", "deny"]


def test_a_request_that_no_person_will_see_is_refused() -> None:
    case = Case().working().give(SessionMachine.heard, permission())
    case.give(SessionMachine.not_shown, "r1").give(SessionMachine.not_shown, "r1")
    [answer] = case.of(steps.AnswerAgent)
    assert isinstance(answer.answer, ev.PermissionAnswer)
    assert (answer.answer.kind, answer.is_ours) == ("deny", True)


def test_a_close_cancels_the_turn_ends_the_process_and_then_the_session() -> None:
    case = (
        Case().working().give(SessionMachine.heard, permission()).give(SessionMachine.close, "pm")
    )
    assert case.outcome() == "cancelled"
    assert case.of(steps.StopDriver) == [steps.StopDriver()]
    assert case.of(steps.Finished) == []
    case.give(SessionMachine.driver_ended, driver_ended(0))
    assert case.of(steps.Finished) == [steps.Finished()]
    case.give(SessionMachine.arrived, (message(2),))
    assert len(case.of(steps.StartDriver)) == len(case.of(steps.Finished)) == 1


def test_a_close_ends_only_when_it_is_durable() -> None:
    case = Case()
    case.disk = "slow"
    case.give(SessionMachine.close, "pm")
    assert case.of(steps.Finished) == []
    case.give(SessionMachine.stored, case.of(steps.Append)[-1].number)
    assert case.of(steps.Finished) == [steps.Finished()]


def test_a_restart_keeps_the_conversation_and_cancels_the_turn() -> None:
    case = Case().working().give(SessionMachine.restart, "human")
    assert case.of(steps.StopDriver) == [steps.StopDriver()]
    case.give(SessionMachine.driver_ended, driver_ended(0))
    assert case.outcome() == "cancelled"
    assert case.of(steps.StartDriver)[-1] == steps.StartDriver(conversation="c1")


def test_a_new_conversation_of_the_agent_is_kept() -> None:
    case = Case().working().give(SessionMachine.heard, ev.SystemInit(conversation="c9"))
    case.result().give(SessionMachine.driver_ended, driver_ended(0)).give(SessionMachine.resume)
    assert case.of(steps.StartDriver)[-1] == steps.StartDriver(conversation="c9")


def test_a_conversation_that_was_cleared_lacks_the_primer_until_a_later_turn_has_ended() -> None:
    case = Case().working()
    cleared = ev.ConversationChanged(how="cleared", conversation="c2")
    case.give(SessionMachine.heard, cleared).result()

    def started() -> steps.StartDriver:
        case.give(SessionMachine.driver_ended, driver_ended(0)).give(SessionMachine.resume)
        return case.of(steps.StartDriver)[-1]

    assert started() == steps.StartDriver(conversation="c2", is_cleared=True)
    past = SessionPast()
    for entry in case.entries:
        past.take(entry)
    assert (past.cleared_after, restored(carried(past)).cleared_after) == (1, 1)
    case.ready("c2").working(2).result()
    assert started() == steps.StartDriver(conversation="c2")
    for entry in case.entries[-8:]:
        past.take(entry)
    assert past.cleared_after is None
    compacted = ev.ConversationChanged(how="compacted", conversation="c2")
    case.ready("c2").give(SessionMachine.heard, compacted)
    assert started() == steps.StartDriver(conversation="c2")


def test_the_next_take_over_is_asked_for_before_the_end_of_the_last_one_is_durable() -> None:
    past = SessionPast()
    case = Case(past).working().result().give(SessionMachine.take_over, "human")
    case.give(SessionMachine.driver_ended, driver_ended(0))
    assert case.of(steps.OpenTakeover) == [steps.OpenTakeover(is_new=True)]
    said = (
        ("s/1", ev.UserMessage(text="hello", origin="takeover")),
        ("s/2", ev.AssistantText(text="heard")),
    )
    case.disk = "slow"
    case.give(SessionMachine.handed_back, steps.HandedBack(conversation="c1", said=said))
    case.give(SessionMachine.hand_back).give(SessionMachine.take_over, "human")
    case.disk = "quick"
    assert len(case.of(steps.OpenTakeover)) == 1
    for each in case.of(steps.Append)[-2:]:
        case.give(SessionMachine.stored, each.number)
    assert [each["kind"] for each in case.entries[-2:]] == ["handed_back", "taken_over"]
    assert len(case.of(steps.OpenTakeover)) == 2
    assert case.of(steps.EndTakeover) == []
    assert case.give(SessionMachine.hand_back).of(steps.EndTakeover) == [steps.EndTakeover()]
    assert past.texts[-2:] == ["[user] hello", "[assistant] heard"]
    assert past_of(case.entries).texts == past.texts


def test_a_turn_that_the_driver_refuses_has_failed() -> None:
    case = Case().working()
    case.give(SessionMachine.turn_refused, "another", "no")
    assert case.phase() is SessionPhase.WORKING
    case.give(SessionMachine.turn_refused, case.uuid(), "a turn is running")
    assert (case.outcome(), case.phase()) == ("failed", SessionPhase.IDLE)


def test_a_turn_of_the_agents_own_is_recorded_and_ends_nothing() -> None:
    case = Case().working().result()
    own = ev.Result(messages=[], ok=True, reason="completed", origin="task-notification")
    case.give(SessionMachine.heard, own)
    assert case.entries[-1]["event"]["origin"] == "task-notification"
    assert len(case.kinds("turn_ended")) == 1


def test_a_forgotten_entry_of_another_form_harms_nothing() -> None:
    past = SessionPast()
    odd: list[dict[str, Any]] = [
        {},
        {"kind": "turn_opened", "turn": "1", "uuid": 1},
        {"kind": "turn_opened", "turn": 1, "uuid": "u", "messages": [1, {"id": 2}], "text": 5},
        {"kind": "turn_ended", "turn": 7, "outcome": "completed"},
        {"kind": "ready"},
        {"kind": "later"},
    ]
    for entry in odd:
        past.take(entry)
    assert past.open_turn is not None
    assert past.open_turn.messages == (("", ""), ("2", ""))


def past_of(entries: list[dict[str, Any]]) -> SessionPast:
    past = SessionPast()
    for entry in entries:
        past.take(entry)
    return past


def test_a_loss_is_reported_again_until_the_inbox_has_confirmed_the_report() -> None:
    first = Case().working(1).give(SessionMachine.driver_ended, driver_ended(1))
    assert first.kinds("notified") == []
    again = Case(past_of(first.entries))
    again.take(again.session.begin(0.0))
    reports = first.of(steps.Notify)
    assert again.of(steps.Notify) == reports
    again.give(SessionMachine.notified, reports[0].id)
    assert [each["turn"] for each in again.kinds("notified")] == [1]
    third = Case(past_of([*first.entries, *again.entries]))
    assert third.session.begin(0.0) == []


def test_every_loss_that_is_not_reported_is_reported_after_a_restart() -> None:
    lost = Case().working(1).result(ok=False).working(2).result(ok=False)
    case = Case(past_of(lost.entries))
    case.take(case.session.begin(0.0))
    ids = ["session:s1/turn:1/pm", "session:s1/turn:2/pm"]
    assert [each.id for each in case.of(steps.Notify)] == ids


def test_a_closed_session_ends_once_its_losses_are_reported() -> None:
    case = Case().working(1).result(ok=False).give(SessionMachine.close, "human")
    case.give(SessionMachine.driver_ended, driver_ended(0))
    assert case.of(steps.Finished) == []
    again = Case(past_of(case.entries))
    again.take(again.session.begin(0.0))
    assert again.of(steps.Finished) == []
    again.give(SessionMachine.notified, "session:s1/turn:1/pm")
    assert again.of(steps.Finished) == [steps.Finished()]


def test_a_conversation_whose_id_was_lost_is_followed_by_a_primed_one() -> None:
    opened = Case().working(1).kinds("turn_opened")
    case = Case(past_of(opened)).give(SessionMachine.arrived, (message(2),))
    assert case.of(steps.StartDriver) == [
        steps.StartDriver(conversation=None, texts=("[user] do 1",))
    ]


def test_a_turn_that_a_restart_ends_is_cancelled_also_if_the_agent_reports_a_failure() -> None:
    case = Case().working().give(SessionMachine.restart, "human")
    case.result(ok=False, reason="aborted")
    assert case.outcome() == "cancelled"
    assert case.of(steps.Notify) == []


def group_message(number: int) -> Incoming:
    return message(number, sender="group:g/broadcast:1")


def test_a_withdrawn_message_interrupts_its_turn_and_no_other() -> None:
    case = Case().working().give(SessionMachine.withdraw, "m7", "group:g")
    assert case.of(InterruptTurn) == []
    case.give(SessionMachine.withdraw, "m1", "group:g")
    assert case.of(InterruptTurn) == [InterruptTurn()]
    case.result(ok=False).give(SessionMachine.withdraw, "m1", "group:g")
    case.give(SessionMachine.arrived, (message(2),))
    assert [each.text for each in case.of(SendTurn)] == ["do 1", "do 2"]
    assert case.outcome() == "cancelled"


@pytest.mark.parametrize("is_early", [False, True])
def test_a_message_that_is_withdrawn_before_its_turn_is_never_sent(is_early: bool) -> None:
    case = Case().working()
    steps_taken: list[Any] = [
        (SessionMachine.arrived, (group_message(2), message(3))),
        (SessionMachine.withdraw, "m2", "group:g"),
    ]
    for step in reversed(steps_taken) if is_early else steps_taken:
        case.give(*step)
    case.result()
    case.result()
    assert [each.text for each in case.of(SendTurn)] == ["do 1", "do 3"]
    ended = [(each["turn"], each["outcome"]) for each in case.kinds("turn_ended")]
    assert ended == [(1, "completed"), (2, "cancelled"), (3, "completed")]


def test_a_message_stays_withdrawn_in_the_fold_until_it_has_a_turn() -> None:
    case = Case().working().give(SessionMachine.withdraw, "m2", "human")
    [entry] = case.kinds("withdrawn")
    past = SessionPast()
    past.take(entry)
    assert restored(carried(past)).withdrawn == {"m2": None}
    case.give(SessionMachine.withdraw, "m2", "human").result()
    assert len(case.kinds("withdrawn")) == 1
    case.give(SessionMachine.arrived, (message(2),))
    past.take(case.kinds("turn_opened")[-1])
    assert past.withdrawn == {}


@pytest.mark.parametrize(
    ("withdrawn", "sent"), [("m2", "do 3\n\ndo 4"), ("m3", "do 2"), ("m4", "do 2\n\ndo 3")]
)
def test_a_withdrawn_message_is_in_no_turn_with_others(withdrawn: str, sent: str) -> None:
    case = Case().working().give(SessionMachine.withdraw, withdrawn, "human")
    case.give(SessionMachine.arrived, (message(2), message(3), message(4))).result()
    assert [each.text for each in case.of(SendTurn)] == ["do 1", sent]
    case.result()
    texts = " ".join(each.text for each in case.of(SendTurn))
    assert all((f"do {each}" in texts) is (f"m{each}" != withdrawn) for each in (2, 3, 4))


def test_a_request_waits_for_ever_unless_the_profile_limits_it() -> None:
    case = Case().working().give(SessionMachine.heard, permission())
    assert [each for each in case.of(steps.SetTimer) if each.timer == "answer"] == []
    case.give(SessionMachine.timer_fired, "answer", at=1e9)
    assert case.of(steps.WithdrawAtDesk) == []


def test_a_request_that_nobody_answers_in_time_is_refused_and_withdrawn() -> None:
    case = (
        Case(answer_within_s=60.0).working().give(SessionMachine.heard, permission("r1"), at=10.0)
    )
    case.give(SessionMachine.heard, permission("r2"), at=30.0)
    assert wakes(case) == [60.0, 40.0]
    case.give(SessionMachine.timer_fired, "answer", at=70.0)
    assert case.of(steps.AnswerAgent) == [
        steps.AnswerAgent(
            request="r1", answer=ev.PermissionAnswer(kind="deny", message=NOBODY), is_ours=True
        )
    ]
    assert case.of(steps.WithdrawAtDesk) == [steps.WithdrawAtDesk(requests=("r1",), reason=NOBODY)]
    assert [each["request"] for each in case.kinds("expired")] == ["r1"]
    assert wakes(case)[-1] == 20.0
    assert case.session.requests.is_open("r2")


def test_an_answer_after_the_expiry_does_not_act_and_says_so() -> None:
    case = Case(answer_within_s=60.0).working().give(SessionMachine.heard, permission(), at=0.0)
    case.give(SessionMachine.timer_fired, "answer", at=60.0).give(
        SessionMachine.answered, "r1", ALLOW
    )
    assert len(case.of(steps.AnswerAgent)) == 1
    assert case.of(steps.WithdrawAtDesk)[-1].reason == "the agent no longer waits for the answer"


def test_a_request_that_was_answered_or_withdrawn_does_not_expire() -> None:
    case = Case(answer_within_s=60.0).working().give(SessionMachine.heard, permission("r1"), at=0.0)
    case.give(SessionMachine.heard, permission("r2"), at=0.0).give(
        SessionMachine.answered, "r1", ALLOW, at=1.0
    )
    case.give(SessionMachine.heard, ev.RequestWithdrawn(id="r2", reason="over"), at=2.0)
    case.give(SessionMachine.timer_fired, "answer", at=60.0)
    assert case.kinds("expired") == []
    assert [each.answer for each in case.of(steps.AnswerAgent)] == [ALLOW]


def test_a_request_of_the_next_process_with_the_same_id_has_its_own_time() -> None:
    case = Case(answer_within_s=60.0).working().give(SessionMachine.heard, permission(), at=0.0)
    case.give(SessionMachine.heard, ev.RequestWithdrawn(id="r1", reason="over"), at=10.0)
    case.give(SessionMachine.heard, permission(), at=50.0).give(
        SessionMachine.timer_fired, "answer", at=60.0
    )
    assert case.kinds("expired") == []
    case.give(SessionMachine.timer_fired, "answer", at=110.0)
    assert len(case.kinds("expired")) == 1


def wakes(case: Case) -> list[float]:
    """Return the seconds of the timers for answers, in their order."""
    return [each.after_s for each in case.of(steps.SetTimer) if each.timer == "answer"]


@pytest.mark.parametrize("how", ["withdrawn", "interrupted", "refused"])
def test_the_note_about_files_of_others_is_in_the_next_turn_that_is_sent(how: str) -> None:
    edited = EditedFiles()
    case = Case(edited=edited).working()
    case.result()
    edited.note("s1", lambda: "ann", "/a")
    edited.note("s2", lambda: "bob", "/a")
    if how == "withdrawn":
        case.give(SessionMachine.withdraw, "m2", "human")
    elif how == "interrupted":
        case.disk = "slow"
    case.give(SessionMachine.arrived, (message(2),))
    if how == "interrupted":
        case.give(SessionMachine.end_turn, "human")
        case.disk = "quick"
        for each in [each for each in case.of(steps.Append) if each.sync][-1:]:
            case.give(SessionMachine.stored, each.number)
    elif how == "refused":
        case.give(SessionMachine.turn_refused, case.uuid(), "it has ended")
    sent = len(case.of(SendTurn))
    case.give(SessionMachine.arrived, (message(3),))
    assert len(case.of(SendTurn)) == sent + 1
    assert "- '/a': bob\n\n" in case.of(SendTurn)[-1].text
    case.result()
    case.give(SessionMachine.arrived, (message(4),))
    assert case.of(SendTurn)[-1].text == "do 4"
