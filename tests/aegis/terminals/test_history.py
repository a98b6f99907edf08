"""Reading a terminal's ledger: what is wrong with it is logged, once."""

from __future__ import annotations

from pathlib import Path

import attrs
from structlog.testing import capture_logs

from aegis.journal.ledger import encode_line
from aegis.protocol.terminals import ReadRecords
from aegis.terminals.history import History
from tests.aegis.terminals.samples import RECORD


def line(seq: int) -> bytes:
    return encode_line(attrs.asdict(attrs.evolve(RECORD, seq=seq), recurse=False))


async def events(path: Path) -> list[tuple[str, int, int]]:
    """The gaps that are logged when all is read, twice."""
    history = History(path)
    with capture_logs() as logs:
        for _ in range(2):
            await history.read(ReadRecords(name="build", since_seq=-1))
    return [
        (each["event"], each["after"], each["before"])
        for each in logs
        if each["event"] == "records missing"
    ]


async def test_a_gap_in_the_numbers_is_logged_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(line(0) + line(1) + line(5) + line(6) + line(9))
    assert await events(path) == [("records missing", 1, 5), ("records missing", 6, 9)]


async def test_numbers_that_damaged_lines_may_have_had_are_no_gap(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(line(0) + b"damaged\n" + line(2) + line(3))
    assert await events(path) == []
