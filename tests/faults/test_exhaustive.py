"""Ring 1: no fault at any place in these scenarios loses acknowledged data.

Here a slice of it is tried; ``just ring1`` tries all.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from tests.chaos.exhaustive import Effort, Exploration, Scenario
from tests.chaos.strikes import Kind
from tests.faults.canvases import Sections
from tests.faults.conftest import PROPERTY
from tests.faults.groups import Broadcasts
from tests.faults.inboxes import HandOver
from tests.faults.ledgers import Append
from tests.faults.names import NamedWorkspaces, OpenTerminals, Subscriptions
from tests.faults.old_sessions import OldSessions
from tests.faults.queues import Tasks
from tests.faults.raw_logs import Rotation
from tests.faults.renaming import Renames
from tests.faults.requests import Answers
from tests.faults.sessions import Turns
from tests.faults.tables import Compaction
from tests.faults.terminals import OnTerminals, Purge, Recovery, Spawn, StartRunFinish, TypeAhead
from tests.faults.transcripts import Transcripts
from tests.faults.workflows import Steps

SCENARIOS: tuple[Scenario, ...] = (
    Append("append", (1, 1)),
    Append("group commit", (5, 3)),
    Append("split of a ledger", (2, 2), segment_bytes=400),
    Append("deletion of old records", (2, 2), segment_bytes=400, archive_bytes=1),
    Compaction(),
    HandOver(),
    HandOver(name="deferred inbox hand-over", deferred=("bob",)),
    Answers(),
    Tasks(),
    Sections(),
    Sections(name="edit in an exchange", edits_at="exchange"),
    Sections(name="exchange in steps", in_steps=True, edits_at="link", number=2),
    Broadcasts(),
    Steps(),
    Turns(),
    Renames(),
    OldSessions(),
    Transcripts(),
    Subscriptions(),
    OpenTerminals(),
    NamedWorkspaces(),
    Rotation(),
    StartRunFinish(),
    TypeAhead(),
    Recovery(),
    Spawn(),
    Purge(),
)

RAW_LOG_STEP = 20
"""The raw log is not synced: it has very many images, and few promises."""

LIVE_STEP = 6
"""Each image of a canvas or of workflows needs actors, and there are thousands."""

SESSION_STEP = 40
"""A transcript has events that are not synced: it has many images, and few promises."""

EVERY_STRIKE = Effort(image_step=1999, second_step=199, left_step=9973, max_product=16)
A_SLICE = Effort(
    strike_step=179, image_step=2999, second_step=8, call_step=9, left_step=9973, max_product=16
)
"""The effort for whole terminals: each image needs a daemon, and there are millions."""

ALWAYS = {Kind.DIE, Kind.EIO, Kind.ENOSPC}


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_nothing_acknowledged_is_lost_wherever_a_fault_strikes(
    scenario: Scenario,
    effort: Effort | None,
    order: int,
    record_property: Callable[[str, object], None],
) -> None:
    is_slice = effort is not None and isinstance(scenario, OnTerminals)
    effort = _effort_for(scenario, effort)
    findings = Exploration(scenario, effort, seed=order).explore()
    figures = findings.figures
    record_property(
        PROPERTY, {"scenario": scenario.name} | {name: figures[name] for name in COLUMNS}
    )
    assert set(findings.kinds) >= ({Kind.DIE} if is_slice else ALWAYS)
    assert figures["deaths inside recovery"] > 0
    assert not findings.violations, "\n".join(map(str, findings.violations[:5]))


def _effort_for(scenario: Scenario, effort: Effort | None) -> Effort:
    if isinstance(scenario, OnTerminals):
        if effort is None:
            return EVERY_STRIKE
        # It passes few places: of so short a scenario more of them are tried.
        return attrs.evolve(A_SLICE, strike_step=37) if scenario.name == "type-ahead" else A_SLICE
    effort = effort or Effort()
    if isinstance(scenario, Turns):
        step = SESSION_STEP * effort.image_step
        # Squared: all strikes of ring 1, few of a slice.
        return attrs.evolve(
            effort,
            strike_step=effort.strike_step**2,
            image_step=step,
            second_step=4,
            call_step=3,
            left_step=step,
        )
    if isinstance(scenario, Sections | Steps):
        step = LIVE_STEP * effort.image_step
        return attrs.evolve(
            effort,
            strike_step=effort.strike_step**2,
            image_step=step,
            second_step=4 * effort.second_step,
            call_step=3,
            left_step=step,
        )
    if isinstance(scenario, Rotation):
        step = RAW_LOG_STEP * effort.image_step
        return attrs.evolve(effort, image_step=step, second_step=step)
    return effort


COLUMNS = (
    "places x passes",
    "strikes",
    "images",
    "different images",
    "deaths inside recovery",
    "images after those",
    "images of a next life",
    "violations",
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_run_with_one_seed_passes_the_same_places(scenario: Scenario) -> None:
    hits = [Exploration(scenario, seed=7).run(None).hits for _ in range(2)]
    assert hits[0] == hits[1]
