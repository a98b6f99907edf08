"""The conversations that an agent's program had outside of any session."""

from __future__ import annotations

import attrs

from aegis.protocol.agents import AgentInfo
from aegis.protocol.command import Command, at_most_chars, described, matching
from aegis.protocol.inboxes import MAX_BODY_CHARS
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE

MAX_ID_CHARS = 200

PROFILE = described(
    "A profile of aegis_list_agents; default: the default one.", pattern=f"^{NAME_PATTERN}$"
)
WORKSPACE = described(
    "The workspace whose directory it is in; default: the root.", pattern=f"^{NAME_PATTERN}$"
)


@attrs.frozen(kw_only=True)
class PastConversation:
    """A conversation in the files of an agent's program, last changed ``at`` (UTC).

    ``begins`` are its first words, ``branch`` is that of git. ``holder`` is the process or session
    that has it open; empty: none.
    """

    id: str
    at: str
    begins: str
    branch: str
    holder: str


@attrs.frozen(kw_only=True)
class ConversationList:
    """The conversations in a directory, the newest first; ``more``: older ones are left out.

    ``notice`` says so if the agent does not show which of them are open in another process.
    """

    result: list[PastConversation]
    more: bool = False
    notice: str = ""


@attrs.frozen(kw_only=True)
class ListConversations(Command[ConversationList]):
    """List the conversations that an agent's own files hold for a directory.

    Only a person may call it, and not over MCP.
    """

    profile: str | None = attrs.field(
        default=None, validator=matching(NAME_PATTERN, NAME_RULE), metadata=PROFILE
    )
    workspace: str | None = attrs.field(
        default=None, validator=matching(NAME_PATTERN, NAME_RULE), metadata=WORKSPACE
    )


@attrs.frozen(kw_only=True)
class ContinueConversation(Command[AgentInfo]):
    """Start an agent session with a conversation of the agent's own program.

    Refused while another process has it open. Only a person may call it, and not over MCP.
    """

    conversation: str = attrs.field(
        validator=at_most_chars(MAX_ID_CHARS),
        metadata=described("The id of the conversation, of agent_conversations."),
    )
    fork: bool = attrs.field(
        default=False, metadata=described("True: continue a copy, and leave it as it is.")
    )
    profile: str | None = attrs.field(
        default=None, validator=matching(NAME_PATTERN, NAME_RULE), metadata=PROFILE
    )
    workspace: str | None = attrs.field(
        default=None, validator=matching(NAME_PATTERN, NAME_RULE), metadata=WORKSPACE
    )
    handle: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            "A new handle for it; default: a generated one.", pattern=f"^{NAME_PATTERN}$"
        ),
    )
    prompt: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_BODY_CHARS),
        metadata=described("Its first message. Without one it waits for a handoff."),
    )
