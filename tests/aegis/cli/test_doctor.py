"""What ``doctor`` says in the end of all that it found."""

from __future__ import annotations

import pytest

from aegis.cli.doctor import summary
from aegis.doctor.finding import ok, problem, warning

GOOD, BAD = ok("disk", "is there"), problem("keys", "are not there", "make some")
KNOWN = warning("clock", "went back", "wait")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([GOOD], "all is well"),
        ([GOOD, BAD], "1 problem"),
        ([KNOWN, BAD, KNOWN, BAD], "2 problems, 2 warnings"),
        ([GOOD, KNOWN], "1 warning"),
    ],
)
def test_the_last_line_counts_what_is_wrong(found: list[object], said: str) -> None:
    assert summary(found) == said
