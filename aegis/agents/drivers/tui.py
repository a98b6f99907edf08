"""An agent's own terminal interface on a conversation that its driver has left. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from aegis.agents.drivers.conversations.found import ConversationFiles
from aegis.agents.drivers.cookie import DriverCookies
from aegis.agents.drivers.plan import SecretFile
from aegis.path_text import is_utf8
from aegis.processes.process_scan import ProcessScan

SCRIPT = "takeover.sh"
"""The name of the script in a session's directory that starts the program."""

OF_TERMINAL = frozenset({"TERM", "COLORTERM", "COLUMNS", "LINES", "SHLVL", "_", "OLDPWD", "PWD"})
"""Variables that the terminal's shell sets."""

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@attrs.frozen(kw_only=True)
class TuiPlan:
    """The program of one take-over, and what it leaves behind.

    ``argv`` and ``environment`` start it; ``unset`` are the other variables of the daemon.
    ``directory`` is the session's own. ``secrets`` are files that the program reads at its start,
    ``kept`` others, which the next take-over replaces. ``cookies`` mark its processes, and those
    of the session's drivers. ``others`` returns the handles of other sessions by the conversations
    that they have.
    """

    agent: str
    argv: Sequence[str]
    environment: Mapping[str, str] = attrs.field(repr=False)
    unset: frozenset[str] = frozenset()
    directory: Path
    secrets: tuple[SecretFile, ...] = ()
    kept: tuple[SecretFile, ...] = ()
    cookies: DriverCookies
    scan: ProcessScan
    files: ConversationFiles
    others: Callable[[], Mapping[str, str]] = dict

    @property
    def command(self) -> str:
        """The command that a shell runs. It holds no secret."""
        return f"sh {shlex.quote(str(self.directory / SCRIPT))}"

    def script(self) -> SecretFile:
        """Return the script that sets the environment, deletes itself, and becomes the program."""
        lines = ['rm -f -- "$0"']
        lines += [f"unset {name}" for name in sorted(self.unset) if _is_settable(name)]
        lines += [
            f"export {name}={shlex.quote(value)}"
            for name, value in self.environment.items()
            if _is_settable(name) and is_utf8(value)
        ]
        lines.append(f"exec {shlex.join(self.argv)}")
        return SecretFile(path=self.directory / SCRIPT, text="\n".join([*lines, ""]))


def _is_settable(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name not in OF_TERMINAL
