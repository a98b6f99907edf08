"""Requests through a whole daemon: the command line, MCP, lines, the WebSocket, Python.

The owner is an actor of the test: it opens requests by the message that sessions send, and counts
what acts.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

import aegis
from actors import ChildSpec
from aegis.client.line import CommandFailed
from aegis.protocol.requests import ApplyAnswer, OpenedRequest, OpenRequest, WithdrawRequests
from aegis.protocol.streams import (
    OpenRequestsItem,
    RequestItem,
)
from tests.aegis.requests.office import Owners, PlayedOwner, permission
from tests.chaos.real.scratch import PROGRAM
from tests.e2e.busy import callers, endpoint_of, sessions_of
from tests.e2e.callers import Caller
from tests.e2e.harness import GUARD_S
from tests.e2e.inside import DaemonInside, daemon_inside

pytestmark = [
    pytest.mark.real,
    pytest.mark.usefixtures("tidied"),
    # The official client leaves these behind when its connection is closed.
    pytest.mark.filterwarnings("ignore:Async generator '.*' was garbage collected:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

OWNER = "root/connections/owner"
HOSTILE = "rm -rf \x1b[2K\r\u202ebuild"
SHOWN = "rm -rf <U+001B>[2K<U+000D><U+202E>build"

QUESTION = {
    "kind": "question",
    "tool": "AskUserQuestion",
    "options": [],
    "input": {
        "questions": [
            {"question": "Which?", "options": [{"label": "A"}, {"label": "B"}]},
            {"question": "1+1=?", "options": [], "multiSelect": True},
        ]
    },
}
FORM = {
    "kind": "elicitation",
    "options": [],
    "input": {
        "mode": "form",
        "schema": {
            "properties": {"count": {"type": "integer"}, "sure": {"type": "boolean"}},
            "required": ["count"],
        },
    },
}


@attrs.frozen
class Scene:
    """A daemon with an owner of requests, which acts in order."""

    daemon: DaemonInside
    acted: list[ApplyAnswer]
    clients: dict[str, Caller]

    async def open(self, key: str = "k1", **changes: Any) -> OpenedRequest:
        desk = self.daemon.system.registry.find("service", "requests")
        assert desk is not None
        request: OpenRequest = permission(key, **({"owner": OWNER} | changes))
        opened: OpenedRequest = await desk.ask(request)
        return opened

    async def withdraw(self) -> None:
        desk = self.daemon.system.registry.find("service", "requests")
        assert desk is not None
        await desk.ask(WithdrawRequests(session="s-ann", reason="the turn ended"))

    async def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the command line in the root."""
        done = await trio.run_process(
            [*PROGRAM, *words],
            cwd=self.daemon.root,
            env={**os.environ, "HOME": str(self.daemon.home)},
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
        texts = (done.stdout.decode(), done.stderr.decode())
        return subprocess.CompletedProcess(words, done.returncode, *texts)


@asynccontextmanager
async def scene(directory: Path) -> AsyncIterator[Scene]:
    owners = Owners()
    with trio.fail_after(GUARD_S):
        async with daemon_inside(directory) as daemon:
            supervisor = daemon.system.supervisor("root/connections")
            await supervisor.start_child(ChildSpec.of("owner", PlayedOwner, owners=owners))
            endpoint = endpoint_of(daemon)
            async with callers(endpoint, await sessions_of(endpoint)) as clients:
                yield Scene(daemon, owners.acted, clients)


async def test_the_command_line_lists_shows_and_answers(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        none = await here.cli("request", "list")
        assert (none.returncode, none.stderr) == (0, "↳ no request\n")
        opened = await here.open(input={"command": HOSTILE}, title="\x1b]0;x\x07Run it")
        listed = await here.cli("request", "list")
        head, row = listed.stdout.splitlines()
        assert head.split() == ["id", "agent", "age", "kind", "tool", "input"]
        assert row.startswith(f"{opened.id}  ann ")
        assert row.endswith('{"command": "' + SHOWN + '"}')
        shown = await here.cli("request", "show", opened.id[:4])
        assert "title: <U+001B>]0;x<U+0007>Run it" in shown.stdout
        assert (
            "options: allow_once 'yes' (Allow), allow_session 'always' (Always all" in shown.stdout
        )
        assert all(each.isprintable() or each == "\n" for each in listed.stdout + shown.stdout)
        done = await here.cli("request", "answer", opened.id[:6].upper(), "allow", "--session")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"request {opened.id} of 'ann' was answered: allow session\n"
        again = await here.cli("request", "answer", opened.id, "deny")
        assert again.returncode == 1
        assert "was answered by human at " in again.stdout
        closed = json.loads((await here.cli("request", "list", "--closed", "--json")).stdout)
        [kept] = closed["requests"]
        assert (kept["id"], kept["scope"], kept["by"]) == (opened.id, "session", "human")
    assert [each.scope for each in here.acted] == ["session"]


async def test_the_command_line_answers_questions_and_forms(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        question = await here.open("q", **QUESTION)
        form = await here.open("f", **FORM)
        wrong = await here.cli("request", "answer", question.id, "allow", "--set", "1=A")
        assert wrong.returncode == 1
        assert "question '1+1=?' has no answer in values" in wrong.stderr
        words: tuple[str, ...] = ("--set", "1=A", "--set", "1+1=?=2", "--set", "2=two")
        done = await here.cli("request", "answer", question.id, "allow", *words)
        assert done.returncode == 0, done.stderr
        words = ("--set", "count=3", "--set", "sure=true")
        done = await here.cli("request", "answer", form.id, "allow", *words)
        assert done.returncode == 0, done.stderr
    question_answer, form_answer = [attrs.asdict(each.answer) for each in here.acted]
    assert question_answer == {"answers": {"Which?": ["A"], "1+1=?": ["2", "two"]}}
    assert form_answer == {"action": "accept", "content": {"count": 3, "sure": True}}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("show", "abc"), "give at least the first 4 characters"),
        (("show", "ffff"), "no request begins with 'ffff'"),
        (("answer", "ffffffffffff", "allow"), "no request begins with 'ffffffffffff'"),
        (("show", "zzzzzzzzzzzz"), "id must be an id from"),
        (("answer", "ffff", "perhaps"), "perhaps"),
    ],
)
async def test_the_command_line_says_what_is_wrong_with_an_id(
    tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    async with scene(tmp_path) as here:
        done = await here.cli("request", *words)
        assert done.returncode != 0
        assert sentence in done.stderr


async def test_each_face_lists_the_same_and_the_first_answer_wins(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        opened = await here.open(input={"command": HOSTILE})
        line, websocket = here.clients["line"], here.clients["websocket"]
        listed = await line.call("request_list")
        assert await websocket.call("request_list") == listed
        [request] = listed["requests"]
        assert request["input"] == {"command": SHOWN}
        replies: list[str] = []

        async def answer(client: Caller, decision: str) -> None:
            reply = await client.call(
                "request_answer", id=opened.id, digest=request["digest"], answer=decision
            )
            replies.append(reply["outcome"])

        async with trio.open_nursery() as nursery:
            for number in range(10):
                client = (line, websocket)[number % 2]
                nursery.start_soon(answer, client, ("allow", "deny")[number % 2])
        assert sorted(replies) == ["already_answered"] * 9 + ["applied"]
        assert len(here.acted) == 1
        with pytest.raises(CommandFailed, match="digest must be the digest that"):
            await line.call("request_answer", id=opened.id, digest="0", answer="allow")


async def test_over_mcp_an_agent_sees_its_own_and_answers_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        opened = await here.open()  # of ann
        ann, bob = here.clients["legacy"], here.clients["auto"]
        assert [each["id"] for each in (await ann.call("request_list"))["requests"]] == [opened.id]
        assert (await bob.call("request_list"))["requests"] == []
        for client, words in ((ann, "is your own, 'ann'"), (bob, "'bob' may not answer requests")):
            with pytest.raises(CommandFailed, match=words):
                await client.call(
                    "request_answer", id=opened.id, digest=opened.digest, answer="allow"
                )
        assert here.acted == []


async def test_streams_of_both_clients_show_what_is_open_and_each_change(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        first = await here.open()
        async with (
            aegis.connect(here.daemon.root) as client,
            client.requests.watch() as stream,
        ):
            assert await anext(stream) == OpenRequestsItem(open=[first.id])
            item = await anext(stream)
            assert isinstance(item, RequestItem)
            assert (item.request.id, item.request.state) == (first.id, "open")
            reply = await client.requests.answer(first.id, first.digest, "deny", message="no")
            assert reply.outcome == "applied"
            states: list[str] = []
            while states[-1:] != ["applied"]:
                item = await anext(stream)
                assert isinstance(item, RequestItem)
                states.append("applied" if item.request.applied else item.request.state)
            assert states == ["answered", "applied"]
            second = await here.open("k2")
            await here.withdraw()
            seen: list[str] = []
            while seen[-1:] != ["withdrawn"]:
                item = await anext(stream)
                assert isinstance(item, RequestItem)
                assert item.request.id == second.id
                seen.append(item.request.state)
            assert (await client.requests.list()).requests == []

        def blocking() -> list[str]:
            with aegis.connect_sync(here.daemon.root) as client:
                return [each.id for each in client.requests.list(state="closed").requests]

        assert await trio.to_thread.run_sync(blocking) == [first.id, second.id]


@pytest.mark.long
async def test_the_blocking_client_yields_what_is_open_and_then_each_change(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as here:
        first = await here.open()
        root = here.daemon.root

        def seen(then: Mapping[str, Callable[[], object]]) -> list[tuple[str, str]]:
            found: list[tuple[str, str]] = []
            with aegis.connect_sync(root) as client, aegis.connect_sync(root) as other:
                watching = client.requests.watch()
                assert next(watching) == OpenRequestsItem(open=[first.id])
                for item in watching:
                    assert isinstance(item, RequestItem)
                    found.append((item.request.id, item.request.state))
                    if len(found) == 1:
                        other.requests.answer(first.id, first.digest, "deny")
                    elif item.request.state == "withdrawn":
                        break
                    else:
                        then[item.request.state]()
            return found

        second: list[str] = []

        def open_second() -> None:
            second.append(trio.from_thread.run(here.open, "k2").id)

        def withdraw() -> None:
            trio.from_thread.run(here.withdraw)

        states = await trio.to_thread.run_sync(seen, {"answered": open_second, "open": withdraw})
        assert states == [
            *((first.id, "open"), (first.id, "answered")),
            *((second[0], "open"), (second[0], "withdrawn")),
        ]
