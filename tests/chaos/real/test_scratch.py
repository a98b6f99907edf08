"""Daemons of scratch roots."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.real.scratch import ScratchDaemon, ScratchError

pytestmark = pytest.mark.real


def test_of_a_daemon_that_does_not_start_nothing_is_left(tmp_path: Path) -> None:
    daemon = ScratchDaemon(tmp_path)
    with pytest.raises(ScratchError, match=r"the daemon did not start: .*--port"):
        daemon.start("--port", "none")
    assert daemon.process.returncode is not None
    assert daemon.process.stdout is not None
    assert daemon.process.stdout.closed
