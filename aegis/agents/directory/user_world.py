"""The MCP servers of an agent's user and the texts of its project, beside its profile."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from aegis.agents.directory.local_servers import Server, local_servers
from aegis.agents.directory.project_text import claude_text, text_of
from aegis.agents.profiles.profile import Profile


@attrs.frozen(kw_only=True)
class UserWorld:
    """The servers of an agent's user and the texts of its project (see ``Beginning``).

    ``texts`` are added to the primer; ``notices`` say what was left out.
    """

    texts: tuple[str, ...] = ()
    reads_project: bool = False
    servers: Mapping[str, Server] = attrs.field(factory=dict, repr=False)
    notices: tuple[str, ...] = ()


def user_world(profile: Profile, cwd: str, variables: Mapping[str, str]) -> UserWorld:
    """Return the servers and texts for a profile in ``cwd``; ``variables`` is its environment.

    Blocking. An agent that uses the settings of its directory reads all this itself.
    """
    provider = profile.provider
    if profile.project_settings:
        return UserWorld()
    is_claude = provider.family == "claude" or provider.takes_claude_options
    text = claude_text(cwd) if is_claude else text_of(cwd, list(provider.project_texts))
    return UserWorld(
        texts=text.parts,
        reads_project=text.is_read,
        servers=local_servers(cwd, variables) if is_claude else {},
        notices=text.notices,
    )
