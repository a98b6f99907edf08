"""The OpenAI Responses API, as far as codex uses it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from tests.agents_real.model_server.conversation import Message, Request
from tests.agents_real.model_server.openai_chat import error, limit, texts
from tests.agents_real.model_server.reply import Wire, input_tokens, pieces, server_sent, tokens
from tests.agents_real.model_server.script import Call, Json, Tool, find_tool


def read(body: Json, path: str) -> Request:
    """Read a request; messages, calls and results are items of one list."""
    items = body.get("input", [])
    listed = [{"role": "user", "content": items}] if isinstance(items, str) else items
    orders = [each for each in listed if each.get("role") in ("developer", "system")]
    system = [body.get("instructions") or ""]
    system += [text for each in orders for text in texts(each.get("content"))]
    return Request(
        model=body.get("model", ""),
        system="\n".join(system),
        tools=tuple(_tools(body.get("tools") or ())),
        messages=tuple(_message(each) for each in listed if each not in orders),
        is_streamed=bool(body.get("stream")),
        wants_json="format" in (body.get("text") or {}),
    )


def _tools(tools: Iterable[Json], space: str | None = None) -> Iterator[Tool]:
    for each in tools:
        if each.get("type") == "namespace":
            yield from _tools(each["tools"], each["name"])
        elif "name" in each:
            yield Tool(each["name"], each.get("parameters") or {}, space)


def _message(item: Json) -> Message:
    kind = item.get("type", "message")
    if kind.endswith("_call_output"):
        output = item.get("output")
        text = "\n".join(texts(output)) or json.dumps(output)
        return Message(role="tool", results=(text,))
    if kind.endswith("_call"):
        return Message(role="assistant", calls=1)
    if kind == "message":
        return Message(role=item["role"], texts=tuple(texts(item.get("content"))))
    return Message(role="assistant")


class ResponsesReply:
    """A response with its output items."""

    def __init__(self, request: Request, number: int) -> None:
        self._request = request
        self._number = number
        self._items: list[Json] = []
        self._is_open = False

    def begin(self) -> bytes:
        return _event("response.created", response=self._response("in_progress"))

    def say(self, text: str) -> Iterator[bytes]:
        if not self._is_open:
            empty = {"type": "output_text", "text": "", "annotations": []}
            yield self._open({"type": "message", "role": "assistant", "content": [empty]})
        else:
            text = f"\n{text}"
        part = self._items[-1]["content"][0]
        for piece in pieces(text):
            part["text"] += piece
            yield self._delta("response.output_text.delta", piece, content_index=0)

    def think(self, text: str) -> Iterator[bytes]:
        yield self._close()
        summary: list[Json] = []
        yield self._open({"type": "reasoning", "summary": summary, "encrypted_content": "c2Ny"})
        at = len(self._items) - 1
        yield _event(
            "response.reasoning_summary_part.added",
            item_id=self._items[-1]["id"],
            output_index=at,
            summary_index=0,
            part={"type": "summary_text", "text": ""},
        )
        for piece in pieces(text):
            yield self._delta("response.reasoning_summary_text.delta", piece, summary_index=0)
        summary.append({"type": "summary_text", "text": text})
        yield self._close()

    def call(self, call: Call, number: int) -> bytes:
        closed = self._close()
        space = find_tool(self._request.tools, call.tool).space
        item = {
            "type": "function_call",
            "call_id": f"call_{number:04}",
            "name": call.tool,
            "arguments": json.dumps(call.arguments),
            **({} if space is None else {"namespace": space}),
        }
        return closed + self._open(item) + self._close()

    def _delta(self, kind: str, piece: str, **more: object) -> bytes:
        at = len(self._items) - 1
        return _event(kind, item_id=self._items[-1]["id"], output_index=at, delta=piece, **more)

    def _open(self, item: Json) -> bytes:
        name = f"item_{self._number:04}_{len(self._items)}"
        self._items.append({"id": name, "status": "in_progress", **item})
        self._is_open = True
        return self._item("response.output_item.added")

    def _close(self) -> bytes:
        if not self._is_open:
            return b""
        self._is_open = False
        self._items[-1]["status"] = "completed"
        return self._item("response.output_item.done")

    def _item(self, kind: str) -> bytes:
        return _event(kind, output_index=len(self._items) - 1, item=self._items[-1])

    def end(self) -> bytes:
        return self._close() + _event("response.completed", response=self._response("completed"))

    def broken(self, message: str) -> bytes:
        failed = self._response("failed")
        failed["error"] = {"code": "server_error", "message": message}
        return _event("response.failed", response=failed)

    def whole(self) -> Json:
        return self._response("completed")

    def _response(self, status: str) -> Json:
        shown, written = input_tokens(self._request), tokens(self._items)
        return {
            "id": f"resp_{self._number:04}",
            "object": "response",
            "created_at": 0,
            "status": status,
            "model": self._request.model,
            "output": list(self._items),
            "usage": {
                "input_tokens": shown,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": written,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": shown + written,
            },
        }


def _event(kind: str, **fields: object) -> bytes:
    return server_sent({"type": kind, **fields}, kind)


WIRE = Wire(name="responses", read=read, reply=ResponsesReply, error=error, limit=limit)
