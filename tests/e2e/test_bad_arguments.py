"""Every bad argument of every tool is refused with one sentence, and nothing is left behind."""

from __future__ import annotations

import itertools
import json
import math
import re
import socket
from collections.abc import Iterator
from typing import Any

import attrs
import mcp_types as types
import pytest
import trio

from actors.codec import resolved_fields
from aegis.client.calls import arguments_of
from aegis.client.errors import CommandFailed
from aegis.protocol.derived.wire import model_arguments
from aegis.protocol.entry import Entry, Owner
from aegis.protocol.table import COMMANDS
from tests.e2e.conftest import Connect
from tests.e2e.harness import GUARD_S, DaemonProcess, LiveTerminal

pytestmark = [
    pytest.mark.real,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

MAX_SENTENCE_CHARS = 400

GOOD: dict[str, dict[str, object]] = {
    "conversation": {"conversation": "00000000-0000-4000-8000-000000000000"},
    "old_handle": {"old_handle": "target"},
    "new_handle": {"new_handle": "another"},
    "name": {"name": "{terminal}"},
    "profile": {"profile": "claude"},
    "names": {"names": ["{terminal}"]},
    "workspace": {"workspace": "target"},
    "command": {"command": "echo bad-arguments"},
    "input": {"input": "bad-arguments"},
    "cmd": {"cmd": "echo bad-arguments"},
    "keys": {"keys": "bad-arguments"},
    "signal": {"signal": "INT"},
    "cols": {"cols": 80},
    "rows": {"rows": 24},
    "target_handle": {"target_handle": "somebody"},
    "context": {"context": "bad-arguments"},
    "handle": {"handle": "somebody"},
    "node": {"node": "local"},
    "id": {"id": "a" * 12},
    "digest": {"digest": "a" * 64},
    "answer": {"answer": "allow"},
    "queue": {"queue": "build"},
    "payload": {"payload": "bad-arguments"},
    "question": {"question": "bad-arguments"},
    "task_id": {"task_id": "0" * 26},
    "file": {"file": "target.md"},
    "section": {"section": "Goals"},
    "content": {"content": "bad-arguments"},
    "text": {"text": "bad-arguments"},
    "workflow_id": {"workflow_id": "0" * 26},
    "group": {"group": "committee"},
    "objective": {"objective": "bad-arguments"},
    "new_name": {"new_name": "council"},
    "view": {"view": "terminal:{terminal}"},
    "endpoint": {"endpoint": "https://push.example/bad-arguments"},
    "p256dh": {"p256dh": "A" * 87},
    "auth": {"auth": "A" * 22},
}
"""What each argument that cannot be left out may be."""

BAD: dict[str, list[tuple[object, str]]] = {
    "name": [("", "1 to 64"), ("a b", "1 to 64"), ("x" * 65, "1 to 64"), (5, "text"), (None, "")],
    "kind": [("files", "command"), (5, "command")],
    "word": [("x" * 201, "200"), (5, "text")],
    "exit_code": [(-1, "from 0"), (256, "255"), ("0", "whole number")],
    "since": [("yesterday", "since"), (5, "text"), ("x" * 41, "40")],
    "more": [("x", "more"), ("0" * 26, "search again"), (5, "text")],
    "names": [
        ([], "1 to 64"),
        (["a b"], "1 to 64"),
        ([f"t{number}" for number in range(65)], "1 to 64"),
        (["target", "TARGET"], "different"),
        ("target", "list"),
        ([5], "text"),
        (None, ""),
    ],
    "cmd": [("a\0b", "NUL"), ("x" * 1_000_001, "1000000"), (["ls"], "text"), (None, "")],
    "timeout": [
        (-1, "from"),
        (86_401, "from"),
        ("soon", "number"),
        (True, "number"),
        ([1], "number"),
    ],
    "workspace": [("a b", "1 to 32"), ("x" * 33, "1 to 32"), (5, "text"), (None, "")],
    "directory": [("/no/such/directory", "does not exist"), (5, "text"), ("x" * 16_388, "16387")],
    "command": [("a\0b", "NUL"), ("x" * 1_000_001, "1000000"), (["ls"], "text"), (None, "")],
    "input": [("x" * 65_536, "65535"), (7, "text"), (None, "")],
    "append_newline": [("yes", "true or false"), (1, "true or false")],
    "stderr": [("apart", "merged"), (5, "merged"), (True, "merged")],
    "keys": [("x" * 65_537, "65536"), (7, "text"), (None, "")],
    "signal": [("9", "INT"), ("", "INT"), ("SIGSEGV", "INT"), (2, "text"), (None, "")],
    "last_n": [(0, "from 1 to 1000"), (1001, "from 1"), ("5", "whole number"), (2.5, "whole")],
    "since_seq": [(-2, "from -1"), ("0", "whole number"), (True, "whole number")],
    "before": [(0, "from 1"), ("0", "whole number"), (True, "whole number")],
    "before_seq": [(-1, "from 0"), ("0", "whole number"), (True, "whole number")],
    "output": [("no", "true or false"), (1, "true or false")],
    "cursor": [(-1, "from 0"), (10**12, "ends at"), ("0", "whole number")],
    "max_bytes": [(255, "from 256"), (1_048_577, "1048576"), (300.5, "whole")],
    "wait_s": [(-1, "from 0"), (86_401, "86400"), ("long", "number")],
    "plain": [("yes", "true or false"), (1, "true or false")],
    "until": [("queued", "started"), (True, "started")],
    "seq": [(-1, "from 0"), (10**9, ""), (0.5, "whole number")],
    "pattern": [
        ("(", "regular expression"),
        (r"\pL{900}", "too large"),
        ("x" * 1_001, "1000"),
        (5, "text"),
    ],
    "idle_s": [(0, "from 0.05"), (3_601, "3600"), ("1", "number")],
    "shell": [("/no/such/shell", "program"), (5, "text"), ("x" * 16_388, "16387")],
    "cwd": [("/no/such/directory", "does not exist"), ({}, "text"), ("x" * 16_388, "16387")],
    "env": [({"": "x"}, "empty"), ({"a": 5}, "text"), ([], "object"), ("a=b", "object")],
    "cols": [(1, "2 to 1000"), (1001, "2 to 1000"), ("80", "whole number"), (80.5, "whole")],
    "rows": [(0, "1 to 1000"), (-5, "1 to 1000"), (True, "whole number")],
    "only_failures": [("no", "true or false"), (1, "true or false")],
    "node": [("a b", "1 to 64"), ("x" * 65, "1 to 64"), ("nowhere", "no node"), (5, "text")],
    "purge": [("yes", "true or false"), (1, "true or false")],
    "after": [("no such message", "after"), (5, "text"), ("x" * 513, "512")],
    "unread": [("no", "true or false"), (0, "true or false")],
    "limit": [(0, "1 to 1000"), (1001, "1 to 1000"), ("9", "whole number")],
    "target_handle": [("a b", "1 to 64"), ("nobody-here", "nobody"), (None, ""), (3, "text")],
    "interrupt": [("yes", "true or false"), (1, "true or false"), (True, "somebody")],
    "unless_begun": [("yes", "true or false"), (1, "true or false"), (True, "give its id")],
    "key": [("x" * 257, "256"), (5, "text")],
    "alone": [("yes", "true or false"), (1, "true or false")],
    "context": [("x" * 262_145, "262144"), (None, ""), (3, "text")],
    "handle": [("human", "reserved"), ("a/b", "1 to 64"), (None, ""), (False, "text")],
    "tools": [([], "1 to 256"), (["no_such"], "no_such"), ("core", "list"), ([5], "text")],
    "session": [("a b", "1 to 64"), ("nobody-here", "nobody-here"), (5, "text")],
    "all_keys": [("yes", "true or false"), (1, "true or false")],
    "state": [("late", "closed"), (5, "closed"), (True, "closed")],
    "id": [("", "12 digits"), ("a" * 13, "12 digits"), ("A" * 12, "12 digits"), (5, "text")],
    "digest": [("0", "digest that"), ("g" * 64, "digest that"), (5, "text"), (None, "")],
    "answer": [("yes", "allow"), (True, "allow"), (None, "")],
    "question": [(" ", "1 to 4096"), ("x" * 4_097, "4096"), (5, "text"), (None, "")],
    "options": [(["a", "a"], "different"), ([" "], "1 to 500"), ("a", "list"), ([5], "text")],
    "scope": [("always", "once"), (5, "once")],
    "option": [("x" * 8_193, "8192"), (5, "text")],
    "message": [("x" * 8_193, "8192"), (5, "text")],
    "values": [("a=b", "object"), ({"a": {}}, "values"), ({"a": [5]}, "values")],
    "model": [("x" * 201, "200"), (5, "text")],
    "permission": [("root", "full"), (5, "full")],
    "budget_usd": [(-1, "from 0"), ("5", "number"), (1e12, "1000000")],
    "queue": [("a b", "1 to 64"), ("nowhere", "no queue"), (5, "text"), (None, "")],
    "payload": [("x" * 262_145, "262144"), (5, "text"), (None, "")],
    "callback": [("yes", "true or false"), (1, "true or false")],
    "priority": [(10, "from -9 to 9"), (-10, "from -9 to 9"), ("1", "whole number")],
    "not_before": [("x" * 41, "40"), (5, "text")],
    "max_attempts": [(0, "from 1 to 100"), (101, "from 1 to 100"), ("1", "whole number")],
    "max_runtime_s": [(0, "from 1 to"), (1e9, "from 1 to"), ("5", "number")],
    "group": [("a b", "1 to 64"), ("nowhere", "no group"), (5, "text"), (None, "")],
    "profile": [("a b", "1 to 64"), ("nobody", "no profile"), (5, "text"), (None, "")],
    "profiles": [("claude", "list"), ([5], "text"), (["a b"], "not a name"), (["no"], "profile")],
    "preset": [("a b", "1 to 64"), ("nowhere", "no preset"), (5, "text")],
    "objective": [("x" * 200_001, "200000"), (5, "text"), (None, "")],
    "output_format": [("x" * 20_001, "20000"), (5, "text")],
    "tool_guidance": [("x" * 20_001, "20000"), (5, "text")],
    "boundaries": [("x" * 20_001, "20000"), (5, "text")],
    "reducer": [("vote", "majority_vote"), (5, "concat")],
    "broadcast_id": [("x", "26 digits"), (5, "text"), ("0" * 26, "no group")],
    "cancel_losers": [("no", "true or false"), (1, "true or false")],
    "new_name": [("a b", "1 to 64"), (5, "text"), (None, "")],
    "task_id": [("x", "26 digits"), ("0" * 26, "no task"), (5, "text"), (None, "")],
    "file": [
        ("../x.md", "not below"),
        ("x.txt", "must end with .md"),
        ("x" * 16_388, "16387"),
        (5, "text"),
    ],
    "section": [("", "1 to 200"), ("a\nb", "1 to 200"), ("x" * 201, "1 to 200"), (5, "text")],
    "sections": [([], "1 to 100"), (["a\nb"], "1 to 200"), ("Goals", "list"), ([5], "text")],
    "content": [("x" * 262_145, "262144"), ("## Own\n", "heading"), (5, "text"), (None, "")],
    "text": [(" ", "nothing to append"), ("x" * 262_145, "262144"), (5, "text"), (None, "")],
    "if_rev": [(-1, "from 0"), ("1", "whole number"), (10**6, "no section")],
    "force": [("yes", "true or false"), (1, "true or false")],
    "kwargs": [([], "object"), ({"a": "x" * 70_000}, "65536"), (5, "object")],
    "view": [
        ("build", "terminal"),
        ("queue:build", "terminal"),
        ("terminal:a b", "terminal"),
        (None, ""),
    ],
    "for_s": [(59, "from 60"), (2_592_001, "2592000"), ("soon", "number"), (True, "number")],
    "label": [("x" * 201, "200"), (5, "text")],
    "workflow_id": [("x", "26 digits"), ("0" * 26, "no workflow"), (5, "text"), (None, "")],
    "from_handle": [
        ("a b", "1 to 64"),
        ("all", "reserved"),
        ("substrate", "reserved"),
        (1, "text"),
    ],
}
"""For each argument: what it must not be, and what the sentence says of it."""

_SHELL_ID = [("", "1 to 64"), ("a b", "1 to 64"), ("no-such", "no shell"), (5, "text"), (None, "")]
BAD_HERE: dict[str, list[tuple[object, str]]] = {
    "history.name": [("", "1 to 64"), ("a b", "1 to 64"), (5, "text")],
    "history.until": [("yesterday", "until"), (5, "text"), ("x" * 41, "40")],
    "history.limit": [(0, "1 to 200"), (201, "1 to 200"), ("9", "whole number")],
    "shell_open.name": [("", "1 to 31"), ("a.b", "1 to 31"), ("x" * 32, "1 to 31"), (5, "text")],
    "shell_open.cwd": [("/no/such/directory", "does not exist"), ({}, "text")],
    "term_wait.cursor": [(-1, "from 0"), ("0", "whole number")],
    "run_workflow.name": [("a b", "1 to 64"), ("nowhere", "no workflow"), (5, "text"), (None, "")],
    "enqueue.after": [("x", "list"), ([5], "text")],
    "task_move.task_id": [("x", "26 digits"), ("0" * 26, "no queue"), (5, "text"), (None, "")],
    "task_move.before": [("x", "26 digits"), ("0" * 26, "no queue"), (5, "text")],
    "task_move.to": [("front", '"first" or "last"'), (5, '"first" or')],
    "group_orders.before": [("x", "26 digits"), ("0" * 26, "no group"), (5, "text")],
    "group_orders.limit": [(0, "1 to 100"), (101, "1 to 100"), ("9", "whole number")],
    "workflow_steps.after": [(-1, "from 0"), ("1", "whole number")],
    "workflow_steps.limit": [(0, "1 to 500"), (501, "1 to 500"), ("9", "whole number")],
    "task_list.queue": [("a b", "1 to 64"), ("nowhere", "no queue"), (5, "text")],
    "page_revoke.id": [("", "id of a page"), ("A!", "id of a page"), (5, "text"), (None, "")],
    "push_remove.id": [("", "id of a"), ("A!", "id of a"), (5, "text"), (None, "")],
    "push_subscribe.endpoint": [("x" * 1_025, "1024"), (5, "text"), (None, "")],
    "push_subscribe.p256dh": [("x", "key of a browser"), (5, "text"), (None, "")],
    "push_subscribe.auth": [("x", "secret of a browser"), (5, "text"), (None, "")],
    "push_subscribe.label": [("x" * 121, "120"), (5, "text")],
    **{
        f"push_subscribe.{field}": [("yes", "true or false"), (1, "true or false")]
        for field in ("requests", "ends", "hides")
    },
    "session_revoke.handle": [
        ("human", "no session"),
        ("a/b", "1 to 64"),
        (None, ""),
        (False, "text"),
    ],
    "spawn.profile": [("a b", "1 to 64"), ("nobody", "no profile"), (5, "text")],
    "spawn.prompt": [("x" * 262_145, "262144"), (5, "text")],
    "spawn.handle": [("a b", "1 to 64"), ("human", "reserved"), (5, "text")],
    "spawn.workspace": [("a b", "1 to 64"), ("nowhere", "no workspace"), (5, "text")],
    "agent_launch.cmd": [("", "empty"), (" \n", "empty"), ("x" * 16_385, "16384"), (5, "text")],
    "agent_launch.handle": [("a b", "1 to 64"), ("human", "reserved"), (5, "text")],
    "agent_output.command": [("term_1", "an id of"), ("../x", "an id of"), (5, "text"), (None, "")],
    "agent_output.cursor": [(-1, "an offset"), ("0", "whole number")],
    "agent_launch.workspace": [("a b", "1 to 64"), ("nowhere", "no workspace"), (5, "text")],
    **{
        f"{command}.group": [("a b", "1 to 64"), (5, "text"), (None, "")]
        for command in ("group_spawn", "group_spawn_mixed")
    },
    "workflow_list.limit": [(-1, "0 to 1000"), (1001, "0 to 1000"), ("9", "whole number")],
    "group_spawn.handle": [("a b", "1 to 64"), (5, "text")],
    "list_sessions.closed": [("no", "true or false"), (1, "true or false")],
    **{
        f"{command}.handle": [("a b", "1 to 64"), ("nobody", "no agent"), (5, "text"), (None, "")]
        for command in (
            *("session_read", "session_export", "interrupt", "close", "agent_wait"),
            *(
                "agent_show",
                "agent_restart",
                "agent_set",
                "agent_resume",
                "agent_fork",
                "agent_diff",
                "agent_output",
                "agent_purge",
            ),
        )
    },
    **{
        f"{command}.effort": [("x" * 201, "200"), (5, "text")] for command in ("spawn", "agent_set")
    },
    # Any other handle is refused over MCP, as every call of these.
    **{
        f"{command}.handle": [("a b", "1 to 64"), (5, "text"), (None, "")]
        for command in (
            "agent_takeover",
            "agent_handback",
            "agent_rewind",
            "agent_merge",
            "agent_send",
        )
    },
    "agent_rewind.turn": [(0, "1 to"), ("1", "whole number")],
    "agent_rewind.dry_run": [("yes", "true or false"), (1, "true or false")],
    "agent_send.text": [("x" * 262_145, "262144"), (5, "text"), (None, "")],
    **{
        f"{command}.thinking": [("maybe", "on, off"), ("0", "on, off"), (5, "text")]
        for command in ("spawn", "agent_set")
    },
    "agent_send.images": [(["/x"] * 21, "20 paths"), ([5], "text"), ("/x", "list")],
    "agent_send.files": [(["/x"] * 21, "20 paths"), ([5], "text"), ("/x", "list")],
    "agent_send.texts": [
        ({str(each): "" for each in range(21)}, "20 files"),
        ({"/x": "y" * 262_144}, "262144"),
        ({"/x": 5}, "text"),
        (["/x"], "object"),
    ],
    "agent_send.alone": [("yes", "true or false"), (1, "true or false")],
    "agent_send.interrupt": [("yes", "true or false"), (1, "true or false")],
    "agent_send.key": [("x" * 257, "256"), (5, "text")],
    "agent_continue.conversation": [("x" * 201, "200"), (5, "text"), (None, "")],
    "agent_continue.fork": [("yes", "true or false"), (1, "true or false")],
    **{
        f"{command}.{field}": [("a b", "1 to 64"), (5, "text")]
        for command in ("agent_conversations", "agent_continue")
        for field in ("profile", "workspace", "handle")
    },
    "agent_takeover.interrupt": [("yes", "true or false"), (1, "true or false")],
    "agent_worktree_remove.handle": [
        ("a b", "1 to 64"),
        ("nobody", "there is no agent 'nobody'"),
        (5, "text"),
        (None, ""),
    ],
    "agent_worktree_remove.force": [("yes", "true or false"), (1, "true or false")],
    "agent_trust.digest": [("x" * 65, "64"), (5, "text")],
    "agent_trust.workspace": [("a b", "1 to 64"), (5, "text")],
    "agent_trust.profile": [("a b", "1 to 64"), (5, "text")],
    "spawn.directory": [(5, "text"), ("/", "not below the root"), ("no", "is no directory")],
    "agent_trust.directory": [(5, "text"), ("x" * 20_000, "16387")],
    "spawn.worktree": [("yes", "true or false"), (1, "true or false")],
    "spawn.branch": [("x" * 201, "200"), (5, "text"), ("--upload-pack", "cannot be called")],
    "session_export.form": [("html", '"markdown" or "jsonl"'), (5, '"markdown" or')],
    "session_export.since": [(-1, "0"), ("1", "whole number")],
    "agent_wait.message": [("x" * 513, "512"), (5, "text")],
    "interrupt.message": [("x" * 513, "512"), (5, "text")],
    "agent_wait.turn": [(0, "1 to"), ("1", "whole number")],
    "agent_wait.text": [("x" * 1_001, "1000"), (5, "text")],
    "agent_wait.blocked": [("no", "true or false"), (1, "true or false")],
    "agent_usage.handle": [("a b", "1 to 64"), ("nobody", "no agent"), (5, "text")],
    "agent_usage.closed": [("no", "true or false"), (1, "true or false")],
    "agent_usage_over_time.by": [("year", '"hour", "day"'), (5, '"hour", "day"')],
    "agent_usage_over_time.split": [("no", "true or false"), (1, "true or false")],
    "agent_usage_over_time.handle": [("a b", "1 to 64"), (5, "text")],
    "agent_usage_over_time.since": [("x" * 41, "40"), (5, "text")],
    "agent_usage_over_time.limit": [(0, "1 to 5000"), (5_001, "1 to 5000"), ("1", "whole number")],
    "agent_resume.prompt": [("x" * 262_145, "262144"), (5, "text")],
    "agent_fork.prompt": [("x" * 262_145, "262144"), (5, "text")],
    "agent_continue.prompt": [("x" * 262_145, "262144"), (5, "text")],
    "agent_fork.new_handle": [("a b", "1 to 64"), (5, "text")],
    "rename.old_handle": [("a b", "1 to 64"), ("nobody", "no agent"), (5, "text"), (None, "")],
    "rename.new_handle": [("a b", "1 to 64"), (5, "text"), (None, "")],
    "session_read.last_n": [(0, "1 to 1000"), ("9", "whole number")],
    "session_read.since": [(-1, "from 0"), ("9", "whole number")],
    "request_list.handle": [("a b", "1 to 64"), ("", "1 to 64"), (5, "text")],
    "request_list.id": [
        *((each, "first 4 digits") for each in ("", "abc", "a" * 13, "A" * 12)),
        (5, "text"),
    ],
    "request_list.limit": [(0, "1 to 500"), (501, "1 to 500"), ("9", "whole number")],
    "node_forget.node": [
        ("", "1 to 64"),
        ("a b", "1 to 64"),
        ("nowhere", "no node"),
        (5, "text"),
        (None, ""),
    ],
    "shell_read.shell": _SHELL_ID,
    "shell_write.shell": _SHELL_ID,
    "shell_signal.shell": _SHELL_ID,
    "shell_close.shell": _SHELL_ID,
}
"""The same where an argument means something else than elsewhere."""


@attrs.frozen
class Bad:
    """Arguments that one command must refuse, and a word of why."""

    entry: Entry
    argument: str
    value: object
    reason: str

    def arguments(self, terminal: str) -> dict[str, object]:
        given: dict[str, object] = {}
        for field in attrs.fields(self.entry.command):
            given |= GOOD.get(field.name, {})
        if "name" in given:
            # A spawn that is refused for another reason must not be refused for its name.
            given["name"] = f"{terminal}-new" if self.entry.name == "term_spawn" else terminal
        if "names" in given:
            given["names"] = [terminal]
        if "view" in given:
            given["view"] = f"terminal:{terminal}"
        if self.entry.name == "agent_output":
            given["command"] = "term_1_1"
        if self.entry.owner is Owner.WORKSPACES:
            given = self._of_workspace(given)
        if self.value is None:
            given.pop(self.argument, None)
        else:
            given[self.argument] = self.value
        return given

    def _of_workspace(self, given: dict[str, object]) -> dict[str, object]:
        """What is good for a shell is something else; and what is to be made is not there yet."""
        given.pop("name", None)
        if any(field.name == "shell" for field in attrs.fields(self.entry.command)):
            given["shell"] = "target.1" if self.entry.name != "shell_open" else "bash"
        if self.entry.name == "workspace_create":
            given["workspace"] = "new"
        return given

    def __str__(self) -> str:
        return f"{self.entry.name}-{self.argument}-{self.value!r:.30}"


def every_bad_argument() -> Iterator[Bad]:
    for entry in COMMANDS:
        for field in attrs.fields(entry.command):
            here = BAD_HERE.get(f"{entry.name}.{field.name}")
            for value, reason in here or BAD[field.name]:
                yield Bad(entry, field.name, value, reason)
        yield Bad(entry, "no_such_argument", 1, "no_such_argument")


EVERY = list(every_bad_argument())


@pytest.fixture(scope="module")
def target(daemon: DaemonProcess) -> LiveTerminal:
    """A terminal that must stay as it is."""
    terminal = LiveTerminal(daemon, "target", daemon.call("term_spawn", name="target"))
    terminal.run("echo first")
    daemon.call("workspace_create", workspace="target")
    daemon.call("shell_open", workspace="target")
    (daemon.root / "target.md").write_text("## Other\n\ntext\n")
    daemon.call("canvas_open", name="target", file="target.md")
    daemon.call("inbox_read")  # whoever reads an inbox has one from then on
    return terminal


@pytest.fixture(autouse=True)
def nothing_is_left_behind(target: LiveTerminal) -> Iterator[None]:
    """No directory, no process, no record, no terminal, no byte for the shell."""
    before = whole_state(target)
    yield
    assert whole_state(target) == before


def whole_state(target: LiveTerminal) -> dict[str, Any]:
    daemon = target.daemon
    return {
        "terminals": daemon.call("term_list"),
        "records": target.records(),
        "typed": b"bad-arguments" in target.raw(),
        "files": sorted(daemon.state.directory.rglob("*")),
        "processes": sorted(daemon.shell_processes()),
    }


def sentence_of(result: types.CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, types.TextContent)
    return content.text


_TWICE = re.compile(r"\b(?:aegis_|aegis-actors )?(\w+(?:[ -]\w+)*): (?:aegis_|aegis-actors )?\1:")
"""A prefix that was put before a sentence that has it already."""


def check_sentence(sentence: str, reason: str) -> None:
    assert reason in sentence
    assert "\n" not in sentence
    assert "Traceback" not in sentence
    assert "internal" not in sentence
    assert _TWICE.search(sentence) is None
    assert len(sentence) <= MAX_SENTENCE_CHARS


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_the_line_protocol_refuses_every_bad_argument(target: LiveTerminal, entry: Entry) -> None:
    for bad in EVERY:
        if bad.entry is entry:
            error = target.daemon.refusal(entry.name, **bad.arguments(target.name))
            assert error.code in ("invalid_request", "not_found"), bad
            check_sentence(str(error), bad.reason)


FLOATS = [
    (entry, field.name)
    for entry in COMMANDS
    for field in resolved_fields(entry.command)
    if "float" in str(field.type)
]
TOKENS = ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "-1", "true", '"1"']


def test_every_field_that_is_a_float_is_found() -> None:
    found = {(entry.name, field) for entry, field in FLOATS}
    assert {("term_run", "timeout"), ("term_wait", "idle_s"), ("shell_read", "wait_s")} <= found


def test_the_line_protocol_refuses_every_float_that_is_no_finite_number(
    target: LiveTerminal,
) -> None:
    path = target.daemon.endpoint.socket_path
    with socket.socket(socket.AF_UNIX) as connected, connected.makefile("rb") as replies:
        connected.settimeout(GUARD_S)
        connected.connect(path)
        for (entry, field), token in itertools.product(FLOATS, TOKENS):
            arguments = json.dumps(Bad(entry, field, 0, "").arguments(target.name) | {field: None})
            arguments = arguments.replace(f'"{field}": null', f'"{field}": {token}')
            request = (
                f'{{"type":"request","id":1,"command":"{entry.name}","arguments":{arguments}}}'
            )
            connected.sendall(request.encode() + b"\n")
            answer = json.loads(replies.readline())
            assert (answer["type"], answer["code"]) == ("error", "invalid_request"), request
            check_sentence(answer["message"], "")


def test_the_python_clients_refuse_every_float_that_is_no_finite_number() -> None:
    for (entry, field), value in itertools.product(FLOATS, (math.nan, math.inf, -math.inf, -1.0)):
        given = Bad(entry, field, value, "").arguments("target")
        with pytest.raises(CommandFailed) as caught:
            arguments_of(entry.command, given, None)
        assert caught.value.code == "invalid_request"
        assert str(caught.value).startswith(f"{field} must be ")
        check_sentence(str(caught.value), "")


@pytest.mark.long
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_mcp_refuses_every_bad_argument(
    target: LiveTerminal, connect_mcp: Connect, mode: str
) -> None:
    with trio.fail_after(GUARD_S):
        async with connect_mcp(target.daemon, mode) as client:
            for bad in EVERY:
                sent = {bad.argument: bad.value}
                if model_arguments(bad.entry.command, sent) != sent:
                    continue  # "5" for a number is no bad argument of a model
                result = await client.call_tool(bad.entry.tool, bad.arguments(target.name))
                assert result.is_error, str(bad)
                assert result.structured_content is None
                text = sentence_of(result)
                assert text.startswith(f"{bad.entry.tool}: "), text
                check_sentence(text, bad.reason)
            assert not (await client.call_tool("aegis_term_list", {})).is_error


async def test_mcp_refuses_a_tool_that_does_not_exist(
    target: LiveTerminal, connect_mcp: Connect
) -> None:
    with trio.fail_after(GUARD_S):
        async with connect_mcp(target.daemon, "auto") as client:
            result = await client.call_tool("aegis_term_runn", {"name": "target"})
    assert result.is_error
    check_sentence(sentence_of(result), "did you mean 'aegis_term_run'")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["term", "run", "target"], "COMMAND"),
        (["term", "run", "--timeout", "x", "target", "true"], "not a valid float"),
        (["term", "run", "--timeout", "nan", "target", "true"], "not a valid float"),
        (["workspace", "exec", "--timeout", "0", "target", "true"], "timeout must be from 0.01"),
        (["shell", "read", "--wait", "90000", "target.1"], "wait_s must be from 0 to 86400"),
        (["shell", "read", "--max-bytes", "1", "target.1"], "max_bytes must be from 256"),
        (["term", "read", "-n", "0", "target"], "1 to 1000"),
        (["term", "read", "-n", "1", "--since", "1", "target"], "give --since without -n"),
        (["term", "spawn", "a b"], "1 to 64"),
        (["term", "spawn", "new", "--env", "novalue"], "NAME=VALUE"),
        (["term", "spawn", "new", "--cols", "1"], "2 to 1000"),
        (["term", "keys", "target", r"\q"], "escape"),
        (["term", "close", "no-such"], "no terminal 'no-such'"),
        (["--as", "a b", "term", "list"], "1 to 64"),
        (["session", "new", "--handle", "all"], "reserved"),
        (["inbox", "send", "nobody-here", "x"], "nobody"),
        (["inbox", "read", "--limit", "0"], "1 to 1000"),
        (["up", "--port", "70000"], "65535"),
        (["--root", "/no/such/root", "status"], "does not exist"),
    ],
)
def test_the_command_line_refuses_in_one_line(
    target: LiveTerminal, words: list[str], reason: str
) -> None:
    done = target.daemon.cli(*words)
    assert done.returncode in (1, 2, 125)
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("aegis-actors: ")
    assert not line.startswith("aegis-actors: aegis-actors")
    check_sentence(line, reason)
