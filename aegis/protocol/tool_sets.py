"""Sets of tools: the part of the command set that one MCP address offers. Pure.

A model reads the descriptions of all tools of its address in every conversation, so an address
offers a set. With ``aegis_call`` in its set, it accepts every other tool too. Sets limit only MCP;
rights are checked for every call.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import lru_cache

import attrs

from aegis.errors import InvalidRequest
from aegis.protocol.derived.wire import command_from, model_arguments
from aegis.protocol.entry import Entry
from aegis.protocol.table import MCP_TOOLS, TOOLS
from aegis.protocol.tools import CallTool

LIST_TOOLS, CALL_TOOL = MCP_TOOLS

CORE = (
    *("term_spawn", "term_list", "term_run", "term_keys", "term_read", "term_screen"),
    *("term_output", "term_wait", "term_subscribe", "term_close"),
    *("handoff", "enqueue", "task_status", "inbox_wait", "meta", "list_sessions"),
)
"""The commands of the set ``core``."""

WORK = (
    *CORE,
    *("spawn", "close", "session_read", "canvas_read", "canvas_write_section"),
    "ask_human",
    *(LIST_TOOLS.name, CALL_TOOL.name),
)
"""The commands of the set ``work``: at most 24 tools in 18 kB, from which all others are called."""

BY_DRIVER = frozenset({"inbox_read", "inbox_wait"})
"""The commands that a driven session is not offered: its driver delivers the messages."""

OPEN_TO_HANDLES = tuple(entry for entry in TOOLS if not entry.operator)

SETS: dict[str, frozenset[str]] = {
    "core": frozenset(CORE),
    "work": frozenset(WORK),
    "all": frozenset(entry.name for entry in TOOLS),
}
"""The commands of each set, by its name."""

DEFAULT = ("work",)

CHOICES: dict[str, frozenset[str]] = {
    **{name: frozenset({each.name}) for each in OPEN_TO_HANDLES for name in (each.name, each.tool)},
    **SETS,
}
"""The commands of each name that can be chosen: of sets, of commands and of their tools."""


_TOOLS_BY_NAME = {entry.name: entry.tool for entry in TOOLS}


def called(arguments: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    """Return the name and the arguments of the tool that a call of ``aegis_call`` is for.

    Raises ``InvalidRequest`` if ``arguments`` are not those of ``aegis_call``.
    """
    command = command_from(CALL_TOOL, model_arguments(CallTool, arguments))
    assert isinstance(command, CallTool)
    # Without the prefix that all have, a name says the same.
    name = _TOOLS_BY_NAME.get(command.tool, command.tool)
    if name == CALL_TOOL.tool:
        raise InvalidRequest(f"{name}: it cannot call itself: name another tool")
    outer = {} if command.from_handle is None else {"from_handle": command.from_handle}
    return name, {**outer, **command.arguments}


@attrs.frozen
class Offer:
    """The tools of one MCP address.

    ``commands`` are listed; others are accepted only if ``aegis_call`` is among them. ``chosen``
    are names of sets and of tools, with or without their prefix. ``is_driven``: the address belongs
    to an agent of the daemon. Its calls are cut after ``call_limit_s`` seconds.
    """

    chosen: tuple[str, ...] = DEFAULT
    is_driven: bool = False
    call_limit_s: float | None = None

    @property
    def commands(self) -> frozenset[str]:
        """The names of the offered commands, operator's ones included."""
        return _commands(self.chosen, is_driven=self.is_driven)

    @property
    def is_whole(self) -> bool:
        """Whether it lists the whole set ``all``, with the schemas of replies."""
        return "all" in self.chosen

    @property
    def reaches_all(self) -> bool:
        """Whether tools that are not listed can be called."""
        return CALL_TOOL.name in self.commands

    @property
    def missing(self) -> frozenset[str]:
        """The names of the commands that are not listed, but that another choice would list."""
        taken = BY_DRIVER if self.is_driven else frozenset[str]()
        return SETS["all"] - self.commands - taken

    def refuse(self, entry: Entry) -> str | None:
        """Return why the command is not accepted at this address, in one sentence, or None."""
        if self.is_driven and entry.name in BY_DRIVER:
            return f"{entry.tool}: not offered here: messages arrive as turns of your conversation"
        if entry.name in self.commands or self.reaches_all:
            return None
        sets = " or ".join(repr(name) for name, names in SETS.items() if entry.name in names)
        return (
            f"{entry.tool}: not offered at this address, whose tools are {', '.join(self.chosen)}: "
            f"the set {sets} has it; a person chooses it {chosen_with(is_driven=self.is_driven)}"
        )


@lru_cache(maxsize=256)
def _commands(chosen: tuple[str, ...], *, is_driven: bool) -> frozenset[str]:
    found = frozenset[str]().union(*(CHOICES.get(each, frozenset()) for each in chosen))
    return found - BY_DRIVER if is_driven else found


def chosen_with(*, is_driven: bool) -> str:
    """Return where a person chooses the tools of an address."""
    if is_driven:
        return "with `tools` in the agent's profile in .aegis.yaml"
    return "with `aegis-actors session new --handle HANDLE --tools SETS`"


def refuse_choice(chosen: Iterable[str]) -> str | None:
    """Return why a choice of sets and tools is refused, in one sentence; None if it is valid."""
    for each in chosen:
        if each not in CHOICES:
            close = difflib.get_close_matches(each, CHOICES, n=1)
            hint = (
                f"did you mean {close[0]!r}?"
                if close
                else "choose core, work, all, or names of tools"
            )
            return f"{each!r} is no tool and no set of tools; {hint}"
    return None
