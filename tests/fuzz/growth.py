"""Whether the time per byte stays the same when the same bytes come again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from aegis.processes.capture import OutputCapture
from aegis.terminals.parse.boundaries import Boundaries
from aegis.terminals.parse.control_sequences import SequenceScanner
from aegis.terminals.parse.osc133 import Mark, MarkParser, PasteMode
from aegis.terminals.parse.plain import LOOKAHEAD_BYTES, take_plain
from tests.fuzz.grammar import SECRET, script

MAX_RATIO = 10.0
"""Of four times the bytes: linear is 4, the square is 16."""

SHORTEST_S = 0.01
"""What takes less says nothing: the square of it would still be soon done."""


def feed_marks(data: bytes, step: int) -> None:
    """Parse ``data`` in chunks of ``step`` bytes and follow its marks."""
    parser, state = MarkParser(SECRET), Boundaries()
    for at in range(0, len(data), step):
        for event in parser.feed(data[at : at + step]):
            if isinstance(event, Mark):
                state.mark(event)
            elif isinstance(event, PasteMode):
                state.paste_mode(event.on)
    parser.close()


def feed_text(data: bytes, step: int) -> None:
    """Clean ``data`` in chunks of ``step`` bytes, with a snapshot in every 64 KiB."""
    capture = OutputCapture()
    for at in range(0, len(data), step):
        capture.feed(data[at : at + step])
        if at % 65_536 < step:
            capture.snapshot()
    capture.result()


def feed_queries(data: bytes, step: int) -> None:
    """Look for questions in ``data`` in chunks of ``step`` bytes."""
    scanner = SequenceScanner()
    for at in range(0, len(data), step):
        scanner.feed(data[at : at + step], at)


def feed_plain(data: bytes, step: int) -> None:
    """Read ``data`` by cursors, ``step`` bytes a call, as far as a call looks."""
    position = 0
    while position < len(data):
        seen = data[position : position + step + LOOKAHEAD_BYTES]
        is_whole = position + len(seen) == len(data)
        position += take_plain(seen, step, whole=is_whole).size


FEEDS: Mapping[str, Callable[[bytes, int], None]] = {
    "marks": feed_marks,
    "boundaries": feed_marks,
    "text": feed_text,
    "capture": feed_text,
    "queries": feed_queries,
    "plain": feed_plain,
}


def ratio(target: str, unit: bytes, size: int, step: int) -> float:
    """How much longer four times ``size`` bytes of repeated ``unit`` take than ``size`` bytes.

    In processor time: other work on the machine hardly counts.
    """
    if target in ("marks", "boundaries"):
        unit = b"".join(each for each in script(unit) if isinstance(each, bytes))
    if not unit:
        return 0.0
    data = unit * (4 * size // len(unit) + 1)
    short = _seconds(target, data[:size], step)
    return _seconds(target, data[: 4 * size], step) / max(short, SHORTEST_S)


def _seconds(target: str, data: bytes, step: int) -> float:
    begin = time.process_time()
    FEEDS[target](data, step)
    return time.process_time() - begin
