"""Records of a broadcast in one reply: who gives up text, and how much."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.protocol.broadcast import MAX_BROADCAST, BroadcastOutcome
from aegis.protocol.command import MAX_REPLY_BYTES
from aegis.terminals.directory.broadcast import MAX_CMD_CHARS, fair_limit, shortened, sized
from tests.aegis.terminals.samples import RECORD


def outcome(**changes: Any) -> BroadcastOutcome:
    return BroadcastOutcome(name="build", record=attrs.evolve(RECORD, **changes), error=None)


@pytest.mark.parametrize(
    ("sizes", "budget", "limit"),
    [
        ([], 100, 100),
        ([10, 20], 100, 100),
        ([50, 50], 100, 100),
        ([60, 60], 100, 50),
        ([10, 500, 500], 110, 50),
        ([10, 30, 500], 110, 70),
    ],
)
def test_what_the_short_ones_do_not_need_is_shared_by_the_long_ones(
    sizes: list[int], budget: int, limit: int
) -> None:
    assert fair_limit(sizes, budget) == limit


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=64), st.integers(64, 5000))
def test_cut_to_the_limit_all_fit_and_little_is_wasted(sizes: list[int], budget: int) -> None:
    limit = fair_limit(sizes, budget)
    total = sum(min(size, limit) for size in sizes)
    assert total <= budget
    assert total == sum(sizes) or total > budget - len(sizes)


def test_what_fits_is_left_alone() -> None:
    each = sized(outcome(stdout="one\n" * 100))
    assert shortened(each, each.size) is each.outcome


def test_a_refusal_is_never_cut() -> None:
    refused = sized(BroadcastOutcome(name="build", record=None, error="busy " * 1000))
    assert shortened(refused, 10) == refused.outcome


@pytest.mark.parametrize("limit", [2_000, 16_384, 60_000])
@pytest.mark.parametrize("line", ["x" * 79, '"\\' * 40, "日本" * 20, "a"])
def test_a_long_record_keeps_the_first_and_the_last_of_its_output(line: str, limit: int) -> None:
    text = f"first\n{f'{line}' * 2}\n" + f"{line}\n" * (60_000 // len(line)) + "last\n"
    each = sized(outcome(stdout=text, output_bytes=len(text.encode())))
    short = shortened(each, limit)
    assert sized(short).size <= limit
    assert short.record is not None
    first, _, last = short.record.stdout.partition(" bytes left out …\n")
    assert first.startswith("first\n")
    assert last.endswith("last\n")
    left_out = int(first.rpartition("… ")[2])
    notice = len(f"… {left_out} bytes left out …\n".encode())
    assert left_out + len(short.record.stdout.encode()) - notice == len(text.encode())
    assert short.record.truncated
    assert short.record.output_bytes == len(text.encode())


def test_what_was_left_out_before_is_counted_too() -> None:
    text = "a\n" * 16_000 + "… 4000000 bytes left out …\n" + "b\n" * 16_000
    record = shortened(sized(outcome(stdout=text, output_bytes=4_064_000, truncated=True)), 3_000)
    assert record.record is not None
    assert record.record.stdout.count("left out") == 1
    left_out = int(record.record.stdout.partition("… ")[2].partition(" ")[0])
    assert 4_060_000 < left_out < 4_064_000


def test_a_long_command_and_a_long_stderr_give_way_too() -> None:
    each = sized(outcome(cmd="x" * 900_000, stderr="e\n" * 30_000, stdout="short\n"))
    short = shortened(each, 16_384).record
    assert short is not None
    assert short.cmd == "x" * (MAX_CMD_CHARS - 1) + "…"
    assert short.stdout == "short\n"
    assert "bytes left out" in short.stderr


def test_the_longest_records_of_all_terminals_fit_one_reply() -> None:
    worst = "\x01" * 65_536  # six bytes of JSON each
    each = sized(outcome(cmd="\x01" * 1_000_000, stdout=worst, stderr=worst, output_bytes=10**9))
    limit = fair_limit([each.size] * MAX_BROADCAST, MAX_REPLY_BYTES)
    assert MAX_BROADCAST * sized(shortened(each, limit)).size <= MAX_REPLY_BYTES
