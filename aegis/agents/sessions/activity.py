"""``Activity``: the agent's state between its turns' ends, as its events report it. Pure."""

from __future__ import annotations

from aegis.protocol import agent_events as ev

MAX_TOOLS = 256
"""Running tool calls that are followed."""


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

    def take(self, event: ev.AgentEvent, now: float) -> None:
        """Take the next event of the agent."""
        self.progressed_at = now
        match event:
            case ev.ToolUse(id=tool, title=title, name=name):
                if tool in self.tools or len(self.tools) < MAX_TOOLS:
                    self.tools[tool] = title or name
            case ev.ToolResult(id=tool):
                self.tools.pop(tool, None)
            case ev.TerminalStarted(terminal=terminal, command=command):
                if len(self.terminals) < MAX_TOOLS:
                    self.terminals[terminal] = command
            case ev.TerminalEnded(terminal=terminal):
                self.terminals.pop(terminal, None)
            case ev.TasksChanged(tasks=tasks):
                self.tasks = tuple(tasks)
            case ev.SystemInit(model=model, mode=mode):
                self.model, self.mode = model or self.model, mode or self.mode

    def end_turn(self) -> None:
        """Note the end of the turn: no tool call outlives it."""
        self.tools.clear()

    def end_process(self) -> None:
        """Note the end of the agent's process: no task and no terminal outlives it."""
        self.tasks = ()
        self.mode = ""
        self.terminals.clear()
