"""Playing a recording of a real agent: each of its frames is sent once the client's frames came.

Ids that the client chose are put in the place of the recorded ones. Settings of the client are
answered as in the recording, whenever they come.
"""

from __future__ import annotations

import json
import os
from typing import Any

from tests.fakes.agents.wire import Ended, Json, Wire

SETTINGS = frozenset(
    {
        *("session/set_config_option", "session/set_mode", "session/set_model", "authenticate"),
        *("session/close", "set_permission_mode", "set_model", "mcp_status", "get_context_usage"),
        *("get_session_cost", "get_usage", "get_bogus"),
    }
)
"""Requests that another client than the recorded one may make at other moments, or not at all."""


def play(path: str, wire: Wire) -> None:
    """Play the recording to its end; then wait for the end of the input, or end as it did."""
    with open(path, encoding="utf-8") as file:
        meta, *steps = [json.loads(line) for line in file]
    playing = _Playing(steps, wire)
    try:
        for step in steps:
            playing.step(step["d"] == ">", step["f"])
        if "exit" not in meta["meta"]:
            while True:
                playing.answer_other(wire.next() or {})
    except Ended:
        os._exit(0)
    os.write(2, meta["meta"].get("stderr", "").encode())
    os._exit(meta["meta"]["exit"])


class _Playing:
    def __init__(self, steps: list[Json], wire: Wire) -> None:
        self._wire = wire
        self._names: dict[Any, Any] = {}  # recorded ids of the client, and live ones
        self._config: list[Json] = []  # the config options, as they are now
        self._skipped: set[Any] = set()  # recorded ids of settings
        self._answers = dict[str, Json]()  # to settings, by their names
        requests = {_id(each["f"]): _kind(each["f"]) for each in steps if each["d"] == ">"}
        for each in steps:
            kind = requests.get(_answered(each["f"])) if each["d"] == "<" else None
            if kind in SETTINGS:
                self._answers[kind] = each["f"]

    def step(self, is_clients: bool, frame: Json) -> None:
        """Wait for a frame of the client, or send one of the agent."""
        if is_clients and _kind(frame) in SETTINGS:
            self._skipped.add(_id(frame))
        elif is_clients:
            self._await(frame)
        elif _answered(frame) is None or _answered(frame) not in self._skipped:
            result = frame.get("result")
            if isinstance(result, dict):
                self._config = result.get("configOptions", self._config)
            self._wire.send(self._renamed(frame))

    def answer_other(self, live: Json) -> None:
        """Answer a request that is not the next one of the recording."""
        recorded = self._answers.get(_kind(live))
        if live.get("type") == "control_request":
            body = {"subtype": "success", "response": {}}
            body |= recorded["response"] if recorded else {}
            answer = {**body, "request_id": live["request_id"]}
            self._wire.send({"type": "control_response", "response": answer})
        elif live.get("method") == "session/set_config_option" and self._config:
            params = live["params"]
            for option in self._config:
                if option["id"] == params["configId"]:
                    option["currentValue"] = params["value"]
            result = {"configOptions": self._config}
            self._wire.send({"jsonrpc": "2.0", "id": live["id"], "result": result})
        elif "method" in live and "id" in live:
            self._wire.send({"jsonrpc": "2.0", "result": {}, **(recorded or {}), "id": live["id"]})

    def _await(self, recorded: Json) -> None:
        while True:
            live = self._wire.next() or {}
            if _kind(live) == _kind(recorded):
                break
            self.answer_other(live)
        for key in ("uuid", "request_id", "id"):
            if key in recorded and key in live and "result" not in recorded:
                self._names[recorded[key]] = live[key]

    def _renamed(self, frame: Json) -> Json:
        if "jsonrpc" in frame:
            is_answer = "method" not in frame
            return (
                {**frame, "id": self._names.get(frame["id"], frame["id"])} if is_answer else frame
            )
        return self._put(frame)  # type: ignore[no-any-return]

    def _put(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._put(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._put(each) for each in value]
        return self._names.get(value, value) if isinstance(value, str) else value


def _id(frame: Json) -> Any:
    return frame.get("request_id") if frame.get("type") == "control_request" else frame.get("id")


def _answered(frame: Json) -> Any:
    """The id of the request that a frame answers; None if it is no answer."""
    if frame.get("type") == "control_response":
        return frame["response"]["request_id"]
    return frame.get("id") if "jsonrpc" in frame and "method" not in frame else None


def _kind(frame: Json) -> str:
    """Return the part that a live frame and its recorded counterpart have in common."""
    if frame.get("type") == "control_request":
        return str(frame["request"]["subtype"])
    if frame.get("type") == "control_response":
        return f"answer {frame['response']['request_id']}"
    if "method" in frame:
        return str(frame["method"])
    return f"answer {frame['id']}" if "jsonrpc" in frame else str(frame.get("type"))
