"""The promises of the directory of sessions, through its messages, on a simulated disk."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from aegis.agents.directory import roster_table
from aegis.agents.sessions.transcript import TRANSCRIPT
from aegis.errors import (
    AegisError,
    AlreadyExists,
    Forbidden,
    InvalidRequest,
    NotFound,
    StorageError,
    Unavailable,
)
from aegis.journal.archive import Keep
from aegis.journal.archiver import AGAIN_S
from aegis.journal.ledger import decode_line, encode_line, seal_line
from aegis.protocol.agents import (
    CloseAgent,
    CloseWorkspaceAgents,
    ForkAgent,
    InterruptAgent,
    PurgeAgent,
    ReadSession,
    ReadUsage,
    RenameAgent,
    ResumeSession,
    SetAgent,
    ShowAgent,
    SpawnAgent,
    SpawnForWorkflow,
    SpawnMember,
    SpawnWorker,
)
from aegis.protocol.feeds import FollowSession
from aegis.protocol.meta import GetMeta
from aegis.protocol.requests import FindAnswerer, ListRequests
from tests.aegis.agents.directory.office import AGENTS, ROSTER, Office, play
from tests.chaos.machine.simulated_agent import agents_on

RECORDINGS = Path(__file__).parents[3] / "recordings"
WORK = "@work.{}.quick@"


def spawning(handle: str, **fields: object) -> SpawnAgent:
    return SpawnAgent(handle=handle, **fields)  # type: ignore[arg-type]


def renaming(old: str, new: str, by: str | None = None) -> RenameAgent:
    return RenameAgent(old_handle=old, new_handle=new, from_handle=by)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep three closed sessions."""
    monkeypatch.setattr(roster_table, "MAX_CLOSED", 3)


# A session.


def test_a_session_is_known_by_all_that_it_was_spawned_with_also_after_a_restart() -> None:
    async def case(office: Office) -> None:
        spawned = await office.spawn("ann", workspace="web")
        await office.spawn("bob", profile="lead", from_handle="carl")
        for power_fails in (False, True):
            found = await office.listed()
            assert [*found] == ["ann", "bob"]
            ann, bob = found["ann"], found["bob"]
            assert (ann.id, ann.profile, ann.provider) == (spawned.id, "asks", "claude")
            assert (ann.cwd, ann.spawned_by, ann.permission) == ("/state/web", "human", "ask")
            assert (bob.cwd, bob.spawned_by, bob.permission) == ("/state", "carl", "full")
            assert ann.state == bob.state == "dormant"
            await office.restart(power_fails=power_fails)

    play(case)


def test_the_directory_is_kept_below_a_root_that_has_moved() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann", workspace="web")
        await office.spawn("bob")
        office.root, office.earlier = "/moved", ("/state",)
        await office.restart()
        found = await office.listed()
        assert [found[each].cwd for each in ("ann", "bob")] == ["/moved/web", "/moved"]

    play(case)


def test_the_spawner_is_named_by_its_handle_of_that_time_or_by_the_work() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann", profile="lead")
        await office.rename("ann", "chief")
        by_session = await office.spawn("bob", from_handle="ann")
        worker = await office.ask(SpawnWorker(handle="w-1", queue="once", task_id="t"))
        step = await office.ask(SpawnForWorkflow(handle="w-2", workflow="ship"))
        await office.rename("chief", "boss")
        await office.restart()
        found = await office.listed()
        assert by_session.spawned_by == found["bob"].spawned_by == "chief"
        assert worker.spawned_by == found["w-1"].spawned_by == "queue:once"
        assert step.spawned_by == found["w-2"].spawned_by == "workflow:ship"

    play(case)


def test_a_first_message_is_delivered_and_its_turn_ends() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann", prompt=WORK.format(1))
        await office.passes(5)
        [ended] = await office.entries("ann", "turn_ended")
        assert ended.fields["outcome"] == "completed"

    play(case)


def test_a_session_of_a_group_is_spawned_once_by_its_id() -> None:
    async def case(office: Office) -> None:
        request = SpawnMember(handle="ann", session="a" * 32)
        first = await office.ask(request)
        assert (await office.ask(request)).id == first.id == "a" * 32
        await office.restart()
        assert (await office.ask(request)).id == first.id
        await office.close("ann")
        assert (await office.ask(request)).state == "closed"
        assert await office.handles(closed=True) == ["ann"]

    play(case)


# Handles.


def test_a_handle_is_never_given_to_another_session() -> None:
    async def case(office: Office) -> None:
        await office.spawn("Ann")
        await office.rename("Ann", "bea")
        await office.rename("bea", "cleo")
        await office.spawn("dan")
        await office.close("dan")
        await office.spawn("eve")
        await office.purge("eve")
        for _ in range(2):
            for handle in ("ANN", "Bea", "cleo", "dan", "EVE"):
                error = await office.refused(spawning(handle))
                assert isinstance(error, AlreadyExists), handle
                assert "is or was used, and no handle is given twice" in str(error)
                if handle in ("ANN", "Bea", "cleo"):
                    continue
                assert isinstance(await office.refused(renaming("cleo", handle)), AlreadyExists)
            await office.restart()

    play(case)


def test_a_handle_with_an_inbox_is_taken() -> None:
    async def case(office: Office) -> None:
        await office.stop()
        office.put({"/state/inboxes": None, "/state/inboxes/Pm.jsonl": b""})
        await office.start()
        assert await office.is_taken("pm")
        assert not await office.is_taken("pma")

    play(case)


def test_a_handle_must_be_a_name_that_is_not_reserved() -> None:
    async def case(office: Office) -> None:
        for handle in ("human", "a b"):
            with pytest.raises((InvalidRequest, ValueError)):
                await office.spawn(handle)
        assert await office.handles() == []

    play(case)


def test_a_generated_handle_is_free() -> None:
    async def case(office: Office) -> None:
        found = {(await office.spawn()).handle for _ in range(6)}
        assert len(found) == 6
        assert set(await office.handles()) == found

    play(case)


def test_a_session_is_found_by_its_former_handles_and_its_id_in_any_case() -> None:
    async def case(office: Office) -> None:
        ann = await office.spawn("ann")
        await office.rename("ann", "bea")
        await office.rename("BEA", "cleo")
        for _ in range(2):
            for each in ("ann", "Bea", "CLEO", ann.id):
                found = await office.show(each)
                assert (found.id, found.handle) == (ann.id, "cleo")
            names = office.programs.names
            assert [names.address_of(each) for each in ("Ann", "bea", "CLEO")] == ["ann"] * 3
            assert names.shown("ann") == "cleo"
            assert (names.address_of("dan"), names.shown("dan")) == ("dan", "dan")
            await office.restart()

    play(case)


def test_a_session_can_get_its_own_former_handle_again() -> None:
    async def case(office: Office) -> None:
        ann = await office.spawn("ann")
        for each in ("bea", "ann", "Ann", "bea", "bea"):
            assert (await office.rename(ann.id, each)).handle == each
        await office.restart()
        assert (await office.show("ann")).handle == "bea"
        assert await office.is_taken("ann")

    play(case)


def test_of_two_who_want_a_handle_one_gets_it() -> None:
    async def case(office: Office) -> None:
        await office.spawn("bob")
        await office.spawn("carl")
        answers = [
            office.ask_soon(spawning("ann")),
            office.ask_soon(spawning("ann")),
            office.ask_soon(renaming("bob", "ann")),
            office.ask_soon(renaming("carl", "Ann")),
        ]
        await office.passes(2)
        assert sum(each.value is not None for each in answers) == 1
        refused = [each.error for each in answers if each.error is not None]
        assert all(isinstance(each, AlreadyExists) for each in refused)
        handles = await office.handles()
        assert sum(each.lower() == "ann" for each in handles) == 1
        await office.restart()
        assert await office.handles() == handles

    play(case)


def test_an_unknown_handle_is_refused_with_the_nearest_ones() -> None:
    async def case(office: Office) -> None:
        error = await office.refused(ShowAgent(handle="ann"))
        assert isinstance(error, NotFound)
        assert "there is no agent 'ann'; there are: none; aegis_spawn starts one" in str(error)
        await office.spawn("builder")
        await office.spawn("closed")
        await office.close("closed")
        assert "did you mean 'builder'?" in await office.refusal(ShowAgent(handle="bilder"))
        assert "there are: builder;" in await office.refusal(ShowAgent(handle="zoe"))

    play(case)


def test_a_renamed_session_shows_its_new_handle_with_its_requests() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann", prompt="@work.1.ask@")
        await office.passes(5)
        await office.rename("ann", "bea")
        await office.settles()
        desk = office.system.ref("root/requests")
        [request] = (await desk.ask(ListRequests())).requests
        assert request.handle == "bea"

    play(case)


# Ends, and what follows.


def test_a_closed_session_is_listed_as_closed_and_stays_so() -> None:
    async def case(office: Office) -> None:
        ann = await office.spawn("ann")
        await office.spawn("bob")
        assert (await office.close("ann")).state == "closed"
        await office.settles()
        for power_fails in (False, True):
            assert await office.handles() == ["bob"]
            found = await office.listed(closed=True)
            assert [(each.handle, each.state) for each in found.values()] == [
                ("ann", "closed"),
                ("bob", "dormant"),
            ]
            shown = await office.show("ann")
            assert (shown.id, shown.state, shown.reason) == (ann.id, "closed", "")
            assert (await office.close("ann")).state == "closed"
            error = await office.refused(InterruptAgent(handle="ann"))
            assert "the session 'ann' is closed: read it with aegis_session_read" in str(error)
            assert isinstance(await office.refused(SetAgent(handle="ann", model="m")), NotFound)
            assert [each.kind for each in await office.entries("ann", "closed")] == ["closed"]
            await office.restart(power_fails=power_fails)

    play(case)


def test_a_closed_session_is_opened_again_as_often_as_a_person_wants() -> None:
    async def case(office: Office) -> None:
        ann = await office.spawn("ann", prompt=WORK.format(1))
        await office.passes(5)
        for times in (1, 2):
            await office.close("ann")
            await office.settles()
            again = await office.resume("ann")
            assert (again.id, again.handle) == (ann.id, "ann")
            await office.passes(3)
            assert await office.handles() == ["ann"]
            entries = await office.entries("ann", "reopened")
            assert [each.fields["times"] for each in entries] == [*range(1, times + 1)]
            await office.restart()
            assert (await office.show("ann")).state == "dormant"

    play(case)


def test_a_session_that_is_opened_again_twice_at_once_is_opened_once() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann")
        await office.close("ann")
        await office.settles()
        both = [office.ask_soon(ResumeSession(handle="ann")) for _ in range(2)]
        await office.passes(5)
        assert [each.error for each in both] == [None, None]
        assert [each.value is not None for each in both] == [True, True]
        assert len(await office.entries("ann", "reopened")) == 1

    play(case)


def test_a_purged_session_is_gone_with_its_files_and_its_handle_stays_taken() -> None:
    async def case(office: Office) -> None:
        ann = await office.spawn("ann", prompt=WORK.format(1))
        await office.passes(5)
        await office.rename("ann", "bea")
        assert any(ann.id in path for path in office.image())
        assert (await office.purge("bea")).state == "closed"
        await office.settles()
        for _ in range(2):
            assert not any(ann.id in path for path in office.image())
            assert await office.handles(closed=True) == []
            for each in ("ann", "bea", ann.id):
                error = await office.refused(ShowAgent(handle=each))
                assert "the session 'bea' was purged; its files are deleted" in str(error)
                assert isinstance(await office.refused(ResumeSession(handle=each)), NotFound)
            assert (await office.ask(ReadUsage(closed=True))).result == []
            await office.restart()

    play(case)


def test_the_purge_of_an_open_session_ends_its_agent() -> None:
    async def case(office: Office) -> None:
        ann = await office.spawn("ann", prompt=WORK.format(1))
        await office.passes(5)
        assert agents_on(office.machine, ann.id)
        await office.purge("ann")
        assert not agents_on(office.machine, ann.id)
        await office.settles()
        assert not any(ann.id in path for path in office.image())

    play(case)


def test_a_purge_that_a_kill_has_cut_is_completed_by_the_next_start() -> None:
    async def case(office: Office) -> None:
        ann = await office.spawn("ann")
        await office.close("ann")
        await office.settles()
        office.plan.refuses = ("rename", "unlink", "rmdir")
        assert isinstance(await office.refused(PurgeAgent(handle="ann")), StorageError)
        assert any(ann.id in path for path in office.image())
        office.plan.refuses = ()
        await office.restart()
        assert not any(ann.id in path for path in office.image())
        assert await office.handles(closed=True) == []

    play(case)


def test_a_purge_can_be_repeated_after_one_that_failed() -> None:
    async def case(office: Office) -> None:
        ann = await office.spawn("ann")
        await office.close("ann")
        await office.settles()
        office.plan.refuses = ("rename", "unlink", "rmdir")
        await office.refused(PurgeAgent(handle="ann"))
        office.plan.refuses = ()
        assert (await office.purge("ann")).state == "closed"
        assert not any(ann.id in path for path in office.image())

    play(case)


def test_the_settings_of_a_person_are_kept() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann")
        await office.spawn("bob")
        await office.set("ann", model="opus", budget_usd=2.5)
        await office.set("ann", permission="write")
        for _ in range(2):
            found = await office.show("ann")
            assert (found.permission, found.budget_usd) == ("write", 2.5)
            assert (await office.show("bob")).permission == "ask"
            await office.restart()
        await office.set("ann", budget_usd=3.0)
        found = await office.show("ann")
        assert (found.permission, found.budget_usd) == ("write", 3.0)

    play(case)


def test_a_fork_has_the_settings_and_the_conversation_of_its_origin() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann", prompt=WORK.format(1), workspace="web")
        await office.passes(5)
        await office.set("ann", permission="write")
        origin = await office.show("ann")
        fork = await office.fork("ann", "bob")
        assert fork.id != origin.id
        await office.restart()
        found = await office.show("bob")
        assert (found.cwd, found.permission, found.profile) == ("/state/web", "write", "asks")
        [forked] = await office.entries("bob", "forked")
        assert forked.fields["session"] == origin.id
        await office.resume("bob")
        await office.passes(3)
        assert (await office.show("bob")).state == "idle"
        await office.close("ann")
        await office.settles()
        error = await office.refused(ForkAgent(handle="ann", new_handle="carl"))
        assert "'ann' is closed; resume it first" in str(error)

    play(case)


def test_a_fork_needs_a_conversation() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann")
        error = await office.refused(ForkAgent(handle="ann", new_handle="bob"))
        assert isinstance(error, InvalidRequest)
        assert not await office.is_taken("bob")

    play(case)


def test_the_sessions_of_a_workspace_are_closed_together() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann", workspace="web")
        await office.spawn("bob", workspace="WEB")
        await office.spawn("carl", workspace="db")
        await office.spawn("dan")
        await office.restart()
        closed = await office.ask(CloseWorkspaceAgents(workspace="Web", from_handle=None))
        assert closed == ["ann", "bob"]
        await office.settles()
        assert await office.handles() == ["carl", "dan"]

    play(case)


# Trees of sessions.


def test_a_session_may_only_reach_those_that_it_spawned() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann", profile="lead")
        await office.spawn("bob", profile="lead", from_handle="ann")
        await office.spawn("carl", from_handle="bob")
        await office.spawn("dan")
        await office.rename("carl", "cleo")
        await office.restart()
        for by, of in (("bob", "ann"), ("carl", "bob"), ("ann", "dan"), ("carl", "carl")):
            error = await office.refused(InterruptAgent(handle=of, from_handle=by))
            assert isinstance(error, Forbidden), (by, of)
        assert isinstance(await office.refused(renaming("dan", "x", "ann")), Forbidden)
        assert (await office.ask(renaming("cleo", "zoe", "ann"))).handle == "zoe"
        for by, of in (("ann", "bob"), ("ann", "carl"), ("bob", "cleo")):
            await office.ask(InterruptAgent(handle=of, from_handle=by))
        await office.close("bob", "ann")
        await office.settles()
        await office.restart()
        assert (await office.close("carl", "ann")).state == "closed"

    play(case)


def test_the_spawns_of_a_tree_are_limited_also_after_a_restart() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann", profile="lead")
        for number in range(4):
            by = "ann" if number < 2 else "w-0"
            await office.spawn(f"w-{number}", profile="lead", from_handle=by)
        for _ in range(2):
            error = await office.refused(spawning("w-4", from_handle="w-1"))
            assert isinstance(error, Unavailable)
            assert "limit of 4 spawns in an hour" in str(error)
            await office.spawn(None)
            await office.restart()
        await office.passes(3600)
        assert (await office.spawn("w-4", from_handle="w-1")).handle == "w-4"

    play(case)


def test_the_depth_of_a_tree_is_limited() -> None:
    async def case(office: Office) -> None:
        await office.spawn("s-0", profile="lead")
        for depth in (1, 2, 3):
            await office.spawn(f"s-{depth}", profile="lead", from_handle=f"s-{depth - 1}")
        await office.restart()
        error = await office.refused(spawning("s-4", from_handle="s-3"))
        assert "a session at depth 4 cannot be spawned" in str(error)

    play(case)


def test_a_closed_session_spawns_nothing() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann", profile="lead")
        await office.close("ann")
        await office.settles()
        error = await office.refused(spawning("bob", from_handle="ann"))
        assert isinstance(error, Forbidden)
        assert "session 'ann' is closed" in str(error)

    play(case)


def test_the_ancestors_of_a_session_may_answer_its_requests() -> None:
    async def case(office: Office) -> None:
        ann = await office.spawn("ann", profile="lead")
        bob = await office.spawn("bob", profile="lead", from_handle="ann")
        carl = await office.spawn("carl", from_handle="bob")
        await office.close("bob")
        await office.restart()
        found = await office.ask(FindAnswerer(handle="carl"))
        assert (found.session, found.ancestors) == (carl.id, [bob.id, ann.id])
        assert (await office.ask(FindAnswerer(handle="bob"))).session is None
        assert (await office.ask(FindAnswerer(handle="nobody"))).session is None

    play(case)


def test_a_session_knows_its_peers() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann", profile="lead")
        await office.spawn("bob", from_handle="ann")
        await office.spawn("gone")
        await office.close("gone")
        await office.settles()
        for _ in range(2):
            meta = await office.ask(GetMeta(from_handle="bob"))
            assert (meta.kind, meta.spawned_by) == ("session", "ann")
            assert [each.handle for each in meta.peers] == ["ann"]
            await office.restart()

    play(case)


def test_the_cost_of_a_tree_has_its_closed_sessions() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann", profile="lead")
        await office.spawn("bob", from_handle="ann")
        await office.spawn("dan")
        await office.close("bob")
        await office.settles()
        await office.restart()
        open_ones = await office.ask(ReadUsage())
        assert sorted(each.handle for each in open_ones.result) == ["ann", "dan"]
        tree = await office.ask(ReadUsage(handle="ann"))
        assert {(each.handle, each.root, each.is_closed) for each in tree.result} == {
            ("ann", "ann", False),
            ("bob", "ann", True),
        }
        everything = await office.ask(ReadUsage(closed=True))
        assert sorted(each.handle for each in everything.result) == ["ann", "bob", "dan"]

    play(case)


# Sessions that are not kept.


@pytest.mark.usefixtures("few")
def test_the_newest_closed_sessions_are_kept_and_all_open_ones() -> None:
    async def case(office: Office) -> None:
        await office.spawn("first")
        for number in range(1, 7):
            await office.spawn(f"build-{number}")
        for number in (6, 1, 2, 3, 4, 5):
            await office.close(f"build-{number}")
            await office.settles()
        for _ in range(2):
            kept = ["build-3", "build-4", "build-5", "first"]
            assert await office.handles(closed=True) == kept
            assert await office.handles() == ["first"]
            assert office.programs.names.address_of("BUILD-6") == "BUILD-6"
            error = await office.refused(ShowAgent(handle="Build-6"))
            assert isinstance(error, NotFound)
            assert "is not kept any more; its transcript is still in the archive" in str(error)
            for handle in ("BUILD-6", "build-1", "build-2"):
                assert await office.is_taken(handle)
            assert "there is no agent 'build-7'" in await office.refusal(
                ShowAgent(handle="build-7")
            )
            await office.restart()

    play(case)


@pytest.mark.usefixtures("few")
def test_all_handles_of_a_session_that_is_not_kept_stay_taken() -> None:
    async def case(office: Office) -> None:
        await office.spawn("build-1")
        await office.rename("build-1", "release")
        await office.rename("release", "build-07")
        await office.close("release")
        for number in range(2, 6):
            await office.spawn(f"build-{number}")
            await office.close(f"build-{number}")
            await office.settles()
        for _ in range(3):
            assert await office.handles(closed=True) == ["build-3", "build-4", "build-5"]
            for handle in ("Build-1", "RELEASE", "build-07", "build-2"):
                assert await office.is_taken(handle), handle
                assert "not kept any more" in await office.refusal(ShowAgent(handle=handle))
            for handle in ("build-7", "build", "build-0", "release-1"):
                assert "there is no agent" in await office.refusal(ShowAgent(handle=handle))
            await office.restart(power_fails=True)
        assert not await office.is_taken("build-0")
        assert not await office.is_taken("build-7")
        assert not await office.is_taken("build")

    play(case)


@pytest.mark.usefixtures("few")
def test_the_spawners_of_an_open_session_are_kept() -> None:
    async def case(office: Office) -> None:
        ann = await office.spawn("ann", profile="lead")
        bob = await office.spawn("bob", profile="lead", from_handle="ann")
        carl = await office.spawn("carl", from_handle="bob")
        await office.close("ann")
        await office.close("bob")
        await office.settles()
        for number in range(1, 7):
            await office.spawn(f"w-{number}")
            await office.close(f"w-{number}")
            await office.settles()
        await office.restart()
        found = await office.ask(FindAnswerer(handle="carl"))
        assert (found.session, found.ancestors) == (carl.id, [bob.id, ann.id])
        assert await office.handles(closed=True) == ["ann", "bob", "carl", "w-4", "w-5", "w-6"]
        await office.close("carl")
        await office.settles()
        assert await office.handles(closed=True) == ["carl", "w-5", "w-6"]

    play(case)


@pytest.mark.usefixtures("few")
def test_a_session_that_is_opened_again_is_not_dropped() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann")
        await office.close("ann")
        await office.settles()
        await office.resume("ann")
        for number in range(1, 6):
            await office.spawn(f"w-{number}")
            await office.close(f"w-{number}")
            await office.settles()
        assert await office.handles() == ["ann"]
        await office.close("ann")
        await office.settles()
        assert await office.handles(closed=True) == ["ann", "w-4", "w-5"]
        await office.restart()
        assert await office.handles(closed=True) == ["ann", "w-4", "w-5"]

    play(case)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("newest", [1_000, 1])
def test_the_transcript_of_a_session_that_is_not_kept_is_read(newest: int) -> None:
    def prepare(office: Office) -> None:
        office.keep = Keep(newest=newest, days=0)

    async def case(office: Office) -> None:
        await office.spawn("lead", profile="lead")
        first = await office.spawn("build-1", from_handle="lead", prompt=WORK.format(1))
        await office.passes(5)
        await office.rename("build-1", "Release")
        for number in range(2, 6):
            await office.spawn(f"build-{number}")
        await office.purge("build-2")
        before = await office.ask(ReadSession(handle="release", last_n=500))
        await office.close("release")
        for number in range(3, 6):
            await office.close(f"build-{number}")
            await office.settles()
        await office.passes(1)
        in_place = str(AGENTS / first.id / TRANSCRIPT) in office.image()
        assert in_place is (newest > 1)
        for name in ("build-1", "RELEASE", first.id):
            for caller in (None, "lead"):
                reading = ReadSession(handle=name, last_n=500, from_handle=caller)
                read = await office.ask(reading)
                assert read.result[: len(before.result)] == before.result
                assert "closed" in [each.kind for each in read.result]
            following = FollowSession(handle=name, last_n=1)
            news = await office.ask(following)
            assert await office.ask(attrs.evolve(following, place=news.place))
            other = ReadSession(handle=name, from_handle="build-5")
            assert isinstance(await office.refused(other), Forbidden)
            await office.restart(power_fails=True)
        assert "build-2' was purged" in await office.refusal(ReadSession(handle="build-2"))
        assert "not kept any more" in await office.refusal(ShowAgent(handle="release"))
        assert "there is no agent" in await office.refusal(ReadSession(handle="build"))

    play(case, prepare=prepare)


@pytest.mark.usefixtures("few")
def test_a_session_is_dropped_once_the_disk_accepts_it_in_the_archive() -> None:
    async def case(office: Office) -> None:
        for number in range(1, 6):
            await office.spawn(f"build-{number}")
        for number in range(1, 5):
            await office.close(f"build-{number}")
            await office.settles()
        assert "build-1" not in await office.handles(closed=True)
        office.plan.refuses = ("rename",)
        await office.close("build-5")
        await office.passes(1)
        assert "build-2" in await office.handles(closed=True)
        office.plan.refuses = ()
        await office.passes(AGAIN_S)
        assert await office.handles(closed=True) == ["build-3", "build-4", "build-5"]
        assert await office.entries("build-2", "closed")

    play(case)


# A disk that refuses.


def test_a_spawn_that_the_disk_refuses_leaves_nothing() -> None:
    async def case(office: Office) -> None:
        await office.spawn("bob")
        async with office.full_disk():
            assert isinstance(await office.refused(spawning("ann")), StorageError)
            assert await office.handles() == ["bob"]
            assert "there is no agent" in await office.refusal(ShowAgent(handle="ann"))
        assert (await office.spawn("ann")).handle == "ann"
        await office.restart()
        assert await office.handles() == ["ann", "bob"]

    play(case)


def test_the_first_spawn_of_all_can_be_refused() -> None:
    async def case(office: Office) -> None:
        office.plan.refuses = ("open", "mkdir", "write")
        assert isinstance(await office.refused(spawning("ann")), StorageError)
        office.plan.refuses = ()
        await office.passes(6)
        assert (await office.spawn("ann")).handle == "ann"
        await office.restart()
        assert await office.handles() == ["ann"]

    play(case)


def test_a_rename_that_the_disk_refuses_changes_nothing() -> None:
    async def case(office: Office) -> None:
        ann = await office.spawn("ann")
        async with office.full_disk():
            assert isinstance(await office.refused(renaming("ann", "bea")), StorageError)
            assert (await office.show("ann")).handle == "ann"
            assert "there is no agent" in await office.refusal(ShowAgent(handle="bea"))
            assert office.programs.names.shown("ann") == "ann"
            assert office.programs.names.address_of("bea") == "bea"
        assert await office.handles() == ["ann"]
        assert (await office.spawn("bea")).id != ann.id
        await office.restart()
        assert await office.handles() == ["ann", "bea"]

    play(case)


def test_settings_that_the_disk_refuses_are_not_used() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann")
        async with office.full_disk():
            assert isinstance(
                await office.refused(SetAgent(handle="ann", permission="full")), StorageError
            )
            assert (await office.show("ann")).permission == "ask"
        await office.restart()
        assert (await office.show("ann")).permission == "ask"

    play(case)


def test_a_session_stays_closed_if_the_disk_refuses_to_open_it_again() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann")
        await office.close("ann")
        await office.settles()
        async with office.full_disk():
            assert isinstance(await office.refused(ResumeSession(handle="ann")), StorageError)
            assert (await office.show("ann")).state == "closed"
        assert await office.handles() == []
        await office.resume("ann")
        assert await office.handles() == ["ann"]

    play(case)


def test_a_purge_that_the_disk_refuses_deletes_nothing() -> None:
    async def case(office: Office) -> None:
        ann = await office.spawn("ann")
        await office.close("ann")
        await office.settles()
        async with office.full_disk():
            assert isinstance(await office.refused(PurgeAgent(handle="ann")), StorageError)
            assert any(ann.id in path for path in office.image())
        assert await office.handles(closed=True) == ["ann"]
        await office.restart()
        assert await office.handles(closed=True) == ["ann"]

    play(case)


def test_a_close_that_the_disk_refuses_happens_once_it_accepts() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann")
        async with office.full_disk():
            closing = office.ask_soon(CloseAgent(handle="ann"))
            await office.passes(2)
            assert not closing.has_come
        assert closing.value is not None
        assert await office.handles() == []
        await office.restart()
        assert await office.handles() == []

    play(case)


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("call", ["write", "fdatasync"])
@pytest.mark.parametrize("ends", ["kill", "crash", "goes on"])
def test_a_session_whose_transcript_is_closed_is_closed(call: str, number: int, ends: str) -> None:
    """One call is refused: that of its transcript, or that of the roster."""

    async def case(office: Office) -> None:
        await office.spawn("ann")
        await office.spawn("bob")
        await office.settles()
        office.plan.refuse_one(call, number)
        closing = office.ask_soon(CloseAgent(handle="ann"))
        await office.passes(20)
        assert closing.value is not None
        assert closing.value.state == "closed"
        if ends == "kill":
            await office.restart(power_fails=True)
        elif ends == "crash":
            await office.crashes()
        await office.passes(10)
        assert await office.handles() == ["bob"]
        assert (await office.show("ann")).state == "closed"
        await office.restart()
        assert await office.handles() == ["bob"]

    play(case)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("call", ["write", "fdatasync"])
def test_a_refused_change_can_be_repeated_at_once(call: str, number: int) -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann")
        await office.close("ann")
        await office.spawn("bob")
        await office.settles()
        changes = (
            spawning("carl"),
            renaming("bob", "bea"),
            SetAgent(handle="bob", permission="write"),
            PurgeAgent(handle="ann"),
        )
        for change in changes:
            office.plan.refuse_one(call, number)
            for _ in range(9):
                try:
                    await office.ask(change)
                except StorageError:
                    await office.passes(0.5)
                else:
                    break
            else:
                raise AssertionError(f"refused for ever: {change}")
            await office.passes(10)
        await office.restart(power_fails=True)
        assert await office.handles(closed=True) == ["bea", "carl"]
        assert (await office.show("bea")).permission == "write"

    play(case)


def test_a_ledger_that_cannot_be_read_at_the_start_is_read_later() -> None:
    async def case(office: Office) -> None:
        ann = await office.spawn("ann")
        await office.stop()
        await office.yields()
        office.refuse_to_open("sessions.jsonl")
        await office.start()
        await office.settles()
        assert isinstance(await office.refused(ShowAgent(handle="ann")), StorageError)
        assert isinstance(await office.refused(spawning("bob")), StorageError)
        office.refuse_to_open("")
        await office.passes(6)
        assert (await office.show("ann")).id == ann.id
        assert (await office.spawn("bob")).handle == "bob"
        assert await office.handles() == ["ann", "bob"]

    play(case)


# Crashes and kills.


def test_the_sessions_continue_while_the_directory_is_restarted() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann", prompt=WORK.format(1))
        await office.spawn("bob")
        await office.rename("bob", "bea")
        await office.set("bea", permission="write")
        await office.spawn("gone")
        await office.close("gone")
        await office.passes(5)
        await office.crashes()
        found = await office.listed()
        assert [*found] == ["ann", "bea"]
        assert (found["ann"].state, found["bea"].permission) == ("idle", "write")
        assert (await office.show("bob")).handle == "bea"
        for handle in ("bob", "gone"):
            assert await office.is_taken(handle)
        names = office.programs.names
        assert (names.address_of("bea"), names.shown("bob")) == ("bob", "bea")
        await office.spawn("carl")
        await office.close("ann")
        await office.settles()
        assert await office.handles() == ["bea", "carl"]

    play(case)


@pytest.mark.parametrize("seed", range(12))
def test_a_change_that_was_answered_outlives_a_loss_of_power(seed: int) -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann")
        await office.spawn("bob")
        await office.rename("bob", "bea")
        await office.set("bea", budget_usd=1.5)
        await office.close("ann")
        await office.resume("ann")
        carl = await office.spawn("carl")
        await office.purge("carl")
        await office.restart(power_fails=True, draws=True)
        found = await office.listed(closed=True)
        assert [*found] == ["ann", "bea"]
        assert (found["bea"].budget_usd, found["ann"].state) == (1.5, "dormant")
        assert not any(carl.id in path for path in office.image())
        assert await office.is_taken("bob")
        assert await office.is_taken("carl")

    play(case, seed)


def test_an_answered_close_outlives_a_loss_of_power() -> None:
    async def case(office: Office) -> None:
        await office.spawn("ann")
        await office.close("ann")
        await office.restart(power_fails=True)
        assert await office.handles() == []
        assert (await office.show("ann")).state == "closed"

    play(case)


def test_the_file_is_made_with_the_first_session() -> None:
    async def case(office: Office) -> None:
        assert await office.handles() == []
        assert str(ROSTER) not in office.image()
        await office.spawn("ann")
        assert str(ROSTER) in office.image()
        assert str(AGENTS) in office.image()

    play(case)


def test_a_damaged_line_costs_only_itself() -> None:
    async def case(office: Office) -> None:
        for handle in ("ann", "bob", "carl"):
            await office.spawn(handle)
        await office.stop()
        lines = (office.image()[str(ROSTER)] or b"").splitlines(keepends=True)
        position = next(n for n, line in enumerate(lines) if b'"bob"' in line)
        lines[position] = lines[position].replace(b'"bob"', b'"b_b"')
        office.put({str(ROSTER): b"".join(lines)})
        await office.start()
        assert await office.handles() == ["ann", "carl"]

    play(case)


def test_the_errors_of_a_directory_are_those_of_the_product() -> None:
    async def case(office: Office) -> None:
        for request in (
            SpawnAgent(profile="unknown"),
            SpawnAgent(workspace="unknown"),
            ShowAgent(handle="unknown"),
        ):
            assert isinstance(await office.refused(request), NotFound)
        with pytest.raises(AegisError):
            await office.fork("unknown", "x")

    play(case)


# Ledgers of a version before tables.


@pytest.mark.parametrize("power_fails", [False, True])
def test_a_ledger_of_a_version_before_tables_is_read_and_continued(*, power_fails: bool) -> None:
    async def case(office: Office) -> None:
        await office.stop()
        recorded = (RECORDINGS / "sessions_before_tables.jsonl").read_bytes()
        office.put({str(AGENTS): None, str(ROSTER): recorded})
        await office.start()
        found = await office.listed(closed=True)
        open_ones = ["ann", "bob", "build-2", "dan", "term", "zoe"]
        closed = [f"build-{each}" for each in (1, 3, 4, 5, 6, 7)]
        assert [*found] == sorted(open_ones + closed)
        assert await office.handles() == open_ones
        ann, dan = found["ann"], found["dan"]
        assert (ann.cwd, ann.permission, ann.budget_usd) == ("/state/web", "write", 4.0)
        assert (dan.cwd, dan.permission, dan.budget_usd) == ("/state/web", "write", 4.0)
        assert (found["zoe"].cwd, found["term"].cwd) == ("/state/db", "/elsewhere/x")
        assert found["build-7"].spawned_by == "queue:once"
        for each in ("bob", "Bea", "CLEO"):
            assert (await office.show(each)).handle == "bob"
        answerer = await office.ask(FindAnswerer(handle="cleo"))
        assert answerer.ancestors == [ann.id]
        assert "purged" in await office.refusal(ShowAgent(handle="eve"))
        await office.close("build-2")
        await office.close("zoe")
        await office.rename("bob", "rob")
        await office.settles()
        await office.restart(power_fails=power_fails)
        assert await office.handles() == ["ann", "dan", "rob", "term"]
        assert (await office.show("cleo")).handle == "rob"
        for handle in ("EVE", "eva", "bea", "build-7", "zoe", "term"):
            assert await office.is_taken(handle), handle
        assert [each.fields["times"] for each in await office.entries("build-2", "reopened")] == [2]

    play(case)


def test_a_line_before_tables_that_is_not_understood_costs_only_itself() -> None:
    async def case(office: Office) -> None:
        await office.stop()
        recorded = (RECORDINGS / "sessions_before_tables.jsonl").read_bytes()
        ann = decode_line(recorded.splitlines(keepends=True)[0])["id"]
        strange = encode_line({"kind": "set", "id": ann, "model": 5, "budget_usd": 1.0})
        recorded += seal_line(strange, office.disk.seal(ROSTER))
        office.put({str(AGENTS): None, str(ROSTER): recorded})
        await office.start()
        for _ in range(2):
            found = await office.show("ann")
            assert (found.id, found.permission, found.budget_usd) == (ann, "write", 4.0)
            await office.restart(power_fails=True)

    play(case)


@pytest.mark.usefixtures("few")
def test_of_the_sessions_of_a_version_before_tables_the_newest_closed_ones_are_kept() -> None:
    async def case(office: Office) -> None:
        await office.stop()
        recorded = (RECORDINGS / "sessions_before_tables.jsonl").read_bytes()
        office.put({str(AGENTS): None, str(ROSTER): recorded})
        await office.start()
        for _ in range(2):
            await office.settles()
            found = [*await office.listed(closed=True)]
            assert found == ["ann", "bob", "build-2", "build-5", "build-6", "dan", "term", "zoe"]
            for handle in ("build-7", "BUILD-1", "build-3", "build-4"):
                assert "not kept any more" in await office.refusal(ShowAgent(handle=handle))
            await office.restart(power_fails=True)
        async with office.full_disk():
            await office.settles()
        assert await office.is_taken("build-3")

    play(case)
