"""The clients that do what only a person does: take over, command, and merge worktrees."""

from __future__ import annotations

import random
import subprocess
import threading
from pathlib import Path
from typing import Any

from aegis.client.line import CommandFailed, LineClient
from tests.chaos.checking.checker import Violation
from tests.chaos.checking.observations import Span
from tests.chaos.notebook import Notebook
from tests.chaos.real.agents.clients import PAUSE_S, AgentClient, new_work
from tests.chaos.real.scratch import ScratchDaemon

MOST_TREES = 5
"""The most sessions with worktrees."""

NAMED = ("-c", "user.name=agent", "-c", "user.email=agent@example.org")


class Person(AgentClient):
    """Clears conversations, takes them over, says something there, and hands them back."""

    _held = _terminal = ""

    def work(self, daemon: ScratchDaemon) -> None:
        self._terminal = ""
        super().work(daemon)

    def step(self, client: LineClient) -> None:
        choice = self._chance.random()
        if not self._terminal and choice < 0.3:
            self._clear(client)
        elif not self._terminal:
            self._held = self.one_of_all()
            interrupts = choice < 0.8
            info = self.order(client, "takeover", self._held, interrupt=interrupts)
            self._terminal = "" if info is None else info["taken_over"]["terminal"]
        elif choice < 0.2:
            self.order(client, "handback", self._held)
            self._terminal = ""
        else:
            self._type(client, choice)

    def _clear(self, client: LineClient) -> None:
        command = {"target_handle": self.one_of_all(), "context": "/clear"}
        self.call(client, "handoff", lambda span, value, done: None, **command)

    def _type(self, client: LineClient, choice: float) -> None:
        text = f"words {self._book.moment()}"
        if choice > 0.7:
            text = self._chance.choice(("/clear", "/clear", "CHILD", "DEAF", "/exit"))
        keys = {"name": self._terminal, "keys": f"{text}\r"}
        try:
            client.call("term_keys", keys)
        except CommandFailed:
            self._terminal = ""
        threading.Event().wait(self._chance.uniform(0, PAUSE_S))


class Weaver(AgentClient):
    """Has sessions commit in worktrees of their own, and merges them into the checkout ``root``."""

    def __init__(self, handle: str, book: Notebook, chance: random.Random, root: Path) -> None:
        super().__init__(handle, book, chance)
        self._root = root
        self._log = root.parent / "commits.log"
        self._merged: list[str] = []

    def prepare(self) -> None:
        """Make the root a checkout."""
        self._log.touch()
        (self._root / ".gitignore").write_text(".aegis.yaml\n.aegis/\n")
        self._git("init", "-q", "-b", "main")
        self._git("config", "user.name", "person")
        self._git("config", "user.email", "person@example.org")
        self._git("add", ".gitignore")
        self._git("commit", "-qm", "first")

    def _git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self._root), *words], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def step(self, client: LineClient) -> None:
        threading.Event().wait(self._chance.uniform(0, 2 * PAUSE_S))
        trees = [each.handle for each in self._notes.spawned if each.done]
        trees = [each for each in trees if each.startswith("tree")]
        choice = self._chance.random()
        if len(trees) < MOST_TREES:
            body = f"{new_work(self._book, 'quick')[1]}\nRUN {self._commit()}"
            self.spawn(client, f"tree{self._book.moment()}", body, worktree=True)
        elif choice < 0.6:
            self._merge(client, self._chance.choice(trees))
        elif choice < 0.8:
            self._send(client, self._chance.choice(trees))
        else:
            handle = self._chance.choice(trees)
            self.order(client, self._chance.choice(("close", "resume")), handle)

    def _send(self, client: LineClient, handle: str) -> None:
        # Not noted: nobody asks for its credit.
        work = {"target_handle": handle, "context": f"RUN {self._commit()}"}
        self.call(client, "handoff", lambda span, value, done: None, **work)

    def _commit(self) -> str:
        number = self._book.moment()
        return (
            f"echo {number} >f{number} && git add f{number} && "
            f"git {' '.join(NAMED)} commit -qm {number} && git rev-parse HEAD >>{self._log}"
        )

    def _merge(self, client: LineClient, handle: str) -> None:
        def note(span: Span, value: Any, done: bool | None) -> None:
            if value is not None:
                self._merged.append(value["commit"])

        self.call(client, "agent_merge", note, handle=handle)

    def violations(self) -> list[Violation]:
        """Return what was lost of the worktrees, or left half done in the checkout."""
        found = [
            f"the commit {each} is in no branch"
            for each in self._log.read_text().split()
            if not self._git("for-each-ref", "--contains", each)
        ]
        found += [
            f"{each} was merged, and is not in main"
            for each in self._merged
            if not self._git("for-each-ref", "--contains", each, "refs/heads/main")
        ]
        if changed := self._git("status", "--porcelain"):
            found.append(f"the checkout has changes: {changed}")
        if (self._root / ".git" / "index.lock").exists():
            found.append("the index of the checkout is locked")
        return [Violation(rule="worktree", what=each) for each in found]
