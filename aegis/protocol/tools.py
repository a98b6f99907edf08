"""The two tools of an MCP address that reach all others: to describe them, and to call one.

Other wires name every command directly, so they have neither.
"""

from __future__ import annotations

from typing import Any

import attrs

from aegis.protocol.command import Command, at_most_chars, described

MAX_WORD_CHARS = 200


@attrs.frozen(kw_only=True)
class ToolInfo:
    """A tool. ``schema`` is that of its arguments; null in a list without details."""

    name: str
    description: str
    schema: dict[str, Any] | None


@attrs.frozen(kw_only=True)
class ToolList:
    """Tools to call with aegis_call."""

    tools: list[ToolInfo]


@attrs.frozen(kw_only=True)
class CallResult:
    """The reply of the called tool."""


@attrs.frozen(kw_only=True)
class ListTools(Command[ToolList]):
    """List the tools that exist beside these; with a word, describe those about it.

    Call them with aegis_call.
    """

    word: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_WORD_CHARS),
        metadata=described("A tool's name, or words in its description, such as 'group'."),
    )


@attrs.frozen(kw_only=True)
class CallTool(Command[CallResult]):
    """Call a tool of aegis_tools. Its reply and errors are those of the tool."""

    tool: str = attrs.field(metadata=described("The tool's name."))
    arguments: dict[str, Any] = attrs.field(
        factory=dict, metadata=described("Its arguments, by its schema.")
    )
