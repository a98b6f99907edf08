"""The trust in the settings of a project that an agent uses."""

from __future__ import annotations

import attrs

from aegis.path_text import MAX_PATH_CHARS
from aegis.protocol.command import Command, at_most_chars, described, matching
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE


@attrs.frozen(kw_only=True)
class ProjectTrust:
    """The settings in a directory that the agent of a profile would use, and their trust.

    ``wanted``: the profile uses them. ``files`` are relative to the ``directory``, ``shown`` are
    lines of what they say, ``digest`` is that of their content, empty if there is none.
    ``problem`` says why they cannot be trusted.
    """

    profile: str
    directory: str
    wanted: bool
    files: list[str]
    shown: list[str]
    digest: str
    is_trusted: bool
    problem: str


@attrs.frozen(kw_only=True)
class TrustProject(Command[ProjectTrust]):
    """Show the settings of a project that an agent of a profile would use; trust them by a digest.

    They can run programs, allow tools and move keys. Only a person trusts them.
    """

    profile: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            "A profile of aegis_list_agents; default: the default one.", pattern=f"^{NAME_PATTERN}$"
        ),
    )
    workspace: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            "The workspace whose directory is meant; default: the root.",
            pattern=f"^{NAME_PATTERN}$",
        ),
    )
    directory: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_PATH_CHARS),
        metadata=described("A directory below the root, in place of a workspace."),
    )
    digest: str | None = attrs.field(
        default=None,
        validator=at_most_chars(64),
        metadata=described("The digest of the settings that were shown: trust them."),
    )
