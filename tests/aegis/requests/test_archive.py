"""Closed requests are moved to the archive; what is known of them is known all the same."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import attrs
import pytest

from aegis.errors import AegisError, Forbidden
from aegis.journal.archive import Keep
from aegis.protocol.history import ListEnded
from aegis.protocol.requests import (
    Answerer,
    OpenedRequest,
    OpenRequest,
    RenameRequests,
    RequestInfo,
)
from aegis.requests import desk
from tests.aegis.requests.office import (
    LEDGER,
    SESSIONS,
    Office,
    answer_to,
    of_flow,
    permission,
    play,
)
from tests.chaos.machine.disk_model import cached_image

FEW = Keep(newest=2, days=0, most=1_000)
NONE = Keep(newest=0, days=0, most=1_000)


async def answered(office: Office, request: OpenRequest, what: str = "allow") -> OpenedRequest:
    """Open a request, and answer it."""
    opened = await office.open(request)
    assert (await office.answer(opened, what)).outcome == "applied"
    await office.passes(0.01)
    return opened


async def withdrawn(office: Office, request: OpenRequest) -> OpenedRequest:
    """Open a request of the workflow ``w1``, and withdraw it."""
    opened = await office.open(request)
    await office.withdraw(session=None, workflow="w1", ids=[opened.id])
    await office.passes(0.01)
    return opened


async def kept(office: Office) -> list[str]:
    return [each.id for each in await office.listed()]


async def lives(office: Office) -> AsyncIterator[None]:
    """Yield in this life of the daemon, in one after a kill, and in one after a loss of power."""
    yield
    for power_fails in (False, True):
        await office.restart(power_fails=power_fails)
        yield


def test_a_request_is_answered_from_the_archive_as_it_was() -> None:
    async def story(office: Office) -> None:
        before: dict[str, RequestInfo] = {}
        for number in range(4):
            reason = "" if number else "because " * 400
            opened = await answered(office, of_flow(f"a{number}", reason=reason))
            before[opened.id] = await office.find(opened)
            opened = await withdrawn(office, of_flow(f"w{number}"))
            before[opened.id] = await office.find(opened)
        assert await kept(office) == [*before][-2:], "the newest are kept"
        async for _ in lives(office):
            for id_, info in before.items():
                assert await office.find(id_) == info
                reply = await office.answer(info, "deny", from_handle="bob")
                is_answered = info.state == "answered"
                assert reply.outcome == ("already_answered" if is_answered else "withdrawn")
                assert (reply.by, reply.at) == (info.by, info.answered)
                words = "was answered by human" if is_answered else "was withdrawn: the turn ended"
                assert words in reply.text
        assert len(office.owners.acted) == 4
        assert (await office.answer(attrs.evolve(info, id="0" * 12))).outcome == "unknown"
        assert await office.listed(id="0" * 12) == []

    play(story, keep=FEW)


def test_every_key_answers_with_the_same_id_once_rows_are_dropped_and_archived() -> None:
    async def story(office: Office) -> None:
        flow = [await answered(office, of_flow(f"k{number}")) for number in range(20)]
        ann = [await answered(office, permission(f"k{number}")) for number in range(20)]
        gone = [await withdrawn(office, of_flow(f"w{number}")) for number in range(20)]
        assert len(await kept(office)) == 2
        known = {each.id for each in [*flow, *ann, *gone]}
        async for _ in lives(office):
            for number in range(20):
                for opened, request in (
                    (flow[number], of_flow(f"k{number}")),
                    (ann[number], permission(f"k{number}")),
                ):
                    again = await office.open(request)
                    assert again == attrs.evolve(opened, state="answered")
            for number in range(3):
                again = await withdrawn(office, of_flow(f"w{number}"))
                assert again.state == "open"
                assert again.id not in known, "what nobody waited for any more is asked anew"
                known.add(again.id)
            other = await office.open(of_flow("k1", workflow="w2"))
            assert other.id not in known, "a key belongs to its workflow"
            await office.withdraw(session=None, workflow="w2")
        assert len(office.owners.acted) == 40

    play(story, keep=FEW)


def test_the_same_question_is_asked_again_once_its_answer_is_archived() -> None:
    async def story(office: Office) -> None:
        ids = []
        for _ in range(3):
            asked = office.ask_human(by="eve")
            await office.settles()
            [listed] = await office.listed(state="open")
            await office.answer(listed, values={"Which?": "this"})
            assert asked.value.answer == "this"
            ids.append(listed.id)
            await office.passes(1)
        assert len({*ids}) == 3
        assert await kept(office) == []
        assert (await office.find(ids[0])).answer is not None

    play(story, keep=NONE)


def test_an_id_is_never_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(office: Office) -> None:
        first = await answered(office, of_flow("first"))
        kept_one = await office.open(of_flow("second"))
        assert await kept(office) == [kept_one.id]
        for number in range(2):
            drawn = iter([first.id, kept_one.id, f"{number}" * 12])
            monkeypatch.setattr(uuid, "uuid4", lambda ids=drawn: Drawn(next(ids)))
            assert (await office.open(of_flow(f"{number}"))).id == f"{number}" * 12
            drawn = iter([first.id, kept_one.id, f"{number + 2}" * 12])
            monkeypatch.setattr(uuid, "uuid4", lambda ids=drawn: Drawn(next(ids)))
            asked = office.ask_human(f"{number}?", wait_s=0)
            await office.passes(1)
            assert asked.value.request_id == f"{number + 2}" * 12
            monkeypatch.undo()
            await office.restart(power_fails=True)

    play(story, keep=NONE)


@attrs.frozen
class Drawn:
    """A random id."""

    hex: str


def test_rights_hold_for_archived_requests_too() -> None:
    async def story(office: Office) -> None:
        request = await answered(office, permission())
        assert await kept(office) == []
        for handle, sees in (("ann", True), ("bob", True), ("kid", False), ("low", False)):
            found = await office.listed(id=request.id, from_handle=handle)
            assert [each.id for each in found] == [request.id] * sees
            if handle != "bob":
                refused = await office.refused(answer_to(request, from_handle=handle))
                assert isinstance(refused, Forbidden)
        reply = await office.answer(request, from_handle="bob")
        assert reply.outcome == "already_answered"

    play(story, keep=NONE)


def test_the_beginning_of_an_id_finds_requests_that_are_kept() -> None:
    async def story(office: Office) -> None:
        await answered(office, of_flow("old"))
        requests = [await answered(office, of_flow(f"k{number}")) for number in range(2)]
        for each in requests:
            for chars in (4, 11, 12):
                beginning = each.id[:chars]
                found = await office.listed(id=beginning)
                assert [info.id for info in found] == [
                    other.id for other in requests if other.id.startswith(beginning)
                ]
        assert await office.listed(id="f" * 11) == []

    play(story, keep=FEW)


def test_closed_requests_are_moved_by_their_size_and_no_open_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(office: Office) -> None:
        large = {"content": "x" * 60_000}
        waits = [await office.open(permission(f"k{each}", input=large)) for each in range(30)]
        closed = [await withdrawn(office, of_flow(f"k{each}", input=large)) for each in range(30)]
        await office.passes(1)
        held = (await office.ask(ListEnded())).ids
        assert 14 <= len(held) <= 17
        assert held == [each.id for each in reversed(closed[-len(held) :])], "the newest are kept"
        assert await office.states(closed[0], closed[-1]) == ["withdrawn", "withdrawn"]
        assert {*await office.states(*waits)} == {"open"}

    monkeypatch.setattr(desk, "MAX_CLOSED_SIZE", 1024 * 1024)
    play(story)


def test_the_ledger_is_bounded() -> None:
    async def story(office: Office) -> None:
        for number in range(300):
            office.ask_soon(of_flow(f"k{number}", reason="r" * 2_000))
            await office.passes(0.01)
            await office.withdraw(session=None, workflow="w1")
        await office.passes(5)
        assert await kept(office) == []
        ledger = cached_image(office.disk.model).get(str(LEDGER)) or b""
        assert len(ledger) < 130_000
        await office.restart(power_fails=True)
        assert await kept(office) == []

    play(story, keep=NONE)


FEW_BYTES = Keep(newest=2, days=0, archive_bytes=65_536)


def test_of_a_request_that_the_archive_has_no_more_the_outcome_is_known() -> None:
    async def story(office: Office) -> None:
        def long_text() -> str:
            return "".join(chr(office.chance.randrange(200, 4_000)) for _ in range(3_900))

        first = await answered(office, of_flow("first", reason=long_text()), "deny")
        at = (await office.find(first)).answered
        second = await withdrawn(office, of_flow("second", reason=long_text()))
        for number in range(40):
            await withdrawn(office, of_flow(f"k{number}", reason=long_text()))
        async for _ in lives(office):
            assert await office.listed(id=first.id) == []
            reply = await office.answer(first)
            assert (reply.outcome, reply.by, reply.at) == ("already_answered", "human", at)
            assert "and the archive has it no more" in reply.text
            assert (await office.answer(second)).outcome == "withdrawn"
            again = await office.open(of_flow("first"))
            assert (again.id, again.state) == (first.id, "answered")

    play(story, keep=FEW_BYTES)


def test_a_stream_that_missed_requests_that_are_archived_begins_anew() -> None:
    async def story(office: Office) -> None:
        old = await office.open(of_flow("old"))
        before = await office.news()
        await office.withdraw(session=None, workflow="w1")
        for number in range(5):
            await answered(office, permission(f"k{number}"))
        new = await office.open(of_flow("new"))
        news = await office.news(before)
        assert old.id not in [each.id for each in news.changed]
        assert news.open == [new.id]
        made = await answered(office, permission("made"))
        news = await office.news(news)
        assert news.open is None
        assert [each.id for each in news.changed] == [made.id]

    play(story, keep=FEW)


def test_closed_requests_of_a_renamed_session_show_its_handle() -> None:
    async def story(office: Office) -> None:
        for number in range(100):
            await answered(office, permission(f"k{number}"))
        await office.passes(1)
        live = await kept(office)
        ids = [each.id for each in office.owners.acted if each.id not in live]
        assert len(ids) >= 20
        await office.rename("s-ann", "eva")
        office.desk.tell(RenameRequests(session="s-ann", handle="anna"))
        office.desk.tell(RenameRequests(session="s-ann", handle="anne"))
        await office.passes(1)
        for _ in range(2):
            shown = {each.id: each.handle for each in await office.listed()}
            assert shown == dict.fromkeys(live, "anne")
            assert {(await office.find(each)).handle for each in ids} == {"ann"}
            await office.restart(power_fails=True)

    play(story, keep=Keep(newest=73, days=0))


def test_a_search_of_the_history_gets_what_its_caller_may_see() -> None:
    async def story(office: Office) -> None:
        first = await answered(office, permission("k1"))
        second = await withdrawn(office, of_flow("k2"))
        await office.open(permission("open"))
        newest = (await office.ask(ListEnded())).ids
        assert newest == [second.id, first.id]

        async def entries(by: Answerer | None) -> list[tuple[str, str, str]]:
            found = await office.ask(ListEnded(ids=newest, by=by))
            return [(each.name, each.outcome, each.text) for each in found.entries]

        own = ("ann", "allow once", 'Bash: Run rm {"command": "rm k1"}')
        assert await entries(None) == [
            ("flow", "withdrawn", 'Bash: Run rm {"command": "rm k2"}'),
            own,
        ]
        assert await entries(SESSIONS["ann"]) == await entries(None)
        assert [each for each, *_ in await entries(SESSIONS["kid"])] == ["flow"]
        assert await entries(SESSIONS["low"]) == []
        assert await entries(attrs.evolve(SESSIONS["ann"], answers_requests=False)) == [own]

    play(story)


SEEDS = [*range(12), *(pytest.param(each, marks=pytest.mark.long) for each in range(12, 60))]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_disk_that_refuses_and_kills_lose_no_request_and_no_key(seed: int) -> None:
    async def story(office: Office) -> None:
        chance = office.chance
        ids: dict[str, OpenedRequest] = {}
        over: dict[str, str] = {}
        for number in range(60):
            await office.draws_trouble()
            opened = office.ask_soon(of_flow(f"k{number}"))
            await office.passes(0.1)
            if opened.value is None:
                continue
            ids[f"k{number}"] = opened.value
            await office.passes(6)
            withdraws = chance.random() < 0.3
            try:
                if withdraws:
                    gone = await office.withdraw(session=None, workflow="w1", ids=[opened.value.id])
                    over |= dict.fromkeys(gone, "withdrawn")
                else:
                    reply = await office.answer(opened.value)
                    assert reply.outcome in ("applied", "already_answered")
                    over[opened.value.id] = "answered"
            except AegisError:
                pass  # its end is not known
            await office.passes(20)  # what has acted is stored, before a kill could lose that
        office.plan.faults.clear()
        await office.passes(200)
        await office.restart(power_fails=True)
        for key, opened_ in ids.items():
            again = await office.open(of_flow(key))
            info = await office.find(opened_)
            assert info.digest == opened_.digest
            if over.get(opened_.id, info.state) == "answered":
                assert (again.id, again.digest) == (opened_.id, opened_.digest)
            assert over.get(opened_.id, info.state) == info.state
        acted = [each.id for each in office.owners.acted]
        assert len(acted) == len({*acted}), "an answer acts once"
        answers = {each for each, end in over.items() if end == "answered"}
        assert answers <= {*acted}

    play(story, seed=seed, keep=FEW)
