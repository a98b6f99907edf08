"""Random histories of requests: owners, answerers, a disk that refuses, kills, losses of power."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import pytest

from actors import ActorError
from aegis.errors import Forbidden, InvalidRequest, StorageError, Unavailable
from aegis.journal.archive import Keep
from aegis.protocol.requests import (
    AnswerRequest,
    ApplyAnswer,
    AskHuman,
    FollowRequests,
    ListRequests,
    OpenedRequest,
    OpenRequest,
    RequestInfo,
    RequestNews,
    RequestReply,
    WithdrawRequests,
)
from tests.aegis.requests.office import (
    Office,
    answer_to,
    of_flow,
    permission,
    play,
)
from tests.aegis.simulated_daemon import Answer

STEPS = 200
OWNERS = ("ann", "bob", "flow")
KEYS = ("k1", "k2", "k3")
HOLDERS: tuple[dict[str, Any], ...] = (
    {"session": "s-ann"},
    {"session": "s-bob"},
    {"session": None, "workflow": "w1"},
    {"session": None, "asker": "eve"},
)
ASKERS = ("eve", "new")
FEW = Keep(newest=2, days=0)
UNSEEN = "0" * 64
"""The digest of an answer to something else."""


@attrs.frozen
class Asked:
    """A request of a client; how often the disk had refused before it, and what had acted."""

    request: Any
    answer: Answer[Any]
    refused: int
    acted: frozenset[str]


class History:
    """Owners and answerers, which act at random; what was promised is kept.

    ``applied`` are the answers that their callers know to have acted; ``winners`` has who answered.
    """

    def __init__(self, office: Office) -> None:
        self.office = office
        self.chance = office.chance
        self.asked: list[Asked] = []
        self.known: dict[str, OpenedRequest | RequestInfo] = {}
        self.seen: set[str] = set()
        self.open_now: list[str] = []
        self.questions: dict[str, str] = {}
        self.given: dict[str, list[tuple[str, str | None]]] = {}
        self.withdrawn: set[str] = set()
        self.got: dict[str, ApplyAnswer] = {}
        self.acted: set[str] = set()
        self.applied: set[str] = set()
        self.durably_applied: set[str] = set()
        self.winners: dict[str, tuple[str | None, str | None]] = {}
        self.replied: dict[str, list[str | None]] = {}
        self.view: dict[str, RequestInfo] = {}
        office.owners.acts = self.check_act

    def check_act(self, message: ApplyAnswer) -> None:
        self.collect()
        assert message.id not in self.withdrawn, "it acts after an acknowledged withdrawal"
        assert message.id not in self.acted, "an owner acts once"
        by = None if message.by == "human" else message.by.removeprefix("agent:")
        kind = getattr(message.answer, "kind", "")
        given = self.given[message.id]
        assert ("allow" if kind == "allow_once" else "deny", by) in given, "nobody gave this answer"
        self.acted.add(message.id)

    def check_got(self) -> None:
        for each in self.office.owners.got:
            assert self.got.setdefault(each.id, each) == each, "two answers win"

    # Steps.

    async def step(self) -> None:
        match self.chance.randrange(24):
            case 0 | 1 | 2 | 3:
                self.open()
            case 4 | 5 | 6 | 7 | 8 if self.known:
                self.answer()
            case 9 | 10:
                self.withdraw()
            case 11:
                self.ask_human()
            case 12:
                self.give_up()
            case 13 | 14:
                await self.office.passes(self.chance.choice([1, 1, 25, 60]))
            case _:
                await self.disturb()
        if self.chance.random() < 0.5:
            await self.office.passes(self.chance.uniform(0, 0.02))
        await self.learn()
        self.collect()
        self.check_got()

    async def disturb(self) -> None:
        """Let something happen that no client wants."""
        office, chance = self.office, self.chance
        match chance.randrange(10):
            case 0:
                await office.rename("s-ann", chance.choice(["ann", "anna"]))
            case 1 if chance.random() < 0.5:
                await office.crash_owner(chance.choice(OWNERS))
            case 2 if chance.random() < 0.6:
                office.refuse(*chance.choice([(), ("fdatasync",), ("write",), ("open",)]))
            case 2 | 3:
                office.accept()
            case 4 if chance.random() < 0.3:
                await self.restart()
            case 4:
                await office.crash_desk()
            case 5:
                office.owners.holds = chance.choice(["acts", "reply"])
            case 6 | 7:
                office.owners.refuses = chance.choice(["", "", "it is over"])
                office.owners.release()
            case 8:
                office.inboxes.refuses = chance.choice(["", "", "not now"])
            case 9 if chance.random() < 0.3:
                await office.close_askers(chance.choice(ASKERS))

    def give_up(self) -> None:
        """Let a caller of ``AskHuman`` stop waiting."""
        waiting = [each for each in self.asked if isinstance(each.request, AskHuman)]
        if waiting:
            gone = self.chance.choice(waiting)
            gone.answer.give_up()
            self.asked.remove(gone)

    def ask(self, request: Any) -> None:
        answer = self.office.ask_soon(request)
        plan = self.office.plan
        # Where the ledger cannot be opened, a desk that has crashed knows nothing.
        acted = frozenset() if "open" in plan.refuses else frozenset(self.acted)
        self.asked.append(Asked(request, answer, plan.refused, acted))

    def open(self) -> None:
        owner, key = self.chance.choice(OWNERS), self.chance.choice(KEYS)
        if owner == "flow":
            self.ask(of_flow(key))
        else:
            fields = {"owner": f"root/{owner}", "handle": owner, "session": f"s-{owner}"}
            turn = self.chance.choice(["t1", "t2"])
            self.ask(permission(key, turn=turn, **fields))

    def answer(self) -> None:
        """Let some people and agents answer one request at once."""
        chance = self.chance
        is_open = [each for each in self.known if each in self.open_now]
        ids = is_open if is_open and chance.random() < 0.7 else [*self.known][-8:]
        request = self.known[chance.choice(ids)]
        for _ in range(chance.randint(1, 3)):
            what = chance.choice(["allow", "deny"])
            by = chance.choice([None, None, "bob", "eve"])
            if chance.random() < 0.2:
                self.ask(answer_to(request, what, from_handle=by, digest=UNSEEN))
                continue
            question = self.questions.get(request.id)
            values = {question: "this"} if question and what == "allow" else {}
            self.given.setdefault(request.id, []).append((what, by))
            self.ask(answer_to(request, what, from_handle=by, values=values))
        if chance.random() < 0.3:
            for holder in HOLDERS:
                self.ask(WithdrawRequests(reason="too late", ids=[request.id], **holder))

    def withdraw(self) -> None:
        choices: list[dict[str, Any]] = [{}, {"keys": ["k1"]}, {"turn": "t1"}]
        narrow = self.chance.choice([*choices, {"ids": [*self.known]}])
        holder = self.chance.choice(HOLDERS)
        self.ask(WithdrawRequests(**{"reason": "it is over", **holder, **narrow}))

    def ask_human(self) -> None:
        question = self.chance.choice(["A?", "B?"])
        wait_s = self.chance.choice([0, 5, 50])
        by = self.chance.choice(ASKERS)
        self.ask(AskHuman(question=question, from_handle=by, wait_s=wait_s))

    # What was promised.

    async def learn(self) -> None:
        """Learn of open requests, and of the questions to a person, as a face does."""
        shown = self.office.ask_soon(FollowRequests())
        await self.office.until(lambda: shown.has_come)
        if shown.value is None:
            return
        self.open_now = shown.value.open or []
        for each in shown.value.changed:
            if each.tool == "ask_human":
                self.known.setdefault(each.id, each)
                self.questions.setdefault(each.id, question_of(each))

    def collect(self) -> None:
        """Note what was promised by the answers that have come."""
        for each in self.asked:
            if each.answer.error is not None:
                self.check_error(each, each.answer.error)
            elif each.answer.value is not None:
                self.note(each)
        self.asked = [each for each in self.asked if not each.answer.has_come]

    def check_error(self, asked: Asked, error: Exception) -> None:
        expected: tuple[type[Exception], ...] = (StorageError, Unavailable, ActorError)
        request = asked.request
        if isinstance(request, AnswerRequest):
            expected += (Forbidden, InvalidRequest) if request.digest == UNSEEN else (Forbidden,)
            # Neither a desk that has crashed nor one with an archive knows what it cannot read.
            is_unread = "cannot open" in str(error) or "/archive/" in str(error)
            is_refused = isinstance(error, StorageError) and not is_unread
            assert not (is_refused and request.id in asked.acted), "what has acted is known"
        assert isinstance(error, expected), (request, error)

    def note(self, asked: Asked) -> None:
        request, value = asked.request, asked.answer.value
        match request:
            case OpenRequest():
                known = self.known.setdefault(value.id, value)
                assert known.digest == value.digest, "a request stays the same"
            case AnswerRequest():
                self.note_reply(asked, value)
            case WithdrawRequests():
                self.withdrawn |= {*value.ids}
            case AskHuman():
                self.seen.add(value.request_id)
                if value.state == "answered":
                    self.replied.setdefault(value.request_id, []).append(value.answer)

    def note_reply(self, asked: Asked, reply: RequestReply) -> None:
        request = asked.request
        if reply.outcome == "applied":
            assert request.digest != UNSEEN, "an answer is to what was shown"
            assert request.id not in self.applied, "one answer wins"
            self.applied.add(request.id)
            if asked.refused == self.office.plan.refused:
                self.durably_applied.add(request.id)
            by = "human" if request.from_handle is None else f"agent:{request.from_handle}"
            assert reply.by == by
            if request.id not in self.questions:
                assert request.id in self.acted, "it is said to have acted"
        assert reply.outcome != "unknown", "a request is not lost"
        if reply.outcome in ("applied", "already_answered"):
            winner = (reply.by, reply.at)
            assert self.winners.setdefault(request.id, winner) == winner, "one answer wins"

    async def restart(self) -> None:
        office = self.office
        self.collect()
        self.asked = []  # their callers may get an answer of either kind
        shown = office.ask_soon(ListRequests(state="all", limit=500))
        await office.yields()
        office.accept()
        await office.restart(power_fails=self.chance.random() < 0.5, draws=True)
        await self.check()
        shown_before = [] if shown.value is None else shown.value.requests
        after = await self.found([each.id for each in shown_before])
        for each in shown_before:
            assert after[each.id].digest == each.digest, "what was shown is lost"
            assert each.state != "answered" or after[each.id].state != "open"

    async def found(self, ids: Iterable[str] | None = None) -> dict[str, RequestInfo]:
        """Return the requests of a list, and these and all known ones if they are archived."""
        found = {each.id: each for each in await self.office.listed()}
        for each in {*self.seen, *self.known, *self.view, *(ids or ())} - found.keys():
            found |= {info.id: info for info in await self.office.listed(id=each)}
        return found

    async def check(self) -> None:
        """Check what holds whenever the disk accepts."""
        found = await self.found()
        assert found.keys() >= self.seen | self.known.keys(), "an acknowledged request is lost"
        for id_, request in self.known.items():
            assert found[id_].digest == request.digest, "an acknowledged request is forged"
        for id_, info in found.items():
            by, _ = self.winners.get(id_, (None, None))
            if info.state == "answered" and by is not None:
                assert info.by == by, "another answer has won"
            if id_ in self.withdrawn:
                assert info.state == "withdrawn", "an acknowledged withdrawal holds"
            if id_ in self.acted:
                assert info.state != "open", "what has acted can be answered again"
            if id_ in self.durably_applied:
                assert info.applied is not None, "an acknowledged answer holds"

    # The end.

    async def watch(self) -> RequestNews:
        """Take all news of the operator; return the last."""
        news = await self.office.news()
        self.view = {each.id: each for each in news.changed}
        return news

    async def finish(self) -> None:
        """Let everything end, without further faults, and follow it as a face does."""
        office = self.office
        office.accept()
        office.inboxes.refuses = office.owners.refuses = ""
        await office.open(of_flow("last"))
        news = await self.watch()
        office.owners.release()
        await office.passes(100)
        self.collect()
        self.check_got()
        assert not self.asked, f"a caller waits for nothing: {self.asked}"
        for each in await office.listed(state="open"):
            values = {question_of(each): "this"} if each.tool == "ask_human" else {}
            self.given.setdefault(each.id, []).append(("allow", None))
            reply = await office.answer(each, values=values)
            assert reply.outcome == "applied"
        await office.passes(100)
        while True:
            waiting = office.news_soon(news)
            await office.settles()
            if waiting.value is None:
                waiting.give_up()
                break
            news = waiting.value
            if news.open is not None:
                self.view.clear()
            self.view |= {each.id: each for each in news.changed}
        found = await self.found()
        for id_, info in self.view.items():
            assert found[id_] == info, "a stream shows what a list shows"
        assert {each.state for each in found.values()} <= {"answered", "withdrawn"}
        self.check_questions(found)

    def check_questions(self, found: dict[str, RequestInfo]) -> None:
        for id_, info in found.items():
            if info.tool == "ask_human" and info.state == "answered":
                assert info.applied is not None
                reached = id_ in self.replied
                message = self.office.inboxes.messages.get(f"request:{id_}/answer")
                assert reached or message is not None, "the asker does not get the answer"


def question_of(request: RequestInfo) -> str:
    """Return the only question of a request by ``AskHuman``."""
    assert request.input is not None
    question: str = request.input["questions"][0]["question"]
    return question


SEEDS = [*range(30), *(pytest.param(each, marks=pytest.mark.long) for each in range(30, 330))]


@pytest.mark.parametrize("seed", SEEDS)
def test_one_answer_acts_once_and_none_after_a_withdrawal(seed: int) -> None:
    async def story(office: Office) -> None:
        history = History(office)
        for _ in range(STEPS):
            await history.step()
        await history.restart()
        await history.finish()
        await history.check()
        assert history.known
        before = await history.found()
        await office.restart(power_fails=True)
        assert await history.found() == before, "a restart changes nothing that clients see"

    play(story, seed=seed, keep=FEW if seed % 2 else None)
