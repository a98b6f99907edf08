"""How fast the text side of a terminal is: each part against a bare loop over the same chunks.

Rates move with the machine's load; the ratio to the loop of the same run says more.

python tests/bench/bench_text.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

from aegis.processes.capture import OutputCapture
from aegis.terminals.parse.control_sequences import SequenceScanner
from aegis.terminals.parse.osc133 import MarkParser
from tests.bench.table import Row, print_rows

SECRET = b"0123456789abcdef"
TOTAL_BYTES = 16_000_000
HOSTILE_BYTES = 1_000_000

COLOURED = (
    b"\x1b[32mPASSED\x1b[0m tests/aegis/processes/test_text.py::test_\x1b[1mone\x1b[0m "
    b"\x1b[36m[ 42%]\x1b[0m\r\n"
)
GREP = b"\x1b[35m\x1b[Ksrc/main.c\x1b[m\x1b[K:12:int \x1b[01;31m\x1b[Kmain\x1b[m\x1b[K(void)\r\n"
MARKS = (
    b"\x1b]133;A;n=%(s)s;q=%(q)d\x07$ \x1b]133;B;n=%(s)s;q=%(q)d\x07\x1b[?2004htrue\x1b[?2004l\r\n"
    b"\x1b]133;C;n=%(s)s;q=%(q)d\x07\x1b]133;D;0;n=%(s)s;q=%(q)d\x07" % {b"s": SECRET, b"q": 7}
)

STREAMS: dict[str, tuple[bytes, int, int]] = {
    "fold lines, 4 KiB": (b"a" * 80 + b"\r\n", 4096, TOTAL_BYTES),
    "fold lines, 16 KiB": (b"a" * 80 + b"\r\n", 16_384, TOTAL_BYTES),
    "one endless line": (b"a" * 4096, 4096, TOTAL_BYTES),
    "UTF-8 lines": ("größe 日本語, fertig ✓\r\n".encode(), 4096, TOTAL_BYTES // 4),
    "coloured test output": (COLOURED, 4096, TOTAL_BYTES),
    "grep --color": (GREP, 4096, TOTAL_BYTES),
    "progress bar": (b"\r\x1b[K[######      ] 50% 12 MB/s", 4096, TOTAL_BYTES // 4),
    "commands (marks)": (MARKS, 4096, TOTAL_BYTES // 4),
    "hostile: ESC": (b"\x1b", 4096, HOSTILE_BYTES),
    "hostile: NUL": (b"\0", 4096, HOSTILE_BYTES),
    "hostile: ESC [ ESC ]": (b"\x1b[\x1b]", 4096, HOSTILE_BYTES),
    "hostile: openings": (b"\x1b]133;", 4096, HOSTILE_BYTES),
    "hostile: x BS": (b"x\b", 4096, HOSTILE_BYTES),
    "hostile: CR x": (b"\rx", 4096, HOSTILE_BYTES),
    "hostile: erase left": (b"x" * 3000 + b"\x1b[D" + b"\x1b[1K" * 3000, 4096, HOSTILE_BYTES),
    "hostile: insert": (b"\r\x1b[@", 4096, HOSTILE_BYTES),
    "hostile: jumps": (b"\x1b[999Cx\r\n", 4096, HOSTILE_BYTES),
    "random bytes, no ESC": (bytes(range(28, 256)).replace(b"\x1b", b""), 4096, HOSTILE_BYTES),
}


def chunks_of(unit: bytes, size: int, total: int) -> list[bytes]:
    """``total`` bytes of ``unit`` again and again, in chunks cut wherever ``size`` falls."""
    data = unit * (total // len(unit) + 1)
    return [data[start : start + size] for start in range(0, total, size)]


def rate(feed: Callable[[bytes], object], chunks: list[bytes]) -> float:
    """MB/s of the best of three runs."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        for chunk in chunks:
            feed(chunk)
        best = min(best, time.perf_counter() - start)
    return sum(map(len, chunks)) / best / 1e6


def decode_and_replace(chunk: bytes) -> str:
    """What no cleaner can do without."""
    return chunk.decode("utf-8", "replace").replace("\r\n", "\n")


def stream_rows(name: str, chunks: list[bytes]) -> list[Row]:
    """One stream through the parts that stand in the way of every byte."""
    loop = rate(decode_and_replace, chunks)
    marks = rate(MarkParser(SECRET).feed, chunks)
    capture = rate(OutputCapture().feed, chunks)
    both = 1 / (1 / marks + 1 / capture)
    scanner = SequenceScanner()
    sequences = rate(lambda chunk: scanner.feed(chunk, 0), chunks)
    parts = f"loop {loop:.0f}, marks {marks:.0f}, capture {capture:.0f}, sequences {sequences:.0f}"
    return [(f"{name}: marks + capture / bare decoding", loop / both, f"ratio, MB/s: {parts}")]


def measure() -> list[Row]:
    """How many times longer than a loop that only decodes, for each kind of stream."""
    rows: list[Row] = []
    for name, (unit, size, total) in STREAMS.items():
        rows += stream_rows(name, chunks_of(unit, size, total))
    return rows


if __name__ == "__main__":
    print_rows(measure())
