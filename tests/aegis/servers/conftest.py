"""A running gateway with a recording port behind it, and plain clients for it."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from actors.errors import AskDeadline
from aegis.errors import Busy
from aegis.protocol.derived.wire import command_from
from aegis.protocol.entry import Entry
from aegis.protocol.inboxes import MessageList
from aegis.protocol.terminals import CommandRecord, RunCommand, TerminalList
from aegis.protocol.tool_sets import Offer
from aegis.servers.access.admission import allowed_hosts
from aegis.servers.access.auth import Keys, open_keys
from aegis.servers.calls import Caller, Identity
from aegis.servers.gateway.gateway import Routes, serve_gateway
from aegis.servers.gateway.http_app import HttpApp
from aegis.servers.gateway.sockets import port_of, tcp_listeners, unix_listener
from aegis.servers.mcp.tools import McpFace
from aegis.servers.wires.conversation import ServerContext
from aegis.servers.wires.unix import serve_unix
from aegis.servers.wires.websocket import serve_websocket
from tests.fakes.streams import ScriptedStreams

GUARD_S = 60


class RecordingPort:
    """Stands for the actors: ``term_list`` answers at once, ``inbox_wait`` waits until cancelled.

    ``term_run`` does what its ``cmd`` says: ``busy``, ``slow actor`` and ``bug`` raise, ``hold``
    waits for ``release``, anything else comes back as the output.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[Caller, str, dict[str, object]]] = []
        self.followed: list[str] = []
        self.here: list[Caller] = []
        self.gone: list[Caller] = []
        self.listers: list[Caller] = []
        self.offers: dict[str | None, Offer] = {}
        self.waiting = 0
        self.cancelled = 0
        self.release = trio.Event()
        self._changed = trio.Event()

    async def call(self, caller: Caller, entry: Entry, arguments: Mapping[str, object]) -> object:
        self.calls.append((caller, entry.name, dict(arguments)))
        self._notify()
        command = command_from(entry, arguments)
        if entry.name == "inbox_wait":
            await self._wait(trio.Event())
        if isinstance(command, RunCommand):
            return await self._run(command)
        return (
            MessageList(messages=[], next=None)
            if "inbox" in entry.name
            else TerminalList(result=[])
        )

    async def report_progress(
        self,
        caller: Caller,
        entry: Entry,
        arguments: Mapping[str, object],
        report: Callable[[str], Awaitable[None]],
    ) -> None:
        self.followed.append(entry.name)
        for number in range(3):
            await report(f"line {number}")
        if arguments.get("cmd") == "hold":
            self.release.set()

    def opened(self, caller: Caller) -> None:
        self.here.append(caller)
        self._notify()

    def offer(self, identity: Identity) -> Offer:
        return self.offers.get(identity.handle, Offer())

    def listed(self, caller: Caller) -> None:
        self.listers.append(caller)

    def closed(self, caller: Caller) -> None:
        self.gone.append(caller)
        self._notify()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for an event that makes ``condition`` true."""
        with trio.fail_after(GUARD_S):
            while not condition():
                await self._changed.wait()

    async def _run(self, command: RunCommand) -> CommandRecord:
        if command.cmd == "busy":
            raise Busy("terminal 'build' is busy with 'make' of agent:bob; try again later")
        if command.cmd == "slow actor":
            raise AskDeadline("terminals/build did not answer RunCommand within 5 s")
        if command.cmd == "bug":
            raise RuntimeError("an internal detail")
        if command.cmd == "hold":
            await self._wait(self.release)
        return _record(command.cmd)

    async def _wait(self, event: trio.Event) -> None:
        self.waiting += 1
        self._notify()
        try:
            await event.wait()
        except trio.Cancelled:
            self.cancelled += 1
            raise
        finally:
            self.waiting -= 1
            self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


def _record(text: str) -> CommandRecord:
    return CommandRecord(
        seq=0,
        cmd=text,
        writer="human",
        started_at="2026-01-01T00:00:00.000Z",
        finished_at="2026-01-01T00:00:01.000Z",
        duration_s=1.0,
        exit=0,
        stdout=text,
        stderr="",
        killed_by_restart=False,
        timed_out=False,
        cwd="/",
        output_bytes=len(text),
        truncated=False,
        raw_start=0,
        raw_end=1,
        needs_input=None,
        end="exited",
    )


@attrs.define
class Daemon:
    """The servers, running; ``stop`` ends them in order, ``ended`` is set when they are gone."""

    port: RecordingPort
    keys: Keys
    tcp: int
    socket: Path
    stop: trio.Event
    ended: trio.Event
    scope: trio.CancelScope
    streams: list[trio.SocketStream] = attrs.field(factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.tcp}"

    @property
    def bearer(self) -> str:
        return f"Bearer {self.keys.operator_token}"

    def session_url(self, handle: str) -> str:
        return f"{self.url}/mcp/s/{self.keys.session_secret(handle)}"

    async def connect(self) -> trio.SocketStream:
        return self._tracked(await trio.open_tcp_stream("127.0.0.1", self.tcp))

    async def connect_unix(self) -> trio.SocketStream:
        return self._tracked(await trio.open_unix_socket(self.socket))

    async def line_client(self) -> LineClient:
        return LineClient(await self.connect_unix())

    def http(
        self,
        body: bytes = b"",
        path: str = "/mcp",
        *,
        method: str = "POST",
        **headers: str,
    ) -> bytes:
        """A request of the operator, whole; ``a_b=…`` sets header ``a-b``, empty leaves it out."""
        shown = {
            "host": "localhost",
            "authorization": self.bearer,
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "content-length": str(len(body)),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        lines = [f"{name}: {value}\r\n" for name, value in shown.items() if value]
        return f"{method} {path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode() + body

    def modern_call(self, tool: str, arguments: dict[str, object], **headers: str) -> bytes:
        """A tool call of the sessionless era (2026-07-28)."""
        params = {"name": tool, "arguments": arguments}
        return self.modern("tools/call", params, **{"mcp_name": tool, **headers})

    def modern(
        self, method: str, params: Mapping[str, object], path: str = "/mcp", **headers: str
    ) -> bytes:
        """A request of the sessionless era."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        routing = {"mcp_protocol_version": "2026-07-28", "mcp_method": method}
        return self.rpc(method, {"_meta": meta, **params}, path, **{**routing, **headers})

    def rpc(
        self, method: str, params: Mapping[str, object], path: str = "/mcp", **headers: str
    ) -> bytes:
        """A request with this JSON-RPC request as its body."""
        return self.http(_rpc(method, params), path, **headers)

    def legacy_call(
        self, session: str, tool: str, arguments: dict[str, object], **headers: str
    ) -> bytes:
        """A tool call of the handshake era, in a session opened before."""
        body = _rpc("tools/call", {"name": tool, "arguments": arguments})
        routing = {"mcp_protocol_version": "2025-11-25", "mcp_session_id": session}
        return self.http(body, **{**routing, **headers})

    async def open_session(self, path: str = "/mcp", **headers: str) -> str:
        """Do the handshake of the older era; gives the session's id."""
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        stream = await self.connect()
        await stream.send_all(self.http(_rpc("initialize", params), path, **headers))
        head = b""
        while b"\r\n\r\n" not in head:
            head += await _more(stream)
        found = [line for line in head.split(b"\r\n") if line.startswith(b"mcp-session-id: ")]
        return found[0].partition(b": ")[2].decode()

    def _tracked(self, stream: trio.SocketStream) -> trio.SocketStream:
        self.streams.append(stream)
        return stream


class LineClient:
    """Speaks the line protocol."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._data = b""

    async def send(self, document: object) -> None:
        await self.stream.send_all(json.dumps(document).encode() + b"\n")

    async def receive(self) -> dict[str, Any]:
        while b"\n" not in self._data:
            data = await self.stream.receive_some()
            if not data:
                raise EOFError
            self._data += data
        line, _, self._data = self._data.partition(b"\n")
        document: dict[str, Any] = json.loads(line)
        return document

    async def ask(self, **document: object) -> dict[str, Any]:
        await self.send(document)
        return await self.receive()

    async def request(self, command: str, number: int = 1, **arguments: object) -> dict[str, Any]:
        return await self.ask(type="request", id=number, command=command, arguments=arguments)


async def read_response(stream: trio.SocketStream) -> tuple[int, dict[str, str], bytes]:
    """One HTTP response; a body in chunks is returned with their heads."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += await _more(stream)
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    while len(body) < int(headers.get("content-length", 0)):
        body += await _more(stream)
    while headers.get("transfer-encoding") == "chunked" and not body.endswith(b"0\r\n\r\n"):
        body += await _more(stream)
    return int(first.split()[1]), headers, body


async def _more(stream: trio.SocketStream) -> bytes:
    data = bytes(await stream.receive_some())
    if not data:
        raise EOFError("the server closed the connection")
    return data


async def serve(
    daemon: Daemon, tmp_path: Path, options: dict[str, Any], *, task_status: trio.TaskStatus[None]
) -> None:
    context = ServerContext(daemon.port, ScriptedStreams(), daemon.keys, "aegis-actors/0")
    hosts = allowed_hosts("127.0.0.1")
    face = McpFace(daemon.port, version="0", **options.pop("mcp", {}))
    routes = Routes(
        http=HttpApp(daemon.keys, hosts, face),
        websocket=partial(serve_websocket, context=context, hosts=hosts),
        lines=partial(serve_unix, context=context, mcp=face.converse),
        end_sessions=face.end_sessions,
    )
    listeners = [*await tcp_listeners("127.0.0.1", 0), unix_listener(daemon.socket)]
    daemon.tcp = port_of(listeners[0])
    try:
        with daemon.scope:
            async with trio.open_nursery() as nursery:
                await nursery.start(face.run)
                gateway = partial(serve_gateway, listeners, routes, stop=daemon.stop, **options)
                task_status.started()
                await gateway()
                nursery.cancel_scope.cancel()
    finally:
        daemon.ended.set()


def _rpc(method: str, params: Mapping[str, object]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


Start = Callable[..., Any]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Runs the servers as a context: ``async with start(send_limit_s=0.1) as daemon``."""

    @asynccontextmanager
    async def running(**options: Any) -> AsyncIterator[Daemon]:
        keys = await trio.to_thread.run_sync(open_keys, tmp_path)
        daemon = Daemon(
            port=RecordingPort(),
            keys=keys,
            tcp=0,
            socket=tmp_path / "aegis.sock",
            stop=trio.Event(),
            ended=trio.Event(),
            scope=trio.CancelScope(),
        )
        with trio.fail_after(GUARD_S):
            async with trio.open_nursery() as nursery:
                await nursery.start(serve, daemon, tmp_path, options)
                try:
                    yield daemon
                finally:
                    daemon.scope.cancel()
                    for stream in daemon.streams:
                        stream.socket.close()

    return running


@pytest.fixture
async def daemon(start: Start) -> AsyncIterator[Daemon]:
    async with start() as running:
        yield running


@pytest.fixture
def response(monkeypatch: pytest.MonkeyPatch) -> Callable[[trio.SocketStream], Any]:
    """Reads one response; an answer that a busy machine delays is no stream here."""
    monkeypatch.setattr("aegis.servers.mcp.post_answer.OPEN_AFTER_S", math.inf)
    return read_response
