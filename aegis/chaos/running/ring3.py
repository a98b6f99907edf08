"""Ring 3 for a user: real daemons below a temporary directory, killed again and again."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from aegis.chaos.real.deaths import Death
from aegis.chaos.real.run import RealOutcome, run_real
from aegis.chaos.real.scratch import ScratchError
from aegis.chaos.real.table import KILLED
from aegis.chaos.running.closing import NARROWEST, WIDEST, rows
from aegis.chaos.running.failure import violation_lines
from aegis.chaos.running.progress import Progress


@attrs.frozen(kw_only=True)
class RealLimits:
    """What ends a run, beside a violation. None: no such limit."""

    seed: int
    lives: int | None
    minutes: float | None


class Ring3:
    """One run. ``is_interrupted``: by Ctrl-C; what the last root would have shown is not known."""

    def __init__(self, limits: RealLimits, progress: Progress) -> None:
        self._limits = limits
        self._progress = progress
        self._began = time.monotonic()
        self._deaths: Counter[str] = Counter()
        self._outcome: RealOutcome | None = None
        self._trouble = ""
        self.is_interrupted = False

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return time.monotonic() - self._began

    @property
    def is_broken(self) -> bool:
        """Whether a promise was broken, or a daemon could not be tried."""
        return bool(self._trouble) or (self._outcome is not None and bool(self._outcome.violations))

    def run(self) -> None:
        """Until a limit, a violation or Ctrl-C. The directory stays where something was broken."""
        self._directory = Path(tempfile.mkdtemp(prefix="aegis-chaos-"))
        limits = self._limits
        try:
            self._outcome = run_real(
                self._directory,
                limits.seed,
                progress=self._tell,
                lives=limits.lives,
                minutes=limits.minutes,
            )
        except KeyboardInterrupt:
            self.is_interrupted = True
        except ScratchError as error:
            self._trouble = str(error)
        finally:
            self._progress.clear()
            if not self.is_broken:
                shutil.rmtree(self._directory, ignore_errors=True)

    def _tell(self, number: int, death: Death) -> None:
        self._deaths[f"{KILLED}{death.place}"] += 1
        of = "" if self._limits.lives is None else f" of {self._limits.lives:,}"
        pace = f"{60 * number / max(self.seconds, 0.001):.0f} a minute"
        self._progress.show(f"{number:,}{of} lives", pace, f"last {death.place}")

    def failure(self) -> Iterator[str]:
        """What is told of a broken promise, line by line."""
        if self._trouble:
            yield f"a daemon could not be tried: {self._trouble}"
        elif self._outcome is not None and self._outcome.violations:
            yield "a promise was broken:"
            yield from violation_lines(self._outcome.violations)
        if self.is_broken:
            yield f"what it left is in {self._directory}"
            yield "the same deaths again, though not the same moments:"
            yield f"  aegis-actors chaos --real --seed {self._limits.seed}"

    def table(self, columns: int) -> str:
        """Where daemons were killed, and what was checked."""
        outcome = self._outcome
        figures: Mapping[str, int] = self._deaths if outcome is None else outcome.figures
        kills = sorted((name, n) for name, n in figures.items() if name.startswith(KILLED))
        checked = [(name, n) for name, n in figures.items() if not name.startswith(KILLED)]
        width = max(NARROWEST, min(columns, WIDEST))
        parts = [rows([("kills", sum(n for _, n in kills)), *kills], width), rows(checked, width)]
        if outcome is not None and outcome.untraced is not None:
            parts.append(f"no kill at a call of the disk: {outcome.untraced}")
        return "\n\n".join(part for part in parts if part)
