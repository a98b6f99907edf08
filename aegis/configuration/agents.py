"""The profiles of agents, ``agents`` in the configuration. Pure."""

from __future__ import annotations

import attrs

from aegis.agents.drivers.harness import Permission
from aegis.agents.drivers.providers import NAMES
from aegis.configuration.setting import setting
from aegis.configuration.values import (
    DecimalNumber,
    Mapped,
    OneLine,
    OneOf,
    Several,
    SeveralLines,
    TrueOrFalse,
)
from aegis.protocol.command import MAX_TIMEOUT_S
from aegis.protocol.naming import NAME_PATTERN
from aegis.protocol.tool_sets import DEFAULT

MAX_WORDS = 64
MAX_VARIABLES = 64
MAX_PROMPT_CHARS = 32 * 1024
MAX_RUNTIME_S = 30 * 86_400.0
MIN_CALL_LIMIT_S = 2.0
MAX_USD = 1_000_000.0

VARIABLE = r"[A-Za-z_][A-Za-z0-9_]{0,127}"

_NAME = OneLine("a name", NAME_PATTERN, 64)
_TOOL = OneLine("the name of a tool or of a set of tools", r"[a-z][a-z0-9_]{0,63}", 64)
_SENDER = OneLine("a profile or 'agent:' and a handle", rf"(agent:)?{NAME_PATTERN}", 70)


@attrs.frozen(kw_only=True)
class AgentSection:
    """Profiles of agents, by name. A session is started from a profile.

    The name of a [provider](providers.md) is a profile too, with all defaults. Each profile is a
    mapping of these keys.
    """

    provider: str = setting(
        OneOf(NAMES),
        default="claude",
        doc="Agent program; `acp` is any other one that speaks ACP, by its `command`.",
    )
    model: str | None = setting(
        OneLine("the name of a model", r"\S.*", 200),
        default=None,
        otherwise="the agent's own choice",
        doc="Model, as the agent names it.",
    )
    effort: str | None = setting(
        OneLine("a word", r"[A-Za-z0-9_-]+", 32),
        default=None,
        otherwise="the agent's own choice",
        doc="Reasoning effort, as the agent names it.",
    )
    thinking: str | None = setting(
        OneLine("on, off or a number of tokens from 1 to 9999999", r"on|off|[1-9][0-9]{0,6}", 32),
        default=None,
        otherwise="the agent's own choice",
        doc="Whether a model thinks before it answers, and with how many tokens at most: of Claude "
        "Code, for a model that does not decide that itself.",
    )
    permission: Permission = setting(  # noqa: RUF009 (it is a field of attrs)
        OneOf(("read", "plan", "ask", "write", "full")),
        default="ask",
        doc="Uses of tools that are approved without a person: `read` approves reading and refuses "
        "changes, `ask` asks, `write` approves changes of files too, `full` approves programs too. "
        "`plan` asks, and begins with a plan that you approve.",
    )
    command: tuple[str, ...] = setting(
        Several(OneLine("a word of a command", r".+", 4096), MAX_WORDS),
        default=(),
        otherwise="the provider's own",
        doc="Program and first arguments in place of the provider's own.",
    )
    asking_mode: str | None = setting(
        OneLine("the id of a mode", r"\S.*", 100),
        default=None,
        otherwise="the provider's own",
        doc="Mode in which an ACP agent asks before it acts. Required for the provider `acp`, "
        "unless `permission` is `full`.",
    )
    env: dict[str, str] = setting(  # noqa: RUF009 (it is a field of attrs)
        Mapped(
            OneLine("the name of a variable", VARIABLE, 128),
            OneLine("a text", r".*", 4096),
            MAX_VARIABLES,
        ),
        default={},
        otherwise="none",
        doc="Environment variables to set, in addition to the daemon's. `$NAME` is the value of "
        "the daemon's variable `NAME`; keys and passwords may only be given so.",
    )
    prompt: str | None = setting(
        SeveralLines(MAX_PROMPT_CHARS),
        default=None,
        otherwise="none",
        doc="Instructions that are added to the agent's system prompt.",
    )
    budget_usd: float | None = setting(
        DecimalNumber(0.01, MAX_USD),
        default=None,
        otherwise="no limit",
        doc="Cost in US dollars at which a session stops. Refused for providers that report no "
        "cost.",
    )
    max_runtime_s: float | None = setting(
        DecimalNumber(1, MAX_RUNTIME_S),
        default=None,
        otherwise="no limit",
        doc="Seconds after which a turn is interrupted; the program is ended if it does not react.",
    )
    answer_within_s: float | None = setting(
        DecimalNumber(1, MAX_RUNTIME_S),
        default=None,
        otherwise="no limit",
        doc="Seconds after which a request that nobody has answered is refused and withdrawn.",
    )
    may_spawn: tuple[str, ...] = setting(
        Several(_NAME, MAX_WORDS),
        default=(),
        otherwise="none",
        doc="Profiles with a higher `permission` that sessions of this one may give work to.",
    )
    accepts_from: tuple[str, ...] = setting(
        Several(_SENDER, MAX_WORDS),
        default=(),
        otherwise="none",
        doc="Agents that sessions with the permission `full` take messages from: profiles, or "
        "`agent:HANDLE`, also of a session that was renamed since. Other profiles take messages "
        "from all agents.",
    )
    tools: tuple[str, ...] = setting(
        Several(_TOOL, 256),
        default=DEFAULT,
        doc="Tools of ours that its sessions are offered: `core`, `work`, `all`, or names.",
    )
    call_limit_s: float | None = setting(
        DecimalNumber(MIN_CALL_LIMIT_S, MAX_TIMEOUT_S),
        default=None,
        otherwise="the provider's own",
        doc="Seconds after which the agent gives up a call of a tool: long waits return before.",
    )
    answers_requests: bool = setting(
        TrueOrFalse(),
        default=False,
        doc="Whether its sessions may answer requests of other sessions. None answers its own.",
    )
    project_settings: bool = setting(
        TrueOrFalse(),
        default=False,
        doc="Whether the agent uses the settings, hooks, MCP servers and instructions that its "
        "directory brings (`.claude`, `.mcp.json`, `.codex`, `.gemini`, `opencode.json`), if you "
        "[trust them as they are](../how-to/trust-the-settings-of-a-project.md).",
    )
    worktree: bool = setting(
        TrueOrFalse(),
        default=False,
        doc="Whether each session works in a [git worktree of its own]"
        "(../how-to/give-an-agent-a-worktree.md), unless it is launched with `--no-worktree`.",
    )
