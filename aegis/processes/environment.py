"""The environment of all that the daemon starts: its own, without facts about its place of start.

A daemon is started in a terminal, a multiplexer, a hook of git, an agent, an editor. Each of them
marks its children with variables, and these are wrong for every process that the daemon starts:
``git commit`` would write into the repository of the hook, an agent would refuse to be nested, a
start-up file would load the integration of another terminal. ``leave_place`` removes them from the
daemon's own environment before anything is started, so that nothing can inherit them. A variable
that no rule below names is a setting of the person, and stays.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import sys
from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePath

from aegis.processes.process_table import COOKIE_VARIABLE

TERM = "xterm-256color"
"""The type of the terminal. With ``dumb`` bash would refuse pastes."""

OUR_PYTHON = (sys.executable, "-E", "-P")
"""The command of a Python process of ours: neither the person's variables of Python nor the working
directory choose what it imports. Both stay in its environment, for shells and plugins."""

OURS = "AEGIS_"
"""The beginning of the names of our own variables, which agents and workflows do not get."""

KEY_VARIABLES = frozenset(
    {
        *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        *("OPENAI_API_KEY", "CODEX_API_KEY", "AZURE_OPENAI_API_KEY"),
        *("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
        *("KIMI_API_KEY", "MOONSHOT_API_KEY", "OPENCODE_API_KEY", "OPENROUTER_API_KEY"),
        *("CEREBRAS_API_KEY", "COHERE_API_KEY", "CURSOR_API_KEY", "DASHSCOPE_API_KEY"),
        *("DEEPSEEK_API_KEY", "FIREWORKS_API_KEY", "GROQ_API_KEY", "MINIMAX_API_KEY"),
        *("MISTRAL_API_KEY", "PERPLEXITY_API_KEY", "TOGETHER_API_KEY", "XAI_API_KEY"),
        *("ZAI_API_KEY", "ZHIPU_API_KEY"),
    }
)
"""The keys of providers of models. A person's terminals have them; an agent has its provider's."""

Withhold = Callable[[str | None], frozenset[str]]
"""Return the variables that nothing gets which the caller with this handle has started."""

TELEGRAM_TOKEN = "AEGIS_TELEGRAM_TOKEN"  # noqa: S105 -- the name of a variable

_SHELL = (
    *("_", "OLDPWD", "SHLVL", "COLUMNS", "LINES", "TERMCAP", "COLORFGBG"),
    # The path of the terminal that the daemon was started in: a passphrase would be asked there.
    *("GPG_TTY", "SSH_TTY"),
    COOKIE_VARIABLE,
)

_GIT = (
    # `git rev-parse --local-env-vars`, which git itself removes for another repository. Without
    # GIT_CONFIG_COUNT and its pairs: git reads these and sets them for nobody, a person does.
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS"),
    *("GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE"),
    *("GIT_GRAFT_FILE", "GIT_INDEX_FILE", "GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE"),
    *("GIT_PREFIX", "GIT_INTERNAL_SUPER_PREFIX", "GIT_SHALLOW_FILE", "GIT_COMMON_DIR"),
    # Others that git sets for its hooks, aliases and helpers, or passes on from its options.
    *("GIT_EXEC_PATH", "GIT_QUARANTINE_PATH", "GIT_REFLOG_ACTION", "GIT_CHERRY_PICK_HELP"),
    *("GIT_NAMESPACE", "GIT_PROTOCOL", "GIT_PAGER_IN_USE", "GIT_LITERAL_PATHSPECS"),
    *("GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"),
    # One moment: each later commit would be dated to it.
    *("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"),
    *("PRE_COMMIT", "PRE_COMMIT_FROM_REF", "PRE_COMMIT_TO_REF", "PRE_COMMIT_COMMIT_MSG_SOURCE"),
)

_AGENTS = (
    "CLAUDECODE",
    *("CLAUDE_CODE_CHILD_NOTES_DIR", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT"),
    *("CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN"),
    # The first two have the process repeat an interrupted turn without an order.
    *("CLAUDE_CODE_RESUME_INTERRUPTED_TURN", "CLAUDE_CODE_RESUME_REASON"),
    *("CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT"),
    *("CLAUDE_EFFORT", "CLAUDE_ENV_FILE", "CLAUDE_PID", "CLAUDE_PROJECT_DIR"),
    *("CODEX_CI", "CODEX_THREAD_ID", "CURSOR_AGENT", "CURSOR_TRACE_ID", "CLINE_ACTIVE"),
    *("AGENT", "AI_AGENT", "GEMINI_CLI", "GOOSE_TERMINAL", "OPENCODE", "OPENCODE_PID"),
)
"""The marks by which an agent recognises that it is nested in another, or that a tool is used by
one. Other variables with these beginnings are settings: ``CLAUDE_CODE_USE_BEDROCK``."""

_TERMINALS = (
    *("TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TERM_SESSION_ID", "TERM_FEATURES"),
    *("TERMINAL_EMULATOR", "LC_TERMINAL", "LC_TERMINAL_VERSION", "WINDOWID", "VTE_VERSION"),
    *("XTERM_LOCALE", "XTERM_SHELL", "XTERM_VERSION", "TILIX_ID", "GUAKE_TAB_UUID"),
    *("TERMINATOR_UUID", "TERMINATOR_DBUS_NAME", "TERMINATOR_DBUS_PATH", "SHELL_SESSION_ID"),
    *("PTYXIS_PROFILE", "PTYXIS_VERSION", "WT_SESSION", "WT_PROFILE_ID", "ZED_TERM"),
    *("QTERM_SESSION_ID", "Q_TERM", "__INTELLIJ_COMMAND_HISTFILE__"),
    # Multiplexers, recorders and file managers that run a shell below them.
    *("TMUX", "TMUX_PANE", "STY", "ABDUCO_SESSION", "DVTM", "DVTM_WINDOW_ID", "BYOBU_TTY"),
    *("SHPOOL_SESSION_NAME", "SHPOOL_SESSION_DIR", "ASCIINEMA_REC", "MC_SID", "MC_TMPDIR"),
    *("RANGER_LEVEL", "NNNLVL", "LF_LEVEL", "YAZI_ID", "YAZI_LEVEL"),
    # Editors.
    *("INSIDE_EMACS", "EMACS", "NVIM", "NVIM_LISTEN_ADDRESS", "NVIM_LOG_FILE", "MYVIMRC"),
    *("VIM_TERMINAL", "VIM_SERVERNAME", "ELECTRON_RUN_AS_NODE"),
)

_SERVICE = (
    *("NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID", "WATCHDOG_PID"),
    *("WATCHDOG_USEC", "INVOCATION_ID", "JOURNAL_STREAM", "MAINPID", "MANAGERPID"),
    *("SYSTEMD_EXEC_PID", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE"),
)
"""The marks of a service of systemd: a child could report for it, or take its sockets."""

_NAMES = frozenset((*_SHELL, *_GIT, *_AGENTS, *_TERMINALS, *_SERVICE))

_BEGINNINGS = (
    *("CODEX_SANDBOX", "GIT_PUSH_OPTION_", "GITHEAD_", "TERM_PROGRAM_", "VSCODE_"),
    *("KITTY_", "GHOSTTY_", "WEZTERM_", "ITERM_", "ALACRITTY_", "KONSOLE_", "GNOME_TERMINAL_"),
    *("TABBY_", "WARP_", "WAVETERM", "ZELLIJ", "INTELLIJ_TERMINAL_"),
)

_SETTINGS = frozenset(
    {
        *("KITTY_CONFIG_DIRECTORY", "KITTY_CACHE_DIRECTORY", "WEZTERM_CONFIG_FILE"),
        *("WEZTERM_CONFIG_DIR", "ZELLIJ_CONFIG_DIR", "ZELLIJ_CONFIG_FILE"),
        *("ZELLIJ_AUTO_ATTACH", "ZELLIJ_AUTO_EXIT"),
    }
)
"""Names with such a beginning that a person sets."""

_NPM = "npm_lifecycle_event"

_BESIDE: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    # git alone writes a date as "@seconds zone"; it has set the name with it, perhaps another's.
    (("GIT_AUTHOR_DATE=@*",), ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL")),
    # git, for hooks in which no editor may open.
    (("*",), ("GIT_EDITOR=:", "GIT_SEQUENCE_EDITOR=:")),
    # `git --no-pager`.
    (("GIT_PREFIX=*",), ("GIT_PAGER=cat",)),
    # An agent, for its commands: nobody could leave an editor or a pager there.
    (
        tuple(f"{name}=*" for name in _AGENTS),
        ("PAGER=cat", "GIT_PAGER=cat", "GH_PAGER=cat", "MANPAGER=cat", "GIT_EDITOR=true"),
    ),
    # Helpers of an editor, which ask one of its windows.
    (("VSCODE_GIT_ASKPASS_MAIN=*",), ("GIT_ASKPASS",)),
    (("VSCODE_IPC_HOOK_CLI=*",), ("BROWSER",)),
    (("NVIM=*", "VIM_TERMINAL=*"), ("VIM", "VIMRUNTIME")),
    # screen's number of a window.
    (("STY=*",), ("WINDOW",)),
    # make, for its recipes: a make below the daemon would look for the job server of that one.
    (
        ("MAKELEVEL=*",),
        ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MAKE_TERMERR", "MAKE_TERMOUT", "MFLAGS"),
    ),
    # npm, for its scripts: the prefix is that of the package, and nvm refuses to work with it.
    (
        (f"{_NPM}=*",),
        (
            *("INIT_CWD", "npm_command", "npm_config_local_prefix", "npm_config_prefix"),
            *("npm_execpath", "npm_lifecycle_script", "npm_node_execpath", "npm_package_*", _NPM),
        ),
    ),
)
"""Names, with the only value they are left out with where there is one, beside one of the marks."""


_NO_SHELLS = frozenset({"false", "nologin", "true"})


def without_place(variables: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the part of ``variables`` that a person has set. Pure.

    ``prefix`` is the venv of this program, which ``uv run`` activates.
    """
    kept = without_launcher(variables, prefix)
    facts = facts_of_place(kept)
    return {name: text for name, text in kept.items() if name not in facts}


def facts_of_place(variables: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the variables that are facts about the place of start. Pure."""
    listed = {
        name
        for name in variables
        if name in _NAMES or (name.startswith(_BEGINNINGS) and name not in _SETTINGS)
    }
    lines = [f"{name}={text}" for name, text in variables.items()]
    for marks, patterns in _BESIDE:
        if any(fnmatchcase(line, mark) for mark in marks for line in lines):
            wanted = [each if "=" in each else f"{each}=*" for each in patterns]
            listed |= {
                line.partition("=")[0]
                for line in lines
                if any(fnmatchcase(line, each) for each in wanted)
            }
    return frozenset(listed)


def without_launcher(variables: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return ``variables`` as they were before ``uv`` started a program of the venv ``prefix``.

    ``uv run`` activates that venv, and ``uv tool run`` puts its programs first on the path, so in
    each terminal ``python`` would be the daemon's own. A venv that the user activated stays. Pure.
    """
    own = str(PurePath(prefix, "bin"))
    directories = variables.get("PATH", "").split(os.pathsep)
    is_active = variables.get("VIRTUAL_ENV") == prefix
    is_run = is_active and "UV_RUN_RECURSION_DEPTH" in variables
    is_tool = not is_active and "UV" in variables and directories[0] == own
    if not (is_run or is_tool):
        return dict(variables)
    of_uv = ("UV", "UV_RUN_RECURSION_DEPTH", *(["VIRTUAL_ENV"] if is_run else []))
    kept = {name: text for name, text in variables.items() if name not in of_uv}
    if own in directories:
        directories.remove(own)
        kept["PATH"] = os.pathsep.join(directories)
    return kept


def handed_on(variables: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the environment of what a daemon with ``variables`` starts, and the names left out.

    A ``SHELL`` that runs no commands (``nologin``, a missing file) is left out: bash is in its
    place, for programs that run a shell. A missing ``HOME`` is taken from the user database.
    """
    kept = without_place(variables, sys.prefix)
    left_out = variables.keys() - kept.keys()
    shell = kept.get("SHELL", "")
    if shell and (PurePath(shell).name in _NO_SHELLS or shutil.which(shell) is None):
        left_out.add("SHELL")
        kept["SHELL"] = shutil.which("bash", path=kept.get("PATH", os.defpath)) or "/bin/sh"
    if not kept.get("HOME"):
        with contextlib.suppress(KeyError):  # an id without a name
            kept["HOME"] = pwd.getpwuid(os.getuid()).pw_dir
    return kept, sorted(left_out)


def leave_place() -> list[str]:
    """Make the environment of this process the one that is handed on.

    Called once, before the process starts another. Returns the names that were left out.
    """
    kept, left_out = handed_on(os.environ)
    for name in os.environ.keys() - kept.keys():
        del os.environ[name]
    os.environ.update(kept)
    return left_out


def take_telegram_token() -> str:
    """Return the token of the Telegram bot, removed from the environment that terminals inherit."""
    return os.environ.pop(TELEGRAM_TOKEN, "").strip()


def withhold_keys(handle: str | None) -> frozenset[str]:
    """Return ``KEY_VARIABLES`` for any handle: an agent whose provider is not known. Pure.

    None is a person, from whom nothing is withheld.
    """
    is_person = handle is None or handle.lower() == "human"
    return frozenset() if is_person else KEY_VARIABLES


def shell_environment(
    inherited: Mapping[str, str],
    given: Mapping[str, str],
    cookie: str,
    withheld: Collection[str] = (),
) -> dict[str, str]:
    """Return the daemon's environment with ``given`` merged over it, and the terminal's cookie.

    The names ``withheld`` are not inherited. The cookie marks every process of the terminal; it is
    no secret.
    """
    kept = {name: text for name, text in inherited.items() if name not in withheld}
    return {**kept, "TERM": TERM, **given, COOKIE_VARIABLE: cookie}


def process_environment(
    inherited: Mapping[str, str],
    given: Mapping[str, str],
    *,
    cwd: str,
    cookie: str,
    withheld: Collection[str] = (),
) -> dict[str, str]:
    """Return the same for a process without a terminal, in ``cwd``: an agent, a workflow.

    The daemon's own variables (``AEGIS_*``) are removed.
    """
    kept = {
        name: text
        for name, text in inherited.items()
        if not name.startswith(OURS) and name not in withheld
    }
    return {**kept, **given, "PWD": cwd, COOKIE_VARIABLE: cookie}
