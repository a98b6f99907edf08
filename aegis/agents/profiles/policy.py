"""The policy of a profile: the answer to a permission before any person is asked. Pure.

It decides on the exact kind of the tool. A tool of an unknown kind is left to a person, under every
permission. An approval is for one call, and the agent's own modes that ask nobody are never used.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import attrs

from aegis.agents.drivers.harness import OWN_PREFIX, Permission
from aegis.agents.profiles.rights import verdict
from aegis.names import shorten
from aegis.protocol.agent_events import OptionKind, PermissionAnswer, RequestOpened, ToolKind
from aegis.protocol.table import TOOLS

READS: frozenset[ToolKind] = frozenset({"read", "search", "think"})
WRITES: frozenset[ToolKind] = frozenset({"edit", "delete", "move"})
RUNS: frozenset[ToolKind] = frozenset({"execute", "fetch"})

APPROVED: dict[Permission, frozenset[ToolKind]] = {
    "read": READS,
    "plan": frozenset(),
    "ask": frozenset(),
    "write": READS | WRITES,
    "full": READS | WRITES | RUNS,
}
"""The kinds that a profile approves without a person."""

REFUSED: dict[Permission, frozenset[ToolKind]] = {
    "read": WRITES | frozenset({"execute"}),
    "plan": frozenset(),
    "ask": frozenset(),
    "write": frozenset(),
    "full": frozenset(),
}
"""The kinds that a profile refuses without a person."""

_OWN_TOOLS = frozenset(entry.tool for entry in TOOLS)


@attrs.frozen
class PolicyDecision:
    """The policy's decision on a request, and the reason, in one sentence for the transcript."""

    kind: Literal["allow", "deny", "ask"]
    why: str

    @property
    def answer(self) -> PermissionAnswer | None:
        """The answer for the agent; None: a person is asked."""
        match self.kind:
            case "allow":
                return PermissionAnswer(kind="allow_once")
            case "deny":
                return PermissionAnswer(kind="deny", message=self.why)
        return None


def decide(
    request: RequestOpened, permission: Permission, denied: Collection[str] = ()
) -> PolicyDecision:
    """Decide on a request; ``denied`` are the names of tools that were refused for the session."""
    tool = f"the tool {shorten(request.tool)!r}"
    if request.kind != "permission":
        return PolicyDecision("ask", f"a {request.kind} is answered by a person")
    if request.tool and request.tool in denied:
        return _checked(request, "deny", f"{tool} was refused for this session")
    if request.needs_person:
        return PolicyDecision("ask", f"{tool} needs the answer of a person")
    if is_own_tool(request):
        return _own_tool(request, permission)
    sentence = f"its kind is {request.tool_kind!r} and the permission of the profile {permission!r}"
    if request.tool_kind in REFUSED[permission]:
        return _checked(request, "deny", f"{tool} is refused: {sentence}")
    if request.tool_kind in APPROVED[permission]:
        return _checked(request, "allow", f"{tool} is approved: {sentence}")
    return PolicyDecision("ask", f"{tool} is left to a person: {sentence}")


def _own_tool(request: RequestOpened, permission: Permission) -> PolicyDecision:
    """Decide on a call of a tool of ours, by the class of its command."""
    name = request.tool.removeprefix(OWN_PREFIX)
    tool = f"the tool {shorten(name)!r} of this server"
    sentence = f"the permission of the profile is {permission!r}"
    match verdict(name.removeprefix("aegis_"), permission):
        case "allow":
            return _checked(request, "allow", f"{tool} is approved: {sentence}")
        case "ask":
            return PolicyDecision("ask", f"{tool} is left to a person: {sentence}")
        case "refuse":
            return _checked(request, "deny", f"{tool} is refused: {sentence}")


def is_own_tool(request: RequestOpened) -> bool:
    """Return whether the request is for a tool of ours, whose call is checked where it arrives.

    The kind does not matter: codex calls every tool of an MCP server "execute". Nor does the title,
    since that of a shell command may be any text; where an agent shows its tools by titles only,
    its driver has named the tool.
    """
    name = request.tool.removeprefix(OWN_PREFIX)
    return request.tool.startswith(OWN_PREFIX) and name in _OWN_TOOLS


def _checked(request: RequestOpened, kind: Literal["allow", "deny"], why: str) -> PolicyDecision:
    """Return the decision; a person is asked where the agent does not offer such an answer."""
    wanted: OptionKind = "allow_once" if kind == "allow" else "deny"
    if request.options and all(option.kind != wanted for option in request.options):
        return PolicyDecision(
            "ask", f"{why}, but the agent does not offer that answer for one call"
        )
    return PolicyDecision(kind, why)
