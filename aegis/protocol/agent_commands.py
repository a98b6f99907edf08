"""The commands that agents have their sessions run: their output. Pure."""

from __future__ import annotations

import attrs

from aegis.protocol.agents import HANDLE
from aegis.protocol.command import Command, between, described, matching
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE
from aegis.protocol.output import MAX_CURSOR

COMMAND_PATTERN = "term_[0-9]{1,9}_[0-9]{1,9}"
COMMAND_RULE = "an id of `of_agents` in aegis_term_list"


@attrs.frozen(kw_only=True)
class AgentOutput:
    """The output of the command ``id`` of an agent, from the byte ``begin`` up to ``cursor``.

    ``output`` has whole lines, and ``line`` is the last one so far, which a program may still
    change. Text before ``begin`` was not kept, or not requested. ``exit_code`` or ``signal`` is set
    once the command ``has_ended``. ``released``: the agent is done with it, and nothing follows.
    """

    handle: str
    id: str
    command: str
    output: str
    line: str
    begin: int
    cursor: int
    has_ended: bool
    exit_code: int | None
    signal: str | None
    released: bool


@attrs.frozen(kw_only=True)
class ReadAgentOutput(Command[AgentOutput]):
    """Read the output of a command that an agent has its session run, also after its release.

    Of released commands, the newest 32 of a session are kept, with at most 1 MiB of output each.
    Text is without escape sequences.
    """

    handle: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=HANDLE)
    command: str = attrs.field(
        validator=matching(COMMAND_PATTERN, COMMAND_RULE),
        metadata=described("The id of the command.", pattern=f"^{COMMAND_PATTERN}$"),
    )
    cursor: int = attrs.field(
        default=0,
        validator=between(0, MAX_CURSOR, "(an offset)"),
        metadata=described("The `cursor` of an earlier reply: only the text after it.", minimum=0),
    )
