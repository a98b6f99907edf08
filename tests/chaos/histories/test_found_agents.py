"""Past findings of histories with agents, each as the shortest script that shows it."""

from __future__ import annotations

import pytest

from tests.chaos.histories import script as s
from tests.chaos.histories.playing import Outcome, play
from tests.chaos.strikes import Kind


def played(
    *steps: s.Step, faults: tuple[s.ScriptFault, ...] = (), seed: int = 1, stops: bool = False
) -> Outcome:
    script = s.Script(
        seed=seed, clients=3, steps=steps, faults=faults, stops=stops, has_agents=True
    )
    return play(script)


def taken_over(*steps: s.Step, pause_s: float, fault: s.PointFault, seed: int) -> Outcome:
    """A person takes over an agent that has a conversation; the daemon is stopped in the end."""
    return played(
        s.WorkStep(number=0, client=0, agent=s.ANN, kind="quick"),
        s.TakeOverStep(number=1, client=0, pause_s=0.5, agent=s.ANN),
        s.ListStep(number=2, client=0, pause_s=pause_s),
        *steps,
        faults=(fault,),
        seed=seed,
        stops=True,
    )


@pytest.mark.parametrize("seed", range(8))
def test_a_loss_is_reported_though_the_daemon_is_killed_while_it_reports(seed: int) -> None:
    """The transcript said so before the inbox had the report."""
    die = s.PointFault(step=0, place="inbox.append.before", number=2, kind=Kind.DIE)
    outcome = played(
        s.WorkStep(number=0, client=2, agent=s.ANN, kind="fail"),
        s.InboxStep(number=1, client=2, acknowledges=False, wait_s=2.0),
        faults=(die,),
        seed=seed,
    )
    assert outcome.violations == ()
    assert outcome.hits["fault point: death"] == 1
    [report] = outcome.evidence.kept["client2"]
    assert report["id"].endswith("/turn:1/client2")


@pytest.mark.parametrize("seed", range(8))
def test_a_conversation_is_not_replaced_silently_when_its_id_was_not_synced(seed: int) -> None:
    """The id arrives with the first turn; the daemon was killed before the disk had it."""
    # Its news, the agent's readiness, the synced turn, and then the agent's first events.
    place = "actor.receive.before[AgentSession]"
    outcome = played(
        s.WorkStep(number=0, client=0, agent=s.ANN, kind="hang"),
        s.ListStep(number=1, client=0, pause_s=0.5),
        faults=(s.PointFault(step=0, place=place, number=4, kind=Kind.DIE),),
        seed=seed,
    )
    assert outcome.violations == ()
    assert any(each.is_primed for each in outcome.evidence.agents.processes)


def test_a_session_whose_close_is_only_in_its_transcript_is_closed() -> None:
    """Its actor had ended before the next directory watched it, and it stayed in error."""
    outcome = played(s.CloseAgentStep(number=0, client=2, agent=s.BEN), seed=215)
    assert outcome.violations == ()
    states = {each["handle"]: each["state"] for each in outcome.evidence.agents.sessions}
    assert states == {s.ANN: "idle", s.BEN: "closed"}


def test_a_turn_that_a_restart_ends_is_cancelled_and_not_reported_as_a_failure() -> None:
    """The agent finishes its turn at the end of its input, and reports it as aborted."""
    outcome = played(
        s.WorkStep(number=0, client=1, agent=s.ANN, kind="hang"),
        s.RestartAgentStep(number=1, client=1, pause_s=0.3, agent=s.ANN),
        s.InboxStep(number=2, client=1, acknowledges=False, wait_s=1.0),
    )
    assert outcome.violations == ()
    agents = outcome.evidence.agents
    session = next(each["id"] for each in agents.sessions if each["handle"] == s.ANN)
    outcomes = [each["outcome"] for each in agents.entries(session, "turn_ended")]
    assert outcomes[0] == "cancelled"
    assert [each["id"] for each in outcome.evidence.kept["client1"]] == []


def test_a_handle_is_not_given_again_after_a_crash_behind_its_line() -> None:
    """The line of the roster was in the file, and not in the memory of the directory."""
    place = "ledger.append.after[sessions.jsonl]"
    outcome = played(
        s.SpawnAgentStep(number=0, client=1, agent=s.CLEO),
        s.SpawnAgentStep(number=1, client=1, agent=s.CLEO),
        faults=(s.PointFault(step=0, place=place, number=1, kind=Kind.CRASH),),
    )
    assert outcome.violations == ()
    handles = [each["handle"] for each in outcome.evidence.agents.sessions]
    assert sorted(handles) == [s.ANN, s.BEN, s.CLEO]


def test_a_purge_waits_until_the_session_is_opened() -> None:
    """It found no actor to close, deleted the files, and then the session started."""
    script = s.Script(
        seed=400069,
        clients=3,
        steps=(
            s.WorkStep(number=5, client=2, pause_s=0.0018, agent=s.BEN, by=s.ANN, kind="slow"),
            s.WaitStep(
                number=8, client=1, pause_s=0.0312, terminal=s.SPARE, idle_s=0.05, timeout_s=0.5
            ),
            s.CloseStep(number=9, client=1, pause_s=0.0151, terminal=s.SPARE, purge=True),
            s.AnswerStep(number=11, client=1, pause_s=0.0086, draw=361, answer="cancel"),
            s.BroadcastStep(
                number=13,
                client=1,
                pause_s=0.005,
                terminals=(s.SHARED, s.SPARE),
                kind="several lines",
            ),
            s.SpawnAgentStep(
                number=14, client=1, pause_s=0.0045, agent=s.CLEO, by="fay", work="child"
            ),
            s.AnswerStep(
                number=15,
                client=2,
                pause_s=0.0372,
                draw=152,
                answer="cancel",
                is_late=True,
                twice=True,
            ),
            s.RunStep(number=33, client=2, pause_s=0.0134, terminal=s.SPARE, kind="quick"),
            s.RunStep(
                number=34,
                client=1,
                pause_s=0.0276,
                terminal=s.SHARED,
                kind="quick",
                gone_after_s=0.0586,
            ),
            s.RestartAgentStep(number=35, client=2, pause_s=0.0038, agent="gus"),
            s.PurgeAgentStep(number=36, client=2, pause_s=0.0518, agent=s.CLEO),
        ),
        faults=(),
        has_agents=True,
    )
    assert play(script).violations == ()


def test_a_fork_without_a_turn_needs_the_conversation_of_its_origin_again() -> None:
    """A process of the fork was ready, so its failure was taken for a lost session."""
    crash = s.PointFault(step=11, place="agent.start.after", number=2, kind=Kind.CRASH)
    outcome = played(
        s.WriteCanvasStep(
            number=5, client=2, pause_s=0.0099, canvas="notes", section="done", how="force"
        ),
        s.WorkStep(number=6, client=2, pause_s=0.1109, agent=s.ANN, by=s.DAN, kind="ask"),
        s.SpawnStep(number=10, client=1, pause_s=0.0811, terminal=s.SPARE),
        s.CloseAgentStep(number=16, client=0, pause_s=0.0108, agent=s.BEN),
        s.RunStep(
            number=17, client=0, pause_s=0.067, terminal=s.SHARED, kind="several lines of text"
        ),
        s.ForkAgentStep(number=22, client=1, pause_s=0.25, agent=s.ANN, fork=s.GUS, work="ask"),
        s.ReadOutputStep(number=49, client=1, pause_s=0.0083, terminal=s.SPARE, max_bytes=256),
        faults=(
            s.KillFault(step=0, after_s=0.1),
            crash,
            s.ForgottenFault(step=45, draw=416),
        ),
        seed=1,
    )
    assert outcome.violations == ()
    assert outcome.hits["conversation lost"] == 1
    [gus] = [each for each in outcome.evidence.agents.sessions if each["handle"] == s.GUS]
    own = [each for each in outcome.evidence.agents.processes if each.session == gus["id"]]
    assert all(each.is_fork for each in own)
    assert any(each.is_ready for each in own)


def test_the_members_of_a_group_that_was_never_formed_are_known_once_its_ledger_is_gone() -> None:
    """They are closed, and nothing but that ledger named them."""
    script = s.Script(
        seed=77001,
        clients=3,
        steps=(
            s.DissolveGroupStep(number=18, client=1, pause_s=0.0331, group="crew"),
            s.SpawnGroupStep(number=29, client=1, pause_s=0.0092, group="crew", members=2),
        ),
        faults=(s.DiskFault(step=29, call="open", number=4, kind=Kind.EIO),),
        stops=True,
        has_agents=True,
    )
    outcome = play(script)
    assert outcome.violations == ()
    assert outcome.hits["disk: EIO"] == 1
    ids = {each["id"] for each in outcome.evidence.agents.sessions if each["state"] == "closed"}
    assert len(ids) == 3
    assert ids <= outcome.evidence.groups.members


@pytest.mark.parametrize("seed", [2, 26, 28, 38])
def test_a_stop_ends_what_a_taken_over_program_has_left(seed: int) -> None:
    """Its child had a session of its own, and the mark of the agent, not of the terminal."""
    stall = s.PointFault(step=0, place="ledger.sync.after", number=1, kind=Kind.STALL)
    outcome = taken_over(pause_s=1.5, fault=stall, seed=seed)
    assert outcome.violations == ()
    assert any(each.is_person for each in outcome.evidence.agents.processes)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("seed", [3, 8, 23])
def test_what_was_said_in_a_take_over_is_durable_before_it_is_handed_back(
    when: str, seed: int
) -> None:
    """The disk refused the texts, and took the end of the take-over."""
    place = f"ledger.append.{when}[transcript.jsonl]"
    outcome = taken_over(
        s.HandBackStep(number=3, client=0, agent=s.ANN),
        s.ListStep(number=4, client=0, pause_s=2.5),
        pause_s=2.5,
        fault=s.PointFault(step=2, place=place, number=1 + seed % 4, kind=Kind.EIO),
        seed=seed,
    )
    assert outcome.violations == ()
    assert outcome.hits["fault point: EIO"] == 1
    assert len(outcome.evidence.agents.said) > 1
