"""Every text of every command and reply, through every face: lone surrogates, NUL, escapes, bidi.

Made from the command table, so a new command is tried too. Each call has one answer, a reply that
is exactly what was meant or an error with a sentence; the connection lives on.
"""

from __future__ import annotations

import json
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal, Union, get_args, get_origin

import attrs
import httpx2
import pytest
import trio
from structlog.testing import capture_logs
from trio_websocket import open_websocket_url

from actors.codec import resolved_fields
from aegis.client.client import connect
from aegis.client.errors import CommandFailed
from aegis.client.line import LineClient
from aegis.protocol.derived.wire import command_from, to_plain
from aegis.protocol.entry import Entry
from aegis.protocol.streams import Item
from aegis.protocol.table import COMMANDS
from aegis.servers.json_text import UnsendableText
from aegis.servers.mcp.documents import without_nulls
from aegis.servers.requests import stream_frame
from aegis.state.endpoint import Endpoint

pytestmark = [pytest.mark.real]

TEXTS = {
    "half of a pair": "a\ud800b",
    "a byte": "a\udcffb",
    "the halves of a pair the wrong way round": "\udfff\ud83d",
    "NUL": "a\0b",
    "escapes": "\x1b]0;t\x07\x9b31m\x7f\r\n\b",
    "bidi": "\u202eesrever\u202c\u2066\u200f\u061c",
    "no characters": "\ufeff\ufffe\U0010ffff\u2028",
}

UNSENDABLE = [name for name, text in TEXTS.items() if any("\ud800" <= c <= "\udfff" for c in text)]

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@attrs.frozen
class Refused:
    """An error; its sentence."""

    sentence: str


Outcome = Mapping[str, Any] | Refused
Ask = Callable[[Entry, Mapping[str, object]], Awaitable[Outcome]]


def frames_of(text: str | bytes, number: int) -> Outcome:
    frame = json.loads(text)
    assert frame["id"] == number, frame
    if frame["type"] == "reply":
        result: Mapping[str, Any] = frame["result"]
        return result
    assert frame["type"] == "error"
    return Refused(frame["message"])


def tool_outcome(answer: Mapping[str, Any]) -> Outcome:
    if "error" in answer:
        return Refused(answer["error"]["message"])
    result = answer["result"]
    if result.get("isError"):
        return Refused(result["content"][0]["text"])
    structure: Mapping[str, Any] = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == without_nulls(structure)
    return structure


@asynccontextmanager
async def lines(daemon: Any) -> AsyncIterator[Ask]:
    client = await daemon.line_client()
    numbers = iter(range(1, 10**9))

    async def ask(entry: Entry, arguments: Mapping[str, object]) -> Outcome:
        number = next(numbers)
        frame = {"type": "request", "id": number, "command": entry.name}
        await client.send({**frame, "arguments": arguments})
        return frames_of(json.dumps(await client.receive()), number)

    yield ask


@asynccontextmanager
async def websocket(daemon: Any) -> AsyncIterator[Ask]:
    headers = [(b"authorization", daemon.bearer.encode())]
    numbers = iter(range(1, 10**9))
    async with open_websocket_url(
        f"ws://127.0.0.1:{daemon.tcp}/ws", extra_headers=headers
    ) as connection:

        async def ask(entry: Entry, arguments: Mapping[str, object]) -> Outcome:
            number = next(numbers)
            frame = {"type": "request", "id": number, "command": entry.name}
            await connection.send_message(json.dumps({**frame, "arguments": arguments}))
            return frames_of(await connection.get_message(), number)

        yield ask


@asynccontextmanager
async def python_client(daemon: Any) -> AsyncIterator[Ask]:
    token = daemon.bearer.removeprefix("Bearer ")
    async with connect(daemon.url, token=token) as client:

        async def ask(entry: Entry, arguments: Mapping[str, object]) -> Outcome:
            try:
                return to_plain(await client._session.call(entry.command, dict(arguments)))
            except CommandFailed as error:
                return Refused(str(error))

        yield ask


@asynccontextmanager
async def command_line(daemon: Any) -> AsyncIterator[Ask]:
    """What a verb of the command line uses: a blocking client, here in a thread."""
    stream = await daemon.connect_unix()
    connected = stream.socket._sock.dup()
    connected.setblocking(True)
    endpoint = Endpoint(1, "", "", "", str(daemon.socket), "")
    with LineClient(connected, endpoint, daemon.socket.parent) as client:

        async def ask(entry: Entry, arguments: Mapping[str, object]) -> Outcome:
            try:
                return await trio.to_thread.run_sync(client.call, entry.name, arguments)
            except CommandFailed as error:
                return Refused(str(error))

        yield ask


@asynccontextmanager
async def mcp_lines(daemon: Any, era: str) -> AsyncIterator[Ask]:
    client = await daemon.line_client()
    await client.ask(type="mcp", version=1, handle=None)
    if era == "legacy":
        await client.ask(jsonrpc="2.0", id=0, method="initialize", params=INITIALIZE)
        await client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    numbers = iter(range(1, 10**9))

    async def ask(entry: Entry, arguments: Mapping[str, object]) -> Outcome:
        number = next(numbers)
        meta = {"_meta": MODERN} if era == "modern" else {}
        params = {"name": entry.tool, "arguments": arguments, **meta}
        answer = await client.ask(jsonrpc="2.0", id=number, method="tools/call", params=params)
        assert answer["id"] == number
        return tool_outcome(answer)

    yield ask


@asynccontextmanager
async def mcp_http(daemon: Any, era: str) -> AsyncIterator[Ask]:
    session = await daemon.open_session() if era == "legacy" else None
    headers = {
        "authorization": daemon.bearer,
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        **(
            {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
            if session
            else {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call"}
        ),
    }
    meta = {} if session else {"_meta": MODERN}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as client:

        async def ask(entry: Entry, arguments: Mapping[str, object]) -> Outcome:
            params = {"name": entry.tool, "arguments": arguments, **meta}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            named = {} if session else {"mcp-name": entry.tool}
            response = await client.post(
                f"{daemon.url}/mcp", content=json.dumps(body), headers=named
            )
            if response.status_code != 200 and not response.text.startswith("{"):
                return Refused(response.text)
            return tool_outcome(answer_in(response.text))

        yield ask


def answer_in(text: str) -> Mapping[str, Any]:
    """The answer in a body, of JSON or of events."""
    if text.startswith("{"):
        found = [text]
    else:
        found = [line[6:] for line in text.split("\n") if line.startswith("data: {")]
    assert len(found) == 1, text
    answer: Mapping[str, Any] = json.loads(found[0])
    return answer


FACES: dict[str, Callable[[Any], Any]] = {
    "lines": lines,
    "websocket": websocket,
    "python client": python_client,
    "command line": command_line,
    "mcp, sessions": lambda daemon: mcp_http(daemon, "legacy"),
    "mcp, sessionless": lambda daemon: mcp_http(daemon, "modern"),
    "mcp over lines, handshake": lambda daemon: mcp_lines(daemon, "legacy"),
    "mcp over lines, sessionless": lambda daemon: mcp_lines(daemon, "modern"),
}

each_face = pytest.mark.parametrize("face", FACES)


def share(kind: str, face: str) -> list[Entry]:
    """A third of the commands: each is tried with every kind of text and through every face."""
    turn = list(TEXTS).index(kind) + list(FACES).index(face)
    return [entry for number, entry in enumerate(COMMANDS) if (number + turn) % 3 == 0]


def sample(form: Any, text: str, keywords: Mapping[str, Any] | None = None) -> Any:
    """A value of type ``form`` in which every free text is ``text``."""
    keywords = keywords or {}
    origin, members = get_origin(form), get_args(form)
    if origin in (Union, types.UnionType):
        return sample(next(each for each in members if each is not type(None)), text, keywords)
    if origin is Literal:
        return members[0]
    if origin is list:
        return [sample(members[0], text, keywords.get("items"))]
    if origin is dict:
        return {text: sample(members[1], text)}
    if attrs.has(form):
        return form(**fields_of(form, text))
    return {str: text, int: 1, float: 1.0, bool: True, type(None): None, Any: text}[form]


def fields_of(cls: Any, text: str) -> dict[str, Any]:
    nested = {field.name for field in resolved_fields(cls) if cls in get_args(field.type)}
    return {
        field.name: []
        if field.name in nested
        else sample(field.type, text, field.metadata.get("schema"))
        for field in resolved_fields(cls)
    }


@each_face
@pytest.mark.parametrize("kind", TEXTS)
async def test_a_reply_arrives_exactly_or_as_an_error(daemon: Any, face: str, kind: str) -> None:
    commands = share(kind, face)
    replies = {entry.name: sample(entry.reply, TEXTS[kind]) for entry in commands}
    calls: list[str] = []

    async def call(_: object, entry: Entry, __: object) -> object:
        calls.append(entry.name)
        return replies[entry.name]

    daemon.port.call = call
    with capture_logs() as logs:
        async with FACES[face](daemon) as ask:
            for entry in commands:
                outcome = await ask(entry, good_arguments(entry))
                if kind in UNSENDABLE and has_text(replies[entry.name]):
                    assert isinstance(outcome, Refused), entry.name
                    assert "failed with an internal error; see the daemon's log" in outcome.sentence
                else:
                    assert outcome == to_plain(replies[entry.name]), entry.name
    assert calls == [entry.name for entry in commands]
    failed = [each for each in logs if each["log_level"] == "error"]
    if kind in UNSENDABLE:
        assert len(failed) == sum(has_text(each) for each in replies.values())


def has_text(reply: object) -> bool:
    return '"\\u' in json.dumps(to_plain(reply)) or "\\ud" in json.dumps(to_plain(reply))


WELL_FORMED = {
    "id": "a" * 12,
    "digest": "a" * 64,
    "task_id": "0" * 26,
    "workflow_id": "0" * 26,
    "view": "agent:a",
    "command": "term_1_1",
    "p256dh": "a" * 87,
    "auth": "a" * 22,
}
"""Texts of a form of their own, by the name of the argument."""


def good_arguments(entry: Entry) -> dict[str, object]:
    """Arguments of a command, as few as it takes."""
    given: dict[str, object] = {}
    for field in resolved_fields(entry.command):
        if field.default is attrs.NOTHING:
            given[field.name] = _good(field.name, field.type)
    command_from(entry, given)
    return given


def _good(name: str, form: Any) -> object:
    if get_origin(form) is Literal:
        return get_args(form)[0]
    if get_origin(form) is list:
        return [_good(name, get_args(form)[0])]
    if name in WELL_FORMED:
        return WELL_FORMED[name]
    return {str: "TERM" if name == "signal" else "a", int: 2, float: 1.0, bool: True}[form]


def bent(entry: Entry, text: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Arguments in which one text after the other is ``text``."""
    good = good_arguments(entry)
    for field in resolved_fields(entry.command):
        for value in _bent_values(field.type, text):
            yield field.name, {**good, field.name: value}
    yield "an unknown argument", {**good, text: 1}
    yield "the value of an unknown argument", {**good, "unknown": text}


def _bent_values(form: Any, text: str) -> list[object]:
    origin, members = get_origin(form), get_args(form)
    if origin in (Union, types.UnionType):
        return [value for each in members for value in _bent_values(each, text)]
    if origin is Literal:
        return [text]
    if origin is list:
        return [[value] for value in _bent_values(members[0], text)]
    if origin is dict:
        return [{text: "a"}, {"A": text}]
    return [text] if form is str else []


@each_face
@pytest.mark.parametrize("kind", TEXTS)
async def test_an_argument_is_taken_exactly_or_refused_and_the_connection_lives_on(
    daemon: Any, face: str, kind: str
) -> None:
    taken: list[tuple[str, Mapping[str, object]]] = []

    async def call(_: object, entry: Entry, arguments: Mapping[str, object]) -> object:
        command_from(entry, arguments)
        taken.append((entry.name, arguments))
        return sample(entry.reply, "fine")

    daemon.port.call = call
    async with FACES[face](daemon) as ask:
        for entry in share(kind, face):
            for place, arguments in bent(entry, TEXTS[kind]):
                taken.clear()
                outcome = await ask(entry, arguments)
                if taken:
                    assert kind not in UNSENDABLE, (entry.name, place)
                    assert taken == [(entry.name, arguments)], place
                    assert outcome == to_plain(sample(entry.reply, "fine"))
                else:
                    assert isinstance(outcome, Refused), (entry.name, place)
                    assert outcome.sentence
                    outcome.sentence.encode()
        taken.clear()
        assert not isinstance(await ask(COMMANDS[1], {}), Refused)


async def test_an_item_of_a_stream_that_utf8_cannot_carry_ends_it_with_an_error() -> None:
    with pytest.raises(UnsendableText):
        stream_frame(Item(id=1, item={"text": "\udcff"}))
