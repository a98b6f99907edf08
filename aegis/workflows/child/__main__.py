"""The program: ``python -E -P -m aegis.workflows.child``, started by the daemon below a guard.

The first frame says what to do: ``describe`` a plugin, or ``start`` a workflow, whose journal
follows in frames until ``go``.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import outcome

from aegis.workflows.calls import json_text
from aegis.workflows.child.describing import describe, functions_of
from aegis.workflows.child.link import DaemonFrames, take_streams
from aegis.workflows.child.loading import load, problem_of

MAX_ERROR_CHARS = 2_000


def main() -> None:
    """Carry out the first frame; end the process without waiting for threads of the plugin."""
    link = DaemonFrames(*take_streams())
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What is printed is in the log at once, a file name that is not UTF-8 too.
        sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    first = link.next_blocking()
    answer = _described(first) if first["kind"] == "describe" else _ran(first, link)
    sys.stdout.flush()
    sys.stderr.flush()
    link.send_blocking(answer)
    os._exit(0)


def _described(frame: Mapping[str, Any]) -> dict[str, Any]:
    stem, files = frame["plugin"], frame["files"]

    def found() -> list[dict[str, Any]]:
        return list(describe(load(stem, files)))

    described = outcome.capture(found)
    if isinstance(described, outcome.Error):
        return {"kind": "described", **problem_of(described.error, files[stem][0])}
    return {"kind": "described", "workflows": described.unwrap()}


def _ran(start: Mapping[str, Any], link: DaemonFrames) -> dict[str, Any]:
    # Imported late: a description needs no event loop.
    import trio

    from aegis.workflows.child.clock import WorkflowClock, readings_of, schedule_in_order
    from aegis.workflows.child.engine import Engine
    from aegis.workflows.child.journal import Journal

    journal = Journal()
    while (frame := link.next_blocking())["kind"] == "journal":
        journal.add(frame["calls"])
    journal.take_order(frame)
    module = outcome.capture(load, start["plugin"], start["files"])
    if isinstance(module, outcome.Error):
        traceback.print_exception(module.error)
        path = start["files"][start["plugin"]][0]
        problem = problem_of(module.error, path)["problem"]
        return _failed(f"the plugin {Path(path).name} cannot be imported: {problem}")
    function = functions_of(module.unwrap()).get(start["name"])
    if function is None:
        return _failed(f"its plugin has no workflow {start['name']!r} any more")
    clock = WorkflowClock(readings_of(journal.seen))
    engine = Engine(link, journal, start, clock)
    schedule_in_order()

    async def run() -> outcome.Outcome[str]:
        with clock.read_by("call"):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(link.run, engine._take)
                nursery.start_soon(engine._deliver)
                with clock.read_by("function"):
                    # Captured inside: the nursery would wrap an exception in a group.
                    result = await outcome.acapture(_json_result, function, engine, start["kwargs"])
                link.end_fork()
                nursery.cancel_scope.cancel()
        return result

    result = trio.run(run, clock=clock)
    if engine._changed is not None:  # also where the function caught it
        return _failed(f"WorkflowChanged: {engine._changed}")
    if isinstance(result, outcome.Error):
        traceback.print_exception(result.error)
        return _failed(_sentence(result.error))
    return {"kind": "returned", "end": "completed", "result": result.unwrap()}


async def _json_result(function: Any, engine: object, kwargs: Mapping[str, Any]) -> str:
    return json_text("the result", await function(engine, **kwargs))


def _failed(sentence: str) -> dict[str, Any]:
    return {"kind": "returned", "end": "failed", "error": sentence[:MAX_ERROR_CHARS]}


def _sentence(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_sentence(each) for each in error.exceptions)
    kind, text = type(error).__name__, str(error)
    return f"{kind}: {text}" if text else kind


if __name__ == "__main__":
    main()
