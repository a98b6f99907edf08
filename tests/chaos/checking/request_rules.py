"""Rules for requests: one answer acts, once, as shown, and none after a withdrawal. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.chaos.checking.agent_evidence import AgentEvidence, Entry, Replied
from tests.chaos.checking.case import Case
from tests.chaos.checking.rule import Rule

ALLOWING = ("allow_once", "allow_session")

MAY_HAVE_ACTED = ("may have acted", "before the answer was applied")
"""Words of the reasons of a withdrawal after which the answer may have been written."""


def _requests(agents: AgentEvidence) -> dict[str, Entry]:
    """Return the final requests by the token of their question."""
    found = {}
    for each in agents.requests:
        words = str((each["input"] or {}).get("command", "")).split()
        if words:
            # In a text of a program the daemon escapes what begins with this character.
            found[words[-1].removeprefix("\\")] = each
    return found


def _acted_twice(case: Case) -> Iterator[str]:
    """Find questions that got several answers."""
    for token, times in Counter(each.token for each in case.evidence.agents.effects).items():
        if times > 1:
            yield f"{token} was answered {times} times"


def _acted_otherwise(case: Case) -> Iterator[str]:
    """Find effects that are not those of the stored answer, or that no client can have given."""
    agents = case.evidence.agents
    requests = _requests(agents)
    for effect in agents.effects:
        request = requests.get(effect.token, {})
        answer = request.get("answer") or {}
        given = [each for each in agents.replied if each.id == request.get("id") and each.is_shown]
        if not effect.is_allowed and not answer and not given:
            continue  # a session refuses by itself if the disk refused the request
        if not answer or (answer.get("kind") in ALLOWING) != effect.is_allowed:
            yield f"{effect} acted on {request.get('id')}, whose answer is {answer}"
        elif request["state"] != "answered" and not _may_have_acted(request):
            yield f"{effect} acted on {request['id']}, which is {request['withdrawn']!r}"
        elif not any((each.answer == "allow") == effect.is_allowed for each in given):
            yield f"{effect} acted on {request['id']}, and nobody answered so: {given}"


def _may_have_acted(request: Entry) -> bool:
    return any(words in (request["withdrawn"] or "") for words in MAY_HAVE_ACTED)


def _reply_wrong(case: Case) -> Iterator[str]:
    """Find replies that contradict each other, the programs, or the digest."""
    agents = case.evidence.agents
    tokens = {each["id"]: token for token, each in _requests(agents).items()}
    applied = [each for each in agents.replied if each.outcome == "applied"]
    for request, times in Counter(each.id for each in applied).items():
        if times > 1:
            yield f"{times} answers to {request} were applied"
    for each in applied:
        if not each.is_shown:
            yield f"an answer to {each.id} with another digest was applied"
        if not _acted_before(agents, tokens.get(each.id, ""), each):
            yield f"{each} was applied, and the agent did not get it"


def _acted_before(agents: AgentEvidence, token: str, reply: Replied) -> bool:
    return agents.reads_late or any(
        effect.token == token
        and effect.is_allowed == (reply.answer == "allow")
        and reply.span.asked < effect.moment < reply.span.last
        for effect in agents.effects
    )


def _acted_late(case: Case) -> Iterator[str]:
    """Find answers that acted after a client got the reply that the request was withdrawn."""
    agents = case.evidence.agents
    tokens = {each["id"]: token for token, each in _requests(agents).items()}
    for reply in agents.replied:
        if reply.outcome != "withdrawn" or agents.reads_late:
            continue
        for effect in agents.effects:
            if effect.token == tokens.get(reply.id) and effect.moment > reply.span.last:
                yield f"{effect} acted after {reply}"


def _left_open(case: Case) -> Iterator[str]:
    """Find requests that are open though nobody waits, and questions that are not shown."""
    agents = case.evidence.agents
    requests = _requests(agents)
    for token, request in requests.items():
        if request["state"] == "open" and token not in agents.waits:
            yield f"{request['id']} for {token} is open, and nobody waits for it"
    for token in sorted(agents.waits):
        if requests.get(token, {}).get("state") != "open":
            yield f"{token} waits for an answer, and its request is {requests.get(token)}"


REQUEST_RULES: dict[str, Rule] = {
    "answered twice": Rule("G16", _acted_twice),
    "answered otherwise": Rule("G16", _acted_otherwise),
    "reply to an answer": Rule("G16", _reply_wrong),
    "answered late": Rule("G16", _acted_late),
    "left open": Rule("G16", _left_open),
}
