"""The steps and faults of histories with agents, and how often they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Protocol

from tests.chaos.histories import script as s
from tests.chaos.machine.simulated_agent import KINDS

POINTS: Mapping[str, int] = {
    "agent.start.before": 4,
    "agent.start.after": 4,
    "turn.acknowledge.before": 8,
    "turn.send.before": 8,
    "turn.send.after": 8,
    "turn.notify.before": 2,
    "answer.write.before": 2,
    "answer.write.after": 2,
    "frame.write.before": 15,
    "ledger.append.before[requests.jsonl]": 6,
    "ledger.append.after[requests.jsonl]": 6,
    "request.apply.before": 2,
    "request.apply.after": 2,
    "ledger.append.after[transcript.jsonl]": 60,
    "ledger.append.before[transcript.jsonl]": 60,
    "ledger.append.after[sessions.jsonl]": 2,
    "ledger.sync.before[transcript.jsonl]": 20,
    "ledger.sync.after[transcript.jsonl]": 20,
    "ledger.sync.after[requests.jsonl]": 6,
    "actor.receive.before[AgentSession]": 60,
    "actor.receive.after[AgentSession]": 60,
    "actor.receive.before[AgentDirectory]": 15,
    "actor.receive.after[AgentDirectory]": 15,
    "actor.receive.before[RequestDesk]": 15,
    "actor.receive.after[RequestDesk]": 15,
    "actor.receive.before[Driver]": 8,
    "actor.receive.after[Driver]": 8,
    "actor.setup.before[AgentSession]": 2,
    "actor.setup.after[AgentSession]": 2,
    "actor.setup.after[Driver]": 3,
    "actor.setup.after[AgentDirectory]": 1,
    "actor.setup.after[RequestDesk]": 1,
    "purge.rename.after": 1,
}
"""The fault points that may be struck, with the most passes that precede the strike."""


class Drawing(Protocol):
    """The part of a drawing that is used here."""

    chance: Random

    def one_of(self, choices: Sequence[str]) -> str: ...

    def seconds(self, most: float) -> float: ...


def _by(drawing: Drawing, most: float = 0.3) -> str | None:
    """Return the session that calls, or None for the client."""
    return drawing.one_of(s.AGENTS) if drawing.chance.random() < most else None


def _agent(drawing: Drawing) -> str:
    return drawing.one_of((s.ANN, s.ANN, s.BEN, s.BEN, s.CLEO, s.DAN, s.FAY, s.GUS))


def _kind(drawing: Drawing) -> str:
    weights = {"quick": 6, "slow": 8, "ask": 8}
    [kind] = drawing.chance.choices(KINDS, [weights.get(kind, 2) for kind in KINDS])
    return kind


def _spawn(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.SpawnAgentStep(
        **who,
        agent=drawing.one_of((s.ANN, s.CLEO, s.CLEO, s.DAN, s.DAN)),
        by=_by(drawing),
        work=_kind(drawing) if drawing.chance.random() < 0.7 else None,
        is_unnamed=drawing.chance.random() < 0.2,
    )


def _work(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    by = s.HUMAN if drawing.chance.random() < 0.2 else _by(drawing)
    return s.WorkStep(**who, agent=_agent(drawing), by=by, kind=_kind(drawing))


def _interrupt(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.InterruptAgentStep(**who, agent=_agent(drawing), by=_by(drawing, 0.1))


def _restart(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.RestartAgentStep(**who, agent=_agent(drawing), by=_by(drawing, 0.1))


def _close(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    agent = drawing.one_of((s.BEN, s.BEN, s.CLEO, s.DAN, s.FAY))
    return s.CloseAgentStep(**who, agent=agent, by=_by(drawing, 0.2))


def _maybe_work(drawing: Drawing) -> str | None:
    return _kind(drawing) if drawing.chance.random() < 0.6 else None


def _resume(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    agent = drawing.one_of((s.BEN, s.BEN, s.CLEO, s.DAN, s.FAY))
    return s.ResumeAgentStep(**who, agent=agent, work=_maybe_work(drawing))


def _clear(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.ClearStep(**who, agent=_agent(drawing))


def _take_over(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.TakeOverStep(**who, agent=_agent(drawing), interrupts=drawing.chance.random() < 0.5)


def _hand_back(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.HandBackStep(**who, agent=_agent(drawing))


def _fork(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    fork = drawing.one_of((s.FAY, s.GUS))
    agent = drawing.one_of((s.ANN, s.ANN, s.BEN, s.FAY))
    return s.ForkAgentStep(**who, agent=agent, fork=fork, work=_maybe_work(drawing))


def _purge(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.PurgeAgentStep(**who, agent=drawing.one_of((s.BEN, s.CLEO, s.CLEO, s.DAN, s.FAY)))


def _subscribe(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.SubscribeAgentStep(**who, agent=_agent(drawing), terminal=s.SHARED)


def _show(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.ShowAgentStep(**who, agent=_agent(drawing))


def _read(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.ReadSessionStep(**who, agent=_agent(drawing), by=_by(drawing, 0.2))


def _answer(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.AnswerStep(
        **who,
        draw=drawing.chance.randrange(1000),
        answer=drawing.one_of(("allow", "allow", "deny", "cancel")),
        is_shown=drawing.chance.random() < 0.85,
        is_late=drawing.chance.random() < 0.1,
        twice=drawing.chance.random() < 0.3,
    )


STEPS: Mapping[Callable[[Any, dict[str, Any]], s.Step], int] = {
    _spawn: 8,
    _work: 60,
    _interrupt: 8,
    _restart: 5,
    _close: 5,
    _resume: 6,
    _fork: 8,
    _purge: 5,
    _subscribe: 3,
    _show: 5,
    _read: 3,
    _answer: 40,
}
"""The steps of every client, with their weights, beside those of all histories."""

STEPS_OF_PERSONS: Mapping[Callable[[Any, dict[str, Any]], s.Step], int] = {
    _clear: 20,
    _take_over: 40,
    _hand_back: 40,
}
"""The steps of people who command agents and take them over, beside ``STEPS``."""

POINTS_OF_PERSONS: Mapping[str, int] = {
    f"takeover.{step}": 3
    for step in (
        *("open.before", "run.before", "run.after", "end.before", "read.before"),
        "back.before",
    )
}
"""Their fault points, as ``POINTS``."""


def _agent_killed(drawing: Drawing, step: int) -> s.ScriptFault:
    draw = drawing.chance.randrange(1000)
    return s.AgentKilledFault(step=step, after_s=drawing.seconds(0.2), draw=draw)


def _forgotten(drawing: Drawing, step: int) -> s.ScriptFault:
    return s.ForgottenFault(step=step, draw=drawing.chance.randrange(1000))


def _unstartable(drawing: Drawing, step: int) -> s.ScriptFault:
    return s.UnstartableFault(step=step, starts=drawing.chance.randint(1, 4))


FAULTS: Mapping[Callable[[Any, int], s.ScriptFault], int] = {
    _agent_killed: 4,
    _forgotten: 2,
    _unstartable: 2,
}
"""The faults, with their weights, beside those of all histories."""
