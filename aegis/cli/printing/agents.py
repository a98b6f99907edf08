"""The states of agents, their profiles and peers, as text."""

from __future__ import annotations

from aegis.cli.printing.formatting import cell, duration, escaped_line, table
from aegis.cli.printing.transcript import tool_name

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_HEAD = ["agent", "state", "turn", "waiting", "blocked on", "profile", "spawned by"]

SIGNS = {
    "working": "🟢",
    "starting": "🟢",
    "idle": "⚪",
    "dormant": "⚪",
    "blocked": "🟡",
    "limited": "🟡",
    "stalled": "🟠",
    "closed": "✅",
    "error": "🔴",
    "running": "🟢",
    "needs_input": "🟡",
    "stale": "🟠",
    "completed": "✅",
    "errored": "🔴",
}
"""The sign of each state."""

STEPS = {"pending": "☐", "in_progress": "▶", "completed": "☑"}
"""The sign of each state of a step of a plan."""

STALLED_S = 120.0
"""Seconds without progress after which a working agent is shown as stalled."""


def session_table(infos: Sequence[Mapping[str, Any]]) -> str:
    """Return sessions as a table."""
    return table(_HEAD, [_row(each) for each in infos])


def _row(info: Mapping[str, Any]) -> list[object]:
    return [
        info["handle"],
        _state(info),
        info["turn"] or None,
        info["waiting"] or None,
        _blocked(info),
        info["profile"],
        info["spawned_by"],
    ]


def _state(info: Mapping[str, Any]) -> str:
    state = "stalled" if info["quiet_s"] >= STALLED_S else info["state"]
    if info.get("taken_over") is not None:
        return "👤 taken over"
    if state == "exited":
        code = info["program"]["exit_code"]
        outcome = "completed" if code == 0 else "errored"
        return f"{SIGNS[outcome]} exited{'' if code is None else f' ({code})'}"
    return f"{SIGNS.get(state, '')} {state}"


def _blocked(info: Mapping[str, Any]) -> str | None:
    program, blocked = info.get("program"), info["blocked"]
    if (taken := info.get("taken_over")) is not None:
        return f"a person, in terminal {taken['terminal']}, since {taken['since']}"
    if program is not None and blocked is None:
        need = program["need"]
        return None if need is None else f"{need['kind']}: {need['text']}".removesuffix(": ")
    if blocked is None:
        return None
    title = tool_name(blocked["title"])
    return title if blocked["kind"] == "permission" else f"{blocked['kind']}: {title}"


def session_details(info: Mapping[str, Any]) -> str:
    """Return the state of a session, a line for each part of it."""
    lines = [
        ("state", f"{_state(info)} since {info['since']}"),
        ("reason", info["reason"]),
        ("blocked on", _blocked(info)),
        ("limited until", info["limited_until"]),
        ("without progress", duration(info["quiet_s"]) if info["quiet_s"] else None),
        *_calls(info),
        ("in the background", ", ".join(_tasks(info))),
        (
            "terminals",
            ", ".join(f"{each['id']}: {each['command']}" for each in info.get("terminals", ())),
        ),
        ("turn", info["turn"]),
        ("waiting", info["waiting"] or None),
        *_usage(info["usage"] or {}),
        *_program(info.get("program")),
        ("profile", f"{info['profile']} ({info['provider']})" if info["profile"] else None),
        ("model", info["model"]),
        ("models", ", ".join(each["name"] for each in info.get("models", ()))),
        ("effort", info.get("effort")),
        ("efforts", ", ".join(_efforts(info))),
        ("thinking", info.get("thinking")),
        ("permission", info["permission"]),
        ("mode", info.get("mode")),
        ("budget", None if info["budget_usd"] is None else f"{info['budget_usd']:g} USD"),
        ("conversation", info["conversation"]),
        ("directory", info["cwd"]),
        ("spawned by", info["spawned_by"]),
        ("id", info["id"]),
    ]
    shown = [f"{name:<17} {cell(value)}" for name, value in lines if value not in (None, "")]
    lists = [*_plan(info.get("plan") or ()), *_conflicts(info.get("conflicts") or ())]
    return "\n".join([escaped_line(info["handle"]), *shown, *lists])


def _efforts(info: Mapping[str, Any]) -> Sequence[str]:
    """Return the efforts of the current model, as the agent lists them."""
    for each in info.get("models", ()):
        if info["model"] in (each["name"], each["full_name"]):
            return [*each["efforts"]]
    return []


def _conflicts(conflicts: Sequence[Mapping[str, Any]]) -> list[str]:
    heads = ["changed too by", *[""] * len(conflicts)]
    return [
        f"{head:<17} {cell(', '.join(each['handles']))}: {cell(each['path'])}"
        for head, each in zip(heads, conflicts, strict=False)
    ]


def _calls(info: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Return the lines of the running calls, those of subagents below the call that began them."""
    known = [{"id": each, "title": each, "parent": ""} for each in info["tools"]]
    calls = info.get("calls") or known  # a daemon of an older version names the tools only
    depths: dict[str, int] = {}
    below: dict[str, list[Mapping[str, Any]]] = {}
    for each in calls:
        parent = each["parent"] if each["parent"] in depths else ""
        depths[each["id"]] = depths.get(parent, -1) + 1
        below.setdefault(parent, []).append(each)
    shown: list[str] = []
    rest = [*reversed(below.get("", []))]
    while rest:
        call = rest.pop()
        title = tool_name(call["title"])
        about = f"{title}, in the background" if call.get("background") else title
        shown.append(f"{'  ' * depths[call['id']]}{about}")
        rest += reversed(below.get(call["id"], []))
    return [("" if number else "tools running", each) for number, each in enumerate(shown)]


def _tasks(info: Mapping[str, Any]) -> Sequence[str]:
    """Return the background tasks that are not among the calls."""
    named = [each["title"] for each in info.get("calls", ()) if each.get("background")]
    return [each for each in info.get("tasks", ()) if each[:200] not in named]


def _plan(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    heads = ["plan", *[""] * len(steps)]
    return [
        f"{head:<17} {STEPS.get(each['status'], '☐')} {cell(each['text'])}"
        for head, each in zip(heads, steps, strict=False)
    ]


def command_table(info: Mapping[str, Any]) -> str:
    """Return the commands of an agent's own as a table, or a sentence if there are none."""
    rows = [
        [f"/{each['name']} {each['hint']}".rstrip(), each["description"]]
        for each in info["commands"]
    ]
    return table(["command", "description"], rows) if rows else "none announced so far"


def _program(program: Mapping[str, Any] | None) -> list[tuple[str, object]]:
    """Return the lines of a terminal agent's program."""
    if program is None:
        return []
    need, progress = program["need"] or {}, program["progress"]
    return [
        ("judged by", program["source"]),
        ("wants to use", f"{need['tool']} {need['tool_input']}" if need.get("tool") else None),
        ("works on", program["title"]),
        ("progress", None if progress is None else f"{progress} %"),
        ("terminal", program["terminal"]),
        ("program", program["command"]),
        ("launches", program["launches"]),
    ]


def _usage(usage: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Return the lines of a session's accounting; those that the agent does not report are None."""
    tokens = [
        _counted(usage.get("input_tokens"), "in"),
        _counted(usage.get("cached_percent"), "% of it cached"),
        _counted(usage.get("output_tokens"), "out"),
    ]
    context = [_counted(usage.get("context_tokens"), "tokens")]
    if usage.get("context_limit") is not None:
        context.append(f"{usage['context_percent']:g} % of {usage['context_limit']:,}")
    cost, spent_s = usage.get("cost_usd"), usage.get("turns_s")
    return [
        ("tokens", ", ".join(filter(None, tokens))),
        ("context", ", ".join(filter(None, context))),
        ("cost", None if cost is None else f"{cost:.4f} USD"),
        ("time in turns", duration(spent_s) if spent_s else None),
    ]


def _counted(number: float | None, unit: str) -> str | None:
    return None if number is None else f"{number:,} {unit}"


def profile_table(infos: Sequence[Mapping[str, Any]]) -> str:
    """Return profiles as a table."""
    rows = [
        [
            f"{each['profile']}{' (default)' if each['is_default'] else ''}",
            each["provider"],
            each["permission"],
            each["model"],
            each["problem"] or None,
        ]
        for each in infos
    ]
    return table(["profile", "provider", "permission", "model", "problem"], rows)


def meta_lines(reply: Mapping[str, Any]) -> str:
    """Return what a handle may know about itself and its peers, a line for each part of it."""
    peers = [f"{each['handle']} ({each['profile']})" for each in reply["peers"]]
    others = reply["other_tools"]
    lines = [
        ("kind", reply["kind"]),
        ("profile", reply["profile"]),
        ("permission", reply["permission"]),
        ("spawned by", reply["spawned_by"]),
        ("agents", ", ".join(peers)),
        ("other handles", ", ".join(reply["handles"])),
        ("and more", "agent list shows all agents" if reply.get("more") else None),
        ("tools", ", ".join(reply["tools"])),
        ("other tools", f"{', '.join(others)}. {reply['how_to_get']}" if others else None),
        ("inbox", reply["inbox"]),
        ("id", reply["session"]),
    ]
    shown = [f"{name:<17} {value}" for name, value in lines if value]
    return "\n".join([escaped_line(reply["handle"]), *map(escaped_line, shown)])
