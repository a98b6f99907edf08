"""The command line, environment and MCP configuration of a process of Claude Code. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from aegis.agents.drivers.harness import Beginning, Frame, Permission

SERVER = "aegis"
"""The name of our MCP server in the agent: its tools are called ``mcp__aegis__…``."""

AWAIT = "--await-initialize"
"""The argument by which the MCP servers of the first frame are used. Older versions lack it."""

MODES: Mapping[Permission, str] = {
    "read": "default",
    "plan": "plan",
    "ask": "default",
    "write": "default",
    "full": "default",
}
"""The process's mode for each permission.

It is the asking mode for all but plans: our own policy answers. "acceptEdits" runs shell commands
that change files unasked, and "auto" has a model decide.
"""

SETTINGS = '{"useAutoModeDuringPlan":false}'
"""Settings of every process. Without them a model decides in the mode "plan" what Bash may run."""

SET: Mapping[str, str] = {
    "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
    "CLAUDE_CODE_ENTRYPOINT": "aegis",
    "CLAUDE_CODE_ENABLE_TODO_TOOLS": "1",
    # Files can be set back only to turns of a process that had it from its start.
    "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "1",
    # Our tools are offered directly, not found by a search.
    "ENABLE_TOOL_SEARCH": "false",
}
"""Variables of every process."""

READ_MEMORY: Mapping[str, str] = {"CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1"}
"""With this variable, the memory and the rules of an added directory are read."""


def launch(
    beginning: Beginning,
    *,
    command: Sequence[str] = ("claude",),
    config_file: str | None = None,
    project_settings: bool = False,
    budget_usd: float | None = None,
) -> tuple[str, ...]:
    """Return the command of the process; no argument holds a secret.

    ``config_file`` is for a program without ``--await-initialize``: the path of a file of mode 0600
    with the text of ``config_text``, to be deleted once the machine returned ``AgentReady`` or
    ``AgentFailed``. ``project_settings``: the settings that the working directory brings are used;
    they can run programs (hooks, MCP servers) and allow tools, and without a terminal the program
    trusts every directory. ``budget_usd`` is the rest of the session's budget.
    """
    return (
        *command,
        *("--output-format", "stream-json", "--input-format", "stream-json", "--verbose"),
        *("--permission-mode", MODES[beginning.permission], "--permission-prompt-tool=stdio"),
        f"--settings={SETTINGS}",
        *_sources(beginning, project_settings=project_settings),
        *_configuration(beginning, config_file),
        # One word each: a value with a leading dash would be taken for a flag.
        *_conversation(beginning),
        *_option("--model", beginning.model),
        *_option("--effort", beginning.effort),
        *_option("--max-budget-usd", None if budget_usd is None else f"{budget_usd:.4f}"),
    )


def added_variables(beginning: Beginning) -> dict[str, str]:
    """Return the variables that are added to the environment of the process."""
    memory = READ_MEMORY if beginning.reads_project else {}
    return {**SET, **memory, "PWD": beginning.cwd}


def tui(
    beginning: Beginning,
    *,
    command: Sequence[str],
    config_file: str,
    settings_file: str,
    project_settings: bool,
) -> tuple[str, ...]:
    """Return the command of the program's own interface on a conversation, for a person.

    ``config_file`` is as for ``launch``, to be deleted once our server is connected;
    ``settings_file`` has further settings.
    """
    return (
        *command,
        # Resumed without it, the program is in its mode "auto", in which a model decides.
        *("--permission-mode", "manual"),
        *_sources(beginning, project_settings=project_settings),
        f"--mcp-config={config_file}",
        f"--settings={settings_file}",
        *_option("--append-system-prompt", beginning.primer or None),
        *_conversation(beginning),
        *_option("--model", beginning.model),
        *_option("--effort", beginning.effort),
    )


def _sources(beginning: Beginning, *, project_settings: bool) -> list[str]:
    return [
        *([] if project_settings else ["--setting-sources=user"]),
        *([f"--add-dir={beginning.cwd}"] if beginning.reads_project else []),
    ]


def mcp_servers(beginning: Beginning) -> Frame:
    """Return the MCP servers of a process, by name; ours replaces one of its user."""
    return {**beginning.servers, SERVER: {"type": "http", "url": beginning.mcp_url}}


def config_text(beginning: Beginning) -> str:
    """Return the content of the configuration file. It holds the secret."""
    return json.dumps({"mcpServers": mcp_servers(beginning)})


def _configuration(beginning: Beginning, config_file: str | None) -> list[str]:
    if config_file is None:
        return [AWAIT]
    primer = _option("--append-system-prompt", beginning.primer or None)
    return [f"--mcp-config={config_file}", *primer]


def _conversation(beginning: Beginning) -> list[str]:
    if not beginning.conversation:
        return []
    fork = ["--fork-session"] if beginning.fork else []
    return [f"--resume={beginning.conversation}", *fork]


def _option(flag: str, value: str | None) -> list[str]:
    return [] if value is None else [f"{flag}={value}"]
