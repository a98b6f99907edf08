"""The sums of an accounting: over the listed sessions of each tree, and over all."""

from __future__ import annotations

from aegis.agents.directory.accounting import usage_list
from aegis.protocol.agents import AgentUsage, SessionUsage


def session(handle: str, root: str, usage: AgentUsage | None) -> SessionUsage:
    return SessionUsage(id=f"id-{handle}", handle=handle, root=root, is_closed=False, usage=usage)


def used(tokens: int | None, cached: int | None, cost: float | None) -> AgentUsage:
    return AgentUsage(
        turns=1,
        input_tokens=tokens,
        cached_tokens=cached,
        cached_percent=99.0,
        output_tokens=tokens,
        cost_usd=cost,
        context_tokens=7,
        context_limit=9,
        turns_s=0.5,
        last_turn_s=0.5,
    )


def test_each_tree_has_the_sums_of_its_sessions_and_the_costliest_is_first() -> None:
    found = usage_list(
        [
            session("kid", "pm", used(100, 50, 0.1)),
            session("pm", "pm", used(100, 30, 0.2)),
            session("other", "other", used(10, 0, 0.9)),
        ]
    )
    assert [each.handle for each in found.result] == ["other", "pm", "kid"]
    assert [(each.root, each.sessions) for each in found.trees] == [("other", 1), ("pm", 2)]
    assert found.trees[1].usage == AgentUsage(
        turns=2,
        input_tokens=200,
        cached_tokens=80,
        cached_percent=40.0,
        output_tokens=200,
        cost_usd=0.3,
        turns_s=1.0,
    )
    assert (found.total.turns, found.total.cost_usd) == (3, 1.2)


def test_figures_that_nobody_reports_stay_unknown_and_known_ones_count() -> None:
    known, unknown = used(5, None, None), used(None, None, None)
    found = usage_list(
        [session("a", "a", known), session("b", "a", unknown), session("c", "a", None)]
    )
    [tree] = found.trees
    assert tree.sessions == 3
    assert (tree.usage.input_tokens, tree.usage.cached_percent) == (5, None)
    assert (tree.usage.cost_usd, tree.usage.turns) == (None, 2)


def test_no_session_has_empty_sums() -> None:
    found = usage_list([])
    assert (found.trees, found.total) == ([], AgentUsage())
