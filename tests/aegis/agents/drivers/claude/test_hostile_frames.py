"""Random and damaged frames: none raises, outputs are bounded, a request ends at most once."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.agents.drivers.claude.frames import MAX_BLOCKS
from aegis.agents.drivers.claude.machine import MAX_OPEN, Claude
from aegis.agents.drivers.harness import Emit, Output, Write
from aegis.protocol.agent_events import (
    ElicitationAnswer,
    PermissionAnswer,
    QuestionAnswer,
    RequestAnswer,
    RequestOpened,
    RequestWithdrawn,
)
from tests.aegis.agents.drivers.claude.playback import NAMES, frames_of_agent
from tests.aegis.agents.drivers.claude.wire import begins, control, permission, ready, result, rules

Json = dict[str, Any]
Order = Callable[[Claude], list[Output]]

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(), max_size=8),  # lone surrogates too
    st.sampled_from(["", "r0", "aegis-1", "\ud800", 10**400, -1, 0]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=4), inner, max_size=3),
    ),
    max_leaves=6,
)

TYPES: list[Any] = [
    *("system", "assistant", "user", "result", "command_lifecycle", "rate_limit_event"),
    *("control_request", "control_response", "control_cancel_request", "keep_alive"),
    *("tool_progress", "conversation_reset", "stream_event", "new", "", None, 0, [], {}),
]
FIELDS = [
    *("type", "subtype", "message", "request_id", "request", "response", "session_id", "uuid"),
    *("rate_limit_info", "user_message_uuids", "modelUsage", "model_usage_since_last_result"),
    *("usage", "total_cost_usd", "is_error", "terminal_reason", "errors", "origin", "state"),
    *("tasks", "tool_use_id", "command_uuid", "attempt", "mcp_servers", "parent_tool_use_id"),
]


@cache
def recorded() -> list[str]:
    """Return one frame of each shape that was recorded, as JSON."""
    shapes: dict[str, str] = {}
    for name in NAMES:
        for frame in frames_of_agent(name):
            request = frame.get("request", {}).get("subtype")
            shape = repr((frame["type"], frame.get("subtype"), request, sorted(frame)))
            shapes.setdefault(shape, json.dumps(frame))
    return list(shapes.values())


@st.composite
def random_frames(draw: st.DrawFn) -> Any:
    frame = draw(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5))
    return {**frame, "type": draw(st.sampled_from(TYPES))}


@st.composite
def damaged_frames(draw: st.DrawFn) -> Any:
    """Draw a recorded frame in which a few values are replaced or removed."""
    frame = json.loads(draw(st.sampled_from(recorded())))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(places(frame)))
        value = draw(VALUES | st.just(...))
        change(frame, place, value)
    return frame


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, each in inner:
        found.append((*path, key))
        if isinstance(each, dict | list):
            found += places(each, (*path, key))
    return found or [("type",)]


def change(value: Any, path: tuple[Any, ...], new: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    if new is ...:
        value.pop(path[-1], None) if isinstance(value, dict) else value.pop(path[-1])
    else:
        value[path[-1]] = new


FRAMES = random_frames() | damaged_frames() | VALUES
KEYS = st.sampled_from(["r0", "r1", "r2", "r3"])
ANSWERS: st.SearchStrategy[RequestAnswer] = st.sampled_from(
    [
        PermissionAnswer(kind="allow_once"),
        PermissionAnswer(kind="allow_session"),
        PermissionAnswer(kind="deny"),
        QuestionAnswer(answers={"?": ["x"]}),
        QuestionAnswer(answers=None),
        ElicitationAnswer(action="accept", content={}),
        ElicitationAnswer(action="decline"),
    ]
)


@st.composite
def requests(draw: st.DrawFn) -> Any:
    key = draw(KEYS)
    agent: Json = {"agent_id": "a"} if draw(st.booleans()) else {}
    suggested: Json = {"permission_suggestions": [rules({"toolName": "Bash"})]}
    questions = {"questions": [{"question": "?"}]}
    return draw(
        st.sampled_from(
            [
                permission(key, **agent),
                permission(key, **suggested),
                permission(key, input=None),
                control(key, "can_use_tool", tool_name="AskUserQuestion", input=questions),
                control(key, "elicitation", mode="form", requested_schema={}),
                control(key, "request_user_dialog"),
                {"type": "control_cancel_request", "request_id": key},
                result("u1"),
            ]
        )
    )


def receiving(frame: Any) -> Order:
    return lambda machine: machine.receive(frame)


def answering(key: str, answer: RequestAnswer) -> Order:
    return lambda machine: machine.answer(key, answer)


ORDERS: st.SearchStrategy[Order] = st.one_of(
    st.builds(receiving, requests()),
    st.builds(receiving, requests()),
    st.builds(receiving, FRAMES),
    st.builds(answering, KEYS, ANSWERS),
    st.builds(answering, KEYS, ANSWERS),
    st.sampled_from(
        [
            lambda machine: machine.interrupt(),
            lambda machine: machine.send("u1", "x"),
            lambda machine: machine.set_permission("read"),
            lambda machine: machine.set_model("m"),
        ]
    ),
)


@attrs.define
class Ends:
    """The ends of requests; a step that ends one twice fails."""

    opened: set[str] = attrs.field(factory=set)
    ended: set[str] = attrs.field(factory=set)

    def take(self, outputs: list[Output]) -> None:
        for output in outputs:
            match output:
                case Write(frame={"type": "control_response", "response": response}):
                    self._end(response["request_id"])
                case Emit(event=RequestWithdrawn(id=key)):
                    assert key in self.opened
                    self._end(key)
                case Emit(event=RequestOpened(id=key)):
                    assert key not in self.opened | self.ended
                    self.opened.add(key)

    def _end(self, key: str) -> None:
        assert key not in self.ended
        self.ended.add(key)


@given(st.lists(ORDERS, max_size=20))
def test_a_request_is_opened_once_and_answered_or_withdrawn_once(steps: list[Order]) -> None:
    machine, ends = ready(), Ends()
    for step in steps:
        ends.take(step(machine))
    ends.take(machine.ended())
    assert ends.opened <= ends.ended


@given(st.lists(FRAMES, max_size=6), st.booleans())
def test_no_frame_raises_and_each_has_few_outputs(frames: list[Any], started: bool) -> None:
    machine = ready() if started else Claude(begins(conversation="c1"))
    if not started:
        machine.begin()
    for frame in frames:
        outputs = machine.receive(frame)
        assert len(outputs) <= size(frame) + MAX_OPEN
        for output in outputs:
            if isinstance(output, Write):
                json.dumps(output.frame)
    assert len(machine.ended()) <= MAX_OPEN


def size(value: Any) -> int:
    """Return the number of values in a JSON value, and some more."""
    if isinstance(value, dict):
        return 5 + sum(size(each) for each in value.values())
    return 5 + sum(size(each) for each in value) if isinstance(value, list) else 5


@pytest.mark.parametrize("block", [{}, None, {"type": "text", "text": "x"}, {"type": "tool_use"}])
def test_a_message_of_very_many_blocks_has_a_bounded_number_of_events(block: Any) -> None:
    frame = {"type": "assistant", "message": {"content": [block] * 200_000}}
    assert len(ready().receive(frame)) == MAX_BLOCKS + 1


@pytest.mark.parametrize("field", ["user_message_uuids", "errors"])
def test_a_result_of_very_many_entries_is_bounded(field: str) -> None:
    [_, event] = ready().receive({**result(), field: ["x"] * 200_000})
    assert len(repr(event)) < 20_000


def test_a_flood_of_requests_is_bounded_and_each_gets_an_answer() -> None:
    machine, ends = ready(), Ends()
    for number in range(5000):
        ends.take(machine.receive(permission(f"r{number}")))
    assert len(ends.opened) == MAX_OPEN
    assert len(ends.ended) == 5000 - MAX_OPEN
    assert len(machine.ended()) == MAX_OPEN


def test_damaged_frames_come_from_every_recorded_type() -> None:
    found = {json.loads(each)["type"] for each in recorded()}
    assert {"assistant", "user", "result", "system", "control_request"} <= found
    assert len(recorded()) > 30
