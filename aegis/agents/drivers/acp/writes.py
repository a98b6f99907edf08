"""``fs/write_text_file``: the permission that an agent needs, and the ones that it has. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aegis.agents.drivers.acp.frames import items, mapping, string
from aegis.protocol.agent_events import RequestOpened, RequestOption

METHOD = "fs/write_text_file"

MAX_APPROVED = 64
"""Approved changes that are not written yet; the oldest is asked for again."""

OPTIONS = (
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
        tool=METHOD,
        tool_kind="edit",
        title=f"write {path}",
        input={"path": path, "content": content},
        options=list(OPTIONS),
    )


def changes_in(call: Mapping[str, Any]) -> dict[str, str]:
    """Return the new texts that a tool call shows, by the paths of their files."""
    parts = [mapping(each) for each in items(call.get("content"), MAX_APPROVED)]
    shown = [each for each in parts if each.get("type") == "diff"]
    return {string(each.get("path")): _comparable(string(each.get("newText"))) for each in shown}


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
