"""Finished commands, laid out in lines."""

from __future__ import annotations

import random
from typing import Any

import pytest
from rich.cells import cell_len

from aegis.tui.model import blocks
from aegis.tui.model.blocks import (
    MAX_STYLED,
    MAX_STYLED_BYTES,
    BlockHistory,
    CommandBlock,
    block_of,
    wrapped,
)
from aegis.tui.widgets.styles import Replay
from tests.aegis.tui.examples import record


def lines_of(past: BlockHistory) -> list[tuple[str, str]]:
    return [(past.line(each).part, past.line(each).text) for each in range(len(past))]


def test_a_block_has_a_header_its_output_a_chip_and_a_space() -> None:
    past = BlockHistory(40)
    past.append([block_of(record(cmd="pytest -q", stdout="..\n2 passed\n"))])
    assert lines_of(past) == [
        ("header", "pytest -q"),
        ("output", ".."),
        ("output", "2 passed"),
        ("footer", "↳ exit 0 · 4.20s"),
        ("space", ""),
    ]


@pytest.mark.parametrize(
    ("fields", "chip"),
    [
        ({"exit": 2, "duration_s": 65.0}, "↳ exit 2 · 1m05s"),
        ({"exit": None, "end": "shell_exit", "duration_s": None}, "↳ the shell exited"),
        ({"exit": None, "end": "killed_by_restart"}, "↳ killed by a restart · 4.20s"),
        ({"exit": None, "end": "lost", "duration_s": None}, "↳ lost"),
        (
            {"truncated": True, "output_bytes": 1234567},
            "↳ exit 0 · 4.20s · 1,234,567 bytes, shortened",
        ),
    ],
)
def test_the_chip_says_how_it_ended(fields: dict[str, Any], chip: str) -> None:
    assert block_of(record(**fields)).chip == chip


def test_text_of_programs_is_text() -> None:
    block = block_of(record(cmd="echo '[b]'\nls", stdout="a\x1b[2Jb\u202e\tc\n", stderr="bad\n"))
    assert block.command == "echo '[b]' ⏎ ls"
    assert "\x1b" not in block.output
    assert "\u202e" not in block.output
    assert "\t" not in block.output
    assert block.output.endswith("\nbad")
    assert block.copied == "a\x1b[2Jb\u202e\tc\nbad\n"


def test_a_command_whose_text_is_not_known_says_why() -> None:
    assert block_of(record(cmd=None, cmd_reason="recalled")).command == "(recalled)"


@pytest.mark.parametrize("width", [4, 7, 20])
def test_no_line_is_wider_than_the_view_and_nothing_is_lost(width: int) -> None:
    text = "plain\n\n" + "x" * 50 + "\n日本語の長い行です\n🟢🟡 ok e\u0301\u0301 fin"
    lines = wrapped(text, width)
    assert max(map(cell_len, lines)) <= width
    assert "".join(lines) == text.replace("\n", "")


def test_older_blocks_come_above_and_doubles_are_left_out() -> None:
    past = BlockHistory(40)
    past.append([block_of(record(seq)) for seq in (5, 6)])
    past.append([block_of(record(seq)) for seq in (6, 7)])
    moved = past.prepend([block_of(record(seq)) for seq in (3, 4, 5)])
    assert [each.seq for each in past.blocks] == [3, 4, 5, 6, 7]
    assert moved == 2 * 3
    assert past.has_older
    past.prepend([])
    assert not past.has_older


def test_another_width_lays_everything_out_again() -> None:
    past = BlockHistory(40)
    past.append([block_of(record(0, stdout="y" * 60))])
    assert len(past) == 5
    past.resize(10)
    assert len(past) == 9
    assert "".join(text for part, text in lines_of(past) if part == "output") == "y" * 60


def test_memory_is_bounded_by_dropping_the_oldest_outputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocks, "MAX_TEXT_CHARS", 100)
    monkeypatch.setattr(blocks, "MAX_BLOCKS", 5)
    past = BlockHistory(40)
    for seq in range(8):
        past.append([block_of(record(seq, stdout="z" * 39))])
    assert [each.seq for each in past.blocks] == [3, 4, 5, 6, 7]
    assert [each.is_dropped for each in past.blocks] == [True, True, True, False, False]
    assert sum(len(each.output) for each in past.blocks) <= 100
    assert lines_of(past)[-5:-2] == [("space", ""), ("header", "make"), ("output", "z" * 39)]


def test_every_line_is_found_again_after_random_changes() -> None:
    chance = random.Random(7)
    past = BlockHistory(30)
    for seq in range(200):
        text = "\n".join("w" * chance.randrange(70) for _ in range(chance.randrange(6)))
        past.append([block_of(record(seq, stdout=text))])
        if chance.random() < 0.1:
            past.resize(chance.randrange(10, 60))
    shown: dict[int, list[str]] = {}
    for part, text in lines_of(past):
        if part == "header":
            shown[len(shown)] = []
        elif part == "output":
            shown[len(shown) - 1].append(text)
    assert ["".join(each) for each in shown.values()] == [
        block.output.replace("\n", "") for block in past.blocks
    ]


def test_many_blocks_are_appended_quickly_and_take_little() -> None:
    past = BlockHistory(80)
    past.append([block_of(record(seq, stdout="one line\n")) for seq in range(10_000)])
    assert len(past) == 40_000
    assert past.line(39_997).block.seq == 9_999
    assert isinstance(past.blocks[0], CommandBlock)


def test_a_block_may_have_styles_if_its_raw_output_is_longer_than_its_text() -> None:
    assert block_of(record(stdout="ab\nc\n", raw_start=5, raw_end=12)).runs == {}
    assert block_of(record(stdout="ab\nc\n", raw_start=5, raw_end=13)).runs is None
    assert block_of(record(stdout="ab\n", raw_start=0, raw_end=MAX_STYLED_BYTES + 1)).runs == {}
    assert block_of(record(stdout="ab\n", raw_end=9, truncated=True)).runs == {}


def test_styles_are_those_of_the_lines_also_where_they_are_wrapped() -> None:
    past = BlockHistory(4)
    block = block_of(record(stdout="abcdefgh\nxy\n", raw_end=99))
    past.append([block])
    past.set_runs(block, {0: [(2, 6, "red")], 1: [(0, 1, "bold")]})
    assert [past.line(each).pieces() for each in (1, 2, 3)] == [
        [("ab", None), ("cd", "red")],
        [("ef", "red"), ("gh", None)],
        [("x", "bold"), ("y", None)],
    ]


def test_styles_of_blocks_shown_long_ago_are_read_again() -> None:
    past = BlockHistory(80)
    shown = [block_of(record(seq, stdout="x\n", raw_end=99)) for seq in range(MAX_STYLED + 1)]
    past.append(shown)
    for block in shown:
        past.set_runs(block, {0: [(0, 1, "red")]})
    assert [block.runs is None for block in shown] == [True] + [False] * MAX_STYLED


def styled(raw: str, text: str, cols: int = 20) -> dict[int, list[tuple[int, int, str]]]:
    replay = Replay(cols, 5)
    for at in range(0, len(raw), 7):
        replay.feed(raw.encode()[at : at + 7])
    return {
        row: [(begin, end, str(style)) for begin, end, style in runs]
        for row, runs in replay.runs(text).items()
    }


def test_raw_output_gives_its_styles_to_the_lines_with_the_same_text() -> None:
    raw = "plain\r\n\x1b[31mred\x1b[0m and \x1b[1;32mgreen\x1b[0m\r\nß\t\x1b[4mu\x1b[0m\r\n"
    assert styled(raw, "plain\nred and green\nß       u\nanother") == {
        1: [(0, 3, "color(1)"), (8, 13, "bold color(2)")],
        2: [(8, 9, "underline")],
    }


def test_a_line_that_the_window_wrapped_or_a_program_drew_again_has_its_styles() -> None:
    long = "abcdefghijklmnopqrstuvwxyz"
    raw = f"\x1b[31m 10%\r\x1b[32m100%\x1b[0m\r\n\x1b[33m{long}\x1b[0m\r\n"
    assert styled(raw, f"100%\n{long}", cols=10) == {
        0: [(0, 4, "color(2)")],
        1: [(0, 26, "color(3)")],
    }


def test_equal_lines_have_their_styles_in_order_and_another_text_has_none() -> None:
    raw = "\x1b[31mok\x1b[0m\r\n\x1b[32mok\x1b[0m\r\n" + "x\r\n" * 9 + "\x1b[34mhere\x1b[0m\r\n"
    text = "ok\nok\n" + "x\n" * 9 + "hers"
    assert styled(raw, text) == {0: [(0, 2, "color(1)")], 1: [(0, 2, "color(2)")]}
