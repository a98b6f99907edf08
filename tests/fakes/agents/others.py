"""A stand-in of the own interfaces of codex, opencode and kimi: an order per line.

/new          begin another conversation, which has no file before its first message
/open ID      continue another conversation
/exit         end
TEXT          a message, which is answered with ``heard TEXT``
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from tests.fakes.agents.persons import fresh_id, say
from tests.fakes.agents.witness import Witness

TABLES = {
    "session": "id, directory, parent_id, time_archived, time_updated, permission, time_created",
    "message": "id, session_id, time_created, data",
    "part": "id, message_id, data",
}


class Interface:
    """The interface of one agent, on the conversation ``id``."""

    def __init__(self, kind: str, id_: str) -> None:
        self.kind, self.id = kind, id_
        self.home = os.environ["HOME"]

    def begin(self) -> None:
        """Begin another conversation."""
        self.open(f"ses_{os.urandom(8).hex()}" if self.kind == "opencode" else fresh_id())

    def open(self, id_: str) -> None:
        """Continue another conversation."""
        self.id = id_
        if self.kind == "kimi":
            say(f"Session: {self.id}\n")

    def end(self) -> None:
        """Print how the conversation is continued."""
        if self.kind == "opencode":
            say(f"\n  Continue  opencode -s {self.id}\n")

    def add(self, role: str, text: str) -> None:
        """Add a message to the conversation."""
        getattr(self, f"_add_{self.kind}")(role, text)

    def _add_codex(self, role: str, text: str) -> None:
        item = {
            "type": "UserMessage" if role == "user" else "AgentMessage",
            "content": [{"type": "text", "text": text}],
        }
        directory = os.path.join(self.home, ".codex/sessions/2026/11/28")
        path = os.path.join(directory, f"rollout-2026-11-28T22-52-57-{self.id}.jsonl")
        if not os.path.exists(path):
            originator = os.environ["CODEX_INTERNAL_ORIGINATOR_OVERRIDE"]
            meta = {"originator": originator, "cwd": os.getcwd(), "source": "cli"}
            self._append(path, {"type": "session_meta", "payload": meta})
        payloads: list[dict[str, Any]] = [{"type": "item_completed", "item": item}]
        if role == "assistant":
            with open(path) as file:
                answers = file.read().count("AgentMessage") + 1
            figures = {"input_tokens": 120, "cached_input_tokens": 20, "output_tokens": 9}
            info = {
                "total_token_usage": {each: answers * value for each, value in figures.items()},
                "last_token_usage": figures,
            }
            payloads += [{"type": "token_count", "info": info}, {"type": "token_count"}]
        for payload in payloads:
            self._append(
                path,
                {
                    "timestamp": datetime.now(UTC).isoformat(),
                    "ordinal": time.monotonic_ns(),
                    "type": "event_msg",
                    "payload": payload,
                },
            )

    def _add_kimi(self, role: str, text: str) -> None:
        payload: dict[str, Any] = {"type": "text", "text": text}
        message = {"type": "ContentPart", "payload": payload}
        if role == "user":
            message = {"type": "TurnBegin", "payload": {"user_input": [payload]}}
        digest = hashlib.md5(os.getcwd().encode(), usedforsecurity=False).hexdigest()
        directory = os.path.join(self.home, ".kimi/sessions", digest, self.id)
        self._append(os.path.join(directory, "context.jsonl"), {"role": role, "content": text})
        line = {"timestamp": time.time(), "message": message}
        self._append(os.path.join(directory, "wire.jsonl"), line)

    def _add_opencode(self, role: str, text: str) -> None:
        directory = os.path.join(self.home, ".local/share/opencode")
        os.makedirs(directory, exist_ok=True)
        at, id_ = int(time.time() * 1000), f"msg_{time.monotonic_ns()}"
        tokens = {"input": 100, "output": 9, "reasoning": 0, "cache": {"read": 15, "write": 5}}
        about = {"role": role} | ({"tokens": tokens} if role == "assistant" else {})
        rows: dict[str, tuple[object, ...]] = {
            "message": (id_, self.id, at, json.dumps(about)),
            "part": (f"prt_{id_}", id_, json.dumps({"type": "text", "text": text})),
        }
        file = os.path.join(directory, "opencode.db")
        with closing(sqlite3.connect(file)) as database, database:
            for table, columns in TABLES.items():
                database.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
            known = database.execute("SELECT 1 FROM session WHERE id = ?", (self.id,)).fetchone()
            if known is None:
                rows["session"] = (self.id, os.getcwd(), None, None, at, None, at)
            for table, values in rows.items():
                marks = ", ".join("?" * len(values))
                database.execute(f"INSERT INTO {table} VALUES ({marks})", values)

    def _append(self, path: str, line: object) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a") as file:
            file.write(json.dumps(line) + "\n")


def run() -> int:
    """Serve a person at the terminal until the end."""
    given = dict(
        each[2:].split("=", 1) for each in sys.argv if each.startswith("--") and "=" in each
    )
    kind = "kimi" if "mcp-config-file" in given else "opencode"
    if "resume" in sys.argv:
        kind = "codex"
    conversation = given.get("session", sys.argv[-1])
    Witness().begin(conversation, is_person=True)
    interface = Interface(kind, conversation)

    def stop(_number: int, _frame: object) -> None:
        interface.end()
        os._exit(0 if kind == "opencode" else 143)

    signal.signal(signal.SIGTERM, stop)
    say(f"resumed {conversation} with {secret(kind, given)}\n")
    while True:
        say("> ")
        order = sys.stdin.readline().strip()
        match order:
            case "/new":
                interface.begin()
                say("is new\n")
            case _ if order.startswith("/open "):
                interface.open(order.split()[1])
                say("is open\n")
            case "/exit" | "":
                interface.end()
                return 0
            case _:
                interface.add("user", order)
                interface.add("assistant", f"heard {order}")
                say(f"heard {order}\n")


def secret(kind: str, given: dict[str, str]) -> str:
    """Return what the program was given of our server, and how it is to ask."""
    if kind == "codex":
        assert "--no-daemon" in sys.argv
        configured = [each for each in sys.argv if each.startswith("--config=")]
        return f"{given['sandbox']} and {len(configured)} settings"
    path, asks = given.get("mcp-config-file", ""), ""
    if kind == "opencode":
        configuration = json.loads(os.environ["OPENCODE_CONFIG_CONTENT"])
        asks = configuration["permission"]["*"]
        path = configuration["mcp"]["aegis"]["url"].removeprefix("{file:").removesuffix("}")
    with open(path) as file:
        assert "/mcp/" in file.read()
    return f"{os.stat(path).st_mode & 0o777:o} {asks}".strip()
