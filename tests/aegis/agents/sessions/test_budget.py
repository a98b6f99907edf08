"""The limits on cost and usage hold a session's turns back, lose no message, and are shown."""

from __future__ import annotations

import pytest

from aegis.agents.profiles.limits import Counters
from aegis.agents.sessions import steps
from aegis.agents.sessions.past import SessionPast
from aegis.agents.sessions.rules import SessionMachine
from aegis.agents.sessions.settings import LOOK_AGAIN_S
from aegis.agents.sessions.status import SessionIdentity, agent_info
from aegis.agents.sessions.steps import SessionPhase
from aegis.configuration.limits import LimitsSection
from aegis.protocol import agent_events as ev
from aegis.protocol.agents import AgentInfo
from tests.aegis.agents.sessions.test_rules import Case
from tests.aegis.agents.sessions.world import message


def spend(case: Case, process_usd: float) -> None:
    case.give(SessionMachine.heard, ev.Usage(process_cost_usd=process_usd))


def shown(case: Case) -> AgentInfo:
    identity = SessionIdentity(
        id="s1", address="a", profile="p", provider="claude", cwd="/", spawned_by="human"
    )
    return agent_info(identity, case.session, None, case.now)


def marks(case: Case) -> list[tuple[str, str]]:
    return [(each.handle, each.id.rsplit("/", 1)[1]) for each in case.of(steps.Notify)]


def test_a_budget_warns_at_80_percent_and_then_holds_every_further_turn() -> None:
    case = Case(budget_usd=1.0, supervisor="pm").working(1)
    spend(case, 0.79)
    assert marks(case) == []
    spend(case, 0.85)
    assert marks(case) == [("pm", "warning")]
    case.result().working(2)
    assert case.phase() is SessionPhase.WORKING, "there is a rest"
    spend(case, 1.2)
    assert marks(case) == [("pm", "warning"), ("pm", "reached")]
    case.result()
    assert shown(case).state == "idle", "nothing waits"
    case.working(3)
    assert (case.phase(), case.session.waiting) == (SessionPhase.IDLE, 1)
    info = shown(case)
    assert info.state == "blocked"
    assert info.blocked is not None
    assert (info.blocked.kind, info.blocked.title) == (
        "limit",
        "1.20 of 1.00 USD are spent: close it, or raise its budget with agent set ann --budget USD",
    )


@pytest.mark.parametrize("budget", [1.0, 2.0])
def test_a_higher_budget_after_a_restart_lets_the_messages_through(budget: float) -> None:
    case = Case(budget_usd=1.0).working(1)
    spend(case, 1.5)
    case.result()
    past = SessionPast()
    for entry in case.entries:
        past.take(entry)
    later = Case(past, budget_usd=budget)
    later.give(SessionMachine.arrived, (message(2),))
    assert later.phase() is (SessionPhase.DORMANT if budget == 1.0 else SessionPhase.STARTING)
    assert (shown(later).state == "blocked") is (budget == 1.0)


def test_a_session_waits_while_its_tree_may_not_work_and_continues_by_itself() -> None:
    counters = Counters(LimitsSection(usd_per_day=2.0))

    def of_tree(number: int) -> Case:
        return Case(
            note_cost=lambda usd, now: counters.note_cost("root", usd, now),
            refuse_work=lambda now: counters.refuse_work("root", now),
        ).working(number)

    first, second = of_tree(1), of_tree(2)
    spend(first, 1.25)
    spend(second, 1.25)
    first.result().give(SessionMachine.arrived, (message(3),))
    assert first.phase() is SessionPhase.IDLE
    blocked = shown(first).blocked
    assert blocked is not None
    assert "limits.usd_per_day is 2.00" in blocked.title
    assert steps.SetTimer(timer="look", after_s=LOOK_AGAIN_S) in first.out
    first.give(SessionMachine.timer_fired, "look", at=86_000.0)
    assert first.phase() is SessionPhase.IDLE
    first.give(SessionMachine.timer_fired, "look", at=86_401.0)
    assert first.phase() is SessionPhase.WORKING


def test_a_usage_limit_ends_by_the_clock_and_not_because_the_tree_may_not_work() -> None:
    case = Case(refuse_work=lambda now: "it is spent" if 10.0 < now < 4_000.0 else None).working()
    limit = ev.RateLimit(status="rejected", resets_at=9_000.0)
    case.give(SessionMachine.heard, limit, at=10.0).result(ok=False, reason="api_error")
    case.give(SessionMachine.arrived, (message(2),), at=20.0)
    look = steps.SetTimer(timer="look", after_s=LOOK_AGAIN_S)
    for at in (3_900.0, 5_000.0, 8_999.0):
        case.out.clear()
        case.give(SessionMachine.timer_fired, "look", at=at)
        assert case.session.limited_until == 9_000.0
        assert look in case.out
        assert case.of(steps.SetTimer)[-1] == look, "no other timer takes the place of the limit's"
    # The machine has slept: the timer of the limit is not due yet.
    case.out.clear()
    case.give(SessionMachine.timer_fired, "look", at=9_001.0)
    assert case.phase() is SessionPhase.WORKING
    assert look not in case.out


def test_a_usage_limit_is_shown_until_its_end_and_not_only_until_its_timer() -> None:
    case = Case().working()
    limit = ev.RateLimit(status="rejected", resets_at=100.0)
    case.give(SessionMachine.heard, limit, at=10.0).result(ok=False, reason="api_error")
    case.now = 99.9
    assert (shown(case).state, shown(case).limited_until) == ("limited", "1970-01-01T00:01:40.000Z")
    case.now = 100.0  # the timer runs out a moment later
    assert case.session.limited_until is not None
    assert (shown(case).state, shown(case).limited_until) == ("idle", None)
