"""The survey of a ledger: checksums and missing sequence numbers. Pure."""

from __future__ import annotations

import attrs

from aegis.doctor.finding import Finding, ok, problem, warning
from aegis.journal.ledger import Damaged, Line
from aegis.journal.rotation import AFTER

NUMBER = "seq"
MAX_SHOWN = 5


@attrs.define
class Survey:
    """A summary of the lines of one ledger; ``torn`` bytes follow the last line.

    ``first`` is the number of the first line, unless a head says which lines were before it. A
    damaged line may have had any one number. So numbers are missing only if more of them are
    skipped than there are damaged lines in between.
    """

    first: int = 0
    lines: int = 0
    damaged: list[Damaged] = attrs.field(factory=list)
    damaged_count: int = 0
    torn: int = 0
    foreign: list[str] = attrs.field(factory=list)
    foreign_count: int = 0
    faults: list[str] = attrs.field(factory=list)
    fault_count: int = 0
    _expected: int | None = None
    _excused: int = 0

    @property
    def highest(self) -> int:
        """Return the highest number that a line has or may have had; -1 without lines."""
        return (-1 if self._expected is None else self._expected - 1) + self._excused

    def see(self, judged: Line | Damaged, misfit: str | None = None) -> None:
        """Add the next line. ``misfit``: why an intact line cannot be read; None if it can."""
        if isinstance(judged, Damaged):
            self.damaged_count += 1
            self._excused += 1
            if len(self.damaged) < MAX_SHOWN:
                self.damaged.append(judged)
            return
        self.lines += 1
        if misfit is not None:
            self.foreign_count += 1
            if len(self.foreign) < MAX_SHOWN:
                self.foreign.append(f"at byte {judged.start}: {misfit}")
        number, after = judged.fields.get(NUMBER), judged.fields.get(AFTER)
        if type(number) is int:
            self._number(number)
        elif type(after) is int and judged.start == 0:  # the head of a file after a rotation
            self._expected = after + 1

    def _number(self, number: int) -> None:
        expected = self.first if self._expected is None else self._expected
        if number < expected:
            self._fault(f"{number} is repeated after {expected - 1}")
        elif number - expected > self._excused:
            missing = str(expected) if number == expected + 1 else f"{expected} to {number - 1}"
            self._fault(f"{missing} missing")
        self._expected, self._excused = max(expected, number + 1), 0

    def _fault(self, text: str) -> None:
        self.fault_count += 1
        if len(self.faults) < MAX_SHOWN:
            self.faults.append(text)


def judge_ledger(subject: str, survey: Survey, *, is_in_use: bool) -> list[Finding]:
    """Return the findings of a survey. ``is_in_use``: a daemon may be appending a line."""
    found = []
    if survey.fault_count:
        found.append(
            problem(
                subject,
                f"its numbers have {survey.fault_count} faults: {', '.join(survey.faults)}",
                "keep a copy of the file: records were lost, or another program edited it",
            )
        )
    if survey.damaged_count:
        places = ", ".join(str(each.start) for each in survey.damaged)
        found.append(
            warning(
                subject,
                f"{survey.damaged_count} lines have a bad checksum (first at byte {places}); "
                "they are skipped and not changed",
                "check the disk: another program or the disk changed their bytes",
            )
        )
    if survey.foreign_count:
        found.append(
            warning(
                subject,
                f"{survey.foreign_count} lines are not records of this version ("
                f"{'; '.join(survey.foreign)}); they are skipped and not changed",
                "use the version of aegis-actors that wrote them, or a newer one",
            )
        )
    if survey.torn and not is_in_use:
        found.append(
            warning(
                subject,
                f"the last {survey.torn} bytes are an unfinished append",
                "the next up sets them aside, or, before it: aegis-actors doctor --repair",
            )
        )
    return found or [ok(subject, f"{survey.lines} lines are intact")]
