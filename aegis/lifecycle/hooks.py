"""Hook events of Claude Code, as its command hooks get them on standard input. Pure.

Hooks add the tool and its input to what other sources report. They are incomplete: Escape causes no
hook, and the notification of a permission comes six seconds late. A child (``claude -p`` in a hook)
causes hooks with a session id of its own, which are ignored (``HookSession``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from aegis.lifecycle.states import MAX_NAME_CHARS, MAX_TEXT_CHARS, Need, NeedKind, clean

MAX_HOOK_BYTES = 1024 * 1024
"""Limit of the JSON of one hook."""

MAX_SESSION_CHARS = 128

HookClass = Literal["working", "asks", "reminds", "rests", "ends", "other"]
"""``reminds``: of a need that another hook may have reported in full. ``rests``: the turn is over,
or none has begun. ``ends``: the session is over."""

_QUESTION_TOOL = "AskUserQuestion"
_CLASSES: Mapping[str, HookClass] = {
    "SessionStart": "rests",
    "UserPromptSubmit": "working",
    "PreToolUse": "working",
    "PostToolUse": "working",
    "PostToolUseFailure": "working",
    "PermissionRequest": "asks",
    "Notification": "reminds",
    "Stop": "rests",
    "StopFailure": "rests",
    "SessionEnd": "ends",
}
_REMINDERS: Mapping[str, NeedKind] = {
    "permission_prompt": "permission",
    "elicitation_dialog": "question",
    "idle_prompt": "ready",
    "": "input",  # versions before the field was added
}
_SUBJECTS = ("command", "file_path", "notebook_path", "url", "pattern", "query", "description")
"""The fields of a tool's input of which one says best what the tool will do."""


@attrs.frozen(kw_only=True)
class Hook:
    """A hook event. ``need`` is set if the class is ``asks``, ``reminds`` or ``rests``."""

    kind: HookClass
    session: str
    tool: str = ""
    need: Need | None = None


def read_hook(data: bytes) -> Hook | None:
    """Return the hook event with this JSON; None if it is malformed or too long."""
    if len(data) > MAX_HOOK_BYTES:
        return None
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    return _hook(_text(fields, "hook_event_name"), fields)


def _hook(name: str, fields: dict[str, Any]) -> Hook:
    kind = _CLASSES.get(name, "other")
    # A compaction begins a session within a turn.
    if name == "SessionStart" and _text(fields, "source") == "compact":
        kind = "other"
    need = _need(name, kind, fields)
    return Hook(
        kind="other" if kind == "reminds" and need is None else kind,
        session=_text(fields, "session_id")[:MAX_SESSION_CHARS],
        tool=clean(_text(fields, "tool_name"), MAX_NAME_CHARS),
        need=need,
    )


def _need(name: str, kind: HookClass, fields: dict[str, Any]) -> Need | None:
    match kind:
        case "asks":
            return _asked(fields)
        case "reminds":
            reminder = _REMINDERS.get(_text(fields, "notification_type"))
            text = clean(_text(fields, "message"), MAX_TEXT_CHARS)
            return None if reminder is None else Need(kind=reminder, text=text)
        case "rests":
            text = _text(fields, "last_assistant_message") or _text(fields, "error")
            failed = name == "StopFailure"
            return Need(kind="failed" if failed else "ready", text=clean(text, MAX_TEXT_CHARS))
        case _:
            return None


def _asked(fields: dict[str, Any]) -> Need:
    tool = _text(fields, "tool_name")
    arguments = fields.get("tool_input")
    if not isinstance(arguments, dict):
        arguments = {}
    is_question = tool == _QUESTION_TOOL
    text = _question(arguments) if is_question else _purpose(tool, arguments)
    return Need(
        kind="question" if is_question else "permission",
        text=clean(text, MAX_TEXT_CHARS),
        tool=clean(tool, MAX_NAME_CHARS),
        tool_input=clean(json.dumps(arguments, ensure_ascii=False), MAX_TEXT_CHARS),
    )


def _purpose(tool: str, arguments: dict[str, Any]) -> str:
    subject = next((text for name in _SUBJECTS if (text := _text(arguments, name))), "")
    return f"{tool}: {subject}" if subject else tool


def _question(arguments: dict[str, Any]) -> str:
    questions = arguments.get("questions")
    first = questions[0] if isinstance(questions, list) and questions else None
    return _text(first, "question") if isinstance(first, dict) else ""


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


class HookSession:
    """The session whose hooks count: the first one, and after its end the next one."""

    def __init__(self) -> None:
        self._session: str | None = None

    def accepts(self, hook: Hook) -> bool:
        """Return whether ``hook`` is one of this session, and follow its begin and end."""
        if self._session is None and hook.kind != "ends":
            self._session = hook.session
        if hook.session != self._session:
            return False
        if hook.kind == "ends":
            self._session = None
        return True
