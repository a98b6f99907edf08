"""What a ledger holds, folded line by line: checksums, and whether a number is missing. Pure."""

from __future__ import annotations

import attrs

from aegis.doctor.finding import Finding, ok, problem, warning
from aegis.journal.ledger import Damaged, Line

NUMBER = "seq"
MAX_SHOWN = 5


@attrs.define
class Survey:
    """The lines of one ledger seen so far, in their order; ``torn`` bytes follow the last one.

    A damaged line may have held any one number. So numbers are missing only where more of them
    are skipped than damaged lines stand between.
    """

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
        """The highest number that a line has or may have had; -1 if there is none."""
        return (-1 if self._expected is None else self._expected - 1) + self._excused

    def see(self, judged: Line | Damaged, misfit: str | None = None) -> None:
        """Take the next line. ``misfit``: why a line that checks cannot be read; None if it can."""
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
        number = judged.fields.get(NUMBER)
        if type(number) is int:
            self._number(number)

    def _number(self, number: int) -> None:
        expected = 0 if self._expected is None else self._expected
        if number < expected:
            self._fault(f"{number} comes again after {expected - 1}")
        elif number - expected > self._excused:
            missing = str(expected) if number == expected + 1 else f"{expected} to {number - 1}"
            self._fault(f"{missing} missing")
        self._expected, self._excused = max(expected, number + 1), 0

    def _fault(self, text: str) -> None:
        self.fault_count += 1
        if len(self.faults) < MAX_SHOWN:
            self.faults.append(text)


def judge_ledger(subject: str, survey: Survey, *, is_in_use: bool) -> list[Finding]:
    """What a survey says. ``is_in_use``: a daemon may be in the middle of an append."""
    found = []
    if survey.fault_count:
        found.append(
            problem(
                subject,
                f"its numbers have {survey.fault_count} faults: {', '.join(survey.faults)}",
                "keep a copy of the file: what is missing was lost, or somebody edited it",
            )
        )
    if survey.damaged_count:
        places = ", ".join(str(each.start) for each in survey.damaged)
        found.append(
            warning(
                subject,
                f"{survey.damaged_count} lines do not check (first at byte {places}); "
                "they are passed over and stay where they are",
                "check the disk: their bytes were changed behind the daemon's back",
            )
        )
    if survey.foreign_count:
        found.append(
            warning(
                subject,
                f"{survey.foreign_count} lines are no records of this version ("
                f"{'; '.join(survey.foreign)}); they are skipped and stay where they are",
                "use the version of aegis-actors that wrote them, or a newer one",
            )
        )
    if survey.torn and not is_in_use:
        found.append(
            warning(
                subject,
                f"the last {survey.torn} bytes are an append that was cut short",
                "the next up keeps them aside, or: aegis-actors doctor --repair",
            )
        )
    return found or [ok(subject, f"{survey.lines} lines check")]
