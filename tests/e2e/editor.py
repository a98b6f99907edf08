"""An editor that speaks ACP with ``aegis-actors acp``, frame by frame."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tests.aegis.agents.drivers.acp.test_schema import assert_fits
from tests.e2e.harness import GUARD_S, DaemonProcess

Frame = dict[str, Any]

MODELS = {
    "session/update": "SessionNotification",
    "session/request_permission": "RequestPermissionRequest",
    "$/cancel_request": "CancelRequestNotification",
}
"""The models of what is sent to an editor, in the schema of the protocol's authors."""

ANSWERS = {
    "initialize": "InitializeResponse",
    "session/new": "NewSessionResponse",
    "session/load": "LoadSessionResponse",
    "session/resume": "ResumeSessionResponse",
    "session/list": "ListSessionsResponse",
    "session/close": "CloseSessionResponse",
    "session/prompt": "PromptResponse",
    "session/set_mode": "SetSessionModeResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
}


class Editor:
    """A process of ``aegis-actors acp WORDS`` in the root of a daemon, and all that it has sent.

    ``program`` is started in place of ``aegis-actors``.
    """

    def __init__(self, daemon: DaemonProcess, *words: str, program: Sequence[str] = ()) -> None:
        self._process = subprocess.Popen(
            [*(program or daemon.program), "acp", *words],
            env=daemon.environment,
            cwd=daemon.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.cwd = str(daemon.root)
        self.frames: list[Frame] = []
        self.odd: list[bytes] = []
        self._called: dict[object, str] = {}
        self._came = threading.Condition()
        self._numbers = itertools.count()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Editor:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        assert self.odd == [], self.odd
        for frame in self.frames:
            self._fits(frame)

    def _fits(self, frame: Frame) -> None:
        """Fail unless a frame has the form of the schema."""
        assert frame["jsonrpc"] == "2.0", frame
        if "method" in frame:
            model, value = MODELS[frame["method"]], frame["params"]
        elif "result" in frame:
            method = self._called.get(frame["id"], "session/prompt")
            model, value = ANSWERS[method], frame["result"]
        else:
            model, value = "Error", frame["error"]
        assert_fits(value, model)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._came:
                try:
                    self.frames.append(json.loads(line))
                except ValueError:
                    self.odd.append(line)
                self._came.notify_all()

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()
        self.ended()

    def close(self) -> int:
        """Close its standard input, as an editor does; return the exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self.ended()

    def ended(self) -> int:
        code = self._process.wait(GUARD_S)
        self._reader.join(GUARD_S)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            if not stream.closed:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        return code

    def write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def send(self, **frame: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")

    def start(self, method: str, **params: Any) -> int:
        """Send a call, and return its id."""
        id_ = next(self._numbers)
        self._called[id_] = method
        self.send(id=id_, method=method, params=params)
        return id_

    def answer(self, id_: int) -> Frame:
        """The answer to a call."""
        return self.wait(lambda each: each.get("id", "") == id_ and "method" not in each)

    def call(self, method: str, **params: Any) -> Any:
        answer = self.answer(self.start(method, **params))
        assert "result" in answer, answer
        return answer["result"]

    def error(self, method: str, **params: Any) -> Frame:
        answer = self.answer(self.start(method, **params))
        assert "error" in answer, answer
        found: Frame = answer["error"]
        return found

    def wait(self, fits: Callable[[Frame], bool], since: int = 0) -> Frame:
        """The first frame that fits, now or when it comes."""
        found: list[Frame] = []

        def has() -> bool:
            found[:] = [each for each in self.frames[since:] if fits(each)]
            return bool(found)

        with self._came:
            assert self._came.wait_for(has, GUARD_S), self.frames[-20:]
        return found[0]

    def updates(self, kind: str = "") -> list[Frame]:
        with self._came:
            found = [each for each in self.frames if each.get("method") == "session/update"]
        every = [each["params"]["update"] for each in found]
        return [each for each in every if not kind or each["sessionUpdate"] == kind]

    def texts(self, kind: str = "agent_message_chunk") -> list[str]:
        return [each["content"]["text"].strip("\n") for each in self.updates(kind)]

    def says(self, text: str, kind: str = "agent_message_chunk", since: int = 0) -> Frame:
        """Wait for a text."""

        def fits(frame: Frame) -> bool:
            update = frame.get("params", {}).get("update", {})
            if update.get("sessionUpdate") != kind:
                return False
            return text in update["content"]["text"]

        return self.wait(fits, since)

    def asked(self, since: int = 0) -> Frame:
        """Wait for a request of a permission."""
        return self.wait(lambda each: each.get("method") == "session/request_permission", since)

    def choose(self, request: Frame, kind: str) -> str:
        """Answer a permission with its option of a kind."""
        options = request["params"]["options"]
        [chosen, *_] = [each["optionId"] for each in options if each["kind"] == kind]
        outcome = {"outcome": "selected", "optionId": chosen}
        self.send(id=request["id"], result={"outcome": outcome})
        return str(chosen)

    def begin(self) -> Frame:
        result: Frame = self.call("initialize", protocolVersion=1, clientCapabilities={})
        return result

    def open(self, session: str | None = None) -> str:
        """Begin, and open a thread: a new one, or one of this session."""
        self.begin()
        if session is None:
            return str(self.call("session/new", cwd=self.cwd, mcpServers=[])["sessionId"])
        self.call("session/load", sessionId=session, cwd=self.cwd, mcpServers=[])
        return session

    def prompt(self, session: str, text: str) -> int:
        """Send a prompt, and return the id of its call."""
        block = {"type": "text", "text": text}
        return self.start("session/prompt", sessionId=session, prompt=[block])

    def stops(self, call: int) -> str:
        """The reason for which a prompt ends."""
        answer = self.answer(call)
        assert "result" in answer, answer
        return str(answer["result"]["stopReason"])
