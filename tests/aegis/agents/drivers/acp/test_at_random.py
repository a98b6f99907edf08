"""Random and damaged frames, and a random agent: nothing raises, and every promise is kept."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aegis.agents.drivers.acp.frames import Id
from aegis.agents.drivers.acp.machine import Acp
from aegis.agents.drivers.harness import Emit, Frame, OrderRefused, Output, Serve, Write
from aegis.protocol.agent_events import (
    ElicitationAnswer,
    OptionKind,
    PermissionAnswer,
    QuestionAnswer,
    RequestAnswer,
    RequestOpened,
    RequestWithdrawn,
    Result,
)
from tests.aegis.agents.drivers.acp.player import names, steps_of
from tests.aegis.agents.drivers.acp.test_turns import FORM, METHODS
from tests.aegis.agents.drivers.acp.wire import (
    PERMISSION_OPTIONS,
    machine,
    opened,
    ready,
)

KINDS: tuple[OptionKind, ...] = ("allow_once", "allow_session", "deny", "deny_session")


@cache
def words() -> list[str]:
    """Return every key and short text in the recordings."""
    found: set[str] = set()
    for name in names():
        for step in steps_of(name):
            found.update(texts_in(step.frame))
    return sorted(found)


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str) and len(value) < 40:
        yield value
    for each in children(value):
        yield from texts_in(each)


def children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else []


TEXTS = st.text(max_size=5) | st.sampled_from(words())
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([0, 1, 2, -1, "", "ses", "\udc80", 10**400])
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=8,
)
FRAMES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": VALUES,
        "id": VALUES | st.integers(0, 8),
        "method": VALUES | st.sampled_from(["session/update", "$/cancel_request", *METHODS]),
        "params": VALUES
        | st.fixed_dictionaries(
            {},
            optional={
                "sessionId": st.just("ses") | VALUES,
                "update": VALUES | st.dictionaries(TEXTS, VALUES, max_size=6),
                "toolCall": VALUES,
                "options": VALUES,
                "requestId": st.integers(0, 8) | VALUES,
            },
        ),
        "result": VALUES,
        "error": VALUES,
    },
)


class Promises:
    """Holds the outputs of a machine to its promises; raises where one is broken."""

    def __init__(self, acp: Acp) -> None:
        self.acp = acp
        self.open: dict[Id, str] = {}  # the agent's open requests, and our keys
        self.shown: dict[str, RequestOpened] = {}
        self.served: list[str] = []
        self.withdrawn: set[str] = set()
        self.prompts: list[int] = []
        self.credited: list[str] = []

    def receive(self, frame: Frame) -> list[Output]:
        """Pass a frame of the agent to the machine, as it comes out of a line."""
        id_, method = frame.get("id"), frame.get("method")
        is_request = isinstance(method, str) and type(id_) in (int, str)
        if is_request and id_ not in self.open:
            assert isinstance(id_, int | str)
            self.open[id_] = ""
        outputs = self.acp.receive(json.loads(json.dumps(frame)))
        for each in outputs:
            key = key_of(each)
            if is_request and key:
                assert isinstance(id_, int | str)
                self.open[id_] = key
        return self.check(outputs)

    def check(self, outputs: list[Output]) -> list[Output]:
        for each in outputs:
            match each:
                case Write(frame):
                    json.dumps(frame)
                    self.written(frame)
                case Serve(id=key):
                    self.served.append(key)
                case Emit(RequestOpened() as request):
                    assert request.id not in self.shown
                    self.shown[request.id] = request
                case Emit(RequestWithdrawn(id=key)):
                    assert key in self.shown
                    assert key not in self.withdrawn
                    self.withdrawn.add(key)
                case Emit(Result(messages=messages)):
                    self.credited += messages
        return outputs

    def written(self, frame: Frame) -> None:
        if "method" not in frame:
            key = self.open.pop(frame["id"])  # a second response would be a KeyError
            assert key not in self.withdrawn
        elif frame["method"] == "session/prompt":
            assert len(self.prompts) == len(self.credited)
            self.prompts.append(frame["id"])


def key_of(output: Output) -> str:
    match output:
        case Serve(id=key) | Emit(RequestOpened(id=key)):
            return key
    return ""


def order(acp: Acp, chance: random.Random, promises: Promises) -> list[Output]:
    """Return the outputs of a random order."""
    keys = [*promises.shown, *promises.served, "", "none"]
    key = chance.choice(keys)
    answers: list[RequestAnswer] = [
        PermissionAnswer(kind=chance.choice(KINDS), interrupt=chance.random() < 0.2),
        ElicitationAnswer(action=chance.choice(("accept", "decline", "cancel")), content={}),
        QuestionAnswer(answers=None),
    ]
    orders = [
        lambda: acp.send(f"t{chance.random()}", "text"),
        acp.interrupt,
        lambda: acp.answer(key, chance.choice(answers)),
        lambda: acp.served(key, chance.choice([None, {}, {"terminalId": "term"}]), "no"),
        lambda: acp.set_model(chance.choice(["opus", "gemini-2.5-pro", "x"])),
        lambda: acp.set_permission(chance.choice(("read", "ask", "write", "full"))),
        acp.mcp_connected,
    ]
    return chance.choice(orders)()


def a_machine(chance: random.Random) -> Acp:
    """Return a machine that has come so far, in a turn or not."""
    agent = chance.choice(["claude", "codex", "gemini", "kimi"])
    match chance.randrange(4):
        case 0:
            acp = machine(agent)
            acp.begin()
        case 1:
            acp = opened(agent, conversation=chance.choice([None, "ses"])).machine
        case _:
            acp = ready(agent).machine
    return acp


@given(st.lists(FRAMES, max_size=8), st.integers(0, 2**32))
def test_random_frames_never_raise(frames: list[Frame], seed: int) -> None:
    chance = random.Random(seed)
    promises = Promises(a_machine(chance))
    for frame in frames:
        promises.receive(frame)
        promises.check(order(promises.acp, chance, promises))
    promises.check(promises.acp.ended())


@cache
def recorded(name: str) -> list[Frame]:
    return [each.frame for each in steps_of(name) if not each.is_ours]


def damaged(frame: Frame, chance: random.Random, value: Any) -> Frame:
    """Return a frame in which one value is replaced, removed or moved."""
    frame = copy.deepcopy(frame)
    parent: Any = frame
    while True:
        keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
        if not keys:
            return frame
        key = chance.choice(keys)
        if isinstance(parent[key], dict | list) and parent[key] and chance.random() < 0.8:
            parent = parent[key]
            continue
        if chance.random() < 0.2:
            del parent[key]
        else:
            parent[key] = value
        return frame


@given(st.sampled_from(names()), st.lists(VALUES, min_size=1, max_size=5), st.integers(0, 2**32))
def test_damaged_recordings_never_raise(name: str, values: list[Any], seed: int) -> None:
    chance = random.Random(seed)
    promises = Promises(a_machine(chance))
    promises.check(promises.acp.send("t", "x"))
    for frame in recorded(name):
        if chance.random() < 0.3:
            frame = damaged(frame, chance, chance.choice(values))
        for _ in range(chance.choice([0, 1, 1, 1, 2])):
            promises.receive(frame)
        if chance.random() < 0.2:
            promises.check(order(promises.acp, chance, promises))
    promises.check(promises.acp.ended())


class Agent:
    """A random agent that keeps to the protocol, and uses its ids again."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.promises = Promises(ready("kimi").machine)
        self.sent = 0

    def act(self) -> None:
        names = ("ask", "elicit", "serve", "unknown", "withdraw", "talk", "end", "send", "order")
        getattr(self, self.chance.choice(names))()

    def id(self) -> Id:
        ids: list[Id] = [0, 1, 2, 3, "", "0", "1", "x"]
        return self.chance.choice(ids)

    def request(self, method: str, params: dict[str, Any]) -> None:
        self.promises.receive({"id": self.id(), "method": method, "params": params})

    def ask(self) -> None:
        options = self.chance.sample(PERMISSION_OPTIONS, self.chance.randrange(5))
        call = {"toolCallId": f"c{self.chance.randrange(3)}", "title": "x"}
        self.request("session/request_permission", {"toolCall": call, "options": options})

    def elicit(self) -> None:
        self.request("elicitation/create", FORM)

    def serve(self) -> None:
        self.request(self.chance.choice(METHODS), {})

    def unknown(self) -> None:
        self.request("what/ever", {})

    def withdraw(self) -> None:
        self.promises.receive({"method": "$/cancel_request", "params": {"requestId": self.id()}})

    def talk(self) -> None:
        update = {
            "sessionUpdate": self.chance.choice(["tool_call", "agent_message_chunk", "plan"]),
            "toolCallId": "c1",
            "content": {"type": "text", "text": "x"},
        }
        params = {"sessionId": "ses", "update": update}
        self.promises.receive({"method": "session/update", "params": params})

    def end(self) -> None:
        if len(self.promises.prompts) > len(self.promises.credited):
            reason = self.chance.choice(["end_turn", "cancelled", None])
            id_ = self.promises.prompts[-1]
            self.promises.receive({"id": id_, "result": {"stopReason": reason}})
            people = [key for key in self.promises.open.values() if key in self.promises.shown]
            assert people == []

    def send(self) -> None:
        outputs = self.promises.acp.send(f"t{self.sent + 1}", "x")
        self.promises.check(outputs)
        self.sent += not any(isinstance(each, OrderRefused) for each in outputs)

    def order(self) -> None:
        if self.chance.random() < 0.3:
            self.promises.check(self.promises.acp.interrupt())
            return
        keys = [each for each in self.promises.open.values() if each] or ["none"]
        key = self.chance.choice(keys)
        if key in self.promises.served:
            self.promises.check(self.promises.acp.served(key, {}, ""))
        else:
            kind = self.chance.choice(KINDS)
            self.promises.check(self.promises.acp.answer(key, PermissionAnswer(kind=kind)))
            answer = ElicitationAnswer(action="decline")
            self.promises.check(self.promises.acp.answer(key, answer))


@given(st.integers(0, 2**32), st.integers(1, 80))
def test_a_random_agent_gets_one_response_to_each_request(seed: int, length: int) -> None:
    agent = Agent(random.Random(seed))
    for _ in range(length):
        agent.act()
    promises = agent.promises
    for key in [each for each in promises.open.values() if each in promises.served]:
        promises.check(promises.acp.served(key, None, "ended"))
    agent.send()
    agent.end()
    assert promises.open == {}
    assert promises.credited == [f"t{i + 1}" for i in range(agent.sent)]
    assert len(promises.prompts) == agent.sent


def test_frames_of_any_depth_are_taken() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    acp = ready().machine
    acp.send("t1", "x")
    params = {"sessionId": "ses", "update": {"sessionUpdate": "tool_call", "rawInput": deep}}
    (kept,) = acp.receive({"method": "session/update", "params": params})
    assert isinstance(kept, Emit)
    refusal = acp.receive({"id": 0, "method": "terminal/create", "params": {"args": deep}})[0]
    assert isinstance(refusal, Write)
    assert refusal.frame["error"]["code"] == -32602
    outputs = acp.receive({"id": 3, "result": {"stopReason": "refusal", "_meta": deep}})
    (ended,) = [each for each in outputs if isinstance(each, Emit)]
    assert isinstance(ended.event, Result)
    assert ended.event.reason == "refusal"
    loading = opened("gemini", conversation="ses").machine
    failed = loading.receive({"id": 2, "error": {"code": -32603, "message": "no", "data": deep}})
    assert "did not continue the conversation 'ses': no" in repr(failed)
