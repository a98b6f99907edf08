"""Time limits of calls that the client cuts: a waiting call returns earlier. Pure.

Some agents give up a call of a tool after a minute. The result would be lost, and the agent would
not know whether to wait or to start again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from aegis.protocol.command import MAX_TIMEOUT_S
from aegis.protocol.entry import Entry

TIME_LIMITS = ("timeout", "wait_s")
"""The arguments that limit the duration of a call, in seconds."""

RESERVE = 0.1
"""The part of the limit that is left for the way to the agent."""

RESERVE_S = (0.5, 5.0)
"""The least and the most seconds of it."""

ADVICE = {
    "term_run": "the command keeps running: wait for its end with aegis_term_wait",
    "term_broadcast": "the commands keep running: wait for each with aegis_term_wait",
    "term_wait": "call aegis_term_wait again to wait on",
    "inbox_wait": "call aegis_inbox_wait again to wait on",
    "ask_human": "the question stays open: its answer comes as a message",
    "agent_wait": "call aegis_agent_wait again to wait on",
    "delegate": "the task continues: look with aegis_task_status; its end comes to your inbox",
    "group_wait_all": "the members continue: call aegis_group_wait_all again to wait on",
    "group_wait_any": "the members continue: call aegis_group_wait_any again to wait on",
    "workspace_exec": "the command was ended: run longer ones with aegis_term_run",
}
"""The next call, by the command whose ``timeout`` has passed."""


def longest_wait_s(call_limit_s: float) -> float:
    """Return the seconds that a call may wait if the client cuts it after ``call_limit_s``."""
    least, most = RESERVE_S
    return max(call_limit_s - min(max(call_limit_s * RESERVE, least), most), call_limit_s / 2)


def within_limit(
    entry: Entry, arguments: Mapping[str, object], call_limit_s: float | None
) -> Mapping[str, object]:
    """Return the arguments with their time limits, the defaults too, below ``call_limit_s``.

    Invalid values are kept: they are refused with the argument's own sentence.
    """
    if call_limit_s is None:
        return arguments
    longest, fields = longest_wait_s(call_limit_s), attrs.fields_dict(entry.command)
    given = {
        name: arguments.get(name, fields[name].default) for name in TIME_LIMITS if name in fields
    }
    cut = {
        name: longest
        for name, value in given.items()
        if isinstance(value, int | float) and longest < value <= MAX_TIMEOUT_S
    }
    return {**arguments, **cut} if cut else arguments


def advice(entry: Entry, reply: Mapping[str, Any], call_limit_s: float | None) -> str | None:
    """Return a sentence with the next call, if the time of a call that is cut has passed."""
    if call_limit_s is None or entry.name not in ADVICE or not _has_timed_out(reply):
        return None
    longest = f"{longest_wait_s(call_limit_s):g} s"
    return f"Calls of yours return within {longest}, before they are cut: {ADVICE[entry.name]}."


def _has_timed_out(reply: Mapping[str, Any]) -> bool:
    outcomes = reply.get("result")
    if isinstance(outcomes, list):
        return any((each.get("record") or {}).get("timed_out") for each in outcomes)
    if "task_id" in reply:
        return reply.get("ended") is None
    if "request_id" in reply:
        return bool(reply["state"] == "open")
    if "broadcast_id" in reply:
        return bool(reply["metadata"]["timed_out"])
    if "outcome" in reply:
        return bool(reply["outcome"] == "timeout")
    is_empty = reply.get("messages") == []
    return is_empty or bool(reply.get("timed_out")) or reply.get("reason") == "timeout"
