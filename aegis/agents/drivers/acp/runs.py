"""``terminal/create``, ``fs/write_text_file``: the permission that each needs, and has. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from aegis.agents.drivers.acp.frames import items, mapping, string
from aegis.agents.drivers.terminals.run import METHOD, CommandToRun, read_run
from aegis.errors import InvalidRequest
from aegis.protocol.agent_events import RequestOpened, RequestOption

MAX_APPROVED = 64
"""Approved commands that are not run yet, and approved changes that are not written yet; the oldest
is asked for again.

As many may be approved for the session.
"""

OPTIONS = (
    RequestOption(id="allow", name="Run the command", kind="allow_once"),
    RequestOption(
        id="allow_session",
        name="Run exactly this command, whenever it comes in this session",
        kind="allow_session",
    ),
    RequestOption(id="deny", name="Do not run it", kind="deny"),
)

_COMMENTS = frozenset({"description", "timeout"})
"""Fields beside an approved command that do not change what is run."""


def run_request(key: str, params: Mapping[str, Any]) -> RequestOpened:
    """Return the request to run a command. Raises ``InvalidRequest``."""
    run = read_run(params)
    shown: dict[str, Any] = {"command": run.command}
    shown |= {"args": list(run.args)} if run.args else {}
    shown |= {"env": dict(run.environment)} if run.environment else {}
    shown |= {"cwd": run.cwd} if run.cwd is not None else {}
    return RequestOpened(
        id=key,
        kind="permission",
        tool=METHOD,
        tool_kind="execute",
        title=f"run {run.title}",
        input=shown,
        options=list(OPTIONS),
    )


class ApprovedCommands:
    """The commands that need no further approval, in a session whose directory is ``cwd``.

    An agent asks for the permission of a command, and then for a terminal that runs it: a person
    who approved exactly this command is not asked twice.
    """

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._approved: list[tuple[str, str]] = []
        self._lasting: dict[tuple[object, ...], None] = {}

    def approve(self, shown: Mapping[str, Any]) -> None:
        """Note the command in the input of a call that was approved in the current turn."""
        command = _line(shown.get("command"))
        cwd = shown.get("cwd", self._cwd)
        # Any other field can change what the person has approved.
        if command and isinstance(cwd, str) and not shown.keys() - {"command", "cwd", *_COMMENTS}:
            self._approved = [*self._approved, (command, cwd)][-MAX_APPROVED:]

    def approve_for_session(self, params: Mapping[str, Any]) -> None:
        """Note that this command was approved for the session: with its directory and variables."""
        self._lasting[self._identity(read_run(params))] = None
        if len(self._lasting) > MAX_APPROVED:
            del self._lasting[next(iter(self._lasting))]

    def take(self, params: Mapping[str, Any]) -> bool:
        """Whether this command is approved; the approval of one command is used up."""
        try:
            run = read_run(params)
        except InvalidRequest:
            return False
        if self._identity(run) in self._lasting:
            return True
        wanted = _line([run.command, *run.args] if run.args else run.command), run.cwd or self._cwd
        # A variable can make another program of the same words.
        if run.environment or wanted not in self._approved:
            return False
        self._approved.remove(wanted)
        return True

    def _identity(self, run: CommandToRun) -> tuple[object, ...]:
        """Return a command without what may differ between two calls of it."""
        variables = tuple(sorted(run.environment.items()))
        return run.command, run.args, run.cwd or self._cwd, variables

    def end_turn(self) -> None:
        """Drop the approvals of commands that were not run."""
        self._approved.clear()

    def close(self) -> None:
        """Ask for each command again."""
        self._approved.clear()
        self._lasting.clear()


def _line(command: object) -> str:
    """Return a command as a shell line, given as that or as its words."""
    if isinstance(command, list) and command and all(isinstance(each, str) for each in command):
        return shlex.join(command)
    return string(command)


WRITE_METHOD = "fs/write_text_file"

WRITE_OPTIONS = (
    RequestOption(id="allow", name="Write the file", kind="allow_once"),
    RequestOption(id="allow_session", name="Write any file in this session", kind="allow_session"),
    RequestOption(id="deny", name="Do not write it", kind="deny"),
)


def write_request(key: str, params: Mapping[str, Any]) -> RequestOpened | None:
    """Return the request to write a file; None if it has no path or no content."""
    path, content = params.get("path"), params.get("content")
    if not isinstance(path, str) or not path or not isinstance(content, str):
        return None
    return RequestOpened(
        id=key,
        kind="permission",
        tool=WRITE_METHOD,
        tool_kind="edit",
        title=f"write {path}",
        input={"path": path, "content": content},
        options=list(WRITE_OPTIONS),
    )


def changes_shown(call: object, shown: Mapping[str, Any]) -> dict[str, str]:
    """Return the new texts of a call's changes, by path, as far as ``shown`` has them."""
    found = [each for each in diffs_in(call) if is_shown(each, shown)]
    return dict(map(_change, found[:MAX_APPROVED]))


def diffs_in(call: object) -> list[dict[str, Any]]:
    """Return the changes of files in the content of a tool call."""
    parts = [mapping(each) for each in items(mapping(call).get("content"))]
    return [each for each in parts if each.get("type") == "diff"]


def is_shown(diff: dict[str, Any], given: Mapping[str, Any], text: str = "content") -> bool:
    """Whether an input has a change, or its path, and its new text under the key ``text``."""
    whole = given.get(text)
    repeated = [(given.get(each), _comparable(string(whole))) for each in ("path", "file_path")]
    is_repeated = isinstance(whole, str) and _change(diff) in repeated
    return is_repeated or diff in items(given.get("content"))


def _change(diff: Mapping[str, Any]) -> tuple[str, str]:
    return string(diff.get("path")), _comparable(string(diff.get("newText")))


def _comparable(text: str) -> str:
    """Return a text without its last end of line, which kimi does not show."""
    return text.removesuffix("\n")


class Writes:
    """The writes that need no further approval.

    An agent asks for the permission of a change, and then for the write of it: a person who
    approved exactly this text is not asked twice.
    """

    def __init__(self) -> None:
        self._approved: dict[str, str] = {}
        self._is_open = False

    def approve(self, changes: Mapping[str, str]) -> None:
        """Note changes that were approved in the current turn."""
        self._approved |= changes
        while len(self._approved) > MAX_APPROVED:
            del self._approved[next(iter(self._approved))]

    def approve_all(self) -> None:
        """Note that all writes of the session were approved."""
        self._is_open = True

    def take(self, params: Mapping[str, Any]) -> bool:
        """Whether this write is approved; the approval of one change is used up."""
        if self._is_open:
            return True
        path, text = string(params.get("path")), _comparable(string(params.get("content")))
        if path not in self._approved or self._approved[path] != text:
            return False
        del self._approved[path]
        return True

    def end_turn(self) -> None:
        """Drop the approvals of changes that were not written."""
        self._approved.clear()

    def close(self) -> None:
        """Ask for each write again."""
        self._approved.clear()
        self._is_open = False
