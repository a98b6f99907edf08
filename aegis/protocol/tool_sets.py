"""Sets of tools: the part of the command set that one MCP address offers. Pure.

A model reads the descriptions of all tools of its address in every conversation, so an address
offers a set that a person chose. Sets limit only MCP; rights are checked for every call.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import attrs

from aegis.protocol.entry import Entry
from aegis.protocol.table import COMMANDS

CORE = (
    *("term_spawn", "term_list", "term_run", "term_keys", "term_read", "term_screen"),
    *("term_output", "term_wait", "term_subscribe", "term_close"),
    *("handoff", "enqueue", "task_status", "inbox_wait", "meta", "list_sessions"),
)
"""The commands of the set ``core``."""

BY_DRIVER = frozenset({"inbox_read", "inbox_wait"})
"""The commands that a driven session is not offered: its driver delivers the messages."""

OPEN_TO_HANDLES = tuple(entry for entry in COMMANDS if not entry.operator)

SETS: dict[str, frozenset[str]] = {
    "core": frozenset(CORE),
    "all": frozenset(entry.name for entry in COMMANDS),
}
"""The commands of each set, by its name."""

ALL = ("all",)

CHOICES: dict[str, frozenset[str]] = {
    **{name: frozenset({each.name}) for each in OPEN_TO_HANDLES for name in (each.name, each.tool)},
    **SETS,
}
"""The commands of each name that can be chosen: of sets, of commands and of their tools."""


@attrs.frozen
class Offer:
    """The tools of one MCP address.

    ``chosen`` are names of sets and of tools, with or without their prefix. ``is_driven``: the
    address belongs to an agent of the daemon. Its calls are cut after ``call_limit_s`` seconds.
    """

    chosen: tuple[str, ...] = ALL
    is_driven: bool = False
    call_limit_s: float | None = None

    @property
    def commands(self) -> frozenset[str]:
        """The names of the offered commands, operator's ones included."""
        found = frozenset[str]().union(*(CHOICES.get(each, frozenset()) for each in self.chosen))
        return found - BY_DRIVER if self.is_driven else found

    @property
    def missing(self) -> frozenset[str]:
        """The names of the commands that another choice of a person would offer."""
        taken = BY_DRIVER if self.is_driven else frozenset[str]()
        return SETS["all"] - self.commands - taken

    def refuse(self, entry: Entry) -> str | None:
        """Return why the command is not accepted at this address, in one sentence, or None."""
        if entry.name in self.commands:
            return None
        if self.is_driven and entry.name in BY_DRIVER:
            return f"{entry.tool}: not offered here: messages arrive as turns of your conversation"
        sets = " or ".join(repr(name) for name, names in SETS.items() if entry.name in names)
        return (
            f"{entry.tool}: not offered at this address, whose tools are {', '.join(self.chosen)}: "
            f"the set {sets} has it; a person chooses it {chosen_with(is_driven=self.is_driven)}"
        )


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
            hint = f"did you mean {close[0]!r}?" if close else "choose core, all, or names of tools"
            return f"{each!r} is no tool and no set of tools; {hint}"
    return None
