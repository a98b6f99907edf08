"""How a terminal stands, as far as its front was told, and who waits for its first prompt."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from actors import Reply
from aegis.processes.process_host import ProcessHost
from aegis.processes.working_directory import REMOVED
from aegis.protocol import terminals as api
from aegis.protocol.naming import LOCAL_NODE
from aegis.terminals import messages as msg
from aegis.terminals.settings import TerminalSettings


@attrs.define(eq=False)
class Standing:
    """``state`` is ``running`` also while the prompt after a command is still on its way.

    ``cwd`` is where the prompt stood last, ``reported`` what a program has said since of where it
    is. ``shells`` counts the shells that there were, ``typing`` is who has a line half typed (since
    ``typing_began`` by the monotonic clock),
    ``needs_input`` what the running command waits for, and ``ending`` why no further shell is to
    come. ``node`` is the place where it runs.
    """

    settings: TerminalSettings
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
    failure: str = ""
    ending: msg.WhyEnded | None = None
    node: str = LOCAL_NODE

    def introduced(self, news: msg.Introduction) -> None:
        """The shell's actor has said how it stands."""
        self.pid, self.integration = news.pid, news.integration
        self.types(news.typing)
        self.needs_input = news.needs_input
        self.shells = max(self.shells + 1, len(news.shells))
        self.cwd, self.failure = news.cwd or self.cwd, news.failure
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
        """A fresh shell runs."""
        self.shells += 1
        self.pid, self.integration = news.pid, news.integration
        self.state, self.typing, self.needs_input = "starting", None, None

    def prompted(self, news: msg.Prompted) -> None:
        """The prompt stands."""
        self.state, self.cwd, self.reported = "idle", news.cwd or self.cwd, None

    def moved(self, news: msg.DirectoryChanged) -> None:
        """Somebody said where it is."""
        if news.is_prompt:
            self.cwd, self.reported = news.cwd, None
        else:
            self.reported = news.cwd

    def types(self, typing: api.Typing | None) -> None:
        """Somebody has an unfinished line at the prompt, or nobody has any more."""
        self.typing, self.typing_began = typing, trio.current_time()

    def ended(self, news: msg.ShellEnded) -> None:
        """The shell is gone."""
        self.pid, self.typing, self.reported, self.needs_input = None, None, None, None
        self.state = "starting" if news.end is None else "closed"

    def info(
        self, last: api.CommandRecord | None, subscribers: list[str], *, is_free: bool
    ) -> api.TerminalInfo:
        """What clients are told. ``is_free``: nothing is in flight; ``last``: the newest record.

        Idle as soon as nothing is in flight: the prompt may be a moment behind the end mark.
        """
        at_work = self.state in ("idle", "running")
        return api.TerminalInfo(
            name=self.settings.name,
            pid=self.pid,
            shell=self.settings.shell,
            cwd=self.reported or self._directory(),
            started_at=self.settings.started_at,
            cols=self.settings.cols,
            rows=self.settings.rows,
            integration=self.integration,
            state=("idle" if is_free else "running") if at_work else self.state,
            last_cmd_at=None if last is None else last.started_at,
            last_exit=None if last is None else last.exit,
            subscribers=subscribers,
            restarts=max(0, self.shells - 1),
            node=self.node,
            stderr=self.settings.stderr,
            typing=self.typing,
        )

    def _directory(self) -> str | None:
        """Where the shell is now: a command may have changed it, and its prompt is yet to come.

        None if that directory was removed.
        """
        found = None if self.pid is None else self.host.directory_of(self.pid)
        return None if found == REMOVED else found or self.cwd


class PromptWaiters:
    """Requests that are answered when the first prompt stands, or not in their time."""

    def __init__(self) -> None:
        self._waiting: dict[int, Reply[api.TerminalInfo]] = {}

    def add(self, number: int, reply: Reply[api.TerminalInfo]) -> None:
        """Somebody waits, under this number."""
        self._waiting[number] = reply

    def answer(self, number: int, info: Callable[[], api.TerminalInfo]) -> None:
        """The time of this one is up; ``info`` is asked for only if it still waits."""
        reply = self._waiting.pop(number, None)
        if reply is not None:
            reply.send(info())

    def answer_all(self, info: Callable[[], api.TerminalInfo]) -> None:
        """There is something to say: the prompt stands, or none will come."""
        for number in list(self._waiting):
            self.answer(number, info)
