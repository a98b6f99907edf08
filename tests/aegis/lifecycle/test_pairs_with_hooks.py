"""Hooks of Claude Code beside other evidence, and a session of it as it was recorded."""

from __future__ import annotations

import pytest

from aegis.lifecycle import events as ev
from aegis.lifecycle.notices import Notice
from aegis.lifecycle.states import Evidence, Need, State
from tests.aegis.lifecycle.playing import (
    BLINK,
    Player,
    given,
    hook,
    keys,
    osc,
    report,
    title,
)

S = State
RUNNING, NEEDS_INPUT, STALE = S.RUNNING, S.NEEDS_INPUT, S.STALE
BASH = '"tool_name": "Bash", "tool_input": {"command": "touch y.txt"}'
PERMISSION = '"notification_type": "permission_prompt", "message": "Claude needs your permission"'


def test_hooks_of_a_child_decide_nothing() -> None:
    player = given(hook("SessionStart"), hook("UserPromptSubmit"))
    before = player.verdict
    for name in ("SessionStart", "UserPromptSubmit", "PermissionRequest", "Stop", "SessionEnd"):
        assert player.at(player.now + 0.1, hook(name, BASH, session="child")) is before


def test_escape_at_a_permission_prompt_needs_no_hook() -> None:
    player = given(title("✳ Claude Code"), hook("PermissionRequest", BASH))
    assert player.verdict.need is not None
    assert player.verdict.need.text == "Bash: touch y.txt"
    player.at(4.0, keys(b"\x1b"))
    assert player.shown == (NEEDS_INPUT, Evidence.TITLE)
    assert player.verdict.need == Need(kind="ready")


def test_escape_at_a_permission_prompt_without_a_title_falls_to_silence() -> None:
    player = given(hook("PermissionRequest", BASH))
    player.at(4.0, keys(b"\x1b"))
    assert player.shown == (RUNNING, Evidence.KEYS)
    player.at(9.0)
    assert player.shown == (NEEDS_INPUT, Evidence.SILENCE)
    assert player.verdict.need == Need(kind="input")  # not the old question


@pytest.mark.parametrize("key", [b"\x1b", b"\x03"])
def test_an_interrupt_ends_the_work_that_hooks_claim(key: bytes) -> None:
    player = given(hook("UserPromptSubmit"), title("✳ Claude Code"))
    assert player.shown == (RUNNING, Evidence.HOOK)
    player.at(2.0, keys(b"next order"))  # typed ahead
    assert player.shown == (RUNNING, Evidence.HOOK)
    player.at(3.0, keys(key))
    assert player.shown == (NEEDS_INPUT, Evidence.TITLE)


def test_an_approval_runs_on_the_keystroke_before_the_tool_ends() -> None:
    player = given(hook("PermissionRequest", BASH), title("✳ Claude Code"))
    assert player.at(3.0, keys(b"\r")).state is RUNNING
    player.at(3.2, title("⠂ Claude Code"))
    assert player.shown == (RUNNING, Evidence.TITLE)
    player.at(9.0, hook("PostToolUse", BASH))
    assert player.shown == (RUNNING, Evidence.HOOK)


def test_another_tool_that_ends_answers_no_question() -> None:
    player = given(hook("PermissionRequest", BASH))
    before = player.verdict
    assert player.at(2.0, hook("PostToolUse", '"tool_name": "Read"')) is before
    assert player.at(2.1, hook("PreToolUse", '"tool_name": "Read"')) is before
    assert player.at(3.0, hook("PostToolUse", BASH)).state is RUNNING


def test_a_late_reminder_keeps_the_question() -> None:
    player = given(hook("PermissionRequest", BASH))
    before = player.verdict
    assert player.at(7.2, hook("Notification", PERMISSION)) is before
    assert player.at(7.2, Notice("Claude needs your permission")) is before
    assert player.at(8.0, hook("Stop")).need == Need(kind="ready", text="")


def test_a_reminder_alone_is_a_need() -> None:
    player = given(hook("UserPromptSubmit"))
    player.at(7.2, hook("Notification", PERMISSION))
    assert player.verdict.need == Need(kind="permission", text="Claude needs your permission")


def test_a_compaction_within_a_turn_ends_no_work() -> None:
    player = given(hook("UserPromptSubmit"))
    assert player.at(2.0, hook("SessionStart", '"source": "compact"')).state is RUNNING


def test_hooks_add_the_tool_to_a_report() -> None:
    player = given(hook("SessionStart"), report("state=blocked:kind=permission:msg=UT8="))
    since = player.verdict.since
    verdict = player.at(1.1, hook("PermissionRequest", BASH))
    assert verdict.source is Evidence.REPORT
    assert verdict.need == Need(
        kind="permission", text="Q?", tool="Bash", tool_input='{"command": "touch y.txt"}'
    )
    assert verdict.since == since  # the same question
    assert player.at(2.0, report("state=blocked:kind=auth")).need == Need(kind="auth")


def test_hooks_add_the_last_text_to_a_report() -> None:
    player = given(hook("Stop", '"last_assistant_message": "all done"'), report("state=done"))
    assert player.verdict.need == Need(kind="ready", text="all done")
    assert player.verdict.source is Evidence.REPORT


SESSION: list[tuple[float, ev.Event | None, State, str]] = [
    (1.05, hook("SessionStart", '"source": "startup"'), NEEDS_INPUT, "ready"),
    (1.15, osc(0, "✳ Claude Code"), NEEDS_INPUT, "ready"),
    (1.44, osc(7501, "?"), NEEDS_INPUT, "ready"),
    (1.64, osc(7501, "state=idle:app=claude-code"), NEEDS_INPUT, "ready"),
    (1.65, osc(0, "Claude Code"), NEEDS_INPUT, "ready"),
    (7.76, keys(b"\r"), RUNNING, ""),
    (7.91, osc(7501, "state=working:app=claude-code"), RUNNING, ""),
    (7.97, hook("UserPromptSubmit"), RUNNING, ""),
    (8.23, hook("Stop", '"last_assistant_message": "quick answer"'), RUNNING, ""),
    (8.31, osc(7501, "state=done:app=claude-code"), NEEDS_INPUT, "ready quick answer"),
    (20.28, keys(b"\r"), RUNNING, ""),
    (20.41, osc(7501, "state=working:app=claude-code"), RUNNING, ""),
    (20.64, hook("PreToolUse", BASH), RUNNING, ""),
    (20.65, osc(7501, "state=working:app=claude-code:msg=dA=="), RUNNING, ""),
    (
        20.82,
        osc(
            7501,
            "state=blocked:app=claude-code:kind=permission:msg=YXBwcm92ZSBCYXNoOiB0b3VjaCB4LnR4dA==",
        ),
        NEEDS_INPUT,
        "permission approve Bash: touch x.txt",
    ),
    (20.90, hook("PermissionRequest", BASH), NEEDS_INPUT, "permission approve Bash: touch x.txt"),
    (27.13, hook("Notification", PERMISSION), NEEDS_INPUT, "permission approve Bash: touch x.txt"),
    (
        27.14,
        osc(777, "notify;Claude Code;Claude needs your permission"),
        NEEDS_INPUT,
        "permission approve Bash: touch x.txt",
    ),
    (30.34, keys(b"\r"), RUNNING, ""),
    (30.59, osc(7501, "state=working:app=claude-code"), RUNNING, ""),
    (30.99, hook("PostToolUse", BASH), RUNNING, ""),
    (31.19, hook("Stop"), RUNNING, ""),
    (31.26, osc(7501, "state=done:app=claude-code"), NEEDS_INPUT, "ready"),
    (35.11, keys(b"\r"), RUNNING, ""),
    (35.20, osc(7501, "state=working:app=claude-code"), RUNNING, ""),
    (
        35.50,
        osc(
            7501, "state=blocked:app=claude-code:kind=question:msg=YW5zd2VyOiBXaGljaD8gKEEgwrcgQik="
        ),
        NEEDS_INPUT,
        "question answer: Which? (A · B)",
    ),
    (39.12, keys(b"\x1b"), RUNNING, ""),
    (39.24, osc(7501, "state=idle:app=claude-code"), NEEDS_INPUT, "ready"),
    (43.84, keys(b"\r"), RUNNING, ""),
    (43.94, osc(7501, "state=working:app=claude-code"), RUNNING, ""),
    (
        44.44,
        osc(7501, "state=error:app=claude-code:msg=QVBJIEVycm9yOiA0MDAgc2NyaXB0ZWQgNDAw"),
        NEEDS_INPUT,
        "failed API Error: 400 scripted 400",
    ),
    (44.45, hook("StopFailure"), NEEDS_INPUT, "failed API Error: 400 scripted 400"),
    (104.44, None, STALE, "failed API Error: 400 scripted 400"),
    (120.70, osc(7501, "state=clear"), STALE, "failed"),
    (120.74, osc(0, ""), STALE, "failed"),
    (120.85, hook("SessionEnd", '"reason": "other"'), STALE, "input"),
    (121.1, ev.ProcessExited(), S.EXITED, ""),
]


def test_a_recorded_session_of_claude_code() -> None:
    player = Player()
    for moment, event, state, asked in SESSION:
        verdict = player.at(moment, BLINK, *([] if event is None else [event]))
        shown = "" if verdict.need is None else f"{verdict.need.kind} {verdict.need.text}".strip()
        assert (moment, verdict.state, shown) == (moment, state, asked)
