"""Plays a recording of a real agent through the machine: its client frames are our orders."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import attrs

from aegis.agents.drivers.acp.machine import Acp
from aegis.agents.drivers.acp.options import AcpOptions
from aegis.agents.drivers.harness import (
    AgentFailed,
    AgentReady,
    Beginning,
    Emit,
    Frame,
    OrderRefused,
    Output,
    Serve,
    Write,
)
from aegis.protocol.agent_events import (
    AgentEvent,
    ElicitationAnswer,
    PermissionAnswer,
    RequestOpened,
    Result,
)

RECORDINGS = Path(__file__).parents[2] / "recordings"
URL = "http://127.0.0.1:9999/mcp/s/SECRET"
OPENINGS = ("session/new", "session/load", "session/resume", "session/fork")
SETTINGS = ("session/set_config_option", "session/set_mode", "session/set_model")


@attrs.frozen
class Step:
    """One recorded frame; ``is_ours``: from the client."""

    is_ours: bool
    frame: Frame


def names() -> list[str]:
    return sorted(each.stem for each in RECORDINGS.glob("acp_*.jsonl"))


def steps_of(name: str) -> list[Step]:
    lines = (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Step(line["d"] == ">", line["f"]) for line in map(json.loads, lines[1:])]


def agent_of(name: str) -> str:
    return name.split("_")[1]


def first_result(name: str, method: str) -> dict[str, Any]:
    """Return the recorded result of the first request of a method."""
    steps = steps_of(name)
    id_ = next(each.frame["id"] for each in steps if each.frame.get("method") == method)
    return next(
        each.frame["result"]
        for each in steps
        if not each.is_ours and each.frame.get("id") == id_ and "result" in each.frame
    )


class Player:
    """A machine, and a recorded agent that answers it."""

    def __init__(self, name: str, options: AcpOptions, **beginning: Any) -> None:
        self.steps = steps_of(name)
        opening = next(each.frame for each in self.steps if each.frame.get("method") in OPENINGS)
        self.opening = opening["method"]
        self.conversation = opening["params"].get("sessionId")
        self.machine = Acp(
            Beginning(
                cwd="/home/u/w",
                mcp_url=URL,
                conversation=self.conversation,
                **beginning,
            ),
            options,
        )
        self.outputs: list[Output] = []
        self._asked: dict[int, Frame] = {}
        self._keys: dict[int | str, str] = {}
        self._recorded: dict[int, Frame] = {}
        self._waiting: list[tuple[int, str]] = []
        self._prompts: dict[int, int] = {}
        self._options: list[dict[str, Any]] = []

    def play(self) -> Player:
        self._take(self.machine.begin())
        for step in self.steps:
            if self.of(AgentFailed):
                return self  # the rest of the recording is what another client did
            frame = copy.deepcopy(step.frame)
            if step.is_ours:
                self._order(frame)
            elif "method" in frame:
                self._agent_calls(frame)
            else:
                self._agent_answers(frame)
        self._settle()
        return self

    # The outputs.

    def _take(self, outputs: list[Output]) -> list[Output]:
        self.outputs += outputs
        for each in outputs:
            if isinstance(each, Write) and "method" in each.frame and "id" in each.frame:
                self._asked[each.frame["id"]] = each.frame
        if any(isinstance(each, Emit) and isinstance(each.event, Result) for each in outputs):
            self._send_waiting()
        if any(isinstance(each, AgentReady) for each in outputs):
            # As the driver does: the recorded agents had repeated everything by now.
            looked = None
            while looked is None:
                looked = self.machine.replay_looked_at()
            self._take(looked)
        return outputs

    @property
    def events(self) -> list[AgentEvent]:
        return [each.event for each in self.outputs if isinstance(each, Emit)]

    @property
    def frames(self) -> list[Frame]:
        return [each.frame for each in self.outputs if isinstance(each, Write)]

    def of(self, kind: type[AgentReady] | type[AgentFailed] | type[OrderRefused]) -> list[Any]:
        return [each for each in self.outputs if isinstance(each, kind)]

    # Client frames are orders.

    def _order(self, frame: Frame) -> None:
        method = frame.get("method")
        if "id" in frame and method is not None:
            self._recorded[frame["id"]] = frame
        if method == "session/prompt":
            self._settle()
            text = "\n".join(each["text"] for each in frame["params"]["prompt"])
            self._waiting.append((frame["id"], text))
            if len(self._prompts) == self._results():
                self._send_waiting()
            else:
                assert any(
                    isinstance(each, OrderRefused) for each in self.machine.send("early", text)
                )
        elif method == "session/cancel":
            self._take(self.machine.interrupt())
        elif method is None:
            self._answer(frame)

    def _results(self) -> int:
        return sum(isinstance(each, Result) for each in self.events)

    def _send_waiting(self) -> None:
        if self._waiting:
            id_, text = self._waiting.pop(0)
            outputs = self._take(self.machine.send(f"t{len(self._prompts) + 1}", text))
            sent = [each.frame["id"] for each in outputs if isinstance(each, Write)]
            self._prompts[id_] = sent[-1] if sent else -1

    def _answer(self, frame: Frame) -> None:
        key = self._keys[frame["id"]]
        opened = self._opened(key)
        if opened is None:
            self._take(self.machine.served(key, frame["result"], ""))
        elif opened.kind == "elicitation":
            self._answer_elicitation(opened, frame["result"])
        else:
            outcome = frame["result"]["outcome"]
            chosen = outcome.get("optionId")
            kinds = [each.kind for each in opened.options if each.id == chosen]
            kind = kinds[0] if kinds else "deny"
            self._take(self.machine.answer(key, PermissionAnswer(kind=kind, option=chosen or "")))

    def _answer_elicitation(self, opened: RequestOpened, result: dict[str, Any]) -> None:
        answer = ElicitationAnswer(action=result["action"], content=result.get("content"))
        outputs = self._take(self.machine.answer(opened.id, answer))
        if any(isinstance(each, OrderRefused) for each in outputs):  # a text for an integer
            content = {**(answer.content or {}), "n": 3}
            self._take(self.machine.answer(opened.id, attrs.evolve(answer, content=content)))

    def _opened(self, key: str) -> RequestOpened | None:
        found = [each for each in self.events if isinstance(each, RequestOpened)]
        return next((each for each in found if each.id == key), None)

    # Frames of the agent.

    def _agent_calls(self, frame: Frame) -> None:
        outputs = self._take(self.machine.receive(frame))
        for each in outputs:
            if isinstance(each, Serve):
                self._keys[frame["id"]] = each.id
            elif isinstance(each, Emit) and isinstance(each.event, RequestOpened):
                self._keys[frame["id"]] = each.event.id

    def _agent_answers(self, frame: Frame) -> None:
        recorded = self._recorded.pop(frame["id"])
        method = recorded["method"]
        if method == "session/prompt":
            self._asked.pop(self._prompts[frame["id"]])
            frame["id"] = self._prompts[frame["id"]]
            self._take(self.machine.receive(frame))
            return
        for id_, asked in self._asked.items():
            is_same = method not in SETTINGS or asked["params"] == recorded["params"]
            if asked["method"] == method and is_same:
                del self._asked[id_]
                self._respond(id_, method, frame)
                return

    def _respond(self, id_: int, method: str, frame: Frame) -> None:
        if method == "initialize" and self.opening == "session/load":
            able = frame["result"]["agentCapabilities"]
            able.get("sessionCapabilities", {}).pop("resume", None)  # so that it is loaded
        self._options = frame.get("result", {}).get("configOptions", self._options)
        self._take(self.machine.receive({**frame, "id": id_}))

    def _settle(self) -> None:
        """Answer settings that the recording lacks, as its agent would."""
        while pending := [(i, f) for i, f in self._asked.items() if f["method"] in SETTINGS]:
            id_, asked = pending[0]
            del self._asked[id_]
            for each in self._options:
                if each["id"] == asked["params"].get("configId"):
                    each["currentValue"] = asked["params"]["value"]
            result = {"configOptions": copy.deepcopy(self._options)} if self._options else {}
            self._take(self.machine.receive({"jsonrpc": "2.0", "id": id_, "result": result}))
