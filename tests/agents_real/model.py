"""The scripted model as a process, and what it was asked."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import trio

from tests.agents_real.model_server.conversation import Book
from tests.agents_real.model_server.script import Json
from tests.agents_real.model_server.server import book_of
from tests.agents_real.namespace import Namespace

ROOT = Path(__file__).resolve().parents[2]
POLL_S = 0.02
GUARD_S = 120.0


@attrs.frozen
class Model:
    """A running model server at ``url``."""

    url: str
    _record: Path

    def teach(self, book: Book) -> None:
        """Give it scripts for prompts in plain language, each by a phrase of its prompt."""
        made = book_of(self._record).with_suffix(".new")
        made.write_text(json.dumps(book))
        made.replace(book_of(self._record))

    def requests(self) -> list[Json]:
        """Return the requests of conversations, oldest first, with their ``outcome``.

        What a CLI asks for itself, such as a title, is left out. The outcome is ``None`` as long
        as the answer is not complete.
        """
        lines = self.lines()
        outcomes = {each["number"]: each["outcome"] for each in lines if each["event"] == "end"}
        asked = (each for each in lines if each["event"] == "request" and not each["is_aside"])
        return [{**each, "outcome": outcomes.get(each["number"])} for each in asked]

    def lines(self) -> list[Json]:
        """Return the whole record."""
        if not self._record.exists():
            return []
        # The last line may be half written.
        whole, _, _ = self._record.read_text().rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]

    async def wait_asked(self, text: str) -> Json:
        """Wait for a request whose newest message has this text; return the first."""
        with trio.fail_after(GUARD_S):
            while True:
                for request in self.requests():
                    if text in str(request["messages"][-1]):
                        return request
                await trio.sleep(POLL_S)

    async def wait_ended(self, number: int) -> object:
        """Wait for the end of an answer; return its outcome."""
        with trio.fail_after(GUARD_S):
            while True:
                for line in self.lines():
                    if line["event"] == "end" and line["number"] == number:
                        return line["outcome"]
                await trio.sleep(POLL_S)


@contextmanager
def scripted_model(namespace: Namespace, directory: Path) -> Iterator[Model]:
    """Run a model server inside a namespace."""
    record = directory / "model.jsonl"
    words = [sys.executable, "-m", "tests.agents_real.model_server", str(record)]
    pipe = subprocess.PIPE
    with subprocess.Popen(namespace.command(*words), cwd=ROOT, stdin=pipe, stdout=pipe) as server:
        assert server.stdout is not None
        port = server.stdout.readline().decode().strip()
        assert port, "the model server did not start"
        yield Model(f"http://127.0.0.1:{port}", record)
        assert server.stdin is not None
        server.stdin.close()
