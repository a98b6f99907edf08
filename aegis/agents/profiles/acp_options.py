"""The options of the ACP machine for a profile. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aegis.agents.drivers.acp.options import AcpOptions
from aegis.agents.profiles.profile import Profile, variables_of


def acp_options_of(
    profile: Profile,
    variables: Mapping[str, str],
    config_file: str,
    directories: Sequence[str] = (),
) -> AcpOptions:
    """Return the facts that an ACP agent does not report.

    ``variables`` is the environment of the daemon. ``config_file`` is the path of a file with our
    MCP server, for an agent that takes it so; such an agent reads the instructions of
    ``directories``.
    """
    provider = profile.provider
    known = {**variables, **variables_of(profile, variables)}
    methods = [method for name, method in provider.authenticate.items() if known.get(name)]
    takes_file = provider.takes_claude_options
    return AcpOptions(
        asking_modes=profile.asking_modes,
        auth=methods[0] if methods else "",
        uses_only_login=not provider.login_command,
        session_options=provider.session_options,
        reports_cost=provider.reports_cost,
        waits_for_mcp=provider.waits_for_mcp,
        reads_files=provider.reads_files,
        meta=_claude_options(profile, config_file, directories) if takes_file else {},
        server_in_file=takes_file,
        cwd_end="" if profile.project_settings or not provider.trusts_its_directory else UNTRUSTED,
        own_title=provider.own_title,
        plan_mode=provider.plan_mode,
        plan_option=provider.plan_option,
        edits_by_mode=provider.edits_by_mode,
        mode_mark=provider.mode_mark,
        mentions=provider.mentions,
    )


UNTRUSTED = "/."
"""The end of a working directory that codex-acp must not trust.

codex-acp marks the directory of each session as trusted, by the name that it was given; codex looks
for the resolved name, so it finds only a directory that its user trusts.
"""


def _claude_options(
    profile: Profile, config_file: str, directories: Sequence[str]
) -> dict[str, Any]:
    """Return the ``_meta`` of claude-agent-acp: options for the Claude Code below it.

    An MCP server in the call itself would be an argument of that process, secret and all.
    """
    options: dict[str, Any] = {
        "extraArgs": {"mcp-config": config_file},
        "promptSuggestions": False,
        "allowDangerouslySkipPermissions": False,
    }
    if not profile.project_settings:
        options["settingSources"] = ["user"]
    if directories:
        options["additionalDirectories"] = list(directories)
    return {"claudeCode": {"options": options}}
