"""The statements in a program's output: found in any chunks, and never in the wrong place."""

from __future__ import annotations

import random

import pytest

from aegis.lifecycle.events import PromptBegun, TerminalReset
from aegis.lifecycle.notices import Notice, ProgressNotice, TitleChanged
from aegis.lifecycle.reports import Report
from aegis.terminals.parse.control_sequences import MAX_STRING_BYTES, SequenceScanner
from aegis.terminals.parse.statements import Statement, statement_of

WORKING = Report(state="working")

STREAMS: dict[str, tuple[bytes, list[Statement]]] = {
    "report, BEL": (b"a\x1b]7501;state=working\x07b", [WORKING]),
    "report, ST": (b"\x1b]7501;state=working\x1b\\", [WORKING]),
    "query": (b"\x1b]7501;?\x1b\\", []),
    "title": (b"\x1b]0;hello\x07", [TitleChanged(text="hello")]),
    "title 2": (b"\x1b]2;hello\x1b\\", [TitleChanged(text="hello")]),
    "icon name": (b"\x1b]1;hello\x07", []),
    "notification": (b"\x1b]9;done\x07", [Notice("done")]),
    "progress": (b"\x1b]9;4;1;50\x07", [ProgressNotice(in_progress=True, percent=50)]),
    "prompt": (b"\x1b]133;A;x=1\x07\x1b]133;B\x07", [PromptBegun()]),
    "bell": (b"\x07\x07", [Notice(), Notice()]),
    "reset": (b"\x1bc", [TerminalReset()]),
    "bell in a DCS": (b"\x1bPq\x07#\x1b\\\x07", [Notice()]),
    "OSC in an APC": (b"\x1b_G\x1b\\\x1b]0;t\x07", [TitleChanged(text="t")]),
    "aborted by CAN": (b"\x1b]7501;state=wor\x18king\x07", [Notice()]),
    "aborted by SUB": (b"\x1b]0;t\x1a", []),
    "aborted by ESC": (b"\x1b]0;t\x1b[31m\x1b]7501;state=working\x07", [WORKING]),
    "two escapes": (b"\x1b\x1b]0;t\x07", [TitleChanged(text="t")]),
    "escape, then an OSC that ESC aborts": (b"\x1b]0;a\x1b\x1b]0;b\x07", [TitleChanged(text="b")]),
    "no number": (b"\x1b]L\x1b\\\x1b]\x07", []),
    "longest": (
        b"\x1b]0;" + b"t" * MAX_STRING_BYTES + b"\x07",
        [TitleChanged(text="t" * 191 + "…")],
    ),
    "too long": (b"\x1b]0;" + b"t" * (MAX_STRING_BYTES + 1) + b"\x07\x07", [Notice()]),
    "a picture": (
        b"\x1b]1337;File=" + b"A" * 300_000 + b"\x07\x1b]0;t\x07",
        [TitleChanged(text="t")],
    ),
    "not UTF-8": (b"\x1b]0;\xff\xfe\x07", [TitleChanged(text="��")]),
}


class StatementReader:
    """The statements in a stream of chunks."""

    def __init__(self) -> None:
        self._scanner = SequenceScanner()

    def feed(self, data: bytes) -> list[Statement]:
        stated = map(statement_of, self._scanner.feed(data, 0))
        return [each for each in stated if each is not None]


@pytest.mark.parametrize("name", STREAMS)
def test_the_statements_of_a_stream_are_found(name: str) -> None:
    data, expected = STREAMS[name]
    assert StatementReader().feed(data) == expected


@pytest.mark.parametrize("name", [name for name in STREAMS if name != "a picture"])
def test_every_cut_of_a_stream_gives_the_same_statements(name: str) -> None:
    data, expected = STREAMS[name]
    for cut in range(min(len(data), 40)):
        scanner = StatementReader()
        assert scanner.feed(data[:cut]) + scanner.feed(data[cut:]) == expected


def test_random_chunks_of_all_streams_give_the_same_statements() -> None:
    rng = random.Random(7)
    for _ in range(200):
        names = rng.sample(list(STREAMS), 6)
        data = b"text".join(STREAMS[name][0] for name in names)
        expected = [each for name in names for each in STREAMS[name][1]]
        scanner, found, at = StatementReader(), [], 0
        while at < len(data):
            size = rng.choice((1, 2, 3, 10, 100, 10_000))
            found += scanner.feed(data[at : at + size])
            at += size
        assert found == expected
