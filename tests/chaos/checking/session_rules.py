"""Rules for sessions: none is lost, and none gets a new conversation silently. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.chaos.checking.agent_evidence import AgentEvidence, Process
from tests.chaos.checking.case import Case
from tests.chaos.checking.rule import Rule


def _of_session(agents: AgentEvidence) -> dict[str, list[Process]]:
    """Return the processes of each session, in the order of their starts."""
    found: dict[str, list[Process]] = {}
    for each in agents.processes:
        found.setdefault(each.session, []).append(each)
    return found


def _silently_new(case: Case) -> Iterator[str]:
    """Find new conversations of a session that had one, without the last texts of that one."""
    agents = case.evidence.agents
    for session, processes in _of_session(agents).items():
        for each in processes:
            had_one = any(
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


def _two_processes(case: Case) -> Iterator[str]:
    """Find processes that began while another one of the session lived."""
    for each in case.evidence.agents.processes:
        if each.beside:
            yield f"process {each.number} of {each.session} began beside {each.beside}"


def _lost(case: Case) -> Iterator[str]:
    """Find acknowledged sessions that are not in the final list, or do not work at the end."""
    agents = case.evidence.agents
    by_id = {each["id"]: each for each in agents.sessions}
    for spawn in agents.spawned:
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


def _not_closed(case: Case) -> Iterator[str]:
    """Find closed sessions that live on, and sessions that nobody closed."""
    agents = case.evidence.agents
    for session in agents.sessions:
        closes = [
            each
            for each in agents.ordered
            if each.kind == "close" and each.handle == session["handle"]
        ]
        is_closed = session["state"] == "closed"
        sure = [each for each in closes if each.done]
        if sure and not is_closed:
            yield f"{session['handle']} was closed and is {session['state']}"
        if is_closed and not [each for each in closes if each.done is not False]:
            yield f"{session['handle']} is closed, and nobody closed it"
        for process in agents.processes:
            late = process.session == session["id"] and [
                each for each in sure if each.span.last < process.begun
            ]
            if late:
                yield f"process {process.number} began after the close of {session['handle']}"


SESSION_RULES: dict[str, Rule] = {
    "silently new": Rule("G17", _silently_new),
    "not resumed": Rule("G17", _not_resumed),
    "two processes": Rule("G17", _two_processes),
    "session lost": Rule("G17", _lost),
    "handle twice": Rule("G17", _handle_twice),
    "not closed": Rule("G17", _not_closed),
}
