"""Values that several tests and benches begin with."""

from __future__ import annotations

from aegis.protocol.terminals import CommandRecord

RECORD = CommandRecord(
    seq=7,
    cmd="pytest -q",
    writer="agent:alice",
    started_at="2026-05-22T14:03:21.000Z",
    finished_at="2026-05-22T14:03:25.200Z",
    duration_s=4.2,
    exit=0,
    stdout="",
    stderr="",
    killed_by_restart=False,
    timed_out=False,
    cwd="/work",
    output_bytes=0,
    truncated=False,
    raw_start=0,
    raw_end=10,
    needs_input=None,
    end="exited",
)
