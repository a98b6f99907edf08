"""The Gemini API (generateContent, streamGenerateContent), as far as gemini-cli uses it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tests.agents_real.model_server.conversation import Message, Request
from tests.agents_real.model_server.reply import Wire, input_tokens, pieces, server_sent, tokens
from tests.agents_real.model_server.script import Call, Json, Tool

STATUS_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


def read(body: Json, path: str) -> Request:
    """Read a request; the model and the way of answering are in its path."""
    model, _, method = path.rpartition("/")[2].partition(":")
    declared = (
        each for tools in body.get("tools", ()) for each in tools.get("functionDeclarations", ())
    )
    settings = body.get("generationConfig", {})
    return Request(
        model=model,
        system="\n".join(_texts(body.get("systemInstruction", {}))),
        tools=tuple(
            Tool(each["name"], each.get("parametersJsonSchema") or each.get("parameters") or {})
            for each in declared
        ),
        messages=tuple(_message(each) for each in body.get("contents", ())),
        is_streamed=method == "streamGenerateContent",
        wants_json=settings.get("responseMimeType") == "application/json",
    )


def _message(raw: Json) -> Message:
    parts = raw.get("parts", ())
    return Message(
        role="user" if raw.get("role") == "user" else "assistant",
        texts=tuple(_texts(raw)),
        calls=sum("functionCall" in part for part in parts),
        results=tuple(
            str(part["functionResponse"].get("response"))
            for part in parts
            if "functionResponse" in part
        ),
    )


def _texts(content: Json) -> list[str]:
    parts = content.get("parts", ())
    return [part["text"] for part in parts if "text" in part and not part.get("thought")]


class GeminiReply:
    """A candidate with its parts."""

    def __init__(self, request: Request, number: int) -> None:
        self._request = request
        self._parts: list[Json] = []
        self._id = f"resp_{number:04}"

    def begin(self) -> bytes:
        return b""

    def say(self, text: str) -> Iterator[bytes]:
        yield from self._add(text, {})

    def think(self, text: str) -> Iterator[bytes]:
        yield from self._add(text, {"thought": True})

    def _add(self, text: str, marks: Json) -> Iterator[bytes]:
        follows = self._parts and "text" in self._parts[-1] and not self._parts[-1].get("thought")
        for piece in pieces(f"\n{text}" if follows and not marks else text):
            yield self._part({"text": piece, **marks})

    def call(self, call: Call, number: int) -> bytes:
        called = {"id": f"call_{number:04}", "name": call.tool, "args": call.arguments}
        return self._part({"functionCall": called, "thoughtSignature": "c2NyaXB0ZWQ="})

    def _part(self, part: Json) -> bytes:
        self._parts.append(part)
        return server_sent(self._document([part], None))

    def end(self) -> bytes:
        return server_sent(self._document([{"text": ""}], "STOP"))

    def broken(self, message: str) -> bytes:
        return server_sent(error(503, message))

    def whole(self) -> Json:
        return self._document(self._parts, "STOP")

    def _document(self, parts: list[Json], reason: str | None) -> Json:
        candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
        if reason is not None:
            candidate["finishReason"] = reason
        shown, written = input_tokens(self._request), tokens(self._parts)
        usage = {
            "promptTokenCount": shown,
            "candidatesTokenCount": written,
            "totalTokenCount": shown + written,
        }
        return {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": self._request.model,
            "responseId": self._id,
        }


def error(status: int, message: str) -> Json:
    """Return the body of an HTTP error."""
    name = STATUS_NAMES.get(status, "INTERNAL")
    return {"error": {"code": status, "message": message, "status": name}}


def limit(until: int) -> tuple[dict[str, str], Json]:
    """Return headers and body of a used-up daily quota."""
    body = error(429, "You exceeded your current quota, please check your plan.")
    violation = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel", "quotaValue": "1"}
    kind = "type.googleapis.com/google.rpc.QuotaFailure"
    body["error"]["details"] = [{"@type": kind, "violations": [violation]}]
    return {}, body


WIRE = Wire(name="gemini", read=read, reply=GeminiReply, error=error, limit=limit)
