"""The options of the ACP machine for a profile. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from aegis.agents.drivers.acp.options import AcpOptions
from aegis.agents.profiles.profile import Profile, variables_of


def acp_options_of(profile: Profile, variables: Mapping[str, str]) -> AcpOptions:
    """Return the facts that an ACP agent does not report.

    ``variables`` is the environment of the daemon.
    """
    provider = profile.provider
    known = {**variables, **variables_of(profile, variables)}
    methods = [method for name, method in provider.authenticate.items() if known.get(name)]
    return AcpOptions(
        asking_modes=profile.asking_modes,
        auth=methods[0] if methods else "",
        session_options=provider.session_options,
        reports_cost=provider.reports_cost,
        waits_for_mcp=provider.waits_for_mcp,
    )
