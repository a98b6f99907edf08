"""Odd HTTP and MCP requests, each with the answer that clients have always got.

``odd_requests.json`` holds the answers: status, headers that matter, body. It was recorded from
Hypercorn and the MCP SDK alone, except for 14 requests: heads and chunks that were refused without
a sentence, a size line with 30 kB of extensions, a chunk that ends with a line feed alone, and a
body that is cut off behind the answer. ``AEGIS_RECORD_ANSWERS=1`` records it again.

The requests of the era without sessions have names that begin with ``modern``. Of their answers in
JSON the value counts, and neither the order of its keys nor the escapes in its text.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

pytestmark = [pytest.mark.real]

ANSWERS = Path(__file__).with_name("odd_requests.json")
SHOWN = ("content-type", "mcp-session-id", "connection", "allow", "www-authenticate")
LAST = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
ENDED = {"content-type": "text/plain; charset=utf-8", "connection": "close"}
QUIET_S = 30.0
DOCUMENTS = re.compile(r"(?:^|(?<=^data: ))\{.*\}", re.MULTILINE)
"""The documents of an answer, as JSON or in events."""

HALVES = (b"X: ", b"x" * 99, b"\r\n\r\n{", b"\r\n+")
"""The ends of requests that are cut: the client closes its side."""

CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}'
RUN = '{"name":"aegis_term_run","arguments":%s}'
BUILD = '{"name":"build","cmd":"echo hi"}'
PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'

BODIES: dict[str, str] = {
    "a ping": PING,
    "a ping with params": '{"jsonrpc":"2.0","id":"a","method":"ping","params":{}}',
    "a ping with null params": '{"jsonrpc":"2.0","id":"a","method":"ping","params":null}',
    "a ping with a list of params": '{"jsonrpc":"2.0","id":2,"method":"ping","params":[]}',
    "a ping with metadata": (
        '{"jsonrpc":"2.0","id":2,"method":"ping","params":{"_meta":{"progressToken":3}}}'
    ),
    "a ping with odd metadata": (
        '{"jsonrpc":"2.0","id":2,"method":"ping","params":{"_meta":{"progressToken":[]}}}'
    ),
    "a ping with odd params": '{"jsonrpc":"2.0","id":2,"method":"ping","params":{"a":1}}',
    "another field beside": '{"jsonrpc":"2.0","id":2,"method":"ping","extra":1}',
    "a result beside": '{"jsonrpc":"2.0","id":2,"method":"ping","result":{}}',
    "an empty id": '{"jsonrpc":"2.0","id":"","method":"ping"}',
    "a negative id": '{"jsonrpc":"2.0","id":-7,"method":"ping"}',
    "a large id": '{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}',
    "a whole id with a point": '{"jsonrpc":"2.0","id":1.0,"method":"ping"}',
    "an id with a fraction": '{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
    "the id true": '{"jsonrpc":"2.0","id":true,"method":"ping"}',
    "the id null": '{"jsonrpc":"2.0","id":null,"method":"ping"}',
    "a list as id": '{"jsonrpc":"2.0","id":[1],"method":"ping"}',
    "an id in quotes": '{"jsonrpc":"2.0","id":"x\\u00e9\\"y","method":"ping"}',
    "an id with a lone surrogate": '{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
    "an id in Unicode": '{"jsonrpc":"2.0","id":"é☃","method":"ping"}',
    "no version": '{"id":1,"method":"ping"}',
    "version 1.0": '{"jsonrpc":"1.0","id":1,"method":"ping"}',
    "a number as version": '{"jsonrpc":2.0,"id":1,"method":"ping"}',
    "no method": '{"jsonrpc":"2.0","id":1}',
    "a number as method": '{"jsonrpc":"2.0","id":1,"method":1}',
    "an unknown method": '{"jsonrpc":"2.0","id":1,"method":"no/such"}',
    "a notification": '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    "an unknown notification": '{"jsonrpc":"2.0","method":"notifications/nothing"}',
    "a ping as notification": '{"jsonrpc":"2.0","method":"ping"}',
    "a call as notification": '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}',
    "a cancellation of nothing": (
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}'
    ),
    "a cancellation with a null id": (
        '{"jsonrpc":"2.0","id":null,"method":"notifications/cancelled","params":{"requestId":99}}'
    ),
    "an answer": '{"jsonrpc":"2.0","id":1,"result":{}}',
    "an error": '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}',
    "an empty batch": "[]",
    "a batch": f"[{PING}]",
    "nothing": "",
    "blanks": "  ",
    "blanks around": f" \r\n\t{PING} \n",
    "a mark of the byte order": f"\ufeff{PING}",
    "text behind": PING + "x",
    "a second document": PING + PING,
    "no JSON": "{ping}",
    "half of it": PING[:20],
    "NaN": '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":NaN}}}',
    "NaN as id": '{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
    "a repeated key": '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
    "a number": "5",
    "null": "null",
    "a text": '"ping"',
    "too deep": '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + "[" * 300 + "]" * 300
    + "}}",
    "far too deep": "[" * 100_000,
    "a call": CALL % (RUN % BUILD),
    "a call in Unicode": CALL % (RUN % '{"name":"build","cmd":"é☃\\u2028\\n\\t\\\\"}'),
    "a call with a control character": CALL % (RUN % '{"name":"build","cmd":"a\\u0000b"}'),
    "a call with a pair of surrogates": CALL % (RUN % '{"name":"build","cmd":"\\ud83d\\ude00"}'),
    "a call with a lone surrogate": CALL % (RUN % '{"name":"build","cmd":"\\ud800"}'),
    "a call of a list": CALL % '{"name":"aegis_term_list"}',
    "a call with null arguments": CALL % '{"name":"aegis_term_list","arguments":null}',
    "a call with a list of arguments": CALL % '{"name":"aegis_term_list","arguments":[]}',
    "a call with text as arguments": CALL % '{"name":"aegis_term_list","arguments":"{}"}',
    "a call without a name": CALL % '{"arguments":{}}',
    "a call with a number as name": CALL % '{"name":5}',
    "a call with null as name": CALL % '{"name":null}',
    "a call without params": '{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
    "a call with null params": CALL % "null",
    "a call with a list of params": CALL % "[]",
    "a call with another field": CALL % '{"name":"aegis_term_list","more":1}',
    "a call with a task": CALL % '{"name":"aegis_term_list","task":{"ttl":1}}',
    "a call with an odd task": CALL % '{"name":"aegis_term_list","task":5}',
    "a call with metadata": CALL % '{"name":"aegis_term_list","_meta":{"a/b":{"c":1}}}',
    "a call with a progress token": (
        CALL % '{"name":"aegis_term_list","_meta":{"progressToken":"t"}}'
    ),
    "a call with an odd progress token": (
        CALL % '{"name":"aegis_term_list","_meta":{"progressToken":{}}}'
    ),
    "a call with a fraction as token": (
        CALL % '{"name":"aegis_term_list","_meta":{"progressToken":1.5}}'
    ),
    "a call with a list as metadata": CALL % '{"name":"aegis_term_list","_meta":[]}',
    "a call with null metadata": CALL % '{"name":"aegis_term_list","_meta":null}',
    "a call with the metadata of the other era": (
        CALL % '{"name":"aegis_term_list","_meta":'
        '{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}'
    ),
    "a call of an unknown tool": CALL % '{"name":"aegis_term_rum"}',
    "a call of the empty name": CALL % '{"name":""}',
    "a call of a name with a line feed": CALL % '{"name":"a\\nb"}',
    "a call that lacks an argument": CALL % (RUN % '{"name":"build"}'),
    "a call with another argument": CALL % (RUN % '{"name":"build","cmd":"x","colour":"red"}'),
    "a call with text for a number": CALL % (RUN % '{"name":"build","cmd":"x","timeout":"5"}'),
    "a call with NaN": CALL % (RUN % '{"name":"build","cmd":"x","timeout":NaN}'),
    "a call with a huge number": CALL % (RUN % '{"name":"build","cmd":"x","timeout":1e999}'),
    "a call with a repeated argument": CALL % (RUN % '{"name":"a","name":"b","cmd":"x"}'),
    "a call with a null argument": CALL % (RUN % '{"name":"build","cmd":"x","timeout":null}'),
    "a call that is refused": CALL % (RUN % '{"name":"build","cmd":"busy"}'),
    "a call that is not answered": CALL % (RUN % '{"name":"build","cmd":"slow actor"}'),
    "a call that meets a bug": CALL % (RUN % '{"name":"build","cmd":"bug"}'),
    "a call through aegis_call": (
        CALL % '{"name":"aegis_call","arguments":{"tool":"aegis_term_list"}}'
    ),
    "a call through aegis_call of nothing": CALL % '{"name":"aegis_call","arguments":{}}',
    "a call of aegis_tools": (
        CALL % '{"name":"aegis_tools","arguments":{"word":"aegis_term_list"}}'
    ),
    "a list of prompts": '{"jsonrpc":"2.0","id":1,"method":"prompts/list"}',
    "a list of templates": '{"jsonrpc":"2.0","id":1,"method":"resources/templates/list"}',
    "a level of logging": (
        '{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}'
    ),
}  # fmt: skip

HEADERS: dict[str, dict[str, str]] = {
    "accept: json": {"accept": "application/json"},
    "accept: a stream": {"accept": "text/event-stream"},
    "accept: anything": {"accept": "*/*"},
    "accept: any application": {"accept": "application/*"},
    "accept: any text": {"accept": "text/*"},
    "accept: with weights": {"accept": "application/json;q=0.5, text/event-stream;q=0.1"},
    "accept: html": {"accept": "text/html"},
    "accept: missing": {"accept": ""},
    "accept: in capital letters": {"accept": "Application/JSON"},
    "content type: missing": {"content_type": ""},
    "content type: text": {"content_type": "text/plain"},
    "content type: with a character set": {"content_type": "application/json; charset=utf-8"},
    "content type: in capital letters": {"content_type": "Application/JSON"},
    "content type: a list": {"content_type": "text/plain, application/json"},
    "version: 2025-11-25": {"mcp_protocol_version": "2025-11-25"},
    "version: 2025-03-26": {"mcp_protocol_version": "2025-03-26"},
    "version: missing": {"mcp_protocol_version": ""},
    "version: unknown": {"mcp_protocol_version": "1999-01-01"},
    "version: the other era": {"mcp_protocol_version": "2026-07-28"},
    "session: missing": {"mcp_session_id": ""},
    "session: unknown": {"mcp_session_id": "0123456789abcdef0123456789abcdef"},
    "session: odd": {"mcp_session_id": "a b"},
    "session: in Latin-1": {"mcp_session_id": "\xe9"},
    "last event": {"last_event_id": "5"},
    "compressed": {"content_encoding": "gzip"},
    "a method in the head": {"mcp_method": "ping"},
    "another method in the head": {"mcp_method": "tools/list"},
    "an origin": {"origin": "http://evil.example"},
    "the own origin": {"origin": "http://localhost"},
    "a wrong key": {"authorization": "Bearer x"},
    "a lower-case bearer": {"authorization": "bearer {token}"},
    "closing": {"connection": "close"},
    "kept alive": {"connection": "Keep-Alive"},
    "an expectation": {"expect": "100-continue"},
    "an unknown expectation": {"expect": "200-ok"},
}

ENVELOPE = (
    '"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    '"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},'
    '"io.modelcontextprotocol/clientCapabilities":{}'
)
"""The metadata of a request in the era without sessions."""

VERSION = '"io.modelcontextprotocol/protocolVersion":"2026-07-28"'
ABLE = '"io.modelcontextprotocol/clientCapabilities":{}'
INFO = '"io.modelcontextprotocol/clientInfo":'

METADATA: dict[str, str] = {
    "no client": f"{VERSION},{ABLE}",
    "null as client": f"{VERSION},{ABLE},{INFO}null",
    "a text as client": f'{VERSION},{ABLE},{INFO}"x"',
    "a client without a version": f'{VERSION},{ABLE},{INFO}{{"name":"x"}}',
    "a client with a number as version": f'{VERSION},{ABLE},{INFO}{{"name":"x","version":1}}',
    "a client with a title": f'{VERSION},{ABLE},{INFO}{{"name":"x","version":"1","title":"X"}}',
    "a client with an odd icon": f'{VERSION},{ABLE},{INFO}{{"name":"x","version":"1","icons":[5]}}',
    "a client with another field": f'{VERSION},{ABLE},{INFO}{{"name":"x","version":"1","a":[]}}',
    "no protocol version": ABLE,
    "null as protocol version": f'"io.modelcontextprotocol/protocolVersion":null,{ABLE}',
    "a number as protocol version": f'"io.modelcontextprotocol/protocolVersion":1,{ABLE}',
    "another protocol version": f'"io.modelcontextprotocol/protocolVersion":"2025-11-25",{ABLE}',
    "an unknown protocol version": f'"io.modelcontextprotocol/protocolVersion":"2099-01-01",{ABLE}',
    "no capabilities": VERSION,
    "null as capabilities": f'{VERSION},"io.modelcontextprotocol/clientCapabilities":null',
    "a list as capabilities": f'{VERSION},"io.modelcontextprotocol/clientCapabilities":[]',
    "many capabilities": (
        f'{VERSION},"io.modelcontextprotocol/clientCapabilities":{{"sampling":{{}},"roots":{{}},'
        '"elicitation":{"form":{},"url":{}},"experimental":{"a":{}},"extensions":{"a/b":{}}}'
    ),
    "odd capabilities": f'{VERSION},"io.modelcontextprotocol/clientCapabilities":{{"sampling":5}}',
    "unknown capabilities": f'{VERSION},"io.modelcontextprotocol/clientCapabilities":{{"a":[1]}}',
    "a level of logging": f'{ENVELOPE},"io.modelcontextprotocol/logLevel":"debug"',
    "an odd level of logging": f'{ENVELOPE},"io.modelcontextprotocol/logLevel":"loud"',
    "another reserved name": f'{ENVELOPE},"io.modelcontextprotocol/more":5',
    "a trace": f'{ENVELOPE},"traceparent":"00-{"0a" * 16}-{"0b" * 8}-01"',
    "an odd trace": f'{ENVELOPE},"traceparent":5',
    "a token by another name": f'{ENVELOPE},"progress_token":{{}}',
}

ROUTING: dict[str, dict[str, str]] = {
    "method: missing": {"mcp_method": ""},
    "method: another": {"mcp_method": "tools/list"},
    "method: in capital letters": {"mcp_method": "Tools/Call"},
    "name: missing": {"mcp_name": ""},
    "name: another": {"mcp_name": "aegis_term_list"},
    "name: in base64": {"mcp_name": "=?base64?YWVnaXNfdGVybV9ydW4=?="},
    "name: another in base64": {"mcp_name": "=?base64?YWVnaXM=?="},
    "name: in broken base64": {"mcp_name": "=?base64?YWVna?="},
    "a parameter": {"mcp_param_name": "build"},
    "version: unknown in the head": {"mcp_protocol_version": "2099-01-01"},
    "version: in blanks": {"mcp_protocol_version": " 2026-07-28 "},
}

PARAMS: dict[str, str] = {
    "the name of a header": '{"name":"=?base64?YQ==?=","arguments":{}}',
    "a name in Latin-1": '{"name":"\xe9"}',
    "a name in Unicode": '{"name":"\u2603"}',
    "blanks around the name": '{"name":" aegis_term_list "}',
    "answers to questions": '{"name":"aegis_term_list","inputResponses":{}}',
    "odd answers to questions": '{"name":"aegis_term_list","inputResponses":5}',
    "a state": '{"name":"aegis_term_list","requestState":"x"}',
    "another tool": '{"name":"aegis_inbox_read","arguments":{}}',
    "a number as token": '{"name":"aegis_term_list","_meta":{"progressToken":7}}',
    "null as token": '{"name":"aegis_term_list","_meta":{"progressToken":null}}',
    "true as token": '{"name":"aegis_term_list","_meta":{"progressToken":true}}',
}

HTTP: dict[str, bytes] = {
    "HEAD of health": b"HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "POST to health": b"POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    "OPTIONS": b"OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a path in percents": b"GET /he%61lth HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a path in broken percents": b"GET /health%ff%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a query": b"GET /health?a=b?c HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a fragment": b"GET /health#x HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a token in the query": b"GET /health?token=x HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a star": b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "HTTP/1.0": b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n",
    "two in one piece": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2,
    "a line feed in front": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    b"\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a head without end": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ",
    "a head too large": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: %s" % (b"x" * 20_000),
    "a body without end": b"POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    "a body of a GET": b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
    "an expectation": b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
    b"Content-Length: 2\r\n\r\n",
    "a later WebSocket": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}

CHUNKS: dict[str, bytes] = {
    "one": b"%x\r\n%s\r\n0\r\n\r\n" % (len(PING), PING.encode()),
    "in capitals with zeros": b"000%X\r\n%s\r\n000\r\n\r\n" % (len(PING), PING.encode()),
    "two": b"4\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n"
    % (PING[:4].encode(), len(PING) - 4, PING[4:].encode()),
    "with an extension": b'%x;a="b"\r\n%s\r\n0\r\n\r\n' % (len(PING), PING.encode()),
    "with a trailer": b"%x\r\n%s\r\n0\r\nX: y\r\n\r\n" % (len(PING), PING.encode()),
    "with a bad trailer": b"%x\r\n%s\r\n0\r\nX y\r\n\r\n" % (len(PING), PING.encode()),
    "without a size": b"\r\n%s\r\n0\r\n\r\n" % PING.encode(),
    "with a sign": b"+2\r\n{}\r\n0\r\n\r\n",
    "with a prefix": b"0x2\r\n{}\r\n0\r\n\r\n",
    "a negative one": b"-1\r\n{}\r\n0\r\n\r\n",
    "too short": b"2\r\n{}x\r\n0\r\n\r\n",
    "ended by a line feed": b"2\n{}\n0\n\n",
    "with a huge size": b"f" * 30 + b"\r\n",
    "with a long extension": b"2;" + b"x" * 30_000 + b"\r\n{}\r\n0\r\n\r\n",
    "none": b"0\r\n\r\n",
    "cut": b"2\r\n+",
}


def modern(daemon: Any, body: str, envelope: str = ENVELOPE, **headers: str) -> bytes:
    """Return a request of the era without sessions: ``body`` with metadata and its headers."""
    if '"_meta":{' in body:
        body = body.replace('"_meta":{', f'"_meta":{{{envelope},').replace(",}", "}")
    else:
        body = body.replace('"params":{', f'"params":{{"_meta":{{{envelope}}},').replace(",}", "}")
    method = re.search('"method":"([^"]*)"', body)
    name = re.search('"name":"([^"]*)"', body.partition('"params"')[2].replace(envelope, ""))
    routing = {
        "mcp_protocol_version": "2026-07-28",
        "mcp_method": method[1] if method else "",
        "mcp_name": name[1] if name else "",
        **headers,
    }
    request: bytes = daemon.http(body.encode(), **routing)
    head, _, rest = request.partition(b"\r\n\r\n")
    return head.decode().encode("latin-1", "replace") + b"\r\n\r\n" + rest


def modern_requests(daemon: Any, session: str) -> dict[str, bytes]:
    """Return requests of the era without sessions: bodies, headers, metadata and names."""
    call, token = CALL % (RUN % BUILD), daemon.keys.operator_token
    found = {f"body: {name}": modern(daemon, text) for name, text in BODIES.items()}
    for name, given in {**HEADERS, **ROUTING}.items():
        headers = {key: value.replace("{token}", token) for key, value in given.items()}
        found[f"call: {name}"] = modern(daemon, call, **headers)
    for name, envelope in METADATA.items():
        found[f"metadata: {name}"] = modern(daemon, call, envelope)
    for name, params in PARAMS.items():
        found[f"params: {name}"] = modern(daemon, CALL % params)
    found["call: with a session"] = modern(daemon, call, mcp_session_id=session)
    return {f"modern {name}": request for name, request in found.items()}


def requests(daemon: Any, session: str) -> dict[str, bytes]:
    routing = {"mcp_session_id": session, "mcp_protocol_version": "2025-11-25"}
    found = {
        f"body: {name}": daemon.http(text.encode(), **routing) for name, text in BODIES.items()
    }
    for name, given in HEADERS.items():
        headers = {**routing, **given}
        if "{token}" in headers.get("authorization", ""):
            headers["authorization"] = f"bearer {daemon.keys.operator_token}"
        for kind, body in (("ping", PING), ("call", CALL % (RUN % BUILD))):
            head, _, rest = daemon.http(body.encode(), **headers).partition(b"\r\n\r\n")
            found[f"{kind}: {name}"] = head.decode().encode("latin-1") + b"\r\n\r\n" + rest
    found["call: a handle's session"] = daemon.http(
        PING.encode(), daemon.session_url("alice").removeprefix(daemon.url), authorization="",
        **routing,
    )  # fmt: skip
    for method in ("GET", "PUT", "HEAD"):
        headers = {**routing, "accept": "application/json"}
        found[f"{method} of a session"] = daemon.http(method=method, **headers)
        found[f"{method} without a session"] = daemon.http(method=method, accept="application/json")
    for name, chunks in CHUNKS.items():
        head = daemon.http(content_length="", transfer_encoding="chunked", **routing)
        found[f"chunks: {name}"] = head + chunks
    for name, request in HTTP.items():
        found[f"http: {name}"] = request
    return found


class Reader:
    """The answers of one connection, as lists of status, headers that matter and body."""

    def __init__(self, stream: trio.SocketStream, *, is_modern: bool) -> None:
        self._stream = stream
        self._is_modern = is_modern
        self._data = b""

    async def _until(self, is_enough: Callable[[bytes], bool]) -> bool:
        """Read; return False if the connection ends before it is enough."""
        while not is_enough(self._data):
            try:
                data = await self._stream.receive_some()
            except trio.BrokenResourceError:
                data = b""
            if not data:
                return False
            self._data += data
        return True

    async def answer(self, method: str) -> list[Any] | None:
        """Return the next answer; None at the end of the connection."""
        if not await self._until(lambda data: b"\r\n\r\n" in data):
            return None
        head, _, self._data = self._data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = [line.partition(":") for line in lines]
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        status, body = int(first.split()[1]), b""
        if status >= 200 and method != "HEAD":
            if headers.get("transfer-encoding") == "chunked":
                while size := int(await self._line(), 16):
                    body += await self._bytes(size)
                    await self._line()
                await self._line()
            else:
                body = await self._bytes(int(headers.get("content-length", 0)))
        shown = {name: headers[name] for name in SHOWN if name in headers}
        text = body.decode("utf-8" if self._is_modern else "latin-1")
        if self._is_modern:
            text = DOCUMENTS.sub(lambda it: json.dumps(json.loads(it[0]), sort_keys=True), text)
        document = [status, shown, text[:900]]
        anonymous: list[Any] = json.loads(re.sub(r"\b[0-9a-f]{32}\b", "S", json.dumps(document)))
        return anonymous

    async def _line(self) -> bytes:
        await self._until(lambda data: b"\r\n" in data)
        line, _, self._data = self._data.partition(b"\r\n")
        return line

    async def _bytes(self, size: int) -> bytes:
        await self._until(lambda data: len(data) >= size)
        body, self._data = self._data[:size], self._data[size:]
        return body


async def answers(daemon: Any, request: bytes, *, is_modern: bool) -> list[Any]:
    """Return all answers to ``request``, and those to a request behind it if none closes."""
    stream = await daemon.connect()
    reader = Reader(stream, is_modern=is_modern)
    methods = re.findall(r"([A-Z]+) [!-~]+ HTTP/1", request.decode("latin-1")) or ["GET"]
    found: list[Any] = []
    with trio.move_on_after(QUIET_S) as scope, suppress(trio.BrokenResourceError):
        await stream.send_all(request)
        if request.endswith(HALVES):
            await stream.send_eof()
        while methods and (answer := await reader.answer(methods[0])) is not None:
            found.append(answer)
            if answer[1].get("connection") == "close":
                return found
            if answer[0] >= 200:
                del methods[0]
        if request.endswith(HALVES):
            return found
        await stream.send_all(LAST)
        found += [each for each in [await reader.answer("GET")] if each != [200, ENDED, "ok\n"]]
    return [*found, *(["silence"] if scope.cancelled_caught else [])]


async def test_each_odd_request_is_answered_as_ever(
    daemon: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aegis.servers.mcp.post_answer.OPEN_AFTER_S", math.inf)
    session = await daemon.open_session()
    asked = {**requests(daemon, session), **modern_requests(daemon, session)}
    found = {
        name: await answers(daemon, request, is_modern=name.startswith("modern"))
        for name, request in asked.items()
    }
    if os.environ.get("AEGIS_RECORD_ANSWERS"):
        ANSWERS.write_text(json.dumps(found, indent=0) + "\n")
    recorded = json.loads(ANSWERS.read_text())
    differing = {
        name: {"recorded": recorded.get(name), "found": each}
        for name, each in found.items()
        if recorded.get(name) != each
    }
    assert differing == {}
