"""The MCP servers of an agent's user, and the texts and settings of its project."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from aegis.agents.directory.gemini_trust import gemini_trusts
from aegis.agents.directory.local_servers import Server, local_servers
from aegis.agents.directory.project_code import project_code
from aegis.agents.directory.project_commands import project_commands
from aegis.agents.directory.project_text import ProjectText, claude_text, text_of
from aegis.agents.drivers.commands import ProjectCommand
from aegis.agents.profiles.profile import Profile, variables_of, without_project
from aegis.path_text import text_of_path


@attrs.frozen(kw_only=True)
class UserWorld:
    """The servers of an agent's user and the texts of its project (see ``Beginning``).

    ``profile`` does not use the settings of the project unless they are trusted. ``texts`` are
    added to the primer; ``notices`` say what was left out. ``commands`` are texts of the project.
    """

    profile: Profile
    texts: tuple[str, ...] = ()
    reads_project: bool = False
    servers: Mapping[str, Server] = attrs.field(factory=dict, repr=False)
    notices: tuple[str, ...] = ()
    commands: tuple[ProjectCommand, ...] = ()


def user_world(
    profile: Profile, cwd: str, variables: Mapping[str, str], trusted: Collection[str]
) -> UserWorld:
    """Return the servers, texts and settings for a profile in ``cwd``.

    ``variables`` is the environment of the daemon, ``trusted`` are the digests of trusted
    directories. Blocking. An agent that uses the settings of its directory reads all this itself.
    """
    provider = profile.provider
    notices: tuple[str, ...] = ()
    if profile.project_settings:
        code = project_code(provider.name, cwd, variables.get("HOME"))
        if code.is_within(trusted):
            return UserWorld(profile=profile)
        why = code.problem or "they are not trusted as they are now"
        notices = (
            f"the agent was started without the settings of {text_of_path(cwd)}: {why}; look at "
            f"them with: aegis-actors agent trust {profile.name}",
        )
        profile = without_project(profile)
    variables = {**variables, **variables_of(profile, variables)}
    is_claude = provider.family == "claude" or provider.takes_claude_options
    text = claude_text(cwd) if is_claude else _text(profile, cwd, variables)
    return UserWorld(
        profile=profile,
        texts=text.parts,
        reads_project=text.is_read,
        servers=local_servers(cwd, variables) if is_claude else {},
        notices=(*notices, *text.notices),
        commands=project_commands(cwd) if is_claude else (),
    )


def _text(profile: Profile, cwd: str, variables: Mapping[str, str]) -> ProjectText:
    provider = profile.provider
    if provider.name != "gemini":
        return text_of(cwd, list(provider.project_texts))
    if gemini_trusts(cwd, variables):
        return ProjectText()  # it reads them itself
    text = text_of(cwd, list(provider.project_texts))
    notice = (
        f"gemini has not trusted {text_of_path(cwd)}, so it starts no MCP server there: the agent "
        "has none of the tools of aegis; trust the directory in gemini, or set project_settings in "
        f"the profile {profile.name!r} and trust its settings"
    )
    return attrs.evolve(text, notices=(notice, *text.notices))
