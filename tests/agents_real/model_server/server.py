"""The HTTP server that plays the scripts of prompts to real agent CLIs, on loopback.

Each request is recorded in a file by two JSON lines: ``request`` on arrival, and ``end`` with the
outcome: ``complete``, ``left`` (the client hung up), or an HTTP status.
"""

from __future__ import annotations

import json
import re
import select
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.agents_real.model_server import anthropic, gemini, openai_chat, openai_responses
from tests.agents_real.model_server.conversation import Book, Request, play
from tests.agents_real.model_server.reply import Reply, Wire
from tests.agents_real.model_server.script import Call, Fail, Json, Limit, Say, Step, Think, Wait

MODEL = "scripted"
"""The model that is listed; requests may name any other."""


def images_in(body: Json) -> int:
    """Return the number of images in a request, which each protocol has in base64."""
    return len(re.findall(r'"(?:data:image/\w+;base64,)?(?:iVBORw0KGgo|/9j/)', json.dumps(body)))


class ClientLeft(Exception):
    """The client closed the connection before the answer was complete."""


class ModelServer(ThreadingHTTPServer):
    """Serve the four APIs.

    ``record`` is the file of the requests. Beside it, a file named as ``book_of`` returns may have
    scripts for prompts in plain language, a JSON object by phrases; it is read at each request.
    """

    daemon_threads = True

    def __init__(self, record: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self._record = record
        self._lock = threading.Lock()
        self._numbers = {"request": 0, "answer": 0, "call": 0}
        self._failures: dict[str, int] = {}

    def write(self, **line: object) -> None:
        """Add a line to the record, with the time of the machine's monotonic clock."""
        with self._lock, self._record.open("a") as record:
            record.write(json.dumps({"at": time.monotonic(), **line}) + "\n")

    def book(self) -> Book:
        """Return the scripts for prompts in plain language."""
        try:
            book: Book = json.loads(book_of(self._record).read_text())
        except FileNotFoundError:
            return {}
        return book

    def number(self, of: str) -> int:
        """Return the next number: the same scripts get the same numbers."""
        with self._lock:
            self._numbers[of] += 1
            return self._numbers[of]

    def may_fail(self, step: Fail, request: Request) -> bool:
        """Return whether a failure is played once more."""
        if step.times is None:
            return True
        key = repr((step, request.messages[-1]))
        with self._lock:
            self._failures[key] = self._failures.get(key, 0) + 1
            return self._failures[key] <= step.times


def book_of(record: Path) -> Path:
    """Return the file of the scripts of the server with this record."""
    return record.with_suffix(".book.json")


def wire_of(path: str) -> Wire | None:
    """Return the API of a path."""
    if path.endswith("/messages"):
        return anthropic.WIRE
    if path.endswith("/responses"):
        return openai_responses.WIRE
    if path.endswith("/chat/completions"):
        return openai_chat.WIRE
    if path.endswith((":generateContent", ":streamGenerateContent")):
        return gemini.WIRE
    return None


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: ModelServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing: the record has it."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path.endswith("/models"):
            listed = [{"id": MODEL, "object": "model", "type": "model", "display_name": MODEL}]
            self.send_document(200, {"object": "list", "data": listed, "has_more": False})
        else:
            self._unknown(path)

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        body = self._body()
        wire = wire_of(path)
        if wire is not None:
            self._answer(wire, wire.read(body, path), images_in(body))
        elif path.endswith(("/count_tokens", ":countTokens")):
            count = len(json.dumps(body)) // 4
            self.send_document(200, {"input_tokens": count, "totalTokens": count})
        else:
            self._unknown(path)

    def _body(self) -> Json:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            raw = b"".join(self._chunks())
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            return {}
        return body if isinstance(body, dict) else {}

    def _chunks(self) -> list[bytes]:
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return chunks

    def _unknown(self, path: str) -> None:
        self.server.write(event="unknown", method=self.command, path=path)
        self.send_document(404, {"error": {"message": f"the scripted model has no {path}"}})

    def _answer(self, wire: Wire, request: Request, images: int) -> None:
        number = self.server.number("request")
        steps = play(request, self.server.book())
        about = {"wire": wire.name, "played": repr(steps), "images": images}
        self.server.write(event="request", number=number, **about, **request.record())
        outcome: object = "left"
        try:
            outcome = self._play(wire, request, steps)
        except (ClientLeft, ConnectionError):
            self.close_connection = True
        finally:
            self.server.write(event="end", number=number, outcome=outcome)

    def _play(self, wire: Wire, request: Request, steps: list[Step]) -> object:
        answer: Answer | None = None
        for step in steps:
            match step:
                case Fail(status) if self.server.may_fail(step, request):
                    self._fail(status, wire, answer)
                    return status
                case Fail():
                    pass
                case Limit() if answer is not None:
                    answer.broken("scripted limit")
                    return 429
                case Limit(seconds):
                    headers, body = wire.limit(int(time.time()) + seconds)
                    self.send_document(429, body, headers)
                    return 429
                case Wait(seconds):
                    self._pause(seconds)
                case _:
                    answer = answer or self._begin(wire, request)
                    answer.add(step)
        answer = answer or self._begin(wire, request)
        answer.end()
        return "complete"

    def _begin(self, wire: Wire, request: Request) -> Answer:
        number = 0 if request.is_aside else self.server.number("answer")
        return Answer(self, wire.reply(request, number), is_streamed=request.is_streamed)

    def _fail(self, status: int, wire: Wire, answer: Answer | None) -> None:
        message = f"scripted error {status}"
        if answer is None:
            self.send_document(status, wire.error(status, message))
        else:
            answer.broken(message)

    def _pause(self, seconds: float) -> None:
        """Wait; raises ``ClientLeft`` as soon as the client hangs up."""
        watched = select.poll()
        watched.register(self.connection, select.POLLIN | select.POLLRDHUP)
        if watched.poll(seconds * 1000):
            if not self.connection.recv(1, socket.MSG_PEEK):
                raise ClientLeft
            time.sleep(seconds)

    def send_document(self, status: int, body: Json, headers: dict[str, str] | None = None) -> None:
        """Send a JSON document."""
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class Answer:
    """An answer on its way to the client: streamed in chunks, or sent whole at its end."""

    def __init__(self, handler: Handler, reply: Reply, *, is_streamed: bool) -> None:
        self._handler = handler
        self._reply = reply
        self._is_streamed = is_streamed
        if is_streamed:
            handler.send_response(200)
            handler.send_header("Content-Type", "text/event-stream")
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
        self._write(reply.begin())

    def add(self, step: Step) -> None:
        """Add text, reasoning or a call."""
        match step:
            case Say(text):
                for event in self._reply.say(text):
                    self._write(event)
            case Think(text):
                for event in self._reply.think(text):
                    self._write(event)
            case Call():
                number = self._handler.server.number("call")
                self._write(self._reply.call(step, number))

    def end(self) -> None:
        """End it in order."""
        self._write(self._reply.end())
        if self._is_streamed:
            self._handler.wfile.write(b"0\r\n\r\n")
        else:
            self._handler.send_document(200, self._reply.whole())

    def broken(self, message: str) -> None:
        """End it with an error."""
        self._write(self._reply.broken(message))
        self._handler.close_connection = True
        if self._is_streamed:
            self._handler.wfile.write(b"0\r\n\r\n")
        else:
            self._handler.send_document(500, {"error": {"message": message}})

    def _write(self, event: bytes) -> None:
        if self._is_streamed and event:
            self._handler.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self._handler.wfile.flush()
