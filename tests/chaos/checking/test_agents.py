"""Tests of the rules for agents: a sound history has no violation, and each broken one is found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from tests.chaos.checking.agent_evidence import (
    AgentEvidence,
    Began,
    Effect,
    Ordered,
    Process,
    Question,
    Replied,
    Reported,
    Said,
    Spawned,
    UserFrame,
    Work,
)
from tests.chaos.checking.checker import violations
from tests.chaos.checking.evidence import Evidence
from tests.chaos.checking.observations import Span

ANN, BEN = "id-ann", "id-ben"
FIRST, SECOND, LOST, ASK = "@work.1.quick@", "@work.2.ask@", "@work.3.die@", "@ask.1.1@"


def opened(turn: int, *messages: tuple[str, str]) -> dict[str, Any]:
    named = [{"id": each, "sender": sender} for each, sender in messages]
    return {"kind": "turn_opened", "turn": turn, "uuid": f"u{turn}", "messages": named}


def ended(turn: int, outcome: str) -> dict[str, Any]:
    return {"kind": "turn_ended", "turn": turn, "outcome": outcome, "reason": ""}


def message(number: int, body: str) -> dict[str, Any]:
    return {"id": f"m{number}", "body": body}


def session(id_: str, handle: str, state: str = "idle") -> dict[str, Any]:
    return {"id": id_, "handle": handle, "state": state}


def sent(turn: int, *tokens: str, process: int = 1, moment: int = 0) -> UserFrame:
    at = moment or 20 + turn
    return UserFrame(process=process, session=ANN, uuid=f"u{turn}", tokens=tokens, moment=at)


def reported(turn: int, outcome: Any) -> Reported:
    return Reported(process=1, session=ANN, uuid=f"u{turn}", outcome=outcome, moment=30)


def request(**fields: Any) -> dict[str, Any]:
    return {
        "id": "r1",
        "input": {"command": f"echo {ASK}"},
        "state": "answered",
        "answer": {"kind": "allow_once"},
        "withdrawn": None,
        **fields,
    }


def effect(moment: int = 26, **fields: Any) -> Effect:
    known = {"process": 1, "key": "req_1", "token": ASK, "is_allowed": True}
    return Effect(**{**known, "moment": moment, **fields})


def replied(outcome: str | None, *, answer: str = "allow", asked: int = 25) -> Replied:
    span = Span(asked, asked + 2)
    return Replied(id="r1", answer=answer, is_shown=True, span=span, outcome=outcome)


DONE = {"id": f"session:{ANN}/turn:1/human", "body": "done"}
REPORT = {"id": f"session:{ANN}/turn:2/client0", "body": "lost"}
WORKED = Process(number=1, session=ANN, begun=10, resumes=None, conversation="c1", is_ready=True)
RESUMED = Process(number=2, session=ANN, begun=40, resumes="c1", conversation="c1", is_ready=True)
CLOSE = Ordered(kind="close", handle="ben", span=Span(50, 51), done=True)

SOUND = AgentEvidence(
    spawned=(
        Spawned(handle="ann", span=Span(1, 2), done=True, id=ANN, prompt=FIRST),
        Spawned(handle="ben", span=Span(3, 4), done=True, id=BEN),
        Spawned(handle="ann", span=Span(5, 6), done=False),
    ),
    work=(
        Work(to="ann", sender="client0", token=SECOND, span=Span(11, 12), receipt="m1"),
        Work(to="ann", sender="client0", token=LOST, span=Span(13, 14), receipt=None),
    ),
    ordered=(CLOSE,),
    replied=(replied("applied"), replied("already_answered", answer="deny")),
    processes=(WORKED, RESUMED),
    frames=(sent(1, FIRST), sent(2, SECOND)),
    reported=(reported(1, "ok"),),
    questions=(Question(process=1, session=ANN, key="req_1", token=ASK, moment=24),),
    effects=(effect(),),
    sessions=(session(ANN, "ann"), session(BEN, "ben", "closed")),
    transcripts={
        ANN: (
            opened(1, (f"spawn:{ANN}", "human")),
            {"kind": "ready", "conversation": "c1"},
            ended(1, "completed"),
            opened(2, ("m1", "agent:client0")),
            ended(2, "interrupted"),
        ),
        BEN: (),
    },
    inboxes={
        "ann": ({"id": f"spawn:{ANN}", "body": FIRST}, message(1, SECOND)),
        "ben": (message(9, "kept, for it was closed before"),),
        "client0": (REPORT,),
        "human": (DONE,),
    },
    requests=(request(),),
)


def with_turns(*entries: Mapping[str, Any], **fields: Any) -> AgentEvidence:
    return attrs.evolve(SOUND, transcripts={ANN: entries, BEN: ()}, **fields)


def with_inbox(handle: str, *messages: Mapping[str, Any]) -> AgentEvidence:
    return attrs.evolve(SOUND, inboxes={**SOUND.inboxes, handle: messages})


def with_processes(*processes: Process) -> AgentEvidence:
    return attrs.evolve(SOUND, processes=processes)


FAY = "id-fay"
COPY = Process(
    number=3, session=FAY, begun=60, resumes="c1", conversation="c9", is_ready=True, is_fork=True
)
FORKED = attrs.evolve(
    SOUND,
    spawned=(
        *SOUND.spawned,
        Spawned(handle="fay", span=Span(55, 56), done=True, id=FAY, fork_of="ann"),
    ),
    processes=(*SOUND.processes, COPY),
    sessions=(*SOUND.sessions, session(FAY, "fay")),
    transcripts={**SOUND.transcripts, FAY: ({"kind": "ready", "conversation": "c9"},)},
)
PURGE = Ordered(kind="purge", handle="ben", span=Span(70, 71), done=True)
PURGED = attrs.evolve(SOUND, ordered=(CLOSE, PURGE), sessions=(session(ANN, "ann"),), files=(ANN,))
RESUME = Ordered(kind="resume", handle="ben", span=Span(70, 71), done=True)
REOPENED = attrs.evolve(
    SOUND,
    ordered=(CLOSE, RESUME),
    sessions=(session(ANN, "ann"), session(BEN, "ben")),
    inboxes={**SOUND.inboxes, "ben": ()},
    processes=(
        *SOUND.processes,
        Process(number=3, session=BEN, begun=75, resumes=None, is_ready=True),
    ),
)


TAKEN = Process(
    number=2, session=ANN, begun=35, resumes="c1", conversation="c1", is_ready=True, is_person=True
)
BACK = attrs.evolve(RESUMED, number=3, resumes="c2", conversation="c2")
BEGUN = Began(process=2, session=ANN, conversation="c2", by_person=True, moment=37)
SAID = {"kind": "event", "source": "s1/0"}
TAKEN_OVER = attrs.evolve(
    SOUND,
    ordered=(CLOSE, Ordered(kind="takeover", handle="ann", span=Span(33, 34), done=True)),
    processes=(WORKED, TAKEN, BACK),
    begun=(Began(process=1, session=ANN, conversation="c1", by_person=False, moment=20), BEGUN),
    said=(Said(session=ANN, process=2, source="s1/0", text="hello"),),
    transcripts={**SOUND.transcripts, ANN: (*SOUND.transcripts[ANN], SAID)},
)


def with_copy(*more: Process, **fields: Any) -> AgentEvidence:
    processes = (*SOUND.processes, attrs.evolve(COPY, **fields), *more)
    return attrs.evolve(FORKED, processes=processes)


ENTRIES = tuple(each for each in SOUND.transcripts[ANN] if each["kind"] != "ready")
FRESH = attrs.evolve(RESUMED, resumes=None, conversation="c2")
LATE = attrs.evolve(RESUMED, number=3, session=BEN, begun=60, resumes=None)
WITHDRAWN = request(state="withdrawn", withdrawn="the agent withdrew it")

BROKEN: dict[str, tuple[set[str], AgentEvidence]] = {
    "a turn sent twice": (
        {"turn sent twice"},
        attrs.evolve(SOUND, frames=(*SOUND.frames, sent(2, SECOND, process=2))),
    ),
    "a message in two turns": (
        {"turn sent twice", "turn miscredited"},
        attrs.evolve(SOUND, frames=(sent(1, FIRST, SECOND), sent(2, SECOND))),
    ),
    "a turn that is in no transcript": (
        {"turn not opened"},
        attrs.evolve(SOUND, frames=(*SOUND.frames, sent(3))),
    ),
    "a turn that was sent without its message": (
        {"turn miscredited"},
        attrs.evolve(SOUND, frames=(sent(1, FIRST), sent(2))),
    ),
    "a success that nobody reported": (
        {"turn ended wrongly"},
        attrs.evolve(SOUND, reported=()),
    ),
    "a failure of a turn that was a success": (
        {"turn ended wrongly", "loss unreported"},
        with_turns(
            ENTRIES[0], ended(1, "failed"), *ENTRIES[2:], inboxes={**SOUND.inboxes, "human": ()}
        ),
    ),
    "a turn without an end": (
        {"turn without end"},
        with_turns(*ENTRIES[:3], inboxes={**SOUND.inboxes, "client0": ()}),
    ),
    "a message in no turn": (
        {"turn without end"},
        with_inbox("ann", *SOUND.inboxes["ann"], message(2, "never a turn")),
    ),
    "messages in another order": (
        {"turn without end"},
        with_inbox("ann", *reversed(SOUND.inboxes["ann"])),
    ),
    "a loss without a report": ({"loss unreported"}, with_inbox("client0")),
    "a turn that is done without a report": ({"loss unreported"}, with_inbox("human")),
    "a report without a loss": (
        {"loss unreported"},
        with_inbox("client0", REPORT, {"id": f"session:{ANN}/turn:1/client0", "body": "done"}),
    ),
    "an accepted message that is gone": (
        {"work lost", "turn miscredited", "turn without end"},
        with_inbox("ann", SOUND.inboxes["ann"][0]),
    ),
    "an answer that acted twice": (
        {"answered twice"},
        attrs.evolve(SOUND, effects=(effect(), effect(27))),
    ),
    "an effect that is not the answer": (
        {"answered otherwise", "reply to an answer"},
        attrs.evolve(SOUND, effects=(effect(is_allowed=False),)),
    ),
    "an approval of a request that is not there": (
        {"answered otherwise", "reply to an answer"},
        attrs.evolve(SOUND, requests=()),
    ),
    "an effect on a withdrawn request": (
        {"answered otherwise"},
        attrs.evolve(SOUND, requests=(WITHDRAWN,)),
    ),
    "two answers that were applied": (
        {"reply to an answer"},
        attrs.evolve(SOUND, replied=(replied("applied"), replied("applied"))),
    ),
    "an answer with another digest that was applied": (
        {"reply to an answer", "answered otherwise"},
        attrs.evolve(SOUND, replied=(attrs.evolve(replied("applied"), is_shown=False),)),
    ),
    "an applied answer that the agent did not get": (
        {"reply to an answer"},
        attrs.evolve(SOUND, effects=()),
    ),
    "an effect after a reply of the withdrawal": (
        {"answered late"},
        attrs.evolve(SOUND, replied=(replied("withdrawn", asked=21),)),
    ),
    "a request that is open though nobody waits": (
        {"left open"},
        attrs.evolve(SOUND, requests=(request(state="open", answer=None),), effects=(), replied=()),
    ),
    "a question that is not shown": (
        {"left open"},
        attrs.evolve(SOUND, waits=frozenset({"@ask.2.1@"})),
    ),
    "a new conversation without a word": (
        {"silently new"},
        with_processes(WORKED, attrs.evolve(RESUMED, number=2, is_ready=False), FRESH),
    ),
    "a new conversation though the old one was not tried": (
        {"not resumed"},
        with_processes(WORKED, RESUMED, attrs.evolve(FRESH, number=3, is_primed=True)),
    ),
    "two processes at a time": (
        {"two processes"},
        with_processes(WORKED, attrs.evolve(RESUMED, beside=("300",))),
    ),
    "a session that is not listed": (
        {"session lost"},
        attrs.evolve(SOUND, spawned=(*SOUND.spawned[:1], attrs.evolve(SOUND.spawned[1], id="x"))),
    ),
    "a session that does not come to rest": (
        {"session lost"},
        attrs.evolve(SOUND, stuck=("ann is error",)),
    ),
    "a handle given twice": (
        {"handle twice"},
        attrs.evolve(SOUND, spawned=(*SOUND.spawned, SOUND.spawned[1])),
    ),
    "a session that was closed and is not": (
        {"not closed", "turn without end"},
        attrs.evolve(SOUND, sessions=(session(ANN, "ann"), session(BEN, "ben"))),
    ),
    "a session that nobody closed": (
        {"not closed"},
        attrs.evolve(SOUND, ordered=()),
    ),
    "a process after the close": ({"started late"}, with_processes(WORKED, RESUMED, LATE)),
    "a process after the purge of a resumed session": (
        {"started late"},
        attrs.evolve(
            PURGED,
            ordered=(CLOSE, attrs.evolve(RESUME, span=Span(55, 56)), PURGE),
            processes=(WORKED, RESUMED, attrs.evolve(LATE, begun=75)),
        ),
    ),
    "a resumed session that is closed": (
        {"not closed"},
        attrs.evolve(SOUND, ordered=(CLOSE, RESUME)),
    ),
    "a message of a resume that is gone": (
        {"work lost"},
        attrs.evolve(REOPENED, ordered=(CLOSE, attrs.evolve(RESUME, prompt=LOST))),
    ),
    "a purged session that is listed": (
        {"not purged"},
        attrs.evolve(SOUND, ordered=(CLOSE, PURGE)),
    ),
    "files of a purged session": ({"not purged"}, attrs.evolve(PURGED, files=(ANN, BEN))),
    "a fork in its origin's conversation": ({"wrong conversation"}, with_copy(is_fork=False)),
    "a fork of a conversation that its origin never had": (
        {"wrong conversation"},
        with_copy(resumes="c7"),
    ),
    "a fork that began a new conversation": (
        {"silently new"},
        with_copy(resumes=None, is_fork=False),
    ),
    "a conversation that a person has left, and the agent has not": (
        {"old conversation"},
        attrs.evolve(TAKEN_OVER, processes=(WORKED, TAKEN, attrs.evolve(BACK, resumes="c1"))),
    ),
    "a cleared conversation that is back": (
        {"old conversation"},
        attrs.evolve(
            SOUND,
            begun=(Began(process=1, session=ANN, conversation="c2", by_person=False, moment=21),),
            processes=(WORKED, attrs.evolve(RESUMED, resumes="c1")),
        ),
    ),
    "a text of a take-over that is not imported": (
        {"said lost"},
        attrs.evolve(TAKEN_OVER, transcripts=SOUND.transcripts),
    ),
    "a text of a take-over that is imported twice": (
        {"said lost"},
        attrs.evolve(
            TAKEN_OVER,
            transcripts={**SOUND.transcripts, ANN: (*SOUND.transcripts[ANN], SAID, SAID)},
        ),
    ),
    "a conversation that was copied again after a turn": (
        {"wrong conversation"},
        attrs.evolve(
            with_copy(attrs.evolve(COPY, number=4, begun=65)),
            frames=(
                *SOUND.frames,
                UserFrame(process=3, session=FAY, uuid="u9", tokens=(), moment=61),
            ),
            transcripts={
                **FORKED.transcripts,
                FAY: ({**opened(1), "uuid": "u9"}, ended(1, "interrupted")),
            },
        ),
    ),
}


def evidence(agents: AgentEvidence) -> Evidence:
    return Evidence(
        commands=(),
        begun=(),
        ended=(),
        seen=(),
        refused=(),
        ledgers={},
        ids={},
        answers={},
        kept={},
        handoffs=(),
        lives=(),
        agents=agents,
    )


@pytest.mark.parametrize(
    "agents",
    [SOUND, FORKED, PURGED, REOPENED, TAKEN_OVER],
    ids=["sessions", "a fork", "a purge", "a session that is opened again", "a take-over"],
)
def test_a_sound_history_of_agents_breaks_no_rule(agents: AgentEvidence) -> None:
    assert violations(evidence(agents)) == []


@pytest.mark.parametrize(("rules", "agents"), BROKEN.values(), ids=BROKEN)
def test_one_thing_wrong_with_an_agent_is_named_by_its_rules(
    rules: set[str], agents: AgentEvidence
) -> None:
    found = violations(evidence(agents))
    assert {each.rule for each in found} == rules, found


def test_a_turn_that_an_order_ended_may_be_cancelled_whatever_the_agent_reports() -> None:
    order = Ordered(kind="interrupt", handle="ann", span=Span(21, 22), done=None)
    agents = with_turns(
        *(ENTRIES[0], ended(1, "cancelled"), *ENTRIES[2:]),
        ordered=(*SOUND.ordered, order),
        inboxes={**SOUND.inboxes, "human": ()},
    )
    assert violations(evidence(agents)) == []


def test_an_answer_that_may_have_acted_is_no_violation() -> None:
    told = request(state="withdrawn", withdrawn="its session crashed: it may have acted")
    agents = attrs.evolve(SOUND, requests=(told,), replied=(replied("withdrawn"),))
    assert violations(evidence(agents)) == []
