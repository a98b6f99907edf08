"""What the type checker knows of both clients."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PROGRAM = """
from typing import assert_type

import aegis
from aegis.client.stream_kinds import EventValue, InboxValue, OutputValue, TreeValue
from aegis.protocol.daemon import DaemonStatus, Session, Stopping, TreeNode
from aegis.protocol.inboxes import Message, MessageList, Receipt
from aegis.protocol.output import OutputChunk, WaitOutcome
from aegis.protocol.terminals import CommandRecord, TerminalInfo, TerminalList
from aegis.protocol.workspaces import ExecResult, ShellInfo


async def use() -> None:
    async with aegis.connect() as client:
        assert_type(client, aegis.Client)
        record = await client.terminals.run("build", "pytest -q", timeout=600)
        assert_type(record, CommandRecord)
        assert_type(record.exit, int | None)
        assert_type(await client.terminals.list(), TerminalList)
        assert_type(await client.terminals.resize("build", 80, 24), TerminalInfo)
        assert_type(await client.terminals.wait("build"), WaitOutcome)
        assert_type(await client.open_shell("shop", name="dev"), ShellInfo)
        assert_type(await client.shells.read("shop.dev"), OutputChunk)
        assert_type(await client.workspaces.exec("shop", "ls"), ExecResult)
        assert_type(await client.inboxes.handoff("bob", "look"), Receipt)
        assert_type(await client.sessions.new("bob"), Session)
        assert_type(await client.daemon.tree(), TreeNode)
        async with client.terminals.watch("build") as output:
            assert_type(output.start.cursor, int)
            async for value in output:
                assert_type(value, OutputValue)
                if isinstance(value, aegis.Chunk):
                    assert_type(value.data, bytes)
        async with client.tree.watch() as changes:
            assert_type(await anext(changes), TreeValue)
        async with client.inboxes.watch() as messages:
            assert_type(await anext(messages), InboxValue)
        async with client.events() as events:
            assert_type(await anext(events), EventValue)
        await client.terminals.run("build")  # type: ignore[call-arg]
        await client.terminals.run("build", 5)  # type: ignore[arg-type]
        await client.terminals.walk("build")  # type: ignore[attr-defined]


def script() -> None:
    with aegis.connect_sync() as client:
        assert_type(client, aegis.BlockingClient)
        assert_type(client.terminals.run("build", "make"), CommandRecord)
        assert_type(client.open_shell("shop"), ShellInfo)
        assert_type(client.inboxes.wait(), MessageList)
        assert_type(client.daemon.status(), DaemonStatus)
        assert_type(client.daemon.down(), Stopping)
        for chunk in client.terminals.watch("build"):
            assert_type(chunk, OutputChunk)
        for message in client.inboxes.watch():
            assert_type(message, Message)
        client.terminals.run("build", "make", 5)  # type: ignore[call-arg]


aegis.connects  # type: ignore[attr-defined]
"""


@pytest.mark.long
def test_the_class_of_every_answer_is_known_and_every_misuse_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "program.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, ""), run.stdout
