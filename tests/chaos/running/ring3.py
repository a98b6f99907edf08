"""Ring 3: real daemons in a scratch directory, killed until a limit is reached."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.chaos.checking.checker import Violation
from tests.chaos.real.agents.kills import DaemonKill
from tests.chaos.real.agents.run import AgentRun
from tests.chaos.real.deaths import Death
from tests.chaos.real.run import RealRun
from tests.chaos.real.table import by_kind
from tests.chaos.running.closing import NARROWEST, WIDEST, rows
from tests.chaos.running.failure import violation_lines
from tests.chaos.running.figures import BROKE_OFF
from tests.chaos.running.progress import Progress
from tests.chaos.running.ring2 import Limits

REGISTRY = "XDG_STATE_HOME"
"""The variable with the directory of the registry of states."""


@contextlib.contextmanager
def _registry_in(directory: Path) -> Iterator[None]:
    """Keep scratch roots out of the registry of the user's own states."""
    before = os.environ.get(REGISTRY)
    os.environ[REGISTRY] = str(directory / "registry")
    try:
        yield
    finally:
        del os.environ[REGISTRY]
        if before is not None:
            os.environ[REGISTRY] = before


class Ring3:
    """One run; ``limits.seeds`` are incarnations. ``is_interrupted``: by Ctrl-C."""

    form: type[RealRun] | type[AgentRun] = RealRun
    unit = "lives"
    option = "--real"

    def __init__(self, limits: Limits, progress: Progress) -> None:
        self._limits = limits
        self._progress = progress
        self._began = time.monotonic()
        self._directory = Path(tempfile.mkdtemp(prefix="aegis-chaos-"))
        self._run = self.form(
            self._directory,
            limits.first,
            progress=self._show,
            lives=limits.seeds,
            minutes=None if limits.seconds is None else limits.seconds / 60,
        )
        self._lives = 0
        self.is_interrupted = False

    @property
    def seconds(self) -> float:
        """Return the seconds since the start of the run."""
        return time.monotonic() - self._began

    @property
    def violations(self) -> list[Violation]:
        """Return the violations."""
        return self._run.violations

    @property
    def is_broken(self) -> bool:
        """Return whether a promise was broken."""
        return bool(self.violations)

    def run(self) -> None:
        """Run until a limit, the first violation, or Ctrl-C; keep only the root of a violation."""
        try:
            with _registry_in(self._directory):
                self._run.run()
        except KeyboardInterrupt:
            self.is_interrupted = True
        except Exception as error:
            self._run.violations.append(Violation(BROKE_OFF, f"{type(error).__name__}: {error}"))
        finally:
            self._progress.clear()
            if not self.violations:
                shutil.rmtree(self._directory, ignore_errors=True)

    def _show(self, lives: int, death: Death | DaemonKill) -> None:
        self._lives = lives
        of = "" if self._limits.seeds is None else f" of {self._limits.seeds:,}"
        self._progress.show(
            f"{lives:,}{of} {self.unit}",
            death.place,
            f"{lives / self.seconds:.1f} {self.unit}/s",
        )

    def failure(self) -> Iterator[str]:
        """Return the report of a broken promise, line by line."""
        if self.violations:
            yield "a promise was broken:"
            yield from violation_lines(self.violations)
            yield f"the daemon's state and its log are in {self._run.root}"
            yield "the same deaths and the same load again, not the same timing:"
            yield f"  .ci/uv run just chaos {self.option} --seed {self._limits.first}"

    def table(self, columns: int) -> str:
        """Return the table of attempts and checks, fit for so many columns."""
        figures = by_kind(self._run.figures)
        unjudged = self._lives - figures["daemons killed"]
        width = max(NARROWEST, min(columns, WIDEST))
        table = rows([*figures.items(), ("killed, and not yet judged", unjudged)], width)
        if self._run.untraced is None:
            return table
        return f"{table}\n\nnone was killed at a call of the disk: {self._run.untraced}"


class AgentRing(Ring3):
    """One run of daemons with agents; ``limits.seeds`` are kills of agents, guards and daemons."""

    form = AgentRun
    unit = "kills"
    option = "--real --agents"

    def table(self, columns: int) -> str:
        """Return the table of kills and checks, fit for so many columns."""
        figures = self._run.figures
        unjudged = self._lives - figures.get("kills", 0)
        width = max(NARROWEST, min(columns, WIDEST))
        return rows([*figures.items(), ("killed, and not yet judged", unjudged)], width)
