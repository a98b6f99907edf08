"""The messages of sessions, as their profiles and limits permit them."""

from __future__ import annotations

from functools import partial

import pytest

from aegis.agents.directory.message_rights import SendingRights, count_spawns
from aegis.agents.directory.roster import Member, Roster
from aegis.agents.profiles.limits import Counters
from aegis.agents.profiles.profile import Profile, profile_of
from aegis.configuration.agents import AgentSection
from aegis.configuration.limits import LimitsSection
from aegis.errors import AegisError, Forbidden, NotFound, Unavailable

PROFILES = {
    "asks": AgentSection(permission="ask"),
    "lead": AgentSection(permission="full", accepts_from=("asks", "agent:bob")),
    "alone": AgentSection(permission="full"),
}
NOON = 1_800_000_000.0
TEXT = "2027-01-15T07:59:00.000Z"
"""A minute before NOON."""


def profile(of: Member) -> Profile:
    if of.profile not in PROFILES:
        raise NotFound(f"there is no profile {of.profile!r}")
    return profile_of(of.profile, PROFILES[of.profile])


def profile_named(name: str) -> Profile:
    return profile_of(name, PROFILES[name])


def member(handle: str, profile_name: str, parent: str | None = None) -> Member:
    return Member(
        id=f"id-{handle}",
        handle=handle,
        profile=profile_name,
        provider="claude",
        place="/",
        spawned_by=parent or "human",
        parent=None if parent is None else f"id-{parent}",
        at=TEXT,
    )


@pytest.mark.parametrize("handles", [("bob", "rob"), ("tim", "bob"), ("bob", "rob", "tim")])
def test_a_session_is_accepted_under_its_current_and_its_former_handles(
    handles: tuple[str, ...],
) -> None:
    """``lead`` accepts ``agent:bob``: the session, whatever it is called now."""
    found = rights()
    assert found.roster is not None
    renamed = member(handles[0], "alone")
    found.roster.put(renamed)
    for handle in handles[1:]:
        found.roster.change(renamed.id, partial(Member.renamed, handle=handle))
    for sender in handles:
        refused = found.refuse_handoff(sender, "lead", interrupts=False, now=NOON)
        assert refused is None, sender
    assert found.refuse_handoff("gone", "lead", interrupts=False, now=NOON) is not None


def team() -> Roster:
    roster = Roster()
    for each in (
        member("root", "asks"),
        member("child", "asks", "root"),
        member("grandchild", "asks", "child"),
        member("other", "asks"),
        member("lead", "lead"),
        member("alone", "alone"),
        member("gone", "removed"),
    ):
        roster.put(each)
    return roster


def rights(counters: Counters | None = None) -> SendingRights:
    found = SendingRights(profile, profile_named, counters or Counters(LimitsSection()))
    found.roster = team()
    return found


def refusal(sender: str, target: str, *, interrupts: bool = False) -> AegisError | None:
    return rights().refuse_handoff(sender, target, interrupts=interrupts, now=NOON)


@pytest.mark.parametrize(
    ("sender", "target"),
    [("root", "other"), ("child", "ROOT"), ("root", "lead"), ("bob", "lead"), ("pm", "root")],
)
def test_a_message_is_taken(sender: str, target: str) -> None:
    assert refusal(sender, target) is None
    assert refusal(sender, "no-session") is None
    assert refusal(sender, "gone") is None, "without its profile it cannot act"


@pytest.mark.parametrize(
    ("sender", "target"), [("pm", "lead"), ("root", "alone"), ("alone", "lead"), ("lead", "alone")]
)
def test_a_full_session_takes_messages_only_of_whom_it_lists(sender: str, target: str) -> None:
    found = refusal(sender, target)
    assert isinstance(found, Forbidden)
    assert str(found).startswith(f"aegis_handoff: session '{target}' does not take messages of")


@pytest.mark.parametrize(
    ("sender", "target", "is_refused"),
    [
        ("root", "child", False),
        ("root", "grandchild", False),
        ("child", "root", True),
        ("child", "child", True),
        ("other", "child", True),
        ("pm", "child", False),  # no session: as for aegis_interrupt
    ],
)
def test_a_session_interrupts_only_the_sessions_that_it_spawned(
    sender: str, target: str, is_refused: bool
) -> None:
    found = refusal(sender, target, interrupts=True)
    assert isinstance(found, Forbidden) is is_refused


def test_the_messages_of_a_tree_are_limited_together_and_those_of_others_are_not() -> None:
    found = rights(Counters(LimitsSection(messages_per_hour=2)))

    def send(sender: str, now: float = NOON) -> AegisError | None:
        return found.refuse_handoff(sender, "other", interrupts=False, now=now)

    assert [send(each) for each in ("root", "grandchild")] == [None, None]
    assert "limits.messages_per_hour" in str(send("child"))
    assert isinstance(send("root"), Unavailable)
    assert [send("lead"), send("pm"), send("pm"), send("pm")] == [None] * 4
    assert send("child", NOON + 3601) is None


def test_a_refused_message_is_not_counted() -> None:
    found = rights(Counters(LimitsSection(messages_per_hour=1)))
    for _ in range(3):
        refused = found.refuse_handoff("root", "alone", interrupts=False, now=NOON)
        assert isinstance(refused, Forbidden)
    assert found.refuse_handoff("root", "other", interrupts=False, now=NOON) is None


def test_before_the_roster_is_read_no_agent_sends() -> None:
    found = SendingRights(profile, profile_named, Counters(LimitsSection()))
    assert isinstance(found.refuse_handoff("pm", "x", interrupts=False, now=NOON), Unavailable)
    assert found.session_of("root") is None


def test_a_closed_session_is_none() -> None:
    found = rights()
    assert found.session_of("ALONE") == "id-alone"
    assert found.roster is not None
    found.roster.change("id-alone", partial(Member.closed, changed=1))
    assert found.session_of("alone") is None
    assert found.refuse_handoff("root", "alone", interrupts=False, now=NOON) is None


def test_spawns_of_the_last_hour_count_after_a_restart() -> None:
    counters = Counters(LimitsSection(spawns_per_hour=2))
    count_spawns(team(), counters, NOON)
    assert "limits.spawns_per_hour" in (counters.refuse_spawn("id-root", 1, 0, NOON) or "")
    assert counters.refuse_spawn("id-lead", 1, 0, NOON) is None
    late = Counters(LimitsSection(spawns_per_hour=2))
    count_spawns(team(), late, NOON + 3600)
    assert late.refuse_spawn("id-root", 1, 0, NOON + 3600) is None


@pytest.mark.parametrize(
    ("caller", "owner", "may"),
    [
        ("root", "root", True),
        ("ROOT", "grandchild", True),
        ("child", "grandchild", True),
        ("grandchild", "child", False),
        ("other", "child", False),
        ("pm", "PM", True),
        ("pm", "root", False),
        ("root", "pm", False),
    ],
)
def test_a_group_is_commanded_by_its_creator_and_the_sessions_above(
    caller: str, owner: str, may: bool
) -> None:
    assert rights().commands(caller, owner) is may


def test_a_renamed_creator_still_commands_its_group() -> None:
    found = rights()
    assert found.roster is not None
    found.roster.change("id-root", partial(Member.renamed, handle="boss"))
    assert found.commands("boss", "root")
    assert found.commands("root", "boss")


def test_a_broadcast_counts_once_for_each_member() -> None:
    found = rights(Counters(LimitsSection(messages_per_hour=5)))
    assert found.refuse_messages("root", 3, NOON) is None
    assert found.refuse_messages("child", 3, NOON) is None, "below the limit before it"
    refused = found.refuse_messages("grandchild", 1, NOON)
    assert isinstance(refused, Unavailable)
    assert "limits.messages_per_hour" in str(refused)
    assert found.refuse_messages("pm", 100, NOON) is None, "it belongs to no tree"
    assert found.refuse_messages("other", 1, NOON) is None


def test_a_person_gives_work_to_every_profile_that_exists() -> None:
    assert rights().refuse_work(None, "lead") is None
    assert rights().refuse_work("pm", "lead") is None
    assert isinstance(rights().refuse_work("root", "lead"), Forbidden)
