"""How a shell's actor stands, as its front and whoever watches its output are told."""

from __future__ import annotations

from collections.abc import Sequence

from aegis.protocol.terminals import State
from aegis.terminals import messages as msg
from aegis.terminals.shell.running import RunningShell


def introduction(
    running: RunningShell | None,
    *,
    life: int,
    first_cursor: int,
    cursor: int,
    shells: Sequence[str],
    failure: str,
    ending: msg.WhyEnded | None,
    news: tuple[msg.CommandNews, ...],
) -> msg.Introduction:
    """What the front must know of this ``life``; ``running`` is the shell that runs, if any."""
    tracker = None if running is None else running.tracker
    return msg.Introduction(
        life=life,
        first_cursor=first_cursor,
        cursor=cursor,
        shells=tuple(shells),
        shell=shells[-1],
        pid=None if running is None else running.process.pid,
        integration="osc133" if tracker is None else tracker.adapter.integration,
        was_prompted=tracker is not None and tracker.was_prompted,
        at_prompt=tracker is not None and tracker.at_prompt,
        cwd=None if tracker is None else tracker.cwd,
        typing=None if tracker is None else tracker.typing,
        submitted=None if tracker is None else tracker.submitted,
        needs_input=None if running is None else running.watch.needs_input,
        failure=failure,
        ending=ending,
        news=news,
    )


def state_of(running: RunningShell | None, failure: str, ending: msg.WhyEnded | None) -> State:
    """The state of the terminal as its shell knows it."""
    if running is None:
        return "closed" if ending is not None else "failed" if failure else "starting"
    if not running.tracker.was_prompted:
        return "starting"
    return "running" if running.tracker.is_running else "idle"
