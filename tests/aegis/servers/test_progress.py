"""What a caller is shown of its progress."""

from __future__ import annotations

import pytest

from aegis.servers.progress import shown_line


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (None, ""),
        ("", ""),
        ("  20% done  ", "20% done"),
        ("a\tb\x1b[2Jc", "a b [2Jc"),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 199 + "…"),
    ],
)
def test_a_line_is_short_and_holds_nothing_that_a_terminal_obeys(
    line: str | None, shown: str
) -> None:
    assert shown_line(line) == shown
