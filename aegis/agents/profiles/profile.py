"""Profiles of sessions: configured values with the defaults of their provider. Pure.

The name of a provider is a profile too: of that provider, with all defaults.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping

import attrs

from aegis.agents.drivers.harness import Permission
from aegis.agents.drivers.providers import BUILT_IN, BY_NAME, Provider
from aegis.configuration.agents import AgentSection
from aegis.configuration.profile_rules import FROM_DAEMON, SECRET_NAME
from aegis.names import nearest, shorten
from aegis.processes.environment import KEY_VARIABLES
from aegis.protocol.tool_sets import DEFAULT


@attrs.frozen(kw_only=True)
class Profile:
    """Everything that a session is started with, resolved.

    ``command`` is the program with its first arguments. ``asking_modes`` are the modes in which it
    asks before it acts, by preference. ``environment`` are the variables to set; a value ``$NAME``
    is the value of the daemon's variable (``process_variables``). ``may_spawn`` and
    ``accepts_from`` are checked by ``rights``. ``project_settings``: the agent uses the settings
    that its working directory brings. ``worktree``: a session gets a git worktree of its own.
    """

    name: str
    provider: Provider
    command: tuple[str, ...]
    asking_modes: tuple[str, ...]
    environment: Mapping[str, str]
    permission: Permission = "ask"
    model: str | None = None
    effort: str | None = None
    thinking: str | None = None
    prompt: str = ""
    budget_usd: float | None = None
    max_runtime_s: float | None = None
    answer_within_s: float | None = None
    may_spawn: tuple[str, ...] = ()
    accepts_from: tuple[str, ...] = ()
    tools: tuple[str, ...] = DEFAULT
    call_limit_s: float | None = None
    answers_requests: bool = False
    project_settings: bool = False
    worktree: bool = False


def profile_of(name: str, section: AgentSection) -> Profile:
    """Return the profile of a section of the configuration."""
    provider = BY_NAME[section.provider]
    own_mode = () if section.asking_mode is None else (section.asking_mode,)
    project = provider.with_project if section.project_settings else provider.without_project
    limit = provider.call_limit_s if section.call_limit_s is None else section.call_limit_s
    return Profile(
        name=name,
        provider=provider,
        command=section.command or provider.start,
        asking_modes=own_mode or provider.asking_modes,
        environment={**provider.preset, **section.env, **provider.environment, **project},
        prompt=section.prompt or "",
        call_limit_s=limit,
        **{name: getattr(section, name) for name in _AS_CONFIGURED},
    )


_AS_CONFIGURED = (
    *("permission", "model", "effort", "thinking", "budget_usd", "max_runtime_s"),
    *("answer_within_s", "may_spawn", "accepts_from", "tools", "answers_requests"),
    *("project_settings", "worktree"),
)
"""The fields of a profile that are those of its section."""


def without_project(profile: Profile) -> Profile:
    """Return the profile of an agent that does not use the settings of its directory."""
    provider = profile.provider
    others = {
        name: value
        for name, value in profile.environment.items()
        if name not in provider.with_project
    }
    return attrs.evolve(
        profile, project_settings=False, environment={**others, **provider.without_project}
    )


def every_profile(agents: Mapping[str, AgentSection]) -> dict[str, Profile]:
    """Return the configured profiles by name, then those of providers whose name is free."""
    plain = {name: AgentSection(provider=name) for name in BUILT_IN if name not in agents}
    return {name: profile_of(name, section) for name, section in {**agents, **plain}.items()}


def find_profile(
    wanted: str | None, agents: Mapping[str, AgentSection], default: str | None
) -> Profile | str:
    """Return the profile ``wanted``, or the default one for None; or a refusal in one sentence."""
    known = every_profile(agents)
    name = default if wanted is None else wanted
    if name is None:
        return (
            "no profile was given, and .aegis.yaml has no default_agent: give one of "
            f"{_some(list(known))}"
        )
    if name in known:
        return known[name]
    close = nearest(name, known, most=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the profiles are {_some(list(known))}"
    return f"there is no profile {shorten(name)!r}; {hint}"


NO_SECRETS = frozenset(
    {"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"}
)
"""Variables that are no secret, also if a profile takes them from the daemon."""


def refuse_start(profile: Profile, variables: Mapping[str, str]) -> str | None:
    """Return why no session can be started from the profile, in one sentence; None if one can.

    ``variables`` is the environment of the daemon.
    """
    prefix, provider = f"profile {profile.name!r}", profile.provider.name
    if profile.budget_usd is not None and not profile.provider.reports_cost:
        able = [each.name for each in BY_NAME.values() if each.reports_cost]
        return (
            f"{prefix} has a budget, but {provider} reports no cost: remove budget_usd, or use one "
            f"of {', '.join(able)}"
        )
    if profile.permission == "plan" and not profile.provider.plan_mode:
        able = [each.name for each in BY_NAME.values() if each.plan_mode]
        return (
            f"{prefix} cannot be started with the permission 'plan': {provider} has no plan that "
            f"can be approved ({profile.provider.no_plan}); choose another permission, or one of "
            f"{', '.join(able)}"
        )
    if not profile.asking_modes and profile.permission != "full":
        return (
            f"{prefix} has the permission {profile.permission!r}, but no mode of "
            f"{profile.command[0]!r} is known in which it asks: set asking_mode, or permission: "
            "full"
        )
    missing = sorted(
        name for name in references(profile.environment).values() if name not in variables
    )
    if missing:
        names = ", ".join(missing)
        return (
            f"{prefix} needs {names} from the environment of the daemon, where it is not set: set "
            "it and restart the daemon"
        )
    return None


def login_command(profile: Profile) -> str:
    """Return the command that logs in to the agent of a profile, for a shell; empty: none.

    It sets the variables of the profile, which may choose the account. The shell expands the
    daemon's variables: their values are not part of the command, nor of any argument.
    """
    words = profile.provider.login_command
    if not words:
        return ""
    if profile.provider.family == "claude":
        words = (*profile.command, *words[1:])
    settings = [f"{name}={_for_shell(value)}" for name, value in _login_variables(profile).items()]
    return " ".join([*settings, shlex.join(words)])


def _login_variables(profile: Profile) -> dict[str, str]:
    """Return the variables that the profile sets itself, but keys: a login replaces them."""
    provider = profile.provider
    others = {
        *(*provider.environment, *provider.with_project, *provider.without_project),
        *(provider.password_variables + provider.key_variables),
    }
    return {
        name: value
        for name, value in profile.environment.items()
        if name not in others and provider.preset.get(name) != value
    }


def _for_shell(value: str) -> str:
    return f'"{value}"' if FROM_DAEMON.fullmatch(value) else shlex.quote(value)


def variables_of(profile: Profile, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to set in a process, with the values of the daemon's ``variables``.

    Variables that the daemon does not have are left out: ``refuse_start`` names them.
    """
    wanted = references(profile.environment)
    found = {name: value for name, value in profile.environment.items() if name not in wanted}
    found |= {name: variables[source] for name, source in wanted.items() if source in variables}
    return {name: found[name] for name in profile.environment if name in found}


def process_variables(
    profile: Profile, variables: Mapping[str, str], new_password: Callable[[], str]
) -> dict[str, str]:
    """Return the variables to set in a new process: ``variables_of``, and passwords of its own."""
    passwords = {name: new_password() for name in profile.provider.password_variables}
    return {**variables_of(profile, variables), **passwords}


def secret_names(profile: Profile) -> frozenset[str]:
    """Return the variables of an agent that its commands must not have: keys and passwords.

    A variable that the profile takes from the daemon by ``$NAME`` is a secret under both names,
    unless every program needs it.
    """
    taken = references(profile.environment)
    provider = profile.provider
    names = (*taken, *taken.values(), *provider.password_variables, *provider.key_variables)
    return frozenset(names) - NO_SECRETS


def own_keys(profile: Profile) -> frozenset[str]:
    """Return the variables of the daemon's environment that hold keys of the profile's agent."""
    taken = references(profile.environment)
    return frozenset((*taken, *taken.values(), *profile.provider.key_variables))


def every_key(profiles: Iterable[Profile]) -> frozenset[str]:
    """Return the variables that hold the keys of any agent: known ones, and those of profiles."""
    named = frozenset(
        name
        for profile in profiles
        for pair in references(profile.environment).items()
        for name in pair
        if SECRET_NAME.search(name)
    )
    return KEY_VARIABLES | named


def references(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables whose value is ``$NAME``, each with that name."""
    matches = {name: FROM_DAEMON.fullmatch(value) for name, value in environment.items()}
    return {name: match[1] for name, match in matches.items() if match is not None}


def _some(names: list[str], most: int = 20) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
