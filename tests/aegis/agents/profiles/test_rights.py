"""The rights of sessions: commands, profiles, handles, messages."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.agents.drivers.harness import Permission
from aegis.agents.profiles.rights import (
    CLASSES,
    PERMISSIONS,
    Verdict,
    command_class,
    descends,
    refuse_call,
    refuse_message,
    refuse_profile,
    refuse_reach,
    verdict,
)
from aegis.protocol.table import COMMANDS


def test_every_command_has_a_class() -> None:
    """Add a new command to ``CLASSES`` in aegis/agents/profiles/rights.py."""
    assert [entry.name for entry in COMMANDS if entry.name not in CLASSES] == []


def test_a_command_without_a_class_counts_as_the_highest() -> None:
    assert command_class("no_such_command") == "execute"


WITH_A_RULE = {
    *("agent_restart", "cancel", "close", "interrupt", "rename", "request_answer"),
    *("workflow_cancel", "group_wait_any", "group_dissolve"),
}
"""Commands with a rule of their own: ``refuse_reach``, ``answers_requests``, senders, owners."""


def test_a_command_that_destroys_is_not_for_reading() -> None:
    wrong = [
        entry.name
        for entry in COMMANDS
        if entry.destructive and not entry.operator and CLASSES[entry.name] == "read"
        if entry.name not in WITH_A_RULE
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("command", "verdicts"),
    [
        ("term_run", ["refuse", "ask", "ask", "ask", "allow"]),
        ("term_keys", ["refuse", "ask", "ask", "ask", "allow"]),
        ("term_signal", ["refuse", "ask", "ask", "ask", "allow"]),
        ("term_spawn", ["refuse", "ask", "ask", "ask", "allow"]),
        ("term_broadcast", ["refuse", "ask", "ask", "ask", "allow"]),
        ("workspace_exec", ["refuse", "ask", "ask", "ask", "allow"]),
        ("shell_write", ["refuse", "ask", "ask", "ask", "allow"]),
        ("canvas_write_section", ["refuse", "ask", "ask", "allow", "allow"]),
        ("term_read", ["allow", "allow", "allow", "allow", "allow"]),
        ("handoff", ["allow", "allow", "allow", "allow", "allow"]),
        ("spawn", ["allow", "allow", "allow", "allow", "allow"]),
    ],
)
def test_a_permission_allows_asks_or_refuses_by_the_class_of_a_command(
    command: str, verdicts: list[Verdict]
) -> None:
    assert [verdict(command, permission) for permission in PERMISSIONS] == verdicts
    for permission in PERMISSIONS:
        refusal = refuse_call(command, permission, "scout")
        assert (refusal is not None) == (verdict(command, permission) == "refuse")


def test_a_refused_call_names_command_profile_and_remedy() -> None:
    assert refuse_call("term_run", "read", "scout") == (
        "command 'term_run' is not allowed: profile 'scout' has the permission 'read', and the "
        "command may run programs; ask a session with a higher permission, or the person who set "
        "the profile"
    )


@pytest.mark.parametrize("own", PERMISSIONS)
@pytest.mark.parametrize("needed", PERMISSIONS)
def test_a_profile_that_is_no_higher_may_be_spawned(own: Permission, needed: Permission) -> None:
    is_higher = PERMISSIONS.index(needed) > PERMISSIONS.index(own)
    assert (refuse_profile("a", own, (), "b", needed) is not None) == is_higher
    assert refuse_profile("a", own, ("b",), "b", needed) is None
    assert (refuse_profile("a", own, ("c", "a"), "b", needed) is not None) == is_higher


def test_a_refused_profile_names_both_and_the_key() -> None:
    assert refuse_profile("scout", "read", (), "builder", "full") == (
        "profile 'builder' has the permission 'full', which is higher than 'read' of your profile "
        "'scout': use another profile, or have a person list it in agents.scout.may_spawn"
    )


PARENTS = {"pm": None, "Lead": "pm", "dev": "lead", "tester": "LEAD", "other": None}


@pytest.mark.parametrize(
    ("caller", "target", "reaches"),
    [
        ("pm", "lead", True),
        ("pm", "dev", True),
        ("PM", "Dev", True),
        ("lead", "tester", True),
        ("dev", "tester", False),
        ("dev", "lead", False),
        ("dev", "pm", False),
        ("pm", "pm", False),
        ("pm", "other", False),
        ("other", "dev", False),
        ("pm", "nobody", False),
        ("nobody", "dev", False),
    ],
)
def test_a_session_reaches_what_it_spawned(caller: str, target: str, reaches: bool) -> None:
    assert descends(target, caller, PARENTS) is reaches
    assert (refuse_reach("close", caller, target, PARENTS) is None) is reaches


def test_a_refused_reach_says_why() -> None:
    assert refuse_reach("close", "dev", "pm", PARENTS) == (
        "session 'pm' cannot be reached with 'close': you did not spawn it; ask a person or the "
        "session that spawned it with aegis_handoff"
    )
    own = refuse_reach("rename", "pm", "PM", PARENTS)
    assert own is not None
    assert "it is your own" in own


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.none() | st.sampled_from("abcdef")),
    st.sampled_from("abcdef"),
    st.sampled_from("abcdef"),
)
def test_no_session_reaches_itself_or_both_ways(
    parents: Mapping[str, str | None], first: str, second: str
) -> None:
    assert not descends(first, first, parents) or _is_in_circle(first, parents)
    if descends(first, second, parents) and descends(second, first, parents):
        assert _is_in_circle(first, parents)


def _is_in_circle(start: str, parents: Mapping[str, str | None]) -> bool:
    current, steps = parents.get(start), 0
    while current is not None and steps < 10:
        if current == start:
            return True
        current, steps = parents.get(current), steps + 1
    return False


@pytest.mark.parametrize(
    ("permission", "accepts", "sender", "profile", "is_accepted"),
    [
        ("read", (), "x", "scout", True),
        ("write", (), "x", "scout", True),
        ("full", (), "x", "scout", False),
        ("full", ("scout",), "x", "scout", True),
        ("full", ("lead",), "x", "scout", False),
        ("full", ("agent:PM",), "pm", None, True),
        ("full", ("agent:pm",), "pm2", None, False),
        # A handle that reads like a profile is none, and the other way round.
        ("full", ("scout",), "scout", None, False),
        ("full", ("scout",), "scout", "other", False),
        ("full", ("agent:pm",), "x", "agent:pm", False),
        ("full", ("scout",), "x", None, False),
    ],
)
def test_a_session_with_full_rights_takes_messages_of_listed_agents(
    permission: Permission,
    accepts: tuple[str, ...],
    sender: str,
    profile: str | None,
    is_accepted: bool,
) -> None:
    found = refuse_message("boss", permission, accepts, sender, profile)
    assert (found is None) is is_accepted
    assert found is None or (repr(sender) in found and "'boss'" in found)
