"""The OpenAI Chat Completions API, as far as agent CLIs use it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.agents_real.model_server.conversation import Message, Request
from tests.agents_real.model_server.reply import Wire, input_tokens, pieces, server_sent, tokens
from tests.agents_real.model_server.script import Call, Json, Tool

DONE = b"data: [DONE]\n\n"


def read(body: Json, path: str) -> Request:
    """Read a request."""
    messages = body.get("messages", [])
    instructions = [each for each in messages if each["role"] in ("system", "developer")]
    functions = [each["function"] for each in body.get("tools") or () if "function" in each]
    return Request(
        model=body.get("model", ""),
        system="\n".join(text for each in instructions for text in texts(each.get("content"))),
        tools=tuple(Tool(each["name"], each.get("parameters") or {}) for each in functions),
        messages=tuple(_message(each) for each in messages if each not in instructions),
        is_streamed=bool(body.get("stream")),
        wants_json="response_format" in body,
    )


def _message(raw: Json) -> Message:
    said = tuple(texts(raw.get("content")))
    if raw["role"] == "tool":
        return Message(role="tool", results=("\n".join(said),))
    return Message(role=raw["role"], texts=said, calls=len(raw.get("tool_calls") or ()))


def texts(content: object) -> list[str]:
    """Return the texts of a content, which is a string or a list of parts."""
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content if "text" in part] if isinstance(content, list) else []


class ChatReply:
    """A completion with one choice."""

    def __init__(self, request: Request, number: int) -> None:
        self._request = request
        self._number = number
        self._message: Json = {"role": "assistant", "content": ""}

    @property
    def _calls(self) -> list[Json]:
        calls: list[Json] = self._message.setdefault("tool_calls", [])
        return calls

    def begin(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def say(self, text: str) -> Iterator[bytes]:
        yield from self._add("content", text)

    def think(self, text: str) -> Iterator[bytes]:
        yield from self._add("reasoning_content", text)

    def _add(self, key: str, text: str) -> Iterator[bytes]:
        if self._message.get(key):
            text = f"\n{text}"
        self._message[key] = self._message.get(key, "") + text
        for piece in pieces(text):
            yield self._chunk({key: piece})

    def call(self, call: Call, number: int) -> bytes:
        function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
        made = {"id": f"call_{number:04}", "type": "function", "function": function}
        self._calls.append(made)
        return self._chunk({"tool_calls": [{"index": len(self._calls) - 1, **made}]})

    def end(self) -> bytes:
        last = self._chunk({}, self._reason)
        return last + server_sent(self._document([], usage=self._usage)) + DONE

    def broken(self, message: str) -> bytes:
        return server_sent(error(503, message))

    def whole(self) -> Json:
        choice = {"index": 0, "message": self._message, "finish_reason": self._reason}
        return {**self._document([choice], usage=self._usage), "object": "chat.completion"}

    @property
    def _reason(self) -> str:
        return "tool_calls" if self._message.get("tool_calls") else "stop"

    @property
    def _usage(self) -> Json:
        shown, written = input_tokens(self._request), tokens(self._message)
        return {
            "prompt_tokens": shown,
            "completion_tokens": written,
            "total_tokens": shown + written,
        }

    def _chunk(self, delta: Json, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return server_sent(self._document([choice]))

    def _document(self, choices: list[Json], **more: object) -> Json:
        return {
            "id": f"chatcmpl_{self._number:04}",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": self._request.model,
            "choices": choices,
            **more,
        }


def error(status: int, message: str) -> Json:
    """Return the body of an HTTP error."""
    kind = "invalid_request_error" if status < 429 else "server_error"
    return {"error": {"message": message, "type": kind, "code": None, "param": None}}


def limit(until: int) -> tuple[dict[str, str], Json]:
    """Return headers and body of a used-up plan."""
    body = error(429, "The usage limit has been reached")
    body["error"].update(type="usage_limit_reached", plan_type="plus", resets_at=until)
    return {}, body


WIRE = Wire(name="chat", read=read, reply=ChatReply, error=error, limit=limit)
