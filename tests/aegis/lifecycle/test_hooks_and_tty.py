"""Hook events of Claude Code, keys, and facts of the tty."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.lifecycle.hooks import MAX_HOOK_BYTES, HookClass, HookSession, read_hook
from aegis.lifecycle.keys import KeyInput, KeyReader
from aegis.lifecycle.states import Need
from aegis.lifecycle.tty_facts import tty_fact
from aegis.processes.input_wait import Foreground
from tests.aegis.lifecycle.playing import hook, keys

BASH = '"tool_name": "Bash", "tool_input": {"command": "touch x.txt", "description": "t"}'
ASK = (
    '"tool_name": "AskUserQuestion", "tool_input": {"questions": [{"question": "Which?", '
    '"header": "W", "multiSelect": false, "options": [{"label": "A", "description": "a"}]}]}'
)
NEEDS = "Claude needs your permission"
PERMISSION = f'"message": "{NEEDS}", "notification_type": "permission_prompt"'
IDLE = '"message": "Claude is waiting for your input", "notification_type": "idle_prompt"'

HOOKS: list[tuple[str, str, HookClass, Need | None]] = [
    ("SessionStart", '"source": "startup"', "rests", Need(kind="ready")),
    ("SessionStart", '"source": "resume"', "rests", Need(kind="ready")),
    ("SessionStart", '"source": "compact"', "other", None),
    ("UserPromptSubmit", '"prompt": "SAY quick answer"', "working", None),
    ("PreToolUse", BASH, "working", None),
    ("PostToolUse", BASH, "working", None),
    (
        "PermissionRequest",
        BASH,
        "asks",
        Need(
            kind="permission",
            text="Bash: touch x.txt",
            tool="Bash",
            tool_input='{"command": "touch x.txt", "description": "t"}',
        ),
    ),
    ("Notification", PERMISSION, "reminds", Need(kind="permission", text=NEEDS)),
    ("Notification", IDLE, "reminds", Need(kind="ready", text="Claude is waiting for your input")),
    ("Notification", '"message": "m"', "reminds", Need(kind="input", text="m")),
    ("Notification", '"message": "m", "notification_type": "auth_success"', "other", None),
    ("Stop", '"last_assistant_message": "done"', "rests", Need(kind="ready", text="done")),
    ("Stop", "", "rests", Need(kind="ready")),
    (
        "StopFailure",
        '"error": "unknown", "last_assistant_message": "API Error: 400 scripted 400"',
        "rests",
        Need(kind="failed", text="API Error: 400 scripted 400"),
    ),
    ("StopFailure", '"error": "unknown"', "rests", Need(kind="failed", text="unknown")),
    ("SessionEnd", '"reason": "other"', "ends", None),
    ("SubagentStop", "", "other", None),
    ("PreCompact", "", "other", None),
    ("", "", "other", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "fields", "kind", "need"), HOOKS)
def test_a_hook_is_classified(name: str, fields: str, kind: HookClass, need: Need | None) -> None:
    found = hook(name, fields)
    assert (found.kind, found.need, found.session) == (kind, need, "s1")


def test_a_question_asks_its_first_question() -> None:
    need = hook("PermissionRequest", ASK).need
    assert need is not None
    assert (need.kind, need.text, need.tool) == ("question", "Which?", "AskUserQuestion")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ('"tool_name": "Edit", "tool_input": {"file_path": "/a", "old_string": "x"}', "Edit: /a"),
        ('"tool_name": "mcp__x__y", "tool_input": {"n": 1}', "mcp__x__y"),
        ('"tool_name": "Bash", "tool_input": {"command": ["no text"]}', "Bash"),
        ('"tool_name": "Bash", "tool_input": "no object"', "Bash"),
        ('"tool_name": "AskUserQuestion", "tool_input": {"questions": []}', ""),
        ('"tool_name": "AskUserQuestion", "tool_input": {"questions": ["x"]}', ""),
        ('"tool_name": 7', ""),
    ],
)
def test_a_permission_names_the_subject_of_its_tool(fields: str, text: str) -> None:
    need = hook("PermissionRequest", fields).need
    assert need is not None
    assert need.text == text


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"[" * 100_000, b"1" * 10_000),
        b'{"x": "' + b"y" * MAX_HOOK_BYTES + b'"}',
    ],
)
def test_malformed_hooks_are_discarded(data: bytes) -> None:
    assert read_hook(data) is None


def test_texts_of_a_hook_are_escaped_and_bounded() -> None:
    data = {
        "hook_event_name": "PermissionRequest",
        "session_id": "s" * 1000,
        "tool_name": "B\u202eash" * 100,
        "tool_input": {"command": "ls\nrm -rf \ud800" + "x" * 9000},
    }
    found = read_hook(json.dumps(data).encode())
    assert found is not None
    assert found.need is not None
    need = found.need
    assert len(found.session) == 128
    assert (len(need.tool), len(found.tool)) == (64, 64)
    assert (len(need.text), len(need.tool_input)) == (2048, 2048)
    for text in (need.text, need.tool, need.tool_input):
        assert text.isprintable()
    assert "\u202e" not in need.tool


def test_the_hooks_of_a_child_are_not_accepted() -> None:
    session = HookSession()
    assert session.accepts(hook("SessionStart"))
    for name in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"):
        assert not session.accepts(hook(name, session="child"))
    assert session.accepts(hook("Stop"))


def test_after_the_end_of_a_session_the_next_one_counts() -> None:
    session = HookSession()
    assert session.accepts(hook("SessionStart", session="s1"))
    assert session.accepts(hook("SessionEnd", session="s1"))
    assert not session.accepts(hook("SessionEnd", session="child"))
    assert session.accepts(hook("SessionStart", session="s2"))
    assert not session.accepts(hook("Stop", session="s1"))


# Keys.

KEY = KeyInput(is_answer=True, ends_line=False, interrupts=False)
ENTER = KeyInput(is_answer=True, ends_line=True, interrupts=False)
ESCAPE = KeyInput(is_answer=True, ends_line=False, interrupts=True)
CTRL_C = KeyInput(is_answer=True, ends_line=True, interrupts=True)
NOTHING = KeyInput(is_answer=False, ends_line=False, interrupts=False)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"y", KEY),
        (b" ", KEY),
        ("é".encode(), KEY),
        (b"\x1b[121u", KEY),
        *((each, ENTER) for each in (b"\r", b"\n", b"\x04", b"yes\r", b"\x1b[13u", b"\x1b[13;2u")),
        *((each, ESCAPE) for each in (b"\x1b", b"\x1b\x1b", b"\x1b[27u", b"\x1b[27;1:1u")),
        *((each, CTRL_C) for each in (b"\x03", b"ab\x03")),
        (b"\x1b[99;5u", ESCAPE),
        *((each, NOTHING) for each in (b"", b"\t", b"\x1b[A", b"\x1bOA", b"\x1b[1;5C", b"\x1b[Z")),
        *((each, NOTHING) for each in (b"\x1b[I", b"\x1b[O", b"\x1b[<0;10;5M", b"\x1b[M !!")),
        *((each, NOTHING) for each in (b"\x1b[5~", b"\x1b[15~", b"\x1b[200~", b"\x1b[201~")),
        (b"\x1b[200~a\nb\r\x03\x1b[201~", KEY),
        (b"\x1b[200~a\x1b[201~\r", ENTER),
    ],
)
def test_keys_are_read(data: bytes, expected: KeyInput) -> None:
    assert keys(data) == expected


def test_a_paste_in_several_writes_ends_no_line() -> None:
    reader = KeyReader()
    for part in (b"\x1b[200~one\n", b"two\r\n", b"three\n\x1b[201~"):
        assert not reader.read(part).ends_line
    assert reader.read(b"\r").ends_line


@given(st.binary(max_size=200))
def test_any_bytes_are_keys(data: bytes) -> None:
    found = keys(data)
    assert found.is_answer or not (found.ends_line or found.interrupts)


# The tty.


def front(
    program: str, reader: str | None, *, lines: bool, echo: bool, hidden: bool = False
) -> Foreground:
    return Foreground(
        group=7,
        is_canonical=lines,
        echoes=echo,
        program=program,
        reader=reader,
        is_hidden=hidden,
    )


@pytest.mark.parametrize(
    ("foreground", "need"),
    [
        (None, None),
        (front("cat", "cat", lines=True, echo=True), Need(kind="input", text="cat reads a line")),
        (front("make", "sh", lines=True, echo=True), Need(kind="input", text="sh reads a line")),
        (
            front("ssh", "ssh", lines=True, echo=False),
            Need(kind="auth", text="ssh reads a line without echo"),
        ),
        (
            front("sudo", None, lines=True, echo=False, hidden=True),
            Need(kind="auth", text="sudo reads a line without echo"),
        ),
        (front("sudo", None, lines=True, echo=True, hidden=True), None),
        (front("make", None, lines=True, echo=True), None),
        (front("sleep", None, lines=True, echo=False), None),
        (front("bash", "bash", lines=False, echo=False), Need(kind="ready")),
        (front("bash", None, lines=False, echo=False), None),
        # Agents wait for keys while they work, without a blocked thread.
        (front("node", None, lines=False, echo=False), None),
        (front("claude", None, lines=False, echo=False), None),
        (front("vim", "vim", lines=False, echo=False), Need(kind="input", text="vim reads keys")),
    ],
)
def test_only_a_blocked_read_is_a_fact(foreground: Foreground | None, need: Need | None) -> None:
    assert tty_fact(foreground, 60.0).need == need


def test_a_read_of_keys_counts_once_it_was_quiet_for_a_second() -> None:
    vim = front("vim", "vim", lines=False, echo=False)
    assert tty_fact(vim, 0.9).need is None
    assert tty_fact(vim, 1.0).need is not None
    bash = front("bash", "bash", lines=False, echo=False)
    assert tty_fact(bash, 0.1).need == Need(kind="ready")


def test_the_name_of_a_program_is_escaped() -> None:
    need = tty_fact(front("x", "a\u202e\n", lines=True, echo=True), 0.1).need
    assert need is not None
    assert need.text == "a<U+202E> reads a line"
