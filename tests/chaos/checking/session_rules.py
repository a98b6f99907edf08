"""Rules for sessions: none is lost, and none gets a new conversation silently. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.chaos.checking.agent_evidence import AgentEvidence, Ordered, Process, is_worker
from tests.chaos.checking.case import Case
from tests.chaos.checking.rule import Rule


def _of_session(agents: AgentEvidence) -> dict[str, list[Process]]:
    """Return the processes of each session, in the order of their starts."""
    found: dict[str, list[Process]] = {}
    for each in agents.processes:
        found.setdefault(each.session, []).append(each)
    return found


def _handles(agents: AgentEvidence) -> dict[str, str]:
    """Return the handles of sessions by id, as far as a client was shown the id."""
    spawned = {each.id: each.handle for each in agents.spawned if each.id is not None}
    return {**spawned, **{each["id"]: each["handle"] for each in agents.sessions}}


def _forks(agents: AgentEvidence) -> dict[str, set[str]]:
    """Return the handles that a fork may have, each with those of the sessions it may be of."""
    found: dict[str, set[str]] = {}
    for each in agents.spawned:
        if each.fork_of is not None and each.done is not False:
            found.setdefault(each.handle, set()).add(each.fork_of)
    return found


def _silently_new(case: Case) -> Iterator[str]:
    """Find new conversations of a session that had one, without the last texts of that one."""
    agents = case.evidence.agents
    handles, forks = _handles(agents), _forks(agents)
    for session, processes in _of_session(agents).items():
        for each in processes:
            had_one = handles.get(session) in forks or any(
                frame.session == session and frame.moment < each.begun for frame in agents.frames
            )
            is_new = each.is_ready and each.resumes is None
            if is_new and had_one and not each.is_primed:
                yield f"process {each.number} of {session} began a new conversation silently"


def _not_resumed(case: Case) -> Iterator[str]:
    """Find new conversations though the known one was not tried, or could be resumed.

    A daemon forgets the id of a conversation that no disk took.
    """
    agents = case.evidence.agents
    for session, processes in _of_session(agents).items():
        durable = {each["conversation"] for each in agents.entries(session, "ready")}
        known = ""
        for before, each in zip([None, *processes], processes, strict=False):
            if known in durable and each.resumes is None and (before is None or before.is_ready):
                yield f"process {each.number} of {session} did not resume {known}"
            known = each.resumes or known


def _wrong_conversation(case: Case) -> Iterator[str]:
    """Find conversations that were resumed by another session than their own, or copied wrongly.

    A fork copies a conversation of its origin, before its own first turn.
    """
    agents = case.evidence.agents
    handles, forks = _handles(agents), _forks(agents)
    for session, processes in _of_session(agents).items():
        origins = forks.get(handles.get(session, ""), set())
        for each in processes:
            if each.resumes is None:
                continue
            owners = {
                other.session
                for other in agents.processes
                if other.conversation == each.resumes and other.number < each.number
            }
            owners |= {
                other.session
                for other in agents.begun
                if other.conversation == each.resumes and other.moment < each.begun
            }
            own = {session} if not each.is_fork else owners - {session}
            if each.is_fork and session in handles:
                own = {one for one in own if handles.get(one, "") in {*origins, ""}}
            if not owners & own:
                verb = "copied" if each.is_fork else "resumed"
                yield f"process {each.number} of {session} {verb} {each.resumes} of {owners}"
            if each.is_fork and _had_turns(agents, session, each.begun):
                yield f"process {each.number} of {session} copied again, after a turn"


def _old_conversation(case: Case) -> Iterator[str]:
    """Find conversations that were resumed although the session has begun a later one.

    The daemon knows that once it has sent the same process another turn, or a person has handed
    back.
    """
    agents = case.evidence.agents
    for session, processes in _of_session(agents).items():
        for each in processes:
            begun = [
                other
                for other in agents.begun
                if other.session == session and other.moment < each.begun
            ]
            if each.resumes is None or each.is_fork or not begun:
                continue
            newest = begun[-1]
            is_known = newest.by_person or any(
                frame.process == newest.process and newest.moment < frame.moment < each.begun
                for frame in agents.frames
            )
            if is_known and each.resumes != newest.conversation:
                yield (
                    f"process {each.number} of {session} resumed {each.resumes}, and not "
                    f"{newest.conversation}"
                )


def _said_lost(case: Case) -> Iterator[str]:
    """Find what a person or the agent said in a take-over and is not imported once."""
    agents = case.evidence.agents
    times = {
        session: Counter(each.get("source") for each in agents.entries(session, "event"))
        for session in agents.transcripts
    }
    for each in agents.said:
        if each.session in times and times[each.session][each.source] != 1:
            yield f"{each.text!r} is {times[each.session][each.source]} times in {each.session}"


def _had_turns(agents: AgentEvidence, session: str, before: int) -> bool:
    return any(each.session == session and each.moment < before for each in agents.frames)


def _two_processes(case: Case) -> Iterator[str]:
    """Find processes that began while another one of the session lived."""
    for each in case.evidence.agents.processes:
        if each.beside:
            yield f"process {each.number} of {each.session} began beside {each.beside}"


def _lost(case: Case) -> Iterator[str]:
    """Find acknowledged sessions that are not in the final list, or do not work at the end."""
    agents = case.evidence.agents
    by_id = {each["id"]: each for each in agents.sessions}
    purged = {each.handle for each in _orders(agents, "purge")}
    for spawn in agents.spawned:
        if spawn.id not in by_id and spawn.handle in purged:
            continue
        if spawn.done and by_id.get(spawn.id or "", {}).get("handle") != spawn.handle:
            yield f"{spawn.handle} was spawned as {spawn.id} and is not listed"
    for each in agents.stuck:
        yield f"{each}: it does not come to rest"


def _handle_twice(case: Case) -> Iterator[str]:
    """Find handles of several sessions."""
    agents = case.evidence.agents
    for handle, times in Counter(each["handle"] for each in agents.sessions).items():
        if times > 1:
            yield f"the handle {handle} has {times} sessions"
    named = Counter(each.handle for each in agents.spawned if each.done)
    for handle, times in named.items():
        if times > 1:
            yield f"the handle {handle} was given {times} times"


def _orders(agents: AgentEvidence, *kinds: str, handle: str | None = None) -> list[Ordered]:
    """Return the orders of these kinds that were carried out, or may have been."""
    return [
        each
        for each in agents.ordered
        if each.kind in kinds and each.done is not False and handle in (None, each.handle)
    ]


def _not_closed(case: Case) -> Iterator[str]:
    """Find sessions whose final state is not that of the last close or resume."""
    agents, members = case.evidence.agents, case.evidence.groups.members
    for session in agents.sessions:
        handle, is_closed = session["handle"], session["state"] == "closed"
        closes = _orders(agents, "close", "purge", handle=handle)
        resumes = _orders(agents, "resume", handle=handle)
        for each in closes:
            if each.done and not is_closed and _all_before(resumes, each):
                yield f"{handle} was closed and is {session['state']}"
        for each in resumes:
            if each.done and is_closed and _all_before(closes, each):
                yield f"{handle} was resumed, and is closed"
        if is_closed and not (closes or is_worker(session) or members & {handle, session["id"]}):
            yield f"{handle} is closed, and nobody closed it"


def _all_before(orders: list[Ordered], order: Ordered) -> bool:
    return all(each.span.is_before(order.span) for each in orders)


def _started_late(case: Case) -> Iterator[str]:
    """Find processes that began after the close of their session."""
    agents = case.evidence.agents
    handles = _handles(agents)
    for process in agents.processes:
        handle = handles.get(process.session, "")
        for close in _orders(agents, "close", "purge", handle=handle):
            if not close.done or process.begun < close.span.last:
                continue
            resumes = _orders(agents, "resume", handle=handle) if close.kind == "close" else []
            if _all_before([each for each in resumes if each.span.asked < process.begun], close):
                yield f"process {process.number} began after the {close.kind} of {handle}"


def _not_purged(case: Case) -> Iterator[str]:
    """Find purged sessions that are listed, and files of sessions that are not."""
    agents = case.evidence.agents
    for session in agents.sessions:
        if any(each.done for each in _orders(agents, "purge", handle=session["handle"])):
            yield f"{session['handle']} was purged and is {session['state']}"
    listed = {each["id"] for each in agents.sessions}
    for each in agents.files:
        if each not in listed:
            yield f"{each} has files, and is no session"


SESSION_RULES: dict[str, Rule] = {
    "silently new": Rule("G17", _silently_new),
    "not resumed": Rule("G17", _not_resumed),
    "wrong conversation": Rule("G17", _wrong_conversation),
    "old conversation": Rule("G17", _old_conversation),
    "said lost": Rule("G17", _said_lost),
    "two processes": Rule("G17", _two_processes),
    "session lost": Rule("G17", _lost),
    "handle twice": Rule("G17", _handle_twice),
    "not closed": Rule("G17", _not_closed),
    "started late": Rule("G17", _started_late),
    "not purged": Rule("G17", _not_purged),
}
