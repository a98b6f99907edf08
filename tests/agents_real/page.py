"""The page of the agents that were tried, in Markdown, from the results of ``just agents``.

``docs/reference/tried-agents.md`` is what ``python -m tests.agents_real.page`` prints.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from tests.agents_real.clis import CLIS, Cli
from tests.agents_real.installed import NODE
from tests.agents_real.model_server.script import Json
from tests.agents_real.results import PARTS, Part, kept, table

INTRODUCTION = f"""\
# Agents that were tried

`just agents` tries each of these programs, unmodified, three times: alone with the driver that
sessions use, in a session of a daemon, and in a team with two Claude Code processes. Agent, daemon
and a scripted model run in a network namespace that has only loopback. No account is needed.

How each one is started, and what to know about it, is in [Providers](providers.md); how to install
and to use it, in [Use your agent](../how-to/use-your-agent.md).

This page is generated from the results of the last run: do not edit it, run `just agents`, and
`python -m tests.agents_real.page > docs/reference/tried-agents.md`.

## Versions and costs

Measured on four shared cores under load. Memory is that of all processes of the agent after the
first tool call; PSS counts shared pages once. All ran on Node {NODE.version} but `kimi`, which
needs Python 3.12 or newer.
"""

SESSIONS = """\
## In a session of a daemon

Each session has the permission `ask`. A person launches it, its agent reads a shared terminal and
runs a command there, and asks for two commands of its own: the person allows one and denies the
other ([requests](../explanation/requests.md)). Two turns are interrupted, one of them while its
request is open. The program is killed with SIGKILL in a turn, and the next message starts it again.

In each of these sessions

- reading a terminal and sending messages ask nobody,
- the interrupt withdraws the open request, and its command does not run,
- the killed turn is reported to its sender and is not sent again,
- no process has the key of the session in an argument or in its environment,
- no process is left when the session is closed.
"""

DRIVERS = """\
## Ends of turns

The words with which each agent ends a turn, as its driver reports them.
"""

NOTES = """\
- `codex` ends the failed turn with `end_turn`, and reports the thread status `systemError` before.
- `kimi` ends a turn that failed with an error of its model with `end_turn`, without a text.
- `gemini` usually refuses to load a conversation after kill -9, and one that began in the same
  minute. The session then begins a new one with the last texts of the old one.
- After a broken stream, `gemini` and `codex` ask their model again, and the first half of the text
  arrives twice.
- `kimi` opens no session without a login, even when its provider has an API key.
"""


def page(parts: Mapping[Part, Mapping[str, Json]]) -> str:
    """Return the whole page, from the results of each CLI by their parts."""
    driver, daemon = parts["driver"], parts["daemon"]
    return "\n".join(
        [
            INTRODUCTION,
            table(_version(cli, driver[cli.name]) for cli in CLIS),
            SESSIONS,
            table(_picked(cli, daemon[cli.name], IN_SESSIONS) for cli in CLIS),
            DRIVERS,
            table(_picked(cli, driver[cli.name], ENDS) for cli in CLIS),
            NOTES,
        ]
    )


COSTS = ("ready after", "first tool call after", "RSS / PSS", "processes")
ENDS = ("denied", "interrupted", "HTTP 400", "closed after")
IN_SESSIONS = ("first turn after", "our tools", "a denial", "after kill -9", "closed after")


def _version(cli: Cli, seen: Json) -> Json:
    package = f"{'Python' if cli.package.is_python else 'npm'} `{cli.package.name}`"
    named = {"provider": f"`{cli.name}`", "package": f"{package} {cli.package.version}"}
    return {**named, **{key: seen[key] for key in COSTS}}


def _picked(cli: Cli, seen: Json, keys: Sequence[str]) -> Json:
    return {"provider": f"`{cli.name}`", **{key: seen[key] for key in keys}}


def main() -> None:
    """Print the page; fail where a result is missing or of another version."""
    parts = {part: kept(part) for part in PARTS}
    for part, results in parts.items():
        for cli in CLIS:
            if results.get(cli.name, {}).get("version") != cli.package.version:
                sys.exit(
                    f"there is no {part} result of {cli.name} {cli.package.version}: just agents"
                )
    sys.stdout.write(page(parts))


if __name__ == "__main__":
    main()
