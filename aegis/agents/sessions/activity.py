"""``Activity``: the agent's state between its turns' ends, as its events report it. Pure."""

from __future__ import annotations

from aegis.protocol import agent_events as ev
from aegis.protocol.agent_states import AgentCall

MAX_TOOLS = 256
"""Running tool calls that are followed."""

MAX_CALLS = 64
"""Calls that are shown as a tree."""

MAX_TITLE_CHARS = 200


class Activity:
    """The running ``tools`` by id with their titles, the background ``tasks``, and the ``model``
    and the ``mode``.

    ``terminals`` are the open ACP terminals by id, with their commands. ``progressed_at`` is the
    moment of the agent's last event.
    """

    def __init__(self, now: float) -> None:
        self.tools: dict[str, str] = {}
        self.terminals: dict[str, str] = {}
        self.tasks: tuple[str, ...] = ()
        self.model = self.mode = ""
        self.progressed_at = now
        self._has_outlived = False
        self._running: list[ev.BackgroundTask] = []
        self._known: dict[str, AgentCall] = {}  # calls that ended too: they may have subagents

    def take(self, event: ev.AgentEvent, now: float) -> None:
        """Take the next event of the agent."""
        self.progressed_at = now
        match event:
            case ev.ToolUse(id=tool, title=title, name=name):
                if tool in self.tools or len(self.tools) < MAX_TOOLS:
                    self.tools[tool] = title or name
                    self._remember(event)
            case ev.ToolResult(id=tool):
                self.tools.pop(tool, None)
            case ev.TerminalStarted(terminal=terminal, command=command):
                if len(self.terminals) < MAX_TOOLS:
                    self.terminals[terminal] = command
            case ev.TerminalEnded(terminal=terminal):
                self.terminals.pop(terminal, None)
            case ev.TasksChanged(tasks=tasks, running=running):
                self.tasks, self._running = tuple(tasks), running
                if not tasks and self._has_outlived:
                    self.end_turn()  # a subagent whose calls are left was ended
            case ev.SystemInit(model=model, mode=mode):
                self.model, self.mode = model or self.model, mode or self.mode

    def _remember(self, use: ev.ToolUse) -> None:
        about = use.input.get("description")
        title = use.title or use.name
        # A subagent is known by what it is to do.
        if isinstance(about, str) and about and use.name in ("Agent", "Task"):
            title = f"{title}: {about}"
        call = AgentCall(id=use.id, title=title[:MAX_TITLE_CHARS], parent=use.parent)
        self._known[use.id] = call
        if len(self._known) > MAX_TOOLS:
            del self._known[next(iter(self._known))]

    @property
    def calls(self) -> list[AgentCall]:
        """The running calls and background tasks, each behind the calls that it belongs to."""
        found: dict[str, AgentCall] = {}
        for tool in self.tools:
            self._add_with_parents(tool, found)
        for task in self._running:
            self._add_with_parents(task.call, found)
            node = AgentCall(
                id=task.id,
                title=task.title[:MAX_TITLE_CHARS],
                parent=task.call if task.call in found else "",
                background=True,
            )
            found[task.id] = node
        return [*found.values()][:MAX_CALLS]

    def _add_with_parents(self, call: str, found: dict[str, AgentCall]) -> None:
        above: dict[str, AgentCall] = {}
        while call in self._known and call not in found and call not in above:
            above[call] = self._known[call]
            call = self._known[call].parent
        found |= dict(reversed(above.items()))

    def end_turn(self) -> None:
        """Note the end of the turn: only calls of a subagent in the background outlive it."""
        lasting = self.tools if self.tasks else {}
        self.tools = {
            each: title
            for each, title in lasting.items()
            if each in self._known and self._known[each].parent
        }
        self._has_outlived = bool(self.tools)

    def end_process(self) -> None:
        """Note the end of the agent's process: no task and no terminal outlives it."""
        self.tasks, self._running = (), []
        self.mode = ""
        self.tools.clear()
        self._known.clear()
        self.terminals.clear()
