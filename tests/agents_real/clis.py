"""The agent CLIs: package, program, and a configuration that points to the scripted model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import attrs

from tests.agents_real.installed import NODE, Package, install
from tests.agents_real.model_server.script import Json
from tests.agents_real.model_server.server import MODEL

KEY = "scripted-key"
CLAUDE_MODEL = "claude-sonnet-4-5"
GEMINI_MODEL = "gemini-2.5-flash"
YEAR_3000 = 32_503_680_000


@attrs.frozen(kw_only=True)
class Cli:
    """The agent CLI of one provider."""

    name: str
    """The provider's name."""
    package: Package
    program: str
    """The path of its program below the directory of its package."""
    is_script: bool = False
    """Whether the program is a script for Node."""
    configure: Callable[[Path, str], dict[str, str]]
    """Write its configuration below a home; return its environment, for a model at this URL."""
    asking: str = "BASH touch {file}"
    """The line of a script whose command the CLI asks about."""
    forgets: bool = False
    """Whether it may refuse to load the conversation of a process that was killed."""
    hides_errors: bool = False
    """Whether a turn that failed with an HTTP error ends as a success."""

    def command(self) -> list[str]:
        """Return its command; it is installed now if it is not yet. Raises ``NotInstalled``."""
        program = str(install(self.package) / self.program)
        return [*([str(node())] if self.is_script else []), program]

    def environment(self, home: Path, url: str) -> dict[str, str]:
        """Return the user's environment, after writing the user's configuration below ``home``."""
        return {
            "PATH": f"{node().parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "SHELL": "/bin/bash",
            "TERM": "dumb",
            **self.configure(home, url),
        }


def node() -> Path:
    """Return the program of Node. Raises ``NotInstalled``."""
    return install(NODE) / "node_modules" / NODE.name / "bin" / "node"


def _claude(home: Path, url: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_MODEL": CLAUDE_MODEL,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }


def _gemini(home: Path, url: str) -> dict[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "model": {"name": GEMINI_MODEL},
        "telemetry": {"enabled": False},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    }
    _write(home / ".gemini" / "settings.json", settings)
    return {
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": KEY,
        # In a directory that is not trusted it starts no MCP server, and does not report it.
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


def _opencode(home: Path, url: str) -> dict[str, str]:
    model = {"name": MODEL, "tool_call": True, "limit": {"context": 100_000, "output": 8_000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": MODEL,
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {MODEL: model},
    }
    settings = {
        "provider": {MODEL: provider},
        "model": f"{MODEL}/{MODEL}",
        "small_model": f"{MODEL}/{MODEL}",
        "autoupdate": False,
        "share": "disabled",
    }
    _write(home / ".config" / "opencode" / "opencode.json", settings)
    names = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    return {f"OPENCODE_DISABLE_{name}": "1" for name in names}


CODEX_CONFIG = """\
model = "{model}"
model_provider = "{model}"
check_for_update_on_startup = false

[model_providers.{model}]
name = "{model}"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
supports_websockets = false

[analytics]
enabled = false
"""


def _codex(home: Path, url: str) -> dict[str, str]:
    directory = home / ".codex"
    directory.mkdir(exist_ok=True)
    (directory / "config.toml").write_text(CODEX_CONFIG.format(model=MODEL, url=url))
    return {"OPENAI_API_KEY": KEY, "CODEX_HOME": str(directory)}


KIMI_CONFIG = """\
default_model = "{model}"
telemetry = false

[models.{model}]
provider = "{model}"
model = "{model}"
max_context_size = 100000

[providers.{model}]
type = "kimi"
base_url = "{url}/v1"
api_key = "{key}"
"""


def _kimi(home: Path, url: str) -> dict[str, str]:
    directory = home / ".kimi"
    directory.mkdir(exist_ok=True)
    config = KIMI_CONFIG.format(model=MODEL, url=url, key=KEY)
    (directory / "config.toml").write_text(config)
    # It opens no session without a login, though the provider has a key of its own.
    token = {"access_token": KEY, "refresh_token": KEY, "scope": "", "token_type": "Bearer"}
    expiry = {"expires_at": YEAR_3000, "expires_in": YEAR_3000}
    _write(directory / "credentials" / "kimi-code.json", {**token, **expiry})
    return {"KIMI_CLI_NO_AUTO_UPDATE": "1"}


def _write(path: Path, document: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2))


CODEX_ASKING = (
    'CALL exec_command {{"cmd": "touch {file}", '
    '"sandbox_permissions": "require_escalated", "justification": "It is needed."}}'
)

CLIS = (
    Cli(
        name="claude",
        package=Package("@anthropic-ai/claude-code", "2.1.330"),
        program="node_modules/.bin/claude",
        configure=_claude,
    ),
    Cli(
        name="gemini",
        package=Package("@google/gemini-cli", "0.61.0"),
        program="node_modules/.bin/gemini",
        is_script=True,
        configure=_gemini,
        forgets=True,
    ),
    Cli(
        name="opencode",
        package=Package("opencode-ai", "1.18.33"),
        program="node_modules/.bin/opencode",
        configure=_opencode,
    ),
    Cli(
        name="codex",
        package=Package("@agentclientprotocol/codex-acp", "2.6.0"),
        program="node_modules/.bin/codex-acp",
        is_script=True,
        configure=_codex,
        asking=CODEX_ASKING,
    ),
    Cli(
        name="claude-agent-acp",
        package=Package("@agentclientprotocol/claude-agent-acp", "0.101.0"),
        program="node_modules/.bin/claude-agent-acp",
        is_script=True,
        configure=_claude,
    ),
    Cli(
        name="kimi",
        package=Package("kimi-cli", "1.44.0", is_python=True),
        program="python/bin/kimi",
        configure=_kimi,
        hides_errors=True,
    ),
)
