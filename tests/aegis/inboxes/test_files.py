"""Inboxes on real files: lines that other programs damage, and what messages need in memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from actors import Ref
from aegis.protocol.inboxes import MessageList, ReadInbox
from tests.aegis.inboxes.harness import GUARD_S, open_inboxes, router, wake

MESSAGES = 10_000
MOST_BYTES = 5_000_000
"""The limit of memory for the unread messages of one inbox, whose bodies are six times as long.

100,000 unread messages, of ten inboxes, need ten times as much.
"""


def ids(got: MessageList) -> list[str]:
    return [each.id for each in got.messages]


async def fill(ref: Ref[Any], body: str) -> None:
    for start in range(0, MESSAGES, 500):
        messages = [
            attrs.evolve(wake(number), id=f"handoff:{number:032}", body=f"{number}{body}")
            for number in range(start, start + 500)
        ]
        for reply in [ref.send_request(each) for each in messages]:
            await reply.wait()


@pytest.mark.long
@pytest.mark.one_python
async def test_ten_thousand_unread_messages_need_megabytes(tmp_path: Path) -> None:
    body = "x" * 3_000
    async with open_inboxes(tmp_path) as system:
        tracemalloc.start()
        try:
            await fill(router(system), body)
            assert tracemalloc.get_traced_memory()[0] < MOST_BYTES
        finally:
            tracemalloc.stop()
    async with open_inboxes(tmp_path) as system:
        tracemalloc.start()
        try:
            # It reads 30 MB first, which takes seconds while each allocation is traced.
            read = ReadInbox(from_handle="pm", limit=1)
            got = await router(system).ask(read, timeout=GUARD_S)
            assert [each.body for each in got.messages] == [f"0{body}"]
            assert tracemalloc.get_traced_memory()[0] < MOST_BYTES
        finally:
            tracemalloc.stop()


async def test_the_bodies_of_unread_messages_are_not_kept_in_memory(tmp_path: Path) -> None:
    body = "x" * 100_000
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        await ref.ask(wake(0))
        tracemalloc.start()
        try:
            for number in range(1, 51):
                await ref.ask(attrs.evolve(wake(number), body=f"{number} {body}"))
            got = await ref.ask(ReadInbox(from_handle="pm", limit=100))
            lengths = [len(each.body) for each in got.messages]
            del got
            # The thread that read them may still hold its result for a moment.
            while tracemalloc.get_traced_memory()[0] > 10 * len(body):  # noqa: ASYNC110
                await trio.sleep(0.01)
        finally:
            tracemalloc.stop()
        assert lengths == [6, *[100_002] * 9, *[100_003] * 41]


@pytest.mark.parametrize("size", [10, 300_000], ids=["on the loop", "in a thread"])
async def test_a_message_whose_line_was_damaged_since_is_replaced_by_one_that_says_so(
    tmp_path: Path, size: int
) -> None:
    path = tmp_path / "pm.jsonl"
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        await ref.ask(wake(0))
        await ref.ask(attrs.evolve(wake(1), body="y" * size))
        await ref.ask(wake(2))
        path.write_bytes(path.read_bytes().replace(b"yyyy", b"yyyz", 1))
        for _ in range(2):
            got = await ref.ask(ReadInbox(from_handle="pm"))
            assert ids(got) == ["w0", "w1", "w2"]
            damaged = got.messages[1]
            assert damaged.sender == "substrate"
            assert damaged.text.splitlines()[1] == damaged.body
            assert "this message cannot be read: bytes" in damaged.body
            assert damaged.body.endswith("pm.jsonl are damaged: its checksum does not match")
        got = await ref.ask(ReadInbox(from_handle="pm", unread=False))
        assert ids(got) == ["w0", "w2"]
        assert ids(await ref.ask(ReadInbox(from_handle="pm", after="w1"))) == ["w2"]


async def test_messages_that_were_cut_off_the_file_are_replaced_by_ones_that_say_so(
    tmp_path: Path,
) -> None:
    path = tmp_path / "pm.jsonl"
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        await ref.ask(wake(0))
        await ref.ask(wake(1))
        await ref.ask(wake(2))
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(lines[0] + lines[2] + lines[1][:-20])
        got = await ref.ask(ReadInbox(from_handle="pm"))
        assert [each.sender for each in got.messages] == ["term:build", *["substrate"] * 2]
        assert got.messages[1].body.endswith("are damaged: another line is there")
        assert got.messages[2].body.endswith("are damaged: the file ends before")
