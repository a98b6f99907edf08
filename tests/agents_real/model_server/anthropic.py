"""The Anthropic Messages API, as far as agent CLIs use it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.agents_real.model_server.conversation import Message, Request
from tests.agents_real.model_server.reply import Wire, input_tokens, pieces, server_sent, tokens
from tests.agents_real.model_server.script import Call, Json, Tool

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def read(body: Json, path: str) -> Request:
    """Read a request."""
    return Request(
        model=body.get("model", ""),
        system="\n".join(_texts(body.get("system", ""))),
        tools=tuple(
            Tool(each["name"], each.get("input_schema", {})) for each in body.get("tools", ())
        ),
        messages=tuple(_message(each) for each in body.get("messages", ())),
        is_streamed=bool(body.get("stream")),
        wants_json="output_config" in body or "output_format" in body,
    )


def _message(raw: Json) -> Message:
    content = raw["content"]
    blocks = [] if isinstance(content, str) else content
    return Message(
        role=raw["role"],
        texts=tuple(_texts(content)),
        calls=sum(block["type"] == "tool_use" for block in blocks),
        results=tuple(
            "\n".join(_texts(block.get("content", "")))
            for block in blocks
            if block["type"] == "tool_result"
        ),
    )


def _texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    return [block["text"] for block in content if block.get("type") == "text"]


class AnthropicReply:
    """A message with its content blocks."""

    def __init__(self, request: Request, number: int) -> None:
        self._blocks: list[Json] = []
        self._message: Json = {
            "id": f"msg_{number:04}",
            "type": "message",
            "role": "assistant",
            "model": request.model,
            "content": self._blocks,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": input_tokens(request),
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": 1,
            },
        }

    def begin(self) -> bytes:
        return _event("message_start", message={**self._message, "content": []})

    def say(self, text: str) -> Iterator[bytes]:
        yield from self._add("text", "text", "text_delta", text)

    def think(self, text: str) -> Iterator[bytes]:
        yield from self._add("thinking", "thinking", "thinking_delta", text)

    def _add(self, kind: str, key: str, delta: str, text: str) -> Iterator[bytes]:
        if not self._blocks or self._blocks[-1]["type"] != kind:
            yield self._close()
            self._blocks.append({"type": kind, key: ""})
            yield self._start()
        else:
            text = f"\n{text}"
        for piece in pieces(text):
            self._blocks[-1][key] += piece
            yield self._delta({"type": delta, key: piece})

    def call(self, call: Call, number: int) -> bytes:
        closed = self._close()
        block = {"type": "tool_use", "id": f"toolu_{number:04}", "name": call.tool}
        self._blocks.append({**block, "input": {}})
        started = self._start()
        self._blocks[-1]["input"] = call.arguments
        text = json.dumps(call.arguments)
        return closed + started + self._delta({"type": "input_json_delta", "partial_json": text})

    def _start(self) -> bytes:
        at = len(self._blocks) - 1
        return _event("content_block_start", index=at, content_block=self._blocks[-1])

    def _delta(self, delta: Json) -> bytes:
        return _event("content_block_delta", index=len(self._blocks) - 1, delta=delta)

    def _close(self) -> bytes:
        if not self._blocks:
            return b""
        at = len(self._blocks) - 1
        if self._blocks[-1]["type"] == "thinking":
            self._blocks[-1]["signature"] = "c2NyaXB0ZWQ="
            signed = self._delta({"type": "signature_delta", "signature": "c2NyaXB0ZWQ="})
        else:
            signed = b""
        return signed + _event("content_block_stop", index=at)

    def end(self) -> bytes:
        closed = self._close()
        called = any(block["type"] == "tool_use" for block in self._blocks)
        self._message["stop_reason"] = "tool_use" if called else "end_turn"
        self._message["usage"]["output_tokens"] = tokens(self._blocks)
        delta = {"stop_reason": self._message["stop_reason"], "stop_sequence": None}
        usage = {"output_tokens": self._message["usage"]["output_tokens"]}
        ended = _event("message_delta", delta=delta, usage=usage)
        return closed + ended + _event("message_stop")

    def broken(self, message: str) -> bytes:
        return _event("error", error={"type": "overloaded_error", "message": message})

    def whole(self) -> Json:
        return self._message


def _event(kind: str, **fields: object) -> bytes:
    return server_sent({"type": kind, **fields}, kind)


def error(status: int, message: str) -> Json:
    """Return the body of an HTTP error."""
    kind = ERROR_TYPES.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


def limit(until: int) -> tuple[dict[str, str], Json]:
    """Return headers and body of a subscription that has used up its five hours."""
    unified = {
        "status": "rejected",
        "reset": str(until),
        "representative-claim": "five_hour",
        "5h-status": "rejected",
        "5h-reset": str(until),
        "5h-utilization": "1.0",
        "overage-status": "rejected",
        "overage-disabled-reason": "org_level_disabled",
    }
    headers = {f"anthropic-ratelimit-unified-{key}": value for key, value in unified.items()}
    return headers, error(429, "This request would exceed your account's rate limit.")


WIRE = Wire(name="anthropic", read=read, reply=AnthropicReply, error=error, limit=limit)
