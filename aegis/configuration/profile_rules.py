"""Rules of profiles, queues and groups that concern more than one key. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from aegis.agents.drivers.providers import BUILT_IN, BY_NAME, bypass_in
from aegis.configuration.agents import AgentSection
from aegis.configuration.queues import QueueSection
from aegis.names import nearest
from aegis.protocol.tool_sets import BY_DRIVER, refuse_choice

SECRET_NAME = re.compile(
    r"(^|_)(API)?(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)S?(_|$)", re.IGNORECASE
)
"""Names of variables whose value is taken for a secret."""

MAX_NAMES = 20

FROM_DAEMON = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
"""A value that is the value of a variable of the daemon's environment."""


def profile_problems(
    agents: Mapping[str, AgentSection], default_agent: str | None
) -> Iterator[tuple[str, str]]:
    """Yield the errors of profiles: the full name of a key in the file, and a sentence."""
    known = dict.fromkeys((*agents, *BUILT_IN))
    if default_agent is not None and default_agent not in known:
        yield (
            "default_agent",
            f"default_agent is {default_agent!r}, which is no profile{_hint(default_agent, known)}",
        )
    for name, section in agents.items():
        yield from _names(f"agents.{name}", section, known)
        yield from _variables(f"agents.{name}", section)
        yield from _command(f"agents.{name}", section)
        yield from _tools(f"agents.{name}.tools", section)


def queue_problems(
    queues: Mapping[str, QueueSection],
    agents: Mapping[str, AgentSection],
    default_agent: str | None,
) -> Iterator[tuple[str, str]]:
    """Yield the errors of queues, as ``profile_problems`` does for profiles."""
    known = dict.fromkeys((*agents, *BUILT_IN))
    for name, section in queues.items():
        where = f"queues.{name}.agent"
        if section.agent is None and default_agent is None:
            yield where, f"{where} is missing, and there is no default_agent: name a profile"
        elif section.agent is not None and section.agent not in known:
            hint = _hint(section.agent, known)
            yield where, f"{where} is {section.agent!r}, which is no profile{hint}"


def preset_problems(
    presets: Mapping[str, Sequence[str]], agents: Mapping[str, AgentSection]
) -> Iterator[tuple[str, str]]:
    """Yield the errors of presets of groups, as ``profile_problems`` does for profiles."""
    known = dict.fromkeys((*agents, *BUILT_IN))
    for name, profiles in presets.items():
        where = f"groups.presets.{name}"
        if not profiles:
            yield where, f"{where} is empty: name the profile of each member"
        for each in dict.fromkeys(profiles):
            if each not in known:
                yield where, f"{where} has {each!r}, which is no profile{_hint(each, known)}"


def _command(prefix: str, section: AgentSection) -> Iterator[tuple[str, str]]:
    bypass = bypass_in(section.command)
    if bypass is not None:
        where = f"{prefix}.command"
        yield (
            where,
            f"{where} has {bypass!r}, with which the agent asks nobody: leave it out, and set "
            f"{prefix}.permission",
        )
    if section.provider == "acp" and not section.command:
        # The place is in the file: acp is not the default.
        where = f"{prefix}.provider"
        yield where, f"{where} is 'acp', so {prefix}.command must name the program"
    if section.provider != "acp" and section.asking_mode is not None:
        # Else it could name a mode in which the agent asks nobody.
        where = f"{prefix}.asking_mode"
        yield where, f"{where} is for the provider 'acp' only: leave it out"


def _tools(where: str, section: AgentSection) -> Iterator[tuple[str, str]]:
    refusal = refuse_choice(section.tools)
    if refusal is not None:
        yield where, f"{where}: {refusal}"
    for each in section.tools:
        if each.removeprefix("aegis_") in BY_DRIVER:
            yield where, f"{where} has {each!r}: messages arrive as turns, so leave it out"


def _names(prefix: str, section: AgentSection, known: Collection[str]) -> Iterator[tuple[str, str]]:
    accepted = [each for each in section.accepts_from if not each.startswith("agent:")]
    for key, names in (("may_spawn", section.may_spawn), ("accepts_from", accepted)):
        for each in names:
            if each not in known:
                full = f"{prefix}.{key}"
                yield full, f"{full} has {each!r}, which is no profile{_hint(each, known)}"


def _variables(prefix: str, section: AgentSection) -> Iterator[tuple[str, str]]:
    provider = BY_NAME[section.provider]
    project = {*provider.without_project, *provider.with_project}
    fixed = {*provider.environment, *project, *provider.password_variables}
    for name, value in section.env.items():
        full = f"{prefix}.env.{name}"
        if name in fixed:
            yield full, f"{full} cannot be set: {section.provider} gets a value of ours"
        elif name in provider.refused_variables or name == "PWD" or name.startswith("AEGIS_"):
            yield full, f"{full} cannot be set: leave it out"
        elif SECRET_NAME.search(name) and value and not FROM_DAEMON.fullmatch(value):
            yield (
                full,
                f"{full} looks like a secret, which does not belong in this file: set it in the "
                "daemon's environment, and write its name here, such as $"
                f"{name}",
            )


def _hint(name: str, known: Collection[str]) -> str:
    close = nearest(name, known, most=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; the profiles are {', '.join([*known][:MAX_NAMES])}"
