"""The system clock steps back: times of day follow it, durations do not."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Self

import pytest
import trio

from aegis import clock
from aegis.protocol import terminals as api
from tests.e2e.harness import GUARD_S, Gate
from tests.e2e.inside import daemon_inside

pytestmark = pytest.mark.real


class SteppingClock(datetime):
    """The system's time of day, with what somebody set it back by taken off."""

    back = timedelta()

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return super().now(tz) - cls.back


@pytest.fixture
def stepping_clock(monkeypatch: pytest.MonkeyPatch) -> type[SteppingClock]:
    """The clock that every file of the daemon reads the time of day from."""
    monkeypatch.setattr(SteppingClock, "back", timedelta())
    monkeypatch.setattr(clock, "datetime", SteppingClock)
    return SteppingClock


async def test_trap_26_a_duration_is_right_though_the_clock_steps_back_meanwhile(
    tmp_path: Path, stepping_clock: type[SteppingClock], gate: Gate
) -> None:
    async with daemon_inside(tmp_path) as daemon:
        await daemon.spawn("build")
        begun = api.RunCommand(name="build", cmd=f"echo begun; {gate.hold}", timeout=0.5)
        assert (await daemon.ask("build", begun)).timed_out
        await daemon.has_printed("build", "begun")
        stepping_clock.back = timedelta(hours=1)
        await trio.sleep(0.5)
        gate.open()
        ended = await daemon.ask("build", api.RunCommand(name="build", cmd="true", timeout=GUARD_S))
        [record, _] = await daemon.records("build")
        assert record.finished_at is not None
        assert record.finished_at < record.started_at
        assert record.duration_s is not None
        assert 0.5 <= record.duration_s < GUARD_S
        assert ended.duration_s is not None
        assert 0 <= ended.duration_s < GUARD_S
        assert [each.seq for each in await daemon.records("build")] == [0, 1]
