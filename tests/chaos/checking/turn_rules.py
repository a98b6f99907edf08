"""Rules for turns: each is sent once, credited to its messages, and its loss reported. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from aegis.protocol.inboxes import PROGRAM_ID
from tests.chaos.checking.agent_evidence import WORK, AgentEvidence, Entry, is_worker
from tests.chaos.checking.case import Case
from tests.chaos.checking.rule import Rule

CANCELLING = ("interrupt", "restart", "close", "purge", "takeover")
"""The orders that end a turn."""

LOSSES = ("interrupted", "failed", "limited")
"""The outcomes that are reported to the senders of a turn."""

HEARD = (*LOSSES, "completed")
"""The outcomes that are reported to the person."""


def _turns(agents: AgentEvidence, session: str) -> dict[str, Entry]:
    """Return the opened turns of a session by uuid."""
    return {each["uuid"]: each for each in agents.entries(session, "turn_opened")}


def _ends(agents: AgentEvidence, session: str) -> dict[int, Entry]:
    """Return the ends of turns by number."""
    return {each["turn"]: each for each in agents.entries(session, "turn_ended")}


def _handles(agents: AgentEvidence) -> dict[str, str]:
    """Return the handle of each session by id."""
    return {each["id"]: each["handle"] for each in agents.sessions}


def _is_purged(agents: AgentEvidence, session: str) -> bool:
    """Return whether an unlisted session may have been purged; its handle may not be known."""
    handle = next((each.handle for each in agents.spawned if each.id == session), None)
    return any(
        each.kind == "purge" and each.done is not False and handle in (None, each.handle)
        for each in agents.ordered
    )


def _is_empty_fork(agents: AgentEvidence, session: Entry) -> bool:
    """Return whether a session failed as a fork, because there was nothing to copy."""
    own = [each for each in agents.processes if each.session == session["id"]]
    return session["state"] == "error" and bool(own) and all(each.is_fork for each in own)


def _tokens(agents: AgentEvidence, handle: str) -> Mapping[str, str]:
    """Return the bodies of an inbox by id of the message."""
    return {each["id"]: each["body"] for each in agents.inboxes.get(handle, ())}


def _sent_twice(case: Case) -> Iterator[str]:
    """Find turns, and messages, that were sent to a program more than once."""
    agents = case.evidence.agents
    for uuid, times in Counter(each.uuid for each in agents.frames).items():
        if times > 1:
            yield f"the turn {uuid} was sent {times} times"
    tokens = Counter(token for each in agents.frames for token in each.tokens)
    of_tasks = {each.token for each in case.evidence.tasks.enqueued}
    of_tasks |= {each.token for each in case.evidence.groups.sent}  # one for each member
    # A workflow that is run again from its beginning sends its messages again.
    of_tasks |= {each for kind in ("task", "send") for each in case.evidence.workflows.owners(kind)}
    for token, times in tokens.items():
        if times > 1 and token not in of_tasks:  # a task may have several attempts
            yield f"the message {token} was sent {times} times"


def _not_opened(case: Case) -> Iterator[str]:
    """Find turns that were sent and are not in the transcript: they were not durable before."""
    agents = case.evidence.agents
    listed = _handles(agents)
    for frame in agents.frames:
        if frame.session not in listed and _is_purged(agents, frame.session):
            continue
        if frame.uuid not in _turns(agents, frame.session):
            yield f"the turn {frame.uuid} was sent to {frame.session} and is in no transcript"


def _miscredited(case: Case) -> Iterator[str]:
    """Find turns whose messages are not those that the program got with it."""
    agents, handles = case.evidence.agents, _handles(case.evidence.agents)
    for frame in agents.frames:
        turn = _turns(agents, frame.session).get(frame.uuid)
        if turn is None:
            continue
        bodies = _tokens(agents, handles[frame.session])
        named = [bodies.get(each["id"], "") for each in turn["messages"]]
        expected = [token for body in named for token in WORK.findall(body)]
        if [*frame.tokens] != expected:
            yield f"turn {turn['turn']} names {named} and was sent with {frame.tokens}"


def _wrong_end(case: Case) -> Iterator[str]:
    """Find turns with a success or failure that the program did not report for them."""
    agents = case.evidence.agents
    reported = {each.uuid: each.outcome for each in agents.reported}
    ordered = {
        each.handle for each in agents.ordered if each.kind in CANCELLING and each.done is not False
    }
    ordered |= {each["handle"] for each in agents.sessions if is_worker(each)}
    members = case.evidence.groups.members  # losers are interrupted
    ordered |= {
        each["handle"] for each in agents.sessions if members & {each["handle"], each["id"]}
    }
    for session, handle in _handles(agents).items():
        ends = _ends(agents, session)
        for uuid, turn in _turns(agents, session).items():
            outcome = ends.get(turn["turn"], {}).get("outcome", "")
            said = reported.get(uuid)
            if not _is_possible(outcome, said, is_ordered=handle in ordered):
                yield f"turn {turn['turn']} of {handle} is {outcome}; the agent reported {said}"


def _is_possible(outcome: str, said: str | None, *, is_ordered: bool) -> bool:
    match outcome:
        case "completed":
            return said == "ok"
        case "failed":
            return said in ("failed", None)
        case "limited":
            return said == "failed"
        case "cancelled":  # an order may cancel a turn while the agent reports its end
            return is_ordered or said == "cancelled"
    return True


def _not_one_end(case: Case) -> Iterator[str]:
    """Find turns without an end, or with several, and messages in no turn or in several."""
    agents = case.evidence.agents
    closed = {each["id"] for each in agents.sessions if each["state"] == "closed"}
    closed |= {each["id"] for each in agents.sessions if _is_empty_fork(agents, each)}
    for session, handle in _handles(agents).items():
        opened = agents.entries(session, "turn_opened")
        numbers = [each["turn"] for each in opened]
        ended = [each["turn"] for each in agents.entries(session, "turn_ended")]
        if numbers != sorted(set(numbers)) or sorted(ended) != numbers:
            yield f"the turns {numbers} of {handle} were opened, and {ended} ended"
        taken = [message["id"] for each in opened for message in each["messages"]]
        there = [each["id"] for each in agents.inboxes.get(handle, ())]
        if taken != (there[: len(taken)] if session in closed else there):
            yield f"the inbox of {handle} has {there}, and its turns have {taken}"


def _unreported(case: Case) -> Iterator[str]:
    """Find ended turns of which a sender was not notified, and notifications of other turns.

    Each sender hears of a loss, and the person also of a turn that is done.
    """
    agents = case.evidence.agents
    kept = {**case.evidence.kept, **agents.inboxes}
    for session in agents.transcripts:
        ends = _ends(agents, session)
        due = {
            (f"session:{session}/turn:{turn['turn']}/{to}", to)
            for turn in agents.entries(session, "turn_opened")
            if turn["turn"] in ends
            for to in _senders(turn)
            if ends[turn["turn"]]["outcome"] in (HEARD if to == "human" else LOSSES)
        }
        there = {
            (message["id"], handle)
            for handle, messages in kept.items()
            for message in messages
            if message["id"].startswith(f"session:{session}/")
        }
        for message, to in sorted(due - there):
            if to in kept:
                yield f"{to} was not notified of the end {message}"
        for message, to in sorted(there - due):
            yield f"{to} was notified of {message}, which is no end of a turn of theirs"


def _senders(turn: Entry) -> Iterator[str]:
    for message in turn["messages"]:
        kind, _, handle = message["sender"].partition(":")
        if message["sender"] == "human":
            yield "human"
        elif kind == "agent":
            yield handle


def _work_lost(case: Case) -> Iterator[str]:
    """Find accepted messages, and prompts of acknowledged spawns, that are in no inbox."""
    agents = case.evidence.agents
    for work in agents.work:
        body = _tokens(agents, work.to).get(work.receipt or "", "")
        if work.receipt is not None and work.token not in body:
            yield f"{work.token} was accepted as {work.receipt}; {work.to} got {body}"
    for spawn in agents.spawned:
        there, id_ = _tokens(agents, spawn.handle), f"spawn:{spawn.id}"
        prompt = there.get(id_) or there.get(f"{PROGRAM_ID}{id_}")
        if spawn.done and spawn.prompt is not None and prompt != spawn.prompt:
            yield f"{spawn.handle} was spawned with {spawn.prompt}; it got {prompt}"
    for order in agents.ordered:
        bodies = _tokens(agents, order.handle).values()
        if order.done and order.prompt is not None and order.prompt not in bodies:
            yield f"{order.handle} was resumed with {order.prompt}, which is in no inbox"
    for handle, messages in agents.inboxes.items():
        for message, times in Counter(each["id"] for each in messages).items():
            if times > 1:
                yield f"the inbox of {handle} holds {message} {times} times"


TURN_RULES: dict[str, Rule] = {
    "turn sent twice": Rule("G15", _sent_twice),
    "turn not opened": Rule("G15", _not_opened),
    "turn miscredited": Rule("G15", _miscredited),
    "turn ended wrongly": Rule("G15", _wrong_end),
    "turn without end": Rule("G15", _not_one_end),
    "loss unreported": Rule("G15", _unreported),
    "work lost": Rule("G1", _work_lost),
}
