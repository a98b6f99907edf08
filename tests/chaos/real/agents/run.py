"""Real daemons with agents, killed again and again: some incarnations on one root, then more."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from tests.chaos.checking.agent_evidence import AgentEvidence
from tests.chaos.checking.checker import Violation
from tests.chaos.real.agents.campaign import AgentCampaign
from tests.chaos.real.agents.kills import DaemonKill, Life, endless_lives
from tests.chaos.real.scratch import free_port

LIVES_OF_ROOT = 12
"""The number of incarnations of a root before it is checked."""

KILLED = "killed "
"""The prefix of a place in the figures."""

Progress = Callable[[int, DaemonKill], None]
"""A function that is called after each incarnation, with all kills so far and its death."""


class AgentRun:
    """A run in ``directory``, limited by kills or minutes.

    The same seed gives the same kills and the same load, not the same timing. ``figures``,
    ``violations`` and ``root`` are as in ``RealRun``; ``untraced`` is None: nothing is traced.
    """

    def __init__(
        self,
        directory: Path,
        seed: int,
        *,
        progress: Progress,
        lives: int | None = None,
        minutes: float | None = None,
    ) -> None:
        self.figures: dict[str, int] = {}
        self.violations: list[Violation] = []
        self.root: Path | None = None
        self.untraced: str | None = None
        self._directory = directory
        self._chance = random.Random(seed)
        self._progress = progress
        self._most = lives
        self._end = None if minutes is None else time.monotonic() + 60 * minutes
        self._kills = 0
        self._roots = 0

    def run(self) -> None:
        """Run until a limit, or the first root with a broken promise. Leave no process."""
        planned = endless_lives(self._chance)
        while not self.violations and self._may_go_on(self._kills):
            self._live(list(islice(planned, LIVES_OF_ROOT)))

    def _may_go_on(self, kills: int) -> bool:
        is_enough = self._most is not None and kills >= self._most
        return not is_enough and (self._end is None or time.monotonic() < self._end)

    def _live(self, lives: list[Life]) -> None:
        self.root = self._directory / str(self._roots)
        self.root.mkdir()
        self._roots += 1
        campaign = AgentCampaign(self.root, self._chance, port=free_port(self._chance))
        try:
            campaign.prepare()
            for life in lives:
                campaign.live(life)
                kills = self._kills + sum(campaign.kills.values())
                self._progress(kills, life.death)
                if not self._may_go_on(kills):
                    break
            evidence = campaign.finish()
        finally:
            campaign.clean_up()
        self.violations = campaign.violations(evidence)
        self._kills += sum(campaign.kills.values())
        counted = figures(evidence.agents, campaign.kills, self.violations)
        self.figures = dict(Counter(self.figures) + Counter(counted)) | {
            "violations": len(self.violations)
        }


def figures(agents: AgentEvidence, kills: dict[str, int], found: list[Violation]) -> dict[str, int]:
    """Return the kills at each place, and the counts of the checks."""
    ends = [each for turns in agents.transcripts.values() for each in turns]
    outcomes = Counter(each["outcome"] for each in ends if each["kind"] == "turn_ended")
    return {
        **{f"{KILLED}{place}": number for place, number in sorted(kills.items())},
        "kills": sum(kills.values()),
        "processes of agents": len(agents.processes),
        "messages accepted": sum(each.receipt is not None for each in agents.work),
        "turns that agents got": len(agents.frames),
        **{f"turns {name}": number for name, number in sorted(outcomes.items())},
        "requests": len(agents.requests),
        "answers that agents got": len(agents.effects),
        "take-overs": sum(each.is_person for each in agents.processes),
        "texts of take-overs": len(agents.said),
        "cleared conversations": len(agents.begun),
        "violations": len(found),
    }
