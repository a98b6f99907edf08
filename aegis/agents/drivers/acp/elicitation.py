"""``elicitation/create``: a form (a flat JSON schema) or a URL that a person answers. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from aegis.agents.drivers.acp.frames import items, mapping, string
from aegis.agents.drivers.harness import OrderRefused
from aegis.protocol.agent_events import ElicitationAnswer, RequestOpened

CANCELLED: dict[str, Any] = {"action": "cancel"}


def elicitation_request(key: str, params: dict[str, Any]) -> RequestOpened | None:
    """Return the request of an elicitation; None if it has no form and no URL."""
    asked = _input(params)
    if asked is None:
        return None
    return RequestOpened(
        id=key,
        kind="elicitation",
        tool_use=string(params.get("toolCallId")),
        title=string(params.get("message")),
        input=asked,
        needs_person=True,
    )


def _input(params: dict[str, Any]) -> dict[str, Any] | None:
    message = string(params.get("message"))
    schema, url = params.get("requestedSchema"), string(params.get("url"))
    mode = string(params.get("mode")) or ("form" if isinstance(schema, dict) else "url")
    if mode == "form" and isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
        return {"mode": mode, "message": message, "schema": schema}
    if mode == "url" and url:
        id_ = string(params.get("elicitationId"))
        return {"mode": mode, "message": message, "url": url, "elicitation_id": id_}
    return None


def elicitation_result(
    opened: RequestOpened, answer: ElicitationAnswer
) -> dict[str, Any] | OrderRefused:
    """Return the response of an answer; agents do not check the content, so it is checked here."""
    if answer.action != "accept":
        return {"action": answer.action}
    if opened.input.get("mode") != "form":
        return {"action": "accept"}
    content = answer.content or {}
    problem = next(_problems(mapping(opened.input.get("schema")), content), None)
    if problem is not None:
        return OrderRefused(f"the answer to request {opened.id!r} does not fit: {problem}")
    return {"action": "accept", "content": dict(content)}


def _problems(schema: dict[str, Any], content: Mapping[str, Any]) -> Iterator[str]:
    properties = mapping(schema.get("properties"))
    for name in items(schema.get("required")):
        if isinstance(name, str) and name in properties and name not in content:
            yield f"{name!r} is missing"
    for name, value in content.items():
        if name not in properties:
            yield f"the form has no field {name!r}"
        elif reason := _problem(mapping(properties[name]), value):
            yield f"{name!r} {reason}"


def _problem(field: dict[str, Any], value: object) -> str:
    match field.get("type"):
        case "boolean":
            return "" if isinstance(value, bool) else "is not true or false"
        case "integer" | "number" as kind:
            return _number_problem(field, value, is_whole=kind == "integer")
        case "array":
            return _array_problem(field, value)
        case "string":
            return _string_problem(field, value)
    return ""  # a type of a later version: the agent knows


def _number_problem(field: dict[str, Any], value: object, *, is_whole: bool) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        return "is not a number"
    if is_whole and value != int(value):
        return "is not a whole number"
    low, high = field.get("minimum"), field.get("maximum")
    if isinstance(low, int | float) and value < low:
        return f"is less than {low}"
    return f"is more than {high}" if isinstance(high, int | float) and value > high else ""


def _is_finite(value: float) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def _string_problem(field: dict[str, Any], value: object) -> str:
    if not isinstance(value, str):
        return "is not text"
    choices = _choices(field)
    if choices is not None and value not in choices:
        return f"is none of {', '.join(repr(each) for each in choices)}"
    low, high = field.get("minLength"), field.get("maxLength")
    if isinstance(low, int) and len(value) < low:
        return f"is shorter than {low} characters"
    return (
        f"is longer than {high} characters" if isinstance(high, int) and len(value) > high else ""
    )


def _array_problem(field: dict[str, Any], value: object) -> str:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return "is not a list of texts"
    choices = _choices(mapping(field.get("items")))
    if choices is not None and (wrong := [each for each in value if each not in choices]):
        return f"has {wrong[0]!r}, which is none of {', '.join(repr(each) for each in choices)}"
    low, high = field.get("minItems"), field.get("maxItems")
    if isinstance(low, int) and len(value) < low:
        return f"has fewer than {low} items"
    return f"has more than {high} items" if isinstance(high, int) and len(value) > high else ""


def _choices(field: dict[str, Any]) -> list[str] | None:
    """Return the values that a field offers: ``enum``, ``oneOf`` or ``anyOf``; None: any."""
    if isinstance(field.get("enum"), list):
        return [each for each in items(field["enum"]) if isinstance(each, str)]
    for name in ("oneOf", "anyOf"):
        if isinstance(field.get(name), list):
            return [string(mapping(each).get("const")) for each in items(field[name])]
    return None
