"""The reference page of the providers, in Markdown.

``docs/reference/providers.md`` is what
``python tests/aegis/agents/drivers/providers_page.py`` prints.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from aegis.agents.drivers.providers import PROVIDERS, Provider

INTRODUCTION = """\
# Providers

A provider is an agent program that sessions can run, unmodified. A profile in
[`.aegis.yaml`](configuration.md#agents) names it:

```yaml
agents:
  builder:
    provider: claude
    permission: ask
```

[`doctor`](cli.md#doctor) shows which programs are installed, whether they are as new as the
versions below, and whether they look logged in.

This page is generated: do not edit it, run
`python tests/aegis/agents/drivers/providers_page.py > docs/reference/providers.md`.

## All providers
"""

ANOTHER = """\
## Another agent

Any agent that speaks ACP (protocol version 1) is a provider by five lines of configuration:

```yaml
agents:
  qwen:
    provider: acp
    command: [qwen, --acp]
    asking_mode: default
    permission: ask
```

`asking_mode` is the id of the session mode in which the agent asks before it acts. It is set and
read back each time the agent starts; if the agent does not take it, the session does not start. An
agent without such a mode can only be started with `permission: full`.

Whether such an agent asks before it calls a tool of the daemon is not known. So a call that runs a
program or writes is refused, where the permission of the profile says ask, unless the agent has
asked for exactly that call before (`session/request_permission`) and you have allowed it.
The request has to show the arguments of the call, and to be for the tool: one for a shell command
or a file whose title names the tool does not count.
"""


def providers_page() -> str:
    """Return the whole page, ending in a newline."""
    parts = [INTRODUCTION, _table()]
    for provider in PROVIDERS:
        if provider.start:
            parts += [f"## {provider.name}\n", *_section(provider)]
    return "\n".join([*parts, ANOTHER])


def _table() -> str:
    rows = [
        "| provider | program | protocol | tried with | mode in which it asks | a call ends after "
        "| cost |",
        "|---|---|---|---|---|---|---|",
    ]
    for provider in PROVIDERS:
        limit = provider.call_limit_s
        cells = (
            f"`{provider.name}`",
            f"`{' '.join(provider.start)}`" if provider.start else "`command` of the profile",
            "stream-json" if provider.family == "claude" else "ACP",
            ", ".join(provider.tried) or "-",
            f"`{provider.asking_modes[0]}`" if provider.asking_modes else "`asking_mode`",
            "-" if limit is None else f"{limit:g} s",
            "reported" if provider.reports_cost else "not reported",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join([*rows, ""])


def _section(provider: Provider) -> Iterator[str]:
    yield f"{provider.title}.\n"
    yield f"- Install: `{provider.install}`"
    yield f"- Log in: {provider.login}"
    names = ", ".join(f"`{name}`" for name in _variables(provider))
    if names:
        yield f"- Environment that is set: {names}"
    yield "\nTraps:\n"
    yield from (f"- {trap}" for trap in provider.traps)
    yield ""


def _variables(provider: Provider) -> tuple[str, ...]:
    return (
        *provider.environment,
        *provider.without_project,
        *provider.preset,
        *provider.password_variables,
    )


if __name__ == "__main__":
    sys.stdout.write(providers_page())
