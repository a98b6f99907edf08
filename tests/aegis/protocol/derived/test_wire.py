"""From arguments to commands, from replies to documents; and what bad arguments are told."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.codec import resolved_fields
from aegis.errors import InvalidRequest
from aegis.protocol import daemon, inboxes, terminals
from aegis.protocol.canvases import SECTION_RULE
from aegis.protocol.control import SIGNAL_RULE
from aegis.protocol.derived.wire import (
    MAX_SENTENCE_CHARS,
    command_from,
    model_arguments,
    to_plain,
)
from aegis.protocol.entry import Entry
from aegis.protocol.naming import NAME_RULE
from aegis.protocol.requests import BEGINNING_RULE, DIGEST_RULE
from aegis.protocol.table import BY_NAME, COMMANDS
from aegis.protocol.workspaces import SHELL_RULE, WORKSPACE_RULE

HANDLE = "from_handle must be text or null, not 7"
NO_NAME = "name is missing"
BAD_NAME = f"name must be {NAME_RULE}, not 'a b'"
ONLY_HANDLE = "there is no argument 'name'; allowed: from_handle"

BAD: list[tuple[str, Any, str]] = [
    ("term_spawn", {}, NO_NAME),
    ("term_spawn", {"name": "a b"}, BAD_NAME),
    ("term_spawn", {"name": ""}, f"name must be {NAME_RULE}, not ''"),
    ("term_spawn", {"name": "a", "cols": 1}, "cols must be from 2 to 1000 columns, not 1"),
    ("term_spawn", {"name": "a", "cols": "80"}, 'cols must be a whole number, not "80"'),
    ("term_spawn", {"name": "a", "node": "a b"}, f"node must be {NAME_RULE}, not 'a b'"),
    ("node_forget", {}, "node is missing"),
    ("node_forget", {"node": ""}, f"node must be {NAME_RULE}, not ''"),
    ("term_spawn", {"name": "a", "rows": 1001}, "rows must be from 1 to 1000 rows, not 1001"),
    ("term_spawn", {"name": "a", "shell": ["bash"]}, "shell must be text or null, not a list"),
    ("term_spawn", {"name": "a", "cwd": 1}, "cwd must be text or null, not 1"),
    (
        "term_spawn",
        {"name": "a", "cwd": "/" * 16_388},
        "cwd must be at most 16387 characters long, not 16388",
    ),
    ("term_spawn", {"name": "a", "env": {"PATH": 7}}, "env.PATH must be text, not 7"),
    ("term_spawn", {"name": "a", "env": ["A=1"]}, "env must be an object, not a list"),
    (
        "term_spawn",
        {"name": "a", "env": {"A=B": "c"}},
        "env holds 'A=B': a variable's name must not be empty or hold '=', and neither name nor "
        "value may hold a NUL",
    ),
    ("term_list", {"name": "a"}, ONLY_HANDLE),
    ("term_list", {"from_handle": 7}, HANDLE),
    ("enqueue", {"queue": "build"}, "payload is missing"),
    ("delegate", {"payload": "x"}, "queue is missing"),
    ("task_status", {}, "task_id is missing"),
    ("cancel", {}, "task_id is missing"),
    ("task_retry", {}, "task_id is missing"),
    ("task_move", {"queue": "build"}, "task_id is missing"),
    (
        "task_move",
        {"queue": "build", "task_id": "0" * 26, "to": "front"},
        'to must be "first" or "last" or null, not "front"',
    ),
    ("task_list", {"limit": 0}, "limit must be from 1 to 1000 tasks, not 0"),
    ("queue_list", {"name": "a"}, ONLY_HANDLE),
    ("history", {"limit": 201}, "limit must be from 1 to 200 entries, not 201"),
    ("history", {"exit_code": 256}, "exit_code must be from 0 to 255 (an exit code), not 256"),
    ("queue_pause", {}, "queue is missing"),
    ("queue_resume", {}, "queue is missing"),
    ("run_workflow", {}, "name is missing"),
    ("run_workflow", {"name": "a", "kwargs": []}, "kwargs must be an object, not a list"),
    ("workflow_status", {}, "workflow_id is missing"),
    ("workflow_steps", {}, "workflow_id is missing"),
    (
        "workflow_steps",
        {"workflow_id": "0" * 26, "limit": 0},
        "limit must be from 1 to 500 steps, not 0",
    ),
    ("workflow_cancel", {}, "workflow_id is missing"),
    ("workflow_list", {"limit": -1}, "limit must be from 0 to 1000 workflows, not -1"),
    ("workflow_resume", {}, "workflow_id is missing"),
    ("workflow_retry", {}, "workflow_id is missing"),
    ("workflow_trust", {"name": "a"}, ONLY_HANDLE),
    ("group_spawn", {"group": "g"}, "profile is missing"),
    ("group_spawn_mixed", {"group": "g", "profiles": "p"}, 'profiles must be a list, not "p"'),
    ("group_broadcast", {"group": "g"}, "objective is missing"),
    (
        "group_wait_all",
        {"group": "g", "reducer": "vote"},
        'reducer must be "concat", "join_by_handle", "last_wins" or "majority_vote", not "vote"',
    ),
    (
        "group_wait_any",
        {"group": "g", "cancel_losers": 1},
        "cancel_losers must be true or false, not 1",
    ),
    ("group_status", {}, "group is missing"),
    ("group_orders", {}, "group is missing"),
    ("group_orders", {"group": "g", "limit": 0}, "limit must be from 1 to 100 orders, not 0"),
    ("group_list", {"name": "g"}, ONLY_HANDLE),
    ("group_rename", {"group": "g"}, "new_name is missing"),
    ("group_dissolve", {}, "group is missing"),
    ("term_run", {"name": "a"}, "cmd is missing"),
    ("term_run", {"name": "a", "cmd": None}, "cmd must be text, not null"),
    (
        "term_run",
        {"nme": "a", "cmd": "ls"},
        "there is no argument 'nme' (did you mean 'name'?); allowed: from_handle, name, cmd, "
        "timeout, until",
    ),
    (
        "term_run",
        {"name": "a", "cmd": "ls", "timeout": "abc"},
        'timeout must be a number, not "abc"',
    ),
    (
        "term_run",
        {"name": "a", "cmd": "ls", "timeout": 0},
        "timeout must be from 0.01 to 86400 seconds, not 0.0",
    ),
    (
        "term_run",
        {"name": "a", "cmd": "x" * 1_000_001},
        "cmd must be at most 1000000 characters long, not 1000001",
    ),
    ("term_keys", {"name": "a"}, "keys is missing"),
    ("term_keys", {"name": "a", "keys": ["\r"]}, "keys must be text, not a list"),
    (
        "term_keys",
        {"name": "a", "keys": "x" * 65_537},
        "keys must be at most 65536 characters long, not 65537",
    ),
    ("term_signal", {"name": "a"}, "signal is missing"),
    ("term_signal", {"name": "a", "signal": "9"}, f"signal must be {SIGNAL_RULE}, not '9'"),
    ("term_resize", {"name": "a", "cols": 80}, "rows is missing"),
    (
        "term_resize",
        {"name": "a", "cols": 1, "rows": 24},
        "cols must be from 2 to 1000 columns, not 1",
    ),
    ("term_read", {"name": "a", "last_n": 0}, "last_n must be from 1 to 1000 records, not 0"),
    ("term_read", {"name": "a", "last_n": -3}, "last_n must be from 1 to 1000 records, not -3"),
    ("term_read", {"name": "a", "last_n": 1.5}, "last_n must be a whole number or null, not 1.5"),
    (
        "term_read",
        {"name": "a", "last_n": 1, "since_seq": 1},
        "give last_n or since_seq, not both",
    ),
    ("term_screen", {}, NO_NAME),
    ("term_subscribe", {"name": 7}, "name must be text, not 7"),
    (
        "term_subscribe",
        {"name": "a", "patern": "x"},
        "there is no argument 'patern' (did you mean 'pattern'?); allowed: from_handle, name, "
        "pattern, only_failures",
    ),
    (
        "term_subscribe",
        {"name": "a", "pattern": "x" * 1001},
        "pattern must be at most 1000 characters long, not 1001",
    ),
    (
        "term_subscribe",
        {"name": "a", "only_failures": "no"},
        'only_failures must be true or false, not "no"',
    ),
    (
        "term_broadcast",
        {"names": [], "cmd": "ls"},
        "names must hold 1 to 64 terminals, not 0",
    ),
    (
        "term_broadcast",
        {"names": ["a", "A"], "cmd": "ls"},
        "names must be different terminals; case makes no difference",
    ),
    (
        "term_broadcast",
        {"names": ["a", "b c"], "cmd": "ls"},
        f"names must each be {NAME_RULE}, not 'b c'",
    ),
    ("workspace_create", {}, "workspace is missing"),
    (
        "workspace_create",
        {"workspace": "a.b"},
        f"workspace must be {WORKSPACE_RULE}, not 'a.b'",
    ),
    (
        "workspace_list",
        {"workspace": "a"},
        "there is no argument 'workspace'; allowed: from_handle",
    ),
    ("workspace_delete", {"workspace": "a", "purge": 1}, "purge must be true or false, not 1"),
    ("workspace_exec", {"workspace": "a"}, "command is missing"),
    (
        "workspace_exec",
        {"workspace": "a", "command": "true", "timeout": 0},
        "timeout must be from 0.01 to 86400 seconds, not 0.0",
    ),
    (
        "shell_open",
        {"workspace": "a", "name": "a.b"},
        f"name must be {SHELL_RULE}, not 'a.b'",
    ),
    ("shell_read", {}, "shell is missing"),
    ("shell_write", {"shell": "a"}, "input is missing"),
    ("shell_signal", {"shell": "a", "signal": "9"}, f"signal must be {SIGNAL_RULE}, not '9'"),
    ("shell_close", {}, "shell is missing"),
    ("term_output", {}, NO_NAME),
    (
        "term_output",
        {"name": "a", "max_bytes": 2_000_000},
        "max_bytes must be from 256 to 1048576 bytes, not 2000000",
    ),
    ("term_output", {"name": "a", "plain": 1}, "plain must be true or false, not 1"),
    ("term_wait", {"name": "a", "seq": "1"}, 'seq must be a whole number or null, not "1"'),
    (
        "term_wait",
        {"name": "a", "idle_s": 0},
        "idle_s must be from 0.05 to 3600 seconds, not 0.0",
    ),
    ("term_unsubscribe", {}, NO_NAME),
    ("term_close", {"name": "a", "purge": "no"}, 'purge must be true or false, not "no"'),
    ("term_close", {"name": "a", "purge": 1}, "purge must be true or false, not 1"),
    ("inbox_read", {"limit": 0}, "limit must be from 1 to 1000 messages, not 0"),
    ("inbox_read", {"unread": 0}, "unread must be true or false, not 0"),
    ("inbox_read", {"after": 3}, "after must be text or null, not 3"),
    ("inbox_wait", {"timeout": -1}, "timeout must be from 0 to 86400 seconds, not -1.0"),
    ("inbox_wait", {"timeout": True}, "timeout must be a number, not true"),
    (
        "request_list",
        {"state": "late"},
        'state must be "open", "closed" or "all", not "late"',
    ),
    ("spawn", {"handle": "a b"}, f"handle must be {NAME_RULE}, not 'a b'"),
    ("spawn", {"prompt": 5}, "prompt must be text or null, not 5"),
    ("list_sessions", {"closed": 1}, "closed must be true or false, not 1"),
    (
        "list_agents",
        {"profile": "a"},
        "there is no argument 'profile'; allowed: from_handle",
    ),
    ("meta", {"name": "a"}, ONLY_HANDLE),
    ("session_read", {"handle": "a", "last_n": 0}, "last_n must be from 1 to 1000 entries, not 0"),
    ("interrupt", {}, "handle is missing"),
    ("rename", {"new_handle": "b"}, "old_handle is missing"),
    (
        "rename",
        {"old_handle": "a", "new_handle": "b c"},
        f"new_handle must be {NAME_RULE}, not 'b c'",
    ),
    ("close", {"handle": ""}, f"handle must be {NAME_RULE}, not ''"),
    ("agent_show", {"handle": None}, "handle must be text, not null"),
    (
        "agent_set",
        {"handle": "pm", "budget_usd": -1},
        "budget_usd must be from 0 to 1000000 US dollars, not -1.0",
    ),
    ("agent_restart", {"handle": 1}, "handle must be text, not 1"),
    ("agent_purge", {"handle": 1}, "handle must be text, not 1"),
    ("agent_diff", {}, "handle is missing"),
    ("agent_takeover", {}, "handle is missing"),
    ("agent_send", {}, "handle is missing"),
    (
        "agent_send",
        {"handle": "a", "text": "", "images": ["/x"] * 21},
        "images must be at most 20 paths, not 21",
    ),
    ("agent_send", {"handle": "a", "text": "", "files": [1]}, "files[0] must be text, not 1"),
    (
        "agent_send",
        {"handle": "a", "text": "", "texts": {"/x": "y" * 262_143}},
        "texts must have at most 262144 characters, not 262145",
    ),
    (
        "agent_set",
        {"handle": "pm", "thinking": "0"},
        "thinking must be on, off, or a number of tokens from 1 to 9999999, not '0'",
    ),
    ("agent_continue", {}, "conversation is missing"),
    (
        "agent_continue",
        {"conversation": "x" * 201},
        "conversation must be at most 200 characters long, not 201",
    ),
    ("agent_conversations", {"profile": 1}, "profile must be text or null, not 1"),
    (
        "agent_takeover",
        {"handle": "a", "interrupt": 1},
        "interrupt must be true or false, not 1",
    ),
    ("agent_handback", {"handle": 1}, "handle must be text, not 1"),
    ("agent_rewind", {}, "handle is missing"),
    ("agent_rewind", {"handle": "a", "turn": "x"}, 'turn must be a whole number or null, not "x"'),
    ("agent_rewind", {"handle": "a", "dry_run": 1}, "dry_run must be true or false, not 1"),
    ("agent_worktree_remove", {}, "handle is missing"),
    (
        "agent_worktree_remove",
        {"handle": "a", "force": 1},
        "force must be true or false, not 1",
    ),
    ("agent_merge", {}, "handle is missing"),
    ("agent_worktree_list", {"name": "a"}, ONLY_HANDLE),
    ("spawn", {"directory": 5}, "directory must be text or null, not 5"),
    ("agent_trust", {"digest": 5}, "digest must be text or null, not 5"),
    ("spawn", {"worktree": "yes"}, 'worktree must be true or false or null, not "yes"'),
    ("spawn", {"branch": "x" * 201}, "branch must be at most 200 characters long, not 201"),
    (
        "agent_wait",
        {"handle": "a", "turn": 0},
        "turn must be from 1 to 9007199254740992 turns, not 0",
    ),
    (
        "session_export",
        {"handle": "a", "form": "html"},
        'form must be "markdown" or "jsonl", not "html"',
    ),
    ("agent_output", {"handle": "a"}, "command is missing"),
    ("agent_launch", {"cmd": "x" * 20_000}, "cmd must be at most 16384 characters long, not 20000"),
    ("agent_usage", {"closed": "yes"}, 'closed must be true or false, not "yes"'),
    (
        "agent_usage_over_time",
        {"by": "year"},
        'by must be "hour", "day" or "agent", not "year"',
    ),
    ("agent_usage_over_time", {"limit": 0}, "limit must be from 1 to 5000 spans, not 0"),
    ("agent_resume", {"handle": "a", "prompt": 1}, "prompt must be text or null, not 1"),
    (
        "agent_fork",
        {"handle": "a", "new_handle": "b c"},
        f"new_handle must be {NAME_RULE}, not 'b c'",
    ),
    ("request_list", {"id": "12"}, f"id must be {BEGINNING_RULE}, not '12'"),
    (
        "request_answer",
        {"id": "a" * 12, "digest": "0", "answer": "allow"},
        f"digest must be {DIGEST_RULE}, not '0'",
    ),
    ("request_answer", {"id": "a" * 12, "digest": "0" * 64}, "answer is missing"),
    ("handoff", {"context": "x"}, "target_handle is missing"),
    (
        "handoff",
        {"target": "bob", "context": "x"},
        "there is no argument 'target' (did you mean 'target_handle'?); allowed: from_handle, "
        "target_handle, context, interrupt, key, alone",
    ),
    (
        "handoff",
        {"target_handle": "a", "context": "x", "alone": 1},
        "alone must be true or false, not 1",
    ),
    ("interrupt", {"handle": "a", "message": 1}, "message must be text or null, not 1"),
    (
        "handoff",
        {"target_handle": "-", "context": "x"},
        f"target_handle must be {NAME_RULE}, not '-'",
    ),
    ("canvas_open", {"file": "a.md"}, "name is missing"),
    (
        "canvas_read",
        {"name": "a", "section": "a\nb"},
        f"section must be {SECTION_RULE}, not 'a\\nb'",
    ),
    ("canvas_write_section", {"name": "a", "section": "b"}, "content is missing"),
    (
        "canvas_append_to_section",
        {"name": "a", "section": "b", "text": 5},
        "text must be text, not 5",
    ),
    (
        "canvas_subscribe",
        {"name": "a", "sections": "b"},
        'sections must be a list or null, not "b"',
    ),
    ("canvas_unsubscribe", {}, "name is missing"),
    ("canvas_list", {"name": "a"}, ONLY_HANDLE),
    ("canvas_history", {"name": "a", "limit": 0}, "limit must be from 1 to 1000 changes, not 0"),
    ("status", {"name": "a"}, ONLY_HANDLE),
    ("tree", {"from_handle": 7}, HANDLE),
    ("session_new", {}, "handle is missing"),
    ("session_new", {"handle": None}, "handle must be text, not null"),
    ("session_new", {"handle": "a", "tools": "core"}, 'tools must be a list or null, not "core"'),
    ("session_new", {"handle": "a", "tools": []}, "tools must hold 1 to 256 names, not 0"),
    (
        "session_new",
        {"handle": "a", "tools": ["Core"]},
        "tools must each be the name of a tool or of a set of tools, not 'Core'",
    ),
    ("session_list", {"name": "a"}, ONLY_HANDLE),
    ("session_revoke", {}, "handle is missing"),
    ("session_revoke", {"handle": "../a"}, f"handle must be {NAME_RULE}, not '../a'"),
    ("page_code", {"for_s": 1}, "there is no argument 'for_s'; allowed: from_handle"),
    ("doctor", {"repair": True}, "there is no argument 'repair'; allowed: from_handle"),
    ("page_list", {"view": 1}, "there is no argument 'view'; allowed: from_handle"),
    ("page_revoke", {"id": "A!"}, "id must be the id of a page or link, not 'A!'"),
    ("page_link", {}, "view is missing"),
    ("ask_human", {}, "question is missing"),
    ("ask_human", {"question": " "}, "question must have 1 to 4096 characters"),
    (
        "ask_human",
        {"question": "x", "options": ["a", "a"]},
        "options must hold at most 20 different texts",
    ),
    (
        "ask_human",
        {"question": "x", "options": ["a", ""]},
        "options must each have 1 to 500 characters",
    ),
    (
        "ask_human",
        {"question": "x", "wait_s": -1},
        "wait_s must be from 0 to 86400 seconds, not -1.0",
    ),
    (
        "page_link",
        {"view": "queue:a"},
        "view must be 'terminal:' and its name, or 'agent:' and its handle, not 'queue:a'",
    ),
    (
        "page_link",
        {"view": "terminal:a", "for_s": 1},
        "for_s must be from 60 to 2592000 seconds, not 1.0",
    ),
    ("push_key", {"name": "a"}, ONLY_HANDLE),
    ("push_list", {"name": "a"}, ONLY_HANDLE),
    ("push_remove", {}, "id is missing"),
    ("push_remove", {"id": "A!"}, "id must be the id of a subscription, not 'A!'"),
    ("push_subscribe", {}, "endpoint is missing"),
    (
        "push_subscribe",
        {"endpoint": "https://push.example/x", "p256dh": "A", "auth": "A" * 22},
        "p256dh must be a key of a browser, 65 bytes in base64url, not 'A'",
    ),
    (
        "push_subscribe",
        {"endpoint": "https://push.example/x", "p256dh": "A" * 87, "auth": "A"},
        "auth must be the secret of a browser, 16 bytes in base64url, not 'A'",
    ),
    (
        "push_subscribe",
        {"endpoint": "x" * 1_025, "p256dh": "A" * 87, "auth": "A" * 22},
        "endpoint must be at most 1024 characters long, not 1025",
    ),
    ("token_rotate", {"session": ""}, f"session must be {NAME_RULE}, not ''"),
    ("token_rotate", {"all_keys": 1}, "all_keys must be true or false, not 1"),
    ("down", ["now"], "the document must be an object, not a list"),
    ("down", {"name": "a"}, ONLY_HANDLE),
]


@pytest.mark.parametrize(("command", "arguments", "sentence"), BAD)
def test_bad_arguments_are_refused_with_what_is_allowed(
    command: str, arguments: Any, sentence: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        command_from(BY_NAME[command], arguments)
    assert str(caught.value) == f"{BY_NAME[command].tool}: {sentence}"


def test_the_table_of_bad_arguments_knows_every_command() -> None:
    assert {command for command, _, _ in BAD} == set(BY_NAME)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
@settings(deadline=None, max_examples=20)  # for each of the commands
@given(data=st.data())
def test_whatever_is_sent_is_told_in_one_short_printable_sentence(
    entry: Entry, data: st.DataObject
) -> None:
    names = st.sampled_from([field.name for field in entry.command.__attrs_attrs__])
    arguments = data.draw(st.dictionaries(names | st.text(st.characters()), JSON, max_size=5))
    told = refusal_of(entry, arguments)
    if told is not None:
        assert told.startswith(f"{entry.tool}: ")
        assert len(told) <= MAX_SENTENCE_CHARS
        assert told.isprintable()


def refusal_of(entry: Entry, arguments: dict[str, Any]) -> str | None:
    try:
        command_from(entry, arguments)
    except InvalidRequest as refusal:
        return str(refusal)
    return None


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "x" * 1_000_000, "cmd": "ls"},
        {"x" * 1_000_000: 1},
        {"name": "a", "cmd": "ls", "timeout": 10**4000},
        {f"k{n}": n for n in range(10_000)},
    ],
    ids=["long name", "long key", "huge number", "many keys"],
)
def test_a_sentence_is_short_however_much_was_sent(arguments: dict[str, Any]) -> None:
    told = refusal_of(BY_NAME["term_run"], arguments)
    assert told is not None
    assert len(told) <= MAX_SENTENCE_CHARS


def test_arguments_make_a_command() -> None:
    command = command_from(
        BY_NAME["term_run"], {"name": "build", "cmd": "make", "timeout": 5, "from_handle": "alice"}
    )
    assert command == terminals.RunCommand(
        name="build", cmd="make", timeout=5.0, from_handle="alice"
    )


def test_no_arguments_are_enough_where_all_have_defaults() -> None:
    assert command_from(BY_NAME["inbox_wait"], {}) == inboxes.WaitInbox()


RECORD = terminals.CommandRecord(
    seq=0,
    cmd="ls",
    writer="human",
    started_at="2026-05-22T14:03:25.000Z",
    finished_at=None,
    duration_s=None,
    exit=None,
    stdout="",
    stderr="",
    killed_by_restart=False,
    timed_out=True,
    cwd="/",
    output_bytes=0,
    truncated=False,
    raw_start=0,
    raw_end=None,
    needs_input=terminals.NeedsInput(kind="secret", program="sudo"),
    end=None,
)


def test_a_list_travels_in_an_object_and_says_more_only_when_there_is() -> None:
    assert to_plain(terminals.RecordList(result=[])) == {"result": [], "running": None}
    assert to_plain(terminals.TerminalList(result=[])) == {"result": [], "of_agents": []}
    document = to_plain(terminals.RecordList(result=[RECORD], more=True))
    assert document["more"] is True
    assert list(document) == ["result", "more", "running"]


def test_a_record_keeps_its_false_flags_and_nulls() -> None:
    document = to_plain(RECORD)
    assert document["killed_by_restart"] is False
    assert document["exit"] is None
    assert document["needs_input"] == {"kind": "secret", "program": "sudo"}
    assert json.loads(json.dumps(document)) == document


def test_a_tree_travels_whole() -> None:
    leaf = daemon.TreeNode(
        path="/a/b", name="b", kind="X", state="running", mailbox=0, restarts=1, uptime_s=2.0,
        children=[],
    )  # fmt: skip
    root = daemon.TreeNode(
        path="/a", name="a", kind="Supervisor", state="running", mailbox=0, restarts=0,
        uptime_s=2.0, children=[leaf],
    )  # fmt: skip
    children = to_plain(root)["children"]
    assert children == [to_plain(leaf)]


@pytest.mark.parametrize(
    ("command", "sent", "read"),
    [
        ("term_spawn", {"cols": "100"}, {"cols": 100}),
        ("term_spawn", {"cols": 100.0}, {"cols": 100}),
        ("term_spawn", {"cols": "100.0"}, {"cols": 100}),
        ("term_spawn", {"env": '{"A": "1", "B": "true"}'}, {"env": {"A": "1", "B": "true"}}),
        ("term_run", {"timeout": "5"}, {"timeout": 5}),
        ("term_run", {"timeout": " 0.5 "}, {"timeout": 0.5}),
        ("term_read", {"last_n": "null", "output": "True"}, {"last_n": None, "output": True}),
        ("enqueue", {"callback": "false", "after": "[]"}, {"callback": False, "after": []}),
        ("term_broadcast", {"names": '["a", "b"]'}, {"names": ["a", "b"]}),
        ("run_workflow", {"kwargs": '{"a": "1"}'}, {"kwargs": {"a": "1"}}),
        # Text stays text, though it is JSON too.
        ("term_run", {"cmd": "5", "name": "true"}, {"cmd": "5", "name": "true"}),
        ("handoff", {"context": '["a"]', "key": "null"}, {"context": '["a"]', "key": "null"}),
        ("request_answer", {"values": {"n": "5"}}, {"values": {"n": "5"}}),
        ("request_answer", {"values": '{"n": "5"}'}, {"values": {"n": "5"}}),
        # There is no reading, or no single one: refused as before.
        ("term_spawn", {"cols": "wide"}, {"cols": "wide"}),
        ("term_spawn", {"cols": "100.5"}, {"cols": "100.5"}),
        ("term_spawn", {"cols": "true"}, {"cols": "true"}),
        ("term_spawn", {"cols": ""}, {"cols": ""}),
        ("term_run", {"timeout": "NaN"}, {"timeout": "NaN"}),
        ("term_run", {"timeout": "1e999"}, {"timeout": "1e999"}),
        ("term_broadcast", {"names": "a"}, {"names": "a"}),
        ("term_broadcast", {"names": '["a", 5]'}, {"names": '["a", 5]'}),
        ("enqueue", {"callback": "1"}, {"callback": "1"}),
        ("term_spawn", {"env": '{"A": "1", "A": "2"}'}, {"env": '{"A": "1", "A": "2"}'}),
        ("term_spawn", {"env": "[" * 100_000}, {"env": "[" * 100_000}),
    ],
)
def test_the_arguments_of_a_model_are_read_by_their_types(
    command: str, sent: dict[str, Any], read: dict[str, Any]
) -> None:
    taken = model_arguments(BY_NAME[command].command, sent)
    assert taken == read
    assert [type(each) for each in taken.values()] == [type(each) for each in read.values()]


@given(st.text())
def test_no_text_of_a_model_becomes_another_text(text: str) -> None:
    form = BY_NAME["term_run"].command
    assert model_arguments(form, {"cmd": text}) == {"cmd": text}
    timeout = model_arguments(form, {"timeout": text})["timeout"]
    assert timeout == text or isinstance(timeout, int | float)


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_null_is_the_absence_of_every_optional_argument(entry: Entry) -> None:
    fields = resolved_fields(entry.command)
    nulls = {each.name: None for each in fields if each.default is not attrs.NOTHING}
    assert refusal_of(entry, nulls) == refusal_of(entry, {})
    required = {each.name: None for each in fields if each.default is attrs.NOTHING}
    assert bool(required) == ("null" in (refusal_of(entry, required) or ""))
