"""The state of a terminal and of its shell, as the front knows it."""

from __future__ import annotations

import signal

import attrs
import trio

from aegis.names import shorten
from aegis.processes.process_host import ProcessHost
from aegis.processes.working_directory import REMOVED
from aegis.protocol import terminals as api
from aegis.protocol.naming import LOCAL_NODE
from aegis.terminals import messages as msg
from aegis.terminals.settings import TerminalSettings


@attrs.define(eq=False)
class TerminalState:
    """The terminal state. ``state`` is ``running`` also between a command and its next prompt.

    ``cwd`` is the directory of the last prompt, ``reported`` one that a program has reported since.
    ``shells`` counts the shells so far. ``typing`` names the writer of an unfinished line, which
    began at ``typing_began`` (monotonic seconds). ``needs_input`` is the input for which the
    current command waits, ``may_need_input`` the one for which it may wait; ``was_answered``: keys
    were passed to the shell since. ``ending`` is the reason why no further shell follows. ``node``
    is the node on which the terminal runs.
    ``notice`` is about the shell, whose actor is in its incarnation ``life``.
    """

    host: ProcessHost
    state: api.State = "starting"
    pid: int | None = None
    cwd: str | None = None
    reported: str | None = None
    integration: api.Integration = "osc133"
    shells: int = 0
    typing: api.Typing | None = None
    typing_began: float = 0.0
    needs_input: api.NeedsInput | None = None
    may_need_input: api.NeedsInput | None = None
    was_answered: bool = False
    failure: str = ""
    ending: msg.WhyEnded | None = None
    node: str = LOCAL_NODE
    program: str | None = None
    notice: str | None = None
    life: int = 0

    def introduced(self, news: msg.Introduction) -> None:
        """Take over the state of the shell's actor."""
        self.pid, self.integration = news.pid, news.integration
        self.types(news.typing)
        self.needs_input = news.needs_input
        self.shells = max(self.shells + 1, len(news.shells))
        self.cwd, self.failure = news.cwd or self.cwd, news.failure
        if self.life and self.life != news.life:
            self.notice = "the shell is new: the actor that ran the one before it has crashed"
        self.life = news.life
        self.ending = self.ending or news.ending
        if news.ending is not None and news.pid is None:
            self.state = "closed"
        elif news.failure:
            self.state = "failed"
        elif not news.was_prompted:
            self.state = "starting"
        else:
            self.state = "idle" if news.at_prompt else "running"

    def started(self, news: msg.ShellStarted) -> None:
        """Note that a fresh shell runs."""
        self.shells += 1
        self.pid, self.integration = news.pid, news.integration
        self.state, self.typing, self.program = "starting", None, news.program
        self.needs_input = self.may_need_input = None
        if news.gone is not None:
            gone = f"its last directory {news.gone!r} is gone, so it was started in the root"
            self.notice = f"{self.notice}; {gone}" if self.notice else gone

    def prompted(self, news: msg.Prompted) -> None:
        """Note that the shell is at its prompt."""
        self.state, self.cwd, self.reported = "idle", news.cwd or self.cwd, None

    def moved(self, news: msg.DirectoryChanged) -> None:
        """Note a directory that the shell or a program has reported."""
        if news.is_prompt:
            self.cwd, self.reported = news.cwd, None
        else:
            self.reported = news.cwd

    def types(self, typing: api.Typing | None) -> None:
        """Note the writer of an unfinished line at the prompt; None: the line is empty."""
        self.typing, self.typing_began = typing, trio.current_time()

    def ended(self, news: msg.ShellEnded) -> None:
        """Note the end of the shell."""
        self.pid, self.typing, self.reported = None, None, None
        self.needs_input = self.may_need_input = None
        self.state = "starting" if news.end is None else "closed"
        if news.loss is not None and news.loss.replaced is not None:
            self.shells -= 1  # it was none of the terminal's own

    def known(self) -> tuple[object, ...]:
        """Return all that a description for clients depends on."""
        return (
            self.state,
            self.pid,
            self.cwd,
            self.reported,
            self.integration,
            self.shells,
            self.typing,
            self.needs_input,
            self.may_need_input,
        )

    def info(
        self,
        settings: TerminalSettings,
        last: api.CommandRecord | None,
        subscribers: list[str],
        running: api.CommandHeader | None,
        *,
        is_free: bool,
    ) -> api.TerminalInfo:
        """Return the description for clients; ``last`` is the newest record.

        ``running`` is the command that has begun, ``is_free``: none is submitted either.
        """
        # Idle as soon as there is no current command: the prompt comes a moment after the end mark.
        at_work = self.state in ("idle", "running")
        return api.TerminalInfo(
            name=settings.name,
            pid=self.pid,
            shell=self.program or settings.shell,
            cwd=self.reported or self._directory(),
            started_at=settings.started_at,
            cols=settings.cols,
            rows=settings.rows,
            integration=self.integration,
            state=("idle" if is_free else "running") if at_work else self.state,
            last_cmd_at=None if last is None else last.started_at,
            last_exit=None if last is None else last.exit,
            subscribers=subscribers,
            restarts=max(0, self.shells - 1),
            node=self.node,
            stderr=settings.stderr,
            typing=self.typing,
            running=running,
            notice=self.failure if self.state == "failed" else self.notice or settings.notice,
        )

    def _directory(self) -> str | None:
        """Return the shell's directory; None if it was removed."""
        # The last prompt's directory may be outdated: a command may have changed it since.
        found = None if self.pid is None else self.host.directory_of(self.pid)
        return None if found == REMOVED else found or self.cwd


def shell_lost(loss: msg.ShellLoss, status: int | None) -> str:
    """Return why a shell ended between two commands, with its last line where it printed one.

    ``status`` is its exit code, -n for a signal, None if it is not known.
    """
    if loss.replaced is not None:
        return loss.replaced
    if status is None:
        how = "the shell ended"
    elif status >= 0:
        how = f"the shell ended at its prompt with exit {status}"
    else:
        how = f"the shell was killed at its prompt by {_signal_name(-status)}"
    lines = loss.words.strip().splitlines()
    return f"{how}: {shorten(lines[-1])!r}" if lines else how


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
