"""The examination of a root for the daemon: the verb ``doctor``, run as a process.

A process, and not a thread of the daemon: the checks read every ledger and the whole archive, which
would take the interpreter and the memory of the daemon, and start a temporary daemon, which a
thread that cannot be cancelled would leave behind at a stop.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trio

from aegis.errors import Unavailable
from aegis.limits import open_process
from aegis.path_text import text_of_path
from aegis.processes.environment import OUR_PYTHON
from aegis.processes.process_table import COOKIE_VARIABLE
from aegis.protocol.command import fitting, json_size
from aegis.protocol.daemon import DoctorFinding, Examination
from aegis.workspaces.cookie import cookie_of_execution

LIMIT_S = 45.0
"""Seconds that an examination may take; with the next ones less than a call waits for an answer."""

INTERRUPT_S = 10.0
"""Seconds that an interrupted process has to end its temporary daemon; then it is killed."""

STOP_S = 0.5
"""The same while this daemon stops. Then the process is left to end by itself."""

MAX_OUTPUT_BYTES = 4 * 1024 * 1024
MAX_TEXT_BYTES = 4096
MAX_FINDINGS_BYTES = 256 * 1024
"""Limits of what the process prints, of one sentence, and of all findings in a reply."""

PROGRAM = (*OUR_PYTHON, "-c", "from aegis.cli.main import main; main()")
BY_HAND = "run 'aegis-actors doctor' on its machine"

SEVERITY = ("problem", "warning", "ok")


async def examine(root: Path, program: Sequence[str] = PROGRAM) -> Examination:
    """Return what ``doctor`` finds in ``root``. Raises ``Unavailable``."""
    process = await _start([*program, "doctor", "--json", "--root", str(root)], root)
    assert process.stdout is not None
    try:
        with trio.move_on_after(LIMIT_S):
            return examination_of(root, await _output_of(process))
        process.send_signal(signal.SIGINT)
        with trio.move_on_after(INTERRUPT_S):
            await process.wait()
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
    finally:
        with trio.move_on_after(STOP_S, shield=True):
            await process.stdout.aclose()
            if process.returncode is None:
                process.send_signal(signal.SIGINT)
                await process.wait()
    raise Unavailable(f"the examination took longer than {LIMIT_S:g} s and was ended; {BY_HAND}")


def examination_of(root: Path, output: bytes) -> Examination:
    """Return what a process has printed, as a reply. Raises ``Unavailable``."""
    try:
        printed = [_finding(each) for each in json.loads(output)["findings"]]
    except (ValueError, TypeError, LookupError):
        raise Unavailable(f"the examination failed; {BY_HAND}") from None
    kept, room = set[int](), MAX_FINDINGS_BYTES
    by_severity = sorted(range(len(printed)), key=lambda at: SEVERITY.index(printed[at].level))
    for at in by_severity:
        each = printed[at]
        room -= json_size([each.subject, each.level, each.sentence, each.remedy]) + 64
        if room < 0:
            break
        kept.add(at)
    return Examination(
        root=text_of_path(root),
        findings=[each for at, each in enumerate(printed) if at in kept],
        left_out=len(printed) - len(kept),
    )


def _finding(printed: dict[str, Any]) -> DoctorFinding:
    level = printed["level"]
    if level not in SEVERITY:
        raise ValueError(level)
    return DoctorFinding(
        subject=_text(printed["subject"]),
        level=level,
        sentence=_text(printed["sentence"]),
        remedy=_text(printed["remedy"]),
    )


def _text(printed: str) -> str:
    # A sentence may contain a path of any bytes, which JSON has as lone surrogates.
    text = printed.encode("utf-8", "backslashreplace").decode()
    return fitting(text, MAX_TEXT_BYTES)


async def _start(command: Sequence[str], root: Path) -> trio.Process:
    try:
        return await open_process(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=root,
            env={**os.environ, COOKIE_VARIABLE: _cookie_of(root)},
            start_new_session=True,  # so that a Ctrl-C for this daemon is not one for it
        )
    except (OSError, ValueError) as error:
        raise Unavailable(f"the examination cannot be started: {error}; {BY_HAND}") from None


def _cookie_of(root: Path) -> str:
    # The check of the daemon connects to it, and is the operator's by this cookie. A start after a
    # kill ends the processes that have it.
    return cookie_of_execution(text_of_path(root), "doctor", None, os.getpid())


async def _output_of(process: trio.Process) -> bytes:
    """Return what a process prints until its end. Raises ``Unavailable``."""
    assert process.stdout is not None
    data = bytearray()
    while piece := await process.stdout.receive_some(65_536):
        data += piece
        if len(data) > MAX_OUTPUT_BYTES:
            raise Unavailable(f"the examination found more than fits in a reply; {BY_HAND}")
    await process.wait()
    return bytes(data)
