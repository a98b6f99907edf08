"""``aegis-actors`` with a hook that records which functions of both packages are entered.

    python -P tests/traced_daemon.py up …

At a SIGUSR1 it writes the functions that were entered since the last one, the number of messages
that actors received, of calls of any Python function and of steps of Trio's tasks, as JSON to the
file that AEGIS_TRACE names.
"""

from __future__ import annotations

import dis
import json
import os
import signal
import sys
import threading
from functools import cache, partial
from pathlib import Path
from types import CodeType, FrameType

import trio

PACKAGES = tuple(f"{Path(__file__).parents[1] / name}/" for name in ("actors", "aegis"))
INCARNATION = f"{PACKAGES[0]}incarnation.py"
COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}  # inlined by newer Pythons


class Recorder(trio.abc.Instrument):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._entered: set[tuple[str, str, int]] = set()
        self._messages = self._calls = self._steps = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._steps += 1

    def hook(self, frame: FrameType, event: str, _: object) -> None:
        """Record an event of ``sys.setprofile``."""
        code, caller = frame.f_code, frame.f_back
        self._calls += event == "call"
        if event != "call" or not code.co_filename.startswith(PACKAGES):
            return
        # Past its start a coroutine or generator was entered before, and is resumed now.
        if code.co_name in COMPREHENSIONS or frame.f_lasti > start_of(code):
            return
        self._entered.add((code.co_filename, code.co_qualname, code.co_firstlineno))
        if code.co_name == "receive" and caller and caller.f_code.co_filename == INCARNATION:
            self._messages += 1

    def write(self, *_: object) -> None:
        record = {
            "functions": [*self._entered],
            "messages": self._messages,
            "calls": self._calls,
            "steps": self._steps,
        }
        written = self._path.with_suffix(".new")
        written.write_text(json.dumps(record))
        written.rename(self._path)
        self._entered, self._messages, self._calls, self._steps = set(), 0, 0, 0


@cache
def start_of(code: CodeType) -> int:
    """Return the offset at which the body begins."""
    return next(each.offset for each in dis.get_instructions(code) if each.opname == "RESUME")


if __name__ == "__main__":
    recorder = Recorder(Path(os.environ["AEGIS_TRACE"]))
    signal.signal(signal.SIGUSR1, recorder.write)
    vars(trio)["run"] = partial(trio.run, instruments=[recorder])
    threading.setprofile(recorder.hook)
    sys.setprofile(recorder.hook)

    from aegis.cli.main import main

    main()
