"""A stand-in of an ACP agent, scripted by its prompts.

Like real ones it starts in a mode that asks nobody, its request ids begin with 0, and the first
option of a permission allows for ever.

SAY text      a message of one chunk
ASK command   a shell call that needs a permission
CHOOSE command  the same, with two options that allow once; SAY the id of the chosen one
READ path     a chunk with the text of a file of the client, or its error
WRITE path t  have the client write the text t; a chunk with the outcome
OPEN command  open a terminal of the client that a tool call shows, and SAY its id
TERM command  the same, and wait for the end: SAY its status and output, and release it
LIMIT s command  as TERM, but kill the command after s seconds, and not before its first output
LEAVE command    as OPEN, and release it while a wait is open; SAY the answer of the wait
CANCEL command   as OPEN, and cancel a wait, many times; SAY the code of the last answer
PLAN json     its plan, a list of entries
CLIENT m json a call of the client's method m; SAY the result
MCP tool json call a tool at the URL of its MCP server; SAY the result
PERMIT tool json  ask for the permission of a call of our tool; SAY the chosen option
HANG          go on until the turn is cancelled
BLOCKS        a chunk with the number of texts in the prompt: a primer is one
LOGIN         a chunk with the method that it was authenticated by
FLOOD n size  n messages, padded to this size if given
WORDS n rate  a message of n words, a chunk for each, so many a second
ENVIRON       a chunk with the environment and the arguments

``STAND_IN_LOGINS`` are its methods to authenticate by, as JSON: it begins no conversation before.
It SAYs the images of a prompt first, unless it takes none by ``STAND_IN_IMAGES=none``.
``STAND_IN_IDS`` are the ids of its conversations, with a number for ``{}``, and ``STAND_IN_MODES``
the modes in which it asks.
With ``STAND_IN_LOADS=late`` it cannot resume, and repeats a loaded conversation after its answer.

A prompt whose first block begins with ``/`` is a command: SAY its name. ``/yolo`` ends all asking.
With ``STAND_IN_COMMANDS=last`` the last block decides (claude-agent-acp); with ``swallowed`` its
turn ends without a text (opencode).
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from typing import Any

from tests.fakes.agents.orders import (
    COMMANDS,
    Conduct,
    command_in,
    end,
    environment_text,
    flood,
    images_in,
    orders_of,
    saw,
)
from tests.fakes.agents.wire import Ended, Json, Wire

MODES = ("auto", *os.environ.get("STAND_IN_MODES", "default").split(","))

OPTIONS = (
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
)

TWO_WAYS = (
    {"optionId": "here", "name": "Run it here", "kind": "allow_once"},
    {"optionId": "sandbox", "name": "Run it in a sandbox", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
)

LOGINS = json.loads(os.environ.get("STAND_IN_LOGINS", "[]"))
LOADS_LATE = os.environ.get("STAND_IN_LOADS") == "late"
FIRST_DECIDES = os.environ.get("STAND_IN_COMMANDS") != "last"
SWALLOWS = os.environ.get("STAND_IN_COMMANDS") == "swallowed"

IDS = os.environ.get("STAND_IN_IDS", "ses_{}")

CANCELLED_WAITS = 20
"""More than may be open at a time."""


class Acp:
    """One process of the stand-in."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._conduct = Conduct(wire, self._say)
        self._ids = itertools.count(0)
        self._sessions = itertools.count(1)
        self._messages = itertools.count(1)
        self._session = ""
        self._blocks = 0
        self._mode = "auto"
        self._login = ""
        self._url = ""
        self._is_cancelled = False
        self._responses: dict[int, Json] = {}

    def run(self) -> None:
        """Serve until the end of the input."""
        try:
            while True:
                self._take(self._wire.next())
        except Ended:
            end(self._conduct)

    def _answer(self, frame: Json, result: Any) -> None:
        self._wire.send({"jsonrpc": "2.0", "id": frame["id"], "result": result})

    def _update(self, kind: str, /, **parts: Any) -> None:
        params = {"sessionId": self._session, "update": {"sessionUpdate": kind, **parts}}
        self._wire.send({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def _say(self, *chunks: str, pause_s: float = 0.0) -> None:
        id_ = f"msg_{next(self._messages)}"
        for text in chunks:
            content = {"type": "text", "text": text}
            self._update("agent_message_chunk", content=content, messageId=id_)
            time.sleep(pause_s)

    def _config(self) -> list[Json]:
        choices = [{"value": mode, "name": mode} for mode in MODES]
        option = {"id": "mode", "name": "Mode", "category": "mode", "type": "select"}
        return [{**option, "currentValue": self._mode, "options": choices}]

    def _take(self, frame: Json | None) -> None:
        """Take a request or a notification; in a turn, another prompt is refused."""
        frame = frame or {}
        params = frame.get("params") or {}
        match frame.get("method"):
            case "initialize":
                self._answer(frame, ABILITIES)
            case "session/new" | "session/load" | "session/resume" if LOGINS and not self._login:
                error = {"code": -32000, "message": "Authentication required"}
                self._wire.send({"jsonrpc": "2.0", "id": frame["id"], "error": error})
            case "authenticate":
                self._login = params["methodId"]
                self._answer(frame, {})
            case "session/new" | "session/load" | "session/resume":
                servers = params.get("mcpServers") or [{}]
                self._url = servers[0].get("url", "")
                self._session = params.get("sessionId") or IDS.format(next(self._sessions))
                self._mode = "auto"
                self._answer(frame, {"sessionId": self._session, "configOptions": self._config()})
                if frame["method"] == "session/load":
                    threading.Thread(target=self._repeat).start()
                self._announce()
            case "session/set_config_option":
                self._mode = params["value"]
                self._answer(frame, {"configOptions": self._config()})
            case "session/cancel":
                self._is_cancelled = True
            case "session/prompt":
                self._turn(frame)
            case str(method) if "id" in frame:
                error = {"code": -32601, "message": f"Method not found: {method}"}
                self._wire.send({"jsonrpc": "2.0", "id": frame["id"], "error": error})

    def _announce(self) -> None:
        commands = [{**each, "input": {"hint": each.get("argumentHint")}} for each in COMMANDS]
        self._update("available_commands_update", availableCommands=commands)

    def _repeat(self) -> None:
        """Repeat a turn of the loaded conversation, slowly, as gemini does."""
        for number in range(6):
            time.sleep(0.1)
            content = {"type": "text", "text": f"repeated {number}"}
            self._update(
                "user_message_chunk" if number == 0 else "agent_message_chunk", content=content
            )

    def _turn(self, frame: Json) -> None:
        self._is_cancelled = False
        for image in images_in(frame["params"]["prompt"]):
            self._say(saw(image["mimeType"], image["data"]))
        blocks = [each["text"] for each in frame["params"]["prompt"] if "text" in each]
        if command := command_in(blocks if FIRST_DECIDES else blocks[-1:]):
            self._command(frame, command)
            return
        self._blocks = len(blocks)
        for word, rest in orders_of(blocks[-1]):
            self._order(word, rest)
            if self._is_cancelled:
                self._answer(frame, {"stopReason": "cancelled"})
                return
        self._update("usage_update", used=15, size=1000, cost={"amount": 0.01, "currency": "USD"})
        self._answer(frame, {"stopReason": "end_turn"})

    def _command(self, frame: Json, command: str) -> None:
        self._mode = "auto" if command == "yolo" else self._mode
        if not SWALLOWS:
            self._say(f"command {command}")
        self._answer(frame, {"stopReason": "end_turn"})

    def _order(self, word: str, rest: str) -> None:
        if word in ("ASK", "CHOOSE"):
            self._ask(rest, chooses=word == "CHOOSE")
        elif word in ("READ", "WRITE", "CLIENT"):
            self._use_client(word, rest)
        elif word in ("OPEN", "TERM", "LIMIT", "LEAVE", "CANCEL"):
            self._use_terminal(word, rest)
        elif word == "HANG":
            while not self._is_cancelled:
                self._take(self._wire.next())
        elif word in ("FLOOD", "WORDS"):
            self._say_much(word, rest)
        elif word == "ENVIRON":
            self._say(environment_text())
        elif word == "MCP":
            tool, _, arguments = rest.partition(" ")
            self._say(call_tool(self._url, tool, json.loads(arguments)))
        elif word == "PERMIT":
            tool, _, arguments = rest.partition(" ")
            self._permit(tool, json.loads(arguments))
        elif word == "PLAN":
            self._update("plan", entries=json.loads(rest))
        elif word == "BLOCKS":
            self._say(f"{self._blocks} texts")
        elif word == "LOGIN":
            self._say(f"logged in by {self._login}")
        elif not self._conduct.follow(word, rest):
            self._say(rest if word == "SAY" else f"{word} {rest}".strip())

    def _say_much(self, word: str, rest: str) -> None:
        if word == "FLOOD":
            for text in flood(rest):
                self._say(text)
        else:
            count, rate = map(int, rest.split())
            self._say(*(f"w{number} " for number in range(count)), pause_s=1 / rate)

    def _use_client(self, word: str, rest: str) -> None:
        if word == "READ":
            result = self._call("fs/read_text_file", path=rest)
            self._say(str(result.get("content", result)))
        elif word == "WRITE":
            path, _, text = rest.partition(" ")
            result = self._call("fs/write_text_file", path=path, content=text)
            self._say(str(result) if result else f"wrote {path}")
        else:
            method, _, fields = rest.partition(" ")
            self._say(json.dumps(self._call(method, **json.loads(fields))))

    def _ask(self, command: str, *, chooses: bool) -> None:
        id_ = next(self._ids)
        call: Json = {"toolCallId": f"call_{id_}", "title": command, "kind": "execute"}
        call["rawInput"] = {"command": command}
        self._update("tool_call", status="pending", **call)
        chosen = "always" if self._mode == "auto" else ""
        if not chosen:
            options = TWO_WAYS if chooses else OPTIONS
            params = {"sessionId": self._session, "toolCall": call, "options": options}
            method = "session/request_permission"
            self._wire.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
            chosen = self._outcome(id_)
        is_allowed = chosen in ("yes", "always", "here", "sandbox")
        text = f"ran {command}" if is_allowed else "refused"
        content = [{"type": "content", "content": {"type": "text", "text": text}}]
        status = "completed" if is_allowed else "failed"
        self._update("tool_call_update", toolCallId=f"call_{id_}", status=status, content=content)
        if chooses:
            self._say(f"chose {chosen}")

    def _permit(self, tool: str, arguments: Json) -> None:
        id_ = next(self._ids)
        call: Json = {"toolCallId": f"call_{id_}", "title": f"{tool} (aegis)", "kind": "other"}
        params: Json = {"sessionId": self._session, "toolCall": {**call, "rawInput": arguments}}
        params["options"] = OPTIONS
        method = "session/request_permission"
        self._wire.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        self._say(f"chose {self._outcome(id_)}")

    def _use_terminal(self, word: str, command: str) -> None:
        limit_s = 0.0
        if word == "LIMIT":
            limit, _, command = command.partition(" ")
            limit_s = float(limit)
        created = self._call("terminal/create", command=command)
        if "terminalId" not in created:
            self._say(f"not run: {created['message']}")
            return
        terminal = {"terminalId": created["terminalId"]}
        call = {"toolCallId": f"call_{terminal['terminalId']}", "title": command, "kind": "execute"}
        self._update("tool_call", **call, content=[{"type": "terminal", **terminal}])
        match word:
            case "OPEN":
                self._say(f"opened {terminal['terminalId']}")
            case "CANCEL":
                self._cancel_waits(terminal)
            case "LEAVE":
                wait = self._request("terminal/wait_for_exit", **terminal)
                self._call("terminal/release", **terminal)
                self._say(f"left {json.dumps(self._result(wait))}")
            case _:
                self._await_end(terminal, limit_s)
                self._update("tool_call_update", toolCallId=call["toolCallId"], status="completed")

    def _await_end(self, terminal: Json, limit_s: float) -> None:
        wait = self._request("terminal/wait_for_exit", **terminal)
        if limit_s:
            time.sleep(limit_s)
            while not self._call("terminal/output", **terminal)["output"]:
                time.sleep(0.05)
            self._call("terminal/kill", **terminal)
        output = self._call("terminal/output", **terminal) if limit_s else {}
        status = self._result(wait)
        output = output or self._call("terminal/output", **terminal)
        self._call("terminal/release", **terminal)
        self._say(f"ended {status['exitCode']} {status['signal']}: {output['output']}")

    def _cancel_waits(self, terminal: Json) -> None:
        for _ in range(CANCELLED_WAITS):
            wait = self._request("terminal/wait_for_exit", **terminal)
            cancel = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": wait}}
            self._wire.send(cancel)
            answer = self._result(wait)
        self._say(f"cancelled {answer['code']}")

    def _outcome(self, id_: int) -> str:
        return str(self._response(id_)["result"]["outcome"].get("optionId"))

    def _call(self, method: str, **fields: Any) -> Json:
        """Return the result of a request to the client, or its error."""
        return self._result(self._request(method, **fields))

    def _request(self, method: str, **fields: Any) -> int:
        """Send a request to the client; return its id."""
        id_ = next(self._ids)
        params = {"sessionId": self._session, **fields}
        self._wire.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        return id_

    def _result(self, id_: int) -> Json:
        """Return the result of a request, or its error."""
        response = self._response(id_)
        found: Json = response["result"] if "result" in response else response["error"]
        return found

    def _response(self, id_: int) -> Json:
        """Return the response to a request; keep those to others."""
        while id_ not in self._responses:
            frame = self._wire.next() or {}
            if "method" not in frame and "id" in frame:
                self._responses[frame["id"]] = frame
            else:
                self._take(frame)
        return self._responses.pop(id_)


def call_tool(url: str, tool: str, arguments: Json) -> str:
    """Return the text of the result of a tool's call over HTTP."""
    import urllib.request

    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
    }
    begin = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    steps: list[tuple[int | None, str, Json]] = [
        (1, "initialize", begin),
        (None, "notifications/initialized", {}),
        (2, "tools/call", {"name": tool, "arguments": arguments}),
    ]
    text = ""
    for id_, method, params in steps:
        body: Json = {"jsonrpc": "2.0", "method": method, "params": params}
        body |= {} if id_ is None else {"id": id_}
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            session = answer.headers.get("mcp-session-id")
            headers |= {"mcp-session-id": session} if session else {}
            text = answer.read().decode()
    return text


SESSIONS: Json = {} if LOADS_LATE else {"resume": {}}

ABILITIES: Json = {
    "protocolVersion": 1,
    "agentInfo": {"name": "stand-in", "title": "Stand-in", "version": "1"},
    "agentCapabilities": {
        "loadSession": True,
        "mcpCapabilities": {"http": True, "sse": False},
        "promptCapabilities": {"image": os.environ.get("STAND_IN_IMAGES") != "none"},
        "sessionCapabilities": SESSIONS,
    },
    "authMethods": LOGINS,
}
