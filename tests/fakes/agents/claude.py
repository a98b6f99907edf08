"""A stand-in of Claude Code's stream-json protocol, scripted by its prompts.

SAY text      a text of the assistant
ASK command   a Bash call that needs a permission
USE tool json a call of an MCP tool that needs a permission, which can be one for the session
QUESTION json a question to the person, of the tool AskUserQuestion with this input
PLAN text     ask for the approval of a plan with this text, and say the answer
FORM json     an elicitation of an MCP server, with this schema
MODE mode     enter a mode by itself
HANG          go on until the turn is interrupted
UNLESS n order  carry out the order, unless the variable WHO is one of the names n (a,b,c)
FLOOD n size  n texts of the assistant, padded to this size if given
EDIT path     append a line to a file, as by the tool Edit
ENVIRON       a text with the environment and the arguments

A prompt whose last block begins with ``/`` is a command: SAY its name. ``/yolo`` ends all asking,
``/clear`` begins another conversation, which it resumes by its id, and ``/compact`` reports itself.
RESUMED       a text with the id of the conversation

It SAYs the images of a prompt first.

With STAND_IN_MODELS it lists these models, JSON as Claude Code has it.

With STAND_IN_OLD=1 it is an older version: it does not know ``--await-initialize``, and gets MCP
servers by ``--mcp-config``. With STAND_IN_OLD=frames it knows it, and takes servers only later.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
from typing import Any

from tests.fakes.agents.kept_files import KeptFiles
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
from tests.fakes.agents.persons import fresh_id
from tests.fakes.agents.wire import Ended, Json, Wire
from tests.fakes.agents.witness import Witness

TOKEN = re.compile(r"@[a-z]+[.][a-z0-9.]+@")
"""What a test marks its messages and commands with, in the log."""

RESUME = "--resume="

MODE = "--permission-mode"

BUDGET = "--max-budget-usd="

LOGIN = os.environ.get("STAND_IN_LOGIN", "")
"""A file that exists after a login; empty: no login is needed."""

MODELS = json.loads(os.environ.get("STAND_IN_MODELS", "[]"))

OLD = os.environ.get("STAND_IN_OLD", "")

SESSION = "00000000-0000-4000-8000-000000000001"
FORK = "00000000-0000-4000-8000-000000000002"
"""The conversations: the first one, and a copy of it that ``--fork-session`` makes."""


class Claude:
    """One process of the stand-in."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._conduct = Conduct(wire, self._say)
        self._numbers = itertools.count(1)
        self._waiting: list[Json] = []
        self._cost = 0.0
        self._files = KeptFiles()
        self._asks = True
        modes = [sys.argv[at + 1] for at, each in enumerate(sys.argv) if each == MODE]
        self._mode = modes[0] if modes else "default"
        limits = [float(each.removeprefix(BUDGET)) for each in sys.argv if each.startswith(BUDGET)]
        self._budget = min(limits, default=float("inf"))
        self._servers = servers_in_file()
        self._witness = Witness()
        resumed = [each.removeprefix(RESUME) for each in sys.argv if each.startswith(RESUME)]
        fresh = fresh_id() if self._witness.is_on else SESSION
        self._conversation = resumed[0] if resumed and self._witness.is_on else fresh
        if resumed == [FORK] or (resumed and "--fork-session" in sys.argv):
            self._conversation = FORK
        self._resumed = resumed[0] if resumed else ""
        self._witness.begin(resumed[0] if resumed else None)

    def run(self) -> None:
        """Serve until the end of the input."""
        try:
            while True:
                if self._waiting:
                    self._turn(self._waiting.pop(0))
                else:
                    self._take(self._wire.next())
        except Ended:
            end(self._conduct)

    def _out(self, kind: str, **parts: Any) -> None:
        uuid = f"00000000-0000-4000-9000-{next(self._numbers):012}"
        self._wire.send({"type": kind, **parts, "session_id": self._conversation, "uuid": uuid})

    def _state(self, state: str) -> None:
        self._out("system", subtype="session_state_changed", state=state)

    def _message(self, block: Json, who: str = "assistant") -> None:
        message = {"id": f"msg_{next(self._numbers)}", "role": who, "content": [block]}
        self._out(who, message=message, parent_tool_use_id=None)

    def _say(self, text: str) -> None:
        self._message({"type": "text", "text": text})

    def _take(self, frame: Json | None) -> str:
        """Take a frame that comes between turns or in one; "interrupt" if it is that."""
        if frame is None:
            return ""
        if frame.get("type") == "user":
            self._waiting.append(frame)
            self._witness.note("frame", uuid=frame["uuid"], tokens=TOKEN.findall(_text_of(frame)))
            self._out("command_lifecycle", command_uuid=frame.get("uuid", ""), state="queued")
        elif frame.get("type") == "control_request":
            return self._control(frame)
        return ""

    def _control(self, frame: Json) -> str:
        request = frame["request"]
        body: Json = {}
        if request["subtype"] == "initialize":
            given = request.get("mcpServers") if not OLD else None
            self._servers |= given or {}
            applied = {} if OLD == "1" else {"mcp_servers_applied": bool(given)}
            body = {"commands": COMMANDS, "session_state": "idle", "claude_code_version": "2.1.330"}
            body |= applied | ({"models": MODELS} if MODELS else {})
            primed = "could not be resumed" in request.get("appendSystemPrompt", "")
            self._witness.note("ready", conversation=self._conversation, primed=primed)
        elif request["subtype"] == "mcp_set_servers":
            self._servers = request["servers"]
            body = {"added": list(self._servers), "removed": [], "errors": {}}
        elif request["subtype"] == "set_permission_mode":
            self._enter(request["mode"])
        elif request["subtype"] == "rewind_files":
            body = self._files.rewind(request["user_message_id"], bool(request.get("dry_run")))
        elif request["subtype"] == "interrupt":
            body = {"still_queued": [each["uuid"] for each in self._waiting]}
        answer: Json = {"subtype": "success", "request_id": frame["request_id"], "response": body}
        if request["subtype"] == "set_model" and request["model"] == "none":
            answer |= {"subtype": "error", "error": "there is no such model"}
        self._wire.send({"type": "control_response", "response": answer})
        return str(request["subtype"])

    def _turn(self, frame: Json) -> None:
        uuid = frame.get("uuid")
        self._files.begin(str(uuid))
        self._state("running")
        self._out("command_lifecycle", command_uuid=uuid, state="started")
        servers = [{"name": each, "status": "connected"} for each in self._servers]
        about = {"mcp_servers": servers, "tools": [], "permissionMode": self._mode}
        self._out("system", subtype="init", model="stand-in", **about)
        if LOGIN and not os.path.exists(LOGIN):
            self._refuse_without_login(uuid)
            return
        if self._cost >= self._budget:
            self._refuse_over_budget(uuid)
            return
        for image in images_in(frame["message"]["content"]):
            self._say(saw(image["source"]["media_type"], image["source"]["data"]))
        if command := command_in(_blocks_of(frame)[-1:]):
            is_whole = self._command(command)
        else:
            is_whole = all(self._order(*order) for order in orders_of(_text_of(frame)))
        self._cost += 0.01
        outcome = "ok" if is_whole else "cancelled"
        self._witness.note("reported", uuid=uuid, outcome=outcome)
        self._out(
            "result",
            subtype="success" if is_whole else "error_during_execution",
            is_error=not is_whole,
            terminal_reason="completed" if is_whole else "aborted_streaming",
            result="",
            user_message_uuids=[uuid] if uuid else [],
            total_cost_usd=self._cost,
            usage={"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 0},
            num_turns=1,
        )
        state = "completed" if is_whole else "cancelled"
        self._out("command_lifecycle", command_uuid=uuid, state=state)
        self._state("idle")

    def _refuse_over_budget(self, uuid: Any) -> None:
        self._out(
            "result",
            subtype="error_max_budget_usd",
            is_error=True,
            terminal_reason="budget_exhausted",
            result="Reached maximum budget",
            user_message_uuids=[uuid] if uuid else [],
            total_cost_usd=self._cost,
            usage={"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0},
            num_turns=1,
        )
        self._out("command_lifecycle", command_uuid=uuid, state="completed")
        self._state("idle")

    def _refuse_without_login(self, uuid: Any) -> None:
        message = {"id": "m", "model": "<synthetic>", "role": "assistant", "content": []}
        error = "authentication_failed"
        self._out("assistant", message=message, parent_tool_use_id=None, error=error)
        self._out(
            "result",
            subtype="success",
            is_error=True,
            terminal_reason="api_error",
            result="Not logged in. Please run /login",
            user_message_uuids=[uuid],
            num_turns=1,
        )

    def _command(self, command: str) -> bool:
        self._asks = self._asks and command != "yolo"
        self._say(f"command {command}")
        if command == "clear":
            self._out("conversation_reset", trigger="clear", new_conversation_id="other")
            self._conversation = fresh_id()
            self._witness.note("began", conversation=self._conversation, person=False)
        elif command == "compact":
            about = {"trigger": "manual", "pre_tokens": 900, "post_tokens": 100}
            self._out("system", subtype="compact_boundary", compact_metadata=about)
        return True

    def _order(self, word: str, rest: str) -> bool:
        """Carry out one order; False if the turn was interrupted."""
        if word == "ASK" and not self._asks:
            self._say(f"ran {rest} unasked")
            return True
        if word == "ASK":
            return self._ask(rest)
        if word == "USE":
            self._use(*rest.split(" ", 1))
            return True
        if word in ("PLAN", "MODE"):
            self._plan(rest) if word == "PLAN" else self._enter(rest)
            return True
        if word in ("QUESTION", "FORM"):
            self._inquire(word, json.loads(rest))
            return True
        if word == "HANG":
            while self._take(self._wire.next()) != "interrupt":
                pass
            return False
        if word == "UNLESS":
            names, _, order = rest.partition(" ")
            is_named = os.environ.get("WHO") in names.split(",")
            return is_named or self._order(*order.partition(" ")[::2])
        if word == "FLOOD":
            for text in flood(rest):
                self._say(text)
        elif word == "ENVIRON":
            self._say(environment_text())
        elif word == "EDIT":
            self._edit(rest)
        elif word == "RESUMED":
            self._say(f"resumed {self._resumed}")
        elif not self._conduct.follow(word, rest):
            self._say(rest if word == "SAY" else f"{word} {rest}".strip())
        return True

    def _edit(self, path: str) -> None:
        """Append a line to a file, as by the tool Edit."""
        tool = f"toolu_{next(self._numbers)}"
        given = {"file_path": path, "old_string": "", "new_string": "edited\n"}
        self._message({"type": "tool_use", "id": tool, "name": "Edit", "input": given})
        result = {"type": "tool_result", "tool_use_id": tool, "is_error": False}
        self._files.keep(path)
        try:
            with open(path, "a", encoding="utf-8") as file:
                file.write("edited\n")
        except OSError as error:
            self._message({**result, "is_error": True, "content": str(error)}, "user")
        else:
            self._message({**result, "content": "edited"}, "user")

    def _ask(self, command: str) -> bool:
        number = next(self._numbers)
        request, tool, given = f"req_{number}", f"toolu_{number}", {"command": command}
        self._message({"type": "tool_use", "id": tool, "name": "Bash", "input": given})
        self._state("requires_action")
        question = {
            "subtype": "can_use_tool",
            "tool_name": "Bash",
            "display_name": "Bash",
            "input": given,
            "description": "",
            "tool_use_id": tool,
            "permission_suggestions": [],
        }
        frame = {"type": "control_request", "request_id": request, "request": question}
        self._witness.note("asked", key=request, tokens=TOKEN.findall(command))
        self._wire.send(frame)
        answer = self._answer(request)
        self._state("running")
        is_allowed = answer.get("behavior") == "allow"
        used = answer.get("updatedInput") or given
        text = f"ran {used['command']}" if is_allowed else str(answer.get("message"))
        result = {"type": "tool_result", "tool_use_id": tool, "content": text}
        self._message({**result, "is_error": not is_allowed}, "user")
        return not answer.get("interrupt")

    def _enter(self, mode: str) -> None:
        self._mode = mode
        self._out("system", subtype="status", status=None, permissionMode=mode)

    def _plan(self, text: str) -> None:
        request = f"req_{next(self._numbers)}"
        asked = {
            "subtype": "can_use_tool",
            "tool_name": "ExitPlanMode",
            "input": {"plan": text.replace("; ", "\n"), "planFilePath": "/plans/p.md"},
            "requires_user_interaction": True,
        }
        self._state("requires_action")
        frame = {"type": "control_request", "request_id": request, "request": asked}
        self._wire.send(frame)
        answer = self._answer(request)
        if answer["behavior"] == "allow":
            self._enter("default")
        self._state("running")
        said = (answer.get("updatedInput") or {}).get("plan", answer.get("message"))
        self._say(f"{answer['behavior']}: {said} {len(answer.get('updatedPermissions', []))}")

    def _use(self, tool: str, given: str) -> None:
        """Ask for a tool, and say what was allowed with which rules, or why not."""
        request = f"req_{next(self._numbers)}"
        rule = {"type": "addRules", "behavior": "allow", "rules": [{"toolName": tool}]}
        question = {
            "subtype": "can_use_tool",
            "tool_name": tool,
            "input": json.loads(given),
            "permission_suggestions": [rule],
        }
        frame = {"type": "control_request", "request_id": request, "request": question}
        self._state("requires_action")
        self._wire.send(frame)
        answer = self._answer(request)
        self._state("running")
        rules = answer.get("updatedPermissions", [])
        said = [answer["behavior"], answer.get("updatedInput"), len(rules), answer.get("message")]
        self._say(json.dumps(said))

    def _inquire(self, word: str, given: Json) -> None:
        request = f"req_{next(self._numbers)}"
        if word == "QUESTION":
            asked = {"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": given}
        else:
            asked = {"subtype": "elicitation", "mcp_server_name": "shop", "requested_schema": given}
        self._state("requires_action")
        frame = {"type": "control_request", "request_id": request, "request": asked}
        self._wire.send(frame)
        answer = self._answer(request)
        self._state("running")
        said = (answer.get("updatedInput") or answer).get("answers") or answer.get("content")
        self._say(f"answered {json.dumps(said, sort_keys=True)}")

    def _answer(self, request: str) -> Json:
        while True:
            frame = self._wire.next()
            response = (frame or {}).get("response") or {}
            if response.get("request_id") == request:
                allowed = (response.get("response") or {}).get("behavior") == "allow"
                self._witness.note("effect", key=request, allowed=allowed)
                return response.get("response") or {"behavior": "deny", "message": "refused"}
            if self._take(frame) == "interrupt":
                self._wire.send({"type": "control_cancel_request", "request_id": request})
                return {"behavior": "deny", "message": "interrupted", "interrupt": True}


def _text_of(frame: Json) -> str:
    return "\n".join(_blocks_of(frame))


def _blocks_of(frame: Json) -> list[str]:
    content = frame["message"]["content"]
    return [content] if isinstance(content, str) else [each.get("text", "") for each in content]


def log_in(words: list[str]) -> None:
    """Ask for a code and end, if the arguments are those of a login."""
    if words[-2:] == ["auth", "login"]:
        if input("code: ") == "1234":
            with open(LOGIN, "w", encoding="utf-8"):
                pass
        sys.exit(0)


def refuse_as_older(words: list[str]) -> None:
    """End as an older version does that does not know an argument."""
    if OLD == "1" and "--await-initialize" in words:
        sys.stderr.write("error: unknown option '--await-initialize'\n")
        sys.exit(1)


def servers_in_file() -> Json:
    """Return the MCP servers of the file of ``--mcp-config``, read at the start."""
    for word in sys.argv:
        if word.startswith("--mcp-config="):
            with open(word.partition("=")[2], encoding="utf-8") as file:
                servers: Json = json.load(file)["mcpServers"]
                return servers
    return {}
