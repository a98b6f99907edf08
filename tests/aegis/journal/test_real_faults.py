"""Real faults: a process killed with -9 while it appends, and a file that may grow no further."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aegis.journal.disk import OsDisk
from aegis.journal.flusher import Flusher
from aegis.journal.note import Note
from aegis.journal.opening import open_ledger
from aegis.journal.raw_log import RawLog
from aegis.journal.reader import LedgerReader

pytestmark = [pytest.mark.real, pytest.mark.every_python]

WRITER = """
import sys
from pathlib import Path
import trio
from aegis.journal.appender import Appender
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import encode_line
from aegis.journal.note import Note, next_seq
from aegis.journal.raw_log import RawLog

async def main(directory):
    flusher = Flusher()
    appender = await Appender.open(directory / "ledger.jsonl", flusher)
    note = Note.open(directory / "note", flusher)
    raw = RawLog.open(directory, limit_bytes=2000)
    last = appender.opened.last
    seq = next_seq(None if last is None else last["seq"], note.load())
    async with trio.open_nursery() as nursery:
        appender.start(nursery.start_soon)
        while True:
            note.write({"seq": seq, "cmd": "x" * (seq % 7 * 1000)})
            raw.write(b"%07d\\n" % seq * 10)
            raw.flush()
            line = encode_line({"seq": seq, "raw_end": raw.position, "stdout": "y" * 300})
            await appender.wait_synced(appender.append(line))
            print(seq, raw.position, flush=True)
            note.clear()
            seq += 1

trio.run(main, Path(sys.argv[1]))
"""


def kill_after(directory: Path, acknowledgements: int) -> list[list[int]]:
    """Run the writer, kill it with -9 after so many acknowledgements; all that it printed."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, directory], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(acknowledgements)]
        child.kill()
        lines += child.stdout.readlines()
    return [[int(word) for word in line.split()] for line in lines if line.endswith("\n")]


def test_what_was_acknowledged_is_there_after_kill_9(tmp_path: Path) -> None:
    told: list[list[int]] = []
    for life in range(4):
        told += kill_after(tmp_path, 25 + 7 * life)
        records = LedgerReader(tmp_path / "ledger.jsonl").since("seq", -1).records
        numbers = [record["seq"] for record in records]
        assert {seq for seq, _ in told} <= set(numbers)
        assert numbers == sorted(set(numbers))
        # One at most was in flight when each life ended: written, or given up with its number.
        assert len(records) <= len(told) + life + 1
        assert numbers[-1] <= len(told) + life
        _check_note_and_raw_log(tmp_path, records[-1])


def _check_note_and_raw_log(directory: Path, last: dict[str, Any]) -> None:
    note = Note.open(directory / "note", Flusher())
    in_flight = note.load()
    assert in_flight is None or in_flight["seq"] in (last["seq"], last["seq"] + 1)
    note.close()
    raw = RawLog.open(directory, limit_bytes=2000)
    assert raw.position in (last["raw_end"], last["raw_end"] + 80)
    data, dropped = raw.read(last["raw_end"] - 80, last["raw_end"])
    assert (data, dropped) == (b"%07d\n" % last["seq"] * 10, 0)
    raw.close()


def test_a_ledger_opened_after_kill_9_is_whole(tmp_path: Path) -> None:
    told = kill_after(tmp_path, 10)
    opened = open_ledger(OsDisk(), tmp_path / "ledger.jsonl")
    OsDisk().close(opened.fd)
    assert opened.last is not None
    assert opened.last["seq"] >= told[-1][0]
    assert opened.damaged_count == 0


LIMITED = """
import json, resource, sys
from pathlib import Path
import trio
from aegis.errors import StorageError
from aegis.journal.appender import Appender
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import encode_line
from aegis.journal.raw_log import RawLog

async def main(path):
    appender = await Appender.open(path, Flusher())
    raw = RawLog.open(path.parent)
    acknowledged, told = 0, []
    async with trio.open_nursery() as nursery:
        appender.start(nursery.start_soon)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
        for attempt in ("limited", "still limited", "free again"):
            if attempt == "free again":
                resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            try:
                await appender.recover()
                for _ in range(50):
                    line = encode_line({"seq": acknowledged, "stdout": "x" * 300})
                    await appender.wait_synced(appender.append(line))
                    acknowledged += 1
                raw.write(b"z" * 30_000)
                raw.flush()
            except StorageError as error:
                told.append(str(error))
                try:
                    raw.write(b"z" * 15_000)
                    raw.flush()
                except StorageError as error:
                    told.append(str(error))
        appender.close()
        nursery.cancel_scope.cancel()
    print(json.dumps([acknowledged, told, raw.position]))

trio.run(main, Path(sys.argv[1]))
"""


def test_a_file_size_limit_is_told_and_when_it_is_gone_the_same_ledger_works(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.jsonl"
    child = subprocess.run(
        [sys.executable, "-c", LIMITED, path], stdout=subprocess.PIPE, check=True, text=True
    )
    acknowledged, told, position = json.loads(child.stdout)
    limit = "File too large; raise the limit on file sizes (ulimit -f), then try again"
    assert len(told) == 4
    assert all(sentence.endswith(limit) for sentence in told)
    assert 50 < acknowledged < 100
    opened = open_ledger(OsDisk(), path)
    OsDisk().close(opened.fd)
    assert opened.torn is None
    records = LedgerReader(path).since("seq", -1).records
    assert [record["seq"] for record in records] == list(range(acknowledged))
    assert RawLog.open(tmp_path).read(0, position) == (b"z" * position, 0)
