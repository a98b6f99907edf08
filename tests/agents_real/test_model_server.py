"""The scripted model over HTTP: the same script on each of the four wires."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from tests.agents_real.model import Model
from tests.agents_real.model_server.script import Json
from tests.agents_real.model_server.server import ModelServer

pytestmark = pytest.mark.real

GUARD_S = 30
POLL_S = 0.01


@attrs.frozen
class Reply:
    """A response: its status, headers, and the documents of its body."""

    status: int
    headers: dict[str, str]
    documents: list[Json]


@attrs.frozen
class Talk:
    """How a client speaks on one wire: its path, a request for a prompt, the parts of an answer."""

    path: str
    ask: Callable[[str], Json]
    text: Callable[[list[Json]], str]
    calls: Callable[[list[Json]], list[tuple[str, Json]]]
    """The ids and arguments of the calls in a streamed answer."""
    proceed: Callable[[Json, str, Json], Json]
    """The request that brings the result of a call."""

    @property
    def plain_path(self) -> str:
        """The path for an answer that is not streamed."""
        return self.path.replace("streamGenerateContent?alt=sse", "generateContent")


def _anthropic_text(documents: list[Json]) -> str:
    deltas = [each.get("delta", {}) for each in documents]
    return "".join(delta.get("text", "") for delta in deltas)


def _anthropic_calls(documents: list[Json]) -> list[tuple[str, Json]]:
    starts = [each["content_block"] for each in documents if "content_block" in each]
    ids = [block["id"] for block in starts if block["type"] == "tool_use"]
    inputs = [each["delta"]["partial_json"] for each in documents if "partial_json" in str(each)]
    return list(zip(ids, map(json.loads, inputs), strict=True))


ANTHROPIC = Talk(
    "/v1/messages?beta=true",
    lambda prompt: {
        "model": "m",
        "stream": True,
        "system": [{"type": "text", "text": "primer"}],
        "tools": [{"name": "mcp__aegis__run", "input_schema": {}}],
        "messages": [{"role": "user", "content": prompt}],
    },
    _anthropic_text,
    _anthropic_calls,
    lambda body, name, arguments: {
        **body,
        "messages": [
            *body["messages"],
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": name, "name": "run", "input": arguments}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": name, "content": "result"}],
            },
        ],
    },
)


def _parts(documents: list[Json]) -> list[Json]:
    return [part for each in documents for part in each["candidates"][0]["content"]["parts"]]


GEMINI = Talk(
    "/v1beta/models/m:streamGenerateContent?alt=sse",
    lambda prompt: {
        "systemInstruction": {"parts": [{"text": "primer"}]},
        "tools": [{"functionDeclarations": [{"name": "mcp_aegis_run"}]}],
        "contents": [{"role": "user", "parts": [{"text": prompt}]}],
    },
    lambda documents: "".join(part.get("text", "") for part in _parts(documents)),
    lambda documents: [
        (part["functionCall"]["id"], part["functionCall"]["args"])
        for part in _parts(documents)
        if "functionCall" in part
    ],
    lambda body, name, arguments: {
        **body,
        "contents": [
            *body["contents"],
            {"role": "model", "parts": [{"functionCall": {"name": "run", "args": arguments}}]},
            {"role": "user", "parts": [{"functionResponse": {"response": {"output": "result"}}}]},
        ],
    },
)


def _chat_deltas(documents: list[Json]) -> list[Json]:
    return [choice["delta"] for each in documents for choice in each["choices"]]


CHAT = Talk(
    "/v1/chat/completions",
    lambda prompt: {
        "model": "m",
        "stream": True,
        "tools": [{"type": "function", "function": {"name": "aegis_run"}}],
        "messages": [
            {"role": "system", "content": "primer"},
            {"role": "user", "content": [{"type": "text", "text": prompt}]},
        ],
    },
    lambda documents: "".join(delta.get("content", "") for delta in _chat_deltas(documents)),
    lambda documents: [
        (call["id"], json.loads(call["function"]["arguments"]))
        for delta in _chat_deltas(documents)
        for call in delta.get("tool_calls", ())
    ],
    lambda body, name, arguments: {
        **body,
        "messages": [
            *body["messages"],
            {"role": "assistant", "content": None, "tool_calls": [{"id": name}]},
            {"role": "tool", "tool_call_id": name, "content": "result"},
        ],
    },
)


RESPONSES = Talk(
    "/v1/responses",
    lambda prompt: {
        "model": "m",
        "stream": True,
        "instructions": "primer",
        "tools": [{"type": "namespace", "name": "mcp__aegis", "tools": [{"name": "run"}]}],
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}
        ],
    },
    lambda documents: "".join(each.get("delta", "") for each in documents),
    lambda documents: [
        (each["item"]["call_id"], json.loads(each["item"]["arguments"]))
        for each in documents
        if each["type"] == "response.output_item.done" and each["item"]["type"] == "function_call"
    ],
    lambda body, name, arguments: {
        **body,
        "input": [
            *body["input"],
            {"type": "function_call", "call_id": name, "name": "run", "arguments": "{}"},
            {"type": "function_call_output", "call_id": name, "output": "result"},
        ],
    },
)

on_each_wire = pytest.mark.parametrize(
    "talk", [ANTHROPIC, GEMINI, CHAT, RESPONSES], ids=["anthropic", "gemini", "chat", "responses"]
)


@contextmanager
def serving(server: ModelServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(POLL_S,))
    thread.start()
    yield
    server.shutdown()
    thread.join()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ModelServer]:
    with ModelServer(tmp_path / "record") as running, serving(running):
        yield running


@pytest.fixture
def model(server: ModelServer, tmp_path: Path) -> Model:
    return Model(f"http://127.0.0.1:{server.server_port}", tmp_path / "record")


def connection(server: ModelServer) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=GUARD_S)


def post(server: ModelServer, path: str, body: Json) -> Reply:
    opened = connection(server)
    opened.request("POST", path, json.dumps(body))
    response = opened.getresponse()
    content = response.read().decode()
    opened.close()
    if response.headers["Content-Type"] == "text/event-stream":
        lines = [line[6:] for line in content.splitlines() if line.startswith("data: ")]
        documents = [json.loads(line) for line in lines if line != "[DONE]"]
    else:
        documents = [json.loads(content)]
    return Reply(response.status, dict(response.headers.items()), documents)


@on_each_wire
async def test_a_script_is_played_over_two_requests(
    talk: Talk, server: ModelServer, model: Model
) -> None:
    body = talk.ask('SAY first words\nSAY more\nCALL run {"cmd": "ls"}\nALSO run {}\nSAY last')
    first = post(server, talk.path, body).documents
    assert talk.text(first) == "first words\nmore"
    calls = talk.calls(first)
    assert [arguments for _, arguments in calls] == [{"cmd": "ls"}, {}]
    assert len({name for name, _ in calls}) == 2
    for name, arguments in calls:
        body = talk.proceed(body, name, arguments)
    assert talk.text(post(server, talk.path, body).documents) == "last"
    for number in (1, 2):  # the thread of each request notes its end after it was read
        await model.wait_ended(number)
    [one, two] = model.requests()
    assert (one["system"], one["outcome"]) == ("primer", "complete")
    assert [name.rpartition("_")[2] for name in one["tools"]] == ["run"]
    assert "result" in str([each["results"] for each in two["messages"]])


@on_each_wire
def test_without_streaming_the_answer_is_one_document(talk: Talk, server: ModelServer) -> None:
    body = {**talk.ask('SAY words\nCALL run {"cmd": "ls"}'), "stream": False}
    [document] = post(server, talk.plain_path, body).documents
    assert "words" in str(document)
    assert "ls" in str(document)


@on_each_wire
def test_the_same_script_gets_the_same_answer(talk: Talk, tmp_path: Path) -> None:
    answers = []
    for name in ("one", "two"):
        with ModelServer(tmp_path / name) as running, serving(running):
            answers.append(post(running, talk.path, talk.ask("SAY a\nCALL run {}")).documents)
    assert answers[0] == answers[1]


@on_each_wire
def test_an_error_is_played_as_often_as_the_script_says(talk: Talk, server: ModelServer) -> None:
    body = talk.ask("ERROR 503 2\nSAY recovered")
    statuses = [post(server, talk.path, body).status for _ in range(3)]
    assert statuses == [503, 503, 200]
    always = talk.ask("ERROR 400")
    assert [post(server, talk.path, always).status for _ in range(3)] == [400] * 3


@on_each_wire
async def test_an_error_after_text_breaks_the_stream(
    talk: Talk, server: ModelServer, model: Model
) -> None:
    reply = post(server, talk.path, talk.ask("SAY half\nERROR 500\nSAY never"))
    assert (reply.status, "error" in str(reply.documents[-1])) == (200, True)
    assert "never" not in str(reply.documents)
    assert await model.wait_ended(1) == 500


@on_each_wire
def test_a_limit_names_the_time_when_it_is_lifted(talk: Talk, server: ModelServer) -> None:
    reply = post(server, talk.path, talk.ask("LIMIT 100"))
    assert reply.status == 429
    if talk is ANTHROPIC:
        assert reply.headers["anthropic-ratelimit-unified-status"] == "rejected"
        until = int(reply.headers["anthropic-ratelimit-unified-reset"])
        assert 0 < until - time.time() <= 100


@on_each_wire
def test_reasoning_is_no_text_of_the_answer(talk: Talk, server: ModelServer) -> None:
    documents = post(server, talk.path, talk.ask("THINK why\nSAY because")).documents
    assert "why" in str(documents)
    assert talk.text(documents).endswith("because")


@on_each_wire
async def test_a_client_that_hangs_up_ends_the_answer(
    talk: Talk, server: ModelServer, model: Model
) -> None:
    opened = connection(server)
    opened.request("POST", talk.path, json.dumps(talk.ask("SAY begun\nWAIT 1000")))
    request = await model.wait_asked("SAY begun")
    opened.close()
    assert await model.wait_ended(request["number"]) == "left"


def test_a_request_without_tools_is_recorded_as_an_aside(server: ModelServer, model: Model) -> None:
    body = {**ANTHROPIC.ask("SAY secret"), "tools": []}
    assert ANTHROPIC.text(post(server, ANTHROPIC.path, body).documents) == "ok"
    assert model.requests() == []
    assert model.lines()[0]["is_aside"]


def test_an_unknown_path_is_refused_and_recorded(server: ModelServer, model: Model) -> None:
    assert post(server, "/v1/other", {}).status == 404
    assert [line["path"] for line in model.lines()] == ["/v1/other"]
